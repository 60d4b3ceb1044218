"""Requests that a real kube-scheduler sent."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cases.serving import Response, Server, go_json

DIRECTORY = Path(__file__).parent / "recorded"


@dataclass(frozen=True)
class Recording:
    verb: str
    headers: dict[str, str]
    request: dict[str, Any]

    @property
    def content(self) -> bytes:
        """The body, byte for byte as Go encoded it."""
        return go_json(self.request)

    def send(self, server: Server) -> Response:
        return server.call("POST", f"/extender/{self.verb}", self.content, self.headers)


def recording(name: str) -> Recording:
    """The recording of that name, freshly read, so that a test may change it."""
    return Recording(**json.loads((DIRECTORY / f"{name}.json").read_text()))
