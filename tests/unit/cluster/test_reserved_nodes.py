"""Questions about reserved nodes take no more work where a Job that waits as a whole has many of them."""

from dataclasses import replace
from random import Random

import pytest

from policy.objects.queued_job import uid_of_member, uid_of_stand_in
from policy.objects.resources import total
from policy.queueing.ungating import has_room_for_all
from tests.unit.app.lines import lines_of, lines_once
from tests.unit.given_jobs import NOW, sized, sized_pod
from tests.unit.reserve.test_node_reservation_for_jobs import its_pod, job, let_go, queued
from tests.unit.reserve.test_promises import promise

AN_HOUR = 3600
NOTHING_NEW = 20
"""Lines that find out that no node is reserved for somebody else than before."""


def reserving(number, *more):
    """Of twice as many nodes, each with a core left, so many are reserved for a Job and its start is promised."""
    names = [f"n{each}" for each in range(2 * number)]
    pods = [replace(sized_pod(f"r-{name}", 3, node=name, deadline=AN_HOUR), started=NOW - 10) for name in names]
    cluster = queued(*(sized(name, cpu=4) for name in names), *pods, jobs=[job(pods=number), *more])
    promise(cluster)
    assert len(cluster.reservations.reserved) == number
    return cluster


def filtered(cluster, asking):
    """How many lines it takes to filter all nodes for a pod, as it is now, whom nobody has granted anything."""
    names = list(cluster.table.names)
    cluster.withdraw(asking.uid)
    return lines_once(cluster.filter, asking, 1.0, lambda: names)


def begun(number):
    """A Job that has started: its nodes are empty, and none of its pods has come."""
    cluster = reserving(number)
    for each in range(2 * number):
        cluster.delete_pod(f"r-n{each}")
    assert let_go(cluster) == ["big"]
    cluster.queued_jobs.upsert(replace(job(pods=number), suspended=False), 0)
    return cluster


@pytest.mark.parametrize("leaving", [0, 300])
def test_a_pod_of_the_job_that_changes_costs_others_next_to_nothing(leaving):
    cluster, asking = reserving(60), sized_pod("x")
    for number in range(1, leaving + 1):
        cluster.upsert_pod(replace(its_pod(number), terminating=True), 0)

    def steps(pod):
        taken = []
        for label in "abc":
            cluster.upsert_pod(replace(pod, labels={"label": label}), 0)
            taken.append(filtered(cluster, asking))
        return taken[-1]

    assert steps(its_pod(0, gated=True)) <= steps(sized_pod("other", gated=True)) + NOTHING_NEW


def test_a_pod_that_comes_to_its_node_costs_no_more_where_many_are_reserved():
    def steps(number):
        cluster, asking, taken = begun(number), sized_pod("x"), []
        own = [each.node for each in cluster.reservations.reserved]
        for each, node in enumerate(own[:5]):
            cluster.upsert_pod(pod := its_pod(each), 0)
            for which in (pod, asking):
                taken.append(filtered(cluster, which))  # noqa: PERF401 - what comes between matters
            cluster.upsert_pod(replace(pod, node=node), 0)
        assert sum(map(cluster.reservations.is_reserved, cluster.reservations.reserved)) == number - 5
        return taken[4:]

    assert steps(60) == steps(10)


def in_pairs():
    """A Job of six pods has started, and a node of eight cores is reserved for each two of them."""
    names = [f"n{each}" for each in range(3)]
    running = [replace(sized_pod(f"r-{name}", 7, node=name), started=NOW - 10) for name in names]
    cluster = queued(*(sized(name, cpu=8) for name in names), *running, jobs=[job(pods=6)])
    assert [len(cluster.reservations.nodes.on(name).members) for name in names] == [2, 2, 2]
    for each in running:
        cluster.delete_pod(each.uid)
    assert let_go(cluster) == ["big"]
    cluster.queued_jobs.upsert(replace(job(pods=6), suspended=False), 0)
    return cluster


