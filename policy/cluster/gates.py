"""Gates: who waits outside of the scheduler's queue, in which order, and who was let out of it and is on the way.

Pods that carry our scheduling gate stand in lines, one for each namespace of each queue, as jobs (policy.objects.job):
by priority and then by creation. Jobs that ask the same stand together, so that one that is refused answers for all of
its kind: to find who is next costs nothing that grows with how many wait. Seed: namespace fair share (Scheduling loop).
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush, merge
from itertools import count, takewhile

from policy.objects.job import ALONE
from policy.objects.pod import Pod, turn
from policy.objects.resources import Resources, add, subtract

PATIENCE = 30.0
LOOKAHEAD = 1.2

Turn = tuple[int, float, str]
"""When a job's turn is: by the highest priority of its members, then creation, then name."""
Where = tuple[str, str]
"""A line: the queue (empty for pods in none) and the namespace."""


@dataclass(slots=True)
class Waiting:
    """A job at its gate: its members there by UID. Those of one ``kind`` are refused or admitted for the same reasons.

    ``created`` is when its group was, 0 where it is not known or there is none.
    """

    name: str
    kind: Hashable
    created: float = 0.0
    members: dict[str, Pod] = field(default_factory=dict)

    @property
    def turn(self) -> Turn:
        """When its turn is."""
        pods = self.members.values()
        return -max(pod.priority for pod in pods), self.created or min(pod.created for pod in pods), self.name

    def first(self) -> Pod:
        """The member whose turn it is."""
        return min(self.members.values(), key=turn)


class Line:
    """The jobs of one namespace in one queue. ``arrivals`` counts how often a kind came of which there was none."""

    def __init__(self) -> None:
        self.jobs: dict[str, Waiting] = {}
        self.arrivals = 0
        self._turns: dict[str, Turn] = {}
        self._kinds: dict[Hashable, list[Turn]] = {}

    def __len__(self) -> int:
        return len(self.jobs)

    def put(self, job: Waiting, pod: Pod) -> None:
        """A member joins, or has changed. ``job`` is as it would be if this were the first."""
        known = self.jobs.get(job.name)
        self.arrivals += job.kind not in self._kinds
        if known is not None:
            self._strike(known)
            known.kind, known.created = job.kind, job.created
            job = known
        job.members[pod.uid] = pod
        self.jobs[job.name], self._turns[job.name] = job, job.turn
        insort(self._kinds.setdefault(job.kind, []), job.turn)

    def remove(self, name: str, uid: str) -> None:
        """A member leaves."""
        job = self.jobs[name]
        self._strike(job)
        del job.members[uid]
        if job.members:
            self._turns[name] = job.turn
            insort(self._kinds.setdefault(job.kind, []), job.turn)
        else:
            del self.jobs[name]

    def place(self, name: str) -> int:
        """How many jobs of the line come before this one, and one more."""
        return 1 + sum(bisect_left(turns, self._turns[name]) for turns in self._kinds.values())

    def __iter__(self) -> Iterator[Waiting]:
        return (self.jobs[each[2]] for each in merge(*self._kinds.values()))

    def of_priority(self, least: int) -> Iterator[Waiting]:
        """The jobs with a member of such a priority, or a higher one, in their turn."""
        turns = merge(*(of_kind for of_kind in self._kinds.values() if -of_kind[0][0] >= least))
        return (self.jobs[each[2]] for each in takewhile(lambda turn: -turn[0] >= least, turns))

    def kinds(self) -> dict[Hashable, list[Turn]]:
        """The turns of the jobs of each kind, in order."""
        return self._kinds

    def _strike(self, job: Waiting) -> None:
        turns = self._kinds[job.kind]
        del turns[bisect_left(turns, self._turns.pop(job.name))]
        if not turns:
            del self._kinds[job.kind]


