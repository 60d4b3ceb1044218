"""Opens the gates of all pods, and starts all Jobs that wait, using the API server alone: no rule is asked."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Generic, TypeVar

import aiohttp
import msgspec
from msgspec import Struct

from app.actuators.kubernetes import KubernetesActuator
from app.actuators.protocol import ActionFailed
from app.job_kinds import SHIPPED, Row
from app.kube.client import KubeClient
from app.kube.definitions import UNANSWERED, Served, served
from app.kube.said import said
from app.store.custom_jobs import JobReader
from app.store.heeded import QUEUED
from app.store.jobs import JOBS, JobObject, elasticity, may_be_started
from app.store.kind import Kind
from app.store.namespaces import NAMESPACES
from app.store.pod_object import PodObject, PodSpec
from app.store.pods import PODS, gate_of
from policy.objects.pod import Pod, StandsFor
from policy.objects.resources import NOTHING

AT_ONCE = 32
"""Writes at a time."""
PAGE = 500
PASSES = 5
"""Maximum number of passes over the objects: new ones may appear while the policy is in force."""
AGAIN = (
    "it is suspended again at once: first take the label quotaward.dev/jobs from its namespace, or delete the policies"
    " of manifests/jobs/queued"
)


class CannotList(Exception):
    """The objects could not be listed, or the namespace does not exist; the text says why."""


Item = TypeVar("Item")


class _ListMeta(Struct, gc=False):
    continue_: str = msgspec.field(name="continue", default="")


class ObjectList(Struct, Generic[Item], gc=False):
    """A page of a list."""

    metadata: _ListMeta
    items: list[Item]


@dataclass(frozen=True, slots=True)
class Work(Generic[Item]):
    """Objects of a kind to release, found by a query. ``take`` returns what is written, None for other objects.

    ``act`` writes it. ``undone`` is said of an object that is as before although it was written. A kind that is
    ``optional`` need not be installed.
    """

    kind: Kind
    query: dict[str, str]
    items: type[ObjectList[Item]]
    take: Callable[[Item], Pod | None]
    act: Callable[[KubernetesActuator, Pod], Awaitable[None]]
    undone: str
    optional: bool = False


def _pod_at_our_gate(obj: PodObject) -> Pod | None:
    """Returns a pod that has our gate, even among others."""
    meta, at = obj.metadata, gate_of(obj.spec or PodSpec())
    return Pod(meta.uid or "", meta.namespace or "", meta.name, NOTHING, gate=at) if at >= 0 else None


def _suspended_for_us(obj: JobObject) -> Pod | None:
    """Returns a Job that is suspended, or elastic and runs with too few pods, as a stand-in that requests nothing.

    Nobody else has to start it. An elastic one gets as many pods as its user asks for: nobody lets it grow later.
    """
    meta, spec = obj.metadata, obj.spec
    if spec is None or not may_be_started(obj):
        return None
    parallelism, asked, least, _ = elasticity(obj)
    grows = not spec.suspend
    if grows and parallelism == asked:
        return None
    job = StandsFor(
        *(meta.name, meta.uid or "", parallelism, asked), least=least, asked=asked, granted=asked, grows=grows
    )
    return Pod(meta.uid or "", meta.namespace or "", meta.name, NOTHING, stands_for=job)


GATES = Work(
    kind=PODS,
    query={"fieldSelector": "spec.nodeName="},
    items=ObjectList[PodObject],
    take=_pod_at_our_gate,
    act=KubernetesActuator.open_gate,
    undone="its gate is still there",
)
QUEUED_JOBS = Work(
    kind=JOBS,
    query={"labelSelector": f"{QUEUED}=true"},
    items=ObjectList[JobObject],
    take=_suspended_for_us,
    act=KubernetesActuator.start_job,
    undone=AGAIN,
)


def _of_kind(row: Row) -> Work[Any]:
    reader = JobReader(row)

    def suspended_for_us(obj: Any) -> Pod | None:
        meta, job = obj.metadata, reader.suspended(obj)
        return Pod(meta.uid or "", meta.namespace or "", meta.name, NOTHING, stands_for=job) if job else None

    query, structure = {"labelSelector": f"{QUEUED}=true"}, ObjectList[reader.structure]  # type: ignore[name-defined]
    act = KubernetesActuator.start_job
    return Work(reader.kind, query, structure, suspended_for_us, act, AGAIN, optional=True)


JOBS_OF_ALL_KINDS: tuple[Work[Any], ...] = (QUEUED_JOBS, *map(_of_kind, SHIPPED))
"""The Jobs that wait as a whole, and the jobs of the built-in kinds."""


async def release_all(
    works: Iterable[Work[Any]], kubeconfig: Path | None, namespace: str = ""
) -> tuple[int, list[str]]:
    """Releases all that waits of several kinds; returns its number, and the failures.

    Raises CannotConnect, CannotList.
    """
    number, failures = 0, list[str]()
    for work in works:
        done, failed = await release(work, kubeconfig, namespace)
        number, failures = number + done, failures + failed
    return number, failures


async def release(work: Work[Item], kubeconfig: Path | None, namespace: str = "") -> tuple[int, list[str]]:
    """Releases all that waits in a namespace or everywhere; returns its number, and the failures.

    Raises CannotConnect, CannotList.
    """
    client = await KubeClient.connect(kubeconfig)
    try:
        if work.optional and await _is_missing(client, work.kind):
            return 0, []
        done, failed = set[str](), dict[str, str]()
        for _ in range(PASSES):
            failed, tried = {}, 0
            async for found in _waiting(client, work, namespace):
                undone = {pod.uid: f"{pod.namespace}/{pod.name}: {work.undone}" for pod in found if pod.uid in done}
                pods = [pod for pod in found if pod.uid not in undone]
                failures = await _write(KubernetesActuator(client), work, pods)
                tried += len(pods)
                done |= {pod.uid for pod in pods} - failures.keys()
                failed |= undone | failures
            if not tried:
                break
        if namespace and not done and not failed:
            await _look_whether_there_is(client, namespace)
        return len(done - failed.keys()), list(failed.values())
    finally:
        await client.close()


async def _is_missing(client: KubeClient, kind: Kind) -> bool:
    """Whether a kind is not installed. Raises CannotList."""
    try:
        return await served(client, kind) is Served.NO
    except UNANSWERED as error:
        raise CannotList(f"the {kind.plural} cannot be listed: {error}") from error


async def _look_whether_there_is(client: KubeClient, namespace: str) -> None:
    """Raises CannotList if the namespace does not exist. Ignores that it may not be read."""
    # The API server lists no pods for an unknown namespace, which looks as if all were released.
    with suppress(aiohttp.ClientError, OSError):
        async with client.get(NAMESPACES.path_of("", namespace), {}, read_timeout=30) as response:
            if response.status == HTTPStatus.NOT_FOUND:
                raise CannotList(f"there is no namespace {namespace}")


async def _write(actuator: KubernetesActuator, work: Work[Item], pods: list[Pod]) -> dict[str, str]:
    """Releases these, a few at a time; returns the failures by UID."""
    seats, failures = asyncio.Semaphore(AT_ONCE), dict[str, str]()

    async def write(pod: Pod) -> None:
        async with seats:
            try:
                await work.act(actuator, pod)
            except ActionFailed as failure:
                failures[pod.uid] = f"{pod.namespace}/{pod.name}: {failure}"

    async with asyncio.TaskGroup() as group:
        for pod in pods:
            group.create_task(write(pod))
    return failures


async def _waiting(client: KubeClient, work: Work[Item], namespace: str) -> AsyncIterator[list[Pod]]:
    """Yields what is to be released, page by page. Raises CannotList."""
    root, _, plural = work.kind.path.rpartition("/")
    path = f"{root}/namespaces/{namespace}/{plural}" if namespace else work.kind.path
    query = work.query | {"limit": str(PAGE)}
    while True:
        try:
            async with client.get(path, query, read_timeout=30) as response:
                body = await response.read()
                if response.status != HTTPStatus.OK:
                    raise CannotList(f"the API server answered {response.status}: {said(body)}")
            page = msgspec.json.decode(body, type=work.items)
        except (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError) as error:
            raise CannotList(f"the {plural} cannot be listed: {error}") from error
        yield [pod for obj in page.items if (pod := work.take(obj)) is not None]
        if not page.metadata.continue_:
            return
        query["continue"] = page.metadata.continue_
