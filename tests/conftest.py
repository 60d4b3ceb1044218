"""What tests of every kind share: the real control plane, for those that need it."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import sharing
from tests.controlplane.build import CannotBuild, binaries, tools
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.launch import fork_quotaward
from tests.controlplane.scheduler import try_again_soon
from tests.missing import missing

_built = pytest.StashKey[CannotBuild | None]()
_END_OF_LOG = 3000  # bytes of each log that a failure shows
_YOUNG = 10_000  # new objects after which the garbage collector looks at them; Hypothesis counts each look

gc.disable()  # until all is imported and collected: of that there is much, and hardly any garbage


def pytest_configure() -> None:
    """Have the processes of Quotaward that tests start forked, and schedulers try soon again."""
    fork_quotaward()
    try_again_soon()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put those that are left into the order in which several processes share them out."""
    sharing.sort(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> sharing.FromBothEnds | None:
    """Have one process begin at the end, where files are shared out."""
    return sharing.FromBothEnds(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """How many processes ``-n auto`` has: tests wait for a third of the time, for servers and commands of their own."""
    return (os.cpu_count() or 1) * 3 // 2


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what takes long before the first test, whose time limit would be too short for it.

    What was collected stays to the end: the garbage collector is not to look through it again in test after test.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG)
    gc.enable()
    items = () if session.config.option.collectonly else session.items
    wanted = {name for item in items for name in getattr(item, "fixturenames", ())}
    session.config.stash[_built] = None
    try:
        if "control_plane" in wanted:
            binaries()
        if "install_tools" in wanted:
            tools()
    except CannotBuild as reason:
        session.config.stash[_built] = reason


@contextmanager
def own_control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, *flags: str
) -> Iterator[ControlPlane]:
    """A running control plane, its API server with these further flags. Without one the tests are skipped, or fail."""
    try:
        if reason := request.config.stash[_built]:
            raise reason
        with ControlPlane(tmp_path_factory.mktemp("control-plane"), *flags) as running:
            yield running
    except CannotBuild as reason:
        missing(f"there is no control plane: {reason}")


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """The control plane that all tests share."""
    with own_control_plane(request, tmp_path_factory) as running:
        yield running


@pytest.fixture(scope="session")
def install_tools(request: pytest.FixtureRequest) -> dict[str, Path]:
    """Paths of helm, kustomize and kubectl. Without them tests are skipped, or fail."""
    if reason := request.config.stash[_built]:
        missing(f"there is no helm, kustomize or kubectl: {reason}")
    return tools()


@pytest.fixture
def cluster(control_plane: ControlPlane):
    """The real cluster, with the definition of quotas, empty before and after the test."""
    from tests.controlplane.cluster import Cluster  # noqa: PLC0415 - who shares out the tests starts sooner without it
    from tests.controlplane.quotaward import install_definitions  # noqa: PLC0415

    install_definitions(control_plane.api)
    cluster = Cluster(control_plane)
    yield cluster
    cluster.wipe()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Show with a failed test the end of the logs that were written to since it started."""
    report = yield
    running = getattr(item, "funcargs", {}).get("control_plane")
    if report.failed and running:
        for log in sorted(running.directory.glob("*.log")):
            if log.stat().st_mtime >= call.start:
                text = log.read_bytes()[-_END_OF_LOG:].decode(errors="replace")
                report.sections.append((f"end of {log}", text))
    return report
