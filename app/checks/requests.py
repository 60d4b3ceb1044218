"""Requests to the API server whose failures are findings: ``quotaward check --cluster``."""

import time
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

import aiohttp
import msgspec

from app.kube.client import KubeClient
from app.store.kind import Kind
from app.times import rfc3339

TIMEOUT = 10.0
PAGE, MOST = 500, 5000
"""Objects of a kind that are looked at: the first page of a list, and of the kinds that are checked together."""
BROKEN = (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError)


class Unreachable(Exception):
    """The API server does not answer; the text says why."""


async def get(client: KubeClient, path: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Returns status and document of an answer. Raises Unreachable."""
    try:
        async with client.get(path, query, read_timeout=TIMEOUT) as response:
            body = await response.read()
            document = msgspec.json.decode(body) if response.status == HTTPStatus.OK else {}
    except BROKEN as reason:
        raise Unreachable(words(reason)) from reason
    if response.status == HTTPStatus.UNAUTHORIZED:
        end = client.certificate_ends
        ended = f": the client certificate has ended at {rfc3339(end)}" if end and end < time.time() else ""
        raise Unreachable(f"it rejects these credentials (401){ended}")
    return response.status, document if isinstance(document, dict) else {}


async def ask(client: KubeClient, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Posts a question; returns status and document of the answer. Raises Unreachable."""
    try:
        status, answer = await client.send("POST", path, body, "application/json", timeout=TIMEOUT)
        document = msgspec.json.decode(answer) if status == HTTPStatus.CREATED else {}
    except BROKEN as reason:
        raise Unreachable(words(reason)) from reason
    return status, document


async def first_page(client: KubeClient, path: str, limit: int) -> tuple[int, list[Any]]:
    """Returns status and items of a list. Raises Unreachable."""
    status, document = await get(client, path, {"limit": str(limit)})
    return status, list(document.get("items") or ()) if status == HTTPStatus.OK else []


async def objects(client: KubeClient, kind: Kind, **query: str) -> list[Any]:
    """Returns the first page of a kind, decoded; objects that cannot be decoded are omitted. Raises Unreachable."""
    _status, document = await get(client, kind.path, {"limit": str(PAGE)} | query)
    return list(_decoded(kind, document.get("items") or ()))


async def all_objects(client: KubeClient, kind: Kind) -> list[Any] | None:
    """Returns all objects of a kind, decoded; None if they may not be read or are too many. Raises Unreachable."""
    status, document = await get(client, kind.path, {"limit": str(MOST)})
    if status == HTTPStatus.NOT_FOUND:
        return []
    if status != HTTPStatus.OK or (document.get("metadata") or {}).get("continue"):
        return None
    return list(_decoded(kind, document.get("items") or ()))


def _decoded(kind: Kind, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        try:
            yield kind.decoder.decode(msgspec.json.encode(item))
        except msgspec.MsgspecError:
            continue


def words(reason: Exception) -> str:
    """Says in one line why a request failed."""
    return " ".join((str(reason) or type(reason).__name__).split())
