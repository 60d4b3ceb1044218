from contextlib import ExitStack

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.quotaward import install_definitions
from tests.e2e.standing import Standing


@pytest.fixture(scope="session")
def definitions(control_plane: ControlPlane):
    """The custom resource definitions, installed once."""
    install_definitions(control_plane.api)


@pytest.fixture(scope="module")
def standing(control_plane: ControlPlane, definitions: None):
    with Standing(control_plane) as standing:
        yield standing


@pytest.fixture
def cluster(request: pytest.FixtureRequest, control_plane: ControlPlane, standing: Standing):
    """The real cluster, empty before and after the test, and nobody at work that the test does not ask for."""
    standing.keep(request.fixturenames)
    cluster = Cluster(control_plane)
    yield cluster
    if not control_plane.api_server.alive:  # the test has failed while it was down
        control_plane.start_api_server()
    cluster.wipe()


@pytest.fixture
def quotaward(cluster: Cluster, standing: Standing):
    """Quotaward as it is run without any option. What it counts goes on from test to test."""
    return standing.quotaward()


@pytest.fixture
def scheduler(cluster: Cluster, standing: Standing):
    """A scheduler that asks Quotaward, in the way that the manifests set it up."""
    return standing.scheduler()


@pytest.fixture
def watch(cluster):
    """Opens a watch of a namespace's pods that ends with the test."""
    with ExitStack() as stack:
        yield lambda namespace: stack.enter_context(PodWatch(cluster.api, namespace))
