"""Small histories of nodes that are reserved for a Job that waits as a whole: none of its pods exists."""

import pytest

from tests.chaos.history import History
from tests.chaos.jobs import BY_USER, MARK
from tests.chaos.promises import is_backfilled, kept, moved
from tests.chaos.test_checker import LEEWAY, Story, bound, has_a_wrong_clock, sized
from tests.chaos.test_checker_of_jobs import member, namespace
from tests.chaos.test_checker_of_promises import short, time
from tests.controlplane.cluster import QUEUE
from tests.controlplane.objects import elastic_quota, job, labelled, pod

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
            self.see(self.reservation(number) | {"status": status})
        return self

    def reservation(self, number):
        name = f"train-{number}"
        spec = {"reason": "Starving", "job": "pods/job/train", "nodeName": "n1", "victims": []}
        spec["pod"] = {"namespace": "a", "name": name, "uid": f"job/Job/a/train/{number}"}
        return {"kind": "Reservation", "metadata": {"name": name}, "spec": spec}

    def lift(self, *numbers):
        for number in numbers:
            self.see(self.reservation(number), "DELETED")
        return self

    def start(self, pods=2):
        """Its pods exist from then on."""
        self.see(train(pods, suspend=False))
        self.create(*(member(number, cpu=2) for number in range(pods)))
        return self

    def come(self, *numbers, to="n1"):
        for number in numbers:
            self.see(bound(member(number, cpu=2), to))
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
    story.bind(short(deadline=60))
    assert story.violations == []
    story.bind(short("late", deadline=91))
    assert story.violations == [f"{LATE.format(each)}, but 12 s later" for each in range(2)]
    history = History(story.records)
    assert [is_backfilled(history, life, LEEWAY.granted) for life in history.lives.values()] == [True, True]


def test_pods_of_the_job_may_come(story):
    """They may be larger than its template."""
    story.start().later(11).bind(member(2, cpu=3))
    assert story.violations == []


def test_what_was_reserved_for_the_job_only_just_now_may_be_taken(story):
    again = story.lift(1).reservation(1)
    again["metadata"]["uid"] = "again"
    story.see(again, "ADDED")
    story.later(5).bind(pod("p", "b", cpu=2))
    assert story.violations == []
    story.later(6).bind(pod("q", "b", cpu=1))
    assert len(story.violations) == 2


def has_gone(story):
    story.see(train(), "DELETED")


def does_not_wait_any_more(story):
    story.see(namespace(""))


def is_suspended_again(story):
    story.see(train(suspend=False))
    story.create(member(0, cpu=2))
    again = train()
    again["metadata"]["annotations"] = {BY_USER: "1"}
    story.see(again)


def wants_fewer(story):
    story.see(train(1))


@pytest.mark.parametrize("happens", [has_gone, does_not_wait_any_more, wants_fewer, is_suspended_again])
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


@pytest.mark.parametrize(("seconds", "number"), [(98, 2), (100, 0)])
def test_a_promise_to_a_job_is_kept_if_it_starts_by_then_or_soon_after(story, seconds, number):
    assert kept(History(story.records)) == 0
    story.later(seconds).start()
    assert kept(History(story.records)) == number


# Once it has started


def test_a_node_of_a_started_job_is_its_own_until_all_of_its_pods_have_come(story):
    story.start().come(0).later(11).bind(pod("p", "b"))
    text = "72.0 s: b/p was bound to n1, reserved for a/train-1 since 42.0 s, and is not gone by the promised start"
    assert story.violations == [f"{text}, but inf s later"]


def test_a_node_to_which_all_pods_of_a_started_job_have_come_may_be_used(story):
    story.start().come(0, 1).later(11).bind(pod("p", "b"))
    assert story.violations == []


@pytest.mark.parametrize(("seconds", "later", "found"), [(9, 0, 2), (12, 0, 0), (12, 11, 2)])
def test_room_for_a_started_job_is_kept_for_some_seconds_and_once_its_pods_exist(story, seconds, later, found):
    story.see(train(suspend=False))
    story.later(seconds).create(*(member(number, cpu=2) for number in range(2)))
    story.later(later).bind(pod("p", "b"))
    assert len(story.violations) == found


