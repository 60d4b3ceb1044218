"""What tenants write, among pods of others: it must not make anybody wait for many more steps than a plain pod does."""

import json
from collections.abc import Coroutine, Iterator
from functools import cache
from typing import Any

from app.store.budgets import BUDGETS
from app.store.heeded import JOBS_WAIT
from app.store.jobs import JOBS
from app.store.namespaces import NAMESPACES
from app.store.pod_groups import POD_GROUPS
from app.store.pods import PODS
from app.store.resource_claims import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from tests.fuzz.seeds import ITEMS
from tests.fuzz.steps import CountingLoop
from tests.fuzz.world import Fault, World
from tests.hostile.chance import Chance
from tests.hostile.others import GROUP_VERSIONS, hostile_budget, hostile_claim, hostile_group, hostile_job
from tests.hostile.pods import TRICKS, Place, hostile_pod
from tests.unit.app.given import Json, made, pod, quota

OWN, OTHERS = "a", "o"
"""The namespace of the tenant, and one of somebody else."""
CROWD = 60
TIMES, MORE = 2, 2000
"""A step may take so many times as many lines as with a plain pod, and so many more."""
BYTES_OF_A_JOB = 2
"""To take in a Job may take one more for so many bytes: the API server lets none have more than 20 rules."""
FOR_OTHERS = 1.2
"""How many times as many it may take to answer for the pod of somebody else."""
TRIES = 2
"""How often it is asked for that."""
_KINDS = (PODS, BUDGETS, JOBS, *POD_GROUPS, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
_LABELS = {(kind.api_version, kind.name): kind.label for kind in _KINDS}
LONGEST_SEED = 20_000
_NODES = ("n1", "n2", "n3")
_PLACE = Place(OWN, ("q", "r"), ("g", "native", "volcano"), others=("b", OTHERS))


def tenants_objects(data: bytes) -> None:
    """Lines: an object each, that a tenant creates. Raises Fault where something takes too many steps."""
    items = list(_read(data))
    _prepare()
    for item in items:
        of_job = len(json.dumps(item)) // BYTES_OF_A_JOB if item["kind"] == JOBS.name else 0
        _ensure_few("taking it in", _taking_in(item), of_job)
    asked = [item for item in items if item["kind"] == "Pod"][:2]
    for item in asked:
        for name, work in _looks(item):
            _ensure_few(name, work)
    _, others = _of_a_plain_pod()
    if slow := _steps_of_others(others):
        name, taken = next(iter(slow.items()))
        raise Fault(f"{name} for the pod of somebody else takes {taken} steps, {others[name]} without this")
    _ensure_few("control", _world().control())
    _world().recount()
    jobs = [item for item in items if item["kind"] == JOBS.name]
    for item in jobs:  # as soon as it was started
        _loop().run_until_complete(_taking_in(_flapped(item)))
    if jobs:
        _ensure_few("control", _world().control())
        _world().recount()


def _steps_of_others(plain: dict[str, int]) -> dict[str, int]:
    """What takes too many steps for the pod of somebody else each time that it is asked.

    A task that is due now and then may share a turn of the loop with an answer, if a test runs on a slow machine.
    """
    slow = dict(plain)
    for _ in range(TRIES):
        taken = {name: _loop().longest(work)[0] for name, work in _looks(_of_somebody_else())}
        slow = {name: taken[name] for name in slow if taken[name] > FOR_OTHERS * plain[name]}
        if not slow:
            break
    return slow


def _flapped(item: Json) -> Json:
    """A Job that its tenant suspends, or starts, by itself."""
    spec = item.get("spec")
    return item | {"spec": spec | {"suspend": not spec.get("suspend")}} if isinstance(spec, dict) else item


def tenants_seeds() -> list[bytes]:
    """Objects of every kind, alone and together."""
    items = []
    for number, trick in enumerate(TRICKS):
        item = _plain(f"p{number}")
        trick(_chance(number), _PLACE, item)
        items.append(item)
    for number in range(30):
        chance = _chance(number)
        items.append(hostile_pod(chance, _PLACE, f"h{number}"))
        items.append(hostile_budget(chance, _PLACE, f"b{number}"))
        items.append(hostile_group(chance, _PLACE, "g", GROUP_VERSIONS[number % len(GROUP_VERSIONS)]))
        items.append(hostile_job(chance, _PLACE, "train"))
        items.append(hostile_claim(chance, _PLACE))
    lines = [line for item in items if len(line := json.dumps(item).encode()) < LONGEST_SEED]
    return lines + [b"\n".join(lines[number : number + 4]) for number in range(0, len(lines), 4)]


def _chance(number: int) -> Chance:
    chance = Chance(number)
    chance.largest = 300
    return chance


def _plain(name: str) -> Json:
    item = pod(name, OWN)
    item["metadata"] |= {"labels": {"app": "web"}, "annotations": {}}
    item["spec"]["containers"][0]["resources"]["limits"] = {}
    return item


def _of_somebody_else() -> Json:
    return pod("somebody-else-s", OTHERS)


def _read(data: bytes) -> Iterator[Json]:
    for line in data.split(b"\n"):
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(item, dict) and isinstance(item.get("metadata"), dict) and _label(item):
            name = item["metadata"].get("name")
            yield item | {"metadata": {"uid": f"{OWN}/{name}"} | item["metadata"] | {"namespace": OWN}}


def _label(item: Json) -> str | None:
    version, kind = item.get("apiVersion"), item.get("kind")
    return _LABELS.get((version, kind)) if isinstance(version, str) and isinstance(kind, str) else None


def _prepare() -> None:
    """Nothing has happened yet, and all watches have begun."""
    _world().reset()
    for label in _LABELS.values():
        _loop().run_until_complete(_world().deliver(label, b""))


def _taking_in(item: Json) -> Coroutine[Any, Any, Any]:
    line = json.dumps({"type": "ADDED", "object": item}).encode()
    return _world().deliver(_label(item) or "", line)


def _looks(item: Json) -> Iterator[tuple[str, Coroutine[Any, Any, Any]]]:
    """Everything that is asked about a pod, by name."""
    meta = item["metadata"]
    candidates = {"Pod": item, "NodeNames": list(_NODES)}
    offered = {name: {"Pods": [{"UID": f"{OTHERS}/r0"}]} for name in _NODES}
    binding = {"PodName": meta.get("name"), "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": "n1"}
    bodies = {
        "/extender/filter": candidates,
        "/extender/prioritize": candidates,
        "/extender/preempt": {"Pod": item, "NodeNameToMetaVictims": offered},
        "/extender/bind": binding,
        "/admission/gate": {"request": {"uid": "r", "object": item}},
    }
    for path, body in bodies.items():
        yield path, _world().ask("POST", path, json.dumps(body).encode())
    for root in ("/api/v1", ""):
        yield f"{root}/pods", _world().ask("GET", f"{root}/pods/{meta['namespace']}/{meta.get('name')}")


def _ensure_few(what: str, work: Coroutine[Any, Any, Any], allowance: int = 0) -> None:
    most = TIMES * _of_a_plain_pod()[0][what] + MORE + allowance
    if (taken := _loop().longest(work)[0]) > most:
        raise Fault(f"{what} takes {taken} steps at a stretch, and may take {most}")


@cache
def _of_a_plain_pod() -> tuple[dict[str, int], dict[str, int]]:
    """The steps that everything takes for a plain pod of the tenant's, and for one of somebody else beside it."""
    for _ in range(2):  # the second time, all is at hand that is made once
        _prepare()
        taken = {"taking it in": _loop().longest(_taking_in(_read_one(_plain("p"))))[0]}
        taken |= {name: _loop().longest(work)[0] for name, work in _looks(_read_one(_plain("p")))}
        others = {name: _loop().longest(work)[0] for name, work in _looks(_of_somebody_else())}
        taken["control"] = _loop().longest(_world().control())[0]
    return taken, others


def _read_one(item: Json) -> Json:
    return next(_read(json.dumps(item).encode()))


@cache
def _loop() -> CountingLoop:
    return CountingLoop()


@cache
def _world() -> World:
    crowd = [
        pod(f"r{number}", OTHERS, {"cpu": "100m"}, {"labels": {"app": f"x{number % 20}"}}, nodeName=_NODES[number % 3])
        for number in range(CROWD)
    ]
    for each in crowd:
        each["metadata"] |= {"uid": f"{OTHERS}/{each['metadata']['name']}"}
    jobs_wait = made(NAMESPACES, OWN, metadata={"labels": {JOBS_WAIT: "queued"}})
    return World([*ITEMS, jobs_wait, quota(OTHERS, min={"cpu": 20}), *crowd])
