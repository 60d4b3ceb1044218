"""Queues and pods in them, in the words of the tables."""

from dataclasses import dataclass

from policy.cluster.cluster import Cluster
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.queue import Queue
from policy.quota import proportion, shares
from policy.quota.changes import Changes, Generations
from policy.quota.proportion import Division
from policy.quota.queue_account import QueueAccount, Tenant
from policy.quota.queue_ledger import QueueLedger
from policy.quota.queue_tree import QueueTree
from policy.stepwise import at_once
from tests.unit.given import amounts, pod
from tests.unit.given_nodes import node


def queue(name: str, weight: int = 1, *, most: dict | None = None, kept: dict | None = None, **rest) -> Queue:
    """A queue with a capability (``most``) and a guarantee (``kept``)."""
    return Queue(name, weight, amounts(**(most or {})), amounts(**(kept or {})), **rest)


def pods(namespace: str, count: int, start: int = 0, **rest) -> list[Pod]:
    """Pods of one core in the namespace, named after it."""
    return [pod(f"{namespace}-{number}", namespace, **rest) for number in range(start, start + count)]


def world(*objects: Queue | Pod | Node | str, cpu: float = 16, **options) -> Cluster:
    """A cluster of one node ``n1``, unless nodes are given; ``ns:q`` says that namespace ns has queue q. Divided."""
    cluster = Cluster(**{"settle_time": 0} | options)
    if not any(isinstance(each, Node) for each in objects):
        cluster.upsert_node(node(size={"cpu": cpu, "pods": 500}))
    for each in objects:
        if isinstance(each, str):
            namespace, _, name = each.partition(":")
            cluster.upsert_namespace(Namespace(namespace, name))
        elif isinstance(each, Queue):
            cluster.upsert_queue(each)
        elif isinstance(each, Node):
            cluster.upsert_node(each)
        else:
            cluster.upsert_pod(each, now=0)
    cluster.tick(0)
    return divided(cluster)


def divided(cluster: Cluster) -> Cluster:
    """The cluster, with what queues deserve up to date."""
    for _ in cluster.divide_steps():
        pass
    return cluster


def tree_of(parents: dict[str, str]) -> QueueTree:
    """The tree of queues that name these parents."""
    tree = QueueTree()
    for name, parent in parents.items():
        tree.put(name, parent)
    return tree


def divisions(available: dict, queues: dict[str, Queue], requests: dict[str, dict]) -> dict[str, Division]:
    """Each queue's part, without pauses."""
    tree = tree_of({name: each.parent for name, each in queues.items()})
    return at_once(proportion.divisions_steps(available, queues, tree, requests, {}))


@dataclass(frozen=True, slots=True)
class Demand:
    """A queue to be divided: what it deserves, and by namespace what that requests and weighs."""

    deserved: dict[str, int]
    requests: dict[str, dict[str, int]]
    weights: dict[str, int]


def entitlements(available: dict, demands: list[Demand]) -> list[dict[str, dict[str, int]]]:
    """For each of many queues, what each namespace is entitled to of what its queue deserves: all from scratch."""
    ledger, weights = QueueLedger(Generations(), Changes()), {}
    ledger.available = available
    accounts = [QueueAccount(division=Division(deserved=each.deserved)) for each in demands]
    for at, (account, demand) in enumerate(zip(accounts, demands, strict=True)):
        account.tenants = {f"{at}/{name}": Tenant(request=request) for name, request in demand.requests.items()}
        account.unread = set(account.tenants)
        weights |= {f"{at}/{name}": weight for name, weight in demand.weights.items()}
    shares.entitle(ledger, accounts, weights)
    return [
        {name: account.rows.entitled(at) if account.rows else {} for at, name in enumerate(sorted(demand.requests))}
        for account, demand in zip(accounts, demands, strict=True)
    ]


def deserved(cluster: Cluster, name: str, resource: str = "cpu") -> float:
    """What a queue deserves, cpu in cores."""
    return _cores(cluster.ledger.queues.accounts[name].division.deserved, resource)


def entitled(cluster: Cluster, name: str, namespace: str, resource: str = "cpu") -> float:
    """What a namespace is entitled to in a queue, cpu in cores."""
    return _cores(cluster.ledger.queues.accounts[name].tenants[namespace].entitled, resource)


def admitted(cluster: Cluster, *some: Pod) -> list[str]:
    """Which of the pods, asked for one after the other, are admitted; what is deserved is up to date throughout."""
    return [each.uid for each in some if divided(cluster).admit(each, now=0) is None]


def why(cluster: Cluster, one: Pod) -> str:
    """What refuses a pod; empty if nothing does."""
    refused = cluster.check(one)
    return refused.message if refused else ""


def _cores(amount: dict, resource: str) -> float:
    return amount.get(resource, 0) / (1000 if resource == "cpu" else 1)
