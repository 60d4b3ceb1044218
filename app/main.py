"""Puts the application together, and runs it until stopped."""

import asyncio
import gc
import json
import platform
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import structlog
from fastapi import FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic.alias_generators import to_camel
from starlette.exceptions import HTTPException

from app.access.certificates import Certificates
from app.access.gate import Gate, Reviewing
from app.actuators.protocol import Actuator
from app.actuators.recording import RecordingActuator
from app.api import admission, health, routes, whatif
from app.bodies import BodyMemory
from app.client import DEFAULT_SERVER
from app.controllers.deadlines import Deadlines
from app.controllers.divide import Divide
from app.controllers.gates import Gates
from app.controllers.moves import Moves
from app.controllers.outlived import Outlived
from app.controllers.queue_status import QueueStatus
from app.controllers.reclaim.reclaim import Reclaim
from app.controllers.refusals import Refusals
from app.controllers.reserve import Reserve
from app.controllers.resource_quota import ResourceQuotas
from app.controllers.run_times import RunTimes
from app.controllers.status import Status
from app.controllers.unjudged import Unjudged
from app.controllers.wake import Wake
from app.extender.endpoints import Extender
from app.extender.verbs import Answering, Verb, WaitedFor, WaitingVerb
from app.front import Application
from app.garbage import spare_what_stays
from app.history.recorder import Recorder
from app.inert import say
from app.observability import metrics
from app.problems import Problem
from app.questions import Questions
from app.readiness import Readiness
from app.serving.server import Server, listen
from app.settings import InvalidSettings, Settings
from app.sources.manifests import ManifestSource
from app.store.kinds import kinds_with
from app.store.store import TICK, Store
from app.version import commit, version
from app.web import routes as web
from app.whatif.expected_starts import ExpectedStarts
from app.whatif.service import Trials
from policy.cluster.cluster import Cluster

log = structlog.get_logger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]
Lead = Callable[[Work], Coroutine[Any, Any, None]]


def cluster_of(settings: Settings, settle_time: float) -> Cluster:
    """Makes an empty cluster with the rules and times of these settings."""
    return Cluster(
        settings.rules,
        grant_lifetime=settings.grants.lifetime,
        settle_time=settle_time,
        patience=settings.claims.patience,
        hold_time=settings.gangs.hold_time,
        gate_patience=settings.gates.patience,
        start_patience=settings.jobs.start_patience,
        overdue_after=settings.overdue.after,
        stuck_after=settings.reclaim.stuck_after,
        reclaim_backoff=settings.reclaim.backoff,
    )


TOKEN = Security(HTTPBearer(auto_error=False, description="A token of Kubernetes; loopback takes none."))
"""The description of access. It is checked by app.access.gate, before a request comes here."""


def _operation_id(route: APIRoute) -> str:
    """Returns the name of an operation, as clients that are generated call it: ``listQueues``."""
    return to_camel(route.name)


def application(readiness: Readiness, extender: Extender, settings: Settings) -> Application:
    """Builds the HTTP application: kube-scheduler's verbs, REST, health and metrics."""
    app = Application(
        title="Quotaward",
        description="Elastic quotas for a stock kube-scheduler.",
        version=version(),
        generate_unique_id_function=_operation_id,
        docs_url=None,  # they would load their files from other hosts
        redoc_url=None,
    )
    metrics.BUILD.labels(version(), commit(), platform.python_version()).set(1)
    app.state.store = readiness.store
    app.state.readiness = readiness
    app.state.settings = settings
    app.state.decisions = extender.decisions
    app.state.recorder = Recorder(readiness.store, extender.decisions)
    app.state.trials = Trials(readiness.store, settings)
    app.state.expected_starts = ExpectedStarts(readiness.store, settings)
    app.state.room = BodyMemory(settings.gates.body_limit)
    at_once: dict[str, Answering] = {
        "filter": extender.filter,
        "prioritize": extender.prioritize,
        "preempt": extender.preempt,
    }
    bind: WaitedFor = extender.bind
    if settings.leader.only_leader_answers:
        at_once = {name: readiness.for_leader(answer) for name, answer in at_once.items()}
        bind = readiness.for_leader(bind)
    limit = settings.extender.body_limit
    app.verbs = {f"/extender/{name}": Verb(name, answer, limit) for name, answer in at_once.items()}
    app.verbs["/extender/bind"] = WaitingVerb("bind", bind, limit)
    app.include_router(routes.router, tags=["state"], dependencies=[TOKEN])
    app.include_router(whatif.router, tags=["what if"], dependencies=[TOKEN])
    app.include_router(admission.router)
    app.include_router(health.router, tags=["health"], dependencies=[TOKEN])
    app.include_router(health.probes, tags=["health"])
    web.install(app)
    app.add_middleware(Questions, limit=settings.whatif.body_limit)
    _answer_with_problems(app)
    return app


