"""Reviews what is being written: a webhook for API servers before 1.36, which have no policies that change objects.

A new pod gets its gate, a Job that is to wait is suspended. The conditions are those of the policies in
``manifests/gates`` and ``manifests/jobs/queued``. The webhook's configuration says in which namespaces it is asked, and
who is Quotaward itself. If anything goes wrong here, the object is written as it came, and filter alone decides.
"""

import base64
import json
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from msgspec import Raw, Struct

from app import bodies
from app.api import job_admission
from app.problems import Problem
from app.questions import asker_of
from app.store.heeded import GATE
from app.store.jobs import JobObject
from app.store.placement import NULL
from app.store.pod_object import PodObject, PodSpec
from app.store.pods import controller_of
from policy.quota.exempt_from_eviction import SYSTEM_OWNERS

router = APIRouter(prefix="/admission", include_in_schema=False)
_pods, _jobs = msgspec.json.Decoder(PodObject), msgspec.json.Decoder(JobObject)


class GroupKind(Struct, gc=False):
    """The kind of the object in a review."""

    group: str = ""
    kind: str = "Pod"


class AdmissionRequest(Struct, rename="camel", gc=False):
    """The fields that are read of a review's request. The old object is ``null`` if the object is created."""

    uid: str
    object: Raw
    kind: GroupKind = msgspec.field(default_factory=GroupKind)
    old_object: Raw = NULL


class AdmissionReview(Struct, gc=False):
    """The API server's review of an object that is being written."""

    request: AdmissionRequest


@router.post("/gate")
async def gate(request: Request) -> Response:
    """Reviews a pod or a Job: allows it, and changes it if it should wait. Raises Problem (413, 422, 503)."""
    limit: int = request.app.state.settings.gates.body_limit
    room: bodies.BodyMemory = request.app.state.room
    body = await room.read(asker_of(request.scope), request.receive, limit, "gates.bodyLimit")
    bodies.ensure_narrow(body, limit // bodies.BYTES_PER_ITEM)
    try:
        asked = msgspec.json.decode(body, type=AdmissionReview).request
        patch = _patch(asked)
    except RecursionError as error:
        raise bodies.too_deep() from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Problem(422, f"no review of a pod or a Job: {error}") from error
    response: dict[str, Any] = {"uid": asked.uid, "allowed": True}
    if patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return Response(json.dumps(answer), media_type="application/json")


def _patch(asked: AdmissionRequest) -> list[dict[str, Any]]:
    """Returns the patch of an object; none for one of another kind. Raises msgspec.MsgspecError."""
    match asked.kind:
        case GroupKind("", "Pod"):
            return patch_of(_pods.decode(asked.object))
        case GroupKind("batch", "Job"):
            old = None if asked.old_object == NULL else _jobs.decode(asked.old_object)
            return job_admission.patch_of(_jobs.decode(asked.object), old)
    return []


def patch_of(pod: PodObject) -> list[dict[str, Any]]:
    """Returns the patch that adds the gate; none for a pod with a gate or a node, of a DaemonSet, or a mirror pod."""
    spec = pod.spec or PodSpec()
    gates = spec.scheduling_gates or []
    if spec.node_name or controller_of(pod.metadata) in SYSTEM_OWNERS or any(each.name == GATE for each in gates):
        return []
    if not gates:
        return [{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]}]
    return [{"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": GATE}}]
