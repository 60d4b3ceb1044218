"""The state of each pod of a cluster: what it holds in the ledger, by a grant, and while it is in flight.

A waiting pod has nothing yet (``pending``), or room is kept for it (``held``, ``nominated``). An admitted pod has a
grant (``granted``); another process may have admitted it (``in_flight``). A pod on a node has what it uses there.
"""

from __future__ import annotations

from itertools import islice
from math import inf
from typing import TYPE_CHECKING

from policy.cluster.attempts import not_let_through, says_something_new
from policy.objects.resources import is_lighter
from policy.stepwise import Steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod

GRANT_LIFETIME = 30.0
"""Seconds after which a grant ends if its pod has not come to a node."""
AT_ONCE = 100
"""The most waiting pods that an event enters anew at once: in a few milliseconds."""


class PodStates:
    """Moves pods of a cluster from one state to another. ``grant_lifetime`` is in seconds."""

    def __init__(self, cluster: Cluster, grant_lifetime: float) -> None:
        self._cluster = cluster
        self._grant_lifetime = grant_lifetime
        self._later: dict[str, None] = {}

    # What is seen of pods

    def see_pending(self, pod: Pod, before: Pod | None) -> None:
        """Sees a pod without a node: decides whether it keeps its grant, or is still in flight."""
        cluster = self._cluster
        cluster.destinations.see_resized(pod, before)
        if pod.uid in cluster.grants:
            awaited = pod.uid in cluster.gates.ungated or cluster.gangs.is_awaited(pod.uid)
            awaited = awaited or pod.uid in cluster.queued_jobs.arrived
            in_vain = cluster.grants.came_to_nothing(pod) and not awaited
            if in_vain and not not_let_through(pod):
                cluster.grants.release(pod.uid)
                self.restore_pending(pod.uid)
            elif cluster.grants.is_older(pod):
                return
            elif self._grows(pod) and cluster.check(pod) is not None:
                self.withdraw(pod.uid)
            else:
                cluster.ledger.enter("granted", pod)
                cluster.destinations.is_admitted(pod.uid)
        elif pod.uid in cluster.in_flight.uids and not says_something_new(pod, before):
            cluster.ledger.enter("in_flight", pod)
        else:
            self.restore_pending(pod.uid)

    def _grows(self, pod: Pod) -> bool:
        """Whether a granted pod requests more than what counts: its user has resized it, and no rule was asked."""
        return is_lighter(self._cluster.ledger.entries[pod.uid].request, pod.request)

    def see_assigned(self, pod: Pod, before: Pod | None, now: float) -> None:
        """Sees a pod on a node: ends its grant, its hold, and what else it was admitted by."""
        cluster = self._cluster
        if pod.uid in cluster.in_flight.uids:
            cluster.in_flight.has_landed(pod.uid, now)
        elif before is not None and before.pending and pod.uid not in cluster.grants and cluster.is_governed(pod):
            cluster.in_flight.somebody_else_admits = True  # another scheduler is at work, and some rule applies
        if pod.uid in cluster.reservations.held:
            cluster.generations.admission += 1  # its kept room is free, if it went elsewhere
        if pod.uid in cluster.grants:
            cluster.gangs.has_landed()
        cluster.gangs.holds.take_back(pod.uid)
        cluster.gates.discount(pod.uid)
        cluster.grants.forget(pod.uid)
        cluster.hints.helped.forget(pod.uid)
        if pod.uid not in cluster.leaving.overdue:
            cluster.ledger.enter("assigned", pod)

    def leave(self, uid: str) -> None:
        """Takes from a pod all that it holds; it will not come back."""
        cluster = self._cluster
        cluster.in_flight.uids.discard(uid)
        cluster.gangs.holds.take_back(uid)
        cluster.gates.discount(uid)
        if uid not in cluster.pods:
            cluster.table.remove(uid)
        cluster.grants.forget(uid)
        cluster.queue_changes.moving.forget(uid)
        cluster.ledger.remove(uid)

    # What is decided of them

    def give_grant(self, pod: Pod, now: float) -> None:
        """Gives a pod a grant that is already in the ledger. If its gate was opened, the grant has no deadline."""
        if pod.uid in self._cluster.gates.ungated:
            self._cluster.grants.keep(pod, now, inf)
        else:
            self._cluster.grants.give(pod, now, self._grant_lifetime)
        self._cluster.destinations.is_admitted(pod.uid)
        if self._cluster.devices.changed:
            self._cluster.devices.settle()

    def keep_all(self, pods: list[Pod], now: float, deadline: float) -> None:
        """Counts pods that have not asked as admitted, until they ask or the deadline passes."""
        cluster = self._cluster
        cluster.ledger.grant_all(pods)
        for pod in pods:
            cluster.in_flight.uids.discard(pod.uid)
            cluster.grants.keep(pod, now, deadline)
        cluster.devices.settle()

    def withdraw(self, uid: str) -> None:
        """Takes back the grant of a pod."""
        self.restore_pending(uid)
        self._cluster.gates.discount(uid)
        self._cluster.grants.release(uid)
        if self._cluster.devices.changed:
            self._cluster.devices.settle()

    def restore_pending(self, uid: str) -> None:
        """Takes from a pod all but the node that it is on. It waits for kept room or its nominated node, if any."""
        cluster = self._cluster
        pod = cluster.pods.get(uid)
        if pod is None:
            self.leave(uid)
            return
        if pod.pending and uid in cluster.queue_changes.moving.counted:
            cluster.queue_changes.moving.discard(uid)
            if uid in cluster.gates:  # it waits in the line of the queue that it names now
                cluster.gate_admission.stand(pod, cluster.gates.since(uid))
        held = cluster.reservations.held
        if pod.pending and uid in held and cluster.destinations.may_come(pod, held[uid].node):
            cluster.ledger.enter("held", pod)
        elif pod.pending and pod.nominated_node and cluster.destinations.may_come(pod, pod.nominated_node):
            cluster.ledger.enter("nominated", pod)
        elif pod.pending:
            cluster.ledger.enter("pending", pod)
        elif pod.finished:
            cluster.ledger.remove(uid)
        cluster.in_flight.uids.discard(uid)
        if cluster.gangs.holds.take_back(uid):
            cluster.destinations.place(pod)

    # What else has changed for them

    def stand_again(self, uid: str) -> None:
        """Places a pod anew, as the room that is kept for it has changed."""
        cluster = self._cluster
        pod = cluster.pods.get(uid)
        if pod is not None:
            cluster.destinations.place(pod)
            if pod.pending and uid not in cluster.grants and uid not in cluster.in_flight.uids:
                self.restore_pending(uid)

    def assign_again(self, uids: Iterable[str]) -> None:
        """Enters pods anew whose queue or claim may have changed.

        Of very many that only wait, the first are entered at once, the others by ``catch_up_steps``. Till then they
        have the claims that they had: nobody counts less than what pods have.
        """
        room = AT_ONCE
        for uid in uids:
            only_waits = self.only_waits(uid)
            if only_waits and not room:
                self._later[uid] = None
                continue
            room -= only_waits
            self._assign_again(uid)

    def only_waits(self, uid: str) -> bool:
        """Whether a pod has no node and nothing that counts as used, or that is kept for it."""
        entry = self._cluster.ledger.entries.get(uid)
        return uid in self._cluster.pending and (entry is None or entry.kind == "pending")

    def catch_up_steps(self, most: int | None = None) -> Steps[None]:
        """Enters the pods that ``assign_again`` has left for later: all, or so many. Others may work in between."""
        for uid in list(islice(self._later, most)):
            if uid not in self._later:
                continue  # somebody else has entered it in a pause
            del self._later[uid]
            if uid in self._cluster.pods:
                self._assign_again(uid)
            yield

    @property
    def to_catch_up(self) -> bool:
        """Whether pods that wait are still to be entered anew."""
        return bool(self._later)

    def _assign_again(self, uid: str) -> None:
        cluster = self._cluster
        pod, entry = cluster.pods[uid], cluster.ledger.entries.get(uid)
        cluster.capacity.note(pod)
        if entry is not None:
            granted = cluster.grants.pod(uid) if cluster.grants.is_older(pod) else None
            cluster.ledger.enter(entry.kind, granted or pod)
        elif pod.pending:
            cluster.ledger.enter("pending", pod)
        elif uid in cluster.leaving.overdue:
            cluster.leaving.overdue.add(pod, cluster.queue_of(pod))
        if uid in cluster.gates:
            cluster.gate_admission.stand(pod, cluster.gates.since(uid))

    def has_claim(self, pod: Pod) -> bool:
        """Whether a pod waits, and can still be placed or has a node reserved for it.

        False while its gang has too few members, its queue admits none, or it may not run for as long as it says.
        """
        cluster, queue = self._cluster, self._cluster.queue_of(pod)
        account = cluster.ledger.queues.accounts.get(queue)
        if account is not None and account.shut:
            return False
        limits = cluster.ledger.run_time_limits
        if limits.most and limits.refuses(cluster.ledger, pod, queue):
            return False
        waits = pod.pending and not (pod.terminating or pod.gated)
        unschedulable, reserved = cluster.attempts.unschedulable, cluster.reservations.reserved
        keeps = unschedulable.keeps_claim(pod.uid) or reserved.of_pod(pod.uid) is not None
        return waits and keeps and not cluster.gangs.lacks_members(pod)
