"""Kubernetes' own controllers, as far as tests need them: replica sets that are kept full, budgets that are counted."""

import itertools
from collections.abc import Iterable

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.processes import Component, answers, free_port

_numbers = itertools.count(1)


class ControllerManager(Component):
    """A kube-controller-manager with a few of its controllers, running while this is open."""

    def __init__(self, control_plane: ControlPlane, *controllers: str, flags: Iterable[str] = ()):
        self._port = free_port()
        self.process = control_plane.process(
            "kube-controller-manager",
            f"--kubeconfig={control_plane.kubeconfig}",
            f"--controllers={','.join(controllers or ('replicaset-controller', 'disruption-controller'))}",
            "--leader-elect=false",
            f"--secure-port={self._port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={control_plane.directory / 'controller-manager'}",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            *flags,
            name=f"kube-controller-manager-{next(_numbers)}",
        )

    def is_ready(self) -> bool:
        """Whether it answers; its controllers start at about the same time."""
        return answers(f"https://127.0.0.1:{self._port}/healthz")
