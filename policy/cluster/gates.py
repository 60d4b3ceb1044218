"""Gates: the pods that wait outside of the scheduler's queue, their order, and those that were ungated.

Pods that carry our scheduling gate stand in lines as jobs (policy.objects.job), by priority and then by creation. There
is a line for each namespace of each queue. Jobs with equal requests stand together, so that one refusal answers for all
of their kind: the cost of finding the next job does not grow with how many wait.
Seed: namespace fair share (Scheduling loop).
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush, merge
from itertools import count, takewhile

from policy.objects.job import ALONE
from policy.objects.pod import Pod, turn
from policy.objects.resources import Resources, add, subtract
from policy.quota.changes import Generations

PATIENCE = 30.0
LOOKAHEAD = 1.2

Turn = tuple[int, float, str]
"""A job's sort key in its line: the highest priority of its members, then creation, then name."""
Where = tuple[str, str]
"""The key of a line: the queue (empty for pods in none) and the namespace."""


@dataclass(slots=True)
class GatedJob:
    """A job at its gate: its members there by UID. Jobs of one ``kind`` are refused or admitted for the same reasons.

    ``created`` is when its group was created; 0 if that is not known, or there is no group.
    """

    name: str
    kind: Hashable
    created: float = 0.0
    members: dict[str, Pod] = field(default_factory=dict)

    @property
    def turn(self) -> Turn:
        """Its sort key in the line."""
        pods = self.members.values()
        return -max(pod.priority for pod in pods), self.created or min(pod.created for pod in pods), self.name

    def is_like(self, other: "GatedJob") -> bool:
        """Whether another description of the job says the same."""
        return self.created == other.created and self.kind == other.kind

    def first(self) -> Pod:
        """Returns the first member in queue order."""
        members = self.members.values()
        return min(members, key=turn) if len(members) > 1 else next(iter(members))


class Line:
    """The jobs of one namespace in one queue. ``arrivals`` counts how often a new kind has come."""

    def __init__(self) -> None:
        self.jobs: dict[str, GatedJob] = {}
        self.arrivals = 0
        self._turns: dict[str, Turn] = {}
        self._kinds: dict[Hashable, list[Turn]] = {}

    def __len__(self) -> int:
        return len(self.jobs)

    def put(self, job: GatedJob, pod: Pod) -> None:
        """Adds or updates a member. ``job`` describes its job as if this member were the first."""
        known = self.jobs.get(job.name)
        if known is not None and known.is_like(job) and known.members.get(pod.uid) is pod:
            return
        turns = self._kinds.get(job.kind)
        self.arrivals += turns is None
        if known is not None:
            self._strike(known)
            known.kind, known.created = job.kind, job.created
            job = known
        job.members[pod.uid] = pod
        self.jobs[job.name], self._turns[job.name] = job, job.turn
        turns = self._kinds.setdefault(job.kind, [] if turns is None else turns)  # one list for as long as it has jobs
        insort(turns, job.turn)

    def remove(self, name: str, uid: str) -> None:
        """Removes a member of a job."""
        job = self.jobs[name]
        turns = self._kinds[job.kind]
        self._strike(job)
        del job.members[uid]
        if job.members:
            self._turns[name] = job.turn
            insort(self._kinds.setdefault(job.kind, turns), job.turn)
        else:
            del self.jobs[name]

    def position(self, name: str) -> int:
        """Returns the position of a job in the line, from 1."""
        return 1 + sum(bisect_left(turns, self._turns[name]) for turns in self._kinds.values())

    def __iter__(self) -> Iterator[GatedJob]:
        return (self.jobs[each[2]] for each in sorted(self._turns.values()))

    def first(self) -> GatedJob:
        """Returns the first job. There is one."""
        return self.jobs[min(turns[0] for turns in self._kinds.values())[2]]

    def of_priority(self, least: int) -> Iterator[GatedJob]:
        """Yields the jobs with a member of this priority or a higher one, in order."""
        turns = merge(*(of_kind for of_kind in self._kinds.values() if -of_kind[0][0] >= least))
        return (self.jobs[each[2]] for each in takewhile(lambda turn: -turn[0] >= least, turns))

    def kinds(self) -> dict[Hashable, list[Turn]]:
        """Returns the sort keys of the jobs of each kind, in order."""
        return self._kinds

    def _strike(self, job: GatedJob) -> None:
        turns = self._kinds[job.kind]
        del turns[bisect_left(turns, self._turns.pop(job.name))]
        if not turns:
            del self._kinds[job.kind]


