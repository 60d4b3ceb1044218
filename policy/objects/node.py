"""Data of a node that the rules need."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policy.objects.constraints import Taint
from policy.objects.resources import Resources


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its allocatable resources (amounts), and what keeps pods off it.

    ``ready`` is false while its kubelet reports that it is not, or does not report; ``reachable`` only while it does
    not report. ``own`` is what it lists itself, where drivers publish more in slices: ``allocatable`` has both.
    """

    name: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    reachable: bool = True
    own: Resources | None = None

    @property
    def usable(self) -> bool:
        """Whether it takes new pods, as far as the node itself says."""
        return self.ready and not self.unschedulable