def probe_application(readiness: Readiness) -> FastAPI:
    """Builds an application of health and readiness only, for a kubelet that cannot reach loopback."""
    app = FastAPI(openapi_url=None)
    app.state.readiness = readiness
    app.include_router(health.probes)
    _answer_with_problems(app)
    return app


async def serve(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT. Raises CannotConnect, InvalidSettings, or OSError for an unusable address."""
    settle = 0.0 if settings.manifests else settings.store.settle_time
    store = Store(
        cluster_of(settings, settle),
        max_staleness=settings.store.max_staleness,
        settle_time=settle,
        kinds=kinds_with(settings.jobs.rows),
    )
    async with AsyncExitStack() as stack:
        plain, tls, probed = (
            stack.enter_context(listen(address)) if address else None
            for address in (settings.plain_listen, settings.tls_listen, settings.probe_listen)
        )
        certificates = Certificates(settings.tls) if settings.tls else None
        actuator: Actuator
        read_earlier: Callable[[Recorder], Coroutine[Any, Any, None]] | None = None
        reviews: Reviewing | None = None
        readiness = Readiness(store)
        if settings.manifests:
            if not settings.manifests.is_dir():
                raise InvalidSettings(f"manifests: {settings.manifests} is not a directory")
            actuator = RecordingActuator(store)
            lead: Lead = _alone
            source = ManifestSource(settings.manifests, store, settings.groups.legacy)
            follow = source.follow()
            if settings.plain_listen:
                with suppress(OSError):  # it may go unread
                    _show_example(source, settings)
        else:
            # the official client takes a second to import, and is not needed where there is no cluster
            from app.access.reviews import Reviews  # noqa: PLC0415
            from app.actuators.kubernetes import KubernetesActuator  # noqa: PLC0415
            from app.history.earlier import EarlierEvictions  # noqa: PLC0415
            from app.kube.client import KubeClient  # noqa: PLC0415
            from app.kube.lease import Lease  # noqa: PLC0415
            from app.sources import kubernetes  # noqa: PLC0415

            client = await KubeClient.connect(settings.kubeconfig)
            stack.push_async_callback(client.close)
            actuator = writer = KubernetesActuator(client)
            stack.push_async_callback(writer.finish)
            reviews = Reviews(client)
            lease = Lease(client, settings.leader)
            lead = lease.lead
            read_earlier = EarlierEvictions(store.cluster, client).run
            if settings.leader.only_leader_answers:
                readiness.leads = lambda: lease.leads
            follow = kubernetes.follow(client, store, settings.groups, keeps=settings.crds.missing == "refuse")
        extender = Extender(
            store,
            actuator,
            observe=settings.observes,
            respect_budgets=settings.preemption.pdb == "respect",
            gives_notice=settings.reclaim.notice > 0,
            apart=settings.prioritize.borrowers_apart,
            of_folder=settings.manifests is not None,
        )
        app = application(readiness, extender, settings)
        background = [
            follow,
            _tick(store),
            Divide(store).run(),
            _freeze_once_synced(store),
            *_recording(app.state.recorder, store.cluster, settings.history.prometheus),
            *([read_earlier(app.state.recorder)] if read_earlier is not None else ()),
        ]
        if settings.active_controllers or settings.leader.only_leader_answers:
            background.append(_lead_once_synced(store, lead, partial(_control, store, actuator, settings)))
        servers = [Server(app, plain, app.at_once)] if plain is not None else []
        servers += [Server(probe_application(readiness), probed)] if probed is not None else []
        if tls is not None and certificates is not None:
            background.append(certificates.follow())
            gate = Gate(app, reviews)
            servers.append(Server(gate, tls, gate.at_once, certificates.context))
        await _run(servers, background, readiness)


def _recording(recorder: Recorder, cluster: Cluster, prometheus: str | None) -> Iterator[Coroutine[Any, Any, None]]:
    """Yields what records the history, and asks a Prometheus for the time before the start."""
    yield recorder.run()
    if prometheus is not None:
        from app.history.prometheus import Restorer  # noqa: PLC0415 - aiohttp takes long to load

        yield Restorer(recorder, cluster, prometheus).run()


def _show_example(source: ManifestSource, settings: Settings) -> None:
    """Prints the address, and two questions about a waiting pod: a person's, and kube-scheduler's."""
    url = f"http://{settings.plain_listen}"
    say(f"Quotaward serves {settings.manifests} on {url}, where you also find its page")
    question = source.example_question()
    if question:
        pod = json.loads(question)["Pod"]["metadata"]
        server = "" if url == DEFAULT_SERVER else f" --server {url}"
        say(
            "In another terminal, ask it why a pod waits, and what it answers kube-scheduler:",
            f"  {shlex.quote(sys.argv[0])} explain {pod['namespace']}/{pod['name']}{server}",
            f"  curl -s {url}/extender/filter -d {shlex.quote(question)}",
        )


async def _run(servers: list[Server], background: list[Coroutine[Any, Any, None]], readiness: Readiness) -> None:
    """Runs until a signal, or until a background task fails: a half-alive process helps nobody."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tasks = [asyncio.create_task(coroutine) for coroutine in (*background, stop.wait())]
    serving = [asyncio.create_task(server.run_until_stopped()) for server in servers]
    done, _ = await asyncio.wait([*tasks, *serving], return_when=asyncio.FIRST_COMPLETED)
    readiness.stopping = True
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*serving)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
    log.info("stopped")


