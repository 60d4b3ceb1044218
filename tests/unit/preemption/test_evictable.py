"""What is lent is lent for a while: pods are no victims of others until they have run for their min-run-time."""

from collections import Counter
from dataclasses import replace

import pytest

from policy.cluster.protection import Protection
from policy.objects.batch_job import BatchJob
from policy.objects.group import Group
from policy.objects.job_kind import JobKind
from policy.objects.membership import Namespace
from policy.objects.pod import JobMember
from policy.objects.run_time import UNREADABLE
from policy.preemption import gang_mates
from policy.preemption.eviction_trial import eviction_trial
from policy.preemption.foreseen import foreseen_steps, time_text
from policy.preemption.plans import NoPlan
from policy.preemption.victims import plan, victims_on
from policy.quota.admission import Rules
from policy.simulate.snapshot import copy_steps, snapshot
from policy.stepwise import at_once
from tests.unit.given import cluster_of, pod, quota
from tests.unit.given_nodes import node
from tests.unit.given_queues import queue
from tests.unit.given_queues import world as world_of_queues

NOW = 1000.0


def run(uid, started, namespace="b", **rest):
    return pod(uid, namespace, node="n1", started=float(started), **rest)


def me(cpu=1, namespace="a", **rest):
    return pod("me", namespace, request={"cpu": cpu}, **rest)


def lent(*running, seconds=100):
    """Two of four cores of a are lent to b, whose quota has this min-run-time."""
    loans = quota("a", least={"cpu": 2}), replace(quota("b", least={"cpu": 2}), min_run_time=seconds)
    cluster = cluster_of(node(size={"cpu": 4, "pods": 9}), *loans, *running)
    cluster.protection.pass_time(NOW)
    return cluster


def gone(cluster, preemptor):
    """Who has to go by a plan, which are those on the only node, too; or when some of those may that may not now."""
    found = plan(cluster, preemptor)
    on_node = [{victim.uid for victim in each.victims} for each in victims_on(cluster, preemptor, ["n1"])]
    if isinstance(found, NoPlan):
        assert not on_node
        return found.moments
    victims = {victim.uid for victim in found.victims}
    assert on_node == [victims]
    return victims


@pytest.mark.parametrize(
    ("of_quota", "of_pod", "started", "expected"),
    [
        (100, 0, 900, {"b4"}),
        (100, 0, 901, (1001,)),
        (100, 50, 950, {"b4"}),
        (100, 50, 951, (1001,)),
        (100, 500, 900, {"b4"}),
        (100, UNREADABLE, 901, (1001,)),
        (100, 0, 5000, (1100,)),
        (0, 500, 999, {"b4"}),
    ],
    ids=[
        "has run that long",
        "a second less",
        "the pod asks for less",
        "it has not run that long",
        "the pod cannot ask for more",
        "what it asks for cannot be read",
        "a node whose clock is ahead",
        "a pod alone cannot ask",
    ],
)
def test_a_borrower_stays_until_it_has_run_for_its_min_run_time(of_quota, of_pod, started, expected):
    others = [run(f"b{number}", 999) for number in (1, 2, 3)] if of_quota > 0 else [run("b3", 1), run("b2", 1)]
    cluster = lent(*others, run("b4", started, min_run_time=of_pod), seconds=of_quota)
    found = gone(cluster, me(1 if of_quota > 0 else 2))
    assert found == expected if isinstance(expected, set) else set(expected) <= set(found)


def test_who_is_not_started_stays_from_when_it_was_seen_there_and_not_for_ever():
    cluster = lent(*(run(f"b{number}", 1090) for number in (1, 2, 3)))
    for later, expected in ((0, {1100}), (50, {1100}), (100, {"b4"})):
        cluster.protection.pass_time(NOW + later)
        cluster.upsert_pod(run("b4", 0, version=later + 1), NOW + later)
        assert expected <= set(gone(cluster, me()))


def test_within_its_own_namespace_priority_decides_as_before():
    cluster = lent(*(run(f"b{number}", 999) for number in range(4)))
    assert gone(cluster, me(1, "b", priority=1)) == {"b3"}


