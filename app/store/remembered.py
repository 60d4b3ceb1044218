"""A cache with a bound on memory: results for parts of a pod serve the next pods of its template."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

MOST = 2**21
"""Approximate bytes of the arguments of one function after which its cache is cleared: large pods come and go.

That is room for some 2,000 templates of pods with five labels each, and little beside the pods themselves.
"""
EACH = 50
"""Bytes that a value takes beside its content."""


def remembered(number: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Caches up to ``number`` results of a pure function of tuples, text and bytes. A hit measures nothing."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        size = 0

        @lru_cache(maxsize=number)
        def on_miss(*arguments: P.args, **named: P.kwargs) -> T:
            nonlocal size
            size += _size(arguments)
            if size > MOST:
                on_miss.cache_clear()
                size = 0
            return function(*arguments, **named)

        return cast("Callable[P, T]", on_miss)

    return decorate


def _size(value: Any) -> int:
    if isinstance(value, tuple):
        return EACH + sum(map(_size, value))
    return EACH + len(value) if isinstance(value, str | bytes) else EACH