async def _alone(work: Work) -> None:
    """Leads at once, as there is no other replica."""
    metrics.LEADER.set(1)
    await work()


async def _lead_once_synced(store: Store, lead: Lead, work: Work) -> None:
    """Leads once the store is complete: another replica may be complete already."""
    while not store.synced:
        await asyncio.sleep(TICK)
    await lead(work)


async def _control(store: Store, actuator: Actuator, settings: Settings) -> None:
    """Runs the enabled controllers."""
    controllers: dict[str, Work] = {
        "events": partial(
            _together,
            Refusals(store, actuator).run,
            Deadlines(store, actuator).run,
            RunTimes(store, actuator).run,
            Unjudged(store, actuator).run,
        ),
        "gates": Gates(store, actuator, settings.gates, settings.jobs).run,
        "reclaim": partial(
            _together,
            Reclaim(store, actuator, settings.reclaim).run,
            Outlived(store, actuator, settings.run_time).run,
        ),
        "reserve": Reserve(store, actuator, settings.reserve.terms).run,
        "resource_quota": ResourceQuotas(store, actuator, enabled=settings.quota_manager.enabled).run,
        "status": partial(
            _together, Status(store, actuator).run, QueueStatus(store, actuator).run, Moves(store, actuator).run
        ),
        "wake": Wake(store, actuator).run,
    }
    async with asyncio.TaskGroup() as group:
        for name in sorted(settings.active_controllers):
            group.create_task(controllers[name](), name=f"controller {name}")
        group.create_task(asyncio.Event().wait(), name="lead, also without controllers")


async def _together(*parts: Work) -> None:
    """Runs the parts of one controller."""
    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(part())


async def _tick(store: Store) -> None:
    while True:
        await asyncio.sleep(TICK)
        store.tick()


async def _freeze_once_synced(store: Store) -> None:
    """Excludes lasting objects from garbage collection once the store is complete, then waits forever."""
    while not store.synced:
        await asyncio.sleep(TICK)
    gc.collect()
    spare_what_stays()
    await asyncio.Event().wait()


def _answer_with_problems(app: FastAPI) -> None:
    """Answers every error with a problem document."""

    def answer(problem: Problem) -> Response:
        return Response(problem.body(), problem.status, problem.headers())

    @app.exception_handler(Problem)
    async def _problem(_: Request, error: Problem) -> Response:
        return answer(error)

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> Response:
        response = answer(Problem(error.status_code, str(error.detail)))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return answer(Problem(422, first["msg"], field=".".join(str(part) for part in first["loc"])))

    @app.exception_handler(Exception)
    async def _own(_: Request, error: Exception) -> Response:
        log.error("request failed", exc_info=error)
        return answer(Problem(500, "an error of Quotaward's own; its log has the details"))
