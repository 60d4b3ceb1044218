"""When the garbage collector may look around: at a large cluster that takes tenths of a second, and nobody is answered.

What is dropped is freed at once all the same; only what refers to itself in a circle has to be found.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_under_way = 0


@contextmanager
def undisturbed() -> Iterator[None]:
    """While many objects come into being that stay for a moment, nobody looks for garbage among them.

    For one thread alone, that of the loop; several may be in here at a time. Of those that overlap there may be no end,
    so whoever leaves the others looks once at what has come into being since.
    """
    global _under_way  # noqa: PLW0603 - there is one collector
    _under_way += 1
    gc.disable()
    try:
        yield
    finally:
        _under_way -= 1
        if _under_way:
            gc.collect(0)
        else:
            gc.enable()


def spare_what_stays() -> None:
    """What is there now is not looked at any more. It is freed as soon as it is dropped, like anything else."""
    gc.freeze()
