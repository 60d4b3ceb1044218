"""Remedies in a large cluster: of how many waiting pods some are found within ``whatif.remedyTime``."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator

from app.settings import Settings
from app.store.store import Store
from app.whatif.remedies import UNTRIED
from app.whatif.service import Trials
from policy.cluster.cluster import Cluster
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.objects.queue import Queue
from policy.quota.elastic_quota import elastic_quota
from tests.bench.figures import Figure
from tests.bench.sizes import SCALE

NODES, RUNNING, WAITING = (max(30, number // SCALE) for number in (1500, 8000, 1200))
ASKED = max(4, 20 // SCALE)
"""Waiting pods whose remedies are looked for."""
TEAMS = 20
GROUP = "podgroups.scheduling.x-k8s.io"
GPU = "nvidia.com/gpu"


def run() -> list[Figure]:
    """Looks for the remedies of some waiting pods of each sort, one after the other, as an explanation does."""
    found, longest = asyncio.run(_look(_store()))
    told = sum(number for (_, some), number in found.items() if some)
    detail = ", ".join(f"{sort} {found[sort, True]}/{found[sort, True] + found[sort, False]}" for sort in SORTS)
    size = f"{NODES} nodes, {RUNNING} pods, {WAITING} waiting"
    return [
        Figure(
            "waiting pods with a remedy that was tried",
            100 * told / found.total(),
            "%",
            90,
            at_least=True,
            detail=f"{detail}; {size}",
        ),
        Figure("longest search for remedies", 1000 * longest, "ms", detail=size),
    ]


async def _look(store: Store) -> tuple[Counter[tuple[str, bool]], float]:
    trials, found, longest = Trials(store, Settings()), Counter[tuple[str, bool]](), 0.0
    cluster = store.cluster
    for sort in SORTS:
        waiting = [pod for pod in cluster.pending.values() if pod.name.startswith(sort)]
        for pod in waiting[:: max(1, len(waiting) // (ASKED // len(SORTS)))]:
            started = time.perf_counter()
            remedies = (await trials.remedies(pod, ())).remedies
            longest = max(longest, time.perf_counter() - started)
            tried = [each.tried for each in remedies if each.tried != UNTRIED]
            found[sort, bool(tried)] += 1
    return found, longest


SORTS = ("room", "max", "queue", "gang")
"""What waiting pods wait for, by the beginning of their name."""


def _store() -> Store:
    """GPU nodes that are nearly full; a quarter each waits for room, for a max, for a queue's part, and as gangs."""
    chance = random.Random(1)
    cluster = Cluster(settle_time=0)
    for number in range(NODES):
        size = {"cpu": 96_000, "memory": 2**39, "pods": 110, GPU: 8 if number % 5 else 2}
        cluster.upsert_node(Node(f"node-{number}", size, {"kubernetes.io/hostname": f"node-{number}"}))
    for number in range(TEAMS):
        name, part = f"team-{number}", 4 * NODES // TEAMS
        if number % 2:
            cluster.upsert_queue(Queue(f"queue-{number}", weight=1 + number % 3, capability={GPU: part}))
            cluster.upsert_namespace(Namespace(name, queue=f"queue-{number}"))
        else:
            cluster.upsert_quota(elastic_quota(name, "quota", 0.0, {GPU: part}, {GPU: part}))
    for pod in (*_running(chance), *_waiting(cluster, chance)):
        cluster.upsert_pod(pod, 0.0)
    store = Store(cluster, settle_time=0)
    for _ in cluster.divide_steps():
        pass
    return store


def _running(chance: random.Random) -> Iterator[Pod]:
    left = [8 if number % 5 else 2 for number in range(NODES)]
    for number in range(RUNNING):
        at = number % NODES
        asks = min(left[at], chance.choice((1, 1, 1, 2, 4)))
        left[at] -= asks
        yield _pod(f"runs-{number}", number % TEAMS, chance, asks, node=f"node-{at}")


def _waiting(cluster: Cluster, chance: random.Random) -> Iterator[Pod]:
    for number in range(WAITING):
        sort = SORTS[number % len(SORTS)]
        team = (
            TEAMS if sort == "room" else chance.randrange(TEAMS // 2) * 2 + (sort == "queue")
        )  # the last has no bound
        text = {"max": "1 ElasticQuota max exceeded", "queue": "1 Queue deserved exceeded"}.get(
            sort, "1 Insufficient gpu"
        )
        said = Unschedulable("Unschedulable", f"0/{NODES} nodes are available: {text}.")
        if sort == "gang":
            name = f"gang-{number // 40}"
            cluster.upsert_group(Group(f"team-{number // 40 % TEAMS}", f"{GROUP}/{name}", 10))
            yield _pod(f"gang-{number}", number // 40 % TEAMS, chance, 8, group=f"{GROUP}/{name}", unschedulable=said)
        else:
            yield _pod(f"{sort}-{number}", team, chance, chance.choice((4, 8, 8)), unschedulable=said)


def _pod(name: str, team: int, chance: random.Random, gpus: int, **rest: object) -> Pod:
    cpu = 1000 * chance.randint(1, 4) * max(1, gpus)
    request = {"cpu": cpu, "memory": cpu * 2**22, "pods": 1} | ({GPU: gpus} if gpus else {})
    return Pod(f"team-{team}/{name}", f"team-{team}", name, request, created=float(len(name)), **rest)  # type: ignore[arg-type]
