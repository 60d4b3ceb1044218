"""``reserve.ahead``: the first jobs of a line get reserved nodes before they starve, if their start can be promised."""

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest

from policy.cluster.run_times import RunTimes
from policy.objects.job import ALONE
from policy.objects.membership import Namespace
from policy.objects.pod import Unschedulable
from policy.objects.queue import Queue
from policy.reserve import node_reservation
from policy.reserve.node_reservation import decide_steps, reservation_of
from policy.reserve.place_search import STEP, Place
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.stepwise import at_once
from tests.unit.given import amounts, quota
from tests.unit.given_jobs import (
    NOW,
    chosen,
    decisions,
    gang,
    in_turn,
    reserve_all,
    reserved,
    seen,
    sized,
    sized_pod,
    waiting,
    why_not,
)

AHEAD = Terms(starving_after=3600, max_nodes_percent=100, max_jobs=1, ahead=1)
MINUTE = 60
SMALL = [sized(f"small-{number}", 2) for number in range(8)]
"""Nodes that have room for the rest of a queue, and for no large pod."""


def runs(name, cpu=3, minutes=60, node="n1", **rest):
    return sized_pod(name, cpu, node=node, started=NOW, grace=0, deadline=minutes * MINUTE, **rest)


def young(name="big", cpu=3, age=60, **rest):
    return waiting(name, cpu, age=age, **rest)


def full_nodes(number):
    """So many nodes, each with a pod of others that ends in an hour."""
    names = [f"n{each}" for each in range(number)]
    return [each for name in names for each in (sized(name), runs(f"on {name}", node=name, namespace="c"))]


def world(*objects):
    cluster = seen(*objects)
    cluster.protection.pass_time(NOW)
    return cluster


def after(cluster, terms=AHEAD):
    """What is reserved once the controller has looked."""
    reserve_all(cluster, terms)
    return reserved(cluster)


def test_a_job_that_does_not_starve_gets_a_node_with_a_promise_only_if_that_is_set():
    assert after(world(sized(), runs("r"), young())) == {"big": "n1"}
    assert after(world(sized(), runs("r"), young()), replace(AHEAD, ahead=0)) == {}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([runs("r", minutes=0)], "NoNodes"),
        ([runs("r", minutes=25 * 60)], "NoNodes"),
        ([], "NoPromise"),
    ],
    ids=["an end that is not enforced", "too far ahead", "there is room already"],
)
def test_without_a_start_that_can_be_promised_nothing_is_reserved(objects, reason):
    cluster = world(sized(), *objects, young())
    assert why_not(cluster, terms=AHEAD) == reason
    assert after(cluster) == {}


def test_the_node_that_surely_has_room_soonest_is_taken():
    nodes = [sized("n1", 4), sized("n2"), sized("n3"), sized("n4")]
    ends = [runs("r1", 3, 0), runs("r2", 3, 40, "n2"), runs("r3", 3, 20, "n3"), runs("r4", 3, 30, "n4")]
    assert chosen(world(*nodes, *ends, young()), terms=AHEAD) == {"big": "n3"}


def test_the_first_by_priority_and_then_by_creation_come_first_in_each_line():
    nodes = full_nodes(6)
    of_a = [young("old", age=90), young("young", age=30), young("first", age=10, priority=5)]
    of_b = [young("other", namespace="b", age=20)]
    cluster = world(*nodes, *of_a, *of_b)
    assert set(after(cluster)) == {"first", "other"}
    assert set(after(world(*nodes, *of_a, *of_b), replace(AHEAD, ahead=2))) == {"first", "old", "other"}


def test_namespaces_of_one_queue_are_one_line():
    cluster = world(*full_nodes(3), *SMALL)
    cluster.upsert_queue(Queue("q"))
    for name in ("a", "b"):
        cluster.upsert_namespace(Namespace(name, queue="q"))
    at_once(cluster.divide_steps())
    for each in (young("p", age=90), young("other", namespace="b", age=20)):
        cluster.upsert_pod(each, now=0)
    assert set(after(cluster)) == {"p"}


def test_who_waits_for_a_quota_does_not_stand_in_the_line():
    cluster = world(sized(), runs("r"), young("next", age=30))
    refused = Unschedulable("Unschedulable", "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu.")
    cluster.upsert_pod(young("first", age=90, unschedulable=refused), now=0)
    assert set(after(cluster)) == {"next"}


