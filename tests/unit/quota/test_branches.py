"""Whom a queue in a tree admits: each queue above it is asked as well."""

from dataclasses import replace

import pytest

from policy.explain.terminating import conditions_of_queue
from policy.explain.verdicts import verdict_on
from policy.objects.queue import ROOT
from policy.quota import queue_rules
from tests.unit.cluster.test_unschedulable import NO_PLACE
from tests.unit.given import pod
from tests.unit.given_queues import admitted, deserved, divided, pods, queue, why, world

COMPANY = (
    *(queue("A"), queue("a1", 3, parent="A"), queue("a2", parent="A")),
    *(queue("B"), queue("b1", parent="B"), "x:a1", "y:a2", "z:b1"),
)
FULL, BEYOND = "Queue capability exceeded: cpu", "Queue deserved exceeded: cpu"


def company(*more, **rest):
    return world(*COMPANY, *more, **rest)


def by_queue(cluster, some):
    """How many pods of each namespace are admitted, asked in this order."""
    found = admitted(cluster, *some)
    return tuple(sum(uid.startswith(f"{name}-") for uid in found) for name in "xyz")


EVERYBODY = (*pods("x", 16), *pods("y", 16), *pods("z", 16))


@pytest.mark.parametrize("start", range(3))
def test_the_first_row_of_the_table_in_any_order(start):
    cluster = company(*EVERYBODY)
    assert by_queue(cluster, EVERYBODY[16 * start :] + EVERYBODY[: 16 * start]) == (6, 2, 8)


def test_what_a_department_leaves_goes_to_the_other_one():
    asking = (*pods("x", 16), *pods("y", 16), *pods("z", 2))
    cluster = company(*asking)
    assert deserved(cluster, "a1") == 10.5
    assert by_queue(cluster, asking) == (10, 4, 2)


def test_a_child_may_use_what_siblings_and_other_departments_do_not_claim():
    cluster = company()
    newcomers = pods("x", 20)  # not seen yet, so nothing is deserved for them
    assert len([each for each in newcomers if cluster.admit(each, now=0) is None]) == 16


def test_a_sibling_that_waits_has_a_claim_to_what_the_parent_may_use():
    bounded = (queue("A", most={"cpu": 6}), queue("a1", parent="A"), queue("a2", parent="A"), "x:a1", "y:a2")
    cluster = world(*bounded, *pods("x", 8), *pods("y", 8))
    assert by_queue(cluster, [*pods("x", 8), *pods("y", 8)]) == (3, 3, 0)


def test_the_capability_of_a_queue_above_refuses_whatever_is_free():
    cluster = world(queue("A", most={"cpu": 2}), queue("a1", parent="A"), "x:a1")
    assert admitted(cluster, *pods("x", 5)) == ["x-0", "x-1"]
    assert why(cluster, pod("next", "x")) == FULL


def test_a_queue_named_root_bounds_all():
    cluster = company(queue(ROOT, most={"cpu": 4}, kept={"cpu": 3}), *EVERYBODY)
    assert (deserved_of(cluster, "A"), deserved_of(cluster, "B")) == (2, 2)
    assert len(admitted(cluster, *EVERYBODY)) == 4
    assert [each.type for each in conditions_of_queue(cluster, ROOT)] == []
    cluster.delete_queue(ROOT)
    assert deserved_of(divided(cluster), "A") == 8


def test_the_bound_of_the_root_keeps_out_even_who_is_within_its_part():
    cluster = company(*pods("x", 6, node="n1"), *pods("z", 2))
    cluster.upsert_queue(queue(ROOT, most={"cpu": 6}))
    divided(cluster)
    assert why(cluster, cluster.pods["z-0"]) == FULL
    assert "Queue root of root/B/b1 is in the way" in said(cluster, "z-0")


def deserved_of(cluster, name):
    return cluster.ledger.queues.node(name).division.deserved.get("cpu", 0) / 1000


def said(cluster, uid):
    one = cluster.pods[uid]
    return verdict_on(cluster, one.namespace, one.name).message


@pytest.mark.parametrize("name", ["A", ROOT])
def test_only_leaves_take_pods(name):
    cluster = company(queue(ROOT), f"boss:{name}", pod("p", "boss"))
    assert why(cluster, cluster.pods["p"]) == "Queue has child queues"
    assert cluster.check(cluster.pods["p"]).rule == "queue-not-a-leaf"
    assert verdict_on(cluster, "boss", "p").numbers == {}
    assert cluster.ledger.queues.accounts[name].claim == {}


def test_what_runs_in_a_queue_with_children_counts_and_is_over_its_share():
    cluster = company("boss:A", *pods("boss", 4, node="n1"), *EVERYBODY)
    ledger = cluster.ledger.queues
    assert ledger.node("A").taken["cpu"] == 4000
    assert queue_rules.is_over(ledger.accounts["A"], "cpu")
    assert "A" in ledger.over_deserved
    assert by_queue(cluster, EVERYBODY) == (4, 0, 8)


def test_once_it_has_no_children_a_queue_takes_pods_again():
    cluster = world(queue("A"), queue("a1", parent="A"), "boss:A", *pods("boss", 2))
    assert why(cluster, cluster.pods["boss-0"]) == "Queue has child queues"
    cluster.delete_queue("a1")
    divided(cluster)
    assert admitted(cluster, *pods("boss", 2)) == ["boss-0", "boss-1"]


