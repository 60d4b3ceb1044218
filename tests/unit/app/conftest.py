import pytest

from tests.unit.app.manifest_folder import GOOD, Folder


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
