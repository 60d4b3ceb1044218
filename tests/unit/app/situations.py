"""Reasons for which pods wait, each as the objects that make it so: the pod is always ``b/p``."""

from datetime import UTC, datetime, timedelta

from app.store.budgets import BUDGETS
from app.store.pod_groups import POD_GROUPS
from app.store.reservations import RESERVATIONS
from tests.unit.app.given import Json, made, namespace, node, pod, queue, quota, refused

NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
QUEUE = "scheduling.volcano.sh/queue-name"

TOLD = {
    "max": ("elastic-quota-max", "nobody-to-evict", "used 2, max 2", "as b/r-1 would"),
    "borrowing": ("elastic-quota-borrowing", "nobody-to-evict", "poolUsed 2, poolMin 2", "raise min of cpu in"),
    "capability": (
        "queue-capability",
        "nobody-to-evict",
        "allocated 2, realCapability 2",
        "raise capability of cpu in",
    ),
    "parent": ("queue-invalid", "to-be-tried", "there is no Queue nobody", "create Queue nobody"),
    "deserved": ("queue-deserved", "nobody-to-evict", "allocated 4, deserved 4", "raise the weight of Queue b from 1"),
    "fair-share": ("namespace-fair-share", "nobody-to-evict", "entitled 3", "raise the weight of Namespace b from 1"),
    "run-time": (
        "run-time-exceeded",
        "run-time-limit",
        "it says 3h, and Queue b allows 1h",
        "raise quotaward.dev/max-run",
    ),
    "gang": ("gang-minimum", "gang-incomplete", "0 are ready, 2 wait", "create 1 more member of PodGroup b/g"),
    "reserved": ("node-reserved", "nodes-reserved", "are reserved for a/big", "delete a/big"),
    "victims": ("", "victims-leaving", "room is being made on node n1", "wait, nothing has to be changed"),
    "budget": ("", "budget", "does not let go now: a/kept-0", "let PodDisruptionBudget a/pdb allow the disruption"),
    "tainted": (
        "",
        "nodes-tainted",
        "it does not tolerate the taints of nodes with room for it (n1, n2): maintenance",
        "remove the taint maintenance from node n2, or add a toleration to the pod",
    ),
    "undecidable": ("", "undecidable", "a volume that may be bound to nodes", "wait until a/r-1 on node n1 has ended"),
}
"""By situation: the rule, the step that comes next, what is said of the cause, and of a remedy that works."""


