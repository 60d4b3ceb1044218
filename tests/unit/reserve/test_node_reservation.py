"""Which nodes are reserved for a starving job. Seed: reserve action, Node selection strategy, Reserve logic."""

from dataclasses import replace

import pytest

from policy.objects.constraints import Constraints, Taint
from policy.objects.queue import Queue
from policy.objects.reservation import Reservation
from policy.preemption.reclaim import name_of
from policy.quota.admission import Rules
from policy.reserve.starving import Terms
from policy.stepwise import at_once
from tests.unit.given_jobs import (
    GANG,
    NOW,
    TERMS,
    chosen,
    decisions,
    gang,
    reserve_all,
    reserved,
    seen,
    sized,
    sized_pod,
    waiting,
    why_not,
)
from tests.unit.given_nodes import term

GPU = "nvidia.com/gpu"


def runs(name, on, cpu=1.0, **rest):
    return sized_pod(name, cpu, node=on, **rest)


# By the score


@pytest.mark.parametrize(
    ("others", "wanted"),
    [
        ([runs("r1", "n1"), runs("r2", "n2", 2)], "n1"),
        ([runs("r1", "n1", 2), runs("r2", "n2")], "n2"),
        ([runs("r1", "n1", 3), runs("r2", "n2", 3)], "n1"),
        ([runs("r1", "n1", 0.5), runs("r2", "n1", 0.5), runs("r3", "n2")], "n2"),
    ],
    ids=["the freer", "the freer, whatever its name", "full ones, by name", "as free, and fewer to wait for"],
)
def test_the_node_that_is_most_free_is_chosen(others, wanted):
    assert chosen(seen(sized("n1"), sized("n2"), *others, waiting())) == {"big": wanted}


def test_of_nodes_that_are_as_free_the_one_that_is_short_of_least_is_chosen():
    cluster = seen(sized("n1", 4), sized("n2", 6), runs("r1", "n1", 2), runs("r2", "n2", 3), waiting(cpu=4))
    assert chosen(cluster) == {"big": "n2"}


def test_what_is_overused_counts_as_not_free_at_all():
    cluster = seen(sized("n1"), sized("n2"), runs("r1", "n1", 9), runs("r2", "n2", 2.9), waiting())
    assert chosen(cluster) == {"big": "n2"}


def test_scalar_resources_count_twice_as_much_as_cpu_and_memory_together():
    nodes = sized("n1", size={GPU: 4}), sized("n2", size={GPU: 4})
    cpu, gpu = runs("r1", "n1", 3), replace(runs("r2", "n2", 0), request={GPU: 3, "pods": 1})
    assert chosen(seen(*nodes, cpu, gpu, waiting(more={GPU: 4}))) == {"big": "n1"}
    assert chosen(seen(*nodes, cpu, gpu, waiting())) == {"big": "n2"}, "it asks for none"


def test_a_node_with_nothing_free_may_be_chosen():
    assert chosen(seen(sized(), runs("r", "n1", 3), waiting())) == {"big": "n1"}


# Nodes that may be chosen


@pytest.mark.parametrize(
    "unfit",
    [
        {"unschedulable": True},
        {"ready": False},
        {"taints": (Taint("dedicated", "x", "NoSchedule"),)},
        {"cpu": 2.9},
        {"size": {"pods": 0}},
    ],
    ids=str,
)
def test_a_node_that_could_not_take_the_pod_is_not_chosen(unfit):
    assert chosen(seen(sized("n1", **unfit), sized("n2"), runs("r", "n2", 3), waiting())) == {"big": "n2"}


def test_a_node_selector_is_heeded():
    there = Constraints(node_selector=(("kubernetes.io/hostname", "n2"),))
    assert chosen(seen(sized("n1"), sized("n2"), runs("r", "n2", 3), waiting(constraints=there))) == {"big": "n2"}


def test_pods_of_daemon_sets_stay_so_what_they_use_is_never_free():
    daemon = runs("d", "n1", 0.5, owner="DaemonSet")
    assert why_not(seen(sized(), daemon, waiting())) == "TooLarge"
    assert chosen(seen(sized(), daemon, waiting(cpu=2.5))) == {"big": "n1"}