def test_one_that_comes_later_and_goes_first_gets_no_nodes_beyond_the_number():
    cluster = world(sized(), runs("r"), sized("n2"), runs("r2", node="n2"), young())
    assert after(cluster) == {"big": "n1"}
    cluster.upsert_pod(young("first", priority=9, age=5), now=0)
    assert why_not(cluster, "a/first", AHEAD) == "OthersReserve"
    assert after(cluster) == {"big": "n1"}


def test_a_job_that_starves_is_not_kept_from_nodes_by_those_ahead_of_it():
    cluster = world(*full_nodes(4), *SMALL)
    cluster.upsert_queue(Queue("q"))
    cluster.upsert_namespace(Namespace("a", queue="q"))
    at_once(cluster.divide_steps())
    late = [waiting("starves", age=7200), waiting("starves too", age=7100)]
    for each in (young("first", priority=9), young("second", priority=8), *late):
        cluster.upsert_pod(each, now=0)
    terms = replace(AHEAD, ahead=2)
    assert [job.title for job in in_turn(cluster, terms, NOW)] == [
        f"a/{x}" for x in ("starves", "starves too", "first", "second")
    ]
    assert set(after(cluster, terms)) == {"first", "second", "starves"}
    assert why_not(cluster, "a/starves too", terms) == "OthersReserve"


def test_a_gang_gets_a_node_for_each_member_or_none():
    nodes = [sized("n1"), sized("n2"), runs("r1"), runs("r2", node="n2")]
    assert after(world(*nodes, *gang("a", "b", age=60))) == {"a": "n1", "b": "n2"}
    endless = [sized("n1"), sized("n2"), runs("r1"), runs("r2", minutes=0, node="n2")]
    assert after(world(*endless, *gang("a", "b", age=60))) == {}


def test_nodes_are_not_kept_without_a_promise():
    cluster = world(sized(), runs("r"), young())
    assert after(cluster) == {"big": "n1"}
    cluster.upsert_pod(runs("r", minutes=0), now=0)
    reserve_all(cluster, AHEAD, NOW + 9)
    assert reserved(cluster) == {"big": "n1"}, "the promise may be on its way"
    reserve_all(cluster, AHEAD, NOW + 11)
    assert reserved(cluster) == {}
    assert why_not(cluster, terms=AHEAD) == "NoNodes"


def test_who_had_its_time_waits_anew():
    cluster = world(sized(), runs("r"), young())
    after(cluster)
    [own] = cluster.reservations.reserved
    cluster.upsert_reservation(replace(own, failed_at=NOW))
    assert in_turn(cluster, AHEAD, NOW + 100) == []


def test_a_simulation_reserves_ahead_too_and_keeps_long_pods_off():
    cluster = seen(sized(), runs("r", 2), young())
    cluster.upsert_quota(quota())
    simulation = Simulation(cluster, AHEAD, NOW)
    at_once(simulation.settle_steps())
    assert reserved(cluster) == {"big": "n1"}
    assert next(iter(cluster.reservations.reserved)).promised_start == NOW + 60 * MINUTE
    short = sized_pod("short", 1, created=NOW, priority=-1, grace=0, deadline=50 * MINUTE)
    for each in (short, sized_pod("long", 1, created=NOW, priority=-1)):
        cluster.upsert_pod(each, now=NOW)
    at_once(simulation.settle_steps())
    assert [uid for uid in ("short", "long") if cluster.pods[uid].node] == ["short"]


def test_a_gang_of_many_kinds_gets_no_nodes_before_it_starves():
    nodes = full_nodes(6)
    group, *members = gang(*(f"m{number}" for number in range(6)), age=60)
    unlike = [replace(each, request=each.request | {"cpu": 2900 + number}) for number, each in enumerate(members)]
    assert len(after(world(*nodes, group, *unlike[:5], replace(members[5], request=unlike[0].request)))) == 6
    assert why_not(world(*nodes, group, *unlike), "a/gang", AHEAD) == "NoPromise"
    assert len(after(world(*nodes, group, *unlike), replace(AHEAD, starving_after=30))) == 6


