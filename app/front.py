"""The HTTP application with kube-scheduler's verbs in front of it.

The scheduler waits for every answer. The work of a web framework (middleware, routing, exception handlers) takes as
long as the answer itself, and the verbs need none of it.
"""

from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from app.extender.verbs import Verb
from app.serving.reply import AtOnce


class Application(FastAPI):
    """FastAPI for everything except the verbs: ``verbs`` are found by path before anything else."""

    verbs: dict[str, ASGIApp]

    def openapi(self) -> dict[str, Any]:
        """Returns the description of REST, in which each token is optional: on loopback none is asked for."""
        document = super().openapi()
        for operations in document["paths"].values():
            for operation in operations.values():
                if {} not in operation.get("security", [{}]):
                    operation["security"].append({})
        return document

    def at_once(self, path: bytes, _client_valid_until: float) -> AtOnce | None:
        """Returns the handler that replies at once to a path; None for other paths."""
        verb = self.verbs.get(path.decode("latin-1"))
        return verb if isinstance(verb, Verb) else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        verb = self.verbs.get(scope["path"]) if scope["type"] == "http" else None
        await (super().__call__ if verb is None else verb)(scope, receive, send)