def test_a_pod_that_keeps_others_away_is_waited_for_if_it_is_on_the_node_itself():
    away = Constraints(anti_affinity=(term("kubernetes.io/hostname", app="web"),))
    cluster = seen(sized(), runs("r", "n1", labels={"app": "web"}), waiting(constraints=away))
    assert chosen(cluster) == {"big": "n1"}


def test_members_that_keep_away_from_each_other_get_nodes_of_their_own():
    away = Constraints(anti_affinity=(term("kubernetes.io/hostname", app="gang"),))
    cluster = seen(
        sized("n1"), sized("n2"), runs("r", "n2", 2), *gang("w1", "w2", cpu=1, constraints=away, labels={"app": "gang"})
    )
    assert chosen(cluster, "a/gang") == {"w1": "n1", "w2": "n2"}
    assert cluster.table.expected == {}


def test_a_member_that_is_given_another_node_keeps_away_from_those_that_keep_theirs():
    away = Constraints(anti_affinity=(term("kubernetes.io/hostname", app="gang"),))
    cluster = seen(
        *(sized(name) for name in ("n1", "n2")), *gang("w1", "w2", cpu=1, constraints=away, labels={"app": "gang"})
    )
    reserve_all(cluster)
    assert reserved(cluster) == {"w1": "n1", "w2": "n2"}
    cluster.delete_node("n1")
    cluster.upsert_node(sized("n3", 2))
    reserve_all(cluster)
    assert reserved(cluster) == {"w1": "n3", "w2": "n2"}


def test_a_pod_whose_constraints_cannot_be_decided_gets_nothing():
    assert why_not(seen(sized(), waiting(constraints=Constraints(undecidable=("a resource claim",))))) == "Undecidable"


def test_a_pod_that_asks_for_what_no_node_lists_gets_nothing():
    decision = decisions(seen(sized(), waiting(more={"example.com/gpu": 1})))["a/big"]
    assert (decision.reason, decision.text) == (
        "Undecidable",
        "no node lists example.com/gpu; who serves it cannot be judged from here",
    )


def test_of_nodes_that_a_job_does_not_tolerate_none_counts_for_the_share_of_nodes():
    tainted = [replace(sized(f"cp{number}"), taints=(Taint("cp", "", "NoSchedule"),)) for number in range(4)]
    terms = replace(TERMS, max_nodes_percent=50)
    cluster = seen(sized("n1"), sized("n2"), *tainted, waiting("p1"), waiting("p2"))
    reserve_all(cluster, terms)
    assert len(reserved(cluster)) == 1


def test_a_node_where_room_is_held_for_another_is_not_chosen():
    cluster = seen(sized("n1"), sized("n2"), runs("r", "n2", 3), waiting(), sized_pod("owner", 1))
    cluster.upsert_reservation(Reservation("r", name_of(cluster.pods["owner"]), "n1", (), 0.0))
    assert chosen(cluster) == {"big": "n2"}


def test_a_job_that_room_is_being_made_for_does_not_starve():
    cluster = seen(sized(), waiting())
    cluster.upsert_reservation(Reservation("r", name_of(cluster.pods["big"]), "n1", (), 0.0))
    assert why_not(cluster) is None


# All members of a group, or none


def test_a_node_may_hold_several_members_as_long_as_all_fit_its_size():
    cluster = seen(sized("n1", 5), sized("n2", 5), runs("r", "n2"), *gang("w1", "w2", "w3", cpu=2))
    assert chosen(cluster, "a/gang") == {"w1": "n1", "w2": "n1", "w3": "n2"}


def test_only_as_many_members_as_it_takes_to_start_get_a_node():
    cluster = seen(*(sized(f"n{number}") for number in range(4)), *gang("w1", "w2", "w3", minimum=2))
    assert chosen(cluster, "a/gang") == {"w1": "n0", "w2": "n1"}


