"""Which Jobs an eviction fails: rules of a podFailurePolicy, limits, and what is under way.

As kube-controller-manager counts: an evicted pod is one that failed, with the condition DisruptionTarget and the exit
code of a process that was killed or ended by SIGTERM.
"""

import pytest

from policy.objects.batch_job import (
    COUNT,
    FAIL_INDEX,
    FAIL_JOB,
    IGNORE,
    UNLIMITED,
    BatchJob,
    BatchJobs,
    FailureRule,
    response,
)
from policy.objects.pod import JobMember, Pod
from policy.preemption.losses import Losses, LostJobs, lost_jobs
from tests.unit.given import pod

DISRUPTION = frozenset({("DisruptionTarget", "True")})


def codes(action: str, *given: int, negated: bool = False) -> FailureRule:
    return FailureRule(action, frozenset(given), negated)


def disrupted(action: str, status: str = "True") -> FailureRule:
    return FailureRule(action, conditions=frozenset({("DisruptionTarget", status)}))


def member(uid: str, job: str = "train", *, of: str = "", failures: int = 0, tracked: bool = True, **rest) -> Pod:
    """A pod on a node that belongs to a Job whose UID is its name, unless more is said."""
    link = JobMember(of or job, job, failures, tracked)
    return pod(uid, **{"node": "n1", "owner": "Job", "job": link} | rest)


def job(name: str = "train", **rest) -> BatchJob:
    return BatchJob("a", name, name, **rest)


def jobs_with(*jobs: BatchJob, pods: tuple[Pod, ...] = ()) -> BatchJobs:
    known = BatchJobs()
    for each in jobs:
        known.upsert(each)
    for each in pods:
        known.see(each, None)
    return known


def failed_by(known: BatchJobs, *victims: Pod, going: tuple[Pod, ...] = ()) -> set[str]:
    return set(lost_jobs(known, victims, going).failing)


# Rules


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], COUNT),
        ([disrupted(IGNORE)], IGNORE),
        ([disrupted(IGNORE, "False")], COUNT),
        ([FailureRule(IGNORE, conditions=frozenset({("ConfigIssue", "True")}))], COUNT),
        ([disrupted(FAIL_JOB)], FAIL_JOB),
        ([disrupted(COUNT), disrupted(IGNORE)], COUNT),
        ([disrupted(IGNORE), codes(FAIL_JOB, 137)], IGNORE),
        ([codes(FAIL_JOB, 137), disrupted(IGNORE)], FAIL_JOB),
        ([codes(FAIL_JOB, 143), disrupted(IGNORE)], FAIL_JOB),
        ([codes(FAIL_JOB, 42), disrupted(IGNORE)], IGNORE),
        ([codes(FAIL_JOB, 0, 42, negated=True), disrupted(IGNORE)], FAIL_JOB),
        ([codes(FAIL_JOB, 137, 143, negated=True), disrupted(IGNORE)], IGNORE),
        ([codes(IGNORE, 137)], COUNT),
        ([codes(IGNORE, 137, 143)], IGNORE),
        ([codes(IGNORE, 143), codes(FAIL_JOB, 137, 143)], FAIL_JOB),
        ([codes(FAIL_INDEX, 137)], FAIL_INDEX),
        ([codes("Retry", 137, 143)], COUNT),
    ],
    ids=str,
)
def test_the_first_rule_that_matches_counts_and_of_the_exit_codes_the_worse_one(rules, expected):
    assert response(rules) == expected


# Limits


@pytest.mark.parametrize(
    ("limits", "fails"),
    [
        ({}, False),
        ({"backoff_limit": 0}, True),
        ({"backoff_limit": 1}, False),
        ({"backoff_limit": 1, "failed": 1}, True),
        ({"backoff_limit": 1, "uncounted": frozenset({"earlier"})}, True),
        ({"backoff_limit": 0, "response": IGNORE}, False),
        ({"response": FAIL_JOB}, True),
        ({"response": FAIL_INDEX, "limit_per_index": 5}, True),
        ({"backoff_limit": UNLIMITED, "limit_per_index": 0}, True),
        ({"backoff_limit": UNLIMITED, "limit_per_index": 1}, False),
        ({"backoff_limit": UNLIMITED, "limit_per_index": 0, "response": IGNORE}, False),
        ({"backoff_limit": 0, "ended": True}, False),
        ({"backoff_limit": 0, "failed": 1}, False),
    ],
    ids=str,
)
def test_a_job_fails_by_one_failure_more_than_it_bears_and_only_once(limits, fails):
    assert failed_by(jobs_with(job(**limits)), member("p")) == ({"p"} if fails else set())


@pytest.mark.parametrize(("failures", "fails"), [(0, False), (1, False), (2, True)])
def test_an_index_whose_retries_are_used_up_fails_the_job(failures, fails):
    known = jobs_with(job(backoff_limit=UNLIMITED, limit_per_index=2))
    assert bool(failed_by(known, member("p", failures=failures))) is fails


