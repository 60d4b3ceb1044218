"""Small histories of Jobs that wait as a whole: each fault is found, and what is like it and lawful is not."""

import copy

import pytest

from tests.chaos.history import WAIT
from tests.chaos.jobs import BY_USER, MARK
from tests.chaos.stuck import stuck
from tests.chaos.test_checker import API, KINDS, SCHEDULER, Story, bound
from tests.controlplane.objects import elastic_quota, job, labelled, node, pod

KINDS["Job"] = "jobs"


@pytest.fixture
def story():
    told = Story()
    told.create(namespace("queued"), elastic_quota("a", min={"cpu": 1}, max={"cpu": 4}))
    told.create(elastic_quota("lender", min={"cpu": 99}))
    return told.later(60)


def namespace(value):
    labels = {WAIT: value} if value else {}
    return {"kind": "Namespace", "metadata": {"name": "a", "uid": "Namespace//a", "labels": labels}}


def train(pods=2, *, suspend=True, **status):
    item = labelled(job("train", "a", pods, suspend=suspend), **{MARK: "true"})
    item["metadata"]["annotations"] = {}
    return item | {"status": status}


def member(number=0, cpu=1):
    item = pod(f"train-{number}", "a", cpu)
    item["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train", "uid": "Job/a/train", "controller": True}]
    return item


def started(story, pods=2):
    """The Job is started, and its pods run."""
    story.create(train(pods))
    story.see(train(pods, suspend=False))
    story.bind(*(member(number) for number in range(pods)))
    return story


def test_a_job_that_is_started_within_max_is_lawful_and_one_above_it_is_found(story):
    story.bind(pod("other", "a", cpu=2))
    assert started(story).violations == []
    story.create(late := train(1) | {"metadata": train()["metadata"] | {"name": "late"}})
    late = copy.deepcopy(late)
    late["spec"]["suspend"] = False
    story.see(late)
    assert story.violations == ["60.0 s: Job a/late was started above max: 1 of cpu beside 4"]


def test_only_what_is_left_to_do_counts_for_a_start(story):
    story.bind(pod("other", "a", cpu=3))
    story.create(train(2, succeeded=1))
    story.see(train(2, suspend=False, succeeded=1))
    assert story.violations == []


@pytest.mark.parametrize(
    ("change", "pods"), [(namespace(""), 3), (elastic_quota("a", min={"cpu": 1}, max={"cpu": 1}), 2)]
)
def test_where_jobs_did_not_wait_or_max_was_higher_a_start_is_lawful(story, change, pods):
    story.bind(pod("other", "a", cpu=2))
    story.see(change)
    story.create(train(pods))
    story.see(train(pods, suspend=False))
    assert story.violations == []


def test_a_job_is_suspended_by_its_user_or_for_somebody_or_it_is_found(story):
    owner = pod("owner", "b")
    started(story).create(owner)
    plan = story.reserve("plan", owner, member())
    story.see(train())
    assert story.violations == []
    story.see(plan, "DELETED")
    story.see(train(suspend=False))
    again = train()
    again["metadata"]["annotations"][BY_USER] = "1"
    story.later(10).see(again)
    assert story.violations == []
    story.see(again | {"spec": again["spec"] | {"suspend": False}})
    story.later(10).see(again)
    assert story.violations == ["80.0 s: Job a/train was suspended, and no reservation says for whom"]


@pytest.mark.parametrize(("how", "label", "found"), [(API, "queued", 1), (API, "", 0), (SCHEDULER, "queued", 0)])
def test_a_pod_of_a_job_that_could_be_suspended_must_not_be_evicted(story, how, label, found):
    owner = pod("owner", "b")
    started(story).see(namespace(label))
    story.later(10).create(owner)
    story.reserve("plan", owner, member())
    story.evict(member(), how)
    told = [each for each in story.violations if "could be suspended" in each]
    assert len(told) == found


@pytest.mark.parametrize("why", ["", "evicted", "its node is lost"])
def test_a_job_that_fails_without_a_reason_is_found(story, why):
    story.create(node("n1"))
    started(story)
    if why == "evicted":
        story.evict(member(), SCHEDULER)
    elif why:
        story.see(node("n1"), "DELETED")
    story.see(bound(member()), "DELETED")
    conditions = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]
    story.see(train(suspend=False, conditions=conditions))
    told = [each for each in story.violations if "has failed" in each]
    assert told == ([] if why else ["60.0 s: Job a/train has failed: BackoffLimitExceeded"])


def objects(*items):
    found = {kind: [] for kind in KINDS.values()}
    for item in items:
        item["metadata"].setdefault("uid", item["metadata"]["name"])
        item["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        found[KINDS[item["kind"]]].append(item)
    return found


def test_a_job_of_one_pod_that_may_run_and_waits_is_found():
    there = namespace("queued"), node("n1", cpu=4), elastic_quota("a", min={"cpu": 4}, max={"cpu": 4})
    assert "a/train waits although it may run on n1" in "".join(stuck(objects(*there, train(1))))
    assert stuck(objects(*there, train(1, suspend=False))) == []
    full = bound(pod("full", "a", cpu=4))
    assert stuck(objects(*there, train(1), full)) == []


def test_a_job_that_is_suspended_where_none_waits_is_found():
    assert stuck(objects(namespace(""), train())) == [
        "Job a/train is suspended, and Jobs of its namespace do not wait any more"
    ]
    assert stuck(objects(namespace("queued"), train())) == []


@pytest.mark.parametrize("why", ["it has ended", "it is being deleted"])
def test_a_job_that_does_not_go_on_waits_for_nothing(why):
    done = train(conditions=[{"type": "SuccessCriteriaMet", "status": "True"}] if why == "it has ended" else [])
    if why == "it is being deleted":
        done["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert stuck(objects(namespace(""), done)) == []
