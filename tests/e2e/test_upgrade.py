"""Upgrade and way back on a real control plane: from the tree before, to this one, and back to it.

The tree before comes from the history of this repository, with its own definitions and rights. Room that one begins to
make is made by the next: the victim is not evicted a second time, and the pod gets the place.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import own_control_plane
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import condition, elastic_quota, lingering, node, pod, queue
from tests.controlplane.processes import Process, free_port, wait_until
from tests.controlplane.quotaward import install_definitions
from tests.controlplane.scheduler import Scheduler, extender
from tests.missing import missing

ROOT = Path(__file__).parents[2]
BEFORE = "1296ea3"
SYSTEM, ACCOUNT = "quotaward-system", "quotaward"
pytestmark = pytest.mark.skipif(not os.environ.get("QUOTAWARD_LONG"), reason="takes two minutes: QUOTAWARD_LONG=1")


@pytest.fixture(scope="module")
def before(tmp_path_factory) -> Path:
    """The tree of the commit before."""
    directory = tmp_path_factory.mktemp("before")
    archive = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        missing(f"{BEFORE} is not in this clone: git fetch --unshallow")
    subprocess.run(["tar", "-x"], cwd=directory, input=archive.stdout, check=True)
    return directory


@pytest.fixture
def control_plane(request, tmp_path_factory) -> Iterator[ControlPlane]:
    with own_control_plane(request, tmp_path_factory) as running:
        running.api.create_all(node(name, cpu=4) for name in ("n1", "n2"))
        yield running


def install(control_plane: ControlPlane, tree: Path) -> None:
    """Applies definitions and rights of a tree, as an upgrade does first."""
    api = control_plane.api
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    api.apply_files(tree / "manifests/crds")
    api.apply_files(tree / "manifests/rbac/serviceaccount.yaml", tree / "manifests/rbac/quotaward.yaml")


@contextmanager
def running(control_plane: ControlPlane, tree: Path, port: int) -> Iterator[httpx.Client]:
    """Runs Quotaward of a tree until it is ready, and stops it in order."""
    kubeconfig = control_plane.directory / "quotaward.kubeconfig"
    api = control_plane.api
    kubeconfig.write_text(api.kubeconfig(api.service_account_token(ACCOUNT, SYSTEM)))
    program = Path(sys.executable).parent / "quotaward"
    command = [sys.executable, program, "serve", "--kubeconfig", kubeconfig, "--listen", f"127.0.0.1:{port}"]
    process = Process(command, control_plane.directory / f"{tree.name}.log", {"PYTHONPATH": str(tree)})
    process.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as asking:
            process.wait_until_ready(lambda: is_ready(asking))
            yield asking
    finally:
        process.stop()


def is_ready(asking: httpx.Client) -> bool:
    try:
        return asking.get("/readyz").is_success
    except httpx.TransportError:
        return False


def used(asking: httpx.Client) -> dict:
    return asking.get("/api/v1/elasticquotas/team-a").json()["items"][0]["used"]


@pytest.mark.timeout(600)
def test_upgrade_and_way_back(control_plane, before):
    api, port = control_plane.api, free_port()
    install_definitions(api)
    trees, seen, kept = (before, ROOT, before), [], []
    for name in ("team-a", "owner", "borrower"):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for number, tree in enumerate(trees, start=1):
        install(control_plane, tree)
        if number == 1:
            api.create(elastic_quota("team-a", min={"cpu": 3}, max={"cpu": 3, "memory": "1Gi"}))
            api.create(elastic_quota("owner", min={"cpu": 4}, max={"cpu": 4}))
            api.create(elastic_quota("borrower", min={"cpu": 0}, max={"cpu": 4}))
            api.create(queue("research", weight=1))
        with (
            running(control_plane, tree, port) as asking,
            Scheduler(control_plane, extender(f"http://127.0.0.1:{port}")),
        ):
            if number == 1:
                api.create(lingering(pod("victim", "borrower", cpu=4)))
                wait_until(lambda: node_of(api, "victim", "borrower"), "the borrower is bound")
            name = f"p{number}"
            api.create(pod(name, "team-a"))
            wait_until(lambda name=name: node_of(api, name, "team-a"), f"{name} is bound")
            if number == 1:
                api.create(pod("too-much", "team-a", cpu="100m", memory="2Gi"))
                api.create(pod("waits", "owner", cpu=4))
                wait_until(lambda: is_going(api), "the borrower is evicted")
            wait_until(lambda: refused(api), "the other is refused still")
            wait_until(lambda number=number: used(asking)["cpu"] == str(number), f"{number} cpu are used")
            wait_until(lambda number=number: written(api) == str(number), f"the status says that {number} cpu are used")
            kept += [item["metadata"]["uid"] for item in api.items("reservations")]
            if number == 2:
                api.delete("pods", "victim", "borrower", grace=0)
                wait_until(lambda: node_of(api, "waits", "owner"), "the owner is bound")
                wait_until(lambda: not api.items("reservations"), "nothing is kept any more")
            seen.append(asking.get("/api/v1/pods/team-a/too-much").json()["rule"])
    assert seen == ["elastic-quota-max"] * 3
    assert len(kept) == 2
    assert len(set(kept)) == 1, "the room was begun anew"


def node_of(api, name: str, namespace: str) -> str | None:
    return api.get("pods", name, namespace)["spec"].get("nodeName")


def is_going(api) -> bool:
    return "deletionTimestamp" in api.get("pods", "victim", "borrower")["metadata"]


def refused(api) -> bool:
    said = condition(api.get("pods", "too-much", "team-a"), "PodScheduled")
    return "ElasticQuota max exceeded: " in said.get("message", "")


def written(api) -> str:
    path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-a/elasticquotas/quota"
    return str(api.request("GET", path).get("status", {}).get("used", {}).get("cpu"))