def test_granted_pods_are_looked_at_once_for_all_nodes(monkeypatch):
    cluster = world(*full_nodes(9), *gang("a", "b", age=60))
    granted = sized_pod("granted", 1, namespace="b", deadline=60)
    cluster.upsert_pod(granted, now=0)
    cluster.grant(granted, 0)
    asked, ends_at = [], RunTimes.surely_ends_at
    monkeypatch.setattr(RunTimes, "surely_ends_at", lambda *about: asked.append(about[1].uid) or ends_at(*about))
    assert set(after(cluster)) == {"a", "b"}
    assert asked.count("granted") == 2, "to choose nodes, and for the promise"


def test_a_node_is_not_looked_at_beyond_those_that_stay(monkeypatch):
    cluster = world(sized(), runs("r1", minutes=0), *(runs(f"s{number}", 0.01) for number in range(5)), young())
    asked, ends_at = [], RunTimes.surely_ends_at
    monkeypatch.setattr(RunTimes, "surely_ends_at", lambda *about: asked.append(about[1].uid) or ends_at(*about))
    assert after(cluster) == {}
    assert asked == ["r1"]


def test_no_more_is_reserved_at_a_time_than_a_quota_admits():
    cluster = world(*full_nodes(6))
    cluster.upsert_quota(quota("a", least={"cpu": 6}, most={"cpu": 6}))
    for number in range(4):
        cluster.upsert_pod(young(f"w{number}", age=60 - number), now=0)
    terms = replace(AHEAD, ahead=4)
    assert set(after(cluster, terms)) == {"w0", "w1"}
    assert why_not(cluster, "a/w2", terms) == "Refused"
    assert set(after(cluster, terms)) == {"w0", "w1"}, "each of them stays"
    cluster.upsert_quota(quota("a", least={"cpu": 3}, most={"cpu": 3}))
    assert len(after(cluster, terms)) == 1
    assert len(after(world(*full_nodes(6), *(young(f"w{number}") for number in range(4))), terms)) == 4


def test_no_more_is_reserved_at_a_time_than_a_queue_admits():
    cluster = world(*full_nodes(3), *SMALL)
    cluster.upsert_queue(Queue("q", 1, amounts(cpu=3, memory=3 * 2**30)))
    for name in ("a", "b"):
        cluster.upsert_namespace(Namespace(name, queue="q"))
    at_once(cluster.divide_steps())
    for name in ("a", "b"):
        cluster.upsert_pod(young(f"of {name}", namespace=name), now=0)
    assert len(after(cluster, replace(AHEAD, ahead=2))) == 1


def below_one_queue(cluster):
    """The queues of both namespaces stand below one that may use three cores."""
    cluster.upsert_queue(Queue("top", 1, amounts(cpu=3, memory=3 * 2**30)))
    for namespace, name in (("a", "q1"), ("b", "q2")):
        cluster.upsert_queue(Queue(name, parent="top"))
        cluster.upsert_namespace(Namespace(namespace, queue=name))


def from_one_pool(cluster):
    """Both namespaces may borrow the same three cores."""
    for namespace, least in (("a", 0), ("b", 0), ("lender", 3)):
        cluster.upsert_quota(quota(namespace, least={"cpu": least}))


def of_two_lines(bound):
    cluster = world(*full_nodes(3), *SMALL)
    bound(cluster)
    at_once(cluster.divide_steps())
    for name, age in (("a", 60), ("b", 50)):
        cluster.upsert_pod(young(f"of {name}", namespace=name, age=age), now=0)
    return cluster


@pytest.mark.parametrize("bound", [below_one_queue, from_one_pool])
def test_no_more_is_reserved_at_a_time_than_what_jobs_of_other_lines_share_admits(bound):
    cluster = of_two_lines(bound)
    for _ in range(2):
        assert set(after(cluster)) == {"of a"}
    assert why_not(cluster, "b/of b", AHEAD) == "Refused"


def test_of_other_lines_no_more_than_so_many_pods_are_looked_at(monkeypatch):
    monkeypatch.setattr(node_reservation, "MOST_BESIDE", 0)
    assert set(after(of_two_lines(below_one_queue))) == {"of a", "of b"}


def beside_many(number):
    """A job waits, and so many nodes are reserved for others, of another line."""
    others = [waiting(f"other {each}", namespace="b") for each in range(number)]
    cluster = world(*full_nodes(number + 1), *others, young("own"))
    for at, each in enumerate(others):
        place = Place(each, f"n{at}")
        cluster.upsert_reservation(reservation_of(cluster.groups.job("b", f"{ALONE}{each.name}"), place, NOW))
    return cluster


