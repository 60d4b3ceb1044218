"""The first jobs of each line, among very many that wait."""

import random

import pytest

from policy.reserve import first_of_lines, starving
from policy.reserve.first_of_lines import AT_A_TIME, FirstOfLines, Smallest
from policy.reserve.starving import Terms, goes_first_steps, in_turn_steps
from policy.stepwise import at_once
from tests.unit.given import pod
from tests.unit.given_jobs import NOW, seen, sized, sized_pod, waiting

TERMS = Terms(starving_after=3600, ahead=2)


def first(cluster, known, now=NOW):
    """The first jobs of a look at this time."""
    return {job.name.removeprefix("pods/") for job in at_once(in_turn_steps(cluster, TERMS, now, known))}


def higher(number):
    """Pods that come before ``big`` by priority. No node has room for any of them, and each is a kind of its own."""
    return [waiting(f"w{each:04}", 4 + each / 1000, age=30, priority=1 + each) for each in range(number)]


@pytest.mark.parametrize("number", [1, 3, 50])
def test_the_smallest_are_those_that_sort_first_by_the_smallest_rank_of_each(number):
    chance = random.Random(number)
    added = [(chance.randrange(200), chance.random()) for _ in range(2000)]
    kept, ranks = Smallest[int](number), {}
    for key, rank in added:
        kept.add(key, rank)
        ranks[key] = min(rank, ranks.get(key, 1.0))
        assert len(kept._ranks) <= 2 * number
    assert kept.in_order() == sorted(ranks.items(), key=lambda each: each[1])[:number]


def test_the_first_of_very_many_are_kept_for_a_time_that_grows_with_their_number(monkeypatch):
    monkeypatch.setattr(first_of_lines, "PODS_A_SECOND", 10)
    cluster, known = seen(sized(), *(waiting(f"w{each}", age=60 + each) for each in range(20))), FirstOfLines()
    assert first(cluster, known) == {"w19", "w18"}
    cluster.upsert_pod(waiting("new", age=90), now=0)
    assert first(cluster, known, NOW + 1.9) == {"w19", "w18"}
    assert first(cluster, known, NOW + 2) == {"new", "w19"}
    cluster.delete_pod("new")
    assert first(cluster, known, NOW + 2.1) == {"w19"}, "one that is gone is not looked at"
    assert first(cluster, known, NOW - 5) == {"w19", "w18"}, "a clock that was set back makes no one wait"


def test_a_look_at_very_many_pauses_and_some_may_go_meanwhile():
    cluster = seen(sized(), *(waiting(f"w{each:04}", age=7200 - each) for each in range(1000)))
    work, gone = in_turn_steps(cluster, TERMS, NOW), 0
    for _ in work:
        if gone < 15:
            gone += 1
            cluster.delete_pod(f"w{1000 - gone:04}")
    assert gone == 15


def test_who_goes_first_is_found_in_steps_however_many_wait(monkeypatch):
    cluster = seen(sized(), waiting(age=60), *higher(1000))
    judged, step = [], []
    is_to_be_tried = starving._is_to_be_tried
    monkeypatch.setattr(starving, "_is_to_be_tried", lambda *question: step.append(1) or is_to_be_tried(*question))
    for _ in goes_first_steps(cluster, cluster.groups.job("a", "pods/big"), NOW):
        judged.append(len(step))
        step.clear()
    assert max(judged) <= AT_A_TIME
    assert sum(judged) < 1100, "each once, and the first kinds once more"


@pytest.mark.parametrize("steps", [20, 22], ids=["while all are looked at", "before it is tried"])
@pytest.mark.parametrize("change", ["none", "gone", "bound"])
def test_who_is_gone_by_the_end_of_the_steps_goes_first_no_longer(change, steps):
    cluster = seen(sized(), waiting(age=60), *higher(1000), sized_pod("urgent", 1, priority=2000))
    work = goes_first_steps(cluster, cluster.groups.job("a", "pods/big"), NOW)
    for _ in range(steps):
        next(work)
    if change == "gone":
        cluster.delete_pod("urgent")
    elif change == "bound":
        cluster.upsert_pod(pod("urgent", node="n2"), now=0)
    found = None
    try:
        while True:
            next(work)
    except StopIteration as end:
        found = end.value
    assert (found and found.title) == ("a/urgent" if change == "none" else None)
