"""The garbage collector has little to look at, and does not look while much comes into being."""

import asyncio
import gc
import json
import weakref

import pytest

from app.garbage import undisturbed
from app.settings import Settings
from app.sources import manifests
from app.sources.manifests import MANY, ManifestSource, read
from app.store.heeded import GATE
from app.whatif.service import Trials
from app.whatif.trial import Scene
from policy.simulate.snapshot import FREED, copy_steps, discard_steps, snapshot
from policy.stepwise import at_once
from tests.unit.app.given import empty_store, node, pod, quota, refused, store_with
from tests.unit.app.test_queued_jobs import job, labelled


@pytest.fixture(autouse=True)
def the_collector_works_again_after_the_test():
    yield
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def what_tests_have_left_is_found_in_the_end():
    """What was there before goes back to where tests/conftest.py has put it: no other test is to look through it."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def pods(number, **spec):
    """So many pods, as JSON."""
    return json.dumps({"kind": "List", "items": [pod(f"p{each}", **spec) for each in range(number)]})


def test_it_stands_still_until_the_last_of_several_has_ended():
    with undisturbed():
        with undisturbed():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_of_several_that_overlap_for_ever_garbage_is_found_all_the_same():
    class Circle:
        def __init__(self):
            self.itself = self

    with undisturbed():
        with undisturbed():
            circle = weakref.ref(Circle())
            assert circle() is not None
        assert circle() is None


def test_reading_a_folder_leaves_next_to_nothing_to_be_found(folder):
    folder.write("pods.json", pods(300))
    read(folder.path)
    gc.collect()
    gc.disable()
    read(folder.path)
    assert gc.collect() < 300


def test_a_copy_that_is_discarded_leaves_little_to_be_found():
    def left(discard):
        cluster = at_once(copy_steps(taken))
        gc.collect()
        gc.disable()
        steps = sum(1 for _ in discard_steps(cluster)) if discard else 0
        assert not discard or steps > 300 / FREED
        del cluster
        return gc.collect()

    waiting = [refused(pod(f"w{number}", f"a{number % 30}")) for number in range(300)]
    gated = [pod(f"g{number}", f"a{number % 30}", schedulingGates=[{"name": GATE}]) for number in range(300)]
    store = store_with(node("n1"), *(quota(f"a{number}") for number in range(30)), *waiting, *gated)
    taken = snapshot(store.cluster, store.clock())
    assert left(discard=True) < left(discard=False) / 5


def test_lines_of_a_discarded_copy_that_a_simulation_still_knows_are_taken_apart():
    store = store_with(labelled(), *(job(f"j{number}") for number in range(3)))
    cluster = at_once(copy_steps(snapshot(store.cluster, store.clock())))
    lines = list(cluster.gates.lines.values())
    assert sum(map(len, lines)) == 3
    at_once(discard_steps(cluster))
    assert sum(map(len, lines)) == 0


def test_a_search_for_remedies_discards_its_copies_also_if_time_is_up(monkeypatch):
    store = store_with(node("n1"), quota("a", max={"cpu": 1}), refused(pod("p", requests={"cpu": "2"})))
    waits, scenes = store.cluster.pod("a", "p"), []
    made = Trials.scene

    def noted(self):
        scenes.append(made(self))
        return scenes[-1]

    monkeypatch.setattr(Trials, "scene", noted)
    copies = []
    monkeypatch.setattr(Scene, "discard_steps", lambda self: copies.append(len(self.copies)) or (each for each in ()))
    for limit in (60.0, 0.0):
        settings = Settings.model_validate({"whatif": {"remedy_time": limit}})
        asyncio.run(Trials(store, settings).remedies(waits, ""))
    assert copies[0] > 1
    assert copies[1] == 1, "not even the first was complete"


def test_a_folder_is_read_undisturbed(folder, monkeypatch):
    folder.write("pods.json", pods(1))
    source, seen = ManifestSource(folder.path, empty_store()), []

    def seen_reading(directory, *_):
        seen.append(gc.isenabled())
        return read(directory)

    monkeypatch.setattr(manifests, "read", seen_reading)
    asyncio.run(source.take_in())
    assert seen == [False]
    assert gc.isenabled()


def test_a_large_change_is_not_collected_and_unchanged_objects_stay_the_same(folder):
    folder.write("pods.json", pods(MANY))
    store = empty_store()
    source = ManifestSource(folder.path, store)
    before = dict(source._applied)
    asyncio.run(source.take_in())
    assert all(source._applied[each] is manifest for each, manifest in before.items())
    frozen = gc.get_freeze_count()
    folder.write("pods.json", pods(MANY, nodeName="n1"))
    asyncio.run(source.take_in())
    assert gc.get_freeze_count() > frozen + MANY
