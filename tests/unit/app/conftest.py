import os
from functools import cache

import pytest
import structlog
import typer.testing

from tests.unit.app.manifest_folder import GOOD, Folder


@pytest.fixture(scope="package", autouse=True)
def _no_certificates_of_the_system():
    """Each client of the API server reads all of them, which takes 30 ms, though nothing here asks a public server."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", os.devnull)
        yield


def _without_information(_logger, level, event):
    if level == "info":
        raise structlog.DropEvent
    return event


@pytest.fixture(scope="package", autouse=True)
def _short_logs_without_colours():
    """To find out how wide tracebacks may be, and to colour them, takes longer than what is logged in most tests.

    Each store tells of each kind that it is in sync: nobody reads that. ``capture_logs`` shows it nevertheless.
    """
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[_without_information, structlog.processors.add_log_level, plain])
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="package", autouse=True)
def _commands_are_put_together_once():
    """They are the same each time, and typer makes all of them for each that is invoked."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
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
