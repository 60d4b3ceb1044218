"""What happens in a folder of manifests while it is served: each change is taken in, and loses nothing else."""

import asyncio
import json
import shutil

import pytest
import yaml

from app.actuators.recording import RecordingActuator
from app.sources.manifests import read
from tests.unit.app.given import node, pod, quota
from tests.unit.app.manifest_folder import GOOD, bad_quota


class Edited:
    """A folder under way: each change is taken in before the next is made."""

    def __init__(self, folder):
        self.folder = folder
        self.cluster = folder.cluster
        self.source = folder.source()

    def write(self, name, *documents):
        self.folder.write(name, *documents)
        self.source.apply(read(self.folder.path))

    def remove(self, name):
        (self.folder.path / name).unlink()
        self.source.apply(read(self.folder.path))

    def most(self, namespace="a"):
        """The max of the quota in force; None where there is none."""
        quotas = self.cluster.quotas.get(namespace)
        return quotas["quota"].max.get("cpu") if quotas else None


@pytest.fixture
def edited(good):
    return Edited(good)


def test_a_change_is_taken_in(edited):
    edited.write("a-quota.yaml", quota("a", max={"cpu": "5"}))
    assert edited.most() == 5000


def test_what_is_removed_is_gone(edited):
    edited.remove("a-quota.yaml")
    assert edited.folder.known() == set(GOOD) - {"a/quota"}
    assert edited.cluster.ledger.account("a").quota is None


def test_a_document_that_is_removed_is_gone_and_its_neighbours_stay(edited):
    edited.write("more.yaml", node("n2"), node("n3"))
    edited.write("more.yaml", node("n3"))
    assert edited.folder.known() == {*GOOD, "n3"}


@pytest.mark.parametrize("bad", ["a: [", "\x00", bad_quota("{max: {cpu: x}}", "a").replace("bad", "quota")])
def test_a_file_made_bad_leaves_the_last_good_state_until_it_is_good_again(edited, bad):
    for _ in range(2):
        edited.write("a-quota.yaml", bad)
        assert edited.most() == 2000
        assert edited.folder.known() == set(GOOD)
    edited.write("n2.yaml", node("n2"))  # nor does reading again for another reason
    assert edited.most() == 2000
    edited.write("a-quota.yaml", quota("a", max={"cpu": "3"}))
    assert edited.most() == 3000
    assert not edited.cluster.quotas["a"]["quota"].errors


def test_a_quota_made_bad_says_so_while_its_last_good_spec_holds(edited):
    edited.write("a-quota.yaml", bad_quota("{max: {cpu: x}}", "a").replace("bad", "quota"))
    assert edited.cluster.quotas["a"]["quota"].errors == (
        "spec.max.cpu: 'x' is not a Kubernetes quantity, like 500m, 3 or 9Gi",
    )


def test_a_quota_made_bad_and_then_good_as_it_was_is_good_again(edited):
    edited.write("a-quota.yaml", bad_quota("{max: {cpu: x}}", "a").replace("bad", "quota"))
    edited.write("a-quota.yaml", GOOD["a/quota"])
    assert edited.most() == 2000
    assert not edited.cluster.quotas["a"]["quota"].errors


@pytest.mark.parametrize("bad", ["a: [", yaml.safe_dump(pod("p", requests={"cpu": "x"}))])
def test_a_pod_made_bad_stays_as_it_was(edited, bad):
    before = edited.cluster.pod("a", "p")
    edited.write("a-p.yaml", bad)
    assert edited.cluster.pod("a", "p") == before


def test_what_is_removed_while_bad_is_gone(edited):
    edited.write("a-quota.yaml", "a: [")
    edited.remove("a-quota.yaml")
    assert edited.most() is None
    edited.write("a-p.yaml", yaml.safe_dump(pod("p", requests={"cpu": "x"})))
    edited.remove("a-p.yaml")
    assert edited.cluster.pods == {}


