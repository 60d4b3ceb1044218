"""A whole Quotaward without a network, into which anything can be thrown, and what has to hold of it afterwards."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.actuators.recording import RecordingActuator
from app.kube.reflector import Reflector
from app.main import cluster_of
from app.settings import Settings
from app.store.kinds import KINDS
from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.objects.resources import Resources, total
from tests.unit.app.given import Clock, Json, complete, see
from tests.worlds.quotaward import Quotaward

_BY_LABEL = {kind.label: kind for kind in KINDS}
_LISTED = b'{"metadata":{"resourceVersion":"1"},"items":[%b]}'


class Fault(AssertionError):
    """Something that no input may do."""


class Actuator(RecordingActuator):
    """Starts Jobs, of which nobody makes the pods here: a tenant chooses how many there would be."""

    async def start_job(self, pod: Pod) -> None:
        """Does nothing."""


class World:
    """Quotaward over these objects, and what keeps its store true to the API server."""

    def __init__(self, items: list[Json], **settings: Json) -> None:
        """``settings``: sections of them, beside those that every world has."""
        self._items = items
        self.clock = Clock()
        sections = {"quota_manager": {"enabled": True}, "store": {"settle_time": 0}}
        chosen = Settings.model_validate(sections | settings)
        self._quotaward = Quotaward(chosen, self.clock, time.time, Actuator)
        self.store = self._quotaward.store
        self._reflectors: dict[str, Reflector] = {}
        self.reset()

    def reset(self) -> None:
        """Forgets all that has happened."""
        self.store.cluster = cluster_of(self._quotaward.settings, settle_time=0)
        for of_a_group in self.store.quota_objects.maps:
            of_a_group.clear()
        see(self.store, *self._items)
        complete(self.store)
        self._api = _Api({kind.path: [item for item in self._items if _is_of(item, kind)] for kind in KINDS})
        for kind in KINDS:
            self._follow_from_the_start(kind.label)

    async def ask(self, method: str, path: str, body: bytes = b"", query: bytes = b"") -> tuple[int, bytes]:
        """The application's answer. Raises Fault for an error of our own, and for a refusal that gives no reason."""
        status, content = await self._quotaward.answer(method, path, body, query)
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
        self._quotaward.lead()
        for name in self._quotaward.controllers:
            await self._quotaward.control([name])

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
