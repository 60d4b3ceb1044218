"""Long work gives way: after each slice there are turns of the loop in which nobody works for long."""

import asyncio
from itertools import pairwise

import pytest

from app import pause
from app.pause import TURNS, Pause


@pytest.mark.parametrize("workers", [1, 3])
def test_between_two_slices_of_whomever_a_question_can_be_answered(monkeypatch, workers):
    monkeypatch.setattr(pause, "SLICE", 0.0)
    turns, worked = 0, list[int]()

    async def neighbour():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work():
        breather = Pause()
        for _ in range(10):
            worked.append(turns)
            await breather.if_due()

    async def scenario():
        task = asyncio.create_task(neighbour())
        await asyncio.gather(*(work() for _ in range(workers)))
        task.cancel()

    asyncio.run(scenario())
    later = worked[workers:]  # all begin at once
    assert len(worked) == 10 * workers
    assert all(after - before >= TURNS for before, after in pairwise(later))


def test_those_who_work_at_the_same_time_do_a_slice_each_in_turn(monkeypatch):
    monkeypatch.setattr(pause, "SLICE", 0.0)
    slices = list[str]()

    async def work(name):
        breather = Pause()
        for _ in range(10):
            slices.append(name)
            await breather.if_due()

    async def scenario():
        await asyncio.gather(*(work(name) for name in "abc"))

    asyncio.run(scenario())
    assert "".join(slices) == "abc" * 10


def test_who_is_stopped_while_it_rests_keeps_nobody_else_from_going_on(monkeypatch):
    monkeypatch.setattr(pause, "SLICE", 0.0)

    async def scenario():
        resting = asyncio.create_task(Pause().if_due())
        await asyncio.sleep(0)
        resting.cancel()
        await asyncio.wait_for(Pause().if_due(), 30)

    asyncio.run(scenario())


def test_who_rests_in_a_loop_that_was_stopped_keeps_nobody_in_another_from_going_on(monkeypatch):
    monkeypatch.setattr(pause, "SLICE", 0.0)

    async def rest_for_a_moment():
        resting = asyncio.create_task(Pause().if_due())
        await asyncio.sleep(0)
        return resting

    stopped = asyncio.new_event_loop()
    resting = stopped.run_until_complete(rest_for_a_moment())
    asyncio.run(asyncio.wait_for(Pause().if_due(), 30))
    stopped.run_until_complete(resting)
    stopped.close()


@pytest.mark.parametrize(("step", "steps"), [(0.2, 1), (0.12, 2), (0.055, 5), (1, 1)])
def test_a_slice_ends_before_the_step_that_would_make_it_too_long(step, steps):
    """Steps of so many milliseconds, and as many as fit into a slice."""
    turns, now = [0], [0.0]

    async def neighbour():
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    async def work():
        breather, paused = Pause(lambda: now[0]), list[int]()
        for number in range(1, 11):
            now[0] += step / 1000
            before = turns[0]
            await breather.if_due()
            if turns[0] > before:
                paused.append(number)
        return paused

    async def scenario():
        task = asyncio.create_task(neighbour())
        paused = await work()
        task.cancel()
        return paused

    assert asyncio.run(scenario()) == list(range(steps, 11, steps))
