"""Run times as objects of Kubernetes say them, and what their owners are told."""

from functools import partial

import msgspec
import pytest

from app import checks
from app.controllers.run_times import RunTimes
from app.store.elastic_quotas import ELASTIC_QUOTAS, elastic_quota_of
from app.store.jobs import JOBS, batch_job_of
from app.store.pod_groups import GROUPS, POD_GROUPS, group_of
from app.store.pods import PODS, pod_of
from app.store.queues import QUEUES, queue_of
from policy.objects.run_time import LONGEST
from tests.unit.app.given import made, pod, store_with
from tests.unit.app.test_refusals import events_of

SAID = "quotaward.dev/run-time"


def decode(kind, item):
    return kind.decoder.decode(msgspec.json.encode(item))


def said(text):
    return {"annotations": {SAID: text}}


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("soon", -1), ("", -1), (90, -1), ("9" * 300_000, -1)])
def test_every_kind_that_may_say_a_run_time_is_read(text, seconds):
    assert pod_of(decode(PODS, pod("p", metadata=said(text)))).run_time == seconds
    assert batch_job_of(decode(JOBS, made(JOBS, "j", "a", said(text)))).run_time == seconds
    assert group_of(decode(POD_GROUPS[0], made(POD_GROUPS[0], "g", "a", said(text))), GROUPS).run_time == seconds
    assert queue_of(decode(QUEUES, made(QUEUES, "q", metadata=said(text)))).run_time == seconds
    assert elastic_quota_of(decode(ELASTIC_QUOTAS, made(ELASTIC_QUOTAS, "e", "a", said(text)))).run_time == seconds


def test_the_deadline_of_a_pod_is_read():
    assert pod_of(decode(PODS, pod("p", activeDeadlineSeconds=60))).deadline == 60
    assert pod_of(decode(PODS, pod("p"))).deadline == 0


def test_a_grace_period_counts_as_no_longer_than_the_longest_time():
    assert pod_of(decode(PODS, pod("p", terminationGracePeriodSeconds=45))).grace == 45
    assert pod_of(decode(PODS, pod("p", terminationGracePeriodSeconds=10**18))).grace == LONGEST


told_by = partial(events_of, RunTimes)


def test_a_waiting_pod_is_told_once_that_its_run_time_cannot_be_read():
    store = store_with(pod("bad", metadata=said("soon")), pod("good", metadata=said("5m")), pod("none"))
    [event] = told_by(store, looks=2)
    assert (str(event.subject), event.reason, event.warning) == ("Pod a/bad", "RunTimeUnreadable", True)
    assert "annotation quotaward.dev/run-time of the pod" in event.message


def test_of_the_pods_of_one_job_one_is_told():
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}
    pods = [pod(f"p{number}", metadata=said("soon") | {"ownerReferences": [owner]}) for number in range(3)]
    assert len(told_by(store_with(*pods))) == 1


def test_events_are_written_for_some_pods_at_a_time():
    store = store_with(*(pod(f"p{number}", metadata=said("soon")) for number in range(25)))
    assert len(told_by(store)) == 20
    assert len(told_by(store, looks=2)) == 25


def test_check_names_the_objects_whose_run_time_cannot_be_read(folder):
    group = POD_GROUPS[0]
    bad = [pod("p", metadata=said("soon")), made(JOBS, "j", "a", said("90")), made(group, "g", "a", said("1y"))]
    folder.write("all.yaml", *bad, pod("good", metadata=said("90m")))
    found = [each.text for each in checks.manifests(folder.path).findings if SAID in each.text]
    assert [text.partition(":")[0] for text in found] == ["Job a/j", "Pod a/p", "PodGroup a/g"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:16:40Z", 1000.0),
        ("1970-01-01T01:16:40+01:00", 1000.0),
        *(("soon", 0.0), ("", 0.0), (1000, 0.0), ("1" * 300_000, 0.0), ("0001-01-01T00:00:00+23:59", 0.0)),
        ("9999-12-31T23:59:59-23:59", 253_402_300_799.0),
    ],
)
def test_a_time_that_cannot_be_read_counts_for_nothing(text, seconds):
    item = pod("p", metadata={"annotations": {"quotaward.dev/checkpointed-at": text}})
    assert pod_of(decode(PODS, item)).checkpointed == seconds
    assert pod_of(decode(PODS, pod("p"))).checkpointed == 0
