"""What work takes, in lines of Python of ours that are run: a line that is run a second time counts again."""

import gc
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
OURS = tuple(f"{ROOT / package}{os.sep}" for package in ("app", "policy"))


def lines_of(work, body):
    """How many lines of Python are run; the third time, when everything is at hand that is made once."""
    for _ in range(2):
        work(body)
    return lines_once(work, body)


def lines_once(work, *arguments):
    """How many lines of Python are run. Garbage of others is not collected meanwhile: it may end by lines of ours."""
    count = 0

    def within(_frame, event, _argument):
        nonlocal count
        if event == "line":
            count += 1
        return within

    def called(frame, _event, _argument):
        return within if frame.f_code.co_filename.startswith(OURS) else None

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(called)
    try:
        work(*arguments)
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count


def longest_step(work):
    """The most lines that are run between two pauses of a generator, which is used up."""
    work, longest, ended = iter(work), 0, []

    def step():
        try:
            next(work)
        except StopIteration:
            ended.append(True)

    while not ended:
        longest = max(longest, lines_once(step))
    return longest
