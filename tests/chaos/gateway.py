"""A way over HTTP to somebody, on which answers can be refused, delayed and cut off."""

import asyncio
import contextlib
import random
import ssl
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web

from tests.controlplane.processes import free_port

_OF_THE_WAY = {"connection", "content-length", "host", "keep-alive", "te", "transfer-encoding", "upgrade"}
_LARGEST = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Weather:
    """How the way is. ``errors``: statuses, one of which answers this share of the requests; ``delay``: seconds until
    an answer begins; ``lag``: seconds by which what comes of a watch is late; ``expired``: each watch ends with 410.
    """

    errors: tuple[int, ...] = ()
    share: float = 0.0
    delay: float = 0.0
    lag: float = 0.0
    expired: bool = False


FAIR = Weather()


class Gateway:
    """Passes requests on to ``target`` (which may change), while this is open. Runs in a thread of its own."""

    def __init__(self, target: str, ca_file: Path | None = None, seed: int = 0):
        self.target = target
        self.weather = FAIR
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.passed, self.spoilt = 0, 0
        self._ssl = ssl.create_default_context(cafile=str(ca_file)) if ca_file else None
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway", daemon=True)
        self._streams: set[asyncio.Task] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self) -> None:
        """End whatever is under way, without an end of the answer."""
        self._do(self._cut())

    def _do(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _open(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=timeout, auto_decompress=False
        )
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def _close(self) -> None:
        await self._cut()
        await self._runner.cleanup()
        await self._session.close()

    async def _cut(self) -> None:
        for task in self._streams:
            task.cancel()
        await asyncio.sleep(0)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        weather = self.weather
        if weather.share and self._random.random() < weather.share:
            self.spoilt += 1
            return _status(self._random.choice(weather.errors), "a fault of the test's")
        if weather.expired and "watch" in request.query:
            self.spoilt += 1
            return _status(410, "too old, says the test")
        task = asyncio.current_task()
        assert task
        self._streams.add(task)
        try:
            return await self._pass_on(request)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return _abort(request)
        except asyncio.CancelledError:
            _abort(request)
            raise
        finally:
            self._streams.discard(task)

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_THE_WAY}
        body = await request.read()
        url = self.target + str(request.rel_url)
        async with self._session.request(
            request.method, url, headers=headers, data=body, ssl=self._ssl or True
        ) as there:
            if self.weather.delay:
                self.spoilt += 1
                await asyncio.sleep(self.weather.delay)
            self.passed += 1
            kept = {name: value for name, value in there.headers.items() if name.lower() not in _OF_THE_WAY}
            if "watch" not in request.query:
                return web.Response(status=there.status, headers=kept, body=await there.read())
            response = web.StreamResponse(status=there.status, headers=kept)
            await response.prepare(request)
            async for chunk in there.content.iter_any():
                if self.weather.lag:
                    self.spoilt += 1
                    await asyncio.sleep(self.weather.lag)
                await response.write(chunk)
            return response


def _status(code: int, message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}
    return web.json_response(status, status=code, headers={"Retry-After": "1"} if code == 429 else {})


def _abort(request: web.Request) -> web.Response:
    """Ends the connection; what is returned reaches nobody."""
    with contextlib.suppress(AttributeError):
        request.transport.abort()
    return web.Response()
