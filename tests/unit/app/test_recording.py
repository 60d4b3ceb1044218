"""Bindings of a folder of manifests act on the cluster in memory."""

import asyncio

import pytest

from app.actuators.protocol import ActionFailed
from app.actuators.recording import RecordingActuator
from tests.unit.app.given import node, pod, store_with


@pytest.fixture
def store():
    return store_with(node("n1"), pod("p"), pod("bound", nodeName="n1"))


def bind(store, name, to):
    asyncio.run(RecordingActuator(store).bind(store.cluster.pod("a", name), to))


def test_a_bound_pod_is_on_its_node_and_counts(store):
    bind(store, "p", "n1")
    assert store.cluster.pod("a", "p").node == "n1"
    assert store.cluster.ledger.account("a").assigned == {"cpu": 2000, "pods": 2}


def test_a_grant_becomes_what_is_assigned(store):
    store.cluster.admit(store.cluster.pod("a", "p"), now=0)
    bind(store, "p", "n1")
    assert len(store.cluster.grants) == 0
    assert store.cluster.ledger.account("a").used == {"cpu": 2000, "pods": 2}


@pytest.mark.parametrize(("name", "to", "why"), [("p", "unknown", "not known"), ("bound", "n1", "already assigned")])
def test_what_cannot_be_bound_changes_nothing(store, name, to, why):
    before = dict(store.cluster.pods)
    with pytest.raises(ActionFailed, match=why):
        bind(store, name, to)
    assert store.cluster.pods == before


def test_waking_needs_nothing(store):
    asyncio.run(RecordingActuator(store).wake(store.cluster.pod("a", "p")))
