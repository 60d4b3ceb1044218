"""A whole Quotaward without a network: a store, the application over it, and all controllers."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from app.actuators.protocol import Actuator
from app.controllers.deadlines import Deadlines
from app.controllers.divide import Divide
from app.controllers.gates import Gates
from app.controllers.outlived import Outlived
from app.controllers.queue_status import QueueStatus
from app.controllers.reclaim.reclaim import Reclaim
from app.controllers.refusals import Refusals
from app.controllers.reserve import Reserve
from app.controllers.resource_quota import ResourceQuotas
from app.controllers.status import Status
from app.controllers.unjudged import Unjudged
from app.controllers.wake import Wake
from app.extender.endpoints import Extender
from app.main import application, cluster_of
from app.readiness import Readiness
from app.settings import Settings
from app.store.store import Store
from tests.unit.app.given import Json
from tests.worlds.kinds import KINDS


class Quotaward:
    """Whoever owns it lets the store see objects, and time pass."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float],
        epoch: Callable[[], float],
        actuator_of: Callable[[Store], Actuator],
    ) -> None:
        settle = settings.store.settle_time
        self.settings = settings
        self.store = Store(cluster_of(settings, settle), clock=clock, settle_time=settle, epoch=epoch, kinds=KINDS)
        self._epoch = epoch
        self._actuator = actuator_of(self.store)
        self.extender = Extender(
            self.store,
            self._actuator,
            observe=settings.observes,
            respect_budgets=settings.preemption.pdb == "respect",
            apart=settings.prioritize.borrowers_apart,
        )
        self.app = application(Readiness(self.store), self.extender, settings)
        self.lead()

    def lead(self) -> None:
        """The controllers that run begin anew."""
        store, actuator, settings, epoch = self.store, self._actuator, self.settings, self._epoch
        self.controllers: dict[str, Any] = {"divide": Divide(store)}
        if not settings.observes:
            self.controllers |= {
                "events": Refusals(store, actuator),
                "deadlines": Deadlines(store, actuator),
                "unjudged": Unjudged(store, actuator),
                "gates": Gates(store, actuator, settings.gates, settings.jobs),
                "reclaim": Reclaim(store, actuator, settings.reclaim, epoch),
                "outlived": Outlived(store, actuator, settings.run_time),
                "reserve": Reserve(store, actuator, settings.reserve.terms, epoch),
                "resource_quota": ResourceQuotas(store, actuator, enabled=settings.quota_manager.enabled),
                "status": Status(store, actuator),
                "queue_status": QueueStatus(store, actuator),
                "wake": Wake(store, actuator),
            }

    async def control(self, names: Iterable[str]) -> None:
        """These controllers look once at what is to be done, all at the same time."""
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(_look(self.controllers[name], group))

    async def answer(self, method: str, path: str, body: bytes = b"", query: bytes = b"") -> tuple[int, bytes]:
        """The status and the content that the application answers with."""
        return await answer_of(self.app, method, path, body, query)


async def _look(controller: Any, group: asyncio.TaskGroup) -> None:
    if isinstance(controller, Wake):
        controller.look(group)
    elif isinstance(controller, Deadlines | Divide | Refusals | Unjudged):
        await controller.look()
    else:
        await controller.look(group)


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
