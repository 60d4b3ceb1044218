"""Short amounts for people. REST has exact ones."""

from policy.objects import quantity
from policy.objects.quantity import InvalidQuantity, is_bytes, render, to_milli

UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount(resource: str, value: int) -> str:
    """Formats an amount for people: cores, bytes to three digits, pieces."""
    if resource == "cpu":
        return f"{value / 1000:.3f}".rstrip("0").rstrip(".")
    if not is_bytes(resource):
        return render(resource, value)
    size, unit = float(value), 0
    while abs(size) >= 1024 and unit < len(UNITS) - 1:  # noqa: PLR2004
        size, unit = size / 1024, unit + 1
    return f"{size:.3g}{UNITS[unit]}" if abs(size) < 1000 else f"{size:.0f}{UNITS[unit]}"  # noqa: PLR2004


def readable(resource: str, text: str) -> str:
    """Formats a quantity of REST for people; leaves an invalid one as it is."""
    try:
        return amount(resource, quantity.amount_of_milli(resource, to_milli(text)))
    except InvalidQuantity:
        return text


def is_more(text: str, other: str) -> bool:
    """Whether a quantity of REST is more than another; an invalid one is not."""
    try:
        return to_milli(text) > to_milli(other)
    except InvalidQuantity:
        return False
