"""The system under test: two Quotawards and a scheduler that asks one of them, with ways between them that can fail."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import httpx
import yaml

from tests.chaos.gateway import FAIR, Gateway
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.processes import Process, free_port, wait_until
from tests.controlplane.quotaward import install_rights
from tests.controlplane.scheduler import Scheduler, extender

_ROOT = Path(__file__).parents[2]
LEASE = 5  # seconds
_FLAGS = ("--reserve.starving-after", "8", "--reserve.max-duration", "120", "--leader.lease-duration", str(LEASE))
_FLAGS += "--jobs.start-patience", "15", "--reserve.backfill-margin", "5"


class Replica:
    """One Quotaward, which speaks to the API server by way of a gateway, and whose wall clock can be wrong."""

    def __init__(self, name: str, directory: Path, kubeconfig: Path):
        self.clock = directory / f"{name}.clock"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "tests.chaos.clock", self.clock, "serve", "--kubeconfig", kubeconfig]
        command += ["--listen", f"127.0.0.1:{port}", *_FLAGS]
        self.process = Process(command, directory / f"{name}.log", {"PYTHONPATH": str(_ROOT)})

    def start(self) -> None:
        self.process.start()

    def set_clock(self, error: float) -> None:
        """Seconds by which its wall clock is fast."""
        self.clock.write_text(str(error))

    def is_ready(self) -> bool:
        return self._get("/readyz") is not None

    def leads(self) -> bool:
        return "\nquotaward_leader 1" in (self._get("/metrics") or "")

    def _get(self, url: str) -> str | None:
        try:
            answer = httpx.get(self.url + url, timeout=5, trust_env=False)
        except httpx.TransportError:
            return None
        return answer.text if answer.is_success else None


class System:
    """Everything runs while this is open."""

    def __init__(self, control_plane: ControlPlane, directory: Path, seed: int):
        self.control_plane = control_plane
        api = control_plane.api
        self.way_to_api = Gateway(api.url, api.ca_file, seed)
        kubeconfig = directory / "chaos.kubeconfig"
        self._kubeconfig = kubeconfig
        self.replicas = [Replica(f"chaos-{number}", directory, kubeconfig) for number in range(2)]
        self.way_to_quotaward = Gateway(self.replicas[0].url, seed=seed)
        self.scheduler = Scheduler(control_plane, extender(self.way_to_quotaward.url, httpTimeout="2s"))
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            api = self.control_plane.api
            install_rights(api)
            stack.enter_context(self.way_to_api)
            stack.enter_context(self.way_to_quotaward)
            config = yaml.safe_load(api.kubeconfig(api.service_account_token("quotaward", "quotaward-system", 7200)))
            config["clusters"][0]["cluster"] = {"server": self.way_to_api.url}
            self._kubeconfig.write_text(yaml.safe_dump(config))
            for replica in self.replicas:
                replica.set_clock(0)
                replica.start()
                stack.callback(replica.process.stop, within=5)
            for replica in self.replicas:
                replica.process.wait_until_ready(replica.is_ready)
            controllers = "disruption-controller", "job-controller", "resourceclaim-controller"
            stack.enter_context(ControllerManager(self.control_plane, *controllers))
            stack.enter_context(self.scheduler)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def asked(self) -> Replica:
        """The one that the scheduler asks."""
        return next(replica for replica in self.replicas if replica.url == self.way_to_quotaward.target)

    @property
    def leader(self) -> Replica:
        """The one that leads; where nobody does at the moment, the one that is asked."""
        return next((replica for replica in self.replicas if replica.leads()), self.asked)

    def ask(self, replica: Replica) -> None:
        """Let the scheduler ask this one from now on."""
        self.way_to_quotaward.target = replica.url

    def other(self, replica: Replica) -> Replica:
        return self.replicas[1 - self.replicas.index(replica)]

    def mend(self) -> None:
        """No fault is left."""
        self.way_to_api.weather = self.way_to_quotaward.weather = FAIR
        for replica in self.replicas:
            replica.set_clock(0)
            if not replica.process.alive:
                replica.start()
        for replica in self.replicas:
            wait_until(replica.is_ready, "each replica is ready again", 90)
