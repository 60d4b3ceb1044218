"""A cluster with a bit of everything that the page shows, and ones with many quotas, as folders of manifests."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.controlplane.devices import devices, made, of_template
from tests.unit.app.given import Json, namespace, node, pod, queue, quota, refused

STARTED = datetime.now(UTC)
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"


def write(folder: Path, name: str, items: list[Json]) -> None:
    """Put these objects into one file, at once, as an editor would."""
    hidden = folder / f".{name}"
    hidden.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    hidden.rename(folder / f"{name}.json")


def since(**ago: float) -> Json:
    """The metadata of something that was created so long ago."""
    return {"creationTimestamp": (STARTED - timedelta(**ago)).strftime("%Y-%m-%dT%H:%M:%SZ")}


def aged(item: Json, **ago: float) -> Json:
    return item | {"metadata": item["metadata"] | since(**ago)}


def running(name: str, team: str, on: str, **requests: Any) -> Json:
    return aged(pod(name, team, requests, nodeName=on), hours=5)


def waiting(name: str, team: str, message: str, minutes: float, **requests: Any) -> Json:
    return aged(refused(pod(name, team, requests), message), minutes=minutes)


def reservation(name: str, reason: str, of: str, on: str, *victims: str, job: str = "", minutes: float) -> Json:
    def named(full: str) -> Json:
        space, _, only = full.partition("/")
        return {"namespace": space, "name": only, "uid": full}

    spec = {"reason": reason, "pod": named(of), "nodeName": on, "victims": [named(each) for each in victims]}
    return aged(
        {
            "apiVersion": "quotaward.dev/v1alpha1",
            "kind": "Reservation",
            "metadata": {"name": name},
            "spec": spec | ({"job": job} if job else {}),
        },
        minutes=minutes,
    )


def everything(folder: Path) -> None:
    """Five teams with quotas, two queues, pods that wait for different reasons, and a reservation of either kind."""
    gpu = "nvidia.com/gpu"
    amounts = {"cpu": "64", "memory": "256Gi", gpu: "8", "pods": "110"}
    nodes = [node(f"gpu-{number}", **amounts) for number in range(1, 7)]
    by_max = "0/6 nodes are available: 6 ElasticQuota max exceeded: nvidia.com/gpu."
    by_pool = "0/6 nodes are available: 6 ElasticQuota borrowing exhausted: nvidia.com/gpu."
    by_share = "0/6 nodes are available: 6 Queue deserved exceeded: cpu."
    by_node = "0/6 nodes are available: 6 Insufficient nvidia.com/gpu. preemption: none found."
    quotas = [
        aged(quota("vision", min={"cpu": 64, gpu: 12}, max={"cpu": 128, "memory": "512Gi", gpu: 24}), days=40),
        aged(quota("speech", min={"cpu": 48, gpu: 12}, max={"cpu": 96, gpu: 16}), days=40),
        aged(quota("ranking", min={"cpu": 64, gpu: 16}, max={"cpu": 128, gpu: 32}), days=30),
        aged(quota("search", min={gpu: 8}, max={"cpu": 64, gpu: 8}), days=12),
        aged(quota("sandbox", min={gpu: 0}, max={"cpu": 32, gpu: 8}), days=3),
        aged(quota("sandbox", "second", min={gpu: 4}), days=1),
    ]
    queues = [
        queue("web", weight=1, capability={"cpu": "128"}, guarantee={"resource": {"cpu": "32"}}),
        queue("research", weight=3, reclaimable=False),
    ]
    spaces = [
        namespace("shop", **{"scheduling.volcano.sh/queue-name": "web"}),
        namespace("biology", **{"scheduling.volcano.sh/queue-name": "research"}),
        namespace("physics", **{"scheduling.volcano.sh/queue-name": "research"}),
    ]
    pods = [
        *(running(f"train-{n}", "vision", f"gpu-{n}", **{"cpu": "16", "memory": "64Gi", gpu: 6}) for n in range(1, 4)),
        running("serve-1", "speech", "gpu-4", **{"cpu": "24", gpu: 4}),
        *(running(f"rank-{n}", "ranking", f"gpu-{n}", **{"cpu": "8", gpu: 4}) for n in (5, 6)),
        running("embed-1", "search", "gpu-6", **{"cpu": "16", gpu: 4}),
        running("embed-2", "search", "gpu-5", **{"cpu": "16", gpu: 4}),
        running("try-1", "sandbox", "gpu-4", **{"cpu": "4", gpu: 2}),
        *(running(f"web-{n}", "shop", f"gpu-{n}", cpu="20") for n in range(1, 4)),
        *(running(f"fold-{n}", "biology", f"gpu-{n}", cpu="24") for n in range(4, 6)),
        running("sim-1", "physics", "gpu-6", cpu="12"),
        waiting("embed-3", "search", by_max, 42, **{"cpu": "16", gpu: 2}),
        waiting("try-2", "sandbox", by_pool, 12, **{"cpu": "4", gpu: 6}),
        waiting("serve-2", "speech", by_node, 3, **{"cpu": "24", gpu: 8}),
        waiting("sim-2", "physics", by_share, 7, cpu="120"),
        waiting("rank-7", "ranking", by_node, 60 * 50, **{"cpu": "32", gpu: 8}),
    ]
    kept = [
        reservation("reclaim-1", "Reclaim", "speech/serve-2", "gpu-3", "vision/train-3", minutes=1),
        reservation("starving-1", "Starving", "ranking/rank-7", "gpu-6", job="pod/rank-7", minutes=90),
    ]
    write(folder, "cluster", [*nodes, *spaces])
    write(folder, "quotas", quotas + queues)
    write(folder, "pods", pods)
    write(folder, "reservations", kept)


def many(folder: Path, quotas: int) -> None:
    """So many teams with a quota each, of which every fifth has a pod that waits."""
    write(folder, "cluster", [node(f"n{number}") for number in range(50)])
    teams = [f"team-{number:04}" for number in range(quotas)]
    write(folder, "quotas", [quota(team, min={"cpu": 2, "memory": "4Gi"}, max={"cpu": 4}) for team in teams])
    message = "0/50 nodes are available: 50 ElasticQuota max exceeded: cpu."
    pods = [running("a", team, f"n{number % 50}", cpu="1500m", memory="1Gi") for number, team in enumerate(teams)]
    write(folder, "pods", pods + [waiting("b", team, message, 5, cpu="3") for team in teams[::5]])


def company(folder: Path, *new: Json) -> None:
    """A company of two departments, one of which has two teams; a team's pod waits. Also a queue beside the company."""
    write(folder, "cluster", [node("n1", cpu="16"), namespace("one", **{"scheduling.volcano.sh/queue-name": "team-1"})])
    parents = {"company": "root", "sales": "company", "science": "company", "team-1": "science", "team-2": "science"}
    write(folder, "queues", [queue(name, parent=parent) for name, parent in parents.items()] + [queue("guests")])
    running = pod("runs", "one", {"cpu": "3"}, nodeName="n1")
    write(
        folder,
        "pods",
        [running, waiting("waits", "one", "0/1 nodes are available: 1 Insufficient cpu.", 5, cpu=16), *new],
    )