@pytest.mark.parametrize("state", ["Closed", "Closing"])
@pytest.mark.parametrize("name", ["A", ROOT])
def test_a_closed_queue_closes_all_below_it(name, state):
    cluster = company(queue(ROOT), *pods("x", 1, node="n1"), pod("p", "x"), pod("q", "z"))
    cluster.upsert_queue(replace(cluster.queues[name], state=state))
    divided(cluster)
    assert why(cluster, cluster.pods["p"]) == "Queue is closed"
    assert said(cluster, "p") == f"Queue is closed: Queue {name} of root/A/a1 is {state}"
    assert why(cluster, cluster.pods["x-0"]) == ""
    assert why(cluster, cluster.pods["q"]) == ("" if name == "A" else "Queue is closed")
    cluster.upsert_queue(replace(cluster.queues[name], state="Open"))
    assert why(divided(cluster), cluster.pods["p"]) == ""


BROKEN = [
    (queue("a1", parent="nobody"), "there is no Queue nobody, which Queue a1 names as its parent"),
    (queue("A", parent="a1"), "Queue a1 stands below itself"),
    (queue("A", parent="A"), "Queue A stands below itself"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_without_a_way_to_the_root_nothing_is_admitted_and_what_runs_stays(broken, message):
    cluster = company(*pods("x", 2, node="n1"), pod("p", "x"))
    good = cluster.queues[broken.name]
    cluster.upsert_queue(broken)
    divided(cluster)
    refused = cluster.check(cluster.pods["p"])
    assert (refused.rule, refused.message) == ("queue-invalid", "Queue is invalid")
    assert said(cluster, "p") == f"Queue is invalid: {message}"
    conditions = {each.type: each.message for each in conditions_of_queue(cluster, "a1")}
    assert "ParentInvalid" in conditions
    assert why(cluster, cluster.pods["x-0"]) == ""
    assert cluster.ledger.queues.taken["cpu"] == 2000
    cluster.upsert_queue(good)
    assert why(divided(cluster), cluster.pods["p"]) == ""
    assert conditions_of_queue(cluster, "a1") == []


def test_guarantees_that_do_not_fit_the_parent_are_said_not_to_be_backed():
    kept = queue("a1", parent="A", kept={"cpu": 4}), queue("a2", parent="A", kept={"cpu": 4})
    cluster = world(queue("A", most={"cpu": 6}), *kept)
    assert (deserved(cluster, "a1"), deserved(cluster, "a2")) == (3, 3)
    (condition,) = conditions_of_queue(cluster, "a1")
    assert (condition.type, condition.message) == (
        "GuaranteeNotBacked",
        "Queue A, or one above it, does not have what its children are guaranteed: cpu; scaled down",
    )
    assert conditions_of_queue(cluster, "A") == []


def test_a_refusal_comes_with_the_numbers_of_the_first_queue_in_the_way():
    cluster = company(*pods("x", 8, node="n1"), *pods("z", 8, node="n1"), *pods("x", 1, 8), *pods("y", 1))
    refused = cluster.check(cluster.pods["y-0"])
    assert refused.rule == queue_rules.DESERVED.name
    verdict = verdict_on(cluster, "y", "y-0")
    assert verdict.message == f"{BEYOND}: Queue A of root/A/a2 is in the way"
    assert verdict.numbers["cpu"] | {"guarantee": 0} == {
        "request": 1000,
        "allocated": 8000,
        "deserved": 8000,
        "realCapability": 16000,
        "guarantee": 0,
        "total": 16000,
        "allocatedInAllQueues": 16000,
        "claimedByOtherQueues": 0,
    }


def test_in_a_queue_without_parents_nothing_is_said_of_levels():
    cluster = world(queue("q", most={"cpu": 1}), "a:q", pod("p", "a", request={"cpu": 2}))
    assert said(cluster, "p") == FULL


def test_a_pod_that_runs_moves_only_to_a_leaf_with_room_on_all_levels():
    running = [pod(f"n-{number}", "n", queue="a1", node="n1") for number in range(3)]
    cluster = company(queue("B", most={"cpu": 1}), *running)
    cluster.begin()
    for each, name in zip(running, ("b1", "b1", "A"), strict=True):
        cluster.upsert_pod(replace(each, queue=name), now=0)
    assert [cluster.queue_of(cluster.pods[each.uid]) for each in running] == ["b1", "a1", "a1"]


def test_beyond_its_share_a_namespace_leaves_others_what_the_queue_may_use():
    waiting = (*pods("a", 8), *pods("b", 8))
    cluster = world(queue("q", most={"cpu": 6}), "a:q", "b:q", *waiting)
    assert len([uid for uid in admitted(cluster, *waiting) if uid.startswith("a-")]) == 3


def test_a_pod_gets_its_claim_back_when_a_queue_above_its_own_is_raised():
    hopeless = pod("p", "x", unschedulable=NO_PLACE)
    cluster = company(hopeless)
    cluster.upsert_queue(queue("A", most={"cpu": 1}))
    cluster.tick(31)
    assert not cluster.attempts.keeps_claim(hopeless)
    cluster.upsert_queue(queue("A"))
    assert cluster.attempts.keeps_claim(hopeless)
