"""Decides about the pods that the scheduler wants to place: whether each is admitted, and which nodes it may go to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.cluster import dividing
from policy.quota import admission
from policy.quota.kept_nodes import HELD, RESERVED, refusal_by
from policy.quota.trial import Lifted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from collections.abc import Set as AbstractSet

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod
    from policy.objects.verdict import Refusal
    from policy.quota.rule import Rule

FEW = 5
"""The most nodes that are looked for one by one among those that are offered: for more it takes longer."""


class Unsettled(Exception):
    """Says that the answer for a pod depends on pods that may have been admitted before this process started."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """The answer to ``filter``: what refuses a pod, or None; and nodes that do not pass, each with the rule.

    If ``refused`` is set, no node passes. Then ``failed`` has every offered node, or is empty if the refusal is not
    about nodes. Else it has the offered nodes that are kept from the pod.
    """

    refused: Refusal | None = None
    failed: Mapping[str, Rule[None]] = field(default_factory=dict)


PASSED = Filtered()
"""The answer for a pod that is admitted and kept from no node, as most are: one for all."""


class PodAdmission:
    """Asks the rules of quotas, queues and gangs, in this order, and grants pods in the ledger. It has no state."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def filter(self, pod: Pod, now: float, names: Callable[[], Collection[str]]) -> Filtered:
        """Decides about a pod that the scheduler wants to place: which of the nodes with these names it may go to.

        Grants the pod unless it is refused, or kept from all of them. ``names`` is called only where they matter. If
        few nodes are kept from the pod, the names are only asked for these. Raises Unsettled.
        """
        cluster, gang = self._cluster, self._cluster.gangs.gated(pod) if pod.group else None
        refused = self.admit(pod, now, names() if gang is not None else None)
        if refused is not None:
            return Filtered(refused)
        if pod.group and (node := cluster.gangs.node_for(pod.uid)) and not cluster.is_exempt(pod):
            return Filtered(None, dict.fromkeys((name for name in names() if name != node), HELD))
        held, reserved = cluster.reservations.held_and_reserved_from(pod)
        answer = PASSED
        if held or reserved:
            offered = names()
            failed = dict.fromkeys(_among(offered, held), HELD) | dict.fromkeys(_among(offered, reserved), RESERVED)
            if failed and len(failed) == len(offered) and not cluster.is_placed(pod.uid):
                cluster.withdraw(pod.uid)  # the pod cannot be placed now, so it must not count
                return Filtered(refusal_by({*failed.values()}), failed)
            answer = Filtered(None, failed)
        if cluster.reservations.reserved.by_name:
            cluster.reservations.nodes.note_answer(pod, held | reserved if held else reserved)
        return answer

    def admit(self, pod: Pod, now: float, offered: Collection[str] | None = None) -> Refusal | None:
        """Admits a pod that the scheduler wants to place: grants it and returns None, or returns what refuses it.

        Asked again, it gives the same answer, as a pod's own grant does not count against it. ``offered``: the nodes
        that the scheduler lets a member of a gang choose from; None: any. Raises Unsettled.
        """
        cluster, known = self._cluster, self._cluster.pending.get(pod.uid)
        if known is None and pod.uid in cluster.pods:
            return None  # it is on a node, or has ended: the scheduler's cache is older than ours
        pod = known if known is not None and known.version > pod.version else pod
        if pod.needs is not None:
            pod = cluster.devices.charged(pod, asking=True)
        if pod.uid in cluster.queue_changes.moving.counted:
            cluster.queue_changes.moving.discard(pod.uid)  # the queue that it names now is asked anew
        self._count_unseen(pod, now)
        granted, gang = cluster.ledger.entry("granted", pod), cluster.gangs.gated(pod) if pod.group else None
        # Nearly always divided: that saves the calls.
        divided = (queues := cluster.ledger.queues).as_of == cluster.generations.shares and not queues.unfinished
        sure = divided or dividing.make_sure(cluster, pod, granted.queue)
        with Lifted(cluster.ledger, pod.uid, granted) as lifted:
            in_worst_case = refused = admission.refusal(cluster.ledger, pod, granted.queue, cluster.rules)
            if refused is None and not sure:
                in_worst_case = refused = self._refusal_until_known(pod, granted.queue)
            if refused is None and cluster.in_flight.uids:
                in_worst_case = self.refusal(pod)
            lifted.admitted = in_worst_case is None and gang is None
        if in_worst_case is None and gang is not None:
            return self._admit_member(pod, now, offered)
        if in_worst_case is None:
            if pod.group:
                cluster.gangs.let_through(pod.uid)
            cluster.states.give_grant(pod, now)
            return None
        cluster.states.withdraw(pod.uid)
        if refused is None:
            raise Unsettled(in_worst_case.message)
        return refused

    def refusal(self, pod: Pod) -> Refusal | None:
        """Returns what the rules say against a pod that is not in the ledger (see Ledger.trial), or None.

        Counts all pods that may be in flight.
        """
        cluster = self._cluster
        return admission.refusal(
            cluster.ledger, pod, cluster.queue_of(pod), cluster.rules, with_in_flight=cluster.unsettled
        )

    def grant(self, pod: Pod, now: float) -> None:
        """Counts a pod as admitted without asking the rules."""
        cluster = self._cluster
        pod = cluster.devices.charged(pod, asking=True)
        cluster.ledger.enter("granted", pod)
        cluster.states.give_grant(pod, now)

    def check(self, pod: Pod) -> Refusal | None:
        """Returns what refuses a pod now, or None; grants nothing.

        Counts all pods that may be in flight, as evictions must not rely on less.
        """
        cluster = self._cluster
        known = cluster.pods.get(pod.uid)
        if known is not None and known.assigned:
            return None
        pod = cluster.devices.charged(pod, asking=True)
        entry = cluster.ledger.entry("granted", pod)
        sure = dividing.is_sure(cluster, pod, entry.queue)
        with Lifted(cluster.ledger, pod.uid, entry):
            refused = self.refusal(pod)
            return refused if refused is not None or sure else self._refusal_until_known(pod, entry.queue)

    def why_waits(self, pod: Pod) -> Refusal | None:
        """Returns what refuses a waiting pod now, or None. An elastic Job waits for as few pods as are enough."""
        return self.check(self._cluster.queued_jobs.at_least(pod))

    def _count_unseen(self, pod: Pod, now: float) -> None:
        """Counts what another process may have admitted since a pod last asked here. This one is not being bound.

        The pod may be one of a Job that was started, which the watch has not shown yet.
        """
        in_flight = self._cluster.in_flight
        if in_flight.somebody_else_admits and now - in_flight.asked_at > in_flight.settle_time > 0:
            in_flight.suspect(now)
        in_flight.somebody_else_admits, in_flight.asked_at = False, now
        if pod.uid in in_flight.uids:
            self._cluster.states.restore_pending(pod.uid)
        if self._cluster.gates.ungated and pod.uid not in self._cluster.pods:
            self._cluster.queued_jobs.see_asking(pod, now)

    def _admit_member(self, pod: Pod, now: float, offered: Collection[str] | None) -> Refusal | None:
        """Admits a member of a gang that its own quota and queue admit. Raises Unsettled."""
        cluster = self._cluster
        refused = cluster.gangs.refusal(pod, offered, now)
        if refused is None:
            cluster.ledger.enter("granted", pod)
            cluster.gangs.let_through(pod.uid)
            cluster.states.give_grant(pod, now)
            return None
        if pod.uid in cluster.gangs.holds:
            return refused  # no offered node fits now; its hold lasts until it times out
        cluster.states.withdraw(pod.uid)
        if cluster.in_flight.uids:
            raise Unsettled(refused.message)
        return refused

    def _refusal_until_known(self, pod: Pod, queue: str) -> Refusal | None:
        """Returns what refuses a pod while it is not known what its queue deserves."""
        if self._cluster.is_exempt(pod):
            return None
        return dividing.refusal_until_known(self._cluster.ledger.queues, queue, pod.namespace, pod.request)


def _among(names: Collection[str], nodes: AbstractSet[str]) -> Collection[str]:
    """Returns those of the nodes that are among the names."""
    if len(nodes) <= FEW:
        return [name for name in nodes if name in names]
    return frozenset(nodes).intersection(names)
