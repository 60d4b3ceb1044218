"""Kubernetes quantities to integers and back.

Amounts are integers in a resource's own unit: millicores for ``cpu``, whole units for everything else. Kubernetes
rounds every quantity that reaches it up to a thousandth. It adds the containers of a pod up exactly, and rounds the sum
up once. So there is a step between text and amount, in thousandths.
"""

import re
from functools import lru_cache

Quantity = str | int | float

LARGEST = 2**63 - 1  # Kubernetes caps every quantity here, in whole units
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

_GRAMMAR = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:(Ki|Mi|Gi|Ti|Pi|Ei)|([numkMGTPE]?)|[eE]([+-]?[0-9]+))", re.ASCII
)
_BEYOND = 30  # powers of ten from here on lie beyond LARGEST, whatever digits stand before them
_DIGITS_SHOWN = 40
LONGEST_KEPT = 64
"""The most characters of a quantity whose value is cached: nobody needs more, but anybody may write them."""


class InvalidQuantity(ValueError):
    """The text is not a Kubernetes quantity."""


def to_milli(quantity: Quantity) -> int:
    """Returns the quantity in thousandths, rounded away from zero, capped at ±LARGEST units. Raises InvalidQuantity.

    Grammar and rounding are those of ``resource.Quantity`` in Kubernetes' apimachinery. YAML manifests may have numbers
    in place of text; they are read as their decimal text.
    """
    return _parsed(quantity) if isinstance(quantity, str) and len(quantity) > LONGEST_KEPT else _remembered(quantity)


def _parsed(quantity: Quantity) -> int:
    if isinstance(quantity, int) and not isinstance(quantity, bool):
        return max(-LARGEST, min(quantity, LARGEST)) * 1000
    text = quantity if isinstance(quantity, str) else repr(quantity)
    match = _GRAMMAR.fullmatch(text)
    if match is None or isinstance(quantity, bool) or not (match[2] or match[3]):
        raise InvalidQuantity(f"{text[:_DIGITS_SHOWN]!r} is not a Kubernetes quantity, like 500m, 3 or 9Gi")
    sign, whole, fraction, binary, decimal, exponent = match.groups()
    digits = (whole + (fraction or "")).lstrip("0")
    if not digits:
        return 0
    power = 3 - len(fraction or "") + (DECIMAL[decimal or ""] if exponent is None else _bounded(exponent))
    magnitude = _scaled(digits, power, BINARY.get(binary or "", 1))
    return -magnitude if sign == "-" else magnitude


_remembered = lru_cache(maxsize=8192, typed=True)(_parsed)  # True is no quantity, although it equals 1


def amount_of_milli(resource: str, milli: int) -> int:
    """Returns thousandths as an amount in the resource's unit, rounded up: millicores for cpu, else whole units."""
    return milli if resource == "cpu" else -(-milli // 1000)


def is_capped(quantity: Quantity) -> bool:
    """Whether Kubernetes counts less than the quantity, as it exceeds the largest one. Raises InvalidQuantity."""
    return abs(to_milli(quantity)) == LARGEST * 1000 and str(quantity).lstrip("+-") != str(LARGEST)


def render(resource: str, value: int) -> str:
    """Returns an amount as the shortest exact Kubernetes quantity: ``500m``, ``9Gi``, ``3``."""
    if resource == "cpu":
        return str(value // 1000) if value % 1000 == 0 else f"{value}m"
    if value and is_bytes(resource):
        for suffix, size in reversed(BINARY.items()):
            if value % size == 0:
                return f"{value // size}{suffix}"
    return str(value)


def is_bytes(resource: str) -> bool:
    """Whether the resource is counted in bytes."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def _bounded(exponent: str) -> int:
    """Returns an exponent as an integer, without spending time or memory on one of a million digits."""
    digits = exponent.lstrip("+-").lstrip("0") or "0"
    value = int(digits) if len(digits) <= 4 else 10_000  # noqa: PLR2004
    return -value if exponent.startswith("-") else value


def _scaled(digits: str, power: int, factor: int) -> int:
    """Returns ``digits * 10**power * factor``, rounded up and capped."""
    if len(digits) + power > _BEYOND:
        return LARGEST * 1000
    if len(digits) + power < -_BEYOND:
        return 1
    power += len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    if len(digits) > 3 * _BEYOND:  # the tail can only round up
        power += len(digits) - 3 * _BEYOND
        digits = digits[: 3 * _BEYOND - 1] + "9"
    value = int(digits) * factor
    value = value * int(10**power) if power >= 0 else -(-value // int(10**-power))
    return min(value, LARGEST * 1000)
