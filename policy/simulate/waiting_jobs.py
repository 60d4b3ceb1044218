"""Jobs that wait as a whole in a simulation: which of them are tried, as most of thousands cannot start.

Jobs of one kind in one line at the gates (policy.cluster.gates) start or wait for the same reasons. So the first one
answers for the others until something has eased. Most kinds need no try of their own: there is no room for their pods,
or the rules refuse even less in the same line.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from itertools import count

from policy.cluster.cluster import Cluster
from policy.cluster.gates import Line, Turn, Where
from policy.objects.job import ALONE
from policy.objects.pod import Pod, turn
from policy.objects.resources import Resources
from policy.queueing.ungating import has_room_for_all, may_go_without_room
from policy.stepwise import Steps

LARGEST_JOB = 1000
"""Pods of the largest Job that is started: tenants may write any number."""
REMEMBERED = 1000
"""Kinds that are remembered beside those of waiting Jobs."""
AT_ONCE = 50
"""Kinds that are looked at between two pauses."""

PodTurn = tuple[int, float, str, str]
_LAST = "\U0010ffff"


@dataclass(slots=True, eq=False)
class JobsAlike:
    """Jobs of one kind in one line. ``turns`` are their sort keys: the line's own list, so it is always up to date.

    ``request`` is that of each stand-in, ``shape`` the number of the room that one of them asks for. Those of one
    ``peers`` ask for more or less of the same resources, and are alike otherwise. ``singly``: they are no such Jobs, or
    elastic ones; each is tried. ``waits_as_of``: they could not start as of this number of ``WaitingJobs``.
    """

    where: Where
    turns: list[Turn]
    request: Resources
    shape: int
    peers: int
    singly: bool
    waits_as_of: int = -1


Place = tuple[PodTurn, JobsAlike | Pod]
"""A pod, or the first Job of a kind, with its sort key: these are tried in turn."""


@dataclass(slots=True, eq=False)
class _KnownLine:
    """A line as it was looked at last, with so many arrivals and kinds: ``peers`` are these by peers, or ``singly``.

    ``looked_as_of``: see ``JobsAlike.waits_as_of``.
    """

    line: Line
    arrivals: int
    size: int
    kinds: list[JobsAlike]
    peers: list[list[JobsAlike]]
    singly: list[JobsAlike]
    looked_as_of: int = -1

    def is_of(self, line: Line) -> bool:
        """Whether it is this line, and has no other kinds than when it was looked at."""
        return self.line is line and self.arrivals == line.arrivals and self.size == len(line.kinds())

    def jobs(self) -> int:
        """Returns how many Jobs are tried by their kinds."""
        return len(self.line) - sum(len(kind.turns) for kind in self.singly)


class WaitingJobs:
    """The Jobs that wait in the lines of a cluster that nobody else uses, and what is known of them without a try."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lines: dict[Where, _KnownLine] = {}
        self._numbers: dict[Hashable, int] = {}
        self._given = count()
        self._as_of = 0
        self._smallest: dict[tuple[int, ...], Pod] = {}
        self._have_room: dict[int, bool] = {}
        self._room: dict[str, int] | None = None

    def anything_may_help(self) -> None:
        """Forgets what is known: there may be more room, or the rules may admit more."""
        self.rules_may_help()
        self._have_room.clear()
        self._room = None

    def rules_may_help(self) -> None:
        """Forgets who could not start, but not that there was no room."""
        self._as_of += 1

    def look_steps(self) -> Steps[list[Pod]]:
        """Takes in the lines as they are now. Returns the waiting pods that are tried one by one."""
        cluster, lines, jobs = self._cluster, self._cluster.gates.lines, 0
        if len(self._lines) > REMEMBERED + 2 * len(lines):
            self._lines.clear()
        if max(len(self._numbers), len(self._smallest)) > REMEMBERED + 2 * len(cluster.pending):
            self._lines.clear()
            self._numbers.clear()
            self._smallest.clear()
        for where, line in lines.items():
            known = self._lines.get(where)
            if known is None or not known.is_of(line):
                known = self._lines[where] = yield from self._seen_steps(where, line, known)
            jobs += known.jobs()
        if jobs == len(cluster.pending):
            return []
        waiting = (pod for pod in cluster.pending.values() if not (pod.terminating or pod.gated))
        return [pod for pod in waiting if not (_is_whole(pod) and pod.uid in cluster.gates)]

    def first_steps(self, after: PodTurn | None = None) -> Steps[list[Place]]:
        """Returns the first Job of each kind that may start now, as far as is known without a try.

        ``after``: of each kind the first one that comes after this turn.
        """
        found: list[Place] = []
        for known in self._lines.values():
            if known.looked_as_of == self._as_of:
                continue
            known.looked_as_of = self._as_of
            for peers in known.peers:
                kinds = [kind for kind in peers if kind.turns and kind.waits_as_of != self._as_of]
                if kinds:
                    may_start = yield from self._may_start_steps(kinds)
                    found += [place for kind in may_start if (place := self.following(kind, after)) is not None]
            yield
        return found

    def following(self, kind: JobsAlike, after: PodTurn | None) -> Place | None:
        """Returns the next Job of a kind after a turn; None if there is none."""
        at = bisect_right(kind.turns, _in_line(after, kind.where[1])) if after is not None else 0
        return (turn(self._stand_in(kind, at)), kind) if at < len(kind.turns) else None

    def may_start(self, kind: JobsAlike, stand_in: Pod) -> bool:
        """Whether a Job of a kind may start; if not, none of its kind may until something has eased."""
        may = may_start(self._cluster, stand_in, lambda: self._has_room_now(kind.shape, stand_in))
        if not may:
            kind.waits_as_of = self._as_of
        return may

    def _may_start_steps(self, kinds: list[JobsAlike]) -> Steps[list[JobsAlike]]:
        """Returns those of some peers that may start, as far as one question about the smallest of them tells.

        The rules refuse a larger request, too, unless only that asks for a resource which its min names.
        """
        cluster, without = self._cluster, list[JobsAlike]()
        if not cluster.gate_admission.is_gated(kinds[0].where[1], jobs=True):
            return kinds
        for kind in kinds:
            if kind.shape not in self._have_room:
                yield
            if not self._has_room(kind):
                without.append(kind)
        if without and not may_go_without_room(cluster, self._least(kinds)):
            self._wait(without)
            kinds = [kind for kind in kinds if kind.waits_as_of != self._as_of]
        if kinds and cluster.check(self._least(kinds)) is not None:
            self._wait(kinds)
            return []
        return kinds

    def _wait(self, kinds: Iterable[JobsAlike]) -> None:
        for kind in kinds:
            kind.waits_as_of = self._as_of

    def _least(self, kinds: list[JobsAlike]) -> Pod:
        """Returns a stand-in that requests, of each resource, the smallest amount that any of some peers requests."""
        if len(kinds) == 1:
            return self._stand_in(kinds[0], 0)
        least = {r: min([kind.request[r] for kind in kinds]) for r in kinds[0].request}
        known = self._smallest.get(key := (kinds[0].peers, *least.values()))
        if known is None or known.uid not in self._cluster.gates:
            known = self._smallest[key] = replace(self._stand_in(kinds[0], 0), request=least)
        return known

    def _has_room(self, kind: JobsAlike) -> bool:
        """Whether there was room for a Job of a kind when it was asked last."""
        known = self._have_room.get(kind.shape)
        return self._has_room_now(kind.shape, self._stand_in(kind, 0)) if known is None else known

    def _has_room_now(self, shape: int, stand_in: Pod) -> bool:
        """Whether there is room for a Job; where there was none before, there is none now."""
        known = self._have_room.get(shape, True)
        if known:
            known = not self._is_more_than_all_room(stand_in) and has_room_for_all(self._cluster, stand_in)
            self._have_room[shape] = known
        return known

    def _is_more_than_all_room(self, stand_in: Pod) -> bool:
        """Whether all nodes together had less room than a Job asks for when something eased last."""
        if self._room is None:
            table = self._cluster.table
            sums = table.free.clip(0).sum(axis=0).tolist()
            self._room = {name: sums[column] for name, column in table.columns.items()}
        room = self._room
        return any(amount > room.get(name, amount) for name, amount in stand_in.request.items())

    def _stand_in(self, kind: JobsAlike, at: int) -> Pod:
        """Returns the stand-in of a Job in its line."""
        [found] = self._cluster.gates.lines[kind.where].jobs[kind.turns[at][2]].members.values()
        return found

    def _seen_steps(self, where: Where, line: Line, before: _KnownLine | None) -> Steps[_KnownLine]:
        """Looks at a line whose kinds have changed. It pauses after some of them."""
        known = {id(kind.turns): kind for kind in before.kinds} if before is not None else {}
        kinds, peers = list[JobsAlike](), dict[int, list[JobsAlike]]()
        for number, turns in enumerate(line.kinds().values()):
            kind = known.get(id(turns)) or self._seen(where, line, turns)
            kinds.append(kind)
            if not kind.singly:
                peers.setdefault(kind.peers, []).append(kind)
            if number % AT_ONCE == AT_ONCE - 1:
                yield
        singly = [kind for kind in kinds if kind.singly]
        return _KnownLine(line, line.arrivals, len(line.kinds()), kinds, list(peers.values()), singly)

    def _seen(self, where: Where, line: Line, turns: list[Turn]) -> JobsAlike:
        pod = line.jobs[turns[0][2]].first()
        if not _is_whole(pod):
            return JobsAlike(where, turns, pod.request, -1, -1, singly=True)
        asked = frozenset((r, amount > 0) for r, amount in pod.request.items())
        too_long = self._cluster.ledger.runs_too_long(pod)
        peers = self._number((where, pod.priority, pod.preemptible, asked, too_long))
        shape = self._number(self._cluster.queued_jobs.shapes_of(pod))
        return JobsAlike(where, turns, pod.request, shape, peers, singly=False)

    def _number(self, key: Hashable) -> int:
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = next(self._given)
        return known


def may_start(cluster: Cluster, stand_in: Pod, has_room: Callable[[], bool]) -> bool:
    """Whether a Job may start: the rules admit it, and there is room for all of its pods, or others owe it that."""
    job = stand_in.stands_for
    if job is None or job.pods > LARGEST_JOB:
        return False
    if not cluster.gate_admission.holds(stand_in):
        return True
    if cluster.check(stand_in) is not None:
        return False
    return has_room() or may_go_without_room(cluster, stand_in)


def _is_whole(pod: Pod) -> bool:
    """Whether this is the stand-in of a Job that starts with all of its pods."""
    return pod.stands_for is not None and not pod.stands_for.least


def _in_line(after: PodTurn, namespace: str) -> Turn:
    """Returns the last sort key in the lines of a namespace that does not come after a turn."""
    priority, created, its_namespace, name = after
    if namespace != its_namespace:
        return priority, created, _LAST if namespace < its_namespace else ""
    return priority, created, f"{ALONE}{name}"
