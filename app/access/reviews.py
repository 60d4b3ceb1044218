"""Users of tokens and their rights according to the API server, remembered for a few seconds."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import aiohttp
import msgspec
import structlog

from app.access.gate import CannotReview, User
from app.kube.client import KubeClient
from app.observability import metrics

log = structlog.get_logger(__name__)

Value = TypeVar("Value")

REMEMBERED_FOR = 10.0
"""Seconds that an answer is reused. A revoked token stays valid for as long."""
REMEMBERED_AT_MOST = 1024
AT_ONCE = 16
WAITING_AT_MOST = 256
"""Maximum number of reviews that may wait for their turn, so that invented tokens don't keep the API server busy."""
TIMEOUT = 5.0


class _Status(msgspec.Struct, gc=False):
    authenticated: bool = False
    user: dict[str, Any] | None = None
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct, gc=False):
    status: _Status


_review_decoder = msgspec.json.Decoder(_Review)


class Reviews:
    """Asks the API server by TokenReview and SubjectAccessReview."""

    def __init__(self, client: KubeClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._users = Memory[User](clock)
        self._rights = Memory[bool](clock)
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def user(self, token: str) -> User | None:
        """Returns the user of a token; None for an invalid one. Raises CannotReview."""
        key = hashlib.sha256(token.encode()).digest()  # so that no token is kept
        known = self._users.get(key)
        if known is None:
            spec = {"token": token}
            status = await self._in_turn(
                lambda: self._ask("TokenReview", "authentication.k8s.io", "tokenreviews", spec)
            )
            if status.authenticated:
                said = status.user or {}
                known = User(hashlib.sha256(msgspec.json.encode(said, order="deterministic")).digest(), said)
                self._users.put(key, known)  # invalid tokens are not remembered: their number has no bound
        return known

    async def may(self, user: User, attributes: Mapping[str, Any]) -> bool:
        """Whether a user may do what the attributes of a SubjectAccessReview say. Raises CannotReview."""
        key = (user.key, msgspec.json.encode(attributes, order="deterministic"))
        known = self._rights.get(key)
        if known is None:
            who = {"user": user.name} | {
                part: user.said[part] for part in ("groups", "uid", "extra") if part in user.said
            }
            spec = who | dict(attributes)
            status = await self._in_turn(
                lambda: self._ask("SubjectAccessReview", "authorization.k8s.io", "subjectaccessreviews", spec)
            )
            known = status.allowed and not status.denied
            self._rights.put(key, known)
        return known

    async def _in_turn(self, ask: Callable[[], Awaitable[_Status]]) -> _Status:
        if self._waiting >= WAITING_AT_MOST:
            raise CannotReview("too many tokens are being looked at")
        self._waiting += 1
        try:
            async with self._turns:
                return await ask()
        finally:
            self._waiting -= 1

    async def _ask(self, kind: str, group: str, plural: str, spec: Mapping[str, Any]) -> _Status:
        review = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        try:
            status, body = await self._client.send(
                "POST", f"/apis/{group}/v1/{plural}", review, "application/json", timeout=TIMEOUT
            )
            if status != HTTPStatus.CREATED:
                raise CannotReview(f"the API server answers {status} to a {kind}")
            found = _review_decoder.decode(body).status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failed(kind, f"the API server cannot be reached: {type(error).__name__}") from None
        except (CannotReview, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._failed(kind, str(error)) from None
        metrics.REVIEWS.labels(kind, "answered").inc()
        return found

    def _failed(self, kind: str, why: str) -> CannotReview:
        metrics.REVIEWS.labels(kind, "failed").inc()
        log.warning("access cannot be reviewed", kind=kind, error=why)
        return CannotReview(why)


class Memory(Generic[Value]):
    """Remembers a few answers for a few seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[Hashable, tuple[Value, float]] = {}

    def get(self, key: Hashable) -> Value | None:
        """Returns a remembered answer; None if it is unknown or too old."""
        value, until = self._known.get(key, (None, 0.0))
        return value if self._clock() < until else None

    def put(self, key: Hashable, value: Value) -> None:
        """Remembers an answer, and forgets the oldest if there are too many."""
        self._known.pop(key, None)
        self._known[key] = value, self._clock() + REMEMBERED_FOR
        if len(self._known) > REMEMBERED_AT_MOST:
            del self._known[next(iter(self._known))]
