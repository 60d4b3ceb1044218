"""What nodes have for pods, as far as the taints of nodes keep some of them away.

Of a node whose taints none of these pods tolerates only what is used there counts: no more will be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.nodes.tolerations import ALL, Either, Several
from policy.quota import exempt
from policy.quota.entitlement import SYSTEM_OWNERS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources


class Capacity:
    """What the pods of a cluster tolerate, those in queues and those in none, and what nodes have for them by that."""

    def __init__(self, cluster: Cluster) -> None:
        self._in_queues, self._in_none = Several(), Several()
        self._anywhere = Either(self._in_queues, self._in_none)
        self._cluster = cluster

    @property
    def for_queues(self) -> Resources:
        """What all nodes have for pods in queues.

        Where the quota manager keeps pods from being created it is not seen what they would tolerate: all nodes count.
        """
        everywhere = self._cluster.rules.quota_manager
        return self._cluster.table.capacity(ALL if everywhere else self._in_queues)

    @property
    def for_quotas(self) -> Resources:
        """What all nodes have for pods under elastic quotas, in queues or not: any pod may tolerate a node's taints."""
        return self._cluster.table.capacity(self._anywhere)

    @property
    def for_others(self) -> Resources:
        """What all nodes have for pods in no queue."""
        return self._cluster.table.capacity(self._in_none)

    def note(self, pod: Pod) -> None:
        """Notes what a pod tolerates, for what nodes have for pods like it.

        What stands wherever its node is, as pods of DaemonSets do, leaves no room to others there. Nor does a critical
        pod of the system ask for a share.
        """
        cluster = self._cluster
        critical = exempt.by_namespace(pod, cluster.rules.exempt_namespaces)
        if pod.finished or pod.owner in SYSTEM_OWNERS or critical:
            self.forget(pod.uid)
            return
        in_queue, version = bool(cluster.queue_of(pod)), self._anywhere.version
        (self._in_none if in_queue else self._in_queues).remove(pod.uid)
        (self._in_queues if in_queue else self._in_none).put(pod.uid, pod.constraints.tolerations)
        self._see_what_is_there(version)

    def forget(self, uid: str) -> None:
        """A pod is gone, or asks for no share; for one that was not noted it is no error."""
        version = self._anywhere.version
        self._in_none.remove(uid)
        self._in_queues.remove(uid)
        self._see_what_is_there(version)

    def _see_what_is_there(self, version: Hashable) -> None:
        """What nodes have for pods may be something else, if others are tolerated now, or others stand there."""
        table = self._cluster.table
        if table.moved or version != self._anywhere.version:
            table.moved, self._cluster.ledger.queues.stale = False, True
