"""Which nodes are reserved for a job that starves.

Seed: reserve action (Node selection strategy, Reserve logic). All or nothing: a place for every member that is missing,
so that the job could start with them, or none. A place once chosen is kept as long as the node is there and fit for it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from policy import fit, scoring
from policy.cluster import Cluster
from policy.entitlement import SYSTEM_OWNERS
from policy.job import Job
from policy.node_table import Mask
from policy.pod import Pod, turn
from policy.reclaim import Shape, name_of, shape_of
from policy.reservation import STARVING, Reservation
from policy.resources import Resources, add
from policy.starving import Terms, goes_first, refused_together, starving_members

TOO_LARGE = "TooLarge"
"""The job can never run: some member, or all of them together, would not even fit empty nodes."""
UNDECIDABLE = "Undecidable"
REFUSED = "Refused"
NOT_FIRST = "OthersGoFirst"
NO_NODES = "NoNodes"
INCOMPLETE = "Incomplete"
EXPIRED = "Expired"
READY = "Ready"


@dataclass(frozen=True, slots=True)
class Place:
    """A member of a job, and the node that is to be reserved for it."""

    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be reserved for a job: these places and no others. Where there are none, why."""

    job: Job
    places: tuple[Place, ...] = ()
    reason: str = ""
    text: str = ""


def decide(cluster: Cluster, job: Job, terms: Terms, now: float) -> Decision:
    """What is to be reserved for a job that starves, or that something is reserved for. Changes nothing.

    ``now`` is in seconds since the epoch.
    """
    own = {each.pod.uid: each for each in cluster.reserved.of_job(job.namespace, job.name)}
    if len(job.standing) >= job.minimum:
        return Decision(job, (), READY, "it has started")
    if own and now - min(each.since for each in own.values()) > terms.max_duration:
        return Decision(job, (), EXPIRED, "nodes were reserved for it for as long as reserve.maxDuration allows")
    search = _Search(cluster, job)
    members = sorted((pod for pod in job.granted + job.waiting if pod.uid in own), key=turn)
    kept = [pod for pod in members if search.keep(pod, own[pod.uid].node)][: job.minimum - len(job.standing)]
    search.only(kept)
    missing = job.minimum - len(job.standing) - len(kept) - sum(pod.uid not in own for pod in job.granted)
    if missing > 0:
        others = job.waiting if own else starving_members(cluster, job, terms, now)
        why_not = _add_members(cluster, search, job, others, missing, terms)
    else:
        why_not = _refused(cluster, job, kept)
    if why_not is not None:
        return why_not
    if not own and (first := goes_first(cluster, job, now)) is not None:
        return Decision(job, (), NOT_FIRST, f"{first.title} has a higher priority, and could be scheduled now")
    return Decision(job, search.places)


def _add_members(
    cluster: Cluster, search: "_Search", job: Job, others: Iterable[Pod], missing: int, terms: Terms
) -> Decision | None:
    """Finds a place for so many of these members; why there is none for them, if there is none."""
    kept = [place.pod for place in search.places]
    there = {pod.uid for pod in kept}
    waiting = [pod for pod in others if pod.uid not in there and not pod.gated]
    if len(waiting) < missing:
        return Decision(job, (), INCOMPLETE, "fewer of its members wait than it takes to start")
    decidable = [pod for pod in waiting if not fit.undecidable(pod)]
    if len(decidable) < missing:
        return Decision(job, (), UNDECIDABLE, next(filter(None, map(fit.undecidable, waiting))))
    chosen = [pod for pod in decidable if search.has_node_for(pod)][:missing]
    if len(chosen) < missing:
        return Decision(job, (), TOO_LARGE, "no node could take it, however empty")
    refused = _refused(cluster, job, [*kept, *chosen])
    if refused is not None or search.place_all(chosen, _spare_nodes(cluster, job, terms)):
        return refused
    if not _Search(cluster, job, everywhere=True).place_all([*kept, *chosen], len(cluster.table.names)):
        return Decision(job, (), TOO_LARGE, "its members would not fit the nodes together, however empty")
    return Decision(job, (), NO_NODES, "the nodes that could take it are kept for others, or too many are reserved")


def _refused(cluster: Cluster, job: Job, pods: list[Pod]) -> Decision | None:
    refused = refused_together(cluster, pods)
    return Decision(job, (), REFUSED, f"it would be refused: {refused.message}") if refused else None


