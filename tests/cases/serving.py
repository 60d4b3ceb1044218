"""A real Quotaward process, and a plain HTTP client to talk to it."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.launch import QUOTAWARD, Forked, launch

GO_HEADERS = {"User-Agent": "Go-http-client/1.1", "Content-Type": "application/json", "Accept-Encoding": "gzip"}
START_SECONDS = 30
STOP_SECONDS = 15


class DidNotStart(AssertionError):
    """The process ended, or was not ready in time; the text has its log."""


@dataclass(frozen=True)
class Response:
    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def json_or_text(self) -> Any:
        try:
            return json.loads(self.content)
        except ValueError:
            return self.content.decode(errors="replace")


@dataclass(frozen=True)
class Server:
    port: int
    process: subprocess.Popen[bytes] | Forked
    log: Path

    def call(
        self, method: str, path: str, content: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            connection.request(method, path, content, headers or {})
            answer = connection.getresponse()
            return Response(answer.status, answer.headers, answer.read())

    def get(self, path: str) -> Response:
        return self.call("GET", path)

    def ask(self, verb: str, arguments: Any, headers: dict[str, str] | None = None) -> Response:
        """Calls a verb as kube-scheduler does."""
        return self.call("POST", f"/extender/{verb}", go_json(arguments), headers or GO_HEADERS)

    def lives(self) -> bool:
        return self.process.poll() is None

    def log_tail(self, length: int = 3000) -> str:
        return self.log.read_text(errors="replace")[-length:]


def go_json(value: Any) -> bytes:
    """JSON as Go's encoding/json writes it: compact, and with characters that HTML minds escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


@contextlib.contextmanager
def serving(
    *flags: str, log: Path, path_when_up: str = "/readyz", start_seconds: float = START_SECONDS
) -> Iterator[Server]:
    """Runs ``quotaward serve`` with these flags on a free port until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # settings of the one who runs the tests are not settings of the test
    env = {name: value for name, value in os.environ.items() if not name.startswith("QUOTAWARD_")}
    command = [str(QUOTAWARD), "serve", *flags, "--listen", f"127.0.0.1:{port}"]
    process = launch(command, log, env)
    server = Server(port, process, log)
    try:
        _wait_until_up(server, path_when_up, start_seconds)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_up(server: Server, path: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not server.lives():
            raise DidNotStart(f"quotaward ended with {server.process.returncode}:\n{server.log_tail()}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            if server.get(path).status == http.HTTPStatus.OK:
                return
        time.sleep(0.05)
    raise DidNotStart(f"quotaward was not up after {seconds} s:\n{server.log_tail()}")
