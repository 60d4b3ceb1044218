"""Who waits although nothing keeps it from running: told from the objects of a cluster that has come to rest.

Only what is certain is told. Members of gangs are left out, and of queues all but those whose pods together want no
more than what is guaranteed to them.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from tests.chaos import devices
from tests.chaos.history import (
    PREEMPTIBLE,
    WAIT,
    Amounts,
    bounds_of,
    group_of,
    is_finished,
    labels_of,
    request_of,
    total,
)
from tests.chaos.jobs import MARK, goes_on
from tests.controlplane.cluster import QUEUE
from tests.controlplane.objects import Object, condition, is_bound, number

Objects = Mapping[str, list[Object]]
_WITHOUT_LIMIT = Decimal("inf")


def stuck(objects: Objects) -> list[str]:
    """A sentence for each pod that its quota and queue allow, that fits on a node, and that is on none."""
    there = _Cluster(objects)
    found = []
    for pod in [*objects["pods"], *there.jobs]:
        known = waits(pod) and not group_of(pod) and there.knows_needs_of(pod)
        if known and there.is_within_quota(pod) and there.is_within_queue(pod):
            node = next(there.fitting(pod), None)
            if node is not None:
                meta, said = pod["metadata"], condition(pod, "PodScheduled").get("message", "")
                found.append(f"{meta['namespace']}/{meta['name']} waits although it may run on {node}: {said!r}")
    return found + [f"Job {name} is suspended, and Jobs of its namespace do not wait any more" for name in there.let_go]


def waits(pod: Object) -> bool:
    gone = is_finished(pod) or "deletionTimestamp" in pod["metadata"]
    return not (gone or is_bound(pod) or pod["spec"].get("schedulingGates"))


class _Cluster:
    """What is taken, be it by pods on nodes or by those for which room is kept, by namespace and by node."""

    def __init__(self, objects: Objects):
        self.nodes = objects["nodes"]
        in_force = [each["spec"] for each in objects["reservations"] if not each.get("status", {}).get("failedAt")]
        self._reserved = [(spec["nodeName"], spec["pod"]["uid"]) for spec in in_force if spec["reason"] == "Starving"]
        self._held = {spec["pod"]["uid"]: spec["nodeName"] for spec in in_force if spec["reason"] == "Reclaim"}
        quotas = sorted(objects["elasticquotas"], key=lambda q: (q["metadata"]["creationTimestamp"], _name(q)))
        self.quotas = {quota["metadata"]["namespace"]: bounds_of(quota) for quota in reversed(quotas)}
        self.queues = {_name(queue): queue for queue in objects["queues"]}
        self._queue_of = {
            _name(each): each["metadata"].get("annotations", {}).get(QUEUE, "default") for each in objects["namespaces"]
        }
        self.used: dict[str, Amounts] = {}
        self.on_node: dict[str, Amounts] = {}
        self.asked: dict[str, Amounts] = {}
        self._waiting: set[str] = set()
        self.jobs: list[Object] = []
        """Pods in place of the Jobs that wait as a whole, if they have one pod each."""
        self.let_go: list[str] = []
        """Jobs that are suspended where none is to wait."""
        self._sizes: dict[str, Amounts] = {
            _name(node): {name: number(each) for name, each in node["status"]["allocatable"].items()}
            for node in self.nodes
        }
        for node, size in map(devices.on_node, objects.get("resourceslices", ())):
            self._sizes[node] = total((self._sizes.get(node, {}), size))
        self._claims = {
            (each["metadata"]["namespace"], _name(each)): each for each in objects.get("resourceclaims", ())
        }
        self._by_claims = {
            uid for each in self._claims.values() if devices.is_of_scheduler(each) for uid in devices.users(each)
        }
        ended = {each["metadata"]["uid"] for each in objects["pods"] if is_finished(each)}
        there = {each["metadata"]["uid"] for each in objects["pods"]} - ended
        for each in self._claims.values():
            if there.intersection(devices.users(each)):
                self._take(each["metadata"]["namespace"], devices.node_of(each), devices.has(each))
        for pod in objects["pods"]:
            self._count(pod)
        queued = {_name(each) for each in objects["namespaces"] if labels_of(each).get(WAIT) == "queued"}
        for item in objects.get("jobs", ()):
            if item["spec"].get("suspend") and labels_of(item).get(MARK) == "true" and goes_on(item):
                self._count_job(item, is_queued=item["metadata"]["namespace"] in queued)

    def knows_needs_of(self, pod: Object) -> bool:
        """Whether a pod takes so many devices and no other, and has none of them yet."""
        claims = self._claims_of(pod)
        shared = any("resourceClaimName" in each for each in pod["spec"].get("resourceClaims", ()))
        return not shared and all(claim is not None and devices.asks(claim) is not None for claim in claims)

    def is_within_quota(self, pod: Object) -> bool:
        namespace, request = pod["metadata"]["namespace"], self._not_counted_yet(pod)
        if namespace not in self.quotas:
            return True
        own, bounds = self.used.get(namespace, {}), self.quotas[namespace]
        least = total(each.min for each in self.quotas.values())
        pooled = total(used for name, used in self.used.items() if name in self.quotas)
        may_borrow = pod["metadata"].get("annotations", {}).get(PREEMPTIBLE) != "false"
        for resource, asked in request.items():
            if own.get(resource, 0) + asked > bounds.max.get(resource, _WITHOUT_LIMIT):
                return False
            within_min = own.get(resource, 0) + asked <= bounds.min.get(resource, 0)
            taken = pooled.get(resource, 0) + self._claimed_by_others(namespace, resource) + asked
            left_over = may_borrow and taken <= least.get(resource, 0)
            if resource in least and not within_min and not left_over:
                return False
        return True

    def _claimed_by_others(self, namespace: str, resource: str) -> Decimal:
        """What is left of the min of other namespaces in which pods wait, at most: nobody may borrow that."""
        rest = (
            self.quotas[each].min.get(resource, Decimal(0)) - self.used.get(each, {}).get(resource, Decimal(0))
            for each in self._waiting
            if each != namespace and each in self.quotas
        )
        return sum((each for each in rest if each > 0), Decimal(0))

    def is_within_queue(self, pod: Object) -> bool:
        """Whether all that the pod's queue asks for is guaranteed to it, or the pod is in none."""
        name = self._queue_of.get(pod["metadata"]["namespace"], "default")
        if name not in self.queues:
            return True
        guarantee = self.queues[name]["spec"].get("guarantee", {}).get("resource", {})
        return all(value <= number(str(guarantee.get(resource, "0"))) for resource, value in self.asked[name].items())

    def fitting(self, pod: Object) -> Iterator[str]:
        """The nodes that have room for a pod, and are not kept for others."""
        wanted = pod["spec"].get("nodeSelector", {}).items()
        reserved = {node for node, uid in self._reserved if uid != pod["metadata"]["uid"]}
        tolerated = {each["key"] for each in pod["spec"].get("tolerations", ()) if "key" in each}
        for node in self.nodes:
            spec, name = node.get("spec", {}), _name(node)
            size = self._sizes[name]
            tainted = not {each["key"] for each in spec.get("taints", ())} <= tolerated
            kept = name in reserved or spec.get("unschedulable") or tainted
            if kept or not wanted <= node["metadata"].get("labels", {}).items():
                continue
            here, asked = self.on_node.get(name, {}), self._not_counted_yet(pod, name)
            if all(here.get(each, 0) + value <= size.get(each, 0) for each, value in asked.items()):
                yield name

    def _count(self, pod: Object) -> None:
        request, namespace = self._request_of(pod), pod["metadata"]["namespace"]
        if node := self._node_of(pod):
            self._take(namespace, node, request)
        if waits(pod):
            self._waiting.add(namespace)
        if is_bound(pod) or waits(pod):
            queue = self._queue_of.get(namespace, "default")
            self.asked[queue] = total((self.asked.get(queue, {}), request))

    def _take(self, namespace: str, node: str, amounts: Amounts) -> None:
        self.used[namespace] = total((self.used.get(namespace, {}), amounts))
        self.on_node[node] = total((self.on_node.get(node, {}), amounts))

    def _claims_of(self, pod: Object) -> list[Object | None]:
        """The claims that were made for a pod, None for one that is not there yet."""
        meta, made = pod["metadata"], pod.get("status", {}).get("resourceClaimStatuses", ())
        found = [self._claims.get((meta["namespace"], each.get("resourceClaimName", ""))) for each in made]
        return found + [None] * (len(pod["spec"].get("resourceClaims", ())) - len(found))

    def _request_of(self, pod: Object) -> Amounts:
        """What a pod takes beside devices that claims have."""
        by_claim = pod["metadata"].get("uid") in self._by_claims
        asked = (devices.asks(claim) or {} for claim in self._claims_of(pod) if claim is not None)
        return total((devices.without(request_of(pod), devices.DEVICES if by_claim else ()), *asked))

    def _count_job(self, job: Object, *, is_queued: bool) -> None:
        namespace, number = job["metadata"]["namespace"], job["spec"]["parallelism"]
        pods = [{**job["spec"]["template"], "metadata": job["metadata"], "status": {}}] * number
        for pod in pods:
            self._count(pod)
        if not is_queued and pods:
            self.let_go.append(f"{namespace}/{_name(job)}")
        if is_queued and number == 1:
            self.jobs += pods

    def _node_of(self, pod: Object) -> str:
        """The node that a pod is on, or where room is kept for it; empty if there is none."""
        if not waits(pod):
            return pod["spec"]["nodeName"] if is_bound(pod) else ""
        return pod.get("status", {}).get("nominatedNodeName") or self._held.get(pod["metadata"]["uid"], "")

    def _not_counted_yet(self, pod: Object, node: str = "") -> Amounts:
        """What a pod would take besides what is kept for it anyway (on the node, or on any)."""
        kept = self._node_of(pod)
        counted, request = kept == node if node else bool(kept), self._request_of(pod)
        return dict.fromkeys(request, Decimal(0)) if counted else request


def _name(item: Object) -> str:
    return item["metadata"]["name"]
