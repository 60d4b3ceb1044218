"""Whatever happens in whatever order, if it is valid: nothing fails, and nothing is left of what is gone."""

import asyncio
import os
from random import SystemRandom

import pytest

from app import pause
from app.web import board
from tests.worlds.walk import by_dice, scaled, walk_by
from tests.worlds.wild import WildWorld

EXPLORE = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
LENGTH = 80 if EXPLORE else 50
AT_EVERY_STEP, SELDOM = -1.0, pause.SLICE
"""Seconds of work after which others may go on."""


def live(seed: int) -> None:
    """A walk. Each step has dice of its own, so that a walk that fails still does with some steps left out."""
    with asyncio.Runner() as runner:
        world = WildWorld(by_dice(seed), runner.run)
        world.trace.insert(0, f"seed {seed}")
        walk_by(world, [by_dice(10_007 * seed + number) for number in range(LENGTH)])


@pytest.mark.parametrize("part", range(4))
def test_nothing_fails_and_nothing_is_left_whatever_happens(part, monkeypatch):
    monkeypatch.setattr(board, "INTERVAL", 0)  # the page is up to date whenever it is looked at
    monkeypatch.setattr(board, "RESTRAINT", 0)
    first = SystemRandom().randrange(10**9) if EXPLORE else 1000 * part
    for seed in range(first, first + scaled(10)):
        monkeypatch.setattr(pause, "SLICE", (AT_EVERY_STEP, SELDOM)[seed % 2])
        live(seed)