def test_members_that_run_count():
    cluster = seen(sized("n1"), sized("n2"), *gang("w1", "w2", "w3"), sized("n0", 1), runs("m", "n0", group=GANG))
    assert why_not(seen(sized("n1"), sized("n2"), *gang("w1", "w2", "w3")), "a/gang") == "TooLarge"
    assert len(chosen(cluster, "a/gang")) == 2


@pytest.mark.parametrize(("sizes", "fit"), [((3, 3), True), ((3, 2.9), False), ((6,), True), ((3,), False)])
def test_nothing_is_reserved_for_a_group_that_does_not_fit_as_a_whole(sizes, fit):
    nodes = [sized(f"n{number}", size) for number, size in enumerate(sizes)]
    cluster = seen(*nodes, *gang("w1", "w2"))
    assert len(chosen(cluster, "a/gang")) == (2 if fit else 0)
    assert why_not(cluster, "a/gang") == ("" if fit else "TooLarge")


def test_large_members_go_first_where_the_best_nodes_do_not_do_for_all():
    small, large = waiting("a1", 2, group=GANG), waiting("a2", 4, group=GANG)
    cluster = seen(sized("n1", 4), sized("n2", 2), runs("r", "n2"), gang("x")[0], small, large)
    cluster.upsert_group(replace(gang("x")[0], minimum=2))
    assert chosen(cluster, "a/gang") == {"a1": "n2", "a2": "n1"}


@pytest.mark.parametrize(("percent", "nodes"), [(100, 4), (75, 3), (51, 3), (50, 2), (1, 1), (0, 0)])
def test_no_more_nodes_are_reserved_than_the_share_allows_rounded_up(percent, nodes):
    pods = [waiting(f"p{number}") for number in range(4)]
    cluster = seen(*(sized(f"n{number}") for number in range(4)), *pods)
    terms = replace(TERMS, max_nodes_percent=percent)
    reserve_all(cluster, terms)
    assert len(reserved(cluster)) == nodes
    assert set(reserved(cluster)) == {f"p{number}" for number in range(nodes)}, "the oldest, and then by name"


def test_half_of_the_nodes_at_most_unless_another_share_is_set():
    cluster = seen(sized("n1"), sized("n2"), *gang("w1", "w2"))
    assert why_not(cluster, "a/gang", Terms(starving_after=10)) == "NoNodes"


@pytest.mark.parametrize(("whole", "second"), [(True, "n2"), (False, "n1")])
def test_a_node_may_be_reserved_for_two_jobs_unless_whole_nodes_are(whole, second):
    cluster = seen(sized("n1"), sized("n2"), runs("r", "n2", 2), waiting("b1", 1), waiting("b2", 1))
    cluster.rules = Rules(whole_nodes=whole)
    reserve_all(cluster)
    assert reserved(cluster) == {"b1": "n1", "b2": second}


def test_what_is_reserved_for_one_job_is_not_for_another():
    cluster = seen(sized("n1"), sized("n2"), runs("r", "n2", 2), waiting("b1", 2), waiting("b2", 2))
    reserve_all(cluster)
    assert reserved(cluster) == {"b1": "n1", "b2": "n2"}


# Gangs that start


def test_a_gang_does_not_start_on_a_node_that_is_reserved_for_another_job():
    cluster = seen(sized("n1"), sized("n2"), waiting(), *gang("w1", "w2", age=0))
    reserve_all(cluster)
    assert reserved(cluster) == {"big": "n1"}
    refused = cluster.admit(cluster.pods["w1"], 0, ("n1", "n2"))
    assert refused is not None
    assert refused.rule == "gang-minimum"
    cluster.delete_reservation("starving-big")
    assert cluster.admit(cluster.pods["w1"], 0, ("n1", "n2")) is None
    assert {placed.site.name for placed in cluster.table.expected.values()} == {"n1", "n2"}


