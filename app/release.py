"""Opens the gates of all pods, using the API server alone: no rule is asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import aiohttp
import msgspec
from msgspec import Struct

from app.actuators.kubernetes import KubernetesActuator
from app.actuators.protocol import ActionFailed
from app.kube.client import KubeClient
from app.kube.said import said
from app.store.namespaces import NAMESPACES
from app.store.pod_object import PodObject, PodSpec
from app.store.pods import PODS, gate_of
from policy.objects.pod import Pod
from policy.objects.resources import NOTHING

AT_ONCE = 32
"""Gates that are opened at a time."""
PAGE = 500
PASSES = 5
"""Maximum number of passes over the pods: new ones may appear while the policy is in force."""


class CannotList(Exception):
    """The pods could not be listed, or the namespace does not exist; the text says why."""


class _ListMeta(Struct, gc=False):
    continue_: str = msgspec.field(name="continue", default="")


class _PodList(Struct, gc=False):
    metadata: _ListMeta
    items: list[PodObject]


async def release(kubeconfig: Path | None, namespace: str | None) -> tuple[int, list[str]]:
    """Opens the gates in a namespace or in all; returns their number, and the failures.

    Raises CannotConnect, CannotList.
    """
    client = await KubeClient.connect(kubeconfig)
    try:
        actuator, seats = KubernetesActuator(client), asyncio.Semaphore(AT_ONCE)
        opened, failed = 0, dict[str, str]()
        for _ in range(PASSES):
            failed, tried = {}, 0
            async for pods in _gated(client, namespace):
                tried += len(pods)
                async with asyncio.TaskGroup() as group:
                    for pod in pods:
                        await seats.acquire()
                        group.create_task(_open(actuator, pod, seats, failed))
            opened += tried - len(failed)
            if not tried:
                break
        if namespace and not opened and not failed:
            await _look_whether_there_is(client, namespace)
        return opened, list(failed.values())
    finally:
        await client.close()


async def _look_whether_there_is(client: KubeClient, namespace: str) -> None:
    """Raises CannotList if the namespace does not exist. Ignores that it may not be read."""
    # The API server lists no pods for an unknown namespace, which looks as if all were released.
    with suppress(aiohttp.ClientError, OSError):
        async with client.get(NAMESPACES.path_of("", namespace), {}, read_timeout=30) as response:
            if response.status == HTTPStatus.NOT_FOUND:
                raise CannotList(f"there is no namespace {namespace}")


async def _open(actuator: KubernetesActuator, pod: Pod, seats: asyncio.Semaphore, failed: dict[str, str]) -> None:
    try:
        await actuator.open_gate(pod)
    except ActionFailed as failure:
        failed[pod.uid] = f"{pod.namespace}/{pod.name}: {failure}"
    finally:
        seats.release()


async def _gated(client: KubeClient, namespace: str | None) -> AsyncIterator[list[Pod]]:
    """Yields pods without a node that have our gate, even among others, page by page. Raises CannotList."""
    path = f"/api/v1/namespaces/{namespace}/pods" if namespace else PODS.path
    query = {"fieldSelector": "spec.nodeName=", "limit": str(PAGE)}
    while True:
        try:
            async with client.get(path, query, read_timeout=30) as response:
                body = await response.read()
                if response.status != HTTPStatus.OK:
                    raise CannotList(f"the API server answered {response.status}: {said(body)}")
            page = msgspec.json.decode(body, type=_PodList)
        except (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError) as error:
            raise CannotList(f"the pods cannot be listed: {error}") from error
        found = ((obj.metadata, gate_of(obj.spec or PodSpec())) for obj in page.items)
        yield [Pod(meta.uid or "", meta.namespace or "", meta.name, NOTHING, gate=at) for meta, at in found if at >= 0]
        if not page.metadata.continue_:
            return
        query["continue"] = page.metadata.continue_