def test_a_trial_for_a_namesake_leaves_a_job_the_nodes_that_are_reserved_for_it():
    cluster = in_pairs()
    cluster.upsert_node(sized("n3", cpu=8))
    cluster.upsert_pod(pod := its_pod(0), 0)
    cluster.queued_jobs.gone(("a", "big"))
    cluster.queued_jobs.upsert(namesake := replace(job(pods=1), uid="uid-new"), 0)
    [one, *_] = cluster.reservations.reserved
    uid = uid_of_member(uid_of_stand_in(namesake.uid), 0)
    other = replace(one, name="other", pod=replace(one.pod, uid=uid), node="n3", since=one.since + 1)
    assert cluster.reservations.nodes.job_of(pod) == ("a", one.job)
    with cluster.reservations.assumed([other]):
        assert cluster.reservations.nodes.job_of(pod) != ("a", one.job)
    assert cluster.reservations.nodes.job_of(pod) == ("a", one.job)


def change(cluster, random):
    """Any change of the Job, of its pods, or of what is reserved for it."""
    reserved, number = cluster.reservations.reserved, random.randrange(8)
    what = random.choice(["delete", "upsert", "upsert", "upsert", "lift", "suspend", "start", "gone"])
    if what == "delete":
        for each in range(8 if random.random() < 0.3 else 1):
            cluster.delete_pod(its_pod(number + each).uid)
    elif what == "lift" and len(reserved) > 3:
        cluster.delete_reservation(random.choice(sorted(each.name for each in reserved)))
    elif what == "suspend":
        cluster.queued_jobs.upsert(job(pods=random.choice([2, 6]), cpu=random.choice([2, 4])), 0)
    elif what == "start":
        let_go(cluster)
    elif what == "gone":
        cluster.queued_jobs.gone(("a", "big"))
    elif what == "upsert":
        pod = its_pod(number, node=random.choice(["", "n0", "n1", "n2"]))
        pod = replace(pod, terminating=random.random() < 0.2, finished=random.random() < 0.1)
        cluster.upsert_pod(replace(pod, job=random.choice([pod.job] * 9 + [replace(pod.job, uid="other")])), 0)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_reserved_on_each_node_is_right_after_any_change(seed):
    random, cluster = Random(seed), in_pairs()
    kept, table = cluster.reservations, cluster.table
    for _ in range(100):
        change(cluster, random)
        own = [each for each in cluster.pods.values() if each.job and each.job.uid == "uid-big"]
        for name in table.names:
            there = [each for each in kept.reserved if each.node == name]
            stand = sum(each.node == name and each.assigned and not each.terminating for each in own)
            waits = "job/uid-big" in cluster.gates
            assert sum(map(cluster.job_members.has_come, there)) == (0 if waits else min(stand, len(there)))
            still = [each for each in there if kept.is_reserved(each)]
            on, need = kept.nodes.on(name), total(map(kept.request_of, still))
            assert ((on.members, on.need) if on else ([], {})) == (still, need)
            free, site = kept.nodes.free_beside(sized_pod("x"))[table.rows[name]], table.site(name)
            assert free[table.columns["cpu"]] == 8000 - site.used.get("cpu", 0) - need.get("cpu", 0)


@pytest.mark.parametrize("rest", [{}, {"deadline": 60}], ids=["endless", "gone in time"])
def test_room_beside_many_reserved_nodes_takes_few_lines(rest):
    def steps(number):
        cluster = reserving(number, job("late", pods=1, cpu=1, age=5, **rest))
        return lines_of(lambda uid: has_room_for_all(cluster, cluster.pods[uid]), "job/uid-late")

    assert steps(60) == steps(6)


def test_what_is_reserved_on_nodes_that_are_gone_takes_no_room():
    cluster = reserving(2, job("late", pods=1, cpu=1, age=5))
    stand_in = cluster.pods["job/uid-late"]
    assert has_room_for_all(cluster, stand_in)
    for name in {each.node for each in cluster.reservations.reserved}:
        cluster.delete_node(name)
    assert has_room_for_all(cluster, stand_in)
