"""The routes of the page and of a pod's explanation, with their live updates and static files."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from jinja2 import Environment
from markupsafe import Markup
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.api.explanations import ENDED, in_words
from app.api.models import ExplanationModel
from app.api.routes import explain_job, explain_job_of_kind, explain_pod, store_of
from app.pause import Pause
from app.problems import Problem
from app.questions import asker_of
from app.readiness import Readiness
from app.settings import Settings
from app.web import pages
from app.web.board import Board, Fragment
from app.web.figures import MEANINGS
from app.web.live import Live
from app.web.notifier import Notifier
from app.web.overview import Overview
from app.web.rendering import DOCS_HEADERS, EVENTS, HEADERS, environment, error_page, in_chunks
from app.web.waiting import Crowds, Waiting, name_of
from policy.cluster.cluster import Cluster
from policy.explain.verdicts import verdict_on
from policy.nodes import fit
from policy.objects.job_kind import JOB
from policy.objects.pod import Pod
from policy.objects.queued_job import PREFIX
from policy.preemption import plan_text
from policy.stepwise import at_once

SLICE = 100
"""Rows that are filtered between two pauses."""
CHOICES = {
    "": "all",
    "waiting": "with pods that wait",
    "borrowing": "borrowing",
    "full": "full",
    "beyond": "above their limit",
    "problem": "with a problem",
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Web:
    """The parts that make the page."""

    board: Board
    live: Live
    templates: Environment

    @classmethod
    def over(cls, readiness: Readiness, settings: Settings, decisions: Iterable[Any] = ()) -> Self:
        """Builds a page of this replica's store, and of the latest decisions, the latest first."""
        templates = environment()

        def render(template: str, variables: dict[str, Any]) -> str:
            return templates.get_template(f"{template}.html").render(variables)

        notifier = Notifier()
        readiness.store.cluster.changes.subscribers.append(notifier.notify)
        board = Board(Overview(readiness.store, settings, decisions).look, render, notifier)
        return cls(board, Live(board, notifier, lambda: readiness.stopping), templates)


@dataclass(frozen=True, slots=True)
class Choice:
    """The rows that are requested: by a part of a name, and by a state."""

    text: str
    state: str

    @classmethod
    def of(cls, text: str, state: str) -> Self:
        """Builds a choice from a request; an unknown state selects all."""
        return cls(text[:200].strip(), state if state in CHOICES else "")

    def shown(self, row: Fragment) -> Markup:
        """Returns the row, hidden if it does not match."""
        names = row.part.model.names
        included = self.names(*names) and (not self.state or self.state in row.part.model.states)
        return row.html if included else Markup("<li hidden") + row.html.removeprefix("<li")

    def names(self, *names: str) -> bool:
        """Whether one of the names contains the text."""
        return any(self.text.lower() in name.lower() for name in names)


def install(app: FastAPI) -> None:
    """Adds the page to an application that has its store and its settings."""
    app.state.web = Web.over(app.state.readiness, app.state.settings, getattr(app.state, "decisions", ()))
    app.include_router(router)
    app.include_router(pages.router)
    app.mount("/static", _Files(directory=Path(__file__).parent / "static"))


@router.get("/")
async def show_page(request: Request, q: str = "", show: str = "") -> Response:
    """Shows quotas, queues and waiting pods. Rows that do not match are hidden, so that a script can show them."""
    web: Web = request.app.state.web
    await web.board.refresh()
    choice = Choice.of(q, show)
    page = web.templates.get_template("page.html").generate(
        board=web.board,
        version=web.board.version,
        now=time.time(),
        live_of="",
        choice=choice,
        choices=CHOICES.items(),
        waiting=await _waiting(request, choice),
        quotas=await _shown(web.board.rows("quotas"), choice),
        queues=await _shown(web.board.rows("queues"), choice),
    )
    return StreamingResponse(in_chunks(page), media_type="text/html", headers=HEADERS)


@router.get("/waiting")
async def show_waiting(request: Request, q: str = "") -> Response:
    """Shows the waiting pods as a part of the page. The first that match may differ from the first of all."""
    await request.app.state.web.board.refresh()
    return HTMLResponse(await _waiting(request, Choice.of(q, "")), headers=HEADERS)


@router.get("/live")
async def follow_page(request: Request, since: str = "") -> Response:
    """Sends the changes of the page as events."""
    web: Web = request.app.state.web
    return StreamingResponse(
        web.live.page(request.headers.get("last-event-id", since), asker_of(request.scope)), headers=EVENTS
    )


@router.get("/pods")
async def find_pod(name: str = "") -> Response:
    """Redirects to the explanation of a pod, NAMESPACE/NAME, or of a job that waits as a whole, NAMESPACE/job/NAME."""
    namespace, _, only = name.strip().partition("/")
    if not namespace or not only:
        return error_page(Problem(422, "a pod is named NAMESPACE/NAME, a Job NAMESPACE/job/NAME"), root=".")
    kind, is_job, job = only.partition("/")
    parts = ["pods", namespace, only]
    if kind and is_job:
        parts = ["jobs", namespace, *(() if kind == JOB.name.lower() else (kind,)), job]
    return RedirectResponse("/".join(quote(part, safe="") for part in parts), 303, HEADERS)


@router.get("/pods/{namespace}/{name}")
async def show_pod(namespace: str, name: str, request: Request) -> Response:
    """Explains why a pod is admitted or not."""
    version = _state_of(request.app.state.store.cluster, namespace, name)
    try:
        explanation = await explain_pod(namespace, name, request, await store_of(request))
    except Problem as problem:
        return error_page(problem, root="../..")
    return _explained(request, explanation, f"{namespace}/{name}", "pods", version)


