"""The store: what may be decided on its picture, and what it makes of objects that cannot be used."""

import msgspec
import pytest
from structlog.testing import capture_logs

from app.observability import metrics
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.kinds import KINDS
from app.store.nodes import NODES
from app.store.pod_groups import NATIVE_POD_GROUPS
from app.store.pods import PODS
from tests.unit.app.given import Clock, empty_store, names_of_nodes, node, pod, quota, see, store_with

STALE_AFTER = 60.0


@pytest.fixture
def clock():
    return Clock()


def lose(store, kind=PODS):
    """The connection of a kind is lost."""
    store.lost(kind)
    return store


def test_it_is_not_ready_until_every_kind_was_seen_as_a_whole():
    store = empty_store()
    lacking = {kind.label for kind in KINDS}
    for kind in KINDS:
        assert not store.synced
        assert store.unready().startswith("not synced: ")
        assert store.unready().endswith(f"it lacks {', '.join(sorted(lacking))}")
        store.complete(kind)
        lacking.remove(kind.label)
    assert store.synced
    assert store.unready() == ""


def test_what_is_connected_is_fresh_however_long_nothing_happens(clock):
    store = store_with(clock=clock, max_staleness=STALE_AFTER)
    clock.now += 1000 * STALE_AFTER
    assert store.unready() == ""
    assert store.staleness("pods", clock()) == 0


def test_what_has_been_without_contact_for_too_long_is_stale(clock):
    store = lose(store_with(clock=clock, max_staleness=STALE_AFTER))
    clock.now += STALE_AFTER
    assert store.unready() == ""
    clock.now += 0.1
    assert store.unready() == "stale: no contact to the API server for pods"
    assert store.staleness("pods", clock()) == pytest.approx(STALE_AFTER + 0.1)
    assert store.synced


def test_all_that_is_stale_is_named_in_one_stable_sentence(clock):
    store = lose(lose(store_with(clock=clock, max_staleness=STALE_AFTER), NODES), ELASTIC_QUOTAS)
    clock.now += STALE_AFTER + 1
    first = store.unready()
    clock.now += 1
    assert store.unready() == first == "stale: no contact to the API server for elasticquotas, nodes"


def test_staleness_counts_from_the_last_contact(clock):
    store = store_with(clock=clock, max_staleness=STALE_AFTER)
    clock.now += 100
    store.contact(PODS)
    lose(store)
    clock.now += STALE_AFTER - 1
    assert store.unready() == ""


def test_a_connection_was_a_contact_until_it_broke_but_not_while_it_was_silent(clock):
    store = store_with(clock=clock, max_staleness=STALE_AFTER)
    clock.now += 2 * STALE_AFTER
    lose(store)
    lose(store)
    assert store.staleness("pods", clock()) == 0
    clock.now += 1
    lose(store)
    assert store.staleness("pods", clock()) == 1
    store.contact(PODS)
    clock.now += 2 * STALE_AFTER
    store.lost(PODS, silent=True)
    assert store.unready() == "stale: no contact to the API server for pods"


def test_a_new_connection_makes_it_ready_again(clock):
    store = lose(store_with(clock=clock, max_staleness=STALE_AFTER))
    clock.now += STALE_AFTER + 1
    store.contact(PODS)
    assert store.unready() == ""


def test_a_list_that_is_complete_removes_what_is_not_in_it():
    store = store_with(node("n1"), node("n2"), pod("p"), pod("q"), quota("a"), quota("a", "other"), quota("b"))
    store.keep_only(PODS, {"a/q"})
    store.keep_only(NODES, {"n2"})
    store.keep_only(ELASTIC_QUOTAS, {("a", "other")})
    assert (set(store.cluster.pods), names_of_nodes(store)) == ({"a/q"}, {"n2"})
    assert {namespace: set(quotas) for namespace, quotas in store.cluster.quotas.items()} == {"a": {"other"}}


def test_deleting_what_is_not_known_changes_nothing():
    store = store_with(pod("p"), quota("a"))
    store.delete(PODS, "unknown")
    store.delete(NODES, "unknown")
    for key in (("a", "unknown"), ("unknown", "quota")):
        store.delete(ELASTIC_QUOTAS, key)
    assert set(store.cluster.pods) == {"a/p"}
    assert set(store.cluster.quotas) == {"a"}


def test_an_object_that_cannot_be_used_is_counted_and_what_was_known_of_it_stays():
    store = store_with(pod("p", nodeName="n1"))
    before, counted = store.cluster.pods["a/p"], metrics.UNUSABLE.labels("pods")._value.get()
    see(store, pod("p", requests={"cpu": "x"}, nodeName="n1"))
    assert store.cluster.pods["a/p"] == before
    assert store.cluster.ledger.account("a").used == {"cpu": 1000, "pods": 1}
    assert metrics.UNUSABLE.labels("pods")._value.get() == counted + 1


def granted(store, namespace, name):
    uid = f"{namespace}/{name}"
    return uid in store.cluster.grants


def grant(store, item):
    see(store, item)
    store.cluster.admit(store.cluster.pod("a", item["metadata"]["name"]), store.clock())


def test_a_grant_ends_with_time(clock):
    store = store_with(clock=clock)
    grant(store, pod("p"))
    clock.now += 29
    store.tick()
    assert granted(store, "a", "p")
    clock.now += 2
    store.tick()
    assert not granted(store, "a", "p")


def test_no_grant_ends_while_its_binding_could_not_have_been_seen(clock):
    store = store_with(clock=clock, settle_time=3)
    grant(store, pod("p"))
    clock.now += 20
    lose(store)
    clock.now += 100
    store.tick()
    assert granted(store, "a", "p")
    store.contact(PODS)  # what happened meanwhile arrives first
    store.tick()
    assert granted(store, "a", "p")
    clock.now += 3
    store.tick()
    assert not granted(store, "a", "p")


def test_no_grant_ends_before_everything_was_seen(clock):
    store = empty_store(clock)
    grant(store, pod("p"))
    store.complete(PODS)
    clock.now += 100
    store.tick()
    assert granted(store, "a", "p")


def test_no_pod_is_overdue_by_a_picture_of_nodes_that_may_be_old(clock):
    deleted = {"name": "old", "namespace": "a", "uid": "old", "deletionTimestamp": "1970-01-01T00:13:20Z"}
    store = store_with(pod("old", metadata=deleted, nodeName="n1"), clock=clock, settle_time=3, epoch=lambda: clock.now)
    clock.now += 3
    lose(store, NODES)
    clock.now += 1000
    store.tick()
    assert store.cluster.ledger.account("a").used["cpu"] == 1000
    store.contact(NODES)
    store.tick()
    assert store.cluster.ledger.account("a").used["cpu"] == 1000
    clock.now += 3
    store.tick()
    assert store.cluster.ledger.account("a").used == {}


def test_that_native_pod_groups_are_in_use_is_said_once():
    store = store_with()
    with capture_logs() as logs:
        for name in ("g", "h"):
            spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
            metadata = {"name": name, "namespace": "a"}
            obj = NATIVE_POD_GROUPS.decoder.decode(msgspec.json.encode({"metadata": metadata, "spec": spec}))
            store.upsert(NATIVE_POD_GROUPS, obj)
    assert [line["event"].partition(":")[0] for line in logs] == ["native pod groups are in use"]
