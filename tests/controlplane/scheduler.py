"""A stock kube-scheduler that asks an extender."""

import itertools
from collections.abc import Iterable
from typing import Any, Self

import yaml

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.processes import Component, answers, free_port

_numbers = itertools.count(1)
_backoff: dict[str, int] = {}


def extender(url: str, *, node_cache_capable: bool = True, bind: bool = False, **fields: Any) -> dict[str, Any]:
    """An entry of ``extenders`` in a KubeSchedulerConfiguration, for Quotaward at this address."""
    entry = {
        "urlPrefix": f"{url}/extender",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": 1,
        "nodeCacheCapable": node_cache_capable,
        "ignorable": False,
        "httpTimeout": "5s",
    }
    return entry | ({"bindVerb": "bind"} if bind else {}) | fields


def try_again_soon() -> None:
    """From now on pods are tried again after two seconds at most, not ten. (Not where it is measured.)"""
    _backoff["podMaxBackoffSeconds"] = 2


class Scheduler(Component):
    """A kube-scheduler, running while this is open."""

    def __init__(
        self,
        control_plane: ControlPlane,
        *extenders: dict[str, Any],
        profile: dict[str, Any] | None = None,
        flags: Iterable[str] = (),
        **configuration: Any,
    ):
        """Further arguments are fields of the KubeSchedulerConfiguration, as Kubernetes spells them."""
        self.configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(control_plane.kubeconfig), "qps": 5000, "burst": 5000},
            "profiles": [{"schedulerName": "default-scheduler"} | (profile or {})],
            "extenders": list(extenders),
            **_backoff,
        } | configuration
        self._port = free_port()
        name = f"kube-scheduler-{next(_numbers)}"
        self._file = control_plane.directory / f"{name}.yaml"
        self.process = control_plane.process(
            "kube-scheduler",
            f"--config={self._file}",
            f"--secure-port={self._port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={control_plane.directory / 'scheduler'}",
            *flags,
            name=name,
        )

    def __enter__(self) -> Self:
        self._file.write_text(yaml.safe_dump(self.configuration))
        return super().__enter__()

    def is_ready(self) -> bool:
        """Whether it has seen every object and schedules."""
        return answers(f"https://127.0.0.1:{self._port}/readyz")
