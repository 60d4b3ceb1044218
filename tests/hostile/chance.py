"""Chance, the same for the same seed, and what is made of it everywhere: how many, names, labels, selectors."""

from random import Random
from typing import Any, TypeVar

from tests.controlplane.objects import Object

_Value = TypeVar("_Value")
SIZES = ((0.9, 0.01), (0.99, 0.1), (1.0, 1.0))
"""How many there are of something: in so large a part of the cases up to so large a part of the most."""
KEYS = ("app", "tier", "kubernetes.io/hostname", "zone", "quotaward.dev/gated")
VALUES = ("web", "db", "", "a", "b", "true")


class Chance(Random):
    """A random generator that knows what Kubernetes takes. ``largest``: how many there are of anything at most."""

    largest = 3000

    def of(self, *values: _Value) -> _Value:
        return self.choice(values)

    def often(self, share: float) -> bool:
        return self.random() < share

    def many(self, most: int | None = None) -> int:
        """How many there are of something, at least one: mostly few, sometimes as many as there may be."""
        most = min(most or self.largest, self.largest)
        where = self.random()
        part = next(part for share, part in SIZES if where <= share)
        return self.randint(1, max(1, min(most, round(self.largest * part))))

    def word(self) -> str:
        """A name that nobody has had yet."""
        return f"x{self.getrandbits(48):012x}"

    def key(self) -> str:
        return self.of(*KEYS, f"{self.word()}.example.com/{self.word()}")

    def value(self) -> str:
        return self.of(*VALUES, self.word(), self.word())

    def labels(self, count: int) -> dict[str, str]:
        return {self.key(): self.value() for _ in range(count)}

    def selector(self, count: int) -> Object:
        """A label selector with so many expressions or values, or one that selects everything."""
        if self.often(0.1):
            return {}
        if self.often(0.3):
            return {"matchLabels": self.labels(count)}
        if self.often(0.3):
            return {"matchExpressions": [self._among(self.of("In", "NotIn"), count)]}
        return {"matchExpressions": [self._expression() for _ in range(count)]}

    def _expression(self) -> Object:
        operator = self.of("In", "NotIn", "NotIn", "Exists", "DoesNotExist", "DoesNotExist")
        return self._among(operator, 1) if "In" in operator else {"key": self.key(), "operator": operator}

    def _among(self, operator: str, count: int) -> Object:
        return {"key": self.key(), "operator": operator, "values": [self.value() for _ in range(count)]}

    def shared_out(self, total: int) -> tuple[int, int]:
        """Two numbers that have about this product: how wide something is, and how deep."""
        wide = self.of(1, total, self.randint(1, total))
        return wide, max(1, total // wide)

    def some_of(self, values: Any, count: int) -> list[Any]:
        return self.sample(list(values), min(count, len(values)))
