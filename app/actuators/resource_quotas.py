"""Bodies of the quota manager's ResourceQuotas for the API server."""

from collections.abc import Mapping
from typing import Any

from app.store.heeded import MANAGED
from app.store.queues import QUEUES
from policy.cluster.quota_manager import NAME, REQUESTS, Hard, Limit
from policy.objects.quantity import render


def to_create(namespace: str, hard: Hard, owners: Mapping[str, str]) -> dict[str, Any]:
    """Returns a new one, owned by these queues: it goes with the last of them, even if no process removes it."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": NAME, "namespace": namespace, **_metadata(owners)},
        "spec": {"hard": _quantities(hard)},
    }


def to_change(seen: Limit, hard: Hard, owners: Mapping[str, str]) -> dict[str, Any]:
    """Returns the change of the one that was seen. It includes the UID, so that no other of this name is changed."""
    gone = dict.fromkeys(seen.hard.keys() - hard.keys())
    return {"metadata": {"uid": seen.uid, **_metadata(owners)}, "spec": {"hard": {**gone, **_quantities(hard)}}}


def _metadata(owners: Mapping[str, str]) -> dict[str, Any]:
    references = [
        {"apiVersion": QUEUES.api_version, "kind": QUEUES.name, "name": name, "uid": uid}
        for name, uid in sorted(owners.items())
    ]
    return {"labels": {MANAGED: "true"}, "ownerReferences": references}


def _quantities(hard: Hard) -> dict[str, str]:
    return {key: render(key.removeprefix(REQUESTS), amount) for key, amount in sorted(hard.items())}