def preview(cluster: Cluster, jobs: list[Job], terms: Terms, now: float) -> Iterator[Decision]:
    """What would be reserved for each of these jobs, one after the other. Between two of them nothing is changed."""
    planned: list[Reservation] = []
    for job in jobs:
        known = {*cluster.given_up, *(each.name for each in cluster.reserved)}
        assumed = [each for each in planned if each.name not in known]
        eased = cluster.ledger.eased
        for each in assumed:
            cluster.upsert_reservation(each)
        try:
            decision = decide(cluster, job, terms, now)
        finally:
            for each in assumed:
                cluster.delete_reservation(each.name)
            cluster.ledger.eased = eased  # only looked at
        planned += [reservation_of(job, place, now) for place in decision.places]
        yield decision


def reservation_of(job: Job, place: Place, since: float) -> Reservation:
    """The reservation that records a place. Named after the pod, so that there is never more than one for it."""
    name = f"starving-{place.pod.uid}".lower().replace("/", ".")
    return Reservation(name, name_of(place.pod), place.node, (), since, STARVING, job=job.name)


def _spare_nodes(cluster: Cluster, job: Job, terms: Terms) -> int:
    """How many nodes may be reserved for the job, beside those that are for others."""
    others = {
        each.node for each in cluster.reserved if (each.pod.namespace, each.job) != (job.namespace, job.name)
    } & cluster.table.rows.keys()
    return max(0, ceil(len(cluster.table.names) * terms.max_nodes_percent / 100) - len(others))


