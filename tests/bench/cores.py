"""Cores of the machine: what is measured has one of its own, as in a cluster, where the API server runs elsewhere."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def one_left_free() -> Iterator[int | None]:
    """This process, and all that it starts, leaves one core alone. Gives its number; None where there is but one."""
    before = os.sched_getaffinity(0)
    free = min(before) if len(before) > 1 else None
    os.sched_setaffinity(0, before - {free} or before)
    try:
        yield free
    finally:
        os.sched_setaffinity(0, before)


def move(pid: int, core: int | None) -> None:
    """Puts a running process, with all its threads, on a core."""
    if core is not None:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {core})


@contextmanager
def urgent() -> Iterator[None]:
    """Whatever else would run on its core waits for this thread, where that is allowed (to root)."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
