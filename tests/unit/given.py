"""Pods and quotas in the words of the tables: cores and whole numbers, and only what matters to a case."""

from policy.cluster.cluster import Cluster
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.preemption import preemptors
from policy.quota.elastic_quota import ElasticQuota, elastic_quota
from policy.quota.rule import Rule
from policy.stepwise import at_once


def amounts(**resources: float) -> dict[str, int]:
    """``cpu`` in cores, everything else in units."""
    return {name: round(value * 1000) if name == "cpu" else round(value) for name, value in resources.items()}


def pod(uid: str, namespace: str = "a", *, name: str | None = None, request: dict | None = None, **rest) -> Pod:
    """A pending pod that requests one core and nothing else, unless more is said of it."""
    rest.setdefault("created", float(len(uid)))
    return Pod(uid, namespace, name or uid, amounts(**(request or {"cpu": 1})) | {"pods": 1}, **rest)


def quota(
    namespace: str = "a",
    name: str = "quota",
    *,
    least: dict | None = None,
    most: dict | None = None,
    created: float = 0,
) -> ElasticQuota:
    """A readable quota."""
    return elastic_quota(namespace, name, created, amounts(**(least or {})), amounts(**(most or {})))


def unreadable(namespace: str = "a", name: str = "quota", created: float = 0) -> ElasticQuota:
    """A quota whose spec cannot be read."""
    return ElasticQuota(namespace, name, created, errors=("spec.max.cpu: is not a quantity",), readable=False)


def refused_for(rule: Rule, resources: str = "cpu") -> Unschedulable:
    """The condition that kube-scheduler writes after a rule refused a pod on every node."""
    return Unschedulable("Unschedulable", f"0/3 nodes are available: 3 {rule.refusal((resources,)).message}.")


LARGE = Node("n", amounts(cpu=100, gpu=100, memory=100, pods=100))
"""A node that a pod may come to whatever it requests, if it is nominated there."""


def cluster_of(*objects: Pod | Node | ElasticQuota, **options) -> Cluster:
    """A cluster that has seen these quotas, nodes and pods, and believes that nobody else admits any."""
    cluster = Cluster(**{"settle_time": 0} | options)
    for seen in objects:
        if isinstance(seen, Pod):
            cluster.upsert_pod(seen, now=0)
        elif isinstance(seen, Node):
            cluster.upsert_node(seen)
        else:
            cluster.upsert_quota(seen)
    return cluster


def wait_for_room(cluster: Cluster, now: float, delay: float) -> list[Pod]:
    """The pods for which somebody may have to go, in the order in which they are looked at."""
    return at_once(preemptors.waiting_steps(cluster, now, delay))
