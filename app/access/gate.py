"""Access to a listener beyond loopback: schedulers by their certificate, people and scrapers by their token."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import Receive, Scope, Send

from app.front import Application
from app.problems import Problem
from app.serving.reply import AtOnce, Reply

OPEN = frozenset({"/healthz", "/readyz", "/admission/gate"})
"""Paths that reveal nothing of the cluster. The API server shows no credentials when it calls a webhook."""
EXTENDER = "/extender/"
METRICS = "/metrics"
PREFIX = "/quotaward"
"""Prefix of our paths where rights are named, since everybody may read /api/... in every cluster."""
NAMESPACED = re.compile(r"/api/v1/(?:elasticquotas|jobs|pods)/([^/]+)(?:/[^/]+)?")
LONGEST_TOKEN = 16 * 2**10
SERVICE_ACCOUNT = re.compile(r"(system:serviceaccount:[^:]+):.*")


class CannotReview(Exception):
    """The API server does not answer; the text says why, and contains nothing of the token."""


@dataclass(frozen=True, slots=True)
class User:
    """A user that the API server knows. ``key`` identifies all that it said of them."""

    key: bytes
    said: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The user's name."""
        return str(self.said.get("username", ""))

    @property
    def asker(self) -> str:
        """The asker that their questions count for. A namespace's service accounts are one: one may create many."""
        account = SERVICE_ACCOUNT.fullmatch(self.name)
        return account[1] if account else self.name


class Reviewing(Protocol):
    """Knows the user of a token, and their rights."""

    async def user(self, token: str) -> User | None:
        """Returns the user of a token. Raises CannotReview."""

    async def may(self, user: User, attributes: Mapping[str, Any]) -> bool:
        """Whether the user has the right. Raises CannotReview."""


class Gate:
    """Wraps an application in access control. Paths not named here need a token."""

    def __init__(self, app: Application, reviews: Reviewing | None) -> None:
        """Without ``reviews``, as there is no cluster, no token is accepted."""
        self._app = app
        self._reviews = reviews

    def at_once(self, path: bytes, client_valid_until: float) -> AtOnce | None:
        """Returns the handler that replies at once to a path; None if there is none or the certificate is not valid."""
        return self._app.at_once(path, client_valid_until) if client_valid_until >= time.time() else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers why not."""
        path: str = scope["path"]
        if path in OPEN:
            await self._app(scope, receive, send)
            return
        try:
            if path.startswith(EXTENDER):
                _ensure_certified(scope)
            else:
                await self._ensure_allowed(scope)
        except Problem as problem:
            await _answer(problem, send)
            return
        await self._app(scope, receive, send)

    async def _ensure_allowed(self, scope: Scope) -> None:
        """Raises Problem: 401 without a valid token, 403 if its user lacks the right, 503 if that cannot be checked."""
        token = _token_of(scope)
        if self._reviews is None:
            raise Problem(401, "without a cluster no token can be checked")
        try:
            user = await self._reviews.user(token)
            if user is None:
                raise Problem(401, "the token is not valid")
            for attributes in _ways_in(scope):
                if await self._reviews.may(user, attributes):
                    scope.setdefault("state", {})["asker"] = user.asker
                    return
        except CannotReview as error:
            raise Problem(503, f"the token cannot be checked now: {error}", retry_after=1) from error
        raise Problem(403, f"user {user.name} may not {_named(scope)}")


def _ensure_certified(scope: Scope) -> None:
    """Raises Problem (401) if the client showed no certificate, or one that has since expired."""
    until: float = scope["state"]["client_valid_until"]
    if not until:
        raise Problem(401, "kube-scheduler's verbs take a client certificate", closes=True)
    if until < time.time():
        raise Problem(401, "the client certificate has expired", closes=True)


def _token_of(scope: Scope) -> str:
    """Returns the bearer token of a request. Raises Problem (401)."""
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1:
        raise Problem(401, "this takes one bearer token")
    kind, _, token = given[0].decode("latin-1").partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN:
        raise Problem(401, "this takes a bearer token")
    return token


def _ways_in(scope: Scope) -> list[dict[str, Any]]:
    """Returns the rights any one of which allows a request."""
    path: str = scope["path"]
    by_path = {"path": path if path == METRICS else PREFIX + path, "verb": scope["method"].lower()}
    namespaced = NAMESPACED.fullmatch(path)
    if not namespaced:
        return [{"nonResourceAttributes": by_path}]
    quotas = {
        "namespace": namespaced[1],
        "verb": "get",
        "group": "scheduling.x-k8s.io",
        "resource": "elasticquotas",
    }
    return [{"resourceAttributes": quotas}, {"nonResourceAttributes": by_path}]


def _named(scope: Scope) -> str:
    """Describes a request as a right."""
    *_, last = _ways_in(scope)
    right = last["nonResourceAttributes"]
    text = f"{right['verb']} the URL {right['path']}"
    namespaced = NAMESPACED.fullmatch(scope["path"])
    return f"get elasticquotas in namespace {namespaced[1]}, nor {text}" if namespaced else text


async def _answer(problem: Problem, send: Send) -> None:
    reply = Reply.of(problem)
    if problem.status == 401:  # noqa: PLR2004 - HTTP Unauthorized
        reply = reply._replace(headers=(*reply.headers, (b"www-authenticate", b"Bearer")))
    await reply.send(send)
