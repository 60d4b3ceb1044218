"""The course of a replay: what was used, and how many jobs waited, in equal steps of its window."""

from dataclasses import dataclass
from math import inf

from app.replay.player import Played

STEPS = 240
"""Steps of a course."""


@dataclass(frozen=True, slots=True)
class Course:
    """The mean use of a resource and the most jobs that waited, for each step. ``capacity``: all there is of it.

    ``length`` of all steps together in seconds.
    """

    policy: str
    resource: str
    capacity: int
    length: float
    used: tuple[int, ...]
    waiting: tuple[int, ...]


def course(played: Played, resource: str) -> Course:
    """Returns the course of a replay, from the begin of its window to the end."""
    step = played.length / STEPS or 1.0
    used, waiting = [0.0] * STEPS, [0] * STEPS
    ends = [*(state.at for state in played.states), inf][1:]
    for state, next_at in zip(played.states, ends, strict=True):
        at, end = state.at - played.begin, min(next_at - played.begin, played.length)
        while at < end and (index := int(at / step)) < STEPS:
            until = min(end, max((index + 1) * step, at + step / STEPS))  # it goes on, however it is rounded
            used[index] += state.used.get(resource, 0) * (until - at) / step
            waiting[index] = max(waiting[index], state.waiting)
            at = until
    capacity = played.capacity.get(resource, 0)
    rounded = tuple(min(capacity, round(amount)) for amount in used)
    return Course(played.policy, resource, capacity, played.length, rounded, tuple(waiting))
