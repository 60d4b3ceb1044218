"""Starts, resizes and suspends a Job by an exact patch: nothing else of it changes, and it changes only as it was seen.

The patches of elastic Jobs write the parallelism, which belongs to the user. ``disowning`` makes good for that: with a
field that another manager has changed, each server-side apply of the user's manifest would end in a conflict.
"""

from collections.abc import Sequence
from typing import Any

from app.store.heeded import PARALLELISM
from policy.objects.pod import StandsFor

MANAGER = "quotaward"
"""The field manager of these patches."""
ASKED = f"/metadata/annotations/{PARALLELISM.replace('/', '~1')}"

Patch = list[dict[str, Any]]


def start(job: StandsFor) -> Patch:
    """Returns a JSON patch that ends the suspension of this Job, or lets it grow. The server refuses it if it changed.

    Of an elastic Job it sets the parallelism that was granted, and notes the one that its user asks for.
    """
    patch = _tests(job.uid, suspended=not job.grows, parallelism=job.parallelism)
    if not job.grows:
        patch.append({"op": "replace", "path": "/spec/suspend", "value": False})
    if job.least:
        patch += _parallelism(job.granted, job.asked)
    return patch


def suspension(uid: str) -> Patch:
    """Returns a JSON patch that suspends the Job with this UID. The server refuses it if it is suspended already."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": "/spec/suspend", "value": False},
        {"op": "replace", "path": "/spec/suspend", "value": True},
    ]


def disowning(managed_fields: Sequence[dict[str, Any]]) -> Patch:
    """Returns a JSON patch by which no field of an object is ours any more; empty if none is."""
    at = [number for number, entry in enumerate(managed_fields) if entry.get("manager") == MANAGER]
    tests = [{"op": "test", "path": f"/metadata/managedFields/{number}/manager", "value": MANAGER} for number in at]
    return tests + [{"op": "remove", "path": f"/metadata/managedFields/{number}"} for number in reversed(at)]


def _tests(uid: str, *, suspended: bool, parallelism: int) -> Patch:
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": "/spec/suspend", "value": suspended},
        {"op": "test", "path": "/spec/parallelism", "value": parallelism},
    ]


def _parallelism(granted: int, asked: int) -> Patch:
    return [
        {"op": "replace", "path": "/spec/parallelism", "value": granted},
        {"op": "add", "path": ASKED, "value": str(asked)},
    ]
