"""Jobs that wait as a whole in a simulation: which of them are tried, as most of thousands cannot start.

Jobs of one kind in one line at the gates (policy.cluster.gates) start or wait for the same reasons. So the first one
answers for the others until something has eased. Most kinds need no try of their own: there is no room for their pods,
or the rules refuse even less in the same line. Both are found out for all kinds together (policy.nodes.place_counts).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from policy.cluster.cluster import Cluster
from policy.cluster.gates import Line, Turn, Where
from policy.nodes.place_counts import PlaceCounts
from policy.objects.job import ALONE
from policy.objects.pod import Pod, turn
from policy.objects.quantity import LARGEST
from policy.objects.resources import Resources
from policy.queueing.owed_room import may_go_without_room
from policy.queueing.ungating import has_room_for_all
from policy.stepwise import Steps

LARGEST_JOB = 1000
"""Pods of the largest Job that is started: tenants may write any number."""
REMEMBERED = 1000
"""Shapes of pods, and lines, that are remembered beside those of waiting Jobs."""
FEW_GONE = 50
"""Kinds of which no Job waits any more that are kept, beside as many as wait."""
AT_ONCE = 50
"""Kinds that are looked at between two pauses."""
FEW = 4
"""The most kinds that are all tried. Of more, the rules are first asked which of them they refuse."""
MOST_ASKED = 16
"""The most questions to the rules about which of many kinds they refuse. Kinds that are left then are tried."""

PodTurn = tuple[int, float, str, str]
Amounts = NDArray[np.int64]
OWN = -1
"""The shape of pods that are not all alike, or take ports of nodes: each Job of this kind is looked at by itself."""


@dataclass(slots=True, eq=False)
class Peers:
    """Kinds in one line that ask for more or less of the same resources, and are alike otherwise.

    ``requests`` has a row per kind and a column per resource. ``waits_as_of``: see ``WaitingJobs``. ``least`` is a
    stand-in that requests, of each resource, the smallest amount that any of them requests.
    """

    where: Where
    resources: tuple[str, ...]
    kinds: list[JobsAlike]
    requests: Amounts
    waits_as_of: Amounts
    least: Pod | None = None

    def add(self, turns: list[Turn], pod: Pod, shape: int) -> JobsAlike:
        """Adds the kind of a stand-in."""
        job = pod.stands_for
        assert job is not None, "it is a stand-in"  # noqa: S101
        row = [min(pod.request[resource], LARGEST) for resource in self.resources]
        kind = JobsAlike(turns, pod.request, shape, job.pods, self, len(self.requests))
        self.kinds.append(kind)
        self.requests = np.concatenate((self.requests, np.array([row], np.int64)))
        self.waits_as_of = np.append(self.waits_as_of, -1)
        self.least = None
        return kind

    def drop_what_is_gone(self) -> bool:
        """Drops the kinds of which no Job waits; returns whether any are left."""
        self.kinds = [kind for kind in self.kinds if kind.turns]
        rows = [kind.row for kind in self.kinds]
        self.requests, self.waits_as_of = self.requests[rows], self.waits_as_of[rows]
        for row, kind in enumerate(self.kinds):
            kind.row = row
        return bool(rows)


@dataclass(slots=True, eq=False)
class JobsAlike:
    """Jobs of one kind in one line. ``turns`` are their sort keys: the line's own list, so it is always up to date.

    ``request`` is that of each stand-in. ``shape`` is the number of the shape of its ``pods``; ``OWN`` if these are not
    all alike. ``row`` is that of the kind among its peers.
    """

    turns: list[Turn]
    request: Resources
    shape: int
    pods: int
    peers: Peers
    row: int


Place = tuple[PodTurn, JobsAlike | Pod]
"""A pod, or the first Job of a kind, with its sort key: these are tried in turn."""


@dataclass(slots=True, eq=False)
class _KnownLine:
    """A line as it was looked at last, with so many arrivals. ``seen`` are the turns of its kinds, by their ID.

    ``singly`` are the turns of what is tried one by one: pods, gangs, and elastic Jobs.
    """

    line: Line
    arrivals: int = 0
    seen: dict[int, list[Turn]] = field(default_factory=dict)
    singly: list[list[Turn]] = field(default_factory=list)

    def jobs(self) -> int:
        """Returns how many Jobs are tried by their kinds."""
        return len(self.line) - sum(map(len, self.singly))


class WaitingJobs:
    """The Jobs that wait in the lines of a cluster that nobody else uses, and what is known of them without a try.

    ``_as_of`` grows with whatever may help. Rows of ``waits_as_of`` say that a kind could not start as of that number.
    ``_kinds`` are in the order in which they came; as of ``_looked`` so many of them were looked at. Those of which no
    Job waits any more are dropped now and then.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._as_of = 0
        self._room: dict[str, int] | None = None
        self._beyond: dict[Where, list[str]] = {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._places = PlaceCounts(self._cluster.table)
        self._lines: dict[Where, _KnownLine] = {}
        self._peers: dict[Hashable, Peers] = {}
        self._kinds: list[JobsAlike] = []
        self._shapes, self._pods = np.zeros(0, np.intp), np.zeros(0, np.int64)
        self._looked = -1, 0

    def anything_may_help(self) -> None:
        """Forgets what is known: there may be more room, or the rules may admit more."""
        self.rules_may_help()
        self._room = None

    def rules_may_help(self) -> None:
        """Forgets who could not start."""
        self._as_of += 1

    def note_without_room(self, where: Where, pods: list[str]) -> None:
        """Notes pods (UIDs) of a Job of a line that was started, for which there is no room yet."""
        self._beyond[where] = pods

    def may_go_without_room(self, where: Where, pod: Pod) -> bool:
        """Whether a Job may start without room, so that others go for it. Of each line one at a time, as at gates."""
        if any(uid in self._cluster.pending for uid in self._beyond.get(where, ())):
            return False
        return may_go_without_room(self._cluster, pod)

    def look_steps(self) -> Steps[list[Pod]]:
        """Takes in the lines as they are now. Returns the waiting pods that are tried one by one."""
        cluster, jobs = self._cluster, 0
        if max(len(self._places), len(self._lines)) > REMEMBERED + 2 * len(cluster.pending):
            self._begin_anew()
        for where, line in cluster.gates.lines.items():
            known = self._lines.get(where)
            if known is None or known.line is not line:
                known = self._lines[where] = _KnownLine(line)
            if known.arrivals != line.arrivals:
                yield from self._take_in_steps(where, known)
            jobs += known.jobs()
        self._drop_what_is_gone()
        if jobs == len(cluster.pending):
            return []
        waiting = (pod for pod in cluster.pending.values() if not (pod.terminating or pod.gated))
        return [pod for pod in waiting if not (_is_whole(pod) and pod.uid in cluster.gates)]

    def first_steps(self) -> Steps[list[Place]]:
        """Returns the first Job of each kind that may start now, as far as is known without a try."""
        as_of, number = self._looked
        begin = number if as_of == self._as_of else 0
        self._looked = self._as_of, len(self._kinds)
        if begin == len(self._kinds):
            return []
        places = np.append((yield from self._places.all_steps()), LARGEST)
        there_is_room = places[self._shapes[begin:]] >= self._pods[begin:]
        with_room = dict[int, list[JobsAlike]]()
        for at in np.flatnonzero(there_is_room).tolist():
            kind = self._kinds[begin + at]
            if kind.turns:
                with_room.setdefault(id(kind.peers), []).append(kind)
        found: list[Place] = []
        for peers in self._peers.values():
            kinds = peers.kinds if self._may_go_without_room(peers) else with_room.get(id(peers), [])
            if kinds:
                may_start = self._not_refused(peers, kinds)
                found += [self._place(kind, 0) for kind in may_start]
                yield
        return found

    def following(self, kind: JobsAlike, after: PodTurn) -> Place | None:
        """Returns the next Job of a kind after one of its turns; None if there is none."""
        priority, created, _, name = after
        at = bisect_right(kind.turns, (priority, created, f"{ALONE}{name}"))
        return self._place(kind, at) if at < len(kind.turns) else None

    def may_start(self, kind: JobsAlike, stand_in: Pod) -> bool:
        """Whether a Job of a kind may start; if not, none of its kind may until something has eased.

        If there is room, and the rules refuse it, they refuse all of its peers that ask for as much or more.
        """
        peers, row = kind.peers, kind.row
        if peers.waits_as_of[row] == self._as_of:
            return False
        if self.would_start(peers.where, stand_in, lambda: self._has_room_now(kind, stand_in)):
            return True
        peers.waits_as_of[row] = self._as_of
        refused = self._has_room_now(kind, stand_in) and self._cluster.check(stand_in) is not None
        if refused and _can_be_compared(peers.requests[row]):
            peers.waits_as_of[(peers.requests >= peers.requests[row]).all(axis=1)] = self._as_of
        return False

    def would_start(self, where: Where, stand_in: Pod, has_room: Callable[[], bool]) -> bool:
        """Whether a Job may start: there is room for all of its pods, or others owe it that, and the rules admit it."""
        cluster, job = self._cluster, stand_in.stands_for
        if job is None or job.pods > LARGEST_JOB:
            return False
        if not cluster.gate_admission.holds(stand_in):
            return True
        return (has_room() or self.may_go_without_room(where, stand_in)) and cluster.check(stand_in) is None

    def _may_go_without_room(self, peers: Peers) -> bool:
        """Whether any of some peers may start without room, as far as a question about the least of them tells."""
        cluster, (queue, namespace) = self._cluster, peers.where
        account = cluster.ledger.accounts.get(namespace)
        governed = queue in cluster.queues or (account is not None and account.quota is not None)
        if not governed and cluster.gate_admission.is_gated(namespace, jobs=True):
            return False
        peers.kinds = [kind for kind in peers.kinds if kind.turns]
        return bool(peers.kinds) and self.may_go_without_room(peers.where, self._least_of_all(peers))

    def _not_refused(self, peers: Peers, kinds: list[JobsAlike]) -> list[JobsAlike]:
        """Returns some peers without those that the rules refuse, as far as a few questions about them tell.

        The rules refuse a larger request, too, unless only that asks for a resource which its min names.
        """
        check = self._cluster.check
        if not self._cluster.gate_admission.is_gated(peers.where[1], jobs=True):
            return kinds
        if check(self._least(kinds)) is not None:
            return []
        asked = peers.requests[[kind.row for kind in kinds]]
        if len(kinds) <= FEW or not _can_be_compared(asked):
            return kinds
        refused, open_ = np.zeros(len(kinds), np.bool_), np.ones(len(kinds), np.bool_)
        by_size = np.argsort((asked / asked.max(axis=0).clip(1)).sum(axis=1), kind="stable")
        for _ in range(MOST_ASKED):
            left = by_size[open_[by_size]]
            if not len(left):
                break
            middle = left[len(left) // 2]
            if check(self._stand_in(kinds[middle], 0)) is not None:
                refused |= (asked >= asked[middle]).all(axis=1)
                open_ &= ~refused
            else:
                open_ &= ~(asked <= asked[middle]).all(axis=1)
        return [kind for kind, is_refused in zip(kinds, refused.tolist(), strict=True) if not is_refused]

    def _least(self, kinds: list[JobsAlike]) -> Pod:
        """Returns a stand-in that requests, of each resource, the smallest amount that any of some peers requests."""
        stand_in = self._stand_in(kinds[0], 0)
        if len(kinds) == 1:
            return stand_in
        return replace(stand_in, request={r: min([kind.request[r] for kind in kinds]) for r in kinds[0].request})

    def _least_of_all(self, peers: Peers) -> Pod:
        """Returns a stand-in that requests no more than any of these peers; some of those that it heeds may be gone."""
        if peers.least is None or peers.least.uid not in self._cluster.gates:
            peers.least = self._least(peers.kinds)
        return peers.least

    def _has_room_now(self, kind: JobsAlike, stand_in: Pod) -> bool:
        """Whether there is room for a Job now."""
        if kind.shape == OWN:
            if self._is_more_than_all_room(stand_in):
                return False
        elif self._places.of(kind.shape) < kind.pods:
            return False
        is_sure = kind.shape != OWN and not len(self._cluster.reservations.reserved)  # some of that may be reserved
        return is_sure or has_room_for_all(self._cluster, stand_in)

    def _is_more_than_all_room(self, stand_in: Pod) -> bool:
        """Whether all nodes together had less room than a Job asks for when something eased last."""
        if self._room is None:
            table = self._cluster.table
            sums = table.free.clip(0).sum(axis=0).tolist()
            self._room = {name: sums[column] for name, column in table.columns.items()}
        room = self._room
        return any(amount > room.get(name, amount) for name, amount in stand_in.request.items())

    def _place(self, kind: JobsAlike, at: int) -> Place:
        return turn(self._stand_in(kind, at)), kind

    def _stand_in(self, kind: JobsAlike, at: int) -> Pod:
        """Returns the stand-in of a Job in its line."""
        [found] = self._cluster.gates.lines[kind.peers.where].jobs[kind.turns[at][2]].members.values()
        return found

    def _take_in_steps(self, where: Where, known: _KnownLine) -> Steps[None]:
        """Takes in the kinds that are new in a line: nearly always the last ones. It pauses after some of them."""
        line, new = known.line, known.line.arrivals - known.arrivals
        known.arrivals = line.arrivals
        for number, turns in enumerate(reversed(line.kinds().values()), start=1):
            if id(turns) not in known.seen:
                known.seen[id(turns)] = turns
                self._take_in(where, known, turns)
                new -= 1
            if not new:
                break
            if number % AT_ONCE == 0:
                yield

    def _drop_what_is_gone(self) -> None:
        """Drops the kinds of which no Job waits, once they are the most: else each look would go through them."""
        if len(self._kinds) <= FEW_GONE + 2 * sum(len(known.line.kinds()) for known in self._lines.values()):
            return
        waits = np.array([bool(kind.turns) for kind in self._kinds], np.bool_)
        as_of, looked = self._looked
        self._looked = as_of, int(waits[:looked].sum())
        self._kinds = [kind for kind in self._kinds if kind.turns]
        self._shapes, self._pods = self._shapes[waits], self._pods[waits]
        for known in self._lines.values():
            known.seen = {number: turns for number, turns in known.seen.items() if turns}
            known.singly = [turns for turns in known.singly if turns]
        self._peers = {key: peers for key, peers in self._peers.items() if peers.drop_what_is_gone()}

    def _take_in(self, where: Where, known: _KnownLine, turns: list[Turn]) -> None:
        pod = known.line.jobs[turns[0][2]].first()
        if not _is_whole(pod):
            known.singly.append(turns)
            return
        asked = frozenset((resource, amount > 0) for resource, amount in pod.request.items())
        key = where, pod.priority, pod.preemptible, asked, self._cluster.ledger.runs_too_long(pod)
        if (peers := self._peers.get(key)) is None:
            resources = tuple(pod.request)
            requests = np.zeros((0, len(resources)), np.int64)
            peers = self._peers[key] = Peers(where, resources, [], requests, np.zeros(0, np.int64))
        wanted = self._cluster.queued_jobs.wanted(pod)
        shape = self._places.number(wanted[0][0]) if len(wanted) == 1 else None
        kind = peers.add(turns, pod, OWN if shape is None else shape)
        self._kinds.append(kind)
        self._shapes = np.append(self._shapes, kind.shape)
        self._pods = np.append(self._pods, kind.pods)


def _can_be_compared(requests: Amounts) -> bool:
    """Whether no amount is so large that it is not exact."""
    return bool((requests < LARGEST).all())


def _is_whole(pod: Pod) -> bool:
    """Whether this is the stand-in of a Job that starts with all of its pods."""
    return pod.stands_for is not None and not pod.stands_for.least
