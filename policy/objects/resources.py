"""Resource vectors: amounts by resource name, integers in the unit of each resource (see quantity).

An absent resource counts as zero. Each rule says what an absent one means in a limit.
"""

from collections.abc import Iterable, Mapping

Resources = Mapping[str, int]

NOTHING: Resources = {}


def is_extended(resource: str) -> bool:
    """Whether a resource is an extended one: a device, or anything else that somebody has named."""
    return "/" in resource


def add(total: dict[str, int], part: Resources) -> None:
    """Adds ``part`` to ``total`` in place."""
    for resource, value in part.items():
        total[resource] = total.get(resource, 0) + value


def subtract(total: dict[str, int], part: Resources) -> None:
    """Subtracts ``part`` from ``total`` in place. Drops resources that become zero, so equal sums are equal dicts."""
    for resource, value in part.items():
        if left := total.get(resource, 0) - value:
            total[resource] = left
        else:
            total.pop(resource, None)


def change(totals: Iterable[dict[str, int]], part: Resources, times: int) -> None:
    """Adds ``part`` to each of ``totals`` (``times`` is 1) or subtracts it from them (-1), in place."""
    step = add if times > 0 else subtract
    for each in totals:
        step(each, part)


def replace_part(total: dict[str, int], before: Resources, after: Resources) -> None:
    """Replaces one part of the sum ``total`` with another, in place."""
    if before == after:
        return
    for resource in {**before, **after}:
        if value := total.get(resource, 0) + after.get(resource, 0) - before.get(resource, 0):
            total[resource] = value
        else:
            total.pop(resource, None)


def count_names(counts: dict[str, int], before: Iterable[str], after: Iterable[str]) -> None:
    """Updates the number of users of each name, when one user changes its names from ``before`` to ``after``."""
    subtract(counts, dict.fromkeys(before, 1))
    add(counts, dict.fromkeys(after, 1))


def total(parts: Iterable[Resources]) -> dict[str, int]:
    """Returns the sum of vectors."""
    result: dict[str, int] = {}
    for part in parts:
        add(result, part)
    return result


def largest(*parts: Resources) -> dict[str, int]:
    """Returns the largest amount of each resource."""
    result: dict[str, int] = {}
    for part in parts:
        for resource, value in part.items():
            if value > result.get(resource, 0):
                result[resource] = value
    return result


def is_lighter(after: Resources, before: Resources) -> bool:
    """Whether some amount has become less."""
    return any(after.get(resource, 0) < value for resource, value in before.items())
