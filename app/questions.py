"""Questions of people and scripts that take much work: each waits for a seat, and is answered in the asker's turn."""

import re
from contextlib import AsyncExitStack

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import bodies
from app.problems import Problem
from app.serving.reply import Reply
from app.serving.seats import Flow, Seats

COSTLY = re.compile(r"/(?:api/v1/.+|waiting|pods(?:/.*)?)?")
"""Paths of REST and of the page. What a page is sent while it is open has places of its own (see app.web.live)."""
WHAT_IF = "/api/v1/whatif"
"""The one question that has a body."""
LIMIT = "whatif.bodyLimit"
NAMESPACED = re.compile(r"/(?:api/v1/(?:elasticquotas|pods)|pods)/([^/]+).*")


def asker_of(scope: Scope) -> str:
    """Whose share a request takes: the user's that was let in, else that of the client's address."""
    asker = scope.get("state", {}).get("asker")
    return str(asker or (scope.get("client") or ("",))[0])


def flow_of(scope: Scope) -> Flow | None:
    """Whom a question has to wait behind; None for one that takes no work."""
    path: str = scope["path"]
    if not COSTLY.fullmatch(path):
        return None
    namespaced = NAMESPACED.fullmatch(path)
    return Flow(asker_of(scope), namespaced[1] if namespaced else path)


class Questions:
    """An application whose costly questions are answered in the turn of who asks them."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        """``limit``: of the body of a question, in bytes (the setting ``whatif.bodyLimit``)."""
        self._app = app
        self._limit = limit
        self._seats = Seats()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request. A body is read before there is a seat, and is in the state of the scope then.

        The seat is given up when the answer begins: a client may take long to read it.
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