@pytest.mark.parametrize(("cpu", "found"), [(None, 0), (1, 2)])
def test_a_pod_of_a_started_job_has_room_soon_after_the_promised_start(story, cpu, found):
    story.start().come(0)
    story.bind(short(cpu=cpu))
    story.later(112).create(pod("other", "c"))
    assert ["was promised room on n1, and has none" in each for each in story.violations] == [True] * found


GIVEN_UP = "n1 is not reserved for a/train-{} any more, whose Job has started: {}"


@pytest.mark.parametrize(
    ("came", "lifted", "found"),
    [
        ((0,), (0,), [(0, "1 of its pods are to come, and room is reserved for 0")]),
        ((), (0,), [(0, "2 of its pods are to come, and room is reserved for 1")]),
        ((), (0, 1), [(0, "2 of its pods"), (1, "2 of its pods are to come, and room is reserved for 0")]),
        ((0, 1), (0, 1), []),
    ],
)
def test_a_node_given_up_before_the_pods_of_a_started_job_have_come_is_found(story, came, lifted, found):
    """As many pods have come as are on nodes: once one is lifted for a pod that came, the pod counts for the next."""
    story.start().come(*came).later(10).lift(*lifted)
    told = zip(story.violations, found, strict=True)
    assert all(GIVEN_UP.format(number, text) in each for each, (number, text) in told)


def test_nodes_that_a_started_job_does_not_need_any_more_may_be_given_up(story):
    story.start().come(1, to="n2").later(10).lift(1)
    assert story.violations == []


def test_pods_of_a_started_job_that_may_not_have_been_seen_are_not_waited_for(story):
    story.see(train(suspend=False))
    story.create(member(0, cpu=2))
    story.come(0).later(10).create(member(1, cpu=2))
    story.later(1).lift(0, 1)
    assert story.violations == []


def a_pod_came_elsewhere(story):
    story.come(1, to="n2")


def it_has_grown(story):
    story.see(train(3, suspend=False))
    story.later(10)


def a_pod_has_a_gate(story):
    gated = member(1, cpu=2)
    gated["spec"]["schedulingGates"] = [{"name": "a"}]
    story.see(gated)


def a_pod_has_gone(story):
    story.see(bound(member(0, cpu=2)), "DELETED")


def a_node_was_lost(story):
    story.see(sized("n1", cpu=4, pods=9), "DELETED")


def its_pods_may_be_refused(story):
    story.create(elastic_quota("a", min={"cpu": 4}, max={"cpu": 8}))


def it_is_in_a_queue(story):
    queued = namespace("queued")
    queued["metadata"]["annotations"] = {QUEUE: "q"}
    story.see(queued)


def it_was_seen_late(story):
    story.at -= 9


@pytest.mark.parametrize(
    "why",
    [
        a_pod_came_elsewhere,
        it_has_grown,
        a_pod_has_a_gate,
        a_pod_has_gone,
        a_node_was_lost,
        its_pods_may_be_refused,
        it_is_in_a_queue,
        it_was_seen_late,
        has_a_wrong_clock,
        is_suspended_again,
    ],
)
def test_a_node_of_a_started_job_may_be_given_up_for_a_reason(story, why):
    story.start().come(0).later(10)
    why(story)
    story.lift(0, 1)
    assert story.violations == []


def test_a_member_may_get_another_node(story):
    story.start().later(10).lift(0, 1)
    assert len(story.violations) == 2
    for number in range(2):
        again = story.reservation(number)
        again["metadata"]["uid"] = f"again-{number}"
        again["spec"]["nodeName"] = "n2"
        story.see(again, "ADDED")
    assert story.violations == []


def test_what_was_kept_for_a_started_job_for_long_enough_may_be_given_up(story):
    story.start().later(10)
    for number in range(2):
        story.see(story.reservation(number) | {"status": {"failedAt": time(story.at)}})
    assert story.violations == []
