"""The run time of a pod: the shortest of all that its objects say, and whether it is enforced. See docs/time.md."""

from dataclasses import replace

import pytest

from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.objects.batch_job import BatchJob
from policy.objects.constraints import Selector
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.pod import JobMember, Pod
from policy.objects.queue import Queue
from policy.objects.queued_job import PodSet, QueuedJob, stand_in
from policy.quota.admission import Rules
from policy.quota.elastic_quota import elastic_quota

MEMBER = JobMember("uid", "train")
POD = Pod("u", "a", "p", {"cpu": 1, "pods": 1}, job=MEMBER, group="podgroups/g")
JOB = BatchJob("a", "train", "uid", ours=True)
NOW = 1000.0


def times(pod=POD, job=None, group=0, queue=0, quota=0):
    cluster = Cluster()
    cluster.upsert_namespace(Namespace("a", queue="q"))
    cluster.upsert_group(Group("a", "podgroups/g", run_time=group))
    cluster.upsert_queue(Queue("q", run_time=queue))
    cluster.upsert_quota(elastic_quota("a", "e", 0.0, {}, {}, quota))
    if job is not None:
        cluster.batch_jobs.upsert(job)
    return cluster.run_times


def declared(pod=POD, **said):
    """After how many seconds a pod that starts now ends, and whether that is enforced."""
    known = times(pod, **said)
    end = known.ends_at(pod, NOW)
    return end and (end - NOW, known.ends_at(pod, NOW, enforced=True) == end)


def with_job(**fields):
    return replace(JOB, **fields)


@pytest.mark.parametrize(
    ("pod", "said", "found"),
    [
        ({}, {}, None),
        ({"deadline": 60}, {}, (60, True)),
        ({}, {"job": with_job(deadline=60)}, (60, True)),
        ({"run_time": 60}, {}, (60, False)),
        ({}, {"group": 60}, (60, False)),
        ({}, {"job": with_job(run_time=60)}, (60, False)),
        ({}, {"queue": 60}, (60, False)),
        ({}, {"quota": 60}, (60, False)),
        ({"deadline": 90, "run_time": 60}, {}, (60, False)),
        ({"deadline": 60, "run_time": 90}, {}, (60, True)),
        ({"run_time": 90}, {"group": 60, "job": with_job(run_time=70, deadline=80)}, (60, False)),
        ({"run_time": 90}, {"queue": 60, "quota": 50}, (90, False)),
        ({"deadline": 90}, {"queue": 60}, (90, True)),
        ({}, {"queue": 60, "quota": 50}, (50, False)),
        ({}, {"queue": -1, "quota": 50}, (50, False)),
        ({"run_time": -1}, {"group": 60, "queue": 60}, None),
        ({"deadline": 90}, {"group": -1, "job": with_job(run_time=60)}, (90, True)),
    ],
)
def test_the_shortest_counts_and_a_default_only_where_nothing_else_is_said(pod, said, found):
    assert declared(replace(POD, **pod), **said) == found


@pytest.mark.parametrize(
    "job", [with_job(deadline=60, ours=False), with_job(deadline=60, uid="another")], ids=["another's", "namesake"]
)
def test_a_deadline_counts_only_of_the_pods_job_and_if_it_is_surely_enforced(job):
    assert declared(job=job) is None


def test_enforced_is_only_a_deadline():
    pod = replace(POD, run_time=30, deadline=60)
    assert times(job=with_job(deadline=90, run_time=20)).ends_at(pod, NOW, enforced=True) == NOW + 60
    assert times().ends_at(POD, NOW, enforced=True) is None


@pytest.mark.parametrize(
    ("pod", "job", "end"),
    [
        ({"run_time": 60}, None, 1060),
        ({"run_time": 60, "started": 990.0}, None, 1050),
        ({"started": 990.0}, with_job(deadline=60, started=900.0), 960),
        ({"started": 990.0}, with_job(deadline=60), 1050),
        ({"started": 990.0, "deadline": 20}, with_job(deadline=60, started=980.0), 1010),
        ({"started": 990.0, "deadline": 70}, with_job(deadline=60, started=980.0), 1040),
        ({}, None, None),
    ],
)
def test_a_pod_ends_by_the_first_of_its_times_each_from_its_own_start(pod, job, end):
    assert times(job=job).ends_at(replace(POD, **pod), NOW) == end


