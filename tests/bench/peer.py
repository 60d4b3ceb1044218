"""The peer: an extender in Go that does nothing, built from the source beside this file and run as a process."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.controlplane.build import cache_directory, go_toolchain
from tests.controlplane.processes import Process, free_port

SOURCE = Path(__file__).parent / "noop"


def binary() -> Path:
    """The program, built once per content of its source."""
    content = b"".join((SOURCE / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    target = cache_directory().parent / f"noop-{hashlib.sha256(content).hexdigest()[:12]}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        env = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
        subprocess.run(
            [go_toolchain(), "build", "-trimpath", "-o", str(unfinished), "."], check=True, cwd=SOURCE, env=env
        )
        unfinished.rename(target)
    return target


@contextmanager
def running(directory: Path) -> Iterator[int]:
    """The port that it listens on."""
    port = free_port()
    process = Process([binary(), f"127.0.0.1:{port}"], directory / "noop.log")
    process.start()
    try:
        process.wait_until_ready(lambda: _answers(port))
        yield port
    finally:
        process.kill()


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).is_success
    except httpx.TransportError:
        return False
