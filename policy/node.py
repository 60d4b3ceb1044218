"""What the rules need of a node."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policy.constraints import Taint
from policy.resources import Resources


@dataclass(frozen=True, slots=True)
class Node:
    """A node: what it can give to pods (amounts), and what keeps pods off it."""

    name: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
