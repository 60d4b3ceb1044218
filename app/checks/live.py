"""Checks a live cluster with some fifty requests: ``quotaward check --cluster``."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from app.checks.finding import Finding, error, info, warning
from app.checks.folder import resource_findings
from app.checks.rights import Right, rights, rights_to_delete, rights_to_start_jobs
from app.kube.client import KubeClient
from app.settings import LeaderSettings, Settings
from app.sources import others
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.heeded import JOBS_WAIT
from app.store.kind import Kind
from app.store.kinds import KINDS, SUCCESSORS
from app.store.namespaces import NAMESPACES
from app.store.nodes import NODES
from app.store.pods import PODS
from app.store.queues import QUEUES
from app.store.reservations import RESERVATIONS
from policy.quota.rules import named_in

TIMEOUT = 10.0
PAGE = 500
"""Objects of a kind that are checked: the first page of a list."""
AT_ONCE = 8
OURS = (ELASTIC_QUOTAS, QUEUES, RESERVATIONS)
"""Kinds whose definitions come with Quotaward."""
BROKEN = (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError)


class Unreachable(Exception):
    """The API server does not answer; the text says why."""


@dataclass(slots=True)
class Live:
    """The findings in a cluster. ``there`` are the resources that its nodes list."""

    findings: list[Finding] = field(default_factory=list)
    there: set[str] = field(default_factory=set)


async def cluster(kubeconfig: Path | None, settings: Settings) -> Live:
    """Checks the cluster of a kubeconfig file, or the one that ``serve`` would use. Raises CannotConnect."""
    client = await KubeClient.connect(kubeconfig)
    live = Live()
    try:
        for look in (_definitions, _resources, _rights, _leader, _schedulers, _events, _others):
            await look(client, settings, live)
    except Unreachable as reason:
        live.findings.append(error(f"the API server cannot be queried: {reason}"))
    finally:
        await client.close()
    return live


async def _definitions(client: KubeClient, _: Settings, live: Live) -> None:
    """Checks which kinds are installed and may be listed."""
    for kind in KINDS:
        status, _items = await _list(client, kind.path, 1)
        if status == HTTPStatus.NOT_FOUND and kind in OURS:
            live.findings.append(
                warning(f"{kind.name} of {kind.group} is not installed: kubectl apply -k manifests/crds")
            )
        elif status == HTTPStatus.NOT_FOUND and kind.label not in SUCCESSORS:
            live.findings.append(info(f"{kind.name} of {kind.group} is not installed"))
        elif status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            live.findings.append(error(f"{kind.label} cannot be listed: the API server answers {status}"))


async def _resources(client: KubeClient, _: Settings, live: Live) -> None:
    """Finds resources that quotas and queues name but no node lists."""
    for node in await _objects(client, NODES):
        if node.status is not None:
            live.there.update(node.status.allocatable or ())
    for kind in (ELASTIC_QUOTAS, QUEUES):
        for obj in await _objects(client, kind):
            key = kind.key(obj.metadata)
            name = key if isinstance(key, str) else "/".join(key)
            live.findings += resource_findings(f"{kind.name} {name}", obj, live.there)


async def _rights(client: KubeClient, settings: Settings, live: Live) -> None:
    """Finds rights that Quotaward needs and these credentials lack."""
    seats = asyncio.Semaphore(AT_ONCE)

    async def lacks(right: Right) -> bool:
        async with seats:
            return not await _may(client, right)

    wanted = [
        *rights(settings.leader),
        *rights_to_delete(settings.reclaim),
        *rights_to_start_jobs(needed=await _some_queue_jobs(client), rows=settings.jobs.rows),
    ]
    missing = [
        right for right, lacking in zip(wanted, await asyncio.gather(*map(lacks, wanted)), strict=True) if lacking
    ]
    for right in missing:
        if right.needed:
            live.findings.append(error(f"these credentials may not {right}: see {right.given_by}"))
        else:
            live.findings.append(
                info(f"these credentials may not {right}; Quotaward works without that right (see {right.given_by})")
            )


async def _some_queue_jobs(client: KubeClient) -> bool:
    """Whether Jobs of some namespace are to wait as a whole. Raises Unreachable."""
    _status, document = await _get(client, NAMESPACES.path, {"labelSelector": f"{JOBS_WAIT}=queued", "limit": "1"})
    return bool(document.get("items"))


async def _may(client: KubeClient, right: Right) -> bool:
    attributes = {
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "verb": right.verb,
        "name": right.name,
        "namespace": right.namespace,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    try:
        status, answer = await client.send("POST", path, body, "application/json", timeout=TIMEOUT)
        return status == HTTPStatus.CREATED and bool(msgspec.json.decode(answer)["status"]["allowed"])
    except BROKEN as reason:
        raise Unreachable(_words(reason)) from reason


async def _leader(client: KubeClient, settings: Settings, live: Live) -> None:
    """Checks whether a replica holds the Lease."""
    leader: LeaderSettings = settings.leader
    where = f"Lease {leader.namespace}/{leader.name}"
    path = f"/apis/coordination.k8s.io/v1/namespaces/{leader.namespace}/leases/{leader.name}"
    status, document = await _get(client, path, {})
    if status == HTTPStatus.NOT_FOUND:
        live.findings.append(warning(f"{where} does not exist: no controllers have run"))
    elif status != HTTPStatus.OK:
        live.findings.append(info(f"{where} cannot be read: the API server answers {status}"))
    else:
        live.findings.append(_held(where, document.get("spec") or {}))


def _held(where: str, spec: dict[str, Any]) -> Finding:
    holder = spec.get("holderIdentity")
    if not holder:
        return warning(f"{where} has no holder: no controllers act")
    try:
        silent = (datetime.now(UTC) - msgspec.convert(spec.get("renewTime"), datetime)).total_seconds()
    except (msgspec.ValidationError, TypeError):
        return warning(f"{where} is held by {holder}, but its renewTime cannot be read")
    if silent > 2 * float(spec.get("leaseDurationSeconds") or 0):
        return warning(f"{where} is held by {holder}, which has not renewed it for {silent:.0f} s: no controllers act")
    return info(f"{where} is held by {holder}")


async def _schedulers(client: KubeClient, _: Settings, live: Live) -> None:
    """Counts the pods of each scheduler."""
    named: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    for pod in await _objects(client, PODS):
        name = (pod.spec and pod.spec.scheduler_name) or "default-scheduler"
        named[name] += 1
        waiting[name] += pod.spec is not None and not pod.spec.node_name
    if named:
        each = [f"{name} ({number}, of which {waiting[name]} wait)" for name, number in sorted(named.items())]
        live.findings.append(info(f"pods name these schedulers: {', '.join(each)}"))


async def _events(client: KubeClient, _: Settings, live: Live) -> None:
    """Checks whether the schedulers' events repeat Quotaward's answers."""
    query = {"fieldSelector": "reason=FailedScheduling", "limit": str(PAGE)}
    status, document = await _get(client, "/api/v1/events", query)
    if status != HTTPStatus.OK:
        live.findings.append(info(f"events cannot be read: the API server answers {status}"))
        return
    events = [event for event in document.get("items") or () if isinstance(event, dict)]
    by = sorted({str(event.get("reportingComponent") or "unknown") for event in events})
    ours = sum(bool(named_in(str(event.get("message")))) for event in events)
    if events:
        told = f"{len(events)} events of pods that were not scheduled, by {', '.join(by)}"
        live.findings.append(info(f"{told}: {ours} of them name a rule of Quotaward"))


async def _others(client: KubeClient, _: Settings, live: Live) -> None:
    """Finds objects that look as if they were read, but are not."""
    installed = {kind.label for kind in KINDS if (await _list(client, kind.path, 1))[0] != HTTPStatus.NOT_FOUND}
    followed = {label for label, successor in SUCCESSORS.items() if successor.label not in installed}
    try:
        live.findings += [warning(text) for text in await others.unread(client, followed)]
    except BROKEN as reason:
        raise Unreachable(_words(reason)) from reason


async def _objects(client: KubeClient, kind: Kind) -> Iterator[Any]:
    """Returns the first page of a kind, decoded; objects that cannot be decoded are omitted."""
    _status, items = await _list(client, kind.path, PAGE)
    return iter([obj for item in items if (obj := _decoded(kind, item)) is not None])


def _decoded(kind: Kind, item: Any) -> Any:
    try:
        return kind.decoder.decode(msgspec.json.encode(item))
    except msgspec.MsgspecError:
        return None


async def _list(client: KubeClient, path: str, limit: int) -> tuple[int, list[Any]]:
    status, document = await _get(client, path, {"limit": str(limit)})
    return status, list(document.get("items") or ()) if status == HTTPStatus.OK else []


async def _get(client: KubeClient, path: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Returns status and document of an answer. Raises Unreachable."""
    try:
        async with client.get(path, query, read_timeout=TIMEOUT) as response:
            body = await response.read()
            document = msgspec.json.decode(body) if response.status == HTTPStatus.OK else {}
    except BROKEN as reason:
        raise Unreachable(_words(reason)) from reason
    if response.status == HTTPStatus.UNAUTHORIZED:
        raise Unreachable("it rejects these credentials (401)")
    return response.status, document if isinstance(document, dict) else {}


def _words(reason: Exception) -> str:
    return " ".join((str(reason) or type(reason).__name__).split())