def test_a_gang_starts_on_its_reserved_nodes_as_soon_as_all_have_room():
    cluster = seen(sized("n1"), sized("n2"), sized("n3"), *gang("w1", "w2"))
    for name, cpu in (("n1", 1), ("n2", 1), ("n3", 2)):
        cluster.upsert_pod(runs(f"on-{name}", name, cpu), now=0)
    reserve_all(cluster)
    assert reserved(cluster) == {"w1": "n1", "w2": "n2"}
    cluster.delete_pod("on-n1")
    assert cluster.admit(cluster.pods["w1"], 0, ("n1",)) is not None
    cluster.delete_pod("on-n2")
    assert cluster.admit(cluster.pods["w1"], 0, ("n1", "n2")) is None
    reserve_all(cluster)
    assert reserved(cluster) == {"w1": "n1", "w2": "n2"}, "they are not there yet"


# A choice is kept


def test_a_choice_is_kept_when_another_node_becomes_freer():
    cluster = seen(sized("n1"), sized("n2"), runs("r", "n2"), waiting())
    reserve_all(cluster)
    assert reserved(cluster) == {"big": "n1"}
    cluster.delete_pod("r")
    cluster.upsert_pod(runs("late", "n1", 3), now=0)
    reserve_all(cluster)
    assert reserved(cluster) == {"big": "n1"}


@pytest.mark.parametrize("change", ["gone", {"unschedulable": True}, {"cpu": 2}, {"ready": False}], ids=str)
def test_another_node_is_chosen_when_that_one_is_gone_or_no_longer_fit(change):
    cluster = seen(sized("n1"), sized("n2"), runs("r", "n2", 2), waiting())
    reserve_all(cluster)
    if change == "gone":
        cluster.delete_node("n1")
    else:
        cluster.upsert_node(sized("n1", **change))
    reserve_all(cluster)
    assert reserved(cluster) == {"big": "n2"}


def test_the_other_members_keep_their_nodes_when_one_loses_its_own():
    cluster = seen(*(sized(f"n{number}") for number in range(4)), *gang("w1", "w2", "w3"))
    reserve_all(cluster)
    cluster.delete_node("n1")
    reserve_all(cluster)
    assert reserved(cluster) == {"w1": "n0", "w2": "n3", "w3": "n2"}


def test_nothing_stays_reserved_when_a_member_finds_no_other_node():
    cluster = seen(sized("n1"), sized("n2"), *gang("w1", "w2"))
    reserve_all(cluster)
    cluster.delete_node("n2")
    reserve_all(cluster)
    assert reserved(cluster) == {}


def test_a_replaced_member_is_given_a_node_at_once_and_the_others_keep_theirs():
    cluster = seen(sized("n1"), sized("n2"), *gang("w1", "w2"))
    reserve_all(cluster)
    cluster.delete_pod("w1")
    cluster.upsert_pod(waiting("w9", age=1, unschedulable=None, group=GANG), now=0)
    reserve_all(cluster)
    assert reserved(cluster) == {"w9": "n1", "w2": "n2"}


def test_a_job_that_has_shrunk_keeps_no_more_nodes_than_it_takes():
    cluster = seen(sized("n1"), sized("n2"), *gang("w1", "w2"))
    reserve_all(cluster)
    cluster.upsert_group(replace(gang("w1")[0], minimum=1))
    reserve_all(cluster)
    assert reserved(cluster) == {"w1": "n1"}


def test_nodes_are_reserved_until_the_members_are_on_nodes_and_not_only_let_through():
    cluster = seen(sized("n1"), sized("n2"), *gang("w1", "w2"))
    reserve_all(cluster)
    for name in ("w1", "w2"):
        assert cluster.admit(cluster.pods[name], now=0) is None
    reserve_all(cluster)
    assert reserved(cluster) == {"w1": "n1", "w2": "n2"}
    cluster.upsert_pod(replace(cluster.pods["w1"], node="n1"), now=0)
    reserve_all(cluster)
    assert reserved(cluster) == {"w2": "n2"}
    cluster.upsert_pod(replace(cluster.pods["w2"], node="n2"), now=0)
    reserve_all(cluster)
    assert reserved(cluster) == {}