@router.get("/jobs/{namespace}/{name}")
async def show_job(namespace: str, name: str, request: Request) -> Response:
    """Explains why a Job that waits as a whole is started or not."""
    version = _state_of(request.app.state.store.cluster, namespace, f"{PREFIX}{name}")
    try:
        explanation = await explain_job(namespace, name, request, await store_of(request))
    except Problem as problem:
        return error_page(problem, root="../..")
    return _explained(request, explanation, f"Job {namespace}/{name}", "jobs", version)


@router.get("/jobs/{namespace}/{kind}/{name}")
async def show_job_of_kind(namespace: str, kind: str, name: str, request: Request) -> Response:
    """Explains the same of a job of another kind."""
    version = _state_of(request.app.state.store.cluster, namespace, f"{kind}/{name}")
    try:
        explanation = await explain_job_of_kind(namespace, kind, name, request, await store_of(request))
    except Problem as problem:
        return error_page(problem, root="../../..")
    return _explained(request, explanation, f"{kind} {namespace}/{name}", "jobs", version, kind)


def _explained(
    request: Request, explanation: ExplanationModel, title: str, of: str, version: str, kind: str = ""
) -> Response:
    """Renders an explanation. ``of``: what it explains, as in the path of the page. ``kind``: that of a job, if any."""
    web: Web = request.app.state.web
    figures = dict.fromkeys(figure for row in explanation.numbers.values() for figure in row)
    text = web.templates.get_template("pod.html").render(
        root="../../.." if kind else "../..",
        version=version,
        now=time.time(),
        live_of="/"
        + "/".join(quote(part, safe="") for part in (of, explanation.namespace, kind, explanation.name) if part),
        title=title,
        pod=explanation,
        verdict=in_words(explanation.verdict),
        ended=ENDED.get(explanation.searched, ""),
        figures={figure: MEANINGS[figure] for figure in figures},
        meanings=MEANINGS,
    )
    is_known = explanation.verdict != "unknown" or explanation.evicted is not None
    return HTMLResponse(text, 200 if is_known else 404, HEADERS)


@router.get("/live/pods/{namespace}/{name}")
async def follow_pod(namespace: str, name: str, request: Request, since: str = "") -> Response:
    """Sends an event when the explanation of a pod has changed."""
    web: Web = request.app.state.web
    state = partial(_state_of, request.app.state.store.cluster, namespace, name)
    return StreamingResponse(web.live.pod(state, since, asker_of(request.scope)), headers=EVENTS)


@router.get("/live/jobs/{namespace}/{name}")
async def follow_job(namespace: str, name: str, request: Request, since: str = "") -> Response:
    """Sends an event when the explanation of a Job has changed."""
    return await follow_pod(namespace, f"{PREFIX}{name}", request, since)


@router.get("/live/jobs/{namespace}/{kind}/{name}")
async def follow_job_of_kind(namespace: str, kind: str, name: str, request: Request, since: str = "") -> Response:
    """Sends an event when the explanation of a job of another kind has changed."""
    return await follow_pod(namespace, f"{kind}/{name}", request, since)


@router.get("/docs")
async def show_docs(request: Request) -> Response:
    """Shows the description of REST."""
    web: Web = request.app.state.web
    return HTMLResponse(web.templates.get_template("docs.html").render(), headers=DOCS_HEADERS)


class _Files(StaticFiles):
    """Static files, ours and bundled ones, with the headers of the page. Browsers ask whether they have changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS | {"cache-control": "no-cache"})
        return response


async def _shown(rows: list[Fragment], choice: Choice) -> list[Markup]:
    """Returns the rows of a list, hidden where they do not match."""
    shown = []
    for index, row in enumerate(rows, start=1):
        shown.append(choice.shown(row))
        if index % SLICE == 0:
            await asyncio.sleep(0)
    return shown


async def _waiting(request: Request, choice: Choice) -> Markup:
    """Renders the waiting pods; if names are requested, the first that match."""
    web: Web = request.app.state.web
    if not choice.text:
        return web.board.html("waiting")
    cluster: Cluster = request.app.state.store.cluster

    def is_meant(pod: Pod) -> bool:
        return choice.names(f"{pod.namespace}/{name_of(pod)}", cluster.queue_of(pod))

    settings: Settings = request.app.state.settings
    crowds, pause = Crowds(observe=settings.observes), Pause()
    for namespace in {pod.namespace for pod in cluster.pending.values()}:
        for _ in crowds.count_steps(cluster, namespace, is_meant):
            await pause.if_due()
        await pause.if_due()
    shown = Waiting()
    for waiting in crowds.waiting(cluster):
        shown = waiting or shown
        await pause.if_due()
    template = web.templates.get_template("waiting.html")
    return Markup(template.render(id="waiting", part=shown))  # noqa: S704 - escaped by the template


def _state_of(cluster: Cluster, namespace: str, name: str) -> str:
    """Returns a hash that changes with the explanation of a pod, as far as that is known without a search for plans."""
    pod, awaited = cluster.pod(namespace, name), tuple[Any, ...]()
    if pod is not None and pod.pending:
        held = cluster.reservations.is_held_for(pod.uid)
        under_way = at_once(plan_text.for_pod_steps(cluster, pod)) if held else bool(fit.fits(cluster.table, pod).any())
        awaited = under_way, cluster.reservations.reserved.of_pod(pod.uid), cluster.generations.plans
    state = repr((verdict_on(cluster, namespace, name), awaited))
    return blake2b(state.encode(), digest_size=8).hexdigest()
