"""Reservations: the room that plans make for pods, and the nodes that are reserved for starving jobs.

Both are Reservations (see policy.objects.reservation). The room of a plan counts in the ledger and on its node at once.
Reserved room counts nowhere, and is only kept from others.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from policy.cluster.reserved_nodes import ReservedNodes
from policy.nodes import fit
from policy.objects.queued_job import is_member, stand_in_of
from policy.objects.reservation import STARVING, Reservation, Reserved
from policy.objects.resources import NOTHING, add
from policy.quota.kept_nodes import kept_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    import numpy as np
    from numpy.typing import NDArray

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources

_NO_NODES: AbstractSet[str] = frozenset()


class Reservations:
    """The reservations of a cluster, by name.

    ``plans`` are those that keep room, and ``held`` has by UID the plan that does so for a pod. ``reserved`` are those
    for starving jobs, and ``nodes`` says whom they keep out. ``given_up`` are only remembered.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.plans: dict[str, Reservation] = {}
        self.held: dict[str, Reservation] = {}
        self.reserved = Reserved()
        self.nodes = ReservedNodes(cluster)
        self.given_up: dict[str, Reservation] = {}
        self._cluster = cluster

    def all(self) -> Iterator[Reservation]:
        """Yields all reservations, those that are only remembered last."""
        return chain(self.plans.values(), self.reserved, self.given_up.values())

    # What is seen of them

    def upsert(self, reservation: Reservation) -> None:
        """Keeps room for a pod from now on. If the reservation was given up, keeps none, and never will again."""
        cluster = self._cluster
        known = self.plans.get(reservation.name) or self.reserved.get(reservation.name)
        if reservation.name in self.given_up or known == reservation:
            return
        cluster.changes.note()
        if known is not None and _is_same_room(known, reservation):
            self._update_promise(known, reservation)
            return
        self.delete(reservation.name)
        if reservation.failed_at:
            self.given_up[reservation.name] = reservation
            return
        if reservation.reason == STARVING:
            self.reserved.add(reservation, cluster.job_members.all_for(reservation))
            cluster.states.assign_again({reservation.pod.uid} & cluster.pods.keys())
            return
        self.plans[reservation.name] = reservation
        self.held[reservation.pod.uid] = reservation
        if known is None:
            cluster.destinations.outgrown.discard(reservation.pod.uid)
        cluster.states.stand_again(reservation.pod.uid)

    def delete(self, name: str) -> None:
        """Stops keeping the room of a reservation. Does nothing for an unknown one."""
        cluster = self._cluster
        cluster.changes.note()
        self.given_up.pop(name, None)
        if (lifted := self.reserved.remove(name)) is not None:
            cluster.generations.admission += 1
            self._forget_job(lifted)
            if not len(self.reserved):
                self.nodes.kept_out.clear()  # nobody is kept from anywhere now
            cluster.states.assign_again({lifted.pod.uid} & cluster.pods.keys())
            cluster.hints.less_is_reserved()
        reservation = self.plans.pop(name, None)
        if reservation is not None and self.held.get(reservation.pod.uid) is reservation:
            uid = reservation.pod.uid
            others = (other for other in self.plans.values() if other.pod.uid == uid)
            self._hold(uid, next(others, None))
            cluster.states.stand_again(uid)

    def _forget_job(self, lifted: Reservation) -> None:
        """Forgets the members of a Job that waits as a whole once nothing is reserved for it any more."""
        if (stand_in := stand_in_of(lifted.pod.uid)) not in self.reserved.of_stand_ins:
            self._cluster.job_members.forget(stand_in)

    def _update_promise(self, known: Reservation, now: Reservation) -> None:
        """Notes a promised start. Pods that are kept from the node may have become short enough to use it meanwhile."""
        self.reserved.add(now)
        if now.promised_start > known.promised_start:
            self._cluster.hints.less_is_reserved()

    @contextmanager
    def assumed(self, reservations: Iterable[Reservation]) -> Iterator[None]:
        """Returns a context in which these reservations exist, too, to ask about the rest. They must be new."""
        there = list(reservations)
        with self._as_before({reservation.pod.uid for reservation in there}):
            try:
                with self._cluster.changes.trial():
                    for reservation in there:
                        self.upsert(reservation)
                yield
            finally:
                for reservation in there:
                    self.reserved.remove(reservation.name)
                    self.plans.pop(reservation.name, None)
                    self._forget_job(reservation)

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Returns a context in which a plan does not exist, to ask about the rest. It may be unknown."""
        there = self.plans.get(name)
        with self._as_before({there.pod.uid} if there is not None else set()):
            try:
                with self._cluster.changes.trial():
                    self.delete(name)
                yield
            finally:
                if there is not None:
                    self.plans[name] = there

    @contextmanager
    def _as_before(self, uids: Collection[str]) -> Iterator[None]:
        """Returns a context after which these pods stand as before, in the ledger and the table, with their kept room.

        Restoring them asks no rule, so it cannot fail.
        """
        ledger, table = self._cluster.ledger, self._cluster.table
        generations, stood = ledger.generations.snapshot(), {uid: ledger.entries.get(uid) for uid in uids}
        placed, held = {uid: table.place(uid) for uid in uids}, {uid: self.held.get(uid) for uid in uids}
        destinations = self._cluster.destinations
        nodes, outgrown = {uid: destinations.nodes_of(uid) for uid in uids}, destinations.outgrown & {*uids}
        try:
            yield
        finally:
            with self._cluster.changes.trial():
                destinations.outgrown |= outgrown
                for uid in uids:
                    self._hold(uid, held[uid])
                    ledger.restore(uid, stood[uid])
                    table.restore(uid, placed[uid])
                    destinations.restore(uid, nodes[uid])
            ledger.generations.restore(generations)

    def _hold(self, uid: str, reservation: Reservation | None) -> None:
        if reservation is not None:
            self.held[uid] = reservation
        else:
            self.held.pop(uid, None)

    # Whether they count

    def is_held_for(self, uid: str) -> bool:
        """Whether a plan keeps room for the pod."""
        return uid in self.held

    def held_for(self, uid: str) -> Reservation | None:
        """Returns the plan that keeps room for the pod, if there is one."""
        return self.held.get(uid)

    def is_in_force(self, reservation: Reservation) -> bool:
        """Whether the pod of a reservation still waits for its room, and has not outgrown it."""
        pod = self.pod_of(reservation)
        if pod is None or not pod.pending or pod.terminating:
            return False
        return reservation.name not in self.plans or pod.uid not in self._cluster.destinations.outgrown

    def is_reserved(self, reservation: Reservation) -> bool:
        """Whether a node is kept for a member of a job: until the member has come.

        If the member has gone to another node, even one reserved for another member, this node stays reserved until the
        leader decides about it.
        """
        pod = self.pod_of(reservation)
        if pod is None or (is_member(pod.uid) and self._cluster.job_members.has_come(reservation)):
            return False
        return not pod.terminating and not pod.finished and pod.node != reservation.node

    def pod_of(self, reservation: Reservation) -> Pod | None:
        """Returns whom a reservation is for: a pod, or a member of a Job that waits as a whole; None if it is gone."""
        uid = reservation.pod.uid
        return self._cluster.job_members.pod_of(reservation) if is_member(uid) else self._cluster.pods.get(uid)

    def request_of(self, reservation: Reservation) -> Resources:
        """Returns what a reservation in force keeps."""
        pod = self.pod_of(reservation)
        return pod.request if pod is not None else NOTHING

    # What follows for others

    def nodes_held_from(self, pod: Pod) -> set[str]:
        """Returns nodes where the pod would take room that is kept for another of the same or higher priority.

        The other may have a lower priority, if the pod is of another namespace and would borrow, or is of one that
        victims were taken from: what was taken back is not lent again. Pods that hold a grant may come to these nodes
        before it and take the spare room there, but not the room kept for the pod itself. Returns none for a pod of a
        DaemonSet, and for one that no rule applies to.

        A pod that room is being made for waits for its own victims, and leaves to others the room of theirs. If room
        has been lost, the pod that was promised it first comes first.
        """
        if self._may_go_anywhere(pod):
            return set()
        cluster = self._cluster
        own, behind = self.held.get(pod.uid), self.behind(pod)
        kept: dict[str, dict[str, int]] = {}  # by node: kept for pods that the table does not count against this one
        for reservation in self.plans.values():
            if reservation.pod.uid != pod.uid and reservation.pod.uid not in behind and self.is_in_force(reservation):
                other = cluster.pods[reservation.pod.uid]
                if self._is_kept_from(pod, reservation, other):
                    add(kept.setdefault(reservation.node, {}), other.request if other.priority < pod.priority else {})
        without = (cluster.leaving.uids - self._still_to_be_asked(own)) | behind if kept else frozenset()
        held = self.nodes.without_room_beside(pod, kept, without, own.node if own else "")
        return held | cluster.gangs.nodes_held_from(pod)

    def behind(self, pod: Pod) -> frozenset[str]:
        """Returns UIDs of pods of the same priority that were promised room on the same node after this one."""
        own, pods = self.held.get(pod.uid), self._cluster.pods
        if own is None:
            return frozenset()
        others = (each for each in self.held.values() if each.node == own.node)
        after = {each.pod.uid for each in others if (each.since, each.name) > (own.since, own.name)}
        return frozenset(uid for uid in after & pods.keys() if pods[uid].priority == pod.priority)

    def nodes_reserved_from(self, pod: Pod) -> AbstractSet[str]:
        """Returns nodes where the pod would take of what is reserved for other jobs than its own.

        Seed: reserve action (Node resource reservation rule); see policy.cluster.reserved_nodes. Returns none for a
        pod that requests nothing (BestEffort), is of a DaemonSet, or that no rule applies to.
        """
        if not len(self.reserved) or self._may_go_anywhere(pod) or pod.request.keys() == {"pods"}:
            return frozenset()
        return self.nodes.kept_from(pod)

    def free_beside_reserved(self, pod: Pod) -> NDArray[np.int64]:
        """Returns what nodes have free for the pods of a Job that waits as a whole, beside what is reserved."""
        if not len(self.reserved) or self._may_go_anywhere(pod):
            return self._cluster.table.free
        return self.nodes.free_beside(pod)

    def held_and_reserved_from(self, pod: Pod) -> tuple[AbstractSet[str], AbstractSet[str]]:
        """Returns the nodes that are kept from a pod: where room is held for others, and those reserved for others."""
        held: AbstractSet[str] = _NO_NODES
        if self.plans or self._cluster.gangs.holds.of_member:
            held = self.nodes_held_from(pod)
        return held, self.nodes_reserved_from(pod) if self.reserved.by_name else _NO_NODES

    def node_to_empty_for(self, pod: Pod) -> str:
        """Returns the node that is reserved for a pod, if borrowers on it are to be evicted for it; else empty."""
        one = self._cluster.rules.evict_for_reserved and pod.stands_for is None
        own = self.reserved.of_pod(pod.uid) if one else None
        return own.node if own is not None and self.is_reserved(own) and not self._cluster.is_exempt(pod) else ""

    def is_kept_out(self, pod: Pod) -> bool:
        """Whether the pod was refused because of room kept for others, and still has no room elsewhere."""
        if pod.unschedulable is None or kept_from(pod.unschedulable.message) is None:
            return False
        table, kept = self._cluster.table, self.nodes_held_from(pod) | self.nodes_reserved_from(pod)
        return all(table.names[row] in kept for row in fit.fits(table, pod).nonzero()[0])

    def _is_kept_from(self, pod: Pod, reservation: Reservation, other: Pod) -> bool:
        """Whether room that is kept for the other pod is kept from this one."""
        if other.priority >= pod.priority:
            return True
        if other.namespace == pod.namespace:
            return False
        if any(victim.namespace == pod.namespace for victim in reservation.victims):
            return True
        return bool(self._cluster.ledger.borrows(pod, by_share=self._cluster.rules.fair_share_preemption))

    def _still_to_be_asked(self, reservation: Reservation | None) -> set[str]:
        """Returns UIDs of the victims of a plan that have not been asked to go yet."""
        victims = {victim.uid for victim in reservation.victims} if reservation is not None else set()
        return {uid for uid in victims if not self._cluster.leaving.has_been_asked(uid)}

    def _may_go_anywhere(self, pod: Pod) -> bool:
        """Whether no node is kept from a pod: it can go nowhere else (DaemonSet), or no rule applies to it."""
        return pod.owner == "DaemonSet" or self._cluster.is_exempt(pod)


def _is_same_room(known: Reservation, now: Reservation) -> bool:
    """Whether a starving job's reservation differs in nothing but its promise."""
    if known.reason != STARVING or now.failed_at:
        return False
    start, at, due, moved = now.promised_start, now.promised_at, now.due, now.moved
    return replace(known, promised_start=start, promised_at=at, due=due, moved=moved) == now
