"""A pod that runs counts in the queue that has admitted it, until the one that it names now admits it, too."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.explain.verdicts import verdict_on
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.simulate.snapshot import copy_steps, snapshot
from policy.stepwise import at_once
from tests.unit.given import pod
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, pods, queue, world


def taken(cluster: Cluster, *names: str) -> list[int]:
    """How many cores each queue counts."""
    accounts = (cluster.ledger.queues.accounts.get(name) for name in names)
    return [account.taken.get("cpu", 0) // 1000 if account else 0 for account in accounts]


def crowded(count: int = 8, **rest) -> Cluster:
    """Queue ``to`` may have 5 cores and has 3 of namespace b; the pods of namespace a run in queue ``from``."""
    cluster = world(
        *(queue("from"), queue("to", most={"cpu": 5}), "b:to"),
        *pods("b", 3, node="n1"),
        *pods("a", count, node="n1", **rest),
        cpu=40,
    )
    cluster.upsert_namespace(Namespace("a", "from", frozenset({"to", "other"})))
    cluster.begin()
    return divided(cluster)


def by_pods(cluster: Cluster) -> None:
    for each in [each for each in cluster.pods.values() if each.namespace == "a"]:
        cluster.upsert_pod(replace(each, queue="to"), now=1)


def by_their_group(cluster: Cluster) -> None:
    cluster.upsert_group(Group("a", "g", queue="to"))


def by_their_namespace(cluster: Cluster) -> None:
    cluster.upsert_namespace(Namespace("a", "to"))


WAYS = {"pods": by_pods, "group": by_their_group, "namespace": by_their_namespace}


@pytest.mark.parametrize("way", WAYS)
def test_as_many_move_as_the_capability_of_the_queue_that_is_named_allows(way):
    cluster = crowded(group="g")
    WAYS[way](cluster)
    assert taken(cluster, "from", "to") == [6, 5]


def test_who_runs_in_no_queue_brings_the_room_that_it_has():
    cluster = world(queue("to"), *pods("a", 1, node="n1", request={"gpu": 4}), node(size={"gpu": 4, "pods": 9}))
    cluster.begin()
    divided(cluster)
    cluster.upsert_namespace(Namespace("a", "to"))
    assert cluster.ledger.queues.accounts["to"].taken["gpu"] == 4, "no other pod could let it in by going"


def test_who_runs_in_no_queue_does_not_move_beyond_the_capability_that_is_named():
    most = queue("to", most={"gpu": 3})
    cluster = world(most, *pods("a", 1, node="n1", request={"gpu": 4}), node(size={"gpu": 4, "pods": 9}))
    cluster.begin()
    divided(cluster)
    cluster.upsert_namespace(Namespace("a", "to"))
    assert "gpu" not in cluster.ledger.queues.accounts["to"].taken


@pytest.mark.parametrize("way", WAYS)
def test_all_move_where_there_is_room_for_all(way):
    cluster = crowded(2, group="g")
    WAYS[way](cluster)
    assert taken(cluster, "from", "to") == [0, 5]
    assert not list(cluster.queue_changes.moving)


@pytest.mark.parametrize(
    "to",
    [
        queue("to", state="Closed"),
        queue("to", errors=("spec: must be a map",), readable=False),
        queue("to", most={"pods": 0}),
        None,
    ],
    ids=["closed", "unreadable", "too small in what else they request", "not there"],
)
def test_none_moves_to_a_queue_that_admits_nobody(to):
    cluster = world(queue("from"), *([to] if to else []), *pods("a", 2, node="n1"))
    cluster.upsert_namespace(Namespace("a", "from", frozenset({"to"})))
    cluster.begin()
    by_pods(cluster)
    assert taken(cluster, "from", "to") == [2, 0]


def test_none_moves_into_what_pods_of_others_wait_for_and_are_entitled_to():
    cluster = world(
        *(queue("from"), queue("to", most={"cpu": 5}), "b:to", "a:from"),
        *pods("b", 3, node="n1"),
        *pods("b", 2, 3),
        *pods("a", 2, node="n1"),
        cpu=10,
    )
    cluster.begin()
    by_their_namespace(cluster)
    assert taken(cluster, "from", "to") == [2, 3]


def test_what_is_claimed_elsewhere_is_no_reason_to_stay_as_nothing_more_is_taken():
    cluster = world(
        *(queue("from"), queue("to"), queue("third"), "a:from", "c:third"),
        *pods("a", 10, node="n1"),
        *pods("c", 5),
        cpu=10,
    )
    cluster.begin()
    by_their_namespace(cluster)
    assert taken(cluster, "from", "to") == [0, 10]


def test_who_was_let_through_counts_where_it_was_also_when_it_is_bound():
    cluster = crowded(0)
    for each in pods("a", 4):
        cluster.upsert_pod(each, now=1)
        assert cluster.admit(each, now=1) is None
        cluster.upsert_pod(replace(each, queue="to"), now=2)
        cluster.upsert_pod(replace(each, queue="to", node="n1"), now=3)
    assert taken(cluster, "from", "to") == [2, 5]


def test_who_is_asked_for_again_is_judged_by_the_queue_that_it_names():
    cluster = crowded(0)
    cluster.upsert_queue(queue("to", most={"cpu": 3}))
    divided(cluster)
    waits = pod("p", "a")
    cluster.upsert_pod(waits, now=1)
    assert cluster.admit(waits, now=1) is None
    cluster.upsert_pod(replace(waits, queue="to"), now=2)
    assert taken(cluster, "from", "to") == [1, 3]
    assert cluster.admit(replace(waits, queue="to"), now=3).rule == "queue-capability"
    assert taken(cluster, "from", "to") == [0, 3]


def test_they_move_once_there_is_room():
    cluster = crowded()
    by_pods(cluster)
    for uid in ("b-0", "b-1"):
        cluster.delete_pod(uid)
    cluster.tick(2)
    assert taken(cluster, "from", "to") == [4, 5]
    cluster.upsert_queue(queue("to"))
    divided(cluster)
    cluster.tick(3)
    assert taken(cluster, "from", "to") == [0, 9]
    assert not list(cluster.queue_changes.moving)


def test_of_many_that_wait_for_room_few_are_looked_at_at_a_time():
    cluster = crowded(300)
    by_their_namespace(cluster)
    cluster.upsert_queue(queue("to", most={"cpu": 1000}))
    cluster.upsert_node(node(size={"cpu": 1000, "pods": 500}))
    divided(cluster)
    before = taken(cluster, "to")[0]
    cluster.tick(2)
    assert 0 < taken(cluster, "to")[0] - before <= 50
    for now in range(3, 12):
        cluster.tick(now)
    assert taken(cluster, "from", "to") == [0, 303]


def test_where_nothing_has_changed_none_is_looked_at(monkeypatch):
    cluster = crowded()
    by_pods(cluster)
    cluster.tick(2)
    asked = []
    monkeypatch.setattr(cluster.queue_changes, "_may_move", lambda *given: asked.append(given))
    cluster.tick(3)
    assert not asked


def test_who_names_its_own_queue_again_stays_there_for_good():
    cluster = crowded()
    by_pods(cluster)
    for each in [each for each in cluster.pods.values() if each.uid in cluster.queue_changes.moving]:
        cluster.upsert_pod(replace(each, queue=""), now=2)
    assert not list(cluster.queue_changes.moving)
    assert taken(cluster, "from", "to") == [6, 5]


@pytest.mark.parametrize("end", [lambda cluster: cluster.delete_pod, None], ids=["deleted", "finished"])
def test_who_is_gone_is_remembered_nowhere(end):
    cluster = crowded()
    by_pods(cluster)
    for each in list(cluster.queue_changes.moving):
        if end:
            cluster.delete_pod(each.uid)
        else:
            cluster.upsert_pod(replace(each, finished=True), now=2)
    assert not list(cluster.queue_changes.moving)
    assert taken(cluster, "from", "to") == [0, 5]


def test_the_end_of_a_pod_changes_what_is_said_of_both_queues():
    cluster = crowded()
    by_pods(cluster)
    cluster.changes.take()
    [first, *_] = cluster.queue_changes.moving
    cluster.upsert_pod(replace(first, finished=True), now=2)
    assert cluster.changes.take()[1] >= {"from", "to"}


def test_both_queues_are_told_who_has_not_moved():
    cluster = crowded()
    by_pods(cluster)
    [there] = cluster.queue_changes.moving.conditions_of("to")
    [here] = cluster.queue_changes.moving.conditions_of("from")
    names = "6 (a/a-2, a/a-3, a/a-4, …)"
    assert (there.type, here.type) == ("Moved", "Moved")
    assert there.message.startswith(f"pods: {names} name this queue since they run")
    assert here.message.startswith(f"pods: {names} count here")
    assert not cluster.queue_changes.moving.conditions_of("other")
    says = "on node n1; it counts in queue from, which admitted it, as queue to that it names does not"
    assert verdict_on(cluster, "a", "a-5").message == says
    assert verdict_on(cluster, "b", "b-1").message == "on node n1"


def test_moving_running_pods_again_and_again_fills_no_queue_beyond_its_capability():
    cluster = world(
        queue("qa", most={"cpu": 10}), queue("qb", most={"cpu": 10}), "v:qb", *pods("v", 5, node="n1"), cpu=40
    )
    cluster.upsert_namespace(Namespace("t", "qa", frozenset({"qb"})))
    cluster.begin()
    for start in (0, 12, 24):
        for each in pods("t", 12, start):
            divided(cluster).upsert_pod(each, now=1)
            if cluster.admit(each, now=1) is None:
                cluster.upsert_pod(replace(each, node="n1"), now=1)
        for each in [each for each in cluster.pods.values() if each.namespace == "t"]:
            cluster.upsert_pod(replace(each, queue="qb"), now=2)
        cluster.tick(3)
    assert taken(cluster, "qa", "qb") == [10, 10]


# After a start


def noted(*counted: str | None, queue: str = "to") -> list:
    """Pods that run and name a queue; where each was noted to count."""
    return [pod(f"n{at}", "a", queue=queue, node="n1", counts_in=where) for at, where in enumerate(counted)]


ORDERS = {"bounds first": lambda objects: objects, "pods first": lambda objects: objects[::-1]}


@pytest.mark.parametrize("order", ORDERS)
def test_after_a_start_pods_count_where_it_was_noted_in_whatever_order_all_is_read(order):
    cluster = Cluster(settle_time=0)
    seen = [node(size={"cpu": 40, "pods": 500}), queue("from"), queue("to", most={"cpu": 5})]
    seen += [Namespace("a", "from", frozenset({"to"})), *noted("from", None, "from")]
    for each in ORDERS[order](seen):
        see(cluster, each)
    cluster.begin()
    assert taken(divided(cluster), "from", "to") == [2, 1]
    assert {each.uid for each in cluster.queue_changes.moving} == {"n0", "n2"}


def see(cluster: Cluster, each) -> None:
    if isinstance(each, Namespace):
        cluster.upsert_namespace(each)
    elif hasattr(each, "weight"):
        cluster.upsert_queue(each)
    elif hasattr(each, "allocatable"):
        cluster.upsert_node(each)
    else:
        for _ in cluster.take_in_steps([(each, 0.0)]):
            pass


def test_after_a_start_a_pod_without_a_note_counts_also_beyond_the_capability():
    cluster = world(queue("from"), queue("to", most={"cpu": 1}), "a:from", *noted(None, None))
    cluster.upsert_namespace(Namespace("a", "from", frozenset({"to"})))
    cluster.begin()
    assert taken(cluster, "from", "to") == [0, 2]


def test_a_note_that_says_what_the_pod_names_anyway_is_forgotten():
    cluster = world(queue("from"), "a:from", *noted("from", queue=""))
    cluster.begin()
    assert not list(cluster.queue_changes.moving)
    assert cluster.queue_changes.moving.noted == {"n0"}


def test_what_another_replica_that_leads_has_noted_is_heeded():
    cluster = crowded(1)
    by_pods(cluster)
    assert taken(cluster, "from", "to") == [0, 4]
    [moved] = [each for each in cluster.pods.values() if each.namespace == "a"]
    cluster.upsert_pod(replace(moved, counts_in="from"), now=2)
    assert taken(cluster, "from", "to") == [1, 3]
    cluster.upsert_pod(replace(moved, counts_in=None), now=3)
    assert taken(cluster, "from", "to") == [0, 4]


def test_a_note_on_a_pod_that_waits_counts_for_nothing():
    cluster = crowded(0)
    cluster.upsert_pod(pod("p", "a", counts_in="to"), now=1)
    assert cluster.queue_of(cluster.pods["p"]) == "from"


def test_a_copy_counts_them_where_they_count():
    cluster = crowded()
    by_pods(cluster)
    copied = at_once(copy_steps(snapshot(cluster, 2.0)))
    assert taken(copied, "from", "to") == [6, 5]
    assert {each.uid for each in copied.queue_changes.moving} == {each.uid for each in cluster.queue_changes.moving}
    copied.upsert_queue(queue("to"))
    copied.tick(3)
    assert taken(divided(copied), "from", "to") == [6, 5]


def test_of_hundreds_that_are_alike_the_first_is_refused_for_all():
    cluster, size = crowded(300), pod("p").request  # equal requests are one object
    for each in [each for each in cluster.pods.values() if each.namespace == "a"]:
        cluster.upsert_pod(replace(each, request=size, version=1), now=1)
    asked = []
    ask = cluster.queue_changes._may_move
    cluster.queue_changes._may_move = lambda *given: asked.append(given) or ask(*given)
    by_their_namespace(cluster)
    assert len(asked) == 3
