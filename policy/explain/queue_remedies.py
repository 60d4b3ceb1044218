"""Remedies for a pod that is refused by its queue, or by its namespace's share of it.

Seeds: Queue API, queue guarantee, namespace fair share. The weight that is needed is found by trial, as it depends on
the demand of all others.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from policy.cluster.cluster import Cluster
from policy.explain.remedy import Need, ObjectChange, Remedies, Remedy, corrected, end, listed, pods_to_end, raised
from policy.objects.pod import Pod
from policy.objects.quantity import render
from policy.quota import queue_rules
from policy.stepwise import Steps

HEAVIEST = 2**12
"""The largest factor by which the weight of a queue or a namespace may have to be raised."""
WEIGHT = "volcano.sh/namespace.weight"
OPENED = "open"
"""The sort of remedy that makes a queue admit; the queue may have to be created."""


def for_capability(need: Need) -> Iterator[Remedy]:
    """Suggests a higher capability of the queue in the pod's way, or the end of pods in it or below it."""
    cluster, asked = need.cluster, need.asked
    ledger = cluster.ledger.queues
    node = queue_rules.in_the_way(ledger, ledger.accounts[cluster.queue_of(need.pod)], asked)
    name, named = queue_rules.name_of(node), queue_rules.capability_of(node)
    needed = {r: node.taken.get(r, 0) + asked[r] for r in need.resources}
    low = {r: amount for r, amount in needed.items() if named.get(r, amount) < amount}
    if low:
        said = [
            f"of {r} in Queue {name} from {render(r, named[r])} to at least {render(r, amount)}"
            for r, amount in low.items()
        ]
        yield _changed("capability", name, f"raise capability {listed(said)}", raised(("spec", "capability"), low))
    most, inside = node.division.real_capability, {each for each, _ in queue_rules.below(ledger, node)}
    pods = pods_to_end(cluster, lambda each: cluster.queue_of(each) in inside)
    yield from end(pods, {r: amount - most.get(r, 0) for r, amount in needed.items()}, f"of Queue {name}")


def for_deserved(need: Need) -> Remedies:
    """Suggests a higher weight, a guarantee, or the end of pods of other queues, first of those that borrow.

    All of it is about the queue in the pod's way, which may be one above its own, and about that queue's siblings.
    """
    cluster, pod, asked = need.cluster, need.pod, need.asked
    ledger = cluster.ledger.queues
    node = queue_rules.in_the_way(ledger, ledger.accounts[cluster.queue_of(pod)], asked)
    name = queue_rules.name_of(node)
    queue, parent = cluster.queues[name], node.parent or ledger.root

    def admits_steps(weight: int) -> Steps[bool]:
        cluster.upsert_queue(replace(queue, weight=weight))
        return (yield from _admits_steps(cluster, pod))

    weight = yield from _least_steps(queue.weight, admits_steps)
    cluster.upsert_queue(queue)
    yield from cluster.divide_steps()
    if weight:
        text = f"raise the weight of Queue {name} from {queue.weight} to at least {weight}"
        yield _changed("weight", name, text, ((("spec", "weight"), weight),))
    needed = {r: node.taken.get(r, 0) + asked[r] for r in need.resources}
    text = f"guarantee Queue {name} {listed([f'{render(r, amount)} of {r}' for r, amount in needed.items()])}"
    yield _changed("guarantee", name, text, raised(("spec", "guarantee", "resource"), needed))
    lacking = {
        r: parent.taken.get(r, 0)
        + asked[r]
        + queue_rules.claims_of_others(ledger, node, r)
        - queue_rules.room(ledger, parent, r)
        for r in need.resources
    }
    others = dict(queue_rules.below(ledger, parent))
    for own, _ in list(queue_rules.below(ledger, node)):
        others.pop(own, None)
    over = {other for other, each in others.items() if any(queue_rules.is_over(each, r) for r in lacking)}
    pods = pods_to_end(cluster, lambda each: cluster.queue_of(each) in others)
    pods.sort(key=lambda each: cluster.queue_of(each) not in over)
    yield from end(pods, lacking, "of other queues")


def for_share(need: Need) -> Remedies:
    """Suggests a higher weight of the namespace, or the end of pods of the queue, first of other namespaces."""
    cluster, pod, asked = need.cluster, need.pod, need.asked
    weights, namespace = cluster.membership.weights, pod.namespace
    own = {name: weight for (where, name), weight in weights.items() if where == namespace}
    before, quota = max(own.values(), default=1), max(sorted(own), key=lambda name: own[name], default="weight")

    def admits_steps(weight: int) -> Steps[bool]:
        cluster.upsert_weight(namespace, quota, weight)
        return (yield from _admits_steps(cluster, pod))

    weight = yield from _least_steps(before, admits_steps)
    cluster.upsert_weight(namespace, quota, own.get(quota))
    yield from cluster.divide_steps()
    if weight:
        text = f"raise the weight of Namespace {namespace} from {before} to at least {weight}"
        fields = ((("spec", "hard", WEIGHT), str(weight)),)
        yield Remedy("weight", text, (ObjectChange("ResourceQuota", namespace, quota, fields),))
    ledger, name = cluster.ledger.queues, cluster.queue_of(pod)
    account = ledger.accounts[name]
    lacking = {
        r: account.taken.get(r, 0) + asked[r] + account.tenant_claims.get(r, 0) - queue_rules.room(ledger, account, r)
        for r in need.resources
    }
    pods = pods_to_end(cluster, lambda each: cluster.queue_of(each) == name)
    pods.sort(key=lambda each: each.namespace == namespace)
    yield from end(pods, lacking, f"of Queue {name}")


def opened(need: Need) -> Iterator[Remedy]:
    """Suggests creating, opening or correcting the queue, or the one above it that is closed."""
    cluster, name = need.cluster, need.cluster.queue_of(need.pod)
    if name not in cluster.queues:
        yield _changed(OPENED, name, f"create Queue {name}", ((("spec", "weight"), 1),))
        return
    shut = queue_rules.closed_on_the_way(cluster.ledger.queues, name)
    if shut is None:
        return
    if shut.readable:
        opening = ((("status", "state"), "Open"),)
        yield _changed(OPENED, shut.name, f"open Queue {shut.name}: it is {shut.state}", opening)
    else:
        text = f"correct Queue {shut.name}: {'; '.join(shut.errors)}"
        yield _changed(OPENED, shut.name, text, corrected(shut.errors))


def _changed(sort: str, queue: str, text: str, fields: tuple[tuple[tuple[str, ...], object], ...]) -> Remedy:
    return Remedy(sort, text, (ObjectChange("Queue", "", queue, fields),))


def _admits_steps(cluster: Cluster, pod: Pod) -> Steps[bool]:
    yield from cluster.divide_steps()
    return cluster.check(pod) is None


def _least_steps(before: int, admits_steps: Callable[[int], Steps[bool]]) -> Steps[int]:
    """Returns the least weight above this one with which a pod is admitted; 0 if none is enough."""
    low, high = before, before + 1
    while not (yield from admits_steps(high)):
        if high > before * HEAVIEST:
            return 0
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if (yield from admits_steps(middle)) else (middle, high)
    return high