def test_victims_of_one_job_count_together():
    known = jobs_with(job(backoff_limit=1))
    assert failed_by(known, member("p")) == set()
    assert failed_by(known, member("p"), member("q")) == {"p", "q"}


@pytest.mark.parametrize(
    "state", [{"terminating": True}, {"finished": True}, {"finished": True, "terminating": True}], ids=str
)
def test_failed_and_terminating_pods_count_until_the_job_has_counted_them(state):
    going = member("going", **state)
    known = jobs_with(job(backoff_limit=1), pods=(going,))
    assert failed_by(known, member("p")) == {"p"}
    known.upsert(job(backoff_limit=1, uncounted=frozenset({"going"})))
    assert failed_by(known, member("p")) == {"p"}
    known.see(member("going", tracked=False, **state), going)
    known.upsert(job(backoff_limit=1, failed=1))
    assert failed_by(known, member("p")) == {"p"}
    known.upsert(job(backoff_limit=2, failed=1))
    assert failed_by(known, member("p")) == set()


def test_a_pod_that_has_succeeded_is_no_failure():
    known = jobs_with(job(backoff_limit=1), pods=(member("done", finished=True, succeeded=True),))
    assert failed_by(known, member("p")) == set()


def test_a_pod_that_is_gone_counts_only_as_far_as_the_job_says():
    going = member("going", terminating=True)
    known = jobs_with(job(backoff_limit=1), pods=(going,))
    known.forget(going)
    assert failed_by(known, member("p")) == set()


def test_victims_of_other_plans_count():
    known = jobs_with(job(backoff_limit=1))
    assert failed_by(known, member("p"), going=(member("other"),)) == {"p"}


def test_a_job_that_fails_anyway_is_failed_by_nobody():
    known = jobs_with(job(backoff_limit=0), pods=(member("going", terminating=True),))
    assert failed_by(known, member("p")) == set()


def test_what_is_on_its_way_out_for_a_plan_is_still_its_doing():
    going = member("p", terminating=True)
    assert failed_by(jobs_with(job(backoff_limit=0), pods=(going,)), going) == {"p"}


# Which Job


def test_a_job_that_is_not_known_counts_as_one_that_fails_but_is_not_named():
    known = jobs_with(job("another"))
    assert Losses(known).would_fail([member("p")])
    assert failed_by(known, member("p")) == set()


def test_where_no_job_is_known_nobody_is_taken_for_a_pod_of_one():
    assert not Losses(jobs_with()).would_fail([member("p")])


@pytest.mark.parametrize(
    "forged", [member("p", of="uid-of-an-earlier-one"), member("p", namespace="b"), member("p", "other", of="train")]
)
def test_a_pod_belongs_to_the_job_of_its_name_and_uid_in_its_own_namespace(forged):
    known = jobs_with(job(response=IGNORE))
    assert known.of(forged) is None
    assert known.of(member("p")) is not None


def test_pods_of_another_namespace_use_up_nothing_of_a_job():
    known = jobs_with(job(backoff_limit=1), pods=(member("foreign", namespace="b", terminating=True),))
    assert failed_by(known, member("p")) == set()


def test_nothing_is_kept_of_pods_that_are_gone():
    going = member("going", terminating=True)
    known = jobs_with(pods=(going,))
    known.see(member("going", of="another", terminating=True), going)
    known.forget(member("going", of="another"))
    assert known._failing == {}


# Trials


def test_what_is_given_back_costs_nothing():
    losses = Losses(jobs_with(job(backoff_limit=1)))
    for uid in ("p", "q", "r"):
        losses.take(member(uid))
    assert losses.fail == 1
    losses.give_back(member("p"))
    losses.give_back(member("q"))
    assert losses.fail == 0


def test_who_is_at_stake_is_all_but_those_that_the_job_bears():
    losses = Losses(jobs_with(job(backoff_limit=1), job("bears", backoff_limit=9), job("never", response=IGNORE)))
    victims = [member("p"), member("x", "bears"), member("q"), member("y", "never"), member("r")]
    for each in victims:
        losses.take(each)
    assert losses.at_stake(victims) == {"p": 0, "q": 0}


def test_jobs_are_told_once_each():
    assert LostJobs().text == ""
    assert LostJobs({"p": "a/x", "q": "a/x"}).text == "this fails Job a/x: all of its pods go"
    assert LostJobs({"p": "a/y", "q": "a/x"}).text == "this fails Jobs a/x, a/y: all of their pods go"


# When it ends


@pytest.mark.parametrize(
    ("state", "at"),
    [({}, 0), ({"deadline": 60}, 0), ({"started": 1000.0}, 0), ({"deadline": 60, "started": 1000.0}, 1060)],
    ids=str,
)
def test_a_job_ends_so_long_after_it_was_started_whatever_its_pods_do(state, at):
    assert job(**state).ends_at == at
