"""Who has to go where queues, and namespaces within one, have more than their part.

Seeds: queue guarantee (a guarantee that grows), namespace fair share (preemption); the numbers are the rules' own.
"""

import pytest

from policy.preemption import joint_plans
from policy.preemption.plans import Plan
from policy.preemption.victims import victims_on
from policy.quota.admission import Rules
from tests.unit.cluster.test_unschedulable import NO_PLACE
from tests.unit.given import pod, quota
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, pods, queue, world
from tests.unit.preemption.test_victims import gone

TWO = (queue("a", 50), queue("b", 50), "a:a", "b:b")


def waiting(namespace: str, cpu: float = 1, uid: str = "me", **rest):
    return pod(uid, namespace, request=rest.pop("request", {"cpu": cpu}), **rest)


def taken_for(cluster, one):
    cluster.upsert_pod(one, now=0)
    return gone(divided(cluster), one)


@pytest.mark.parametrize("priority", [-5, 0, 1_000_000])
def test_a_queue_beyond_what_it_deserves_gives_back_to_one_within(priority):
    sized = {"request": {"cpu": 4, "memory": 1}, "priority": priority}
    cluster = world(node(size={"cpu": 20, "memory": 100}), *TWO, *pods("a", 4, node="n1", **sized))
    assert taken_for(cluster, waiting("b", request={"cpu": 4, "memory": 1}, uid="b1")) == "room"
    cluster.upsert_pod(pod("b1", "b", request={"cpu": 4, "memory": 1}, node="n1"), now=0)
    found = taken_for(cluster, waiting("b", request={"cpu": 4, "memory": 1}, uid="b2"))
    assert len(found) == 1
    assert found < {f"a-{number}" for number in range(4)}


def test_one_within_what_it_deserves_loses_nothing():
    cluster = world(*TWO, *pods("a", 5, node="n1"), *pods("a", 9, 5), *pods("b", 5, node="n1"), cpu=10)
    assert taken_for(cluster, waiting("b")) == "protected"


def test_one_beyond_what_its_own_queue_deserves_takes_from_nobody():
    cluster = world(*TWO, *pods("a", 4, node="n1"), *pods("b", 6, node="n1"), cpu=10)
    assert taken_for(cluster, waiting("b")) == "protected"
    assert taken_for(cluster, waiting("b", priority=9)) <= {f"b-{number}" for number in range(6)}


def test_a_queue_that_may_not_be_reclaimed_from_loses_nothing():
    cluster = world(queue("a", reclaimable=False), queue("b"), "a:a", "b:b", *pods("a", 10, node="n1"), cpu=10)
    assert taken_for(cluster, waiting("b")) == "protected"


def test_nobody_goes_who_would_leave_its_queue_below_its_guarantee():
    big = pods("a", 1, node="n1", request={"cpu": 10})
    cluster = world(queue("a", kept={"cpu": 2}), queue("b"), "a:a", "b:b", *big, cpu=10)
    assert taken_for(cluster, waiting("b")) == "protected"


def test_a_guarantee_that_was_raised_is_taken_back_once_its_owner_has_a_pod():
    cluster = world(*TWO, *pods("a", 10, node="n1"), *pods("a", 10, 10), cpu=10)
    cluster.upsert_queue(queue("b", kept={"cpu": 3}))
    assert len(taken_for(cluster, waiting("b", cpu=3))) == 3


def test_a_guarantee_is_taken_back_however_long_its_owner_has_waited():
    cluster = world(queue("a"), queue("b", kept={"cpu": 3}), "a:a", "b:b", *pods("a", 10, node="n1"), cpu=10)
    one = waiting("b", request={"cpu": 2, "pods": 1}, unschedulable=NO_PLACE)
    cluster.upsert_pod(one, now=0)
    cluster.tick(31)
    assert not cluster.attempts.keeps_claim(one)
    assert len(gone(divided(cluster), one)) == 2
    cluster.upsert_pod(two := waiting("b", cpu=4, uid="two", unschedulable=NO_PLACE), now=31)
    cluster.tick(62)
    assert gone(divided(cluster), two) == "protected", "it is beyond the guarantee"


@pytest.mark.parametrize(
    ("quotas", "opted_out", "gone"),
    [
        ((), 0, 5),
        ((), 10, 5),
        ((quota("a", most={"cpu": 100}),), 0, 5),
        ((quota("a", most={"cpu": 100}),), 10, 5),
        ((quota("a", least={"gpu": 1}),), 10, 5),
        ((quota("a", least={"cpu": 5}),), 10, 5),
        ((quota("a", least={"cpu": 5}), quota("b", least={"cpu": 5})), 10, 5),
        ((quota("c", least={"cpu": 1}),), 10, 5),
    ],
    ids=str,
)
def test_opting_out_keeps_no_more_of_a_queue_than_it_deserves_whatever_the_quota(quotas, opted_out, gone):
    pinned = pods("a", opted_out, node="n1", preemptible=False)
    lending = [*pinned, *pods("a", 10 - opted_out, opted_out, node="n1")]
    asking = [waiting("b", uid=f"b{number}") for number in range(5)]
    cluster = world(*TWO, *lending, *asking, cpu=10)
    for each in quotas:
        cluster.upsert_quota(each)
    plans = [each for each in joint_plans.preview(divided(cluster), asking) if each is not None]
    assert sum(len(plan.victims) for _, plan in plans if isinstance(plan, Plan)) == gone


