"""Jobs by how long they have waited."""

from dataclasses import replace

from policy.cluster.job_ages import JobAges
from policy.objects.queued_job import PodSet, QueuedJob
from tests.unit.app.lines import lines_once
from tests.unit.given import pod

NOW = 1000.0


def job(name, created, since=0.0):
    return QueuedJob("a", name, name, (PodSet(pod(name, "a"), 1),), 1, suspended=True, created=created, since=since)


def ages_of(*jobs):
    ages = JobAges()
    for each in jobs:
        ages.note(each)
    return ages


def old(ages, seconds=100.0):
    return [name for _, name in ages.older_than(seconds, NOW)]


def test_old_jobs_are_those_that_have_waited_for_longer_the_oldest_first():
    ages = ages_of(job("edge", 900.0), job("old", 899.0), job("oldest", 1.0), job("new", 990.0))
    assert old(ages) == ["oldest", "old"]


def test_a_job_waits_since_it_was_suspended_last_and_without_a_time_is_never_old():
    assert old(ages_of(job("again", 1.0, since=990.0), job("undated", 0.0))) == []


def test_a_job_that_changes_has_its_last_time_alone_and_one_that_is_gone_none():
    first = job("first", 1.0)
    ages = ages_of(first, job("second", 2.0), replace(first, since=990.0))
    assert old(ages) == ["second"]
    ages.forget(("a", "second"))
    ages.forget(("a", "second"))
    assert old(ages) == []
    ages.note(first)
    assert old(ages) == ["first"]


def test_ten_times_the_jobs_that_are_not_old_take_few_more_lines_of_python():
    def lines(jobs):
        ages = ages_of(*(job(f"j{number}", 950.0) for number in range(jobs)), job("old", 1.0))
        return lines_once(ages.older_than, 100.0, NOW)

    assert lines(1000) <= lines(100) + 8, "a bisection"
