"""Members of a gang are found that the rules admit and nodes have room for, all at once."""

from dataclasses import replace

import pytest

from policy.objects.constraints import Constraints
from policy.objects.reservation import STARVING, PodName, Reservation
from tests.unit.cluster.test_gang_admission import OVER_TWO, held
from tests.unit.given import pod, quota
from tests.unit.given_gangs import asked, group, members, see, seeing
from tests.unit.given_nodes import HOSTNAME, node, term


def test_a_pod_that_is_on_its_way_may_land_anywhere_so_a_gang_needs_a_place_more():
    gang = members()
    cluster = seeing(node(size={"cpu": 3, "pods": 10}), node("n2", size={"cpu": 0.5, "pods": 9}), group(), gang)
    assert asked(cluster, pod("o", "b", request={"cpu": 0.5}), gang[0]) == ["o"]
    see(cluster, pod("o", "b", request={"cpu": 0.5}, node="n2"))
    assert asked(cluster, gang[0]) == ["g0"]


@pytest.mark.parametrize(("owner", "starts"), [("ReplicaSet", True), ("DaemonSet", False)])
def test_a_pod_that_is_on_its_way_does_not_land_on_a_node_that_is_reserved_from_it(owner, starts):
    gang = members(count=2, request={"cpu": 3})
    there = [node(name, size={"cpu": 3, "pods": 10}) for name in ("n1", "n2", "n3")]
    cluster = seeing(*there, group(minimum=2), gang)
    for name, member in zip(("n1", "n2"), gang, strict=True):
        kept_for = PodName("a", member.name, member.uid)
        cluster.upsert_reservation(Reservation(f"for-{name}", kept_for, name, (), 0.0, STARVING, job="g"))
    assert asked(cluster, pod("o", "b", owner=owner), *gang) == ["o", *(["g0", "g1"] if starts else [])]


def test_where_it_cannot_be_decided_where_members_go_rules_and_numbers_count_alone():
    somewhere = Constraints(undecidable=("a volume",))
    gang = members(constraints=somewhere)
    cluster = seeing(node(size={"cpu": 1, "pods": 9}), group(), quota(most={"cpu": 3}), gang)
    assert asked(cluster, *gang) == ["g0", "g1", "g2"]
    assert set(held(cluster).values()) == {""}
    assert asked(seeing(node(), group(), quota(most={"cpu": 2}), gang), *gang) == []


def test_of_what_no_node_lists_members_are_let_in_by_rules_and_numbers():
    gang = members(request={"cpu": 1, "example.com/gpu": 1})
    cluster = seeing(node(size={"cpu": 1, "pods": 9}), group(), quota(most={"example.com/gpu": 3}), gang)
    assert asked(cluster, *gang) == ["g0", "g1", "g2"]
    assert set(held(cluster).values()) == {""}
    assert asked(seeing(node(), group(), quota(most={"example.com/gpu": 2}), gang), *gang) == []


def test_members_that_keep_away_from_each_other_are_placed_apart():
    apart = Constraints(anti_affinity=(term(HOSTNAME, app="g"),))
    gang = members(constraints=apart, labels={"app": "g"})
    two = [node("n1"), node("n2")]
    assert asked(seeing(*two, group(), gang), *gang) == []
    cluster = seeing(*two, node("n3"), group(), gang)
    assert asked(cluster, gang[0]) == ["g0"]
    assert sorted(held(cluster).values()) == ["n1", "n2", "n3"]
    assert not cluster.table.placed("g0").stands


def test_members_that_want_to_be_together_are_placed_in_one_domain():
    together = Constraints(affinity=(term("zone", app="g"),))
    gang = members(constraints=together, labels={"app": "g"})
    cluster = seeing(
        *(node(f"a{at}", size=OVER_TWO, labels={"zone": "a"}) for at in (1,)),
        *(node(f"b{at}", size={"cpu": 1, "pods": 9}, labels={"zone": "b"}) for at in (1, 2, 3)),
        group(),
        gang,
    )
    assert asked(cluster, gang[0], offered=("b1", "b2", "b3")) == ["g0"]
    assert {name[0] for name in held(cluster).values()} == {"b"}


def test_a_member_that_finds_no_place_is_replaced_by_another():
    picky = Constraints(node_selector=(("disk", "fast"),))
    gang = members(count=4)
    gang[1] = replace(gang[1], constraints=picky)
    cluster = seeing(node(), group(), gang)
    assert asked(cluster, gang[0]) == ["g0"]
    assert set(held(cluster)) == {"g0", "g2", "g3"}


def test_large_members_find_their_place_whoever_asks_first():
    gang = [*members(count=2), pod("big", group="g", request={"cpu": 3}, created=9)]
    cluster = seeing(node("n1", size={"cpu": 3, "pods": 9}), node("n2", size={"cpu": 2, "pods": 9}), group(), gang)
    assert asked(cluster, gang[0], offered=("n1", "n2")) == ["g0"]
    assert held(cluster) == {"g0": "n2", "g1": "n2", "big": "n1"}
