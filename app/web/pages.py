"""The routes of the pages of a queue, a quota, a namespace, a node and a pod group, with their live updates."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from app.api.routes import store_of
from app.problems import Problem
from app.questions import asker_of
from app.web.asked import Asked
from app.web.figures import queue_row, quota_rows
from app.web.gang_page import gang_page
from app.web.node_page import node_page
from app.web.queue_pages import queue_page, queues_page
from app.web.quota_pages import namespace_page, quota_page
from app.web.rendering import EVENTS, HEADERS, environment, error_page, in_chunks
from app.web.subject import Subject
from policy.cluster.cluster import Cluster

LONGEST = 4096
"""Maximum length of the key of a row in a request."""

router = APIRouter(include_in_schema=False)


@router.get("/queues")
async def show_queues(request: Request) -> Response:
    """Shows all queues in a compact table."""
    return await _shown(request, queues_page, "queues")


@router.get("/queues/{name}")
async def show_queue(name: str, request: Request) -> Response:
    """Shows a queue with all below it."""
    return await _shown(request, queue_page, "queues", name)


@router.get("/quotas/{namespace}/{name}")
async def show_quota(namespace: str, name: str, request: Request) -> Response:
    """Shows an elastic quota."""
    return await _shown(request, quota_page, "quotas", namespace, name)


@router.get("/namespaces/{name}")
async def show_namespace(name: str, request: Request) -> Response:
    """Shows a namespace."""
    return await _shown(request, namespace_page, "namespaces", name)


@router.get("/nodes/{name}")
async def show_node(name: str, request: Request) -> Response:
    """Shows a node."""
    return await _shown(request, node_page, "nodes", name)


@router.get("/gangs/{namespace}/{kind}/{name}")
async def show_gang(namespace: str, kind: str, name: str, request: Request) -> Response:
    """Shows a pod group."""
    return await _shown(request, gang_page, "gangs", namespace, kind, name)


@router.get("/live/queues")
async def follow_queues(request: Request, since: str = "") -> Response:
    """Sends an event now and then: the figures of all queues cost too much to be watched."""
    state = partial(_state_of, request.app.state.store.cluster, "queues")
    return StreamingResponse(request.app.state.web.live.pod(state, since, asker_of(request.scope)), headers=EVENTS)


@router.get("/live/{what}/{names:path}")
async def follow_page_of(what: str, names: str, request: Request, since: str = "") -> Response:
    """Sends an event when the figures of such a page have changed."""
    if what not in FIGURES or names.count("/") != FIGURES[what][1]:
        return error_page(Problem(404, "there is no such page"), root=_root(names.count("/") + 2))
    state = partial(_state_of, request.app.state.store.cluster, what, *names.split("/"))
    return StreamingResponse(request.app.state.web.live.pod(state, since, asker_of(request.scope)), headers=EVENTS)


async def _shown(request: Request, page_of: Callable[..., Awaitable[Subject]], *path: str) -> Response:
    """Renders the page of an object, whose path is this."""
    root, state = _root(len(path) - 1) or ".", request.app.state
    cluster = state.store.cluster
    version = _state_of(cluster, *path)
    try:
        await store_of(request)
        pages = {key: text[:LONGEST] for key, text in request.query_params.items()}
        recorder, evictions = state.recorder, state.store.evictions
        asked = Asked(cluster, recorder, evictions, state.settings, state.expected_starts, time.time(), pages)
        subject = await page_of(asked, *path[1:])
    except Problem as problem:
        return error_page(problem, root=root)
    page = environment().get_template("subject.html")
    pieces = page.generate(
        root=root,
        version=version,
        now=time.time(),
        live_of="/" + "/".join(quote(part, safe="") for part in path),
        subject=subject,
    )
    return StreamingResponse(in_chunks(pieces), media_type="text/html", headers=HEADERS)


def _root(depth: int) -> str:
    return "/".join([".."] * depth)


def _queue_figures(cluster: Cluster, name: str = "") -> Any:
    return queue_row(cluster, name, 0) if name in cluster.queues else None


def _quota_figures(cluster: Cluster, namespace: str, _name: str = "") -> Any:
    return list(quota_rows(cluster, namespace, 0))


def _node_figures(cluster: Cluster, name: str) -> Any:
    site = cluster.table.site(name)
    return site and (site.node, sorted(site.pods))


def _gang_figures(cluster: Cluster, namespace: str, kind: str, name: str) -> Any:
    job = cluster.groups.job(namespace, f"{kind}/{name}")
    return job and (job.minimum, len(job.standing), len(job.granted), len(job.waiting))


FIGURES: dict[str, tuple[Callable[..., Any], int]] = {
    "queues": (_queue_figures, 0),
    "quotas": (_quota_figures, 1),
    "namespaces": (_quota_figures, 0),
    "nodes": (_node_figures, 0),
    "gangs": (_gang_figures, 2),
}
"""The figures of each kind of page that are watched, which cost little, and the slashes in its names."""


def _state_of(cluster: Cluster, what: str, *names: str) -> str:
    """Returns a hash that changes with the figures of a page. The list of who waits is not among them."""
    figures, _ = FIGURES[what]
    return blake2b(repr(figures(cluster, *names)).encode(), digest_size=8).hexdigest()
