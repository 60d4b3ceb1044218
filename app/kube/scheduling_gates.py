"""Removes our scheduling gate from a pod by an exact patch, so that no other gate can be removed."""

from typing import Any

from app.store.heeded import GATE


def removal(uid: str, at: int) -> list[dict[str, Any]]:
    """Returns a JSON patch that removes the gate at this index of this pod. The server refuses it for anything else."""
    path = f"/spec/schedulingGates/{at}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": f"{path}/name", "value": GATE},
        {"op": "remove", "path": path},
    ]
