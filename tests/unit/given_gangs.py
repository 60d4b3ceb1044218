"""Pod groups and their members, in the words of the tables."""

from dataclasses import replace

from policy.cluster.cluster import Cluster
from policy.objects.group import Group
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.objects.queue import Queue
from policy.quota.elastic_quota import ElasticQuota
from policy.quota.gang_minimum import RULE
from tests.unit.given import pod

NOT_YET = Unschedulable("Unschedulable", f"0/3 nodes are available: 3 {RULE.text}.")
"""What kube-scheduler says of a member whose group cannot start."""


def group(name: str = "g", minimum: int = 3, namespace: str = "a", **rest) -> Group:
    """A pod group that takes three members to start, unless more is said of it."""
    return Group(namespace, name, minimum, **rest)


def members(name: str = "g", count: int = 3, namespace: str = "a", start: int = 0, **rest) -> list[Pod]:
    """Pending members of a group, of one core each, in the order of their creation."""
    return [
        pod(f"{name}{number}", namespace, group=name, **({"created": float(number)} | rest))
        for number in range(start, start + count)
    ]


def seeing(*objects: Node | Group | ElasticQuota | Queue | Pod | list[Pod], **options) -> Cluster:
    """A cluster that has seen these objects; nobody else admits any pod. What queues deserve is up to date."""
    cluster = Cluster(**{"settle_time": 0} | options)
    see(cluster, *objects)
    cluster.tick(0)
    for _ in cluster.divide_steps():
        pass
    return cluster


def see(cluster: Cluster, *objects: Node | Group | ElasticQuota | Queue | Pod | list[Pod], now: float = 0) -> None:
    """The cluster sees these objects."""
    take = {
        Node: cluster.upsert_node,
        Group: cluster.upsert_group,
        ElasticQuota: cluster.upsert_quota,
        Queue: cluster.upsert_queue,
    }
    for each in objects:
        for one in each if isinstance(each, list) else [each]:
            if isinstance(one, Pod):
                cluster.upsert_pod(one, now)
            else:
                take[type(one)](one)


def asked(cluster: Cluster, *some: Pod, now: float = 0, offered: tuple[str, ...] | None = None) -> list[str]:
    """The UIDs of those that pass, asked for one after the other."""
    return [each.uid for each in some if cluster.admit(each, now, offered) is None]


def bound(member: Pod, node: str = "n1") -> Pod:
    """The pod once it stands on a node."""
    return replace(member, node=node, unschedulable=None)


def refused(some: list[Pod]) -> list[Pod]:
    """The pods once the scheduler has written down that their group cannot start."""
    return [replace(each, unschedulable=NOT_YET) for each in some]
