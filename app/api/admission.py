"""Gives pods their gate when they are created: for API servers that cannot do so themselves, before 1.36.

The conditions are those of the policy in ``manifests/gates``; which namespaces are gated, the webhook's configuration
says. Whatever goes wrong here, the pod is created without a gate, and filter alone decides about it.
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
from app.store.objects import PodObject, PodSpec, controller_of
from policy.quota.entitlement import SYSTEM_OWNERS

router = APIRouter(prefix="/admission", include_in_schema=False)


class AdmissionRequest(Struct, gc=False):
    """What is read of the request of a review."""

    uid: str
    object: PodObject


class AdmissionReview(Struct, gc=False):
    """What the API server sends of a pod that is being created."""

    request: AdmissionRequest


@router.post("/gate")
async def gate(request: Request) -> Response:
    """The review of a new pod: it is let pass, and gets a gate if it is to wait. Raises Problem (413, 422, 503)."""
    limit: int = request.app.state.settings.gates.body_limit
    room: bodies.Room = request.app.state.room
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
    """What gives a pod its gate; nothing for one that has it, that has a node, or is of a DaemonSet or a mirror."""
    spec = pod.spec or PodSpec()
    gates = spec.scheduling_gates or []
    if spec.node_name or controller_of(pod.metadata) in SYSTEM_OWNERS or any(each.name == GATE for each in gates):
        return []
    if not gates:
        return [{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]}]
    return [{"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": GATE}}]
