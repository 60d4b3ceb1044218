"""Kubernetes JSON with the little that a test is about, and a store that has seen it."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, Literal

import httpx
import msgspec
import yaml
from fastapi import APIRouter, FastAPI

from app.actuators.protocol import Actuator
from app.actuators.recording import RecordingActuator
from app.extender.endpoints import Extender
from app.front import Application
from app.main import application
from app.readiness import Readiness
from app.settings import Settings
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.kind import Key, Kind
from app.store.namespaces import NAMESPACES
from app.store.nodes import NODES
from app.store.pod_groups import POD_GROUPS
from app.store.pods import PODS
from app.store.queues import QUEUES
from app.store.store import Store
from policy.cluster.cluster import Cluster
from policy.objects.reservation import STARVING, PodName, Reservation
from policy.quota.admission import Rules

Json = dict[str, Any]


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def made(kind: Kind, name: str, namespace: str = "", metadata: Json | None = None, **parts: Any) -> Json:
    """An object of this kind; ``metadata`` beside its names, and further arguments beside that."""
    names = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": names | (metadata or {})} | parts


DEFAULT_RULES = Rules()


def pod(
    name: str, namespace: str = "a", requests: Json | None = None, metadata: Json | None = None, **spec: Any
) -> Json:
    """A pod that requests one core, unless more is said of it; further arguments are fields of its spec."""
    container = {"name": "main", "resources": {"requests": {"cpu": "1"} if requests is None else requests}}
    metadata = {"uid": f"{namespace}/{name}"} | (metadata or {})
    return made(PODS, name, namespace, metadata, spec={"containers": [container]} | spec)


def refused(item: Json, message: str = "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu.") -> Json:
    """The pod after kube-scheduler has written down that no node passed."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return item | {"status": {"phase": "Pending", "conditions": [condition]}}


def quota(namespace: str = "a", name: str = "quota", created: str | None = None, **bounds: Any) -> Json:
    """An ElasticQuota; ``min`` and ``max`` as they stand in its spec."""
    metadata = {"creationTimestamp": created} if created else {}
    return made(ELASTIC_QUOTAS, name, namespace, metadata, spec=bounds)


def pod_group(name: str = "gang", namespace: str = "a", minimum: int = 2, **metadata: Any) -> Json:
    """A PodGroup of scheduler-plugins; further arguments are fields of its metadata."""
    return made(POD_GROUPS[0], name, namespace, metadata, spec={"minMember": minimum})


def queue(name: str = "q", **spec: Any) -> Json:
    """A Queue; further arguments are fields of its spec."""
    return made(QUEUES, name, spec=spec)


def namespace(name: str, **annotations: str) -> Json:
    return made(NAMESPACES, name, metadata={"annotations": annotations})


def node(name: str = "n1", **allocatable: Any) -> Json:
    return made(NODES, name, status={"allocatable": allocatable or {"cpu": "4", "memory": "8Gi", "pods": "110"}})


def empty_store(
    clock: Clock | None = None, *, settle_time: float = 0, rules: Rules = DEFAULT_RULES, **options: Any
) -> Store:
    """A store that has not seen anything yet; nothing was admitted before it was there, unless it has to settle."""
    return Store(Cluster(rules, settle_time=settle_time), clock=clock or Clock(), settle_time=settle_time, **options)


def see(store: Store, *items: Json) -> None:
    """The store sees these objects as a watch would deliver them."""
    for item in items:
        namesakes = [kind for kind in store.kinds if kind.name == item["kind"]]
        kind = next((kind for kind in namesakes if kind.api_version == item.get("apiVersion")), namesakes[0])
        store.upsert(kind, kind.decoder.decode(msgspec.json.encode(item)))


def complete(store: Store) -> Store:
    """The store has seen everything there is."""
    for kind in store.kinds:
        store.complete(kind)
    return store


def names_of_nodes(store: Store) -> set[Key]:
    return set(NODES.known(store.cluster))


def store_with(*items: Json, clock: Clock | None = None, **options: Any) -> Store:
    """A store in sync that has seen these objects and nothing else."""
    store = empty_store(clock, **options)
    see(store, *items)
    return complete(store)


def reserve(
    store: Store, name: str = "big", on: str = "n1", namespace: str = "a", *, job: str = "", promised: float = 0.0
) -> None:
    """A node is reserved for a pod that starves, which is a job of its own unless one is named."""
    who = PodName(namespace, name, f"{namespace}/{name}")
    made = Reservation(
        f"starving-{name}", who, on, (), 0.0, STARVING, job=job or f"pods/{name}", promised_start=promised
    )
    store.cluster.upsert_reservation(made)


class Client:
    """Asks an HTTP application, without a network in between."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    def get(self, path: str) -> httpx.Response:
        return self.request("GET", path)

    def ask(self, verb: str, arguments: Json) -> Any:
        """Calls a verb as kube-scheduler does; its answer."""
        answer = self.request("POST", f"/extender/{verb}", json=arguments)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://quotaward") as client:
                return await client.request(method, path, **arguments)

        return asyncio.run(send())


def client_of(store: Store, *, observe: bool = False, actuator: Actuator | None = None) -> Client:
    """A client of the real HTTP application over this store."""
    app = own_application(store, observe=observe, actuator=actuator)
    app.router = _routes()
    return Client(app)


def own_application(store: Store, *, observe: bool = False, actuator: Actuator | None = None) -> Application:
    """The real HTTP application over this store. A test may add routes to it."""
    extender = Extender(store, actuator or RecordingActuator(store), observe=observe)
    return application(Readiness(store), extender, _settings("observe" if observe else "enforce"))


@cache
def _settings(mode: Literal["enforce", "observe"]) -> Settings:
    return Settings(mode=mode)


@cache
def _routes() -> APIRouter:
    """The routes of every application: they find its store in the request. To work them out takes longer than a test.

    tests/worlds, tests/wire and whatever starts a Quotaward have those that their own application has made.
    """
    return own_application(empty_store()).router


def kubeconfig(server: str, token: str = "", **cluster: str) -> str:
    """The text of a kubeconfig for the server; more of the cluster, as it stands there."""
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server} | cluster}],
            "users": [{"name": "u", "user": {"token": token} if token else {}}],
        }
    )


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def run_in_the_same_loop(work: Coroutine[Any, Any, None]) -> None:
    """As asyncio.run does, but it makes no loop of its own: that takes longer than most looks of a controller."""
    _runner().run(work)
    assert not asyncio.all_tasks(_runner().get_loop()), "something goes on"


async def look_once(controller: Any) -> None:
    """One look of a controller that works in a group, until all is done that it has begun."""
    async with asyncio.TaskGroup() as group:
        await controller.look(group)


def cancel_at_the_write(api: Any, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Work that is told to end while the API server has not answered yet whether a reservation is written down."""
    asked = asyncio.Event()

    async def hang(_reservation: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    async def until_told() -> None:
        working = asyncio.create_task(work())
        await asked.wait()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    api.reserve = hang
    asyncio.run(until_told())
