"""What a Kubernetes quantity is worth; written anew, so that a mistake of the product's own parser shows."""

import re
from fractions import Fraction

_SHAPE = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,3})?", re.ASCII
)
_POWERS_OF_TEN = dict(zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True))
_POWERS_OF_1024 = dict(zip(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), range(1, 7), strict=True))


def worth(quantity: str | float) -> Fraction:
    """The exact value; ValueError where it is no quantity."""
    shape = _SHAPE.fullmatch(str(quantity))
    if shape is None or isinstance(quantity, bool):
        raise ValueError(f"{quantity!r} is not a quantity")
    number, suffix = Fraction(shape["number"]), shape["suffix"] or ""
    if suffix in _POWERS_OF_1024:
        return number * 1024 ** _POWERS_OF_1024[suffix]
    if suffix in _POWERS_OF_TEN:
        return number * Fraction(10) ** _POWERS_OF_TEN[suffix]
    return number * Fraction(10) ** int(suffix[1:] or 0)


def same(one: object, other: object) -> bool:
    """Whether both are quantities of the same value."""
    try:
        return worth(one) == worth(other)
    except ValueError:
        return False
