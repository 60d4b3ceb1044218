"""Answers that are lost: a Job that was started or enlarged all the same is so once, and its room is kept."""

import asyncio
import json

import aiohttp
import pytest

from app.actuators.kubernetes import KubernetesActuator
from app.actuators.protocol import ActionFailed, AnswerLost, NoRight, Rejected, TimedOut
from app.controllers.gates import REJECTED, SOON
from app.controllers.unanswered_starts import UnansweredStarts
from app.kube.job_patches import is_lowered, is_started, is_suspended
from policy.cluster.queued_jobs import START_PATIENCE
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod, StandsFor
from tests.unit.app.given import pod, quota, see
from tests.unit.app.test_elastic_jobs import elastic
from tests.unit.app.test_gates import Ungating
from tests.unit.app.test_queued_jobs import job, labelled

RUNS = {"startTime": "2026-11-27T20:56:00Z"}


def runs(parallelism):
    """The elastic Job, which asks for 6 pods, as it is seen to run."""
    return elastic("train", parallelism, "2", "6", suspend=False) | {"status": RUNS}


def of_train(number):
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}
    return pod(f"train-{number}", metadata={"ownerReferences": [owner]}, nodeName="n1")


class Losing:
    """A cluster where the test makes what the API server has made, and says with what failure each write ends."""

    def __init__(self, *items, cpu):
        self.ungating = Ungating(labelled(), quota("a", max={"cpu": cpu}), *items)
        self.store, self.clock = self.ungating.store, self.ungating.clock
        self.failures, self.asked, self.events = [], [], []
        self.ungating.doors.start_job = self.start
        self.ungating.doors.report = self.events.append

    async def start(self, stand_in):
        job = stand_in.stands_for
        self.asked.append((job.name, job.granted) if job.least else job.name)
        if self.failures:
            raise self.failures.pop(0)

    def look(self, after=0.0):
        self.clock.now += after
        self.store.tick()
        self.ungating.look()

    def used(self):
        return self.store.cluster.ledger.account("a").used.get("cpu", 0) // 1000


def growing():
    """Two of six pods run, and there is room for two more."""
    return Losing(runs(2), of_train(0), of_train(1), cpu=4)


LOST = [AnswerLost("lost"), TimedOut("not within 10 s")]


@pytest.mark.parametrize("lost", LOST)
def test_a_job_whose_growth_was_made_though_the_answer_was_lost_grows_once(lost):
    world = growing()
    world.failures = [lost]
    world.look()
    assert (world.asked, world.used()) == ([("train", 4)], 4)
    see(world.store, runs(4))
    world.look(after=REJECTED[0])
    see(world.store, of_train(2), of_train(3))
    world.look(after=REJECTED[0])
    assert (world.asked, world.used()) == ([("train", 4)], 4)
    assert [event.reason for event in world.events] == ["Grown"]


@pytest.mark.parametrize("lost", LOST)
def test_room_is_kept_for_a_growth_until_it_is_seen_or_answered(lost):
    world = growing()
    world.failures = [lost]
    world.look()
    see(world.store, job("other", 1))
    world.look(after=REJECTED[0])
    assert (world.asked, world.used()) == ([("train", 4), ("train", 4)], 4)
    assert [event.reason for event in world.events] == ["Grown"]


@pytest.mark.parametrize("lost", LOST)
def test_room_is_kept_for_a_job_that_may_have_been_started(lost):
    world = Losing(job("train", 2), job("next", 2, created=2), cpu=2)
    world.failures = [lost]
    world.look()
    world.look()
    assert (world.asked, world.used()) == (["train"], 2)
    see(world.store, job("train", 2, suspend=False))
    world.look(after=REJECTED[0])
    assert (world.asked, world.used()) == (["train"], 2)
    assert [event.reason for event in world.events] == ["Started"]


def test_a_job_that_was_not_started_waits_again_once_that_is_known():
    world = Losing(job("train", 2), job("next", 2, created=2), cpu=2)
    world.failures = [AnswerLost("lost"), Rejected("422")]
    world.look()
    world.look(after=SOON[0])
    world.look()
    assert (world.asked, world.used()) == (["train", "train", "next"], 2)


def test_a_job_whose_answers_are_lost_again_and_again_does_not_hold_room_for_ever():
    world = Losing(job("train", 2), job("next", 2, created=2), cpu=2)
    world.failures = [TimedOut("not within 10 s")] * 99
    for _ in range(100):
        world.look(after=START_PATIENCE / 50)
    assert "next" in world.asked


