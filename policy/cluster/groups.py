"""The members of groups, and jobs (see policy.objects.job): groups with their members, and pods in no group.

A group could start only with enough members, so a member that joins may give the others a claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.cluster.waiting_members import WaitingMembers
from policy.objects.group import counting
from policy.objects.job import ALONE, Job, job_name
from policy.objects.pod import turn

if TYPE_CHECKING:
    from policy.cluster.cluster import Cluster
    from policy.objects.group import Key
    from policy.objects.pod import Pod


class Groups:
    """The pods of a cluster by their groups, whether the groups are known or not."""

    def __init__(self, cluster: Cluster) -> None:
        self._members: dict[Key, set[str]] = {}
        self._waiting: dict[Key, WaitingMembers] = {}
        self._cluster = cluster

    def members(self, key: Key) -> list[Pod]:
        """Returns the existing pods of a group."""
        pods = self._cluster.pods
        return [pods[uid] for uid in self._members.get(key, ())]

    def number_of_members(self, key: Key) -> int:
        """Returns how many pods of a group exist."""
        return len(self._members.get(key, ()))

    def waiting(self, key: Key) -> WaitingMembers:
        """Returns the members of a group that wait."""
        return self._waiting.get(key) or WaitingMembers()

    def job(self, namespace: str, name: str) -> Job | None:
        """Returns the job of this name (see policy.objects.job) with its members; None if there is none."""
        cluster = self._cluster
        group = cluster.membership.groups.get((namespace, name))
        if group is not None:
            members = self.members((namespace, name))
        else:
            alone = cluster.pod(namespace, name.removeprefix(ALONE))
            if alone is None or job_name(cluster.membership.groups, alone) != name:
                return None
            members = [alone]
        members.sort(key=turn)
        there = tuple(sorted(counting(members), key=turn))
        pending = [pod for pod in members if pod.pending and not pod.terminating]
        return Job(
            namespace,
            name,
            minimum=group.minimum if group else 1,
            created=group.created if group else members[0].created,
            standing=there,
            granted=tuple(pod for pod in pending if pod.uid in cluster.grants),
            waiting=tuple(pod for pod in pending if pod.uid not in cluster.grants),
        )

    def join(self, pod: Pod) -> None:
        """Adds a pod to its group. It may be a member already."""
        cluster, key = self._cluster, (pod.namespace, pod.group)
        members = self._members.setdefault(key, set())
        group = cluster.membership.groups.get(key)
        completes = pod.uid not in members and group is not None and len(members) + 1 == group.minimum
        members.add(pod.uid)
        self._waiting.setdefault(key, WaitingMembers()).see(pod)
        if completes:
            cluster.attempts.unschedulable.help_pods(members)
            cluster.states.assign_again(members)

    def leave(self, pod: Pod) -> None:
        """Removes a pod from its group: it is gone, or has changed its group. Does nothing for one that was in none."""
        cluster, key = self._cluster, (pod.namespace, pod.group)
        cluster.gangs.lose(pod)
        members = self._members.get(key, set())
        group = cluster.membership.groups.get(key)
        breaks = pod.uid in members and group is not None and len(members) == group.minimum
        members.discard(pod.uid)
        self.waiting(key).remove(pod.uid)
        if breaks:
            cluster.states.assign_again(members)
        if not members:
            self._members.pop(key, None)
            self._waiting.pop(key, None)
            cluster.gangs.forget(key)

    def changed(self, key: Key) -> None:
        """Notes that a group is new, has changed, or is gone."""
        cluster, members = self._cluster, self._members.get(key, ())
        cluster.gangs.changed(key)
        for uid in members:
            pod = cluster.pods[uid]
            cluster.attempts.unschedulable.regroup(pod, cluster.gangs.takes_to_start(pod))
        cluster.attempts.unschedulable.help_pods(members)
        cluster.queue_changes.named_anew(members)
