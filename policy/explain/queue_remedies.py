"""Remedies for a pod that is refused by its queue, or by its namespace's share of it.

Seeds: Queue API, queue guarantee, namespace fair share. The weight that is needed is found by trial, as it depends on
the demand of all others.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from policy.cluster.cluster import Cluster
from policy.explain.remedy import (
    Need,
    ObjectChange,
    Remedies,
    Remedy,
    corrected,
    end,
    listed,
    pods_to_end,
    raised,
)
from policy.objects.pod import Pod
from policy.objects.quantity import render
from policy.objects.queue import ROOT, Queue
from policy.objects.resources import Resources
from policy.quota import queue_rules
from policy.quota.branches import way_up
from policy.quota.closed_queues import near, shortened
from policy.stepwise import Steps

HEAVIEST = 2**12
"""The largest factor by which the weight of a queue or a namespace may have to be raised."""
WEIGHT = "volcano.sh/namespace.weight"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
"""The annotation of a namespace that names the queue of its pods."""
OPENED = "open"
"""The sort of remedy that makes a queue admit; the queue may have to be created."""


def for_capability(need: Need) -> Iterator[Remedy]:
    """Suggests higher capabilities of the queue in the pod's way and those above it, or the end of pods in it.

    A queue without a capability of its own is bounded by those above it, so each that is too low is raised.
    """
    cluster, asked = need.cluster, need.asked
    ledger = cluster.ledger.queues
    node = queue_rules.in_the_way(ledger, ledger.accounts[cluster.queue_of(need.pod)], asked)
    said, changes = list[str](), list[ObjectChange]()
    for each in (*way_up(node), ledger.root):
        bounds, name = queue_rules.capability_of(each), queue_rules.name_of(each)
        low = {r: each.taken.get(r, 0) + asked[r] for r in need.resources if r in bounds}
        low = {r: amount for r, amount in low.items() if bounds[r] < amount}
        said += [
            f"of {r} in Queue {name} from {render(r, bounds[r])} to at least {render(r, amount)}"
            for r, amount in low.items()
        ]
        if low:
            fields = raised(cluster, ("spec", "capability"), low, _written(cluster, name)[0])
            changes.append(ObjectChange("Queue", "", name, fields))
    if changes:
        yield Remedy("capability", f"raise capability {listed(said)}", tuple(changes))
    needed = {r: node.taken.get(r, 0) + asked[r] for r in need.resources}
    most, inside = node.division.real_capability, {each for each, _ in queue_rules.below(ledger, node)}
    pods = pods_to_end(cluster, lambda each: cluster.queue_of(each) in inside)
    yield from end(
        pods, {r: amount - most.get(r, 0) for r, amount in needed.items()}, f"of Queue {queue_rules.name_of(node)}"
    )


def for_deserved(need: Need) -> Remedies:
    """Suggests a higher weight, a guarantee, or the end of pods of other queues, first of those that borrow.

    All of it is about the queue in the pod's way, which may be one above its own, and about that queue's siblings. Only
    the weight is that of the nearest queue from there up that is enough: its part may be what is too small.
    """
    cluster, pod, asked = need.cluster, need.pod, need.asked
    ledger = cluster.ledger.queues
    node = queue_rules.in_the_way(ledger, ledger.accounts[cluster.queue_of(pod)], asked)
    name = queue_rules.name_of(node)
    parent = node.parent or ledger.root
    for each in [queue_rules.name_of(above) for above in way_up(node)]:
        queue = cluster.queues[each]
        if weight := (yield from _least_weight_steps(cluster, pod, queue)):
            text = f"raise the weight of Queue {each} from {queue.weight} to at least {weight}"
            yield _changed("weight", each, text, ((("spec", "weight"), weight),))
            break
    needed = {r: node.taken.get(r, 0) + asked[r] for r in need.resources}
    text = f"guarantee Queue {name} {listed([f'{render(r, amount)} of {r}' for r, amount in needed.items()])}"
    path = ("spec", "guarantee", "resource")
    yield _changed("guarantee", name, text, raised(cluster, path, needed, _written(cluster, name)[1]))
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
    """Suggests naming, creating, opening or correcting the queue, or the one above it that is closed."""
    cluster, name = need.cluster, need.cluster.queue_of(need.pod)
    if name not in cluster.queues:
        yield from _named_rightly(cluster, need.pod, name)
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


def _named_rightly(cluster: Cluster, pod: Pod, missing: str) -> Iterator[Remedy]:
    """Suggests that whatever names the missing queue for the pod names the existing one that is most like it.

    Nothing for a Job, whose queue is written in its template.
    """
    group = cluster.membership.groups.get((pod.namespace, pod.group))
    for meant in near(missing, sorted(cluster.queues))[:1]:
        field, fields = f"the annotation {QUEUE_NAME}", ((("metadata", "annotations", QUEUE_NAME), meant),)
        if pod.queue == missing:
            if pod.stands_for is not None:
                return
            title, change = pod.object, ObjectChange("Pod", pod.namespace, pod.name, fields)
        elif group is not None and group.queue == missing:
            kind, _, name = group.name.partition("/")
            title, field = f"PodGroup {pod.namespace}/{name}", "spec.queue"
            change = ObjectChange(kind, pod.namespace, name, ((("spec", "queue"), meant),))
        else:
            title, change = f"Namespace {pod.namespace}", ObjectChange("Namespace", "", pod.namespace, fields)
        text = f"set {field} of {title} to {meant}, if that is the queue that is meant"
        yield Remedy("queue-name", text, (change,))


def placed(need: Need) -> Iterator[Remedy]:
    """Suggests creating the queue that is missing above the pod's, and to let the pod's stand right below the root."""
    cluster, own = need.cluster, need.cluster.queue_of(need.pod)
    name, seen = own, set[str]()
    while name in cluster.queues and name not in seen:
        seen.add(name)
        name = cluster.queues[name].parent
    if name not in cluster.queues and name != ROOT:
        yield _changed(OPENED, name, f"create Queue {name}", ((("spec", "weight"), 1),))
    text = f"change spec.parent of Queue {own} from {shortened(cluster.queues[own].parent)} to {ROOT}"
    yield _changed("parent", own, text, ((("spec", "parent"), ROOT),))


def _written(cluster: Cluster, name: str) -> tuple[Resources, Resources]:
    """Returns capability and guarantee of a queue by the names of resources that the object has."""
    queue = cluster.queues.get(name) or Queue(name)
    return queue.written or (queue.capability, queue.guarantee)


def _changed(sort: str, queue: str, text: str, fields: tuple[tuple[tuple[str, ...], object], ...]) -> Remedy:
    return Remedy(sort, text, (ObjectChange("Queue", "", queue, fields),))


def _least_weight_steps(cluster: Cluster, pod: Pod, queue: Queue) -> Steps[int]:
    """Returns the least weight of a queue above its own with which a pod is admitted; 0 if none is enough."""

    def admits_steps(weight: int) -> Steps[bool]:
        cluster.upsert_queue(replace(queue, weight=weight))
        return (yield from _admits_steps(cluster, pod))

    weight = yield from _least_steps(queue.weight, admits_steps)
    cluster.upsert_queue(queue)
    yield from cluster.divide_steps()
    return weight


def _admits_steps(cluster: Cluster, pod: Pod) -> Steps[bool]:
    yield from cluster.divide_steps()
    return cluster.check(pod) is None


def _least_steps(before: int, admits_steps: Callable[[int], Steps[bool]]) -> Steps[int]:
    """Returns the least weight above this one with which a pod is admitted; 0 if none is enough."""
    most = before * HEAVIEST
    if not (yield from admits_steps(most)):
        return 0
    low, high = before, before + 1
    while high < most and not (yield from admits_steps(high)):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if (yield from admits_steps(middle)) else (middle, high)
    return high