def looks(cluster, monkeypatch):
    """How often it is asked between two pauses whether a node is still reserved, while a node is found for the job."""
    counts, is_reserved = [0], cluster.reservations.is_reserved
    job = cluster.groups.job("a", f"{ALONE}own")

    def counted(each):
        counts[-1] += 1
        return is_reserved(each)

    cluster.reservations.nodes.on("n0")  # else it is found out in the first step
    monkeypatch.setattr(cluster.reservations, "is_reserved", counted)
    work = decide_steps(cluster, job, AHEAD, NOW)
    with suppress(StopIteration):
        while True:
            next(work)
            counts.append(0)
    return counts


def test_of_many_reserved_nodes_a_few_are_looked_at_between_two_pauses(monkeypatch):
    counts = looks(beside_many(3 * STEP), monkeypatch)
    assert sum(counts) >= 6 * STEP, "those before it, and those beside it"
    assert max(counts) <= STEP


def test_no_more_pods_beside_a_job_are_looked_at_than_are_asked_about(monkeypatch):
    monkeypatch.setattr(node_reservation, "MOST_BESIDE", 1)
    cluster = beside_many(STEP)
    from_one_pool(cluster)
    assert looks(cluster, monkeypatch)[-1] == 1


def test_a_job_behind_too_many_pods_with_reserved_nodes_gets_none(monkeypatch):
    terms = replace(AHEAD, ahead=2)
    monkeypatch.setattr(node_reservation, "MOST_BEFORE", 2)
    assert len(after(world(*full_nodes(3), *gang("a", "b", age=60), young()), terms)) == 3
    monkeypatch.setattr(node_reservation, "MOST_BEFORE", 1)
    assert len(after(world(*full_nodes(3), *gang("a", "b", age=60), young()), terms)) == 2


def test_nodes_of_young_jobs_do_not_count_against_one_that_starves():
    cluster = world(*full_nodes(4), *(young(f"young {name}", namespace=name) for name in ("d", "e")))
    terms = replace(AHEAD, max_nodes_percent=50)
    assert len(after(cluster, terms)) == 2
    for name in ("f", "g", "h"):
        cluster.upsert_pod(waiting(f"old {name}", namespace=name), now=0)
    assert set(after(cluster, terms)) == {"young d", "young e", "old f", "old g"}
    assert why_not(cluster, "h/old h", terms) == "NoNodes"
    of_old = world(*full_nodes(4), waiting("old"), waiting("too", namespace="b"), young("young", namespace="d"))
    assert set(after(of_old, terms)) == {"old", "too"}, "for a young one all count"


def test_nodes_that_have_had_room_for_long_are_given_up():
    cluster = world(sized(), runs("r"), young())
    after(cluster)
    [own] = cluster.reservations.reserved
    start = NOW + 60 * MINUTE
    cluster.upsert_reservation(replace(own, promised_start=start, promised_at=NOW))
    cluster.delete_pod("r")
    terms = replace(AHEAD, starving_after=90 * MINUTE)
    for seconds, reason in ((600, ""), (601, "Expired")):
        [decision] = decisions(cluster, terms, start + seconds).values()
        assert decision.reason == reason
    [starves] = decisions(cluster, AHEAD, start + 601).values()
    assert starves.places


@pytest.mark.parametrize("age", [60, 7200], ids=["it does not starve yet", "it starves"])
def test_other_jobs_with_reserved_nodes_are_looked_at_a_few_at_a_time(monkeypatch, age):
    cluster = world(*full_nodes(4), *(young(f"w{number}", namespace=f"w{number}") for number in range(4)))
    assert len(after(cluster)) == 4
    cluster.upsert_pod(young(age=age), now=0)
    [job] = [job for job in in_turn(cluster, AHEAD, NOW) if job.namespace == "a"]
    monkeypatch.setattr(node_reservation, "MEMBERS", 2)
    built, build = [], cluster.groups.job
    monkeypatch.setattr(cluster.groups, "job", lambda *key: built.append(key) or build(*key))
    so_far = [0, *(len(built) for _ in node_reservation.decide_steps(cluster, job, AHEAD, NOW))]
    assert max(now - before for before, now in pairwise(so_far)) == 2
    assert len({*built}) == 4
