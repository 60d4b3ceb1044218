"""Checks a live cluster with some fifty requests: ``quotaward check --cluster``."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from app.checks import webhooks
from app.checks.bounds import bound_findings
from app.checks.events import failed_evictions, pods_not_made, refused, unanswered
from app.checks.finding import Finding, error, info, warning
from app.checks.folder import resource_findings, resources_there
from app.checks.requests import BROKEN, MOST, PAGE, Unreachable, all_objects, ask, first_page, get, objects, words
from app.checks.rights import (
    EVERYTHING,
    OWN,
    RBAC,
    ROLES,
    Right,
    lack,
    nothing,
    rights,
    rights_to_delete,
    rights_to_start_jobs,
)
from app.kube.client import KubeClient
from app.settings import LeaderSettings, Settings
from app.sources import others
from app.store.device_classes import DEVICE_CLASSES
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.heeded import JOBS_WAIT
from app.store.kind import Kind
from app.store.kinds import KINDS, SUCCESSORS
from app.store.namespaces import NAMESPACES
from app.store.nodes import NODES
from app.store.pod_groups import POD_GROUPS
from app.store.pods import PODS
from app.store.quantities import InvalidObject
from app.store.queues import QUEUES
from app.store.reservations import RESERVATIONS
from app.store.resource_slices import RESOURCE_SLICES
from policy.cluster.cluster import Cluster
from policy.quota.rules import named_in

AT_ONCE = 8
OURS = (ELASTIC_QUOTAS, QUEUES, RESERVATIONS)
"""Kinds whose definitions come with Quotaward."""
OUR_PODS = "app.kubernetes.io/name=quotaward"
"""The label that all manifests put on its pods."""


@dataclass(slots=True)
class Live:
    """The findings in a cluster. ``there`` are the resources of its nodes.

    ``devices`` are its DeviceClasses and ResourceSlices. ``account`` is whose rights are checked; if it is empty, they
    are those of the credentials.
    """

    account: str = ""
    findings: list[Finding] = field(default_factory=list)
    there: set[str] = field(default_factory=set)
    devices: list[tuple[Kind, Any]] = field(default_factory=list)


async def cluster(kubeconfig: Path | None, settings: Settings, account: str = "") -> Live:
    """Checks the cluster of a kubeconfig file, or the one that ``serve`` would use. Raises CannotConnect."""
    client = await KubeClient.connect(kubeconfig)
    live = Live(account)
    try:
        for look in (_definitions, _devices, _resources, _bounds, _rights):
            await look(client, settings, live)
        for look in (_leader, _schedulers, _events, _webhooks, _others):
            await look(client, settings, live)
    except Unreachable as reason:
        live.findings.append(error(f"the API server cannot be queried: {reason}"))
    finally:
        await client.close()
    return live


async def _definitions(client: KubeClient, _: Settings, live: Live) -> None:
    """Checks which kinds are installed and may be listed."""
    for kind in KINDS:
        status, _items = await first_page(client, kind.path, 1)
        if status == HTTPStatus.NOT_FOUND and kind in OURS:
            remedy = "kubectl apply --server-side -k manifests/crds, and right after it your objects of that kind"
            live.findings.append(warning(f"{kind.name} of {kind.group} is not installed: {remedy}"))
        elif status == HTTPStatus.NOT_FOUND and kind.label not in SUCCESSORS:
            live.findings.append(info(f"{kind.name} of {kind.group} is not installed"))
        elif status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            live.findings.append(error(f"{kind.label} cannot be listed: the API server answers {status}"))


async def _devices(client: KubeClient, _: Settings, live: Live) -> None:
    """Reads the devices that nodes have by slices, and what they are called."""
    unread = []
    for kind in (DEVICE_CLASSES, RESOURCE_SLICES):
        items = await all_objects(client, kind)
        if items is None:
            unread.append(kind.label)
        live.devices += [(kind, each) for each in items or ()]
    if unread:
        text = "may not be read or are too many, so devices count here only as far as nodes list them"
        live.findings.append(info(f"{' and '.join(unread)} {text}"))


def _with_devices(settings: Settings, live: Live) -> Cluster:
    """Returns a cluster that has the devices and nothing else yet."""
    found = Cluster(settings.rules)
    for kind, obj in live.devices:
        kind.upsert(found, obj, 0.0)
    return found


async def _resources(client: KubeClient, settings: Settings, live: Live) -> None:
    """Finds resources that quotas and queues name but no node lists."""
    found = _with_devices(settings, live)
    for node in await objects(client, NODES):
        if node.status is not None:
            live.there.update(node.status.allocatable or ())
        with suppress(InvalidObject):
            NODES.upsert(found, node, 0.0)
    live.there |= resources_there(found)
    for kind in (ELASTIC_QUOTAS, QUEUES):
        for obj in await objects(client, kind):
            key = kind.key(obj.metadata)
            name = key if isinstance(key, str) else "/".join(key)
            live.findings += resource_findings(f"{kind.name} {name}", obj, live.there)


async def _bounds(client: KubeClient, settings: Settings, live: Live) -> None:
    """Checks what quotas, queues, namespaces and the first waiting pods say together, as those of a folder."""
    found = _with_devices(settings, live)
    for kind in (NODES, NAMESPACES, QUEUES, *POD_GROUPS, ELASTIC_QUOTAS):
        items = await all_objects(client, kind)
        if items is None:
            text = f"{kind.label} may not be read or are too many, so bounds are not compared with each other"
            live.findings.append(info(text))
            return
        for each in items:
            try:
                kind.upsert(found, each, 0.0)
            except InvalidObject as reason:
                live.findings.append(error(f"{kind.name} {each.metadata.name} cannot be used: {reason}"))
    for pod in await objects(client, PODS, fieldSelector="spec.nodeName="):
        with suppress(InvalidObject):
            PODS.upsert(found, pod, 0.0)
    live.findings += [
        error(f"ElasticQuota {quota.namespace}/{quota.name}: {problem}")
        for quotas in found.quotas.values()
        for quota in quotas.values()
        for problem in quota.errors
    ]
    live.findings += bound_findings(found)


async def _rights(client: KubeClient, settings: Settings, live: Live) -> None:
    """Finds rights that Quotaward needs and the account lacks, or these credentials, or those that Quotaward runs as.

    Credentials that may do everything are an administrator's, whose rights are not what matters.
    """
    accounts = [live.account]
    if not live.account and await _may(client, EVERYTHING, ""):
        accounts = await _accounts(client, settings)
        if not accounts:
            example = f"system:serviceaccount:{settings.leader.namespace}:quotaward-scheduler"
            text = f"these credentials may do everything; --as ACCOUNT checks the rights of another, such as {example}"
            live.findings.append(info(text))
            return
    jobs_wait = await _some_queue_jobs(client)
    wanted = [
        *rights(settings.leader, jobs_wait=jobs_wait),
        *rights_to_delete(settings.reclaim),
        *rights_to_start_jobs(needed=jobs_wait, rows=settings.jobs.rows),
    ]
    seats = asyncio.Semaphore(AT_ONCE)

    async def lacks(right: Right, account: str) -> bool:
        async with seats:
            return not await _may(client, right, account)

    for account in accounts:
        who = account or "these credentials"
        lacking = await asyncio.gather(*(lacks(right, account) for right in wanted))
        lacked = [right for right, lacks_it in zip(wanted, lacking, strict=True) if lacks_it]
        if {*lacked} >= OWN:
            live.findings.append(error(nothing(who, await _roles(client))))
            lacked = [right for right in lacked if right.given_by != RBAC]
        live.findings += [lack(who, right) for right in lacked]


async def _roles(client: KubeClient) -> dict[str, int]:
    """Returns how the API server answers for each object that gives Quotaward its rights. Raises Unreachable."""
    path = "/apis/rbac.authorization.k8s.io/v1"
    return {kind: (await get(client, f"{path}/{kind.lower()}s/quotaward", {}))[0] for kind in ROLES}


async def _accounts(client: KubeClient, settings: Settings) -> list[str]:
    """Returns the service accounts of Quotaward's pods. A static pod has none, but a kubeconfig. Raises Unreachable."""
    namespace = settings.leader.namespace
    _status, document = await get(client, f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": OUR_PODS})
    specs = [pod.get("spec") or {} for pod in document.get("items") or ()]
    names = {str(spec["serviceAccountName"]) for spec in specs if spec.get("serviceAccountName")}
    return [f"system:serviceaccount:{namespace}:{name}" for name in sorted(names)]


async def _some_queue_jobs(client: KubeClient) -> bool:
    """Whether Jobs of some namespace are to wait as a whole. Raises Unreachable."""
    _status, document = await get(client, NAMESPACES.path, {"labelSelector": f"{JOBS_WAIT}=queued", "limit": "1"})
    return bool(document.get("items"))


async def _may(client: KubeClient, right: Right, account: str) -> bool:
    """Asks whether these credentials, or an account, have a right. Raises Unreachable."""
    spec: dict[str, Any] = {
        "resourceAttributes": {
            "group": right.group,
            "resource": right.resource,
            "subresource": right.subresource,
            "verb": right.verb,
            "name": right.name,
            "namespace": right.namespace,
        }
    }
    kind = "SelfSubjectAccessReview"
    if account:
        kind = "SubjectAccessReview"
        spec |= {"user": account, "groups": _groups_of(account)}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    status, answer = await ask(client, f"/apis/authorization.k8s.io/v1/{kind.lower()}s", body)
    if account and status == HTTPStatus.FORBIDDEN:
        raise Unreachable("these credentials may not ask for the rights of others, so leave out --as")
    try:
        return status == HTTPStatus.CREATED and bool(answer["status"]["allowed"])
    except (KeyError, TypeError) as reason:
        raise Unreachable("it gives no answer to an access review") from reason


def _groups_of(account: str) -> list[str]:
    """Returns the groups that the API server puts an account into when it authenticates."""
    groups, parts = ["system:authenticated"], account.split(":")
    if parts[:2] == ["system", "serviceaccount"] and parts[2:]:
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{parts[2]}"]
    return groups


async def _leader(client: KubeClient, settings: Settings, live: Live) -> None:
    """Checks whether a replica holds the Lease."""
    leader: LeaderSettings = settings.leader
    where = f"Lease {leader.namespace}/{leader.name}"
    path = f"/apis/coordination.k8s.io/v1/namespaces/{leader.namespace}/leases/{leader.name}"
    status, document = await get(client, path, {})
    if status == HTTPStatus.NOT_FOUND:
        live.findings.append(warning(f"{where} does not exist: no controllers have run"))
    elif status != HTTPStatus.OK:
        live.findings.append(info(f"{where} cannot be read: the API server answers {status}"))
    else:
        live.findings.append(_held(where, leader.namespace, document.get("spec") or {}))


def _held(where: str, namespace: str, spec: dict[str, Any]) -> Finding:
    holder = spec.get("holderIdentity")
    if not holder:
        return warning(f"{where} has no holder: no controllers act")
    try:
        silent = (datetime.now(UTC) - msgspec.convert(spec.get("renewTime"), datetime)).total_seconds()
    except (msgspec.ValidationError, TypeError):
        return warning(f"{where} is held by {holder}, but its renewTime cannot be read")
    if silent > 2 * float(spec.get("leaseDurationSeconds") or 0):
        remedy = f"kubectl -n {namespace} delete pod {str(holder).partition('_')[0]}"
        text = f"{where} is held by {holder}, which has not renewed it for {silent:.0f} s: no controllers act"
        return warning(f"{text}. If that pod hangs: {remedy}")
    return info(f"{where} is held by {holder}")


async def _schedulers(client: KubeClient, _: Settings, live: Live) -> None:
    """Counts the pods of each scheduler."""
    named: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    for pod in await objects(client, PODS):
        name = (pod.spec and pod.spec.scheduler_name) or "default-scheduler"
        named[name] += 1
        waiting[name] += pod.spec is not None and not pod.spec.node_name
    if named:
        each = [f"{name} ({number}, of which {waiting[name]} wait)" for name, number in sorted(named.items())]
        live.findings.append(info(f"pods name these schedulers: {', '.join(each)}"))


async def _events(client: KubeClient, _: Settings, live: Live) -> None:
    """Checks whether the schedulers' events repeat Quotaward's answers, and whether evictions or new pods fail."""
    status, events = await _events_because_of(client, "FailedScheduling")
    if status != HTTPStatus.OK:
        live.findings.append(info(f"events cannot be read: the API server answers {status}"))
        return
    by = sorted({str(event.get("reportingComponent") or "unknown") for event in events})
    ours = sum(bool(named_in(str(event.get("message")))) for event in events)
    if events:
        told = f"{len(events)} events of pods that were not scheduled, by {', '.join(by)}"
        why = f"{ours} of them name a rule of Quotaward" if ours else "they name other reasons than Quotaward's rules"
        live.findings.append(info(f"{told}: {why}"))
        unplaced = await objects(client, PODS, fieldSelector="spec.nodeName=", limit=str(MOST))
        live.findings += refused(events, unplaced)
    _status, placed = await _events_because_of(client, "Scheduled")
    live.findings += unanswered(events, placed, time.time())
    _status, events = await _events_because_of(client, "ReclaimBlocked")
    live.findings += failed_evictions(events, time.time())
    _status, events = await _events_because_of(client, "FailedCreate")
    _status, made = await _events_because_of(client, "SuccessfulCreate")
    live.findings += pods_not_made(events, made, time.time())


async def _events_because_of(client: KubeClient, reason: str) -> tuple[int, list[dict[str, Any]]]:
    """Returns status and items of the list of events that have this reason. Raises Unreachable."""
    query = {"fieldSelector": f"reason={reason}", "limit": str(MOST)}
    status, document = await get(client, "/api/v1/events", query)
    return status, [event for event in document.get("items") or () if isinstance(event, dict)]


async def _webhooks(client: KubeClient, _: Settings, live: Live) -> None:
    """Finds webhooks that can refuse new pods, evictions and bindings. Says nothing without the right to see them."""
    for plural, kind in webhooks.LISTS.items():
        _status, items = await first_page(client, webhooks.PATH + plural, PAGE)
        live.findings += webhooks.webhook_findings(kind, items)


async def _others(client: KubeClient, _: Settings, live: Live) -> None:
    """Finds objects that look as if they were read, but are not."""
    installed = {kind.label for kind in KINDS if (await first_page(client, kind.path, 1))[0] != HTTPStatus.NOT_FOUND}
    followed = {label for label, successor in SUCCESSORS.items() if successor.label not in installed}
    try:
        live.findings += [warning(text) for text in await others.unread(client, followed)]
    except BROKEN as reason:
        raise Unreachable(words(reason)) from reason
