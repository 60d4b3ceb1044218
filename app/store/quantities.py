"""Reads quantities of Kubernetes, in requests and in bounds, into amounts. Errors name the field at fault."""

from collections.abc import Mapping
from typing import Any

from policy.objects.quantity import InvalidQuantity, Quantity, amount_of_milli, to_milli

ResourceList = dict[str, str | int | float | None]


class InvalidObject(ValueError):
    """A Kubernetes object that cannot be used. The error names the field at fault."""

    def __init__(self, field: str, problem: str) -> None:
        """``field`` is a path within the object, like ``spec.overhead.cpu``."""
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def milli_of(quantities: Mapping[str, Quantity | None] | None, path: str) -> dict[str, int]:
    """Returns quantities in thousandths. Raises InvalidObject for one that cannot be read or is negative."""
    result: dict[str, int] = {}
    if not quantities:
        return result
    for resource, quantity in quantities.items():
        try:
            value = 0 if quantity is None else to_milli(quantity)
        except InvalidQuantity as error:
            raise InvalidObject(f"{path}.{resource}", str(error)) from error
        if value < 0:
            raise InvalidObject(f"{path}.{resource}", "is negative")
        result[resource] = value
    return result


def milli_or_none(quantities: Mapping[str, Quantity | None] | None, path: str) -> dict[str, int] | None:
    """Returns quantities in thousandths like ``milli_of``; None where ``quantities`` is None."""
    return None if quantities is None else milli_of(quantities, path)


def limits_of(given: Any, path: str, errors: list[str]) -> dict[str, int]:
    """Returns bounds, like a quota's min or max, in amounts. Appends an error for each that cannot be read."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        errors.append(f"{path}: must be a map of resource names to quantities")
        return {}
    result = {}
    for resource, quantity in given.items():
        if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
            errors.append(f"{path}.{resource}: is not a quantity")
            continue
        try:
            result.update(
                {name: amount_of_milli(name, milli) for name, milli in milli_of({resource: quantity}, path).items()}
            )
        except InvalidObject as error:
            errors.append(str(error))
    return result
