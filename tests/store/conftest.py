import pytest
import yaml

from tests.store.proxy import Proxy


@pytest.fixture
def namespace(cluster):
    return cluster.namespace("store")


@pytest.fixture
def proxy(control_plane):
    """A way to the API server that the test can cut."""
    with Proxy(int(control_plane.api_url.rpartition(":")[2])) as running:
        yield running


@pytest.fixture
def kubeconfig(control_plane, proxy, tmp_path):
    """Credentials for the API server, by way of the proxy."""
    config = yaml.safe_load(control_plane.api.kubeconfig())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file
