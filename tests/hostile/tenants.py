"""Hostile tenants on a real API server: each changes its objects again and again, in a process of its own.

They have the rights of Kubernetes' role ``edit`` in their own namespaces, and besides may write pod groups and resize
pods, as some clusters let them. What the API server refuses is counted and left undone.
"""

import json
import os
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from app.store.heeded import PREEMPTIBLE, QUEUE
from tests.controlplane.api import Api
from tests.controlplane.objects import Object
from tests.hostile.apart import Apart
from tests.hostile.chance import Chance
from tests.hostile.others import hostile_budget, hostile_claim, hostile_group, hostile_job
from tests.hostile.pods import QUANTITIES, Place, hostile_pod

ALIVE = 6
"""Pods that a tenant has at a time, about; and half as many of everything else."""
THREADS = 8
_PATIENCE = 60
_FAILED = "failed:"
_JSON, _MERGE, _LIST = "application/json", "application/merge-patch+json", "application/json-patch+json"
_KINDS = ("Pod", "PodDisruptionBudget", "PodGroup", "Job", "ResourceClaim", "ResourceClaimTemplate")
_PLURALS = {kind: f"{kind.lower()}s" for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Deed:
    """A request, as one tenant makes it."""

    name: str
    method: str
    url: str
    body: Any = None
    content_type: str = _JSON


@dataclass(slots=True)
class Tenant:
    """One tenant: what it does next, and the names of what it has."""

    chance: Chance
    place: Place
    group_versions: tuple[str, ...]
    pods: list[str] = field(default_factory=list)
    rest: list[tuple[str, str]] = field(default_factory=list)

    def next(self) -> Deed:
        """What it does next."""
        if len(self.pods) > self.chance.randint(1, 2 * ALIVE):
            return self._delete_pod()
        if len(self.rest) > self.chance.randint(1, ALIVE):
            return self._delete_other()
        deeds: Mapping[Callable[[], Deed], int] = {
            self._create_pod: 10,
            self._create_other: 3,
            self._change_pod: 6 if self.pods else 0,
        }
        return self.chance.choices(list(deeds), list(deeds.values()))[0]()

    def _create_pod(self) -> Deed:
        """Of a name that it has had already in a part of the cases."""
        name = self.chance.of(f"again-{self.chance.of(0, 1)}", self.chance.word(), self.chance.word())
        item = hostile_pod(self.chance, self.place, name)
        if name not in self.pods:
            self.pods.append(name)
        return Deed("pod created", "POST", self._url("v1", "pods"), item)

    def _delete_pod(self) -> Deed:
        name = self.pods.pop(self.chance.randrange(len(self.pods)))
        options = self.chance.of({}, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 2**31 - 1})
        return Deed("pod deleted", "DELETE", self._url("v1", "pods", name), options)

    def _create_other(self) -> Deed:
        kind, chance = self.chance.random(), self.chance
        if kind < 0.4:
            item = hostile_budget(chance, self.place, f"budget-{chance.randrange(ALIVE)}")
        elif kind < 0.7:
            item = hostile_group(chance, self.place, chance.of(*self.place.groups), chance.of(*self.group_versions))
        elif kind < 0.85:
            item = hostile_claim(chance, self.place)
        else:
            item = hostile_job(chance, self.place, f"job-{chance.randrange(ALIVE)}")
        version, name = item["apiVersion"], item["metadata"]["name"]
        url = self._url(version, _PLURALS[item["kind"]])
        if (key := (url, name)) not in self.rest:
            self.rest.append(key)
        return Deed(f"{item['kind']} created", "POST", url, item)

    def _delete_other(self) -> Deed:
        url, name = self.rest.pop(self.chance.randrange(len(self.rest)))
        return Deed("something else deleted", "DELETE", f"{url}/{name}")

    def _change_pod(self) -> Deed:
        chance, url = self.chance, self._url("v1", "pods", self.chance.choice(self.pods))
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
        cpu = chance.of("0", "1", "3", "1000", chance.of(*QUANTITIES))
        changes: dict[str, tuple[str, Any, str]] = {
            "labels changed": (url, {"metadata": {"labels": chance.labels(chance.many(100))}}, _MERGE),
            "queue changed": (url, _annotations(QUEUE, chance.of(None, "", *self.place.queues)), _MERGE),
            "opted in or out": (url, _annotations(PREEMPTIBLE, chance.of(None, "false")), _MERGE),
            "owner changed": (url, {"metadata": {"ownerReferences": [owner]}}, _MERGE),
            "gates opened": (url, {"spec": {"schedulingGates": None}}, _MERGE),
            "toleration added": (url, [_add("/spec/tolerations/-", {"operator": "Exists"})], _LIST),
            "pod resized": (f"{url}/resize", [_add("/spec/containers/0/resources/requests/cpu", cpu)], _LIST),
        }
        name = chance.choice(list(changes))
        return Deed(name, "PATCH", *changes[name])

    def _url(self, version: str, plural: str, *name: str) -> str:
        root = "apis" if "/" in version else "api"
        return "/".join([f"/{root}/{version}/namespaces/{self.place.namespace}/{plural}", *name])


