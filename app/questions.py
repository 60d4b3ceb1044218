"""Costly questions of people and scripts: each waits for a seat, and is answered in its asker's turn."""

import re
from contextlib import AsyncExitStack

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import bodies
from app.problems import Problem
from app.serving.reply import Reply
from app.serving.seats import Flow, Seats

COSTLY = re.compile(r"/(?:api/v1/.+|waiting|(?:gangs|jobs|namespaces|nodes|pods|queues|quotas)(?:/.*)?)?")
"""Paths of REST and of the page that take much work. Live updates of a page have their own bound (see app.web.live)."""
WHAT_IF = "/api/v1/whatif"
"""The only question with a body."""
LIMIT = "whatif.bodyLimit"
NAMESPACED = re.compile(r"/(?:api/v1/(?:elasticquotas|jobs|pods)|gangs|jobs|namespaces|pods|quotas)/([^/]+).*")


def asker_of(scope: Scope) -> str:
    """Returns whose share a request takes: that of its user if there is one, else of the client's address."""
    asker = scope.get("state", {}).get("asker")
    return str(asker or (scope.get("client") or ("",))[0])


def flow_of(scope: Scope) -> Flow | None:
    """Returns the flow that a question waits in; None for a cheap one."""
    path: str = scope["path"]
    if not COSTLY.fullmatch(path):
        return None
    namespaced = NAMESPACED.fullmatch(path)
    return Flow(asker_of(scope), namespaced[1] if namespaced else path)


class Questions:
    """Wraps an application, and answers costly questions in the askers' turn."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        """``limit``: of the body of a question, in bytes (the setting ``whatif.bodyLimit``)."""
        self._app = app
        self._limit = limit
        self._seats = Seats()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request. Reads its body before it has a seat, and puts it into the scope's state.

        Gives up the seat when the answer begins, since a client may take long to read it.
        """
        flow = flow_of(scope) if scope["type"] == "http" else None
        if flow is None:
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        try:
            with self._seats.question(flow):
                if flow.about == WHAT_IF and scope["method"] == "POST":
                    state["body"] = await bodies.read(receive, self._limit, LIMIT)
                async with AsyncExitStack() as seat:
                    await seat.enter_async_context(self._seats.seat(flow))

                    async def leave_and_send(message: Message) -> None:
                        await seat.aclose()
                        await send(message)

                    await self._app(scope, receive, leave_and_send)
        except Problem as problem:
            await Reply.of(problem).send(send)
        finally:
            state.pop("body", None)  # a connection keeps the scope until the next request
