"""A whole Quotaward without a network, into which anything can be thrown, and what has to hold of it afterwards."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.actuators.recording import RecordingActuator
from app.controllers.divide import Divide
from app.controllers.gates import Gates
from app.controllers.queue_status import QueueStatus
from app.controllers.reclaim import Reclaim
from app.controllers.refusals import Refusals
from app.controllers.reserve import Reserve
from app.controllers.resource_quota import ResourceQuotas
from app.controllers.status import Status
from app.controllers.wake import Wake
from app.extender.endpoints import Extender
from app.kube.reflector import Reflector
from app.main import application
from app.settings import Settings
from app.standing import Standing
from app.store.kinds import KINDS
from app.store.store import Store
from policy.cluster.cluster import Cluster
from policy.objects.resources import Resources, total
from tests.unit.app.given import Clock, Json, complete, see

EPOCH = 1_800_000_000.0
_BY_LABEL = {kind.label: kind for kind in KINDS}
_LISTED = b'{"metadata":{"resourceVersion":"1"},"items":[%b]}'


class Fault(AssertionError):
    """Something that no input may do."""


class World:
    """The store, what keeps it true to the API server, the controllers and the application, over these objects."""

    def __init__(self, items: list[Json]) -> None:
        self._items = items
        self.clock = Clock()
        self.store = Store(Cluster(), clock=self.clock, settle_time=0)
        self._actuator = RecordingActuator(self.store)
        self._settings = Settings()
        self._app = application(Standing(self.store), Extender(self.store, self._actuator), self._settings)
        self._reflectors: dict[str, Reflector] = {}
        self.reset()

    def reset(self) -> None:
        """Forgets all that has happened."""
        self.store.cluster = Cluster(self._settings.rules, settle_time=0)
        for of_a_group in self.store.quota_objects.maps:
            of_a_group.clear()
        see(self.store, *self._items)
        complete(self.store)
        self._api = _Api({kind.path: [item for item in self._items if _is_of(item, kind)] for kind in KINDS})
        for kind in KINDS:
            self._follow_from_the_start(kind.label)

    async def ask(self, method: str, path: str, body: bytes = b"", query: bytes = b"") -> tuple[int, bytes]:
        """The application's answer. Raises Fault for an error of our own, and for a refusal that gives no reason."""
        status, content = await answer_of(self._app, method, path, body, query)
        if status >= 500 and status != 503:
            raise Fault(f"{method} {path} was answered with {status}")
        if status >= 400 and path.startswith(("/api", "/extender", "/admission")):
            problem = json.loads(content)
            if problem["status"] != status or not problem["detail"]:
                raise Fault(f"{method} {path} was refused without a reason: {problem}")
        return status, content

    async def ask_json(self, path: str, document: Json) -> int:
        """The status of the application's answer to a document."""
        return (await self.ask("POST", path, json.dumps(document).encode()))[0]

    async def deliver(self, label: str, line: bytes) -> None:
        """A watch of this kind of objects brings this line, and ends."""
        self._api.line = line
        await self._reflectors[label].follow()

    async def list_anew(self, label: str, page: bytes) -> None:
        """The objects of this kind are listed again, and the first page of them is this."""
        self._api.page = page
        self._follow_from_the_start(label)
        await self.deliver(label, b"")

    def _follow_from_the_start(self, label: str) -> None:
        self._reflectors[label] = Reflector(self._api, _BY_LABEL[label], self.store)

    async def control(self) -> None:
        """Every controller looks once at what is to be done. What it raised would end the process."""
        self.clock.now += 10
        self.store.tick()
        store, actuator, settings = self.store, self._actuator, self._settings
        await Divide(store).look()
        async with asyncio.TaskGroup() as group:
            await Gates(store, actuator, settings.gates).look(group)
            await Reclaim(store, actuator, settings.reclaim, lambda: EPOCH).look(group)
            Wake(store, actuator).look(group)
        await Reserve(store, actuator, settings.reserve.terms).look()
        async with asyncio.TaskGroup() as group:
            await ResourceQuotas(store, actuator, enabled=True).look(group)
            for each in (Status, QueueStatus):
                await each(store, actuator).look(group)
        await Refusals(store, actuator).look()

    def standing(self) -> Any:
        """All that counts for or against anybody: what is refused must not change it."""
        cluster = self.store.cluster
        accounts = {name: (dict(account.used), dict(account.assigned)) for name, account in _accounts(cluster)}
        granted = {pod.uid for pod in cluster.grants.pods()}
        return dict(cluster.ledger.entries), accounts, granted, dict(cluster.pods)

    def recount(self) -> None:
        """Raises Fault where the ledger is not the sum of the pods that it is about."""
        cluster, ledger = self.store.cluster, self.store.cluster.ledger
        on_nodes: dict[str, list[Resources]] = {}
        admitted: dict[str, list[Resources]] = {}
        for pod in cluster.pods.values():
            if pod.assigned:
                on_nodes.setdefault(pod.namespace, []).append(pod.request)
        for granted in cluster.grants.pods():
            entry, seen = ledger.entries[granted.uid], cluster.pods.get(granted.uid, granted)
            if (entry.namespace, entry.request) not in [(pod.namespace, pod.request) for pod in (granted, seen)]:
                raise Fault(f"{granted.uid} is counted as {entry}, which it never was")
            admitted.setdefault(entry.namespace, []).append(entry.request)
        for namespace in {*on_nodes, *admitted, *ledger.accounts}:
            account, there = ledger.account(namespace), on_nodes.get(namespace, [])
            _ensure_sum(account.assigned, there, f"assigned in {namespace}")
            _ensure_sum(account.used, there + admitted.get(namespace, []), f"used in {namespace}")
        limited = [account for account in ledger.accounts.values() if account.quota]
        _ensure_sum(ledger.pool.used, [account.used for account in limited], "used of the pool")
        _ensure_sum(ledger.pool.min, [account.quota.min for account in limited if account.quota], "min of the pool")


async def answer_of(app: Any, method: str, path: str, body: bytes = b"", query: bytes = b"") -> tuple[int, bytes]:
    """The status and the content that an HTTP application answers with, without a network in between."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])
    status, content = 0, bytearray()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"quotaward"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> Json:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Json) -> None:
        nonlocal status
        status = message.get("status", status)
        content.extend(message.get("body", b""))

    await app(scope, receive, send)
    return status, bytes(content)


def _is_of(item: Json, kind: Any) -> bool:
    return (item["apiVersion"], item["kind"]) == (kind.api_version, kind.name)


def _accounts(cluster: Cluster) -> Any:
    return cluster.ledger.accounts.items()


def _ensure_sum(found: Resources, parts: list[Resources], what: str) -> None:
    counted = total(parts)
    if {r: amount for r, amount in found.items() if amount} != {r: amount for r, amount in counted.items() if amount}:
        raise Fault(f"{what}: {found} in the ledger, {counted} counted")


class _Api:
    """In the place of the network: the lists that there are, and watches of one line."""

    def __init__(self, lists: dict[str, list[Json]]) -> None:
        self._lists = lists
        self.line = self.page = b""

    @asynccontextmanager
    async def get(self, path: str, query: Json, *, read_timeout: float) -> AsyncIterator["_Answer"]:
        if "watch" in query:
            yield _Answer(self.line + b"\n")
            return
        listed = b",".join(json.dumps(item).encode() for item in self._lists[path])
        page, self.page = self.page or _LISTED % listed, b""
        yield _Answer(page)


class _Answer:
    status = 200

    def __init__(self, body: bytes) -> None:
        self.content = self
        self._body = body

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body