@pytest.mark.parametrize(("opted_out", "gone"), [(4, {"a-1"}), (5, {"a-0"}), (6, {"a-5"})])
def test_pods_that_opted_out_within_deserved_stay_while_others_borrow(opted_out, gone):
    lending = [pod(f"a-{n}", "a", node="n1", created=n, preemptible=n < 6 - opted_out) for n in range(6)]
    cluster = world(*TWO, *lending, *pods("b", 4, node="n1"), cpu=10)
    assert taken_for(cluster, waiting("b")) == gone


def test_a_min_keeps_those_who_opted_out_within_it_whatever_their_queue_has():
    lending = [pod(f"a-{number}", "a", node="n1", preemptible=False) for number in range(6)]
    cluster = world(*TWO, *lending, *pods("b", 4, node="n1"), cpu=10)
    cluster.upsert_quota(quota("a", least={"cpu": 6}))
    assert taken_for(cluster, waiting("b")) == "protected"


def test_what_a_quota_guarantees_no_queue_takes():
    cluster = world(*TWO, *pods("a", 10, node="n1"), cpu=10)
    cluster.upsert_quota(quota("a", least={"cpu": 10}))
    assert taken_for(cluster, waiting("b")) == "protected"


def test_what_a_queue_deserves_no_quota_takes():
    cluster = world(queue("a"), "a:a", *pods("a", 10, node="n1"), cpu=10)
    cluster.upsert_quota(quota("a", least={"cpu": 0}))
    cluster.upsert_quota(quota("c", least={"cpu": 5}))
    assert taken_for(cluster, waiting("c")) == {"a-0"} or taken_for(cluster, waiting("c")) == "protected"


def test_pods_in_no_queue_are_not_taken_by_one():
    cluster = world(*TWO, *pods("free", 10, node="n1"), cpu=10)
    assert taken_for(cluster, waiting("b")) == "protected"


def test_in_its_queue_a_pod_takes_only_less_important_ones_of_its_own_namespace():
    shared = (queue("q"), "a:q", "b:q", *pods("a", 5, node="n1"), *pods("b", 5, node="n1"))
    cluster = world(*shared, cpu=10)
    assert taken_for(cluster, waiting("a", priority=5)) <= {f"a-{number}" for number in range(5)}


SHARED = (queue("q"), "a:q", "b:q", *pods("a", 8, node="n1"), *pods("b", 2, node="n1"), *pods("b", 5, 2))


def test_within_a_queue_nothing_is_taken_for_a_share_unless_that_is_switched_on():
    assert taken_for(world(*SHARED, cpu=10), waiting("b")) == "protected"


def test_where_it_is_switched_on_a_namespace_below_its_share_takes_from_one_above():
    cluster = world(*SHARED, cpu=10, rules=Rules(fair_share_preemption=True))
    found = taken_for(cluster, waiting("b"))
    assert len(found) == 1
    assert found < {f"a-{number}" for number in range(8)}


def test_equals_never_swap():
    equal = (queue("q"), "a:q", "b:q", *pods("a", 3, node="n1"), *pods("b", 2, node="n1"))
    cluster = world(*equal, *pods("a", 2, 3), cpu=5, rules=Rules(fair_share_preemption=True))
    assert taken_for(cluster, waiting("b")) == "protected"


# Of a queue that has more than it deserves, who has more than its share of it


def crowded(*more, nodes=("n1", "n1"), priorities=(0, 0), **options):
    """Queue a deserves half of 20 cores and has all: 5 of namespace v, the newest, and 15 of namespace t."""
    sizes = {"n1": 20} if nodes == ("n1", "n1") else {nodes[0]: 5, nodes[1]: 15}
    return world(
        *(node(name, size={"cpu": cpu, "pods": 100}) for name, cpu in sizes.items()),
        *(queue("a"), queue("b"), "v:a", "t:a", "o:b"),
        *(pod(f"v{at}", "v", node=nodes[0], priority=priorities[0], created=100.0) for at in range(5)),
        *(pod(f"t{at}", "t", node=nodes[1], priority=priorities[1], created=1.0) for at in range(15)),
        *more,
        **options,
    )


ALONE = {f"t{at}" for at in range(15)}


@pytest.mark.parametrize("nodes", [("n1", "n1"), ("n1", "n2"), ("n2", "n1")], ids=["one node", "other node", "another"])
@pytest.mark.parametrize("priorities", [(0, 0), (0, 9), (9, 0)], ids=["equal", "less important", "more important"])
def test_whose_namespace_has_no_more_than_its_share_goes_after_those_who_have_more(nodes, priorities):
    cluster = crowded(*pods("o", 10), nodes=nodes, priorities=priorities)
    found = taken_for(cluster, waiting("o"))
    assert len(found) == 1
    assert found < ALONE


def test_nor_does_one_that_waits_for_more_of_its_share():
    cluster = crowded(*pods("o", 10), *pods("v", 5))
    assert taken_for(cluster, waiting("o")) < ALONE


def test_several_go_of_those_who_have_more_and_none_of_the_others():
    cluster = crowded(*pods("o", 9))
    found = taken_for(cluster, waiting("o", cpu=4))
    assert len(found) == 4
    assert found < ALONE


def test_the_scheduler_gets_no_victims_within_their_shares_where_others_have_more():
    cluster = crowded(*pods("o", 10), nodes=("n1", "n2"))
    me = waiting("o", priority=1)
    cluster.upsert_pod(me, now=0)
    plans = victims_on(divided(cluster), me, ("n1", "n2"))
    assert [each.node for each in plans] == ["n2"]
    assert [each.node for each in victims_on(cluster, me, ("n1",))] == ["n1"], "they may go where nobody else can"
