"""Defaults of pods that Jobs which wait as a whole count with, and what happens to these when a default changes."""

from dataclasses import replace

import pytest

from policy.objects.pod import Container, PodRequests
from policy.objects.pod_template import PodTemplate, PriorityClass
from policy.stepwise import at_once
from tests.unit.cluster.test_queued_jobs import job, queued, started, used


def templated(name: str, pods: int = 2, *, namespace: str = "a", cpu: int | None = None, **named):
    """A suspended Job whose pods have one container, which requests so many thousandths of a core or nothing."""
    requests = PodRequests((Container({} if cpu is None else {"cpu": cpu}),))
    plain = job(name, pods, namespace=namespace)
    return replace(plain, pod_sets=(replace(plain.pod_sets[0], template=PodTemplate(requests, **named)),))


def stand_in(cluster, name: str):
    return cluster.pods[f"job/uid-{name}"]


def demand(cluster, name: str):
    found = stand_in(cluster, name)
    return found.request.get("cpu", 0), found.priority


def renew(cluster):
    at_once(cluster.queued_jobs.renew_steps())


def test_a_job_counts_with_the_defaults_that_are_known_when_it_is_seen():
    cluster = queued()
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 500})
    cluster.pod_defaults.upsert_priority_class("high", PriorityClass(1000))
    cluster.pod_defaults.upsert_runtime_class("vm", {"cpu": 250})
    cluster.queued_jobs.upsert(templated("train", 2, priority_class="high", runtime_class="vm"), now=0)
    assert demand(cluster, "train") == (2 * 750, 1000)


def test_defaults_of_another_namespace_do_not_count():
    cluster = queued()
    cluster.pod_defaults.upsert_limit_range("b", "x", {"cpu": 500})
    cluster.queued_jobs.upsert(templated("train"), now=0)
    assert demand(cluster, "train") == (0, 0)


def test_of_several_limit_ranges_the_largest_default_counts():
    """The API server takes any of them: LimitRanger goes through an index that has no order."""
    cluster = queued()
    for name, requests in (("x", {"cpu": 500}), ("y", {"cpu": 800, "memory": 1000}), ("z", {"cpu": 600})):
        cluster.pod_defaults.upsert_limit_range("a", name, requests)
    cluster.queued_jobs.upsert(templated("train", 1), now=0)
    assert stand_in(cluster, "train").request == {"cpu": 800, "memory": 1, "pods": 1}


CHANGES = {
    "a limit range comes": (lambda of: of.upsert_limit_range("a", "more", {"cpu": 1200}), (1450, 10)),
    "a limit range is changed": (lambda of: of.upsert_limit_range("a", "here", {"cpu": 200}), (450, 10)),
    "a limit range goes": (lambda of: of.delete_limit_range("a", "here"), (250, 10)),
    "a class is changed": (lambda of: of.upsert_priority_class("high", PriorityClass(20)), (1250, 20)),
    "a class goes": (lambda of: of.delete_priority_class("high"), (1250, 0)),
    "an overhead is changed": (lambda of: of.upsert_runtime_class("vm", {"cpu": 300}), (1300, 10)),
    "an overhead goes": (lambda of: of.delete_runtime_class("vm"), (1000, 10)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_demand_of_a_waiting_job_follows_its_defaults(change):
    cluster = queued()
    cluster.pod_defaults.upsert_limit_range("a", "here", {"cpu": 1000})
    cluster.pod_defaults.upsert_priority_class("high", PriorityClass(10))
    cluster.pod_defaults.upsert_runtime_class("vm", {"cpu": 250})
    cluster.queued_jobs.upsert(templated("train", 1, priority_class="high", runtime_class="vm"), now=0)
    made, expected = CHANGES[change]
    made(cluster.pod_defaults)
    renew(cluster)
    assert demand(cluster, "train") == expected


def test_a_job_that_names_no_class_follows_the_default_one():
    cluster = queued(templated("train", 1, cpu=1000))
    cluster.pod_defaults.upsert_priority_class("normal", PriorityClass(7, is_default=True))
    renew(cluster)
    assert demand(cluster, "train") == (1000, 7)


def test_only_jobs_of_the_namespace_are_computed_anew_for_a_limit_range():
    cluster = queued(templated("here"), templated("there", namespace="b"))
    cluster.pod_defaults.upsert_limit_range("b", "x", {"cpu": 500})
    assert len(list(cluster.queued_jobs.renew_steps())) == 1


def test_what_changes_nothing_makes_nothing_be_computed_anew():
    cluster = queued(templated("train"))
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 500})
    cluster.pod_defaults.upsert_priority_class("high", PriorityClass(7))
    cluster.pod_defaults.upsert_runtime_class("vm", {"cpu": 5})
    renew(cluster)
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 500})
    cluster.pod_defaults.upsert_limit_range("a", "smaller", {"cpu": 400})
    cluster.pod_defaults.upsert_priority_class("high", PriorityClass(7))
    cluster.pod_defaults.upsert_runtime_class("vm", {"cpu": 5})
    assert list(cluster.queued_jobs.renew_steps()) == []