def test_what_another_file_takes_over_goes_on(edited):
    edited.write("b.yaml", "a: [")
    edited.write("b.yaml", quota("a", max={"cpu": "9"}))  # reported: it stands already in a-quota.yaml
    assert edited.most() == 2000
    edited.remove("a-quota.yaml")
    assert edited.most() == 9000


def test_a_folder_that_is_gone_for_a_moment_lifts_no_quota(edited):
    shutil.rmtree(edited.folder.path)
    edited.source.apply(read(edited.folder.path))
    assert edited.most() == 2000


def bind(folder, namespace, name, to="n1"):
    asyncio.run(RecordingActuator(folder.store).bind(folder.cluster.pod(namespace, name), to))


def test_a_pod_bound_in_memory_stays_bound_when_something_else_changes(edited):
    bind(edited.folder, "a", "p")
    edited.write("a-quota.yaml", quota("a", max={"cpu": "5"}))
    edited.write("broken.yaml", "a: [")
    edited.write("a-p.yaml", "a: [")  # its own file is unreadable for a moment
    edited.write("a-p.yaml", "# rewritten\n", GOOD["a/p"])  # and says the same as before
    assert edited.cluster.pod("a", "p").node == "n1"
    assert edited.cluster.ledger.account("a").assigned == {"cpu": 1000, "pods": 1}


def test_a_pod_bound_in_memory_stays_bound_when_it_moves_to_another_file(edited):
    bind(edited.folder, "a", "p")
    edited.folder.write("elsewhere/p.yaml", GOOD["a/p"])
    edited.remove("a-p.yaml")
    assert edited.cluster.pod("a", "p").node == "n1"


def test_a_pod_whose_manifest_changes_becomes_what_it_says(edited):
    bind(edited.folder, "a", "p")
    edited.write("a-p.yaml", pod("p", requests={"cpu": "2"}, nodeName="n2"))
    assert edited.cluster.pod("a", "p").node == "n2"
    assert edited.cluster.ledger.account("a").assigned == {"cpu": 2000, "pods": 1}


class Watching:
    """Follows a folder with the real watcher."""

    def __init__(self, folder):
        self.folder = folder

    async def __aenter__(self):
        self._task = asyncio.create_task(self.folder.source().follow())
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, known):
        async with asyncio.timeout(30):
            while self.folder.known() != known:
                assert not self._task.done(), self._task.exception()
                await asyncio.sleep(0.02)


def test_changes_are_noticed_as_they_are_made(good):
    async def scenario():
        async with Watching(good) as watching:
            good.write("n2.yaml", node("n2"))
            await watching.until({*GOOD, "n2"})
            good.write("n2.yaml", "a: [")
            good.write("n3.json", json.dumps(node("n3")))
            await watching.until({*GOOD, "n2", "n3"})
            good.write("n2.yaml", node("n4"))
            await watching.until({*GOOD, "n3", "n4"})
            (good.path / "n3.json").unlink()
            await watching.until({*GOOD, "n4"})

    asyncio.run(scenario())


def test_a_file_in_a_new_directory_is_noticed_and_so_is_what_happens_there_later(good):
    async def scenario():
        async with Watching(good) as watching:
            good.write("new/below/n2.yaml", node("n2"))
            await watching.until({*GOOD, "n2"})
            good.write("new/below/n2.yaml", node("n3"))
            await watching.until({*GOOD, "n3"})
            shutil.rmtree(good.path / "new")
            await watching.until(set(GOOD))

    asyncio.run(scenario())


def test_a_folder_that_was_replaced_by_another_is_followed(good):
    async def scenario():
        async with Watching(good) as watching:
            good.write("n2.yaml", node("n2"))
            await watching.until({*GOOD, "n2"})
            good.path.rename(good.path.with_name("old"))
            good.write("n3.yaml", node("n3"))
            await watching.until({"n3"})
            good.write("n4.yaml", node("n4"))
            await watching.until({"n3", "n4"})

    asyncio.run(scenario())
