"""Writes to the API server."""

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any

import aiohttp
from kubernetes.aio.client import CoreV1Api, V1Binding, V1ObjectMeta, V1ObjectReference

from app.actuators.protocol import ActionFailed
from app.kube.client import KubeClient
from policy.pod import Pod

TIMEOUT = 10.0
ADMISSIBLE = "quotaward.dev/Admissible"


class KubernetesActuator:
    """Acts on the API server."""

    def __init__(self, client: KubeClient) -> None:
        self._core = CoreV1Api(client.api)

    async def bind(self, pod: Pod, node: str) -> None:
        """Creates the Binding. Raises ActionFailed."""
        binding = V1Binding(
            metadata=V1ObjectMeta(namespace=pod.namespace, name=pod.name, uid=pod.uid),
            target=V1ObjectReference(api_version="v1", kind="Node", name=node),
        )
        await _done(
            self._core.create_namespaced_pod_binding_without_preload_content(
                pod.name, pod.namespace, binding, _request_timeout=TIMEOUT
            )
        )

    async def wake(self, pod: Pod) -> None:
        """Writes a condition into the pod's status: any update of a refused pod makes the scheduler try it again.

        The pod's UID goes with it, so that a namesake is not touched. Raises ActionFailed.
        """
        condition = {
            "type": ADMISSIBLE,
            "status": "True",
            "reason": "QuotaAvailable",
            "message": "the pod was refused, and could run now",
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        await _done(
            self._core.patch_namespaced_pod_status_without_preload_content(
                pod.name,
                pod.namespace,
                {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}},
                _content_type="application/strategic-merge-patch+json",
                _request_timeout=TIMEOUT,
            )
        )


async def _done(request: Awaitable[Any]) -> None:
    try:
        response = await request
        body = await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ActionFailed(f"the API server cannot be reached: {type(error).__name__}") from error
    if response.status >= 300:  # noqa: PLR2004 - not a success
        raise ActionFailed(f"the API server answered {response.status}: {body[:300].decode(errors='replace')}")
