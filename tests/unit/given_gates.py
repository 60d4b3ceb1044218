"""Pods at gates, and who is let out, in the words of the tables."""

from dataclasses import replace

from policy.cluster.cluster import Cluster
from policy.cluster.gates import LOOKAHEAD
from policy.objects.membership import Namespace
from policy.objects.pod import Pod, Unschedulable
from policy.queueing.ungating import UngatingRound
from tests.unit.given_queues import divided, pods

AT_GATE = Unschedulable("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
NO_ROOM = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")


def gated(*some: Pod) -> list[Pod]:
    """The pods as they are born in a gated namespace."""
    return [replace(each, gate=0, unschedulable=AT_GATE) for each in some]


def waiting(namespace: str, count: int, start: int = 0, **rest) -> list[Pod]:
    """Pods of one core that wait at gates, in the order of their creation."""
    return [
        replace(each, created=float(number))
        for number, each in enumerate(gated(*pods(namespace, count, start, **rest)), start)
    ]


def gate(cluster: Cluster, *namespaces: str) -> Cluster:
    """The namespaces, each ``ns`` or ``ns:queue``, are gated."""
    for each in namespaces:
        name, _, queue = each.partition(":")
        cluster.upsert_namespace(Namespace(name, queue, gated=True))
    return divided(cluster)


def ungated(cluster: Cluster, now: float = 0, lookahead: float = LOOKAHEAD) -> list[str]:
    """Who is let out in one round, one after the other."""
    ungating = UngatingRound(divided(cluster), lookahead)
    return [pod.uid for pods in ungating.run(now) for pod in pods]


def opened(cluster: Cluster, uid: str, **changes) -> Pod:
    """The pod is seen without its gate."""
    pod = replace(cluster.pods[uid], gate=-1, **changes)
    cluster.upsert_pod(pod, now=0)
    return pod