class Heads:
    """The first of each kind in a line, to be looked at one after the other; kinds that are refused are left out."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._arrivals = 0
        self._heads: list[tuple[Turn, int, Hashable]] = []
        self._numbers: dict[Hashable, int] = {}
        self._given = count()

    def first(self) -> Waiting | None:
        """The job whose turn it is; None if none is left."""
        if self.lacks(self._line):
            self._take_in_new_kinds()
        while self._heads:
            seen, number, kind = self._heads[0]
            turns = self._line.kinds().get(kind)
            if turns and turns[0] == seen:
                return self._line.jobs[seen[2]]
            self.leave_out()
            if turns:
                heappush(self._heads, (turns[0], number, kind))
            else:
                del self._numbers[kind]  # it may come again
        return None

    def are_of(self, line: Line) -> bool:
        """Whether it is this line, not one that was there before it."""
        return self._line is line

    def lacks(self, line: Line) -> bool:
        """Whether a kind has come to the line that was not looked at yet."""
        return self._line is not line or self._arrivals != line.arrivals

    def leave_out(self) -> None:
        """The kind of the first job is not looked at any more."""
        heappop(self._heads)

    def _take_in_new_kinds(self) -> None:
        self._arrivals = self._line.arrivals
        for kind, turns in self._line.kinds().items():
            if kind not in self._numbers:
                self._numbers[kind] = next(self._given)
                heappush(self._heads, (turns[0], self._numbers[kind], kind))


@dataclass(frozen=True, slots=True)
class Out:
    """A pod that was let out and is not on a node yet.

    ``where`` it stood and its ``request`` as they were then; ``beyond``: there was no room for it, or it has no chance.
    ``placed``: room on a node is held for it, so that it needs none of what is free.
    """

    where: Where
    request: Resources
    beyond: bool = False
    placed: bool = False


class Gates:
    """The lines, and those that were let out. ``changes`` counts what could make another opening possible.

    ``arrivals`` are those of all lines together. ``groups`` says in which lines members of a group wait, by its
    namespace and name.
    """

    def __init__(self) -> None:
        self.lines: dict[Where, Line] = {}
        self.out: dict[str, Out] = {}
        self.leaving: set[str] = set()
        self.changes = self.arrivals = 0
        self.groups: dict[tuple[str, str], set[Where]] = {}
        self._stands: dict[str, tuple[Where, str]] = {}
        self._since: dict[str, float] = {}
        self._on_their_way: dict[str, dict[str, int]] = {}
        self._beyond: dict[Where, set[str]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._stands

    def __len__(self) -> int:
        return len(self._stands)

    def put(self, pod: Pod, queue: str, job: Waiting, now: float) -> None:
        """A pod waits at its gate, or has changed; not if its gate is just being taken away."""
        if pod.uid in self.leaving:
            return
        where = queue, pod.namespace
        stands = self._stands.get(pod.uid)
        if stands is not None and stands != (where, job.name):
            self._leave_line(pod.uid)
        self._stands[pod.uid] = where, job.name
        self._since.setdefault(pod.uid, now)
        line = self.lines.setdefault(where, Line())
        arrivals = line.arrivals
        line.put(job, pod)
        if not job.name.startswith(ALONE):
            self.groups.setdefault((pod.namespace, job.name), set()).add(where)
        self.arrivals += line.arrivals - arrivals
        self.changes += 1

    def leave(self, uid: str) -> None:
        """A pod waits at no gate any more; for one that does not it is no error."""
        self.leaving.discard(uid)
        self._since.pop(uid, None)
        self._leave_line(uid)

    def let_out(self, uid: str) -> None:
        """The gate of a pod is being taken away: it leaves its line."""
        self.leaving.add(uid)
        self._leave_line(uid)

    def count(self, uid: str, out: Out) -> None:
        """A pod that was let out counts as being on its way to a node."""
        self.discount(uid)
        self.out[uid] = out
        if out.beyond:
            self._beyond.setdefault(out.where, set()).add(uid)
        elif not out.placed:
            add(self._on_their_way.setdefault(out.where[0], {}), out.request)

    def discount(self, uid: str) -> bool:
        """A pod is not on its way any more; whether it was."""
        out = self.out.pop(uid, None)
        if out is None:
            return False
        self.changes += 1
        queue = out.where[0]
        if out.beyond:
            self._beyond[out.where].discard(uid)
            if not self._beyond[out.where]:
                del self._beyond[out.where]
        elif not out.placed:
            left = self._on_their_way.pop(queue, {})
            subtract(left, out.request)
            if left:
                self._on_their_way[queue] = left
        return True

    def on_their_way(self, queue: str) -> Resources:
        """What those of a queue request that were let out because there was room, and are not on a node yet."""
        return self._on_their_way.get(queue, {})

    def some_beyond(self, where: Where) -> bool:
        """Whether one of a line was let out without room, and still waits for it."""
        return bool(self._beyond.get(where))

    def look_again(self) -> None:
        """Somebody who stood aside may not do so any more."""
        self.arrivals += 1
        self.changes += 1

    def since(self, uid: str) -> float:
        """Since when a pod is seen to wait at its gate, on the clock of whoever said so."""
        return self._since[uid]

    def uids(self) -> list[str]:
        """UIDs of those that wait."""
        return list(self._stands)

    def in_groups(self) -> Iterator[str]:
        """UIDs of those that wait together with others."""
        for line in self.lines.values():
            for job in line.jobs.values():
                if not job.name.startswith(ALONE):
                    yield from job.members

    def line_of(self, uid: str) -> tuple[Where, Line, Waiting] | None:
        """Where a pod stands: which line, and its job; None if it waits at no gate."""
        stands = self._stands.get(uid)
        if stands is None:
            return None
        line = self.lines[stands[0]]
        return stands[0], line, line.jobs[stands[1]]

    def _leave_line(self, uid: str) -> None:
        stands = self._stands.pop(uid, None)
        if stands is None:
            return
        where, name = stands
        line = self.lines[where]
        line.remove(name, uid)
        if name not in line.jobs and (lines := self.groups.get((where[1], name))) is not None:
            lines.discard(where)
            if not lines:
                del self.groups[where[1], name]
        self.changes += 1
        if not line:
            del self.lines[where]
