"""Taking our scheduling gate off a pod: an exact patch, so that nobody else's gate can be touched."""

from typing import Any

from app.store.heeded import GATE


def removal(uid: str, at: int) -> list[dict[str, Any]]:
    """A JSON patch that removes the gate, if it stands at this place of this very pod; else the server refuses it."""
    path = f"/spec/schedulingGates/{at}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": f"{path}/name", "value": GATE},
        {"op": "remove", "path": path},
    ]
