"""Small histories of nodes that are reserved for a Job that waits as a whole: none of its pods exists."""

import pytest

from tests.chaos.history import History
from tests.chaos.jobs import MARK
from tests.chaos.promises import is_backfilled, moved
from tests.chaos.test_checker import LEEWAY, Story, sized
from tests.chaos.test_checker_of_jobs import member, namespace
from tests.chaos.test_checker_of_promises import short, time
from tests.controlplane.objects import job, labelled, pod

LATE = "61.0 s: b/late was bound to n1, reserved for a/train-{} since 31.0 s, and is not gone by the promised start"


class JobStory(Story):
    """A node of 4 cores is reserved for a Job of two pods of 2 cores, which is promised its start in 100 s."""

    def __init__(self):
        super().__init__()
        self.create(sized("n1", cpu=4, pods=9), namespace("queued"))
        self.at = 30.0
        self.create(train())
        self.promise(130)
        self.later(31)

    def see(self, item, event="MODIFIED"):
        item["metadata"].setdefault("creationTimestamp", time(self.at))
        super().see(item, event)

    def promise(self, at):
        status = {"promisedStart": time(at)} if at else {}
        for number in range(2):
            name = f"train-{number}"
            spec = {"reason": "Starving", "job": "pods/job/train", "nodeName": "n1", "victims": []}
            spec["pod"] = {"namespace": "a", "name": name, "uid": f"job/Job/a/train/{number}"}
            self.see({"kind": "Reservation", "metadata": {"name": name}, "spec": spec, "status": status})
        return self

    @property
    def moved(self):
        return list(moved(History(self.records), LEEWAY.granted, LEEWAY.seen))


def train(pods=2, *, suspend=True):
    return labelled(job("train", "a", pods, cpu=2, suspend=suspend), **{MARK: "true"})


@pytest.fixture
def story():
    return JobStory()


def test_who_is_gone_before_a_job_starts_may_come_and_others_are_found(story):
    story.see(sized("n1", cpu=2, pods=9))
    story.bind(short(deadline=60))
    assert story.violations == []
    story.bind(short("late", deadline=91))
    assert story.violations == [f"{LATE.format(each)}, but 12 s later" for each in range(2)]
    history = History(story.records)
    assert [is_backfilled(history, life, LEEWAY.granted) for life in history.lives.values()] == [True, True]


def test_pods_of_the_job_may_come(story):
    story.see(train(suspend=False))
    story.bind(member(0), member(1), member(2))
    assert story.violations == []


def is_started(story):
    story.see(train(suspend=False))


def has_gone(story):
    story.see(train(), "DELETED")


def does_not_wait_any_more(story):
    story.see(namespace(""))


def wants_fewer(story):
    story.see(train(1))


@pytest.mark.parametrize("happens", [is_started, has_gone, does_not_wait_any_more, wants_fewer])
def test_a_node_that_a_job_may_not_need_any_more_may_be_used(story, happens):
    happens(story)
    story.bind(pod("p", "b", cpu=3))
    assert story.violations == []


@pytest.mark.parametrize(("pods", "why"), [(2, ""), (1, ""), (3, "its Job has grown")])
def test_a_promise_to_a_job_may_move_later_only_if_the_job_has_grown(story, pods, why):
    story.see(train(pods))
    story.later(5).promise(0)
    assert story.moved == [why]
    assert (story.violations == []) == bool(why)


@pytest.mark.parametrize(("cpu", "found"), [(None, 0), (1, 2)])
def test_a_node_has_room_for_all_of_a_job_soon_after_the_promised_start(story, cpu, found):
    """One core less than both of its pods take, and more than one of them takes."""
    story.bind(short(cpu=cpu))
    story.later(112).create(pod("other", "c"))
    assert ["was promised room on n1, and has none" in each for each in story.violations] == [True] * found
