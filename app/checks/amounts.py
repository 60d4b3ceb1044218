"""Checks for amounts in quotas and queues that Kubernetes reads as other amounts."""

from collections.abc import Iterator
from typing import Any

from app.checks.finding import Finding, error
from policy.objects.quantity import LARGEST, InvalidQuantity, is_capped

SHOWN = 40
"""Maximum number of characters of an amount that are shown."""


def uncountable(where: str, amounts: Any) -> Iterator[Finding]:
    """Finds amounts above what Kubernetes counts. Invalid amounts are found when they are read."""
    for name, amount in amounts.items() if isinstance(amounts, dict) else ():
        try:
            capped = is_capped(amount)
        except InvalidQuantity:
            continue
        if capped:
            text = f"{str(amount)[:SHOWN]} is more than the largest amount in Kubernetes, {LARGEST}"
            yield error(f"{where}.{name}: {text}")
