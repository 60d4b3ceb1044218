"""What users do to a cluster, by chance but the same for the same seed: pods, gangs, quotas and nodes come and go."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import httpx

from tests.chaos.devices import DRIVERS, EXTENDED, NIC, of_class
from tests.chaos.history import WAIT
from tests.chaos.jobs import BY_USER
from tests.controlplane.api import path
from tests.controlplane.cluster import Cluster
from tests.controlplane.devices import (
    ADMIN_ACCESS,
    CLASS,
    IMPLICIT,
    TWO_OR_ONE,
    asking,
    claims,
    device_class,
    devices,
    made,
    of_template,
    requests,
)
from tests.controlplane.objects import (
    GPU,
    Object,
    disruption_budget,
    elastic_quota,
    job,
    labelled,
    node,
    pod,
)
from tests.controlplane.pod_groups import members, pod_group

PRIORITIES = {"low": -10, "high": 1000}
ENDS_AFTER = "tests.quotaward.dev/ends-after"
IN_THE_BACKGROUND = {"propagationPolicy": "Background"}
"""Else a Job is only marked, and a garbage collector deletes it."""
CRITICAL = "system-cluster-critical"
_CPU_OF_NODE = 4
_GPUS, _NICS = 2, 1
"""Devices of a node that has some of a class."""
_TEMPLATES = {
    "one": asking(),
    "two": asking(count=2),
    "two-or-one": TWO_OR_ONE,
    "all": asking(allocationMode="All"),
    "nic": asking(NIC),
    "both": {
        "devices": {
            "requests": [asking()["devices"]["requests"][0], {"name": "n", "exactly": {"deviceClassName": NIC}}]
        }
    },
}
_ADMIN = {"admin": asking(adminAccess=True, allocationMode="All")}
_SHARED = "shared"
_SPELLED = (GPU, GPU, f"{IMPLICIT}{CLASS}", f"deviceclass/{CLASS}", f"requests.{GPU}")
"""Names by which quotas bound devices of one class."""
BATCH = "batch"
_TOLERATED = {"tolerations": [{"key": BATCH, "operator": "Exists"}]}
_ON_BATCH_NODES = _TOLERATED | {"nodeSelector": {"use": BATCH}}
_MOST_ON_BATCH_NODES = 40
"""Pods there at a time, also such as have ended or wait."""
_GUARANTEED = {"guarantee": {"resource": {"cpu": "6", "memory": "8Gi", "pods": "20"}}}


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is: ``pods`` about, at a time; ``pace``: changes a second.

    ``batch``: further nodes, for pods that are short or large alone; without such there are no such pods.
    """

    nodes: int
    batch: int
    quotas: int
    queues: int
    pods: int
    pace: float


SMALL = Size(nodes=30, batch=0, quotas=10, queues=3, pods=110, pace=4)
LARGE = Size(nodes=200, batch=6, quotas=30, queues=8, pods=500, pace=5)