def test_what_can_no_longer_be_read_stays_in_force_and_ends_with_the_quota():
    cluster = lent(*(run(f"b{number}", 999) for number in range(4)))
    cluster.upsert_quota(replace(quota("b", least={"cpu": 2}), min_run_time=UNREADABLE))
    assert gone(cluster, me()) == (1099,)
    assert gone(at_once(copy_steps(snapshot(cluster, 0.0))), me()) == (1099,)
    cluster.upsert_quota(quota("b", least={"cpu": 2}))
    assert gone(cluster, me()) == {"b3"}


def test_what_could_never_be_read_protects_until_it_can_be():
    cluster = lent(*(run(f"b{number}", 1) for number in (1, 2, 3)), run("b4", 2), seconds=UNREADABLE)
    found = plan(cluster, me())
    assert (found.reason, found.moments) == ("protected", ())
    assert found.text.endswith("as long as min-run-time protects some pods")
    assert gone(cluster, me()) == gone(at_once(copy_steps(snapshot(cluster, 0.0))), me()) == ()
    assert at_once(foreseen_steps(cluster, me(), found.moments)) is None
    cluster.upsert_pod(run("b4", 2, min_run_time=500, version=2), NOW)
    assert gone(cluster, me()) == {"b4"}, "it asks for less"
    cluster.upsert_pod(run("b4", 2, version=3), NOW)
    cluster.upsert_quota(replace(quota("b", least={"cpu": 2}), min_run_time=600))
    assert gone(cluster, me()) == {"b4"}


@pytest.mark.parametrize("of", ["q2", "top"])
def test_a_queue_and_those_above_it_protect_their_pods(of):
    queues = [queue("q1"), queue("top"), queue("q2", parent="top")]
    queues = [replace(each, min_run_time=100) if each.name == of else each for each in queues]
    cluster = world_of_queues(*queues, "a:q1", "b:q2", me(), *(run(f"b{number}", 950) for number in range(4)), cpu=4)
    cluster.protection.pass_time(NOW)
    assert gone(cluster, me()) == (1050,)
    cluster.protection.pass_time(1050)
    assert gone(cluster, me()) == {"b3"}


def test_a_gang_that_cannot_do_without_a_member_stays_until_its_oldest_may_go():
    members = [run("g1", 500, group="x/g"), run("g2", 950, group="x/g"), *(run(f"b{n}", 999) for n in (1, 2))]
    cluster = lent(*members)
    cluster.upsert_group(Group("b", "x/g", 2))
    assert gone(cluster, me()) == {"g1", "g2"}, "new members would protect it for ever"
    cluster.upsert_pod(run("g1", 940, group="x/g"), 0)
    assert gone(cluster, me()) == (1040, 1050, 1099)


def test_a_gang_stays_for_the_member_that_is_protected_longest():
    shorter = run("g1", 940, group="x/g", min_run_time=10)
    cluster = lent(shorter, run("g2", 950, group="x/g"), *(run(f"b{n}", 999) for n in (1, 2)))
    assert gone(cluster, me()) == {"g1"}
    cluster.upsert_group(Group("b", "x/g", 2))
    assert gone(cluster, me()) == (1040, 1050, 1099)


@pytest.mark.parametrize("spare_jobs", [False, True])
def test_a_gang_is_asked_once_and_not_for_each_member(monkeypatch, spare_jobs):
    looked_at = Counter()

    def count(module, name, of):
        real = getattr(module, name)

        def counting(*args):
            looked_at[name, of(*args)] += 1
            return real(*args)

        monkeypatch.setattr(module, name, counting)

    count(Protection, "_least_for", lambda _, pod: pod.uid)
    count(gang_mates, "exempt_from_eviction", lambda _, pod: pod.uid)
    members = [pod(f"g{n:02}", "b", node="n1", started=990.0, group="x/g", request={"cpu": 1}) for n in range(40)]
    loans = quota("a", least={"cpu": 40}), replace(quota("b"), min_run_time=100)
    rules = Rules(spare_jobs=spare_jobs)
    cluster = cluster_of(node(size={"cpu": 40, "pods": 99}), *loans, *members, rules=rules)
    cluster.upsert_group(Group("b", "x/g", 40))
    cluster.protection.pass_time(NOW)
    assert plan(cluster, me()).moments == (1090,)
    cluster.protection.pass_time(1090)
    assert len(plan(cluster, me()).victims) == 40
    assert {name for name, _ in looked_at} == {"_least_for", "exempt_from_eviction"}
    assert max(looked_at.values()) <= 30