def test_members_that_have_changed_places_leave_no_node_to_others_meanwhile():
    cluster = seen(
        *(sized(f"n{number}") for number in range(3)), runs("r", "n1", 2), *gang("w1", "w2"), sized_pod("o", 1)
    )
    reserve_all(cluster)
    assert reserved(cluster) == {"w1": "n0", "w2": "n2"}
    cluster.delete_pod("r")
    cluster.upsert_pod(replace(cluster.pods["w2"], node="n0"), now=0)
    assert cluster.reservations.nodes_reserved_from(cluster.pods["o"]) == {"n0", "n2"}
    assert chosen(cluster, "a/gang") == {"w1": "n2"}, "n0 is taken by the other, and n2 is its own"


def test_a_job_that_has_begun_counts_what_its_own_pods_use():
    assert why_not(seen(sized(), *gang("w1", "w2"), runs("w0", "n1", group=GANG)), "a/gang") == "TooLarge"


def test_after_the_longest_time_nothing_is_reserved_any_more():
    cluster = seen(sized(), waiting())
    terms = replace(TERMS, max_duration=60)
    reserve_all(cluster, terms)
    reserve_all(cluster, terms, NOW + 60)
    assert reserved(cluster) == {"big": "n1"}
    reserve_all(cluster, terms, NOW + 61)
    assert reserved(cluster) == {}


def test_a_job_that_had_its_time_waits_as_long_again():
    cluster = seen(sized(), waiting())
    reserve_all(cluster)
    (given_up,) = (replace(each, failed_at=NOW) for each in cluster.reservations.reserved)
    cluster.upsert_reservation(given_up)
    assert reserved(cluster) == {}
    for later, nodes in ((3600, {}), (3601, {"big": "n1"})):
        if later > 3600:
            cluster.delete_reservation(given_up.name)
        reserve_all(cluster, now=NOW + later)
        assert reserved(cluster) == nodes


# Nothing is counted


def test_what_is_reserved_occupies_nothing_in_the_ledger_nor_on_the_node():
    cluster = seen(sized(), waiting(), sized_pod("other", 1))
    before = dict(cluster.ledger.entries), cluster.table.used.tolist()
    reserve_all(cluster)
    assert reserved(cluster) == {"big": "n1"}
    assert (cluster.ledger.entries, cluster.table.used.tolist(), cluster.table.expected) == (*before, {})


# How many jobs at a time


def of_queue(*names):
    """Jobs that starve, each of a namespace of its own, all in one queue."""
    pods = [waiting(name, namespace=name, queue="q", age=7200 - number) for number, name in enumerate(names)]
    cluster = seen(*(sized(f"n{number}") for number in range(1, 5)), *pods)
    cluster.upsert_queue(Queue("q"))
    cluster.begin()
    at_once(cluster.divide_steps())
    return cluster


def test_so_many_jobs_of_a_queue_have_reserved_nodes_at_a_time():
    cluster = of_queue("first", "second", "third")
    terms = replace(TERMS, max_jobs=2)
    reserve_all(cluster, terms)
    assert {each.pod.name for each in cluster.reservations.reserved} == {"first", "second"}
    refused = decisions(cluster, terms)["third/third"]
    assert (refused.reason, refused.places) == ("OthersReserve", ())
    assert refused.text.endswith(
        "of its queue have reserved nodes as reserve.maxJobs allows: first/first, second/second"
    )


def test_once_one_of_them_has_started_the_next_has_its_turn():
    cluster = of_queue("first", "second")
    terms = replace(TERMS, max_jobs=1)
    reserve_all(cluster, terms)
    cluster.upsert_pod(replace(cluster.pods["first"], node="n1"), now=0)
    for _ in range(2):
        reserve_all(cluster, terms)
    assert {each.pod.name for each in cluster.reservations.reserved} == {"second"}


def test_jobs_in_no_queue_are_not_counted():
    cluster = seen(*(sized(f"n{number}") for number in (1, 2, 3)), waiting("w1"), waiting("w2"))
    reserve_all(cluster, replace(TERMS, max_jobs=1))
    assert {each.pod.name for each in cluster.reservations.reserved} == {"w1", "w2"}