def test_an_enforced_end_leaves_out_what_is_only_said():
    pod = replace(POD, run_time=10, deadline=60)
    assert times().ends_at(pod, NOW) == 1010
    assert times().ends_at(pod, NOW, enforced=True) == 1060


@pytest.mark.parametrize(
    ("pod", "said", "whose"),
    [
        ({"run_time": -1}, {}, "annotation quotaward.dev/run-time of the pod"),
        ({}, {"group": -1}, "annotation quotaward.dev/run-time of its PodGroup g"),
        ({}, {"job": with_job(run_time=-1)}, "annotation quotaward.dev/run-time of its Job train"),
        ({"run_time": 5}, {"queue": -1}, ""),
    ],
)
def test_people_are_told_whose_annotation_is_unreadable(pod, said, whose):
    assert times(**said).unreadable(replace(POD, **pod)) == whose


def test_the_stand_in_of_a_job_runs_as_long_as_its_longest_pods():
    sets = tuple(PodSet(replace(POD, deadline=deadline), 1) for deadline in (60, 90))
    queued = QueuedJob("a", "train", "uid", sets, 2, suspended=True)
    pod = stand_in(queued, [1, 1], at_gate=True, begins=True)
    assert declared(pod) == (90, True)
    assert declared(pod, job=with_job(deadline=70)) == (70, True)


EVICTING = Rules(run_time_grace=20.5)
AFTER = 26
"""Seconds of grace, and until a look finds it, in whole seconds."""


def evicting(pod=POD, *, rules=EVICTING, budget=False, governed=True, **said):
    """After how many seconds a pod that starts now has surely ended where pods are evicted."""
    known = times(pod, **said)
    cluster = known._cluster
    cluster.rules = rules
    if budget:
        cluster.upsert_budget(Budget("a", "b", Selector(), 1))
    if not governed:
        cluster.delete_quota("a", "e")
        cluster.upsert_namespace(Namespace("a"))
    end = known.surely_ends_at(pod, NOW)
    assert end is None or known.ends_at(pod, NOW, enforced=True) == end
    return end and end - NOW


@pytest.mark.parametrize(
    ("pod", "more", "found"),
    [
        ({"run_time": 60}, {}, 60 + AFTER),
        ({}, {"group": 60}, 60 + AFTER),
        ({}, {"job": with_job(run_time=60)}, 60 + AFTER),
        ({}, {"queue": 60}, 60 + AFTER),
        ({}, {"quota": 60}, 60 + AFTER),
        ({"run_time": 60, "deadline": 70}, {}, 70),
        ({"run_time": 60, "deadline": 100}, {}, 60 + AFTER),
        ({}, {}, None),
        ({"run_time": -1}, {}, None),
        ({"run_time": 60, "preemptible": False}, {}, None),
        ({"run_time": 60, "owner": "DaemonSet"}, {}, None),
        ({"run_time": 60, "priority": 2 * 10**9}, {}, None),
        ({"run_time": 60}, {"budget": True}, None),
        ({"run_time": 60}, {"governed": False}, None),
        pytest.param({"run_time": 60}, {"rules": Rules()}, None, id="nothing is enforced"),
    ],
    ids=str,
)
def test_what_is_said_is_enforced_where_pods_that_outlive_it_are_surely_evicted(pod, more, found):
    assert evicting(replace(POD, **pod), **more) == found


def test_a_limit_on_run_times_is_enforced_likewise():
    known = times()
    known._cluster.rules = EVICTING
    known._cluster.upsert_quota(replace(elastic_quota("a", "e", 0.0, {}, {}), max_run_time=60))
    assert known.surely_ends_at(POD, NOW) == NOW + 60 + AFTER
    assert known.surely_ends_at(replace(POD, run_time=30), NOW) == NOW + 30 + AFTER
    assert known.surely_ends_at(replace(POD, run_time=90), NOW) == NOW + 60 + AFTER
