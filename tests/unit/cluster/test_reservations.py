"""Room that is kept: in the quota, in the pool and on the node, from the first eviction until the pod is bound."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.objects.constraints import Constraints
from policy.objects.reservation import Reservation
from policy.preemption.reclaim import is_room_taken, name_of
from policy.quota.elastic_quota import BORROWING, MAX
from tests.unit.given import amounts, pod, quota
from tests.unit.given_nodes import node
from tests.unit.preemption.test_victims import me, run, world

QUOTAS = (quota("a", least={"cpu": 2}, most={"cpu": 4}), quota("b", least={"cpu": 2}))

ON_N2 = Constraints(node_selector=(("kubernetes.io/hostname", "n2"),))


def kept(cluster: Cluster, *victims: str, uid: str = "me", on: str = "n1", name: str = "r") -> Reservation:
    """A reservation that is in force: on this node for this pod, whom these make room for."""
    going = tuple(name_of(cluster.pods[victim]) for victim in victims)
    reservation = Reservation(name, name_of(cluster.pods[uid]), on, going, 0.0)
    cluster.upsert_reservation(reservation)
    return reservation


def kind(cluster: Cluster, uid: str = "me") -> str | None:
    entry = cluster.ledger.entries.get(uid)
    return entry and entry.kind


def refused(cluster: Cluster, asking) -> str | None:
    refusal = cluster.admit(asking, now=0)
    return refusal and refusal.rule


# In the ledger


def test_room_is_held_while_the_reservation_is_there():
    cluster = world(node(), *QUOTAS, me())
    assert kind(cluster) == "pending"
    kept(cluster)
    assert kind(cluster) == "held"
    assert cluster.ledger.account("a").held == amounts(cpu=1, pods=1)
    cluster.delete_reservation("r")
    assert kind(cluster) == "pending"
    assert cluster.ledger.account("a").held == {}


def test_a_reservation_seen_before_its_pod_holds_room_once_the_pod_is_seen():
    other = world(me())
    cluster = world(node(), *QUOTAS)
    cluster.upsert_reservation(Reservation("r", name_of(other.pods["me"]), "n1", (), 0.0))
    assert kind(cluster) is None
    cluster.upsert_pod(me(), now=0)
    assert kind(cluster) == "held"
    assert cluster.table.placed("me").site.name == "n1"


def test_seen_twice_it_changes_nothing():
    cluster = world(node(), *QUOTAS, me())
    reservation = kept(cluster)
    cluster.upsert_reservation(reservation)
    assert cluster.ledger.account("a").held == amounts(cpu=1, pods=1)
    cluster.delete_reservation("r")
    cluster.delete_reservation("r")
    assert kind(cluster) == "pending"


def test_it_outlives_the_nomination_that_the_scheduler_erases():
    cluster = world(node(), *QUOTAS, me(nominated_node="n1"))
    kept(cluster)
    cluster.upsert_pod(me(nominated_node=""), now=1)
    assert kind(cluster) == "held"
    assert cluster.table.placed("me").site.name == "n1"


@pytest.mark.parametrize("how", ["plan", "nomination"])
def test_who_is_resized_to_request_more_is_kept_no_room_until_the_rules_admit_that(how):
    large = me(request={"cpu": 3}, nominated_node="n1" if how == "nomination" else "")
    cluster = world(node(size={"cpu": 8}), *QUOTAS, me(nominated_node=large.nominated_node))
    plan = kept(cluster) if how == "plan" else None
    cluster.upsert_pod(large, now=1)
    assert (kind(cluster), cluster.table.placed("me"), cluster.ledger.account("a").held) == ("pending", None, {})
    if plan:
        assert not cluster.reservations.is_in_force(plan), "its leader ends it"
        cluster.upsert_reservation(replace(plan, blocked_since=1.0))
        assert kind(cluster) == "pending"
    assert refused(cluster, large) is None
    assert cluster.table.placed("me").site.name == "n1"
    cluster.tick(now=60)
    assert kind(cluster) == ("held" if plan else "nominated")


def test_a_plan_that_is_made_for_a_pod_as_it_is_now_keeps_its_room():
    cluster = world(node(size={"cpu": 8}), *QUOTAS, me())
    kept(cluster)
    cluster.upsert_pod(me(request={"cpu": 3}), now=1)
    cluster.delete_reservation("r")
    kept(cluster)
    assert cluster.ledger.account("a").held == amounts(cpu=3, pods=1)


def test_who_is_resized_to_request_less_keeps_the_rest():
    cluster = world(node(size={"cpu": 8}), *QUOTAS, me(request={"cpu": 3}))
    kept(cluster)
    cluster.upsert_pod(me(), now=1)
    assert cluster.ledger.account("a").held == amounts(cpu=1, pods=1)


def test_who_is_on_a_node_already_is_kept_from_nowhere():
    bound = run("bound", "b", on="n1")
    cluster = world(node(size={"cpu": 2}), *QUOTAS, me(request={"cpu": 2}), bound)
    kept(cluster, "bound")
    asking = replace(bound, node="")
    assert cluster.filter(asking, 0, lambda: ["n1"]).refused is None, "the scheduler's cache is older"


def test_when_it_is_given_up_a_nomination_counts_again():
    cluster = world(node(), node("n2"), *QUOTAS, me(nominated_node="n2"))
    kept(cluster, on="n1")
    assert cluster.table.placed("me").site.name == "n1"
    cluster.delete_reservation("r")
    assert kind(cluster) == "nominated"
    assert cluster.table.placed("me").site.name == "n2"


def test_a_grant_takes_its_place_and_gives_it_back():
    cluster = world(node(), *QUOTAS, me())
    kept(cluster)
    assert refused(cluster, me()) is None
    assert kind(cluster) == "granted"
    assert cluster.ledger.account("a").held == {}
    cluster.tick(now=60)
    assert kind(cluster) == "held"


def test_once_bound_it_is_used_and_not_held():
    cluster = world(node(), *QUOTAS, me())
    kept(cluster)
    cluster.upsert_pod(me(node="n1"), now=1)
    assert kind(cluster) == "assigned"
    cluster.delete_reservation("r")
    assert kind(cluster) == "assigned"


@pytest.mark.parametrize("end", [{"terminating": True}, {"finished": True}], ids=str)
def test_nothing_is_held_for_one_that_is_on_its_way_out(end):
    cluster = world(node(), *QUOTAS, me())
    kept(cluster)
    cluster.upsert_pod(me(**end), now=1)
    assert kind(cluster) is None
    assert cluster.table.placed("me") is None


def test_nothing_is_held_for_one_that_is_gone():
    cluster = world(node(), *QUOTAS, me())
    kept(cluster)
    cluster.delete_pod("me")
    assert cluster.ledger.entries == {}
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 4})) == set()


# In the quota and in the pool


@pytest.mark.parametrize(("priority", "rule"), [(0, MAX.name), (1, MAX.name), (2, None)])
def test_in_its_quota_it_is_ahead_of_the_same_and_lower_priority(priority, rule):
    cluster = world(node(), *QUOTAS, me(2, priority=1))
    kept(cluster)
    assert refused(cluster, pod("x", "a", request={"cpu": 3}, priority=priority)) == rule


def test_what_is_held_is_not_lent_meanwhile():
    cluster = world(node(), *QUOTAS, me(3))  # beyond its min, so without a claim while nothing is held
    asking = pod("x", "b", request={"cpu": 3})
    assert cluster.check(asking) is None
    kept(cluster)
    assert refused(cluster, asking) == BORROWING.name


def test_what_is_held_is_not_lent_even_if_its_quota_is_over_min():
    cluster = world(node(), *QUOTAS, run("a1", "a", cpu=3, on="n2"), me(1))
    asking = pod("x", "b", request={"cpu": 2}, preemptible=True)
    third = pod("y", "c", request={"cpu": 1})
    cluster.upsert_quota(quota("c", least={"cpu": 0}))
    assert cluster.check(third) is None
    kept(cluster)
    assert cluster.check(asking) is None  # within its own min
    assert cluster.check(third).rule == BORROWING.name


def test_what_is_held_counts_as_it_did_when_it_is_asked_for():
    cluster = world(node(), *QUOTAS, me(4, namespace="a"))
    kept(cluster)
    assert refused(cluster, me(4, namespace="a")) is None


# On the node


def test_from_the_first_eviction_the_room_is_held_on_the_node():
    cluster = world(node(), *QUOTAS, run("b1", cpu=2), run("b2", cpu=2), me(2))
    kept(cluster, "b1")
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 1})) == {"n1"}
    cluster.upsert_pod(replace(cluster.pods["b1"], terminating=True), now=1)
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 1})) == {"n1"}
    cluster.delete_pod("b1")
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 1})) == {"n1"}


def test_what_it_does_not_need_is_free():
    cluster = world(node(), *QUOTAS, run("b1", cpu=3), me(2))
    kept(cluster, "b1")
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 2})) == set()
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 2.1})) == {"n1"}


def test_of_each_resource_what_is_kept_is_kept():
    cluster = world(node(size={"gpu": 1}), *QUOTAS, me(request={"gpu": 1}))
    kept(cluster)
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"gpu": 1})) == {"n1"}
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 4})) == set()


@pytest.mark.parametrize(("priority", "held"), [(0, {"n1"}), (1, {"n1"}), (2, set())])
def test_it_is_held_from_the_same_and_lower_priority(priority, held):
    cluster = world(node(), *QUOTAS, me(4, priority=1))
    kept(cluster)
    assert cluster.reservations.nodes_held_from(pod("x", "b", priority=priority)) == held


def test_it_is_not_held_from_the_pod_it_is_for():
    cluster = world(node(), *QUOTAS, run("b1", cpu=4), me(4))
    kept(cluster, "b1")
    assert cluster.reservations.nodes_held_from(me(4)) == set()


def test_two_rooms_on_one_node_are_both_held():
    cluster = world(node(), *QUOTAS, me(2), pod("you", "a", request={"cpu": 2}))
    kept(cluster, name="r1")
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 2})) == set()
    kept(cluster, uid="you", name="r2")
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 1})) == {"n1"}
    assert cluster.reservations.nodes_held_from(me(2)) == set()
    assert cluster.reservations.nodes_held_from(pod("you", "a", request={"cpu": 2})) == set()


def two_promises() -> Cluster:
    """On four cores, which are all used, room for one core was promised twice, each time for a victim."""
    victims = run("b1"), run("b2")
    cluster = world(node(), *QUOTAS, run("b0", cpu=2), *victims, me(), pod("you", "a", request={"cpu": 1}))
    kept(cluster, "b1", name="r1")
    kept(cluster, "b2", uid="you", name="r2")
    return cluster


def test_room_of_anothers_victim_is_not_for_a_pod_whose_own_victim_is_still_there():
    cluster = two_promises()
    cluster.delete_pod("b1")
    assert cluster.reservations.nodes_held_from(me()) == set()
    assert cluster.reservations.nodes_held_from(cluster.pods["you"]) == {"n1"}


def test_but_it_may_have_it_once_its_own_victim_is_on_its_way_out():
    cluster = two_promises()
    cluster.delete_pod("b1")
    cluster.leaving.ask_to_go("b2")
    assert cluster.reservations.nodes_held_from(cluster.pods["you"]) == set()


def test_where_room_was_promised_twice_the_first_promise_is_kept_first():
    cluster = two_promises()
    for victim in ("b1", "b2"):
        cluster.delete_pod(victim)
    cluster.upsert_pod(run("thief"), now=1)
    assert cluster.reservations.nodes_held_from(me()) == set()
    assert cluster.reservations.nodes_held_from(cluster.pods["you"]) == {"n1"}


def test_room_is_taken_where_all_have_gone_and_others_have_it():
    cluster = two_promises()
    first, second = cluster.reservations.plans["r1"], cluster.reservations.plans["r2"]
    assert not is_room_taken(cluster, first)
    for victim in ("b1", "b2"):
        cluster.delete_pod(victim)
    assert not is_room_taken(cluster, second)
    cluster.upsert_pod(run("thief"), now=1)
    assert not is_room_taken(cluster, first)
    assert is_room_taken(cluster, second)


def test_only_the_node_of_the_reservation_is_held():
    cluster = world(node(), node("n2"), *QUOTAS, me(4))
    kept(cluster, on="n2")
    assert cluster.reservations.nodes_held_from(pod("x", "b")) == {"n2"}


def test_when_it_is_bound_or_given_up_nothing_is_held():
    cluster = world(node(), *QUOTAS, me(2))
    kept(cluster)
    asking = pod("x", "b", request={"cpu": 3})
    assert cluster.reservations.nodes_held_from(asking) == {"n1"}
    cluster.delete_reservation("r")
    assert cluster.reservations.nodes_held_from(asking) == set()
    kept(cluster)
    cluster.upsert_pod(me(2, node="n1"), now=1)
    assert cluster.reservations.nodes_held_from(pod("x", "b", request={"cpu": 2})) == set()


# Beside pods that were let through and are not bound yet


def granted_beside(*objects, request=None, **rest) -> Cluster:
    """Two of four cores are kept on n1, and a pod of one core, or of more, was let through."""
    cluster = world(node(), node("n2"), *objects, me(2))
    kept(cluster)
    assert refused(cluster, pod("first", "c", request=request, **rest)) is None
    return cluster


def test_two_pods_are_not_let_through_where_room_is_spare_for_one():
    cluster = granted_beside()
    assert cluster.reservations.nodes_held_from(pod("x", "c", request={"cpu": 1})) == set()
    assert cluster.reservations.nodes_held_from(pod("x", "c", request={"cpu": 2})) == {"n1"}
    assert cluster.reservations.nodes_held_from(pod("first", "c", request={"cpu": 2})) == set()


def test_many_that_are_alike_count_as_many():
    cluster = granted_beside()
    other = cluster.grants.pod("first")
    cluster.grant(replace(other, uid="second"), now=0)
    assert cluster.reservations.nodes_held_from(pod("x", "c", request={"cpu": 1})) == {"n1"}


def test_a_pod_bound_elsewhere_counts_no_more_and_one_bound_there_does():
    cluster, asking = granted_beside(), pod("x", "c", request={"cpu": 2})
    cluster.upsert_pod(run("first", "c", on="n2"), now=1)
    assert cluster.reservations.nodes_held_from(asking) == set()
    cluster.upsert_pod(run("second", "c", on="n1"), now=1)
    assert cluster.reservations.nodes_held_from(asking) == {"n1"}


def test_one_whose_grant_has_ended_counts_no_more():
    cluster = granted_beside()
    cluster.tick(now=60)
    assert cluster.reservations.nodes_held_from(pod("x", "c", request={"cpu": 2})) == set()


@pytest.mark.parametrize("rest", [{"request": {"cpu": 5}}, {"constraints": ON_N2}], ids=["size", "selector"])
def test_one_that_the_node_cannot_take_does_not_count(rest):
    cluster = granted_beside(**rest)
    assert cluster.reservations.nodes_held_from(pod("x", "c", request={"cpu": 2})) == set()


def test_the_one_that_room_is_kept_for_counts_once():
    cluster = granted_beside()
    cluster.withdraw("first")
    assert refused(cluster, me(2)) is None
    assert cluster.reservations.nodes_held_from(pod("x", "c", request={"cpu": 2})) == set()


def test_a_pod_admitted_elsewhere_keeps_nobody_from_room_that_is_kept_for_it():
    cluster = world(node(), node("n2"), *QUOTAS, me(2), pod("you", "a", request={"cpu": 1}))
    kept(cluster, name="r1")
    kept(cluster, uid="you", name="r2")
    first = pod("first", "c", request={"cpu": 2})
    assert cluster.reservations.nodes_held_from(first) == {"n1"}
    cluster.grant(first, now=0)
    assert cluster.reservations.nodes_held_from(me(2)) == set()
    assert cluster.reservations.nodes_held_from(pod("x", "c")) == {"n1"}


@pytest.mark.parametrize("priority", [-1, 0, 1])
@pytest.mark.parametrize("nominated", ["", "n1", "n2"])
def test_it_counts_once_whatever_its_priority_and_wherever_it_is_expected(priority, nominated):
    first = pod("first", "c", priority=priority, nominated_node=nominated)
    cluster = granted_beside(first, priority=priority, nominated_node=nominated)
    assert cluster.reservations.nodes_held_from(pod("x", "c", request={"cpu": 1})) == set()
    assert cluster.reservations.nodes_held_from(pod("x", "c", request={"cpu": 2})) == {"n1"}


def test_what_is_assumed_leaves_no_trace_of_where_a_pod_was_expected():
    cluster = world(node("n1"), node("n2"), *QUOTAS, me(1))
    with cluster.reservations.assumed([Reservation("r", name_of(cluster.pods["me"]), "n2", (), 0.0)]):
        assert cluster.destinations.nodes_of("me") == {"n2"}
    assert cluster.destinations.nodes_of("me") == frozenset()