class _Search:
    """Looks for a place for each member of a job.

    ``everywhere``: as if no node were kept for anybody else, or not ready now.
    """

    def __init__(self, cluster: Cluster, job: Job, *, everywhere: bool = False) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._job = job
        self._open = np.ones(len(self._table.names), np.bool_) if everywhere else self._not_kept()
        self._own = {each.node for each in cluster.reserved.of_job(job.namespace, job.name)}
        self._standing = {pod.uid for pod in job.standing}
        self._places: dict[str, Place] = {}
        self._reserved: dict[str, dict[str, int]] = {}
        self._staying: dict[str, dict[str, int]] = {}
        self._rankings: dict[Shape, list[str]] = {}
        self._possible: dict[Shape, bool] = {}
        self._full: dict[Shape, int] = {}

    @property
    def places(self) -> tuple[Place, ...]:
        """What was found, in the order of the members' turn."""
        return tuple(sorted(self._places.values(), key=lambda place: turn(place.pod)))

    def keep(self, pod: Pod, node: str) -> bool:
        """Keeps a place that was chosen before, if the node is there and still fit for it; whether it is."""
        known = self._table.node(node)
        ready = known is not None and known.ready
        if ready and fit.suitable_on(self._table, pod, node) and self._has_space(node, pod):
            self._put(pod, node)
            return True
        return False

    def only(self, pods: list[Pod]) -> None:
        """Gives up the places of all others."""
        places = [self._places[pod.uid] for pod in pods]
        self._places, self._reserved, self._full = {}, {}, {}
        for place in places:
            self._put(place.pod, place.node)

    def has_node_for(self, pod: Pod) -> bool:
        """Whether any node could take the pod if all that ends had ended, be it kept for somebody else now or not."""
        shape = shape_of(pod, self._cluster)
        if shape not in self._possible:
            rows = np.flatnonzero(fit.suitable(self._table, pod))
            self._possible[shape] = any(self._fits_beside(self._table.names[row], pod.request) for row in rows)
        return self._possible[shape]

    def place_all(self, pods: list[Pod], most_nodes: int) -> bool:
        """A place for every pod on so many nodes at most; whether that was possible.

        In the order of the score first; then with the largest pods first, on as few nodes as possible.
        """
        before = list(self._places.values())
        for pod in pods:
            self._ranking(pod)  # as nodes are now, whatever is found for others
        largest_first = sorted(pods, key=lambda pod: (-self._size(pod), turn(pod)))
        for members, packed in ((pods, False), (largest_first, True)):
            if self._place_in_order(members, most_nodes, packed=packed):
                return True
            self.only([place.pod for place in before])
        return False

    def _place_in_order(self, pods: list[Pod], most_nodes: int, *, packed: bool) -> bool:
        assumed: list[tuple[str, Pod, str]] = []
        try:
            for pod in pods:
                node = self._node_for(pod, most_nodes, packed=packed)
                if not node:
                    return False
                self._put(pod, node)
                if pod.constraints.affinity or pod.constraints.anti_affinity or pod.constraints.spread:
                    placed = self._table.placed(pod.uid)
                    assumed.append((pod.uid, pod, placed.site.name if placed else ""))
                    self._table.add(pod, node)  # the others have to keep their distance
            return True
        finally:
            for uid, pod, before in assumed:
                self._table.remove(uid)
                if before:
                    self._table.add(pod, before)

    def _node_for(self, pod: Pod, most_nodes: int, *, packed: bool) -> str:
        names, shape = self._ranking(pod), shape_of(pod, self._cluster)
        if packed:
            names = sorted(names, key=lambda name: name not in self._reserved)
        else:
            first = self._full.get(shape, 0)  # those before it are full for all that are alike
            while first < len(names) and not self._has_space(names[first], pod):
                first += 1
            self._full[shape], names = first, names[first:]
        if self._own:  # two members have changed places, or one is replaced
            names = sorted(names, key=lambda name: name not in self._own)
        for name in names:
            beyond = name not in self._reserved and len(self._reserved) >= most_nodes
            if not beyond and self._has_space(name, pod) and self._is_met(name, pod):
                return name
        return ""

    def _is_met(self, node: str, pod: Pod) -> bool:
        return fit.would_be_met_on(self._table, pod, node, self._places.keys())

    def _ranking(self, pod: Pod) -> list[str]:
        """The nodes that may be reserved for a pod, the best first.

        By how free they are, then by how little is missing, then by how few pods there are to wait for, then by name.
        """
        shape = shape_of(pod, self._cluster)
        known = self._rankings.get(shape)
        if known is None:
            rows = np.flatnonzero(fit.suitable(self._table, pod) & self._open)
            names = np.array([self._table.names[row] for row in rows], dtype=np.str_)
            column = self._table.columns.get("pods")
            others = self._table.used[rows, column] if column is not None else np.zeros(len(rows))
            lacking, free = scoring.shortage(self._table, pod)[rows], scoring.freeness(self._table, pod)[rows]
            known = self._rankings[shape] = names[np.lexsort((names, others, lacking, -free))].tolist()
        return known

    def _has_space(self, node: str, pod: Pod) -> bool:
        """Whether a node would have room for the pod, and for all members that it is reserved for already."""
        together = dict(self._reserved.get(node, {}))
        add(together, pod.request)
        return self._fits_beside(node, together)

    def _fits_beside(self, node: str, request: Resources) -> bool:
        """Whether a node has so much, beside the pods on it that do not end before the job has started.

        These are pods of DaemonSets, static ones, and the job's own.
        """
        known = self._table.node(node)
        if known is None:
            return False
        staying = self._staying.get(node)
        if staying is None:
            staying = self._staying[node] = {}
            for pod in self._table.pods_on(node).values():
                if pod.owner in SYSTEM_OWNERS or pod.uid in self._standing:
                    add(staying, pod.request)
        there = known.allocatable
        return all(
            amount + staying.get(resource, 0) <= there.get(resource, 0)
            for resource, amount in request.items()
            if amount
        )

    def _put(self, pod: Pod, node: str) -> None:
        self._places[pod.uid] = Place(pod, node)
        add(self._reserved.setdefault(node, {}), pod.request)

    def _not_kept(self) -> Mask:
        """The nodes that are ready, and that nobody else is promised anything on."""
        table, cluster = self._table, self._cluster
        mask = np.fromiter((node.ready for node in table.nodes()), np.bool_, len(table.names))
        members = {pod.uid for pod in self._job.waiting + self._job.granted}
        others = ((uid, placed) for uid, placed in table.expected.items() if uid not in members)
        promised = {
            placed.site.name
            for uid, placed in others
            if cluster.is_held_for(uid) or uid in cluster.gangs.holds or placed.pod.priority >= self._job.priority
        }
        reserved = {
            each.node
            for each in cluster.reserved
            if (each.pod.namespace, each.job) != (self._job.namespace, self._job.name) and cluster.is_reserved(each)
        }
        return mask & ~table.mask_of(promised | reserved)

    def _size(self, pod: Pod) -> float:
        """How large a pod is, as the largest part of what all nodes have."""
        totals = self._table.allocatable.sum(axis=0, dtype=np.float64)
        columns = self._table.columns
        shares = (amount / max(1.0, totals[columns[name]]) for name, amount in pod.request.items() if name in columns)
        return max(shares, default=0.0)
