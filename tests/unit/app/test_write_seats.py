"""Slow writes where their order matters: they lose their seats only if the API server answers everything else."""

import asyncio

import pytest

from app.controllers import write_seats
from app.controllers.write_seats import WriteSeats
from tests.unit.app.given import Clock


class Busy:
    """A machine on which nothing is answered for a while; and the only seat there is."""

    def __init__(self):
        self.asked, self.answers = asyncio.Event(), asyncio.Event()
        self.seats = WriteSeats(1, Clock(), answered=self.answered)

    async def answered(self):
        self.asked.set()
        await self.answers.wait()


@pytest.fixture(autouse=True)
def soon_slow(monkeypatch):
    monkeypatch.setattr(write_seats, "SLOW", 0.01)


def while_a_write_is_slow(check):
    """Checks something while a write is under way that has taken long."""

    async def scenario():
        busy = Busy()
        assert await busy.seats.take_for("slow")
        with busy.seats.writing_in("slow"):
            await asyncio.wait_for(busy.asked.wait(), 5)
            await check(busy)
        return busy.seats

    return asyncio.run(scenario())


async def comes_back(busy):
    await asyncio.wait_for(busy.seats.take(), 5)
    assert busy.seats.are_kept_from("slow")


async def the_write_is_answered_with_all_else(busy):
    assert not busy.seats.are_kept_from("slow")
    write_seats.SLOW = 0  # until the end of the test: by its time alone the write was slow
    busy.answers.set()


async def all_else_is_answered(busy):
    busy.answers.set()
    await comes_back(busy)


def test_a_write_that_takes_no_longer_than_all_else_is_not_slow_and_keeps_its_seat():
    seats = while_a_write_is_slow(the_write_is_answered_with_all_else)
    assert not seats.is_slow_in("slow")


def test_a_write_that_takes_longer_than_all_else_gives_its_seat_back():
    seats = while_a_write_is_slow(all_else_is_answered)
    assert seats.is_slow_in("slow")


def test_a_write_does_not_keep_its_seat_for_long_though_nothing_is_answered(monkeypatch):
    monkeypatch.setattr(write_seats, "UNANSWERED", 0.01)
    assert while_a_write_is_slow(comes_back).is_slow_in("slow")


@pytest.mark.parametrize("turns", range(6))
def test_nobody_watches_a_write_that_ends_just_as_all_else_is_answered(turns):
    """Else its seat would be given back a second time."""

    async def scenario():
        busy = Busy()
        await busy.seats.take()
        with busy.seats.writing_in("slow"):
            await asyncio.wait_for(busy.asked.wait(), 5)
            busy.answers.set()
            for _ in range(turns):
                await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
