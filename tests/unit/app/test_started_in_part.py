"""Jobs of which some pods have not come in time, gangs among them, and Jobs that may not start at all."""

import pytest

from app.actuators.protocol import ActionFailed, NoRight, Rejected
from app.controllers.keyed_backoff import FIRST
from app.controllers.started_in_part import AGAIN
from app.store.jobs import JOBS
from policy.cluster.queued_jobs import START_PATIENCE
from tests.unit.app.given import made, namespace, pod, pod_group, see
from tests.unit.app.test_gates import Ungating
from tests.unit.app.test_queued_jobs import GATE, job, labelled

GROUP = {"scheduling.x-k8s.io/pod-group": "g"}


def gang(least):
    return pod_group("g", minimum=least)


def train(**spec):
    item = job("train", 3, **spec)
    item["spec"]["template"]["metadata"]["labels"] = GROUP
    return item


class Starting:
    """A cluster in which Jobs are started, and no controller makes their pods unless the test does."""

    def __init__(self, *items):
        self.ungating = Ungating(labelled(), *items)
        self.store, self.clock, doors = self.ungating.store, self.ungating.clock, self.ungating.doors
        self.started, self.suspended, self.failures, self.events = [], [], [], []
        doors.start_job, doors.suspend_job, doors.report = self.start, self.suspend, self.events.append

    async def start(self, stand_in):
        if self.failures:
            raise self.failures.pop(0)
        self.started.append(stand_in.stands_for.name)

    async def suspend(self, item):
        if self.failures:
            raise self.failures.pop(0)
        self.suspended.append(item.name)

    def told(self):
        return [(event.subject.name, event.reason) for event in self.events if event.reason != "Started"]

    def look(self):
        self.ungating.look()

    def is_late(self, *come):
        """It is started, only these pods of it come, and the patience is over."""
        self.look()
        see(self.store, train(suspend=False), *come)
        self.clock.now += START_PATIENCE
        self.store.tick()
        self.look()


def member(number):
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}
    return pod(f"train-{number}", metadata={"labels": GROUP, "ownerReferences": [owner]})


@pytest.mark.parametrize(("least", "again"), [(3, True), (2, False)])
def test_a_gang_that_lacks_pods_to_start_is_suspended_again(least, again):
    starting = Starting(gang(least), train())
    starting.is_late(member(0), member(1))
    assert starting.suspended == (["train"] if again else [])
    [event] = [event for event in starting.events if event.reason == "StartedInPart"]
    assert event.message.startswith("1 of 3 pods were not created in time: no room is kept")
    assert event.message.endswith("suspended, and waits again") is again


def test_a_member_that_is_being_deleted_is_lacking():
    leaves = member(2)
    leaves["metadata"]["deletionTimestamp"] = "2026-11-28T08:00:00Z"
    starting = Starting(gang(3), train(), leaves)
    starting.is_late(member(0), member(1))
    assert starting.suspended == ["train"]


def test_a_job_that_is_no_gang_goes_on_with_the_pods_that_have_come():
    starting = Starting(train())
    starting.is_late(member(0))
    assert (starting.suspended, starting.told()) == ([], [("train", "StartedInPart")])


def test_the_job_of_a_gang_stands_in_line_again_ever_later():
    starting = Starting(gang(3), train())
    for wait in (AGAIN[0], 2 * AGAIN[0]):
        starting.is_late()
        see(starting.store, train())
        starting.started.clear()
        starting.clock.now += wait - 1
        starting.look()
        assert starting.started == []
        starting.clock.now += 1
        starting.look()
        assert starting.started == ["train"]


def test_a_suspension_that_fails_is_tried_again_while_the_gang_lacks_pods():
    starting = Starting(gang(3), train())
    starting.look()
    starting.failures = [ActionFailed("503"), ActionFailed("503")]
    starting.is_late(member(0), member(1))
    starting.look()
    assert len(starting.failures) == 1, "it is not tried again at once"
    starting.clock.now += FIRST
    starting.look()
    assert (starting.suspended, starting.failures) == ([], [])
    see(starting.store, member(2))
    starting.clock.now += 2 * FIRST
    starting.look()
    assert starting.suspended == []


def test_the_wait_out_of_line_does_not_grow_with_suspensions_that_fail():
    starting = Starting(gang(3), train())
    starting.look()
    starting.failures = [ActionFailed("503"), ActionFailed("503")]
    starting.is_late()
    for _ in range(3):
        starting.clock.now += 2 * FIRST
        starting.look()
    assert starting.suspended == ["train"]
    see(starting.store, train())
    starting.started.clear()
    starting.clock.now += AGAIN[0]
    starting.look()
    assert starting.started == ["train"]


def test_a_gang_of_a_namespace_that_is_not_queued_any_more_goes_on():
    starting = Starting(gang(3), train())
    starting.look()
    see(starting.store, namespace("a"))
    starting.is_late(member(0))
    assert starting.suspended == []


def test_who_begins_to_lead_tells_nothing_of_jobs_that_were_late_before():
    starting = Starting(train())
    starting.store.cluster.queued_jobs.late = [(next(iter(starting.store.cluster.queued_jobs)), 1, 3)]
    starting.look()
    assert starting.told() == []


@pytest.mark.parametrize("change", ["gone", "ended", "another"])
def test_a_job_that_is_not_the_same_any_more_is_not_suspended(change):
    starting = Starting(gang(3), train())
    starting.look()
    starting.failures = [ActionFailed("503")]
    starting.is_late(member(0))
    if change == "gone":
        starting.store.delete(JOBS, ("a", "train"))
    else:
        ended = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}} if change == "ended" else {}
        see(starting.store, made(JOBS, "train", "a", {"uid": f"uid-{'train' if ended else 'new'}"}, spec={}) | ended)
    starting.clock.now += FIRST
    starting.look()
    assert starting.suspended == []


def test_a_job_that_the_server_does_not_suspend_as_it_has_changed_is_left():
    starting = Starting(gang(3), train())
    starting.look()
    starting.failures = [Rejected("422")]
    starting.is_late(member(0))
    starting.clock.now += 10 * FIRST
    starting.look()
    assert starting.suspended == []


def test_without_the_right_one_job_of_each_namespace_is_told_and_gates_open():
    jobs = [job("one"), job("two", created=2), job("other", namespace="b")]
    starting = Starting(labelled("b"), *jobs, pod("p", schedulingGates=[GATE]))
    starting.failures = [NoRight("403")] * 3
    starting.look()
    assert (starting.failures, starting.ungating.doors.opened) == ([], ["p"])
    assert sorted(name for name, reason in starting.told() if reason == "NotStarted") in (
        ["one", "other"],
        ["other", "two"],
    )
    starting.clock.now += 10
    starting.look()
    assert sorted(starting.started) == ["one", "other", "two"]