def test_it_pauses_after_each_job():
    cluster = queued(*(templated(f"train-{number}") for number in range(5)))
    cluster.pod_defaults.upsert_priority_class("normal", PriorityClass(7, is_default=True))
    steps = cluster.queued_jobs.renew_steps()
    seen = [sum(demand(cluster, f"train-{number}")[1] == 7 for number in range(5)) for _ in steps]
    assert seen == [1, 2, 3, 4, 5]


def test_a_job_does_not_start_before_its_demand_is_computed_anew():
    cluster = queued(templated("train", 2), cpu=1, most=1)
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 1000})
    assert started(cluster) == [], "it would fit as it was known, but not as it is"
    renew(cluster)
    assert started(cluster) == []
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 500})
    assert started(cluster) == []
    renew(cluster)
    assert started(cluster) == ["train"]


def test_what_is_kept_for_a_job_that_was_started_stays():
    """Its pods may have been created with the defaults of before."""
    cluster = queued()
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 1000})
    cluster.queued_jobs.upsert(templated("train", 2), now=0)
    assert started(cluster) == ["train"]
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 3000})
    renew(cluster)
    assert used(cluster) == 2


def test_a_job_that_was_started_in_vain_has_the_new_defaults_once_it_waits_again():
    cluster = queued()
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 1000})
    cluster.queued_jobs.upsert(templated("train", 2), now=0)
    assert started(cluster) == ["train"]
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 3000})
    renew(cluster)
    cluster.gate_admission.regate("job/uid-train", 1.0)
    renew(cluster)
    assert demand(cluster, "train") == (6000, 0)


def test_a_job_that_is_seen_again_has_the_new_defaults_at_once():
    cluster = queued(templated("train", 2), cpu=1, most=1)
    cluster.pod_defaults.upsert_limit_range("a", "x", {"cpu": 500})
    cluster.queued_jobs.upsert(templated("train", 2), now=0)
    assert started(cluster) == ["train"]


def test_a_job_that_goes_is_not_computed_anew():
    cluster = queued(templated("train"), templated("stays"))
    cluster.pod_defaults.upsert_priority_class("normal", PriorityClass(7, is_default=True))
    under_way = cluster.queued_jobs.renew_steps()
    next(under_way)
    for name in ("train", "stays"):
        cluster.queued_jobs.delete(("a", name))
    assert list(cluster.queued_jobs.renew_steps()) == []
    assert len(list(under_way)) == 1, "it passes by what has gone in its pause"


def test_nothing_is_left_of_what_is_gone():
    cluster = queued()
    for name in ("x", "y"):
        cluster.pod_defaults.upsert_limit_range("a", name, {"cpu": 500})
        cluster.pod_defaults.delete_limit_range("a", name)
    cluster.pod_defaults.delete_limit_range("b", "unknown")
    cluster.pod_defaults.delete_priority_class("unknown")
    cluster.pod_defaults.delete_runtime_class("unknown")
    assert (cluster.pod_defaults.limit_ranges, cluster.pod_defaults._requests) == ({}, {})
