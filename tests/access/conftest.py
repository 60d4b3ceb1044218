import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.quotaward import install_definitions


@pytest.fixture
def cluster(control_plane):
    """The real cluster, with the definition of quotas, empty before and after the test."""
    install_definitions(control_plane.api)
    cluster = Cluster(control_plane)
    yield cluster
    cluster.wipe()
