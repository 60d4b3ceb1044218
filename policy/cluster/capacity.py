"""The capacity of nodes for pods, as taints of nodes keep some of these away.

If none of these pods tolerates a node's taints, only what is used on the node counts: no more will be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.nodes.tolerations import ALL, Either, Several
from policy.quota import exempt
from policy.quota.exempt_from_eviction import SYSTEM_OWNERS

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources


class Capacity:
    """The tolerations of a cluster's pods, in queues and in none, and the capacity that nodes have for each kind."""

    def __init__(self, cluster: Cluster) -> None:
        self._in_queues, self._in_none = Several(), Several()
        self._anywhere = Either(self._in_queues, self._in_none)
        self._cluster = cluster

    @property
    def for_queues(self) -> Resources:
        """The capacity of all nodes for pods in queues.

        If the quota manager keeps pods from being created, nobody sees what they would tolerate: all nodes count.
        """
        everywhere = self._cluster.rules.quota_manager
        return self._cluster.table.capacity(ALL if everywhere else self._in_queues)

    @property
    def for_quotas(self) -> Resources:
        """The capacity of all nodes for pods under elastic quotas, in queues or not: any pod may tolerate a taint."""
        return self._cluster.table.capacity(self._anywhere)

    @property
    def for_others(self) -> Resources:
        """The capacity of all nodes for pods in no queue."""
        return self._cluster.table.capacity(self._in_none)

    def note(self, pod: Pod) -> None:
        """Notes what a pod tolerates: it counts for the capacity that nodes have for pods like it.

        Leaves out pods that come with their node, as those of DaemonSets do: they leave no room to others there. Leaves
        out critical pods of the system, too, as they ask for no share.
        """
        cluster = self._cluster
        critical = exempt.by_namespace(pod, cluster.rules.exempt_namespaces)
        if pod.finished or pod.owner in SYSTEM_OWNERS or critical:
            self.forget(pod.uid)
            return
        here, elsewhere = self._in_none, self._in_queues
        if cluster.queue_of(pod):
            here, elsewhere = elsewhere, here
        version = here.version + elsewhere.version
        elsewhere.remove(pod.uid)
        here.put(pod.uid, pod.constraints.tolerations)
        self._see_what_is_there(version)

    def forget(self, uid: str) -> None:
        """Forgets a pod that is gone or asks for no share. Does nothing for one that was not noted."""
        version = self._in_none.version + self._in_queues.version
        self._in_none.remove(uid)
        self._in_queues.remove(uid)
        self._see_what_is_there(version)

    def _see_what_is_there(self, version: int) -> None:
        """Has the shares of queues computed anew if other taints are tolerated now, or other pods stand on nodes.

        ``version`` is the sum of both versions before: each of them only grows.
        """
        table = self._cluster.table
        if table.moved or version != self._in_none.version + self._in_queues.version:
            table.moved = False
            self._cluster.generations.shares += 1
