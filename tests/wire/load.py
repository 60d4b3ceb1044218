"""Clients that ask without a pause, each on one connection, until the server says that it ends."""

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.cases.serving import Server
from tests.wire.recordings import recording

GOOD = recording("filter.node-names")


@dataclass
class Load:
    """What became of the calls: how many were answered, and what went wrong with others."""

    answered: int = 0
    lost: list[str] = field(default_factory=list)
    ended: int = 0


@contextlib.contextmanager
def load(server: Server, clients: int = 8) -> Iterator[Load]:
    """Asks until the block ends; a client that is told that its connection ends stops before."""
    result, done = Load(), threading.Event()
    threads = [threading.Thread(target=_ask, args=(server.port, result, done)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield result
    finally:
        done.set()
        for thread in threads:
            thread.join(20)


def _ask(port: int, result: Load, done: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        while not done.is_set():
            connection.request("POST", "/extender/filter", GOOD.content, GOOD.headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != http.HTTPStatus.OK:
                result.lost.append(f"answered {answer.status}")
            result.answered += 1
            if answer.will_close:
                result.ended += 1
                return
            time.sleep(0.001)
    except (OSError, http.client.HTTPException) as error:
        result.lost.append(repr(error))
    finally:
        connection.close()
