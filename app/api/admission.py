"""Adds the gate to new pods: a webhook for API servers before 1.36, which cannot do so themselves.

The conditions are those of the policy in ``manifests/gates``; the webhook's configuration says which namespaces are
gated. If anything goes wrong here, the pod is created without a gate, and filter alone decides about it.
"""

import base64
import json
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from msgspec import Struct

from app import bodies
from app.problems import Problem
from app.questions import asker_of
from app.store.heeded import GATE
from app.store.pod_object import PodObject, PodSpec
from app.store.pods import controller_of
from policy.quota.exempt_from_eviction import SYSTEM_OWNERS

router = APIRouter(prefix="/admission", include_in_schema=False)


class AdmissionRequest(Struct, gc=False):
    """The fields that are read of a review's request."""

    uid: str
    object: PodObject


class AdmissionReview(Struct, gc=False):
    """The API server's review of a pod that is being created."""

    request: AdmissionRequest


@router.post("/gate")
async def gate(request: Request) -> Response:
    """Reviews a new pod: allows it, and adds a gate if it should wait. Raises Problem (413, 422, 503)."""
    limit: int = request.app.state.settings.gates.body_limit
    room: bodies.BodyMemory = request.app.state.room
    body = await room.read(asker_of(request.scope), request.receive, limit, "gates.bodyLimit")
    bodies.ensure_narrow(body, limit // bodies.BYTES_PER_ITEM)
    try:
        review = msgspec.json.decode(body, type=AdmissionReview)
    except RecursionError as error:
        raise bodies.too_deep() from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Problem(422, f"no review of a pod: {error}") from error
    response: dict[str, Any] = {"uid": review.request.uid, "allowed": True}
    if patch := patch_of(review.request.object):
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return Response(json.dumps(answer), media_type="application/json")


def patch_of(pod: PodObject) -> list[dict[str, Any]]:
    """Returns the patch that adds the gate; none for a pod with a gate or a node, of a DaemonSet, or a mirror pod."""
    spec = pod.spec or PodSpec()
    gates = spec.scheduling_gates or []
    if spec.node_name or controller_of(pod.metadata) in SYSTEM_OWNERS or any(each.name == GATE for each in gates):
        return []
    if not gates:
        return [{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]}]
    return [{"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": GATE}}]