def test_of_a_gang_those_go_along_that_are_not_taken_yet():
    cluster = lent(*(run(f"g{number}", 500, group="x/g") for number in range(4)))
    cluster.upsert_group(Group("b", "x/g", 3))
    with eviction_trial(cluster, me()) as trial:
        for taken, along in (("g0", {"g2", "g3"}), ("g3", {"g0", "g2"})):
            trial.take(cluster.pods[taken])
            assert {other.uid for other in trial.gangs.needing(cluster.pods["g1"])} == along
            trial.taken.give_back_all()


def of_job(uid, started, job="train"):
    return run(uid, started, job=JobMember(f"uid of {job}", job))


def batch_job(name="train", **rest):
    return BatchJob("b", name, f"uid of {name}", **{"ours": True} | rest)


@pytest.mark.parametrize(
    ("started", "expected"),
    [(900, {"b1", "b2", "b3", "b4"}), (940, (1040,)), (5000, (1100,)), (0, (1050,))],
    ids=["has run that long", "is too young", "a clock that is ahead", "not known: its first pod"],
)
def test_a_job_that_is_taken_back_as_a_whole_stays_for_its_own_start(started, expected):
    cluster = lent(*(of_job(f"b{number}", 940 + 10 * number) for number in (1, 2, 3)), of_job("b4", 999))
    cluster.upsert_namespace(Namespace("b", queues_jobs=True))
    cluster.batch_jobs.upsert(batch_job(started=float(started)))
    found = plan(cluster, me())
    if isinstance(expected, tuple):
        assert found.moments == expected
    else:
        assert {victim.uid for victim in found.victims} <= expected, "new pods would protect it for ever"


def test_of_a_job_without_a_start_only_pods_count_that_run_and_go_with_it():
    cluster = lent(of_job("b1", 500), *(of_job(f"b{number}", 980) for number in (2, 3, 4)))
    cluster.upsert_namespace(Namespace("b", queues_jobs=True))
    cluster.batch_jobs.upsert(batch_job())
    assert not isinstance(plan(cluster, me()), NoPlan)
    cluster.batch_jobs.stayed.add("b1")
    cluster.upsert_pod(replace(cluster.pods["b1"], min_run_time=600), 0)
    cluster.upsert_quota(replace(quota("b", least={"cpu": 2}), min_run_time=600))
    assert plan(cluster, me()).moments == (1100, 1580)
    cluster.upsert_pod(replace(cluster.pods["b1"], finished=True), 0)
    cluster.upsert_pod(of_job("b1", 970), 0)
    assert plan(cluster, me()).moments == (1570, 1580)
    cluster.delete_pod("b1")
    cluster.upsert_pod(run("c1", 999), 0)
    assert plan(cluster, me()).moments == (1580, 1599)


JOB_SET = JobKind("JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", ("spec", "suspend"))


@pytest.mark.parametrize("order", ["owners first", "pods first"])
@pytest.mark.parametrize("known", [True, False], ids=["starts of Jobs are known", "only pods are"])
def test_a_job_above_others_stays_for_the_first_of_these_in_any_order(order, known):
    above = BatchJob("b", "set", "s", ours=True, kind=JOB_SET)
    starts = {"j1": 930.0, "j2": 950.0} if known else dict.fromkeys(("j1", "j2"), 0.0)
    jobs = [batch_job(name, ours=False, controller="s", started=start) for name, start in starts.items()]
    ended = batch_job("j0", ours=False, controller="s", started=1.0, ended=True)
    foreign = replace(ended, namespace="c", uid="foreign", ended=False)
    pods = [of_job("b1", 940, "j1"), *(of_job(f"b{number}", 960, "j2") for number in (2, 3, 4))]
    cluster = lent(*(pods if order == "pods first" else ()))
    cluster.upsert_namespace(Namespace("b", queues_jobs=True))
    for each in (ended, foreign, *jobs):
        cluster.batch_jobs.upsert(each)
    cluster.upsert_other_job(above)
    for each in pods if order == "owners first" else ():
        cluster.upsert_pod(each, 0)
    assert plan(cluster, me()).moments == ((1030,) if known else (1040,))
    cluster.batch_jobs.delete(("b", "j1"))
    cluster.delete_pod("b1")
    cluster.upsert_pod(of_job("b1", 980, "j2"), 0)
    assert plan(cluster, me()).moments == (1040,)