class Heads:
    """The first job of each kind in a line, to look at one after the other. Leaves out kinds that are refused."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._arrivals = 0
        self._heads: list[tuple[Turn, int, Hashable]] = []
        self._numbers: dict[Hashable, int] = {}
        self._given = count()

    def first(self) -> GatedJob | None:
        """Returns the next job; None if none is left."""
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
        """Whether these are the heads of this line, not of an earlier one with its key."""
        return self._line is line

    def lacks(self, line: Line) -> bool:
        """Whether the line has a new kind that was not looked at yet."""
        return self._line is not line or self._arrivals != line.arrivals

    def leave_out(self) -> None:
        """Leaves out the kind of the first job from now on."""
        heappop(self._heads)

    def _take_in_new_kinds(self) -> None:
        self._arrivals = self._line.arrivals
        for kind, turns in self._line.kinds().items():
            if kind not in self._numbers:
                self._numbers[kind] = next(self._given)
                heappush(self._heads, (turns[0], self._numbers[kind], kind))


@dataclass(frozen=True, slots=True)
class Ungated:
    """A pod that was ungated and is not on a node yet.

    ``where`` is its line and ``request`` its request at that time. ``beyond``: there was no room for it, or it has no
    claim. ``placed``: room on a node is held for it, so it needs no free room.
    """

    where: Where
    request: Resources
    beyond: bool = False
    placed: bool = False


class Gates:
    """The lines, and the pods that were ungated.

    ``groups`` has the lines in which members of a group wait, by its namespace and name.
    """

    def __init__(self, generations: Generations) -> None:
        self._generations = generations
        self.lines: dict[Where, Line] = {}
        self.ungated: dict[str, Ungated] = {}
        self.ungating: set[str] = set()
        self.groups: dict[tuple[str, str], set[Where]] = {}
        self._numbers: Counter[tuple[str, bool]] = Counter()
        self._stands: dict[str, tuple[Where, str]] = {}
        self._since: dict[str, float] = {}
        self._on_their_way: dict[str, dict[str, int]] = {}
        self._beyond: dict[Where, set[str]] = {}
        self.moves_of_jobs = 0
        """Counts stand-ins that come to a line or leave it."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._stands

    def __len__(self) -> int:
        return len(self._stands)

    def put(self, pod: Pod, queue: str, job: GatedJob, now: float) -> None:
        """Adds or updates a pod that waits at its gate. Does nothing if its gate is just being removed."""
        if pod.uid in self.ungating:
            return
        where = queue, pod.namespace
        stands = self._stands.get(pod.uid)
        if stands is not None and stands != (where, job.name):
            self._leave_line(pod.uid)
        if pod.uid not in self._stands:
            self._numbers[pod.namespace, pod.stands_for is not None] += 1
            self.moves_of_jobs += pod.stands_for is not None
        self._stands[pod.uid] = where, job.name
        self._since.setdefault(pod.uid, now)
        line = self.lines.setdefault(where, Line())
        arrivals = line.arrivals
        line.put(job, pod)
        if not job.name.startswith(ALONE):
            self.groups.setdefault((pod.namespace, job.name), set()).add(where)
        self._generations.arrivals += line.arrivals - arrivals
        self._generations.gates += 1

    def leave(self, uid: str) -> None:
        """Removes a pod that waits at no gate any more. Does nothing for one that did not wait."""
        self.ungating.discard(uid)
        self._since.pop(uid, None)
        self._leave_line(uid)

    def begin_ungating(self, uid: str) -> None:
        """Takes a pod whose gate is being removed out of its line."""
        self.ungating.add(uid)
        self._leave_line(uid)

    def count(self, uid: str, ungated: Ungated) -> None:
        """Counts a pod that was ungated as being on its way to a node."""
        self.discount(uid)
        self.ungated[uid] = ungated
        if ungated.beyond:
            self._beyond.setdefault(ungated.where, set()).add(uid)
        elif not ungated.placed:
            add(self._on_their_way.setdefault(ungated.where[0], {}), ungated.request)

    def discount(self, uid: str) -> bool:
        """Stops counting a pod as being on its way; returns whether it was."""
        ungated = self.ungated.pop(uid, None)
        if ungated is None:
            return False
        self._generations.gates += 1
        queue = ungated.where[0]
        if ungated.beyond:
            self._beyond[ungated.where].discard(uid)
            if not self._beyond[ungated.where]:
                del self._beyond[ungated.where]
        elif not ungated.placed:
            left = self._on_their_way.pop(queue, {})
            subtract(left, ungated.request)
            if left:
                self._on_their_way[queue] = left
        return True

    def on_their_way(self, queue: str) -> Resources:
        """Returns the requests of a queue's pods that were ungated as there was room, and are not on a node yet."""
        return self._on_their_way.get(queue, {})

    def some_beyond(self, where: Where) -> bool:
        """Whether a pod of the line was ungated without room, and still waits for it."""
        return bool(self._beyond.get(where))

    def look_again(self) -> None:
        """Notes that some namespace may have ended its backoff."""
        self._generations.arrivals += 1
        self._generations.gates += 1

    def since(self, uid: str) -> float:
        """Returns since when a pod is seen to wait at its gate, on the clock of the caller of ``put``."""
        return self._since[uid]

    def uids(self) -> list[str]:
        """Returns UIDs of the pods that wait."""
        return list(self._stands)

    def number_of(self, namespace: str, *, jobs: bool) -> int:
        """Returns how many pods of a namespace wait for themselves, or how many of its Jobs wait as a whole."""
        return self._numbers[namespace, jobs]

    @property
    def pods(self) -> int:
        """How many pods wait for themselves."""
        return sum(number for (_, jobs), number in self._numbers.items() if not jobs)

    def in_groups(self) -> Iterator[str]:
        """Yields UIDs of the pods that wait in a group."""
        for (_, name), lines in self.groups.items():
            for where in lines:
                yield from self.lines[where].jobs[name].members

    def line_of(self, uid: str) -> tuple[Where, Line, GatedJob] | None:
        """Returns the key of a pod's line, the line, and its job there; None if it waits at no gate."""
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
        of_kind = where[1], line.jobs[name].members[uid].stands_for is not None
        self._numbers[of_kind] -= 1
        self.moves_of_jobs += of_kind[1]
        if not self._numbers[of_kind]:
            del self._numbers[of_kind]
        line.remove(name, uid)
        if name not in line.jobs and (lines := self.groups.get((where[1], name))) is not None:
            lines.discard(where)
            if not lines:
                del self.groups[where[1], name]
        self._generations.gates += 1
        if not line:
            del self.lines[where]
