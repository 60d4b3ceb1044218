"""Borrowers: pods of other quotas and queues that hold what the pending pod may take back.

This finds them, and remembers answers. The rule itself is policy.quota.entitlement.Entitlement.may_take.
"""

from collections.abc import Callable, Collection
from functools import partial

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.objects.resources import Resources
from policy.preemption.plans import Preemptor
from policy.preemption.ranking import queue_in
from policy.preemption.taken import Taken
from policy.quota.entitlement import Entitlement
from policy.stepwise import Steps


class _Known(dict[str, bool]):
    """Answers to a question about names, each worked out once."""

    def __init__(self, answer: Callable[[str], bool]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, name: str) -> bool:
        answer = self[name] = self._answer(name)
        return answer


class Borrowers:
    """Finds borrowers, and says whether one of them still borrows after what is taken so far.

    ``resources`` are those that the preemptor may take back. ``namespaces`` are those of which pods might be taken,
    None as long as nobody has looked for them; then only their pods are looked at.
    """

    __slots__ = (
        "_entitlement",
        "_has_levels",
        "_ledger",
        "_lent",
        "_on_node",
        "_queues_untouched",
        "_quotas_untouched",
        "_table",
        "_taken",
        "namespaces",
        "resources",
    )

    def __init__(
        self, cluster: Cluster, taken: Taken, entitlement: Entitlement, namespaces: frozenset[str] | None
    ) -> None:
        ledger = self._ledger = cluster.ledger
        self._table = cluster.table
        self._taken = taken
        self._entitlement = entitlement
        own = ledger.queues.accounts.get(entitlement.queue)
        self._has_levels = own is not None and bool(own.above)
        self.resources = entitlement.resources
        self.namespaces = namespaces
        self._quotas_untouched = _Known(partial(entitlement.is_quota_untouched, ledger))
        self._queues_untouched = _Known(partial(entitlement.is_queue_untouched, ledger))
        self._on_node: dict[str, list[tuple[Pod, str]]] = {}
        self._lent: dict[frozenset[str], dict[tuple[str, str], tuple[Resources, bool]]] = {}

    def may_take(self, victim: Pod, wanted: frozenset[str]) -> bool:
        """Whether a wanted resource was lent to the pod, and is still after what is taken so far."""
        return self.may_take_of(victim, queue_in(self._ledger, victim), wanted)

    def may_take_of(self, victim: Pod, queue: str, wanted: frozenset[str]) -> bool:
        """Answers as ``may_take`` for a pod of which it is known in which queue it counts.

        While there are no victims, one answer serves all pods of a namespace and queue that request the same.
        """
        if self._taken.victims:
            return self._entitlement.may_take(self._ledger, victim, queue, wanted)
        whose = victim.namespace, queue
        known_of = self._lent.setdefault(wanted, {})
        known = known_of.get(whose)
        if known is None or known[0] is not victim.request:
            verdict = self._entitlement.may_take(self._ledger, victim, queue, wanted)
            known = known_of[whose] = victim.request, verdict
        return known[1]

    def stays_within(self, victim: Pod) -> bool:
        """See Entitlement.stays_within, after what is taken so far. Nearly always there is nothing to look at."""
        if not self._has_levels:
            return True
        queue = self._ledger.queue_of(victim)
        return self._entitlement.stays_within(self._ledger, victim, queue)

    def on_node(self, node: str) -> list[tuple[Pod, str]]:
        """Pods on a node of other namespaces, each with its queue, that neither quota nor queue protects as a whole.

        It is a first look, while there are no victims: who is not among them does not borrow.
        """
        known = self._on_node.get(node)
        if known is None:
            own, over_min, entries = self._entitlement.pod.namespace, self._ledger.over_min, self._ledger.entries
            known = self._on_node[node] = []
            for pod in self.pods_on(node) if self.resources else ():
                namespace = pod.namespace
                if namespace == own or (namespace not in over_min and self._quotas_untouched[namespace]):
                    continue
                entry = entries.get(pod.uid)  # as queue_in does; many thousands are asked for one answer
                queue = self._ledger.queue_of(pod) if entry is None else entry.queue
                if not self._queues_untouched[queue]:
                    known.append((pod, queue))
        return known

    def pods_on(self, node: str) -> Collection[Pod]:
        """The pods on a node; only those of ``namespaces`` where these are known."""
        pods, namespaces = self._table.pods_on(node).values(), self.namespaces
        return pods if namespaces is None else [pod for pod in pods if pod.namespace in namespaces]

    def find_namespaces_steps(self, preemptor: Preemptor) -> Steps[frozenset[str]]:
        """Finds the namespaces of which pods might be taken, some at a time, and may pause in between.

        Most borrow nothing, so their pods need no look. Call this only while there are no victims.
        """
        accounts = () if preemptor.governed else self._ledger.accounts.items()
        peers = {preemptor.pod.namespace, *(n for n, each in accounts if preemptor.exempt or not each.quota)}
        return frozenset(peers | (yield from self._entitlement.borrowers_steps(self._ledger)))
