"""Resource vectors: amounts by resource name, integers in the unit of each resource (see quantity).

A resource that is absent counts as zero; what an absent one means in a limit is the rule's business.
"""

from collections.abc import Iterable, Mapping

Resources = Mapping[str, int]

NOTHING: Resources = {}


def is_extended(resource: str) -> bool:
    """Whether a resource is an extended one: a device, or whatever else somebody has made a name for."""
    return "/" in resource


def add(total: dict[str, int], part: Resources) -> None:
    """Adds ``part`` to ``total`` in place."""
    for resource, value in part.items():
        total[resource] = total.get(resource, 0) + value


def subtract(total: dict[str, int], part: Resources) -> None:
    """Takes ``part`` off ``total`` in place; what becomes zero is dropped, so equal sums are equal dicts."""
    for resource, value in part.items():
        if left := total.get(resource, 0) - value:
            total[resource] = left
        else:
            total.pop(resource, None)


def replace_part(total: dict[str, int], before: Resources, after: Resources) -> None:
    """Puts one part in place of another, of which ``total`` is the sum."""
    if before == after:
        return
    for resource in {**before, **after}:
        if value := total.get(resource, 0) + after.get(resource, 0) - before.get(resource, 0):
            total[resource] = value
        else:
            total.pop(resource, None)


def count_names(counts: dict[str, int], before: Iterable[str], after: Iterable[str]) -> None:
    """Counts by how many each name is used, of whom one uses other names from now on."""
    subtract(counts, dict.fromkeys(before, 1))
    add(counts, dict.fromkeys(after, 1))


def total(parts: Iterable[Resources]) -> dict[str, int]:
    """The sum of vectors."""
    result: dict[str, int] = {}
    for part in parts:
        add(result, part)
    return result


def largest(*parts: Resources) -> dict[str, int]:
    """The larger amount of each resource."""
    result: dict[str, int] = {}
    for part in parts:
        for resource, value in part.items():
            if value > result.get(resource, 0):
                result[resource] = value
    return result
