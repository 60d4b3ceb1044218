"""Jobs that are changed while they start: nothing is kept for their pods beyond what the rules have granted."""

from dataclasses import replace

import pytest

from policy.objects.constraints import Constraints
from policy.objects.queued_job import QueuedJob
from tests.unit.cluster.test_queued_jobs import PATIENCE, is_seen_started, its_pod, job, of_two, queued, started, used

STAND_IN = "job/uid-train"


def resized(of: QueuedJob, *counts: int, cpu: int = 1, **rest) -> QueuedJob:
    """The Job with other numbers of pods, and of cores of each."""
    larger = {"cpu": cpu * 1000, "pods": 1}
    sets = [replace(each, pod=replace(each.pod, request=larger)) if cpu > 1 else each for each in of.pod_sets]
    sets = [replace(each, count=count) for each, count in zip(sets, counts, strict=True)]
    return replace(of, pod_sets=tuple(sets), parallelism=counts[0] if len(counts) == 1 else 0, **rest)


def starting(of: QueuedJob):
    """A cluster in which a Job was just seen started."""
    cluster = queued(of, most=8)
    assert started(cluster) == [of.name]
    is_seen_started(cluster, of)
    return cluster


@pytest.mark.parametrize(
    "change",
    [{"counts": 10**6}, {"counts": 2, "cpu": 50}, {"counts": 10**6, "least": 1, "asked": 10**6, "lacking": 10**6}],
    ids=["more pods", "larger pods", "elastic now"],
)
def test_a_job_that_grows_while_it_starts_keeps_what_was_granted(change):
    train, rest = job("train", 2), dict(change)
    cluster = starting(train)
    grown = resized(train, rest.pop("counts"), **rest)
    is_seen_started(cluster, grown, now=1)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.pods) == (2, 2)
    cluster.upsert_pod(its_pod(train, 0), now=2)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.pods) == (2, 1)
    cluster.tick(1 + PATIENCE)
    assert [(missing, pods) for _, missing, pods in cluster.queued_jobs.late] == [(1, 2)]


def test_a_job_of_another_kind_may_lose_templates_and_gets_no_others():
    of = of_two(leader=2, workers=3)
    cluster = starting(of)
    is_seen_started(cluster, resized(of, 9, 2), now=1)
    assert used(cluster) == 4, "one worker less, and no leader more"
    is_seen_started(cluster, resized(of, 9, 9), now=2)
    assert used(cluster) == 4, "room that was released is not kept again"
    is_seen_started(cluster, replace(of, pod_sets=(*resized(of, 9, 9).pod_sets, *of.pod_sets)), now=3)
    assert used(cluster) == 4


def test_a_job_whose_pods_fit_other_nodes_now_is_no_longer_refused_like_others():
    leader, workers = of_two().pod_sets
    nowhere = replace(workers, pod=replace(workers.pod, constraints=Constraints(node_selector=(("disk", "ssd"),))))
    early, late = replace(of_two("early"), pod_sets=(leader, nowhere)), of_two("late")
    cluster = queued(early, replace(late, pod_sets=(leader, nowhere), created=1))
    assert started(cluster) == []
    cluster.queued_jobs.upsert(replace(late, created=1), now=0)
    assert started(cluster) == ["late"]


def test_a_job_that_grows_before_it_is_started_stands_in_line_with_its_new_size():
    train = job("train", 2)
    cluster = queued(train, most=8)
    assert started(cluster) == ["train"]
    cluster.queued_jobs.upsert(resized(train, 9), now=1)
    kept = cluster.pods[STAND_IN].stands_for
    assert (used(cluster), kept.parallelism, kept.pods) == (2, 2, 2), "so that the API server refuses the start"
    cluster.gate_admission.regate(STAND_IN, now=2)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.pods, started(cluster, 2)) == (0, 9, [])
    cluster.queued_jobs.upsert(resized(train, 8), now=3)
    assert (started(cluster, 3), used(cluster)) == (["train"], 8), "the grant before does not count any more"
    cluster.queued_jobs.upsert(resized(train, 8, suspended=False), now=3)
    assert used(cluster) == 8
