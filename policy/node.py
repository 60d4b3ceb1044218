"""What the rules need of a node."""

from dataclasses import dataclass

from policy.resources import Resources


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its name and what it can give to pods (amounts)."""

    name: str
    allocatable: Resources
