"""Quotaward as it is run: its own process, with the rights of the service account in the manifests."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.controlplane.api import Api
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.launch import QUOTAWARD
from tests.controlplane.processes import Process, free_port, wait_until

_ROOT = Path(__file__).parents[2]
MANIFESTS = _ROOT / "manifests"
_NAMESPACE, _ACCOUNT = "quotaward-system", "quotaward"
_numbers = itertools.count(1)


class Quotaward:
    """A Quotaward process, running while this is open; it can be killed and started again on its port."""

    def __init__(self, control_plane: ControlPlane, *flags: str, ready_within: float = 60, server: str = ""):
        """``ready_within``: seconds that it may take to be ready. ``server``: a way to the API server, for HTTP."""
        self._ready_within = ready_within
        self._server = server
        self.control_plane = control_plane
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        name = f"quotaward-{next(_numbers)}"
        self._kubeconfig = control_plane.directory / f"{name}.kubeconfig"
        command = [QUOTAWARD, "serve", "--kubeconfig", self._kubeconfig, "--listen", f"127.0.0.1:{self.port}", *flags]
        self.process = Process(command, control_plane.directory / f"{name}.log")
        self._http = httpx.Client(base_url=self.url, trust_env=False)

    def __enter__(self) -> Self:
        install_rights(self.control_plane.api)
        api = self.control_plane.api
        config = yaml.safe_load(api.kubeconfig(api.service_account_token(_ACCOUNT, _NAMESPACE)))
        if self._server:
            config["clusters"][0]["cluster"] = {"server": self._server}
        self._kubeconfig.write_text(yaml.safe_dump(config))
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop(within=5)  # in order, so that the next one need not wait for the Lease to run out
        self._http.close()

    def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        self.process.start()
        self.process.wait_until_ready(self.is_ready, self._ready_within)

    def crash(self) -> None:
        self.process.kill()

    def stop(self) -> int | None:
        """Ask it to end; returns its exit status."""
        return self.process.stop()

    def is_ready(self) -> bool:
        return self._answers("/readyz")

    def is_alive(self) -> bool:
        return self.process.alive and self._answers("/healthz")

    def get(self, url: str) -> Any:
        return self._http.get(url).raise_for_status().json()

    def post(self, url: str, body: Any) -> Any:
        return self._http.post(url, json=body, timeout=60).raise_for_status().json()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels; 0 where there is none yet."""
        families = text_string_to_metric_families(self._http.get("/metrics").raise_for_status().text)
        samples = (sample for family in families for sample in family.samples if sample.name == name)
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    def requests(self, verb: str, **labels: str) -> int:
        """How many calls of this verb it has answered since it was started."""
        return int(self.metric("quotaward_extender_requests_total", verb=verb, **labels))

    def _answers(self, url: str) -> bool:
        try:
            return self._http.get(url).is_success
        except httpx.TransportError:
            return False


def install_definitions(api: Api) -> None:
    """Install the custom resource definitions, and wait until the API server serves them."""
    for definition in api.apply_files(MANIFESTS / "crds"):
        spec = definition["spec"]
        for version in (version["name"] for version in spec["versions"] if version["served"]):
            url = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
            wait_until(lambda url=url: api.is_ready_for(url), f"the API server serves {url}")


def install_rights(api: Api) -> None:
    """Create Quotaward's service account, with the rights that it needs in every set-up."""
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
    api.apply_files(MANIFESTS / "rbac" / "serviceaccount.yaml", MANIFESTS / "rbac" / "quotaward.yaml")


@contextmanager
def right_to_bind(api: Api) -> Iterator[None]:
    """Let Quotaward bind pods, as it must where the scheduler's configuration has a bindVerb."""
    with _given(api, MANIFESTS / "bind" / "quotaward-bind.yaml"):
        yield


@contextmanager
def right_to_delete(api: Api) -> Iterator[None]:
    """Let Quotaward delete pods, as it must where budgets that never allow anything are borne for a while only."""
    with _given(api, MANIFESTS / "patience" / "quotaward-patience.yaml"):
        yield


@contextmanager
def right_to_review(api: Api) -> Iterator[None]:
    """Let Quotaward ask who bears a token, as it must where it listens beyond loopback."""
    with _given(api, MANIFESTS / "access" / "quotaward-access.yaml"):
        yield


@contextmanager
def _given(api: Api, file: Path) -> Iterator[None]:
    given = api.apply_files(file)
    try:
        yield
    finally:
        for item in given:
            api.delete(f"{item['kind'].lower()}s", item["metadata"]["name"])