@pytest.mark.parametrize("failure", [ActionFailed("503"), NoRight("403")])
def test_a_job_that_is_known_not_to_have_been_started_holds_no_room(failure):
    world = Losing(job("train", 2), cpu=2)
    world.failures = [failure]
    world.look()
    assert world.used() == 0


def test_a_job_that_is_gone_meanwhile_is_asked_for_no_more():
    world = Losing(job("train", 2), cpu=2)
    world.failures = [AnswerLost("lost")]
    world.look()
    world.store.delete(next(kind for kind in world.store.kinds if kind.name == "Job"), ("a", "train"))
    world.look(after=SOON[0])
    assert (world.asked, world.used(), world.events) == (["train"], 0, [])


GROWS = StandsFor("train", "u", 2, 2, least=1, asked=6, granted=4, grows=True)
TRAIN = Pod("uid", "a", "job/train", {}, stands_for=GROWS)


@pytest.mark.parametrize(("runs", "is_seen"), [(2, False), (4, True)])
def test_a_growth_that_room_is_not_kept_for_any_more_was_made_if_more_pods_run(runs, is_seen):
    store = Losing(cpu=2).store
    store.cluster.batch_jobs.upsert(BatchJob("a", "train", "u", parallelism=runs, runs=runs, least=1, asked=6))
    starts = UnansweredStarts(store, patience=60)
    starts.keep(TRAIN, waits_since=5)
    assert starts.seen() == [(TRAIN, 5)] * is_seen


# What the actuator asks


SUSPENDED = BatchJob("a", "train", "u")
ELASTIC = BatchJob("a", "train", "u", parallelism=4, runs=4, least=1, asked=6)
ACTS = {
    "start": (lambda actuator: actuator.start_job(TRAIN), is_started(GROWS)),
    "suspend": (lambda actuator: actuator.suspend_job(SUSPENDED), is_suspended(SUSPENDED)),
    "lower": (lambda actuator: actuator.lower_job(ELASTIC, 2), is_lowered(ELASTIC, 2)),
}


class ApiServer:
    """Answers each write as it is told: with a status, or an error. It has the Job if its answer is 200."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def send(self, _method, _path, patch, *_request, **_more):
        self.asked.append(patch)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer, json.dumps({"metadata": {}, "message": "said"}).encode()


def done(act, *answers):
    api = ApiServer(*answers)
    asyncio.run(act(KubernetesActuator(api)))
    assert api.answers == []
    return api.asked


CUT, REFUSED = aiohttp.ServerDisconnectedError(), aiohttp.ClientConnectorError(None, OSError("refused"))


@pytest.mark.parametrize("act", ACTS)
def test_a_change_whose_answer_is_lost_is_asked_for_again_with_the_same_tests(act):
    first, second = done(ACTS[act][0], CUT, 200)
    assert first == second


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("answers", [(CUT, 422, 200), (504, 422, 200), (422, 200)])
def test_a_change_that_is_made_already_counts_as_done(act, answers):
    asks, tests = ACTS[act]
    assert done(asks, *answers)[-1] == tests
    assert {each["op"] for each in tests} == {"test"}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    ("answers", "failure", "unknown"),
    [
        ((422, 422), Rejected, False),
        ((CUT, 422, 422), Rejected, False),
        ((CUT, CUT), AnswerLost, True),
        ((CUT, REFUSED), AnswerLost, True),
        ((CUT, 422, CUT), AnswerLost, True),
        ((CUT, 422, 404), Rejected, False),
        ((CUT, 422, 403), Rejected, False),
        *(((CUT, 422, status), AnswerLost, True) for status in (429, 500, 503)),
        ((CUT, 503), AnswerLost, True),
        ((504, 504), ActionFailed, True),
        ((TimeoutError(),), TimedOut, True),
        ((REFUSED,), ActionFailed, False),
        ((503,), ActionFailed, False),
    ],
)
def test_what_is_known_of_a_change_that_failed_is_said(act, answers, failure, unknown):
    with pytest.raises(failure) as failed:
        done(ACTS[act][0], *answers)
    assert failed.value.unknown is unknown


def test_the_parallelism_that_is_looked_for_is_the_one_that_was_granted():
    assert {"op": "test", "path": "/spec/parallelism", "value": 4} in is_started(GROWS)
    assert {"op": "test", "path": "/spec/parallelism", "value": 6} in is_suspended(ELASTIC)
    assert {"op": "test", "path": "/spec/parallelism", "value": 2} in is_lowered(ELASTIC, 2)
