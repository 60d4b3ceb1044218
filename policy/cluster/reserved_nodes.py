"""Which nodes are kept from a pod because they are reserved for jobs that starve.

Most pods that ask have nothing to do with these jobs. For them the sums of what is reserved stand in arrays, so that
the answer takes about as long for a hundred reserved nodes as for one.

Reserve action (Node resource reservation rule), and backfill: where the start of a job is promised, a pod that is
surely gone before may use the node meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from policy.cluster import assumed
from policy.cluster.assumed import MOST_KINDS
from policy.cluster.job_members import WHOLE
from policy.nodes import fit
from policy.objects.job import job_name
from policy.objects.quantity import LARGEST
from policy.objects.queued_job import PREFIX, is_member, stand_in_of
from policy.objects.resources import add, total

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from policy.cluster.cluster import Cluster
    from policy.nodes.packing import AlikePods
    from policy.objects.group import Key
    from policy.objects.pod import Pod
    from policy.objects.reservation import Reservation
    from policy.objects.resources import Resources

FEW = 20
"""If fewer reserved nodes have changed, the arrays of the others are taken over."""


@dataclass(slots=True)
class OnNode:
    """The reservations on a node, and the sum of what they keep.

    ``promised`` is the first promised start; 0 if one of them has none.
    """

    members: list[Reservation] = field(default_factory=list)
    need: dict[str, int] = field(default_factory=dict)
    promised: float = 0.0


@dataclass(slots=True)
class _Index:
    """All reserved nodes. ``latest`` is the latest promised start of a node, ``nodes_of`` has them by job.

    ``whole``: the UIDs of the stand-ins of Jobs that wait as a whole, by job. ``shared`` are nodes reserved for several
    jobs.

    ``left``: of each resource what they have beside what is reserved there, in the order of rows; ``most_left``: the
    most that one of them may have. ``takers`` are those that could take granted pods. All three are ``as_of`` so many
    changes of these nodes.
    """

    version: int
    by_node: dict[str, OnNode]
    nodes_of: dict[Key, set[str]]
    latest: float
    names: frozenset[str]
    whole: dict[Key, str]
    shared: frozenset[str]
    left: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    most_left: dict[str, int] = field(default_factory=dict)
    takers: assumed.Takers = field(default_factory=dict)
    as_of: int = -1


@dataclass(slots=True)
class _Rows:
    """Reserved nodes as rows of the table; ``unknown`` are not in it.

    ``need`` by resource, and ``promised``, are in the order of rows, which ``by_name`` has, too.
    """

    index: _Index
    names: list[str]
    rows: NDArray[np.intp]
    unknown: set[str]
    need: dict[str, NDArray[np.int64]]
    promised: NDArray[np.float64]
    by_name: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.by_name = dict(zip(self.names, self.rows.tolist(), strict=True))


class ReservedNodes:
    """Answers from the reservations in force. ``kept_out`` are granted pods that no reserved node was open to."""

    def __init__(self, cluster: Cluster) -> None:
        self.kept_out: set[str] = set()
        self._cluster = cluster
        self._known = _Index(-1, {}, {}, 0.0, frozenset(), {}, frozenset())
        self._moves = 0
        self._with_room = (-1, -1, list[str]())

    def kept_from(self, pod: Pod) -> AbstractSet[str]:
        """Returns the nodes where the pod would take of what is reserved for other jobs than its own.

        A pod may come to a node that has enough, in what the pod asks for: for its request, for what others use there,
        and for what is reserved, all together. With ``whole_nodes`` it may not. In either case it may if it is gone in
        time (``is_gone_in_time``).
        """
        index = self._index()
        job = self._job(pod, index) if index.whole else (pod.namespace, job_name(self._cluster.membership.groups, pod))
        kept: AbstractSet[str] = index.names
        if job in index.nodes_of:
            kept = self._kept_from_member(pod, job, index)
        elif not (self._cluster.rules.whole_nodes or self._have_too_little(pod, index)):
            kept = self._without_room(pod, index, {})
        if kept and index.latest and (in_time := self._gone_in_time(pod, kept, index)):
            kept = kept - in_time
        return kept

    def job_of(self, pod: Pod) -> Key:
        """Returns the job of a pod for which nodes may be reserved."""
        return self._job(pod, self._index())

    def _job(self, pod: Pod, index: _Index) -> Key:
        """Returns the job of a pod; that of its Job, if nodes are reserved for that as a whole."""
        if index.whole and pod.job is not None:
            whole = pod.namespace, f"{WHOLE}{pod.job.name}"
            if index.whole.get(whole) == f"{PREFIX}{pod.job.uid}":
                return whole
        return pod.namespace, job_name(self._cluster.membership.groups, pod)

    def first_start_after(self, pod: Pod) -> float:
        """Returns the first promised start of a node before which the pod would be gone; 0 if there is none.

        Pods for which it is the same are kept from the same nodes, if they are alike otherwise.
        """
        index = self._index()
        gone_at = self.gone_at(pod) if index.latest else None
        if gone_at is None or gone_at > index.latest:
            return 0.0
        return min(on.promised for on in index.by_node.values() if on.promised >= gone_at)

    def on(self, node: str) -> OnNode | None:
        """Returns what is reserved on a node."""
        return self._index().by_node.get(node)

    def note_answer(self, pod: Pod, kept: AbstractSet[str]) -> None:
        """Notes from which nodes a granted pod is kept: it comes to none of these."""
        if kept is self._known.names or kept >= self._index().names:
            self.kept_out.add(pod.uid)
        else:
            self.kept_out.discard(pod.uid)
        if len(self.kept_out) > 100 + 2 * len(self._cluster.grants):
            self.kept_out = {uid for uid in self.kept_out if uid in self._cluster.grants}

    def may_come(self) -> Iterator[Pod]:
        """Yields granted pods that may come to a reserved node."""
        self._index()  # forgets who was kept out before another node was reserved
        return (pod for pod in self._cluster.grants.pods() if pod.uid not in self.kept_out)

    def without_room_beside(
        self, pod: Pod, kept: Mapping[str, Resources], without: Collection[str] = (), own: str = ""
    ) -> set[str]:
        """Returns the nodes that have no room for the pod beside what is kept there for others.

        Pods that hold a grant may come before it, and count, except on its ``own`` node. Those in ``without`` do not.
        """
        table = self._cluster.table
        full = {node for node, taken in kept.items() if fit.lacking_on(table, pod, node, without, taken)}
        unsure = kept.keys() - full - {own}
        coming = assumed.others(self._cluster.grants, table, pod) if unsure else ()
        return full | self._filled_by_coming(pod, {node: kept[node] for node in unsure}, coming, without)

    # Jobs that wait as a whole

    def jobs_with_room(self) -> list[str]:
        """Returns UIDs of stand-ins whose Jobs may start, as each pod has room on a node that is reserved for it."""
        index, table = self._index(), self._cluster.table
        self._rows(index)
        as_of = index.version, table.changes_of_followed
        if self._with_room[:2] != as_of:
            self._with_room = *as_of, [uid for job, uid in index.whole.items() if self._has_its_room(job, uid, index)]
        return self._with_room[2]

    def _has_its_room(self, job: Key, uid: str, index: _Index) -> bool:
        stand_in, members = self._cluster.pods.get(uid), 0
        if stand_in is None or stand_in.stands_for is None:
            return False
        for name in index.nodes_of[job]:
            there = index.by_node[name].members
            own = [each for each in there if (each.pod.namespace, each.job) == job]
            last = max(own, key=turn_of)
            before = total(self._cluster.reservations.request_of(each) for each in there if not is_behind(each, last))
            pod, node = self._cluster.reservations.pod_of(last), self._cluster.table.node(name)
            if pod is None or node is None or not node.ready:
                return False
            taken = {resource: amount - pod.request.get(resource, 0) for resource, amount in before.items()}
            if fit.lacking_on(self._cluster.table, pod, name, (), taken):
                return False
            if not fit.node_fits_if_empty(self._cluster.table, node, pod):
                return False  # it was cordoned, for example
            members += len(own)
        return members >= stand_in.stands_for.pods

    def free_beside(self, pod: Pod) -> NDArray[np.int64]:
        """Returns what nodes have free for the pods of a Job that waits as a whole, beside what is kept for others.

        ``pod`` is its stand-in. Its pods may use nodes meanwhile where they are gone in time.
        """
        index, table = self._index(), self._cluster.table
        there, free, gone_at = self._rows(index), table.free, self.gone_at(pod)
        need, closed = dict(there.need), np.ones(len(there.names), np.bool_)
        if gone_at is not None and gone_at <= index.latest:
            starting = self._starting_now(index)
            closed = gone_at > there.promised
            if starting:
                closed |= np.array([name in starting for name in there.names])
        if (job := self._job(pod, index)) in index.nodes_of:
            self._leave_own_out(job, there, need, closed)
        if self._cluster.rules.whole_nodes:
            free[there.rows[closed]] = 0
        for resource, amounts in need.items():
            if (column := table.columns.get(resource)) is not None:
                free[there.rows, column] = _less(free[there.rows, column], np.where(closed, amounts, 0))
        return free

    def _leave_own_out(
        self, job: Key, there: _Rows, need: dict[str, NDArray[np.int64]], closed: NDArray[np.bool_]
    ) -> None:
        """Leaves out of ``need`` what is reserved for this job. Nodes that are reserved for it alone are open to it."""
        need.update({resource: amounts.copy() for resource, amounts in need.items()})
        own = there.index.nodes_of[job]
        for at, name in enumerate(there.names):
            if name in own:
                members = there.index.by_node[name].members
                others = [each for each in members if (each.pod.namespace, each.job) != job]
                closed[at] &= bool(others)
                kept = total(map(self._cluster.reservations.request_of, others))
                for resource, amounts in need.items():
                    amounts[at] = _at_most(kept, resource)

    # The parts of an answer

    def _index(self) -> _Index:
        reserved, moves = self._cluster.reservations.reserved, self._cluster.gates.moves_of_jobs
        if (self._known.version, self._moves) != (reserved.version, moves):
            reserved.see_gates(self._cluster.gates.line_of)
            self._moves = moves
            if changed := reserved.changed():
                before, self._known = self._known, self._renewed(self._known, changed)
                self._take_over_rows(before, self._known, changed)
                if not self._known.by_node.keys() <= before.by_node.keys():
                    self.kept_out.clear()  # who was granted before was not kept from the new one
            self._known.version = reserved.version
        return self._known

    def _renewed(self, before: _Index, changed: AbstractSet[str]) -> _Index:
        """Returns the index as it is now. It looks at these nodes alone: each pod of a Job that comes changes one."""
        by_node, nodes_of, whole = dict(before.by_node), dict(before.nodes_of), dict(before.whole)
        now = {node: self._on_now(node) for node in changed}
        members = [each for on in (*map(by_node.get, changed), *now.values()) if on for each in on.members]
        of_jobs = {_job_of(each): before.nodes_of.get(_job_of(each), set[str]()) - changed for each in members}
        for node, on in now.items():
            by_node[node] = on
            if not on.members:
                del by_node[node]
            for each in on.members:
                of_jobs[_job_of(each)].add(node)
                if is_member(each.pod.uid):
                    self._note_whole(whole, each)
        nodes_of |= of_jobs
        for job in [job for job, nodes in of_jobs.items() if not nodes]:
            del nodes_of[job]
            whole.pop(job, None)
        self._forget_lifted(whole, of_jobs.keys() & nodes_of.keys())
        latest = max(map(attrgetter("promised"), by_node.values()), default=0.0)
        shared = before.shared - changed | {node for node, on in now.items() if len(set(map(_job_of, on.members))) > 1}
        return _Index(before.version, by_node, nodes_of, latest, frozenset(by_node), whole, shared)

    def _on_now(self, node: str) -> OnNode:
        reservations, on = self._cluster.reservations, OnNode()
        on.members = [each for each in reservations.reserved.on(node) if reservations.is_reserved(each)]
        on.need = total(map(reservations.request_of, on.members))
        on.promised = min((each.promised_start for each in on.members), default=0.0)
        return on

    def _note_whole(self, whole: dict[Key, str], member: Reservation) -> None:
        """Notes the stand-in of a Job; of Jobs of the same name that of the one for which nodes were reserved last."""
        stand_in = stand_in_of(member.pod.uid)
        if (known := whole.setdefault(_job_of(member), stand_in)) != stand_in:
            both = (known, stand_in)
            last = [each for each in self._cluster.reservations.reserved.of_stand_ins if each in both][-1]
            whole[_job_of(member)] = last

    def _forget_lifted(self, whole: dict[Key, str], jobs: AbstractSet[Key]) -> None:
        """Forgets stand-ins for which nothing is reserved any more, of Jobs whose namesakes still have nodes."""
        reserved = self._cluster.reservations.reserved
        for job in [job for job in jobs & whole.keys() if whole[job] not in reserved.of_stand_ins]:
            del whole[job]
            for each in reserved.of_job(*job):
                self._note_whole(whole, each)

    def _take_over_rows(self, before: _Index, index: _Index, changed: AbstractSet[str]) -> None:
        """Takes over the arrays of an index where only few nodes have changed, or are reserved no more."""
        table = self._cluster.table
        known: _Rows | None = table.attributes.memo.get("reserved")
        if known is None or known.index is not before or len(changed) > FEW or not changed <= before.names:
            return
        stays, needs = np.ones(len(known.names), np.bool_), known.need.keys()
        for at, on in [(known.names.index(name), index.by_node.get(name)) for name in changed - known.unknown]:
            stays[at] = on is not None
            if on is not None and not on.need.keys() <= needs:
                return
            known.promised[at] = on.promised if on is not None else 0.0
            for resource, amounts in known.need.items():
                amounts[at] = _at_most(on.need, resource) if on is not None else 0
        names, need = list(compress(known.names, stays)), {each: known.need[each][stays] for each in needs}
        unknown = known.unknown & index.names
        rows = _Rows(index, names, known.rows[stays], unknown, need, known.promised[stays])
        table.attributes.memo["reserved"] = rows
        table.follow(index.names)

    def _rows(self, index: _Index) -> _Rows:
        """Returns the arrays of the index. They hold until a node comes or goes."""
        memo: dict[Any, Any] = self._cluster.table.attributes.memo
        known: _Rows | None = memo.get("reserved")
        if known is not None and known.index is index:
            return known
        rows = self._cluster.table.rows
        names = [name for name in index.by_node if name in rows]
        resources = {resource for on in index.by_node.values() for resource in on.need}
        needs = [index.by_node[name].need for name in names]
        need = {each: np.array([_at_most(one, each) for one in needs], np.int64) for each in resources}
        numbers = np.array([rows[name] for name in names], np.intp)
        promised = np.array([index.by_node[name].promised for name in names], np.float64)
        known = memo["reserved"] = _Rows(index, names, numbers, index.by_node.keys() - rows.keys(), need, promised)
        self._cluster.table.follow(index.names)
        return known

    def _have_too_little(self, pod: Pod, index: _Index) -> bool:
        """Whether no reserved node has as much of some resource as another job's pod asks for: quick for most pods."""
        table = self._cluster.table
        if index.as_of != table.changes_of_followed:
            self._measure(index)
        for resource, amount in pod.request.items():
            if amount > index.most_left.get(resource, amount):
                return table.placed(pod.uid) is None  # it does not count against itself
        return False

    def _measure(self, index: _Index) -> None:
        """Finds out what is left on reserved nodes, and how much it is at most if expected pods do not count."""
        table, there = self._cluster.table, self._rows(index)
        index.left = {each: self._left(there, each) for each in table.columns if table.lists(each)}
        index.takers.clear()
        most = {each: int(amounts.max(initial=0)) for each, amounts in index.left.items()}
        expected = total(each.pod.request for each in table.expected.values() if each.site.name in index.names)
        index.most_left = {each: amount + expected.get(each, 0) for each, amount in most.items()}
        index.as_of = table.changes_of_followed

    def _left(self, there: _Rows, resource: str) -> NDArray[np.int64]:
        """Returns what each of these nodes has of a resource beside what is reserved there."""
        table, column, reserved = self._cluster.table, self._cluster.table.columns[resource], there.need.get(resource)
        left = table.allocatable[:, column].take(there.rows) - table.used[:, column].take(there.rows)
        return left if reserved is None else _less(left, reserved)

    def _without_room(self, pod: Pod, index: _Index, kept: Mapping[str, Resources]) -> AbstractSet[str]:
        """Returns the nodes without room for a pod beside what is reserved; on nodes in ``kept``, beside that alone."""
        table, there = self._cluster.table, self._rows(index)
        if index.as_of != table.changes_of_followed:
            self._measure(index)
        full = self._full(pod, index, kept, {})
        if len(full) == len(index.names):
            return index.names
        coming = assumed.at_most_on_each(table, there.by_name, self.may_come(), pod, index.takers)
        return self._full(pod, index, kept, coming) if coming else full

    def _full(
        self, pod: Pod, index: _Index, kept: Mapping[str, Resources], coming: Mapping[str, NDArray[np.int64]]
    ) -> AbstractSet[str]:
        """Returns the nodes without room for a pod beside what is kept there and what is ``coming``."""
        table, there = self._cluster.table, self._rows(index)
        lacks = np.zeros(len(there.names), np.bool_)
        for resource, amount in fit.need(table, pod):
            left = self._left_beside(kept, resource, index) if kept else index.left.get(resource)
            if left is not None and coming:
                left = _less(left, coming[resource])
            lacks |= left < amount if left is not None else True
        full: AbstractSet[str] = {*compress(there.names, lacks.tolist()), *there.unknown}
        if table.expected or table.placed(pod.uid):  # some of those on a node may not count against this pod
            sites = (table.placed(uid) for uid in fit.overlooked(table, pod))
            for node in {placed.site.name for placed in sites if placed is not None} & full - there.unknown:
                comes = {each: int(amounts[there.names.index(node)]) for each, amounts in coming.items()}
                if not fit.lacking_on(table, pod, node, (), total((kept.get(node, index.by_node[node].need), comes))):
                    full = full - {node}
        return full

    def _left_beside(self, kept: Mapping[str, Resources], resource: str, index: _Index) -> NDArray[np.int64] | None:
        """Returns what is left of a resource on nodes beside what is reserved; on those of ``kept``, beside that."""
        table, there, left = self._cluster.table, self._rows(index), index.left.get(resource)
        if left is None:
            return None
        left, column = left.copy(), table.columns[resource]
        for node in kept.keys() & there.by_name.keys():
            row = there.by_name[node]
            free = int(table.allocatable[row, column]) - int(table.used[row, column])
            left[there.rows == row] = max(free - kept[node].get(resource, 0), -LARGEST)
        return left

    def _kept_from_member(self, pod: Pod, job: Key, index: _Index) -> AbstractSet[str]:
        """Returns the nodes without room for a pod of a job that has reserved nodes, beside what others have reserved.

        On its own node it comes before those for whom the node was reserved later.
        """
        cluster, own = self._cluster, self._cluster.reservations.reserved.of_pod(pod.uid)
        shared = (index.nodes_of[job] & index.shared) | ({own.node} & index.names if own is not None else set())
        kept = dict[str, dict[str, int]]()
        for name in shared:
            on = index.by_node[name]
            mine = own if own is not None and own.node == name else None
            if job in index.whole:
                mine = next((each for each in on.members if (each.pod.namespace, each.job) == job), None)
            for each in on.members:
                behind = mine is not None and is_behind(each, mine)
                if (each.pod.namespace, each.job) != job and not behind:
                    add(kept.setdefault(name, {}), cluster.reservations.request_of(each))
        nodes = index.names - index.nodes_of[job] - shared | kept.keys()
        return nodes if cluster.rules.whole_nodes else self._without_room(pod, index, kept) & nodes

    def _filled_by_coming(
        self, pod: Pod, kept: Mapping[str, Resources], coming: Collection[AlikePods], without: Collection[str]
    ) -> set[str]:
        """Returns the nodes that granted pods may fill, so that there is no room for the pod beside what is kept."""
        table, full = self._cluster.table, set[str]()
        kinds = sorted(coming, key=lambda each: -each[1])
        rest = total(
            {name: number * amount for name, amount in other.request.items()} for other, number in kinds[MOST_KINDS:]
        )
        for node, reserved in kept.items():
            taken = total((reserved, rest, assumed.at_most_on(table, node, kinds[:MOST_KINDS], pod)))
            if taken and fit.lacking_on(table, pod, node, without, taken):
                full.add(node)
        return full

    # Backfill

    def _gone_in_time(self, pod: Pod, kept: AbstractSet[str], index: _Index) -> AbstractSet[str]:
        """Returns those of these nodes where the pod is surely gone before the promised start."""
        gone_at = self.gone_at(pod)
        if gone_at is None or gone_at > index.latest:
            return frozenset()
        in_time = {node for node in kept if gone_at <= index.by_node[node].promised}
        return in_time - self._starting_now(index) if in_time else in_time

    def gone_at(self, pod: Pod) -> float | None:
        """Returns when a pod that starts now is surely gone, with the margin, in seconds since the epoch; or None.

        Only an enforced run time counts that nobody can raise, or after which the pod may be evicted.
        """
        cluster = self._cluster
        now = cluster.protection.now
        end = cluster.run_times.surely_ends_at(pod, now) if now else None
        return None if end is None else end + pod.grace + cluster.rules.backfill_margin

    def _starting_now(self, index: _Index) -> set[str]:
        """Returns the nodes of jobs that have room on all of their nodes: they start, and nobody comes before."""
        table, there = self._cluster.table, self._rows(index)
        lacks = np.zeros(len(there.names), np.bool_)
        for resource, need in there.need.items():
            lacks |= (need > 0) & (self._left(there, resource) < 0 if resource in table.columns else True)
        full = {*compress(there.names, lacks.tolist()), *there.unknown}
        return set[str]().union(*(nodes for nodes in index.nodes_of.values() if nodes.isdisjoint(full)))


def _less(there: NDArray[np.int64], reserved: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns what is left beside what is reserved, but not less than an array can hold."""
    return np.maximum(there, reserved - LARGEST) - reserved


def _at_most(need: Resources, resource: str) -> int:
    """Returns what is reserved of a resource, as far as an array can hold it: no node has more."""
    return min(need.get(resource, 0), LARGEST)


def _job_of(reservation: Reservation) -> Key:
    return reservation.pod.namespace, reservation.job


def is_behind(each: Reservation, other: Reservation) -> bool:
    """Whether a node was reserved for the first of these after the second."""
    return turn_of(each) > turn_of(other)


def turn_of(reservation: Reservation) -> tuple[int, str]:
    """Returns a key by which reservations of a node are in the order in which they were made.

    The API server tells that in whole seconds. Those of different jobs are further apart (app.controllers.reserve).
    """
    return int(reservation.since), reservation.name
