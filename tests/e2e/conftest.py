from contextlib import ExitStack

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.quotaward import Quotaward, install_definitions
from tests.controlplane.scheduler import Scheduler, extender


@pytest.fixture(scope="session")
def definitions(control_plane: ControlPlane):
    """The custom resource definitions, installed once."""
    install_definitions(control_plane.api)


@pytest.fixture
def cluster(control_plane: ControlPlane, definitions: None):
    """The real cluster, empty before and after the test."""
    cluster = Cluster(control_plane)
    yield cluster
    if not control_plane.api_server.alive:  # the test has failed while it was down
        control_plane.start_api_server()
    cluster.wipe()


@pytest.fixture
def quotaward(cluster: Cluster):
    with Quotaward(cluster.control_plane) as running:
        yield running


@pytest.fixture
def scheduler(cluster: Cluster, quotaward: Quotaward):
    """A scheduler that asks Quotaward, in the way that the manifests set it up."""
    with Scheduler(cluster.control_plane, extender(quotaward.url)) as running:
        yield running


@pytest.fixture
def watch(cluster):
    """Opens a watch of a namespace's pods that ends with the test."""
    with ExitStack() as stack:
        yield lambda namespace: stack.enter_context(PodWatch(cluster.api, namespace))
