"""Files of tests are shared out from both ends: what waits for a cluster at one, what computes at the other."""

from types import SimpleNamespace

import pytest

from tests import sharing
from tests.cases import serving as folders
from tests.controlplane import launch as processes

FILES = ("first", "second", "third", "fourth")
TESTS = sharing.TESTS


class Process:
    """Stands for a process of pytest-xdist, and keeps which files it was sent; each has three tests."""

    def __init__(self, number):
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.shutting_down = False
        self.files = []

    def send_runtest_some(self, numbers):
        self.files.append(FILES[numbers[0] // 3])


@pytest.mark.parametrize(
    ("count", "files"), [(1, [["first"]]), (2, [["first"], ["fourth"]]), (3, [["first"], ["second"], ["fourth"]])]
)
def test_the_last_of_several_processes_begins_at_the_end(count, files):
    config = SimpleNamespace(getvalue=lambda _: [f"{count}*popen"], option=SimpleNamespace(loadscopereorder=False))
    scheduler, processes = sharing.FromBothEnds(config), [Process(number) for number in range(count)]
    for each in processes:
        scheduler.add_node(each)
        scheduler.add_node_collection(each, [f"{file}::{test}" for file in FILES for test in "abc"])
    scheduler.schedule()
    assert [each.files for each in processes] == files


def test_what_takes_longest_is_at_both_ends():
    def item(file, *, slow=False, **module):
        marker, module = (lambda name: slow and name == "slow"), SimpleNamespace(**module)
        return SimpleNamespace(path=TESTS / file, get_closest_marker=marker, module=module)

    items = [
        item("fuzz/test_rest.py"),
        item("unit/test_prose.py", slow=True),
        item("unit/test_manifests.py"),
        item("unit/test_cli.py", serving=None),
        item("wire/test_protocol.py"),
        item("chaos/test_chaos.py"),
    ]
    sharing.sort(items)
    files = ["chaos/test_chaos.py", "wire/test_protocol.py", "unit/test_cli.py", "unit/test_manifests.py"]
    files += ["unit/test_prose.py", "fuzz/test_rest.py"]
    assert [each.path for each in items] == [TESTS / file for file in files]


def test_each_name_of_what_starts_quotaward_exists():
    assert vars(folders).keys() | vars(processes).keys() >= sharing.STARTING


def test_each_kind_that_is_named_exists():
    assert [each for each in (*sharing.WAITING, *sharing.COMPUTING) if not (TESTS / each).is_dir()] == []
