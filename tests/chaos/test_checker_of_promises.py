"""Small histories of promised starts: one that we have moved is found, and what is like it and lawful is not."""

from datetime import UTC, datetime

import pytest

from tests.chaos.history import History
from tests.chaos.promises import is_backfilled, kept, moved
from tests.chaos.test_checker import API, LEEWAY, Story, bound, has_a_wrong_clock, opted_out, owned, priority, sized
from tests.controlplane.objects import disruption_budget, labelled, pod

EPOCH = 1_800_000_000.0


def time(seconds):
    return datetime.fromtimestamp(EPOCH + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class PromiseStory(Story):
    """A node of 4 cores is reserved for ``large``, which wants them all and is promised them in 100 s."""

    def __init__(self, *there):
        super().__init__()
        self.create(sized("n1", cpu=4, pods=9))
        self.bind(*there)
        self.at = 30.0
        self.large = pod("large", "a", cpu=4)
        self.create(self.large)
        self.reservation = self.reserve("r", self.large, reason="Starving", job="pods/large")
        self.promise(130)
        self.later(20)

    def see(self, item, event="MODIFIED"):
        item["metadata"].setdefault("creationTimestamp", time(self.at))
        super().see(item, event)

    def promise(self, at):
        status = {"promisedStart": time(at)} if at else {}
        self.see(self.reservation | {"status": status})
        return self

    @property
    def moved(self):
        return list(moved(History(self.records), LEEWAY.granted, LEEWAY.seen))


def short(name="short", deadline=60, cpu=1, **spec):
    return pod(name, "b", cpu, activeDeadlineSeconds=deadline, **spec)


@pytest.fixture
def story():
    return PromiseStory()


# Who comes


@pytest.mark.parametrize("ago", [5, 20])
def test_a_pod_that_is_gone_before_may_come(story, ago):
    """Also where the node was reserved only just now."""
    story.later(ago - 20).bind(short(deadline=80))
    assert story.violations == []
    history = History(story.records)
    assert [is_backfilled(history, life, LEEWAY.granted) for life in history.lives.values()] == [False, True]


def test_nobody_is_backfilled_where_no_start_is_promised(story):
    story.promise(0).bind(short(deadline=80))
    history = History(story.records)
    assert not any(is_backfilled(history, life, LEEWAY.granted) for life in history.lives.values())


@pytest.mark.parametrize("comes", [short(deadline=91), short(deadline=80, terminationGracePeriodSeconds=11)])
def test_a_pod_that_is_not_gone_before_is_found(story, comes):
    story.bind(comes)
    text = "50.0 s: b/short was bound to n1, reserved for a/large since 20.0 s"
    assert story.violations == [f"{text}, and is not gone by the promised start, but 1 s later"]


def test_a_pod_without_a_deadline_is_found(story):
    story.bind(pod("p", "b"))
    assert ["but inf s later" in each for each in story.violations] == [True]


def test_a_pod_may_have_been_let_in_while_the_promise_was_later(story):
    story.promise(120).later(5).bind(short(deadline=80))
    assert story.violations == []
    story.later(10).bind(short("other", 80))
    assert ["b/other was bound" in each for each in story.violations] == [True]


# What moves a promise


def test_a_promise_may_move_earlier(story):
    story.promise(80).promise(70)
    assert (story.violations, story.moved) == ([], [])


@pytest.mark.parametrize(("at", "how"), [(137, "7 s later"), (0, "not any more")])
def test_a_promise_that_moves_later_for_no_reason_is_found(story, at, how):
    story.bind(short(deadline=70))
    story.later(5).promise(at)
    text = f"55.0 s: a/large was promised room on n1, and then {how}; "
    assert story.violations == [f"{text}there are: b/short since 20 s, gone -10 s after the start"]
    assert story.moved == [""]


def test_a_promise_ends_with_its_reservation(story):
    story.see(story.reservation, "DELETED")
    assert (story.violations, story.moved) == ([], [])


def loses_the_node(story):
    story.see(sized("n1", cpu=4, pods=9), "DELETED")


def loses_size(story):
    story.see(sized("n1", cpu=3, pods=9))


def gets_a_daemon(story):
    story.bind(owned(pod("daemon", "b"), "DaemonSet"))


def gets_a_critical_pod(story):
    story.bind(priority(pod("critical", "b"), 2_000_000_000))


def gets_a_pod_by_hand(story):
    story.see(bound(pod("by-hand", "b")), "ADDED")


def gets_one_late_that_stays(story):
    story.bind(opted_out(short(deadline=85)))


def has_a_plan_for_a_daemon(story):
    daemon = owned(pod("daemon", "b"), "DaemonSet")
    story.create(daemon)
    story.reserve("plan", daemon)


@pytest.mark.parametrize(
    "happens",
    [
        loses_the_node,
        loses_size,
        gets_a_daemon,
        gets_a_critical_pod,
        gets_a_pod_by_hand,
        gets_one_late_that_stays,
        has_a_plan_for_a_daemon,
        has_a_wrong_clock,
    ],
)
def test_what_nobody_let_in_may_move_a_promise(story, happens):
    happens(story)
    story.promise(0)
    assert (story.violations, bool(story.moved[0])) == ([], True)


@pytest.mark.parametrize("item", [owned(pod("daemon", "b"), "DaemonSet"), opted_out(short(deadline=101))])
def test_what_happened_before_the_promise_moves_nothing(item):
    story = PromiseStory(item)
    story.promise(0)
    assert len(story.violations) == 1


@pytest.mark.parametrize(
    ("deadline", "ago", "why"), [(200, 1, "a pod came just before the promise"), (60, 1, ""), (200, 3, "")]
)
def test_a_promise_may_have_been_made_before_a_pod_was_seen(story, deadline, ago, why):
    story.promise(0).later(60 - story.at).bind(short(deadline=deadline))
    story.later(ago).promise(130).later(1).promise(0)
    assert story.moved == ["", why] if why else [""]


def test_a_pod_that_left_long_ago_moves_nothing(story):
    daemon = owned(pod("daemon", "b"), "DaemonSet")
    story.bind(daemon)
    story.see(bound(daemon), "DELETED")
    story.later(20).promise(0)
    assert len(story.violations) == 1


class FaultyStory(PromiseStory):
    """A clock is wrong for a moment while something happens, and right again long before the promise moves."""

    def __init__(self, happens):
        super().__init__(short("there", deadline=120))
        self.later(40)
        has_a_wrong_clock(self)
        happens(self)
        self.later(1)
        has_a_wrong_clock(self, wrong=False)
        self.later(30).promise(0)


def lets_nobody_in(story):
    story.create(pod("other", "c"))


def lets_in_who_is_gone(story):
    story.bind(short(deadline=20, terminationGracePeriodSeconds=0))


def lets_in_who_is_late(story):
    story.bind(short(deadline=100))


def moves_it_earlier(story):
    story.promise(125)


def promises_too_much(story):
    """A pod that was there before would be late."""
    story.promise(119)


@pytest.mark.parametrize(
    ("happens", "moved"),
    [
        (lets_nobody_in, [""]),
        (lets_in_who_is_gone, [""]),
        (lets_in_who_is_late, ["a clock was wrong"]),
        (moves_it_earlier, [""]),
        (promises_too_much, ["a clock was wrong"]),
    ],
)
def test_a_clock_that_was_wrong_for_a_moment_excuses_what_was_decided_by_it(happens, moved):
    assert FaultyStory(happens).moved == moved


@pytest.mark.parametrize(("at", "moved"), [(60, [""]), (74, ["a clock was wrong"])])
def test_a_clock_that_is_wrong_when_late_pods_have_to_go_excuses_them(at, moved):
    story = PromiseStory()
    story.bind(short(deadline=200))
    has_a_wrong_clock(story.later(at))
    story.later(1)
    has_a_wrong_clock(story, wrong=False)
    assert story.later(20).promise(0).moved == moved


@pytest.fixture
def by_a_wrong_clock(story):
    """The promise was given by a wrong clock, which is right long before anything else happens."""
    story.see(story.reservation, "DELETED")
    story.reservation = story.reserve("by-wrong-clock", story.large, reason="Starving", job="pods/large")
    has_a_wrong_clock(story)
    story.promise(130).later(1)
    has_a_wrong_clock(story, wrong=False)
    return story.later(20)


def test_a_promise_by_a_wrong_clock_does_not_excuse_who_was_let_in_by_a_right_one(by_a_wrong_clock):
    by_a_wrong_clock.bind(short(deadline=100))
    assert by_a_wrong_clock.later(10).promise(0).moved == [""]


@pytest.mark.parametrize(("seconds", "why"), [(58, ""), (61, "a clock was wrong")])
def test_who_came_after_a_promise_by_a_wrong_clock_may_stay_too_long(by_a_wrong_clock, seconds, why):
    by_a_wrong_clock.bind(short(deadline=20, terminationGracePeriodSeconds=0))
    assert by_a_wrong_clock.later(seconds).promise(0).moved == [why]


# Whether it is kept


def test_a_job_that_has_no_room_long_after_its_promised_start_is_found(story):
    story.bind(short())
    story.later(111).create(pod("other", "c"))
    assert story.violations == []
    story.later(2).create(pod("another", "c"))
    assert ["a/large was promised room on n1, and has none" in each for each in story.violations] == [True]


def test_a_job_that_has_room_may_wait_for_other_reasons(story):
    story.later(113).create(pod("other", "c"))
    assert story.violations == []


@pytest.mark.parametrize(("late", "lawful"), [(105, False), (111, True)])
def test_pods_that_a_budget_protects_may_be_late(story, late, lawful):
    protected = labelled(short(), app="web")
    story.create(disruption_budget("budget", "b", 1, app="web"))
    story.bind(protected)
    story.later(late).promise(0)
    assert (story.violations == [], bool(story.moved[0])) == (lawful, lawful)


@pytest.mark.parametrize(("seconds", "number"), [(109, 1), (111, 0)])
def test_a_promise_is_kept_if_its_job_starts_by_then_or_soon_after(story, seconds, number):
    assert kept(History(story.records)) == 0
    story.later(seconds).see(bound(story.large))
    assert kept(History(story.records)) == number


# Who is evicted for it


def evicted(story, item, at, started=50):
    item["status"] = {"startTime": time(started)}
    story.bind(item)
    story.later(at - story.at).evict(item, API)
    return [each for each in story.violations if "no reservation says for whom" in each]


@pytest.mark.parametrize(("at", "lawful"), [(90, False), (124, True)])
def test_who_would_be_late_is_evicted_and_not_sooner_than_needed(story, at, lawful):
    assert bool(evicted(story, short(deadline=85), at)) != lawful


def test_who_would_be_late_for_one_of_two_promises_is_evicted(story):
    """The other one is older, and for later."""
    story.promise(200)
    story.reservation = story.reserve("other", story.large, reason="Starving", job="pods/large")
    story.promise(130).later(70)
    assert not evicted(story, short(deadline=20, terminationGracePeriodSeconds=0), 124)


def test_who_is_gone_in_time_is_not_evicted_for_a_promise(story):
    assert evicted(story, short(deadline=79, terminationGracePeriodSeconds=0), 124)


def test_who_ignores_its_end_is_evicted_for_a_promise(story):
    assert not evicted(story, short(deadline=60), 124)


def test_who_has_no_deadline_is_not_evicted_for_a_promise(story):
    assert evicted(story, pod("p", "b"), 124)
