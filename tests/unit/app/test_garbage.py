"""The garbage collector has little to look at, and does not look while much comes into being."""

import asyncio
import gc
import json
import weakref

import pytest

from app.garbage import undisturbed
from app.sources import manifests
from app.sources.manifests import MANY, ManifestSource, read
from tests.unit.app.given import empty_store, pod


@pytest.fixture(autouse=True)
def everything_is_looked_at_again_after_the_test():
    yield
    gc.enable()
    gc.unfreeze()


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
