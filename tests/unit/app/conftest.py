import os

import pytest

from tests.unit.app.manifest_folder import GOOD, Folder


@pytest.fixture(scope="package", autouse=True)
def _no_certificates_of_the_system():
    """Each client of the API server reads all of them, which takes 30 ms, though nothing here asks a public server."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", os.devnull)
        yield


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "manifests"
    path.mkdir()
    return Folder(path)


@pytest.fixture
def good(folder):
    """A folder that holds three good files."""
    for name, item in GOOD.items():
        folder.write(f"{name.replace('/', '-')}.yaml", item)
    return folder
