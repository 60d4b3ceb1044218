from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.quotaward import install_definitions
from tests.e2e.standing import Standing

_standing = pytest.StashKey[Standing]()


@pytest.fixture(scope="session")
def definitions(control_plane: ControlPlane):
    """The custom resource definitions, installed once."""
    install_definitions(control_plane.api)


@pytest.fixture(scope="package")
def standing(request: pytest.FixtureRequest):
    """Of all files, as long as a process runs tests of this folder."""
    with Standing() as standing:
        request.session.stash[_standing] = standing
        yield standing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In each file, those that share Quotaward come one after the other, and of these those that share a scheduler."""
    first = dict[Path, int]()
    for number, item in enumerate(items):
        first.setdefault(item.path, number)

    def rank(item: pytest.Item) -> tuple[int, bool, bool]:
        shares = "standing" in getattr(item, "fixturenames", ())
        return first[item.path], shares, shares and "scheduler" in item.fixturenames

    items.sort(key=rank)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before anything is set up for a test, also for its file: nobody is at work that the test does not ask for."""
    if standing := item.session.stash.get(_standing, None):
        standing.keep(item.fixturenames if "standing" in item.fixturenames else ())


@pytest.fixture
def cluster(control_plane: ControlPlane, definitions: None):
    """The real cluster, empty before and after the test, and nobody at work that the test does not ask for."""
    cluster = Cluster(control_plane)
    yield cluster
    if not control_plane.api_server.alive:  # the test has failed while it was down
        control_plane.start_api_server()
    cluster.wipe()


@pytest.fixture
def quotaward(cluster: Cluster, standing: Standing):
    """Quotaward as it is run without any option. What it counts goes on from test to test."""
    return standing.quotaward(cluster.control_plane)


@pytest.fixture
def scheduler(cluster: Cluster, standing: Standing):
    """A scheduler that asks Quotaward, in the way that the manifests set it up."""
    return standing.scheduler(cluster.control_plane)


@pytest.fixture
def watch(cluster):
    """Opens a watch of a namespace's pods that ends with the test."""
    with ExitStack() as stack:
        yield lambda namespace: stack.enter_context(PodWatch(cluster.api, namespace))
