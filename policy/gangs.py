"""Pod groups: pods that are of use together only, from a minimum on.

Seed: reserve action (Job Ready, Job Condition Ready).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """A pod group. ``name`` has the kind before it (``KIND/NAME``), as groups of different kinds may be namesakes.

    ``minimum`` is how many members it takes to start; ``created`` in seconds since the epoch. ``native``: the scheduler
    itself places its members together.
    """

    namespace: str
    name: str
    minimum: int = 1
    queue: str = ""
    created: float = 0.0
    native: bool = False
