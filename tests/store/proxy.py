"""A way to somebody that can be cut: connections end, and new ones are refused, until it is mended."""

import asyncio
import contextlib
import threading
from typing import Any, Self

from tests.controlplane.processes import free_port


class Proxy:
    """Passes bytes on to a port of this machine, and back, without looking at them.

    New connections go to another port once ``target`` has changed.

    It runs in a thread of its own, so that it can be cut by a test that runs a loop as well as by one that doesn't.
    """

    def __init__(self, target: int):
        self.port = free_port()
        self.accepted = 0
        self.target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    def __enter__(self) -> Self:
        self._thread.start()
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self) -> None:
        """End all connections at once, and refuse new ones."""
        self._do(self._close())

    def mend(self) -> None:
        """Let new connections through."""
        self._do(self._open())

    def silence(self) -> None:
        """Keep connections and take new ones, but let no byte through: as where a cable was pulled."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def _do(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _open(self) -> None:
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)

    async def _close(self) -> None:
        self._flowing.set()
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        while self._writers:
            await asyncio.sleep(0.005)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        with contextlib.suppress(OSError), contextlib.closing(writer):
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers |= {writer, back}
            with contextlib.closing(back):
                pumps = [asyncio.create_task(self._pump(reader, back)), asyncio.create_task(self._pump(there, writer))]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
            self._writers -= {writer, back}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
