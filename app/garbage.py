"""Control of the garbage collector: on a large cluster a collection takes tenths of a second, without any answers.

Dropped objects are still freed at once; only reference cycles have to be found.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_under_way = 0


@contextmanager
def undisturbed() -> Iterator[None]:
    """Stops the collector while many short-lived objects are created.

    For the loop's thread only; contexts may overlap. Overlapping contexts may never all end, so each that leaves others
    runs one collection of the youngest generation.
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
    """Excludes existing objects from collections. They are still freed as soon as they are dropped."""
    gc.freeze()