class Workload:
    """Changes what there is while this is open; it goes on when the API server is away for a while."""

    def __init__(self, cluster: Cluster, size: Size, seed: int):
        self.cluster = cluster
        self.api = cluster.api
        self.size = size
        self.random = random.Random(seed)
        self.steps = 0
        self._numbers = iter(range(10**9))
        self._governed: list[str] = []
        self._free: list[str] = []
        self._queued: list[str] = []
        self._pods: list[tuple[str, str]] = []
        self._lost: list[str] = []
        self._with_jobs: list[str] = []
        self._admin = ""
        self._jobs: list[tuple[str, str]] = []
        self._on_batch_nodes: deque[tuple[str, str]] = deque()
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(90)
        if self._failure:
            raise AssertionError("the workload has failed") from self._failure

    def _run(self) -> None:
        try:
            while not self._over.wait(1 / self.size.pace):
                self.step()
        except BaseException as failure:  # noqa: BLE001 (raised again in the main thread)
            self._failure = failure

    def prepare(self) -> None:
        """Everything but pods."""
        for name, value in PRIORITIES.items():
            self.cluster.priority(name, value)
        queues = [
            self.cluster.queue(f"queue-{number}", weight=1 + number % 3, **(_GUARANTEED if number % 2 else {}))
            for number in range(self.size.queues)
        ]
        for number in range(self.size.quotas):  # some of them are in a queue as well
            of_queue = queues[number % len(queues)] if number % 5 == 4 else None
            self._governed.append(self.cluster.namespace("team", queue=of_queue))
        self._queued = [self.cluster.namespace("queued", queue=name) for name in queues for _ in range(2)]
        self._free = [self.cluster.namespace("free") for _ in range(2)]
        self._with_jobs = self._governed[: max(2, self.size.quotas // 5)] + self._queued[:2]
        if self.size.batch:
            self._with_jobs.append(self._free[0])
        for name in self._with_jobs:
            self._label(name, "queued")
        for name in DRIVERS:
            extended = {"extendedResourceName": EXTENDED[name]} if name in EXTENDED else {}
            self.api.create(device_class(name, DRIVERS[name], **extended))
        self._admin = self._governed[0]
        self._try(self.api.patch, "namespaces", self._admin, {"metadata": {"labels": {ADMIN_ACCESS: "true"}}})
        for name in self._governed + self._queued + self._free:
            given = _TEMPLATES | (_ADMIN if name == self._admin else {})
            self.api.create_all(of_template(each, name, spec) for each, spec in given.items())
            self.api.create(made("ResourceClaim", _SHARED, name, spec=asking(count=2)))
        for name in self._governed:
            self.api.create(self._quota(name))
            self.api.create(disruption_budget("web", name, 2, app="web"))
        self.api.create_all([each for name in self._nodes() for each in self._with_devices(name)])
        self.api.create_all([self._pod() for _ in range(self.size.pods // 2)])
        for _ in range(2 * self.size.batch):
            self._short_pod_comes()
        for _ in range(self.size.batch):
            self._large_job_comes()

    def step(self) -> None:
        """One change."""
        self.steps += 1
        crowded = len(self._pods) > self.size.pods * self.random.uniform(0.7, 1.3)
        change = self._remove if crowded and self.random.random() < 0.8 else self._some_change()
        change()

    def settle(self) -> None:
        """All nodes are back, and there is room: a part of the pods goes."""
        while self._lost:
            self._node_returns()
        self._go_from_batch_nodes(0)
        for _ in range(len(self._pods) * 2 // 5):
            self._remove()
        for _ in range(len(self._jobs) * 2 // 5):
            self._job_goes()

    def _some_change(self) -> Callable[[], None]:
        changes = {
            self._come: 50,
            self._remove: 22,
            self._gang_comes: 6,
            self._quota_changes: 12,
            self._quota_goes_or_comes: 3,
            self._node_is_lost: 3,
            self._node_returns: 4,
            self._job_comes: 10,
            self._job_goes: 4,
            self._job_is_suspended: 3,
            self._job_is_resumed: 2,
            self._job_changes_its_size: 2,
            self._label_goes_or_comes: 1,
            self._shared_claim_goes_or_comes: 3,
        }
        if self.size.batch:
            changes |= {self._short_pod_comes: 34, self._large_job_comes: 8, self._large_whole_job_comes: 8}
        return self.random.choices(list(changes), list(changes.values()))[0]

    def _come(self) -> None:
        self._try(self.api.create, self._pod())

    def _pod(self) -> Object:
        chance = self.random
        namespace = chance.choices([chance.choice(self._governed), chance.choice(self._free)], [8, 1])[0]
        if chance.random() < 0.25:
            namespace = chance.choice(self._queued)
        spec: dict[str, Any] = {"cpu": chance.choice(["500m", 1, 1, 2, 3, 4]), "memory": chance.choice([None, "1Gi"])}
        kind = chance.random()
        priority = chance.choice([None, None, None, "low", "high"])
        if kind < 0.03 and namespace in self._governed:
            priority = CRITICAL
        elif kind < 0.06:
            spec |= {"cpu": None, "memory": None}
        if priority:
            spec["priorityClassName"] = priority
        if chance.random() < 0.1:
            spec["nodeSelector"] = {"zone": chance.choice("ab")}
        item = pod(f"pod-{next(self._numbers)}", namespace, **spec)
        if chance.random() < 0.4:
            self._takes_devices(item["spec"], namespace)
        if 0.06 <= kind < 0.12 and namespace in self._governed:
            item["metadata"]["annotations"] = {"quotaward.dev/preemptible": "false"}
        elif 0.12 <= kind < 0.16:
            item["spec"]["tolerations"] = [{"operator": "Exists"}]
            owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
            item["metadata"]["ownerReferences"] = [owner]
        elif 0.16 <= kind < 0.4:
            labelled(item, app="web")
        self._pods.append((namespace, item["metadata"]["name"]))
        return item

    def _takes_devices(self, spec: Object, namespace: str) -> None:
        """In any of the ways, most often by a request or by a claim of its own."""
        templates = [*_TEMPLATES, *(_ADMIN if namespace == self._admin else ())]
        resources = [GPU, f"{IMPLICIT}{CLASS}", of_class(NIC)]
        way = self.random.random()
        if way < 0.35:
            requests(spec, self.random.choice(resources), self.random.choice([1, 1, 2]))
        elif way < 0.75:
            claims(spec, resourceClaimTemplateName=self.random.choice(templates))
        else:
            claims(spec, resourceClaimName=_SHARED)
        if way > 0.9:
            requests(spec, self.random.choice(resources))

    def _shared_claim_goes_or_comes(self) -> None:
        """One that is in use goes once nobody uses it any more."""
        namespace = self.random.choice(self._governed + self._queued)
        if self.random.random() < 0.3:
            self._try(self.api.delete, "resourceclaims", _SHARED, namespace)
        else:
            spec = self.random.choice([asking(), asking(count=2), TWO_OR_ONE, asking(NIC)])
            self._try(self.api.create, made("ResourceClaim", _SHARED, namespace, spec=spec))

    def _gang_comes(self) -> None:
        name, namespace = f"gang-{next(self._numbers)}", self.random.choice(self._governed + self._free + self._queued)
        count = self.random.randint(2, 5)
        self._try(self.api.create, pod_group(name, namespace, self.random.randint(2, count)))
        gpus = self.random.choice([None, None, 1])
        for member in members(name, namespace, count, cpu=self.random.choice([1, 2]), gpus=gpus):
            self._pods.append((namespace, member["metadata"]["name"]))
            self._try(self.api.create, member)

    def _short_pod_comes(self) -> None:
        """It ends in time by a deadline. Some ignore it; of some nobody enforces how long they run."""
        chance, seconds = self.random, self.random.randint(6, 40)
        kind = chance.random()
        cpu, grace = chance.choice(["500m", 1, 1, 2, 2, 3]), chance.choice([0, 0, 1, 3])
        deadline = {"activeDeadlineSeconds": seconds} if kind < 0.9 else {}
        item = self._for_batch_nodes("short", cpu=cpu, terminationGracePeriodSeconds=grace, **deadline)
        if kind > 0.05:
            item["metadata"]["annotations"] = {ENDS_AFTER: f"{chance.randint(seconds // 2, seconds)}s"}
            if kind < 0.15:
                item["metadata"]["annotations"]["quotaward.dev/preemptible"] = "false"
        self._try(self.api.create, item)

    def _large_job_comes(self) -> None:
        """A pod or a gang that starves: it needs whole nodes, or most of them."""
        chance = self.random
        count, seconds, priority = chance.choice([1, 1, 2]), chance.randint(5, 12), chance.choice([None, None, "high"])
        spec = {"cpu": chance.choice([3, _CPU_OF_NODE]), "activeDeadlineSeconds": seconds}
        spec |= {"priorityClassName": priority} if priority else {}
        items = [self._for_batch_nodes("large", **spec)]
        meta = items[0]["metadata"]
        if count > 1:
            self._try(self.api.create, pod_group(meta["name"], meta["namespace"], count))
            items = members(meta["name"], meta["namespace"], count, **_ON_BATCH_NODES, **spec)
            self._on_batch_nodes.extend((meta["namespace"], each["metadata"]["name"]) for each in items)
        for each in items:
            each["metadata"]["annotations"] = {ENDS_AFTER: f"{seconds}s"}
            self._try(self.api.create, each)

    def _large_whole_job_comes(self) -> None:
        """A Job that waits as a whole, and starves as well: most often where no quota refuses it."""
        if len(self._jobs) > self.size.pods // 8:
            return self._job_goes()
        chance, name = self.random, f"large-{next(self._numbers)}"
        namespace, cpu = chance.choice(self._free[:1] * 4 + self._with_jobs[:2]), chance.choice([2, 3, _CPU_OF_NODE])
        item = job(name, namespace, chance.choice([1, 1, 2, 3]), cpu=cpu, backoffLimit=0)
        item["spec"]["activeDeadlineSeconds"] = chance.randint(15, 30)
        item["spec"]["template"]["spec"] |= _ON_BATCH_NODES
        item["spec"]["template"]["metadata"]["annotations"] = {ENDS_AFTER: f"{chance.randint(5, 12)}s"}
        self._jobs.append((namespace, name))
        self._try(self.api.create, item)
        return None

    def _for_batch_nodes(self, prefix: str, **spec: Any) -> Object:
        """A pod for these nodes, most often one without a quota; another goes where there are many."""
        namespace = self.random.choice(self._free * 4 + self._governed[:2] + self._queued[:2])
        item = pod(f"{prefix}-{next(self._numbers)}", namespace, **_ON_BATCH_NODES, **spec)
        self._on_batch_nodes.append((namespace, item["metadata"]["name"]))
        self._go_from_batch_nodes(_MOST_ON_BATCH_NODES)
        return item

    def _go_from_batch_nodes(self, most: int) -> None:
        while len(self._on_batch_nodes) > most:
            namespace, name = self._on_batch_nodes.popleft()
            self._try(self.api.delete, "pods", name, namespace)

    def _job_comes(self) -> None:
        """Some Jobs end by themselves after a while, and the others run on."""
        if len(self._jobs) > self.size.pods // 8:
            return self._job_goes()
        name, namespace = f"job-{next(self._numbers)}", self.random.choice(self._with_jobs)
        pods, cpu = self.random.choice([1, 1, 2, 3, 4]), self.random.choice(["500m", 1, 2])
        item = job(name, namespace, pods, cpu=cpu, backoffLimit=0)
        if self.random.random() < 0.6:
            ends_after = f"{self.random.randint(3, 12)}s"
            item["spec"]["template"]["metadata"]["annotations"] = {ENDS_AFTER: ends_after}
            if self.size.batch and self.random.random() < 0.4:
                item["spec"]["activeDeadlineSeconds"] = self.random.randint(15, 40)
                item["spec"]["template"]["spec"] |= _ON_BATCH_NODES
        if self.random.random() < 0.25:
            claims(item["spec"]["template"]["spec"], resourceClaimTemplateName="one")
        self._jobs.append((namespace, name))
        self._try(self.api.create, item)
        return None

    def _job_goes(self) -> None:
        """And its pods: no garbage collector runs."""
        if self._jobs:
            namespace, name = self._jobs.pop(self.random.randrange(len(self._jobs)))
            self._try(self.api.request, "DELETE", path("jobs", namespace, name), json=IN_THE_BACKGROUND)
            selector = f"batch.kubernetes.io/job-name={name}"
            for item in self._try(self.api.items, "pods", namespace, labelSelector=selector) or ():
                self._try(self.api.delete, "pods", item["metadata"]["name"], namespace)

    def _job_is_suspended(self) -> None:
        self._change_a_job({"metadata": {"annotations": {BY_USER: str(self.steps)}}, "spec": {"suspend": True}})

    def _job_is_resumed(self) -> None:
        """By its user, which is undone where Jobs wait."""
        self._change_a_job({"spec": {"suspend": False}})

    def _job_changes_its_size(self) -> None:
        self._change_a_job({"spec": {"parallelism": self.random.randint(1, 4)}})

    def _change_a_job(self, change: Object) -> None:
        if self._jobs:
            namespace, name = self.random.choice(self._jobs)
            self._try(self.api.patch, "jobs", name, change, namespace)

    def _label_goes_or_comes(self) -> None:
        self._label(self.random.choice(self._with_jobs), self.random.choice([None, "queued", "queued"]))

    def _label(self, namespace: str, value: str | None) -> None:
        self._try(self.api.patch, "namespaces", namespace, {"metadata": {"labels": {WAIT: value}}})

    def _remove(self) -> None:
        if self._pods:
            namespace, name = self._pods.pop(self.random.randrange(len(self._pods)))
            self._try(self.api.delete, "pods", name, namespace)

    def _quota(self, namespace: str) -> Object:
        most = self.random.randint(4, 30)
        bounds = {"min": {"cpu": self.random.randint(0, most)}, "max": {"cpu": most}}
        if self.random.random() < 0.3:
            bounds["min"]["memory"] = f"{self.random.randint(1, 12)}Gi"
        if self.random.random() < 0.7:
            name, most = self.random.choice(_SPELLED), self.random.randint(1, 6)
            bounds["max"][name] = most
            if self.random.random() < 0.7:
                bounds["min"][name] = self.random.randint(0, most)
        if self.random.random() < 0.3:
            bounds["max"][f"{NIC}.deviceclass.resource.k8s.io/devices"] = self.random.randint(0, 3)
        return elastic_quota(namespace, **bounds)

    def _quota_changes(self) -> None:
        self._try(self.api.apply, self._quota(self.random.choice(self._governed)))

    def _quota_goes_or_comes(self) -> None:
        namespace = self.random.choice(self._governed)
        if self.random.random() < 0.4:
            self._try(self.api.delete, "elasticquotas", "quota", namespace)
        else:
            self._try(self.api.apply, self._quota(namespace))

    def _nodes(self) -> list[str]:
        batch = [f"{BATCH}-{number}" for number in range(self.size.batch)]
        return [f"node-{number}" for number in range(self.size.nodes)] + batch

    def _node(self, name: str) -> Object:
        kind, _, number = name.rpartition("-")
        labels = {"kubernetes.io/hostname": name, "zone": "ab"[int(number) % 2], "use": kind}
        taints = [{"key": BATCH, "effect": "NoSchedule"}] if kind == BATCH else []
        return node(name, cpu=_CPU_OF_NODE, memory="8Gi", pods=30, labels=labels, taints=taints)

    def _with_devices(self, name: str) -> list[Object]:
        """A node, and the slices of its devices."""
        kind, _, number = name.rpartition("-")
        gpus, nics = (
            devices(count, name, driver) for count, driver in zip((_GPUS, _NICS), DRIVERS.values(), strict=True)
        )
        if kind == BATCH:
            return [self._node(name)]
        there = zip((gpus, nics), (3, 5), strict=True)
        return [self._node(name), *(each for each, every in there if int(number) % every == 0)]

    def _node_is_lost(self) -> None:
        """As when a machine dies: the node goes with its devices, and the pods that were on it."""
        name = self.random.choice(self._nodes())
        if name in self._lost or len(self._lost) > self.size.nodes // 10:
            return
        self._lost.append(name)
        _, *slices = self._with_devices(name)
        self._try(self.api.delete, "nodes", name)
        for each in slices:
            self._try(self.api.delete, "resourceslices", each["metadata"]["name"])
        for item in self._try(self.api.items, "pods", fieldSelector=f"spec.nodeName={name}") or ():
            self._try(self.api.delete, "pods", item["metadata"]["name"], item["metadata"]["namespace"])

    def _node_returns(self) -> None:
        for each in self._with_devices(self._lost.pop(0)) if self._lost else ():
            self._try(self.api.create, each)

    def _try(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Does it, as soon as the API server is there; what it refuses is left undone."""
        until = time.monotonic() + 60
        while True:
            try:
                return call(*arguments, **named)
            except httpx.HTTPStatusError as error:
                if error.response.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                    return None
            except httpx.TransportError:
                pass
            if time.monotonic() > until:
                raise AssertionError("the API server has been away for a minute")
            time.sleep(0.1)