def situations() -> dict[str, list[Json]]:
    """The objects of each, by name."""
    return {
        "max": [node("n1", **cpus(9)), quota("b", min={"cpu": 2}, max={"cpu": 2}), *running("b", 2), waiting("max")],
        "borrowing": [
            node("n1", **cpus(9)),
            quota("a", min={"cpu": 1}),
            quota("b", min={"cpu": 1}),
            *running("a", 1),
            *running("b", 1),
            waiting("ElasticQuota borrowing exhausted: cpu"),
        ],
        "capability": [
            *two_queues(9, capability={"cpu": 2}),
            *running("b", 2),
            waiting("Queue capability exceeded: cpu"),
        ],
        "parent": [*two_queues(9, parent="nobody"), waiting("Queue is invalid")],
        "deserved": [
            *two_queues(8),
            *running("b", 4),
            *running("a", 2),
            *(refused(pod(f"w{number}", "a", {"cpu": 2})) for number in range(2)),
            waiting("Queue deserved exceeded: cpu"),
        ],
        "fair-share": [
            node("n1", **cpus(6)),
            queue("q"),
            namespace("a", **{QUEUE: "q"}),
            namespace("b", **{QUEUE: "q"}),
            *running("b", 3),
            *running("a", 1),
            *(refused(pod(f"w{number}", "a", {"cpu": 2})) for number in range(2)),
            waiting("Namespace fair share exceeded: cpu"),
        ],
        "run-time": [
            node("n1", **cpus(9)),
            timed(queue("b"), "max-run-time", "1h"),
            namespace("b", **{QUEUE: "b"}),
            timed(waiting("Run time exceeds the limit"), "run-time", "3h"),
        ],
        "gang": [
            node("n1", **cpus(9)),
            group("b", 3),
            refused(member("p"), "Gang minimum cannot be placed yet"),
            member("mate"),
        ],
        "reserved": [
            node("n1", **cpus(3)),
            *running("a", 1),
            refused(pod("big", "a", {"cpu": 3}, created(3)), NO_ROOM),
            reservation("starving-a.big", "Starving", "a/big", job="pods/big"),
            refused(pod("p", "b"), "0/1 nodes are available: 1 node(s) resource was(were) reserved."),
        ],
        "victims": [
            *borrowed(),
            running("a", 1, "leaving", deletionTimestamp="2099-01-01T00:00:00Z")[0],
            reservation("reclaim-b.p", "Reclaim", "b/p", "a/leaving-0"),
            waiting(NO_ROOM),
        ],
        "budget": [
            *borrowed(labels={"app": "x"}),
            running("a", 1, "kept", labels={"app": "x"})[0],
            budget("a", {"app": "x"}),
            reservation("reclaim-b.p", "Reclaim", "b/p", "a/kept-0"),
            waiting(NO_ROOM),
        ],
        "tainted": [
            tainted(node("n1", **cpus(9)), "node-role.kubernetes.io/control-plane"),
            tainted(node("n2", **cpus(9)), "maintenance"),
            quota("b", min={"cpu": 1}),
            waiting("0/2 nodes are available: 2 node(s) had untolerated taint(s)."),
        ],
        "undecidable": [
            *borrowed(),
            *running("a", 1, "over"),
            refused(pod("p", "b", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]), NO_ROOM),
        ],
    }


def waiting(message: str) -> Json:
    return refused(pod("p", "b"), message)


def tainted(item: Json, *keys: str) -> Json:
    taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
    return item | {"spec": {"taints": taints}}


def timed(item: Json, key: str, time: str) -> Json:
    item["metadata"].setdefault("annotations", {})[f"quotaward.dev/{key}"] = time
    return item


def running(of: str, number: int, name: str = "r", **metadata) -> list[Json]:
    return [pod(f"{name}-{count}", of, metadata=metadata, nodeName="n1") for count in range(number)]


def borrowed(**metadata) -> list[Json]:
    """A node of three, of which one is b's and lent to a."""
    bounds = [quota("a", min={"cpu": 2}), quota("b", min={"cpu": 1})]
    return [node("n1", **cpus(3)), *bounds, *running("a", 2, **metadata)]


def two_queues(cpu: int, **spec) -> list[Json]:
    mine, theirs = queue("b", **spec), queue("a")
    return [node("n1", **cpus(cpu)), mine, theirs, namespace("a", **{QUEUE: "a"}), namespace("b", **{QUEUE: "b"})]


def cpus(number: int) -> Json:
    return {"cpu": str(number), "memory": "64Gi", "pods": "110"}


def member(name: str) -> Json:
    return pod(name, "b", metadata={"labels": {"scheduling.x-k8s.io/pod-group": "g"}})


def group(of: str, minimum: int) -> Json:
    return made(POD_GROUPS[0], "g", of, spec={"minMember": minimum})


def created(days: int) -> Json:
    return {"creationTimestamp": (datetime.now(UTC) - timedelta(days=days)).isoformat()}


def reservation(name: str, reason: str, of: str, *victims: str, job: str = "") -> Json:
    spec = {"reason": reason, "pod": reference(of), "nodeName": "n1", "victims": [reference(each) for each in victims]}
    return made(RESERVATIONS, name, metadata=created(0), spec=spec | {"job": job})


def reference(of: str) -> Json:
    where, _, name = of.partition("/")
    return {"namespace": where, "name": name, "uid": of}


def budget(of: str, labels: Json) -> Json:
    return made(BUDGETS, "pdb", of, spec={"selector": {"matchLabels": labels}}, status={"disruptionsAllowed": 0})