def company_with_a_quota(folder: Path) -> None:
    """The same company, with a quota for the namespace of its team."""
    company(folder)
    write(folder, "quotas", [quota("one", min={"cpu": 2}, max={"cpu": 8})])


def company_that_moves(folder: Path) -> None:
    """The same company; a deadline ends the pod that runs, and then the one that waits may start."""
    company(folder)
    team = namespace("one", **{"scheduling.volcano.sh/queue-name": "team-1"})
    write(folder, "cluster", [node("n1", cpu="16", pods="110"), team])
    running = pod("runs", "one", {"cpu": "3"}, nodeName="n1", activeDeadlineSeconds=3600)
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    waits = waiting("waits", "one", "0/1 nodes are available: 1 Insufficient cpu.", 5, cpu=16)
    write(folder, "pods", [running | {"status": {"phase": "Running", "startTime": started}}, waits])


def with_devices(folder: Path, has: int) -> None:
    """A team whose quota names a device class, a pod with a claim of so many devices of it, and one that waits."""
    spec = {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}
    asked = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu", "count": 2}}]}}
    results = [{"request": "g", "driver": "gpu.example.com", "pool": "n1", "device": str(each)} for each in range(has)]
    classes = [
        made("DeviceClass", "gpu", spec=spec | {"extendedResourceName": "nvidia.com/gpu"}),
        devices(4, "n1"),
    ]
    claims = [
        made("ResourceClaim", "c", "a", spec=asked, status={"allocation": {"devices": {"results": results}}}),
        of_template("t", "a", asked),
    ]
    running_pod = claimed(running("runs", "a", "n1", cpu="1"), resourceClaimName="c")
    by_max = "0/1 nodes are available: 1 ElasticQuota max exceeded: nvidia.com/gpu."
    waits = claimed(waiting("waits", "a", by_max, 5, cpu="1"), resourceClaimTemplateName="t")
    write(folder, "cluster", [node("n1", cpu="16"), *classes])
    write(folder, "team", [quota("a", min={"cpu": 1}, max={"deviceclass/gpu": 3}), *claims, running_pod, waits])


def claimed(item: Json, **source: str) -> Json:
    """The pod, with a claim."""
    item["spec"]["resourceClaims"] = [{"name": "g"} | source]
    return item


def hostile(folder: Path) -> None:
    """Names, resources and annotations that are HTML."""
    write(folder, "cluster", [node("n1"), namespace(HOSTILE)])
    annotations = {"annotations": {"scheduling.volcano.sh/queue-name": HOSTILE}}
    write(
        folder,
        "pods",
        [
            quota(HOSTILE, HOSTILE, min={HOSTILE: 1}, max={HOSTILE: 1}),
            queue(HOSTILE, weight=1),
            refused(pod(HOSTILE, HOSTILE, {"cpu": "1"}), HOSTILE),
            pod("p", "a", metadata={"name": "p", "namespace": "a", "uid": "p"} | annotations),
            reservation("r", HOSTILE, f"{HOSTILE}/p", HOSTILE, HOSTILE, minutes=1),
        ],
    )
