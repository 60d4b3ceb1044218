"""Jobs that are lowered: as many of their pods count as going as have still to go, whichever the controller chooses."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.cluster.lowered import PATIENCE, REST
from policy.objects.batch_job import BatchJob
from policy.objects.pod import JobMember, Pod
from policy.objects.reservation import PodName, Reservation
from tests.unit.given import cluster_of, pod
from tests.unit.given_nodes import node

JOB = BatchJob("a", "train", "uid-train", ours=True, parallelism=4, runs=4, least=1, asked=4)


def member(number: int, **rest) -> Pod:
    name = f"train-{number}"
    return replace(pod(name, node="n1"), job=JobMember(JOB.uid, JOB.name), **rest)


@pytest.fixture
def cluster() -> Cluster:
    found = cluster_of(node("n1", size={"cpu": 9, "pods": 99}))
    found.batch_jobs.upsert(JOB)
    for number in range(4):
        found.upsert_pod(member(number), now=0)
    return found


def asked(cluster: Cluster) -> list[int]:
    return [number for number in range(4) if cluster.leaving.has_been_asked(f"train-{number}")]


def lower(cluster: Cluster, to: int, *victims: int) -> None:
    cluster.lowered.begin(JOB, to, [member(number) for number in victims], now=0)


def test_the_victims_are_asked_and_the_job_runs_fewer_at_once(cluster):
    lower(cluster, 2, 0, 1)
    assert asked(cluster) == [0, 1]
    found = cluster.batch_jobs.get(JOB.key)
    assert (found.runs, found.parallelism, found.spare) == (2, 2, 1)


@pytest.mark.parametrize("goes", ["terminating", "finished", "deleted"])
def test_a_pod_that_goes_unasked_takes_the_place_of_one_that_was_asked(cluster, goes):
    lower(cluster, 2, 0, 1)
    if goes == "deleted":
        cluster.delete_pod("train-3")
    else:
        cluster.upsert_pod(member(3, **{goes: True}), now=1)
    assert len(set(asked(cluster)) & {0, 1}) == 1
    assert cluster.lowered.is_taken_from(JOB)
    cluster.upsert_pod(member(2, terminating=True), now=1)
    assert not set(asked(cluster)) & {0, 1}
    assert not cluster.lowered.is_taken_from(JOB)


def test_each_pod_that_goes_is_counted_once(cluster):
    lower(cluster, 2, 0, 1)
    for deletion_time in (5.0, 6.0):
        cluster.upsert_pod(member(3, terminating=True, deletion_time=deletion_time), now=1)
    cluster.delete_pod("train-3")
    assert len(set(asked(cluster)) & {0, 1}) == 1


def test_those_that_were_asked_go_themselves(cluster):
    lower(cluster, 2, 0, 1)
    for number in (0, 1):
        cluster.upsert_pod(member(number, terminating=True), now=1)
    assert asked(cluster) == [0, 1]
    assert not cluster.lowered.is_taken_from(JOB)


def test_while_more_go_than_were_asked_for_nobody_may_stay_too_early(cluster):
    """As where pods of the Job are on no node: these go first."""
    lower(cluster, 1, 0)
    for number in (2, 3):
        cluster.upsert_pod(member(number, terminating=True), now=1)
        assert 0 in asked(cluster)
    cluster.upsert_pod(member(1, terminating=True), now=1)
    assert 0 not in asked(cluster)


def test_what_could_not_be_lowered_is_as_before(cluster):
    lower(cluster, 2, 0, 1)
    cluster.lowered.undo(JOB)
    assert (asked(cluster), cluster.batch_jobs.get(JOB.key)) == ([], JOB)


def test_pods_that_do_not_go_are_not_waited_for_for_ever(cluster):
    lower(cluster, 3, 0)
    cluster.tick(PATIENCE - 1)
    assert asked(cluster) == [0]
    cluster.tick(PATIENCE)
    assert (asked(cluster), cluster.lowered.is_taken_from(JOB)) == ([], False)


def test_pods_of_other_jobs_change_nothing(cluster):
    lower(cluster, 3, 0)
    other = replace(member(9), job=JobMember("other", "other"), terminating=True)
    cluster.upsert_pod(other, now=1)
    cluster.upsert_pod(pod("alone", node="n1", terminating=True), now=1)
    assert asked(cluster) == [0]


def test_a_job_is_taken_from_while_a_plan_names_a_pod_of_it(cluster):
    cluster.upsert_pod(pod("owner", "a"), now=0)
    victim = PodName("a", "train-2", "train-2")
    cluster.upsert_reservation(Reservation("r", PodName("a", "owner", "owner"), "n1", (victim,), 0.0))
    assert cluster.lowered.is_taken_from(JOB)
    assert not cluster.lowered.is_taken_from(replace(JOB, uid="other"))


def test_a_lowered_job_grows_again_only_after_a_while_or_once_it_was_suspended(cluster):
    lower(cluster, 3, 0)
    cluster.tick(REST - 1)
    assert cluster.lowered.rests(JOB)
    cluster.tick(REST)
    assert not cluster.lowered.rests(JOB)
    lower(cluster, 3, 0)
    cluster.lowered.suspended(JOB.uid)
    assert not cluster.lowered.rests(JOB)
