"""What was made of a part of a pod is remembered for the next one of its template, but not without bound."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

MOST = 2**24
"""Bytes, about, of the arguments of one function after which all is forgotten: large pods come and go."""
EACH = 50
"""Bytes that a value takes anyway."""


def remembered(number: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Remembers up to so many results of a pure function of tuples, text and bytes. Nothing is measured on a hit."""

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