def test_a_job_that_replaces_all_of_its_pods_in_time_is_not_protected_for_ever():
    above, names = BatchJob("b", "set", "s", ours=True, kind=JOB_SET), ("b1", "b2", "b3", "b4")
    cluster = lent()
    cluster.upsert_namespace(Namespace("b", queues_jobs=True))
    cluster.upsert_other_job(above)

    def replaced(at):
        cluster.protection.pass_time(at)
        for name in names:
            cluster.delete_pod(name)
        for name in names:
            cluster.upsert_pod(replace(run(name, at), controller="s"), at)
        return plan(cluster, me())

    assert (replaced(910).moments, replaced(960).moments) == ((1010,), (1010,))
    assert at_once(copy_steps(snapshot(cluster, 0.0))).protection.since == {"s": 910}
    assert {victim.uid for victim in replaced(1010).victims} <= set(names)
    cluster.upsert_other_job(replace(above, can_be_suspended=False))
    replaced(1020)
    assert not cluster.protection.since, "it is suspended, and its pods go"
    cluster.upsert_other_job(above)
    assert replaced(1050).moments == (1150,), "it was resumed"
    assert cluster.protection.since


@pytest.mark.parametrize("order", ["job, owner, pod", "pod, owner, job", "pod, job, owner", "owner, pod, job"])
def test_the_first_start_of_a_pod_counts_for_its_job_whichever_is_seen_first(order):
    cluster, first = lent(), replace(run("b1", 910), controller="", job=JobMember("j", "j"))
    see = {
        "pod": lambda: cluster.upsert_pod(first, 910),
        "job": lambda: cluster.upsert_batch_job(BatchJob("b", "j", "j", controller="s")),
        "owner": lambda: cluster.upsert_other_job(BatchJob("b", "set", "s", ours=True, kind=JOB_SET)),
    }
    for each in order.split(", "):
        see[each]()
    assert cluster.protection.since == {"s": 910}


def ends(cluster, above):
    cluster.upsert_other_job(replace(above, ended=True))


def has_a_namesake(cluster, above):
    cluster.upsert_other_job(replace(above, uid="namesake"))


def is_deleted(cluster, above):
    cluster.delete_other_job(above.kind, above.key)


@pytest.mark.parametrize("how", [ends, has_a_namesake, is_deleted])
def test_the_first_start_of_a_job_of_another_kind_is_forgotten_with_it(how):
    above = BatchJob("b", "set", "s", ours=True, kind=JOB_SET)
    cluster = lent()
    cluster.upsert_other_job(above)
    cluster.upsert_pod(replace(run("b1", 910), controller="s"), 910)
    assert cluster.protection.since == {"s": 910}
    how(cluster, above)
    assert not cluster.protection.since


def test_the_first_moment_is_foreseen_at_which_enough_may_go():
    cluster = lent(*(run(f"b{number}", 940 + 10 * number) for number in range(4)))
    found = plan(cluster, me(2))
    assert found.moments == (1040, 1050, 1060, 1070)
    at, later = at_once(foreseen_steps(cluster, me(2), found.moments))
    assert (at, {victim.uid for victim in later.victims}) == (1050, {"b0", "b1"})
    assert at_once(foreseen_steps(cluster, me(3), found.moments)) is None, "beyond its min"
    assert at_once(foreseen_steps(cluster, me(2), ())) is None


def test_of_very_many_moments_the_one_told_is_never_too_early():
    cluster = lent(run("b0", 1), run("b1", 990), run("b2", 950), run("b3", 990))
    at, _ = at_once(foreseen_steps(cluster, me(2), [1000 + n for n in range(500)]))
    assert 1050 <= at <= 1058


@pytest.mark.parametrize(
    ("at", "told"),
    [(1, "00:01 UTC"), (51600, "14:20 UTC"), (86400, "00:00 UTC tomorrow"), (260000, "00:14 UTC in 3 days")],
)
def test_a_time_is_told_in_full_minutes_and_with_the_day_if_it_is_another(at, told):
    assert time_text(at, 0) == told


def test_who_was_seen_before_the_time_was_known_counts_from_then():
    cluster = lent(*(run(f"b{number}", 1090) for number in (1, 2, 3)), run("b4", 0))
    assert 1100 in gone(cluster, me())
