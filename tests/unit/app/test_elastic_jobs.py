"""Elastic Jobs as they are read, written, and seen by people."""

import msgspec
import pytest
from typer.testing import CliRunner

from app.cli import app
from app.kube.job_patches import disowning, start
from app.store.jobs import JOBS, elasticity, queued_job_of
from policy.objects.pod import StandsFor
from tests.unit.app.given import client_of, quota, see
from tests.unit.app.manifest_folder import Folder
from tests.unit.app.test_gates import Ungating
from tests.unit.app.test_queued_jobs import job, jobs_of, labelled, samples, world

LEAST, ASKED = "quotaward.dev/min-parallelism", "quotaward.dev/parallelism"
NOT_VALID = "annotation quotaward.dev/min-parallelism is not a whole number from 1"


def elastic(name, parallelism, least=2, asked=None, **rest):
    item = job(name, parallelism, **rest)
    item["metadata"]["annotations"] = {LEAST: least} | ({ASKED: asked} if asked is not None else {})
    return item


def read(item):
    return JOBS.decoder.decode(msgspec.json.encode(item))


@pytest.mark.parametrize(
    ("parallelism", "least", "asked", "found"),
    [
        (4, "2", None, (4, 4, 2)),
        (4, "4", None, (4, 4, 4)),
        (3, "2", "5", (3, 5, 2)),
        (3, "4", "5", (3, 5, 4)),
        (3, "2", "1", (3, 3, 2)),
        (3, "2", "x", (3, 3, 2)),
        (3, "2", "9" * 10, (3, 3, 2)),
        (3, "2", "9" * 4000, (3, 3, 2)),
        (3, "2", str(2**31 - 1), (3, 2**31 - 1, 2)),
    ],
)
def test_how_many_pods_a_job_may_have_is_read_of_its_annotations(parallelism, least, asked, found):
    assert elasticity(read(elastic("j", parallelism, least, asked))) == (*found, "")


@pytest.mark.parametrize("least", ["0", "-1", "5", "two", "1.5", "²", "", " 2", None, 2, "9" * 4000])
def test_a_minimum_that_is_not_valid_makes_no_job_elastic(least):
    found = elasticity(read(elastic("j", 4, least, "4")))
    assert found[:3] == (4, 4, 0)
    assert (NOT_VALID in found.problem) is (least is not None)


@pytest.mark.parametrize(
    ("suspend", "completions", "succeeded", "found"),
    [
        (True, None, 0, (6, 4)),
        (True, 9, 4, (5, 3)),
        (False, None, 0, (6, 4)),
        (False, 9, 4, (5, 3)),
        (False, 9, 8, (1, 0)),
    ],
)
def test_no_job_lacks_more_pods_than_are_missing_to_its_completions(suspend, completions, succeeded, found):
    item = elastic("j", 2, "1", "6", completions=completions, suspend=suspend) | {"status": {"succeeded": succeeded}}
    queued = queued_job_of(read(item))
    assert (queued.pods, queued.lacking) == found


def test_the_start_of_an_elastic_job_sets_what_is_granted_and_notes_what_is_asked():
    of = StandsFor("j", "u", 6, 3, least=2, asked=6, granted=3)
    tests, changes = start(of)[:3], start(of)[3:]
    assert [(each["op"], each["path"], each["value"]) for each in tests] == [
        ("test", "/metadata/uid", "u"),
        ("test", "/spec/suspend", True),
        ("test", "/spec/parallelism", 6),
    ]
    assert changes == [
        {"op": "replace", "path": "/spec/suspend", "value": False},
        {"op": "replace", "path": "/spec/parallelism", "value": 3},
        {"op": "add", "path": "/metadata/annotations/quotaward.dev~1parallelism", "value": "6"},
    ]


def test_growth_is_written_only_if_the_job_runs_with_as_many_pods_as_was_seen():
    patch = start(StandsFor("j", "u", 3, 2, least=1, asked=6, granted=5, grows=True))
    assert {"op": "test", "path": "/spec/suspend", "value": False} in patch
    assert {"op": "test", "path": "/spec/parallelism", "value": 3} in patch
    assert [each["path"] for each in patch if each["op"] == "replace"] == ["/spec/parallelism"]


def test_only_our_own_entries_are_taken_out_of_the_owners_of_fields():
    patch = disowning([{"manager": "quotaward"}, {"manager": "kubectl"}, {"manager": "quotaward"}])
    assert [(each["op"], each["path"]) for each in patch] == [
        ("test", "/metadata/managedFields/0/manager"),
        ("test", "/metadata/managedFields/2/manager"),
        ("remove", "/metadata/managedFields/2"),
        ("remove", "/metadata/managedFields/0"),
    ]
    assert disowning([{"manager": "kubectl"}]) == []


# As people see them


def test_the_list_tells_of_the_minimum_and_of_what_is_asked():
    [told] = jobs_of(world(elastic("train", 6, "2"), quota("a", max={"cpu": 1})))["items"]
    assert (told["pods"], told["minPods"], told["askedParallelism"]) == (6, 2, 6)
    assert (told["state"], told["rule"]) == ("waiting", "elastic-quota-max")


def test_a_job_whose_minimum_is_admitted_is_not_said_to_be_refused():
    [told] = jobs_of(world(elastic("train", 6, "2"), quota("a", max={"cpu": 3}), cpu="1"))["items"]
    assert (told["rule"], told["message"]) == ("", "it is started as soon as there is room for 2 of its pods")


def test_a_job_that_runs_and_waits_for_more_pods_is_growing_and_not_pending():
    item = elastic("train", 2, "2", "6", suspend=False) | {"status": {"startTime": "2026-11-27T20:56:00Z"}}
    store = world(item, quota("a", max={"cpu": 0}))
    [told] = jobs_of(store)["items"]
    assert (told["state"], told["pods"], told["place"]) == ("growing", 4, 1)
    assert samples(store, "quotaward_pending_jobs") == {}
    explained = client_of(store).get("/api/v1/jobs/a/train").json()
    assert explained["rule"] == "elastic-quota-max"
    assert "it runs and waits for 4 more pods" in explained["summary"]


@pytest.mark.parametrize("least", ["0", "x"])
def test_explanations_and_checks_name_a_minimum_that_is_not_valid(least, tmp_path):
    item = elastic("train", 6, least)
    assert NOT_VALID in client_of(world(item)).get("/api/v1/jobs/a/train").json()["summary"]
    Folder(tmp_path).write("all.yaml", labelled(), item)
    assert NOT_VALID in " ".join(CliRunner().invoke(app, ["check", str(tmp_path)]).output.split())


def test_starts_and_growth_are_told_and_counted():
    ungating = Ungating(quota("a", max={"cpu": 3}), labelled(), elastic("train", 6, "2"))
    events = ungating.doors.events = []
    ungating.doors.report = events.append
    before = samples(ungating.store, "quotaward_jobs_started_total")
    ungating.look()
    assert [pod.name for pod in ungating.store.cluster.pods.values() if pod.job] == ["train-0", "train-1", "train-2"]
    assert [(event.reason, event.message) for event in events] == [
        ("Started", "it was suspended until there was room for it: it starts with 3 of 6 pods")
    ]
    see(ungating.store, quota("a", max={"cpu": 5}))
    ungating.look()
    assert (events[1].reason, "raised from 3 to 5" in events[1].message) == ("Grown", True)
    after = samples(ungating.store, "quotaward_jobs_started_total")
    grown = {key: after[key] - before.get(key, 0) for key in after}
    assert (grown["started",], grown["grown",]) == (1, 1)