def _annotations(key: str, value: str | None) -> Object:
    return {"metadata": {"annotations": {key: value}}}


def _add(path: str, value: Any) -> Object:
    return {"op": "add", "path": path, "value": value}


def give_rights(api: Api, namespaces: list[str]) -> None:
    """Lets each tenant, a user of its namespace's name, write what the role ``edit`` has, pod groups and resizes."""
    groups = ["scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.k8s.io", "scheduling.sigs.k8s.io"]
    rules = [
        {"apiGroups": groups, "resources": ["podgroups"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
    ]
    version = "rbac.authorization.k8s.io/v1"
    api.apply({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": "more-than-edit"}, "rules": rules})
    for namespace in namespaces:
        for role in ("system:aggregate-to-edit", "more-than-edit"):
            metadata = {"name": role.replace(":", "-"), "namespace": namespace}
            api.apply(
                {
                    "apiVersion": version,
                    "kind": "RoleBinding",
                    "metadata": metadata,
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": namespace}],
                }
            )


@dataclass(frozen=True, slots=True)
class Orders:
    """What the process of the tenants has to know. ``pace``: requests a second, of all of them together."""

    url: str
    ca_file: Path
    token: str
    places: tuple[Place, ...]
    group_versions: tuple[str, ...]
    seed: int
    pace: float


class Tenants:
    """All tenants, while this is open. ``counts``: at the end, how often each deed was done or refused."""

    def __init__(self, orders: Orders) -> None:
        self.counts: Counter[str] = Counter()
        self._all = Apart(_be_tenants, orders)

    def __enter__(self) -> Self:
        self._all.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.counts.update(self._all.end(2 * _PATIENCE))
        if failed := [deed for deed in self.counts if deed.startswith(_FAILED)]:
            raise AssertionError(f"the tenants have failed: {failed}")


def _be_tenants(orders: Orders, over: Any, counted: Any) -> None:
    os.nice(10)  # they would be elsewhere, and take no processor time here
    counts: Counter[str] = Counter()
    tenants = [
        Tenant(Chance(f"{orders.seed} {place.namespace}"), place, orders.group_versions) for place in orders.places
    ]
    parts = [tenants[number::THREADS] for number in range(min(THREADS, len(tenants)))]
    threads = [threading.Thread(target=_run, args=(orders, part, over, counts), daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted.put(counts)


def _run(orders: Orders, tenants: list[Tenant], over: Any, counts: Counter[str]) -> None:
    try:
        _act(orders, tenants, over, counts)
    except BaseException as failure:  # noqa: BLE001 (told in the main process)
        counts[f"{_FAILED} {failure!r}"] += 1


def _act(orders: Orders, tenants: list[Tenant], over: Any, counts: Counter[str]) -> None:
    pause, turn = len(orders.places) / len(tenants) / orders.pace, 0
    verify = ssl.create_default_context(cafile=str(orders.ca_file))
    with httpx.Client(base_url=orders.url, verify=verify, timeout=_PATIENCE, trust_env=False) as client:
        while not over.wait(pause):
            tenant = tenants[turn % len(tenants)]
            turn += 1
            counts[_do(client, orders.token, tenant.place.namespace, tenant.next())] += 1


def _do(client: httpx.Client, token: str, user: str, deed: Deed) -> str:
    """Does it, as that user; what came of it."""
    headers = {"Authorization": f"Bearer {token}", "Impersonate-User": user, "Content-Type": deed.content_type}
    content = None if deed.body is None else json.dumps(deed.body)
    began = time.monotonic()
    try:
        status = client.request(deed.method, deed.url, content=content, headers=headers).status_code
    except httpx.TransportError:
        return f"{deed.name}: no answer after {time.monotonic() - began:.0f} s"
    return deed.name if status < 300 else f"{deed.name}: {status}"
