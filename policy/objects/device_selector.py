"""Selectors of device classes, as far as they are plain comparisons: with a driver, or with an attribute of a device.

Kubernetes evaluates them as CEL. Here several comparisons may be joined by ``&&``; any other expression is not judged.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Value = str
"""The value of an attribute, as it is written in an expression: ``"text"``, ``7`` or ``true``.

Versions are not judged, as CEL compares them in its own way.
"""
DRIVER = "driver"
"""Stands for the driver of a device among its attributes: their own names have a domain."""

_LITERAL = r"""("[^"\\]*"|'[^'\\]*'|-?[0-9]+|true|false)"""
_DRIVER = re.compile(rf"device\.driver\s*==\s*{_LITERAL}")
_ATTRIBUTE = re.compile(
    rf"""device\.attributes\[("[^"\\]*"|'[^'\\]*')\]\.([A-Za-z_][A-Za-z0-9_]*)(?:\s*==\s*{_LITERAL})?"""
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """An attribute, named with its domain, and the value that it must have."""

    attribute: str
    value: Value


def parse(expressions: Iterable[str]) -> tuple[Comparison, ...] | None:
    """Returns the comparisons that all have to hold; None if one of the expressions is anything else."""
    found = [_comparison(part.strip()) for expression in expressions for part in _parts(expression)]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def holds(comparisons: Iterable[Comparison], attributes: Mapping[str, Value]) -> bool:
    """Whether a device with these attributes, its driver among them, is selected."""
    return all(attributes.get(each.attribute) == each.value for each in comparisons)


def _parts(expression: str) -> list[str]:
    """Splits an expression at ``&&``. One within quotes makes parts that are no comparisons."""
    return expression.split("&&")


def _comparison(text: str) -> Comparison | None:
    if (match := _DRIVER.fullmatch(text)) is not None:
        return Comparison(DRIVER, _value(match[1]))
    if (match := _ATTRIBUTE.fullmatch(text)) is not None:
        return Comparison(f"{match[1][1:-1]}/{match[2]}", "true" if match[3] is None else _value(match[3]))
    return None


def as_value(given: str | bool | int) -> Value:  # noqa: FBT001 - whatever an attribute is
    """Returns the value of an attribute."""
    if isinstance(given, bool):
        return "true" if given else "false"
    return f'"{given}"' if isinstance(given, str) else str(given)


def _value(literal: str) -> Value:
    return as_value(literal[1:-1]) if literal[0] in "\"'" else literal
