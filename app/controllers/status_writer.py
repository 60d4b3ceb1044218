"""Writes the statuses of objects. ``status`` and ``queue_status`` say what should be in them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.keyed_tasks import KeyedTasks
from app.controllers.write_seats import WriteSeats
from app.controllers.writes import Writes
from app.observability import metrics
from policy.objects.conditions import Condition

Json = dict[str, Any]


class Subject(NamedTuple):
    """An object that has a status. ``namespace`` is empty for cluster-scoped objects.

    ``uid`` is set where statuses are not read: an object that was created again has no status yet.
    """

    namespace: str
    name: str
    uid: str = ""

    @property
    def room(self) -> str:
        """The namespace in which a slow write delays others; a cluster-scoped object is one of its own."""
        return self.namespace or self.name

    def __str__(self) -> str:
        """Returns its name for people."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Written:
    """A status that was written, the one that it replaced, and when. Until the watch shows it, the old one is seen."""

    status: Json
    over: Json | None
    at: float


class StatusWriter:
    """Keeps statuses equal to the wanted ones, and adds the transition time to each condition.

    A status that was written and is not seen is written again after ``again`` seconds.
    """

    def __init__(
        self,
        kind: str,
        at_once: int,
        again: float,
        clock: Callable[[], float],
        *,
        write: Callable[[Subject, Json], Awaitable[None]],
        seen: Callable[[Subject], Json | None] = lambda _: None,
        tell: Callable[[Subject, Json], None] = lambda *_: None,
    ) -> None:
        """``kind`` names the objects in the log. ``at_once`` bounds the writes that are under way.

        ``seen`` returns the status that an object has, None if it is not known. ``tell`` is called after the first
        attempt to write a condition that was not in the status before.
        """
        self._kind = kind
        self._again = again
        self._clock = clock
        self._write_status = write
        self._seen = seen
        self._tell = tell
        self._written: dict[Subject, Written] = {}
        self._since: dict[tuple[Subject, str], str] = {}
        self._tasks: KeyedTasks[tuple[str, str]] = KeyedTasks()
        self._writes: Writes[Subject] = Writes(
            WriteSeats(at_once, clock), KeyedBackoff(), clock, metrics.STATUS_WRITES, "status not written"
        )

    async def write_missing(self, group: asyncio.TaskGroup, wanted: Mapping[Subject, Json]) -> None:
        """Writes, in the group, the wanted statuses that objects do not have yet: a slow write delays no other.

        Forgets objects that are not among those wanted, and conditions that do not hold any more.
        """
        self._written = {subject: written for subject, written in self._written.items() if subject in wanted}
        lasting = {(subject, each["type"]) for subject, status in wanted.items() for each in status["conditions"]}
        self._since = {condition: since for condition, since in self._since.items() if condition in lasting}
        for subject, status in wanted.items():
            if self._is_due(subject, status) and await self._writes.seats.take_for(subject.room):
                self._tasks.begin(group, subject[:2], self._write(subject, status))

    def _is_due(self, subject: Subject, status: Json) -> bool:
        """Whether a status has to be written now."""
        held_back = subject[:2] in self._tasks or self._writes.failed.holds(subject, self._clock())
        return self._is_missing(subject, status) and not held_back

    def _is_missing(self, subject: Subject, status: Json) -> bool:
        """Whether an object lacks this status, and not only because the watch does not show it yet."""
        seen = self._seen(subject)
        if seen is not None and _without_times(seen) == status:
            self._written.pop(subject, None)  # it was seen: a difference from now on is somebody else's
            return False
        written = self._written.get(subject)
        return (
            written is None
            or (written.status, written.over) != (status, seen)
            or self._clock() - written.at >= self._again
        )

    async def _write(self, subject: Subject, status: Json) -> None:
        """Writes a status with the seat that was taken."""
        seen = self._seen(subject)
        if seen is None:
            self._written.pop(subject, None)  # a write that fails may have been done all the same, and nobody sees it
        appeared = [each for each in status["conditions"] if self._appears(subject, each["type"], seen)]
        conditions = [
            {**each, "lastTransitionTime": self._since[subject, each["type"]]} for each in status["conditions"]
        ]
        write = self._write_status(subject, {**status, "conditions": conditions})
        if await self._writes.succeeds(subject.room, subject, write, **{self._kind: str(subject)}):
            self._written[subject] = Written(status, seen, self._clock())
        for condition in appeared:
            self._tell(subject, condition)

    def _appears(self, subject: Subject, kind: str, seen: Json | None) -> bool:
        """Notes the transition time of a condition, and returns whether it is new: neither noted before nor seen."""
        if (subject, kind) in self._since:
            return False
        known = _conditions(seen or {})
        since = next((each.get("lastTransitionTime") for each in known if each.get("type") == kind), None)
        self._since[subject, kind] = since or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return since is None


def condition_of(found: Condition) -> Json:
    """Returns a condition that holds, as it stands in a status."""
    return {"type": found.type, "status": "True", "reason": found.reason, "message": found.message}


def _conditions(status: Json) -> list[Json]:
    """Returns the conditions of a status that hold."""
    known = status.get("conditions")
    listed = known if isinstance(known, list) else []
    return [each for each in listed if isinstance(each, dict) and each.get("status") == "True"]


def _without_times(status: Json) -> Json:
    """Returns a status without the times of its conditions, to compare it with the wanted one."""
    conditions = status.get("conditions") or []
    if isinstance(conditions, list):
        conditions = [
            {part: value for part, value in each.items() if part != "lastTransitionTime"}
            if isinstance(each, dict)
            else each
            for each in conditions
        ]
    return {**status, "conditions": conditions}
