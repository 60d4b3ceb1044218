"""Programs that a test starts: they never outlive it, and what they print is kept in files."""

import atexit
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx

from tests.controlplane.launch import Forked, launch


class Process:
    """A program with a log file; it can be killed and started again with the same command."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str] | None = None):
        self.command = [str(part) for part in command]
        self.log = log
        self.env = os.environ | (env or {})
        self._popen: subprocess.Popen | Forked | None = None
        atexit.register(self.kill)

    def start(self) -> None:
        assert not self.alive, f"{self.log.stem} runs already"
        self._popen = launch(self.command, self.log, self.env)

    @property
    def alive(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def pid(self) -> int | None:
        return self._popen.pid if self._popen else None

    def kill(self) -> None:
        """Stop as a crash would: with SIGKILL."""
        self._stop(signal.SIGKILL, within=10)

    def stop(self, within: float = 15) -> int | None:
        """Stop as an orderly shutdown would: with SIGTERM, and with SIGKILL if that takes too long.

        Returns the exit status.
        """
        try:
            return self._stop(signal.SIGTERM, within)
        except subprocess.TimeoutExpired:
            return self._stop(signal.SIGKILL, within=10)

    def _stop(self, how: signal.Signals, within: float) -> int | None:
        if self._popen is None:
            return None
        if self.alive:
            self._popen.send_signal(how)
        return self._popen.wait(within)

    def wait_until_ready(self, ready: Callable[[], Any], timeout: float = 60) -> None:
        """Wait until ``ready`` answers true; fail at once, with the end of the log, if the program ends."""

        def ready_or_dead() -> Any:
            if not self.alive:
                raise AssertionError(f"{self.log.stem} has ended:\n{self.tail()}")
            return ready()

        wait_until(ready_or_dead, f"{self.log.stem} is ready", timeout, detail=self.tail)

    def tail(self, size: int = 3000) -> str:
        """The end of what the program has printed."""
        text = self.log.read_bytes() if self.log.exists() else b""
        return text[-size:].decode(errors="replace")


class Component:
    """A program of a control plane, running and ready while this is open. Once that is over, it is killed."""

    process: Process

    def __enter__(self) -> Self:
        self.process.start()
        try:
            self.process.wait_until_ready(self.is_ready)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()

    def is_ready(self) -> bool:
        """Whether it does its work."""
        raise NotImplementedError


PATIENCE = 3
"""How many times as long as a test says it waits at most: other tests may have the processors."""


def wait_until(
    condition: Callable[[], Any],
    what: str,
    timeout: float = 60,
    *,
    every: float = 0.05,
    detail: Callable[[], Any] = lambda: "",
) -> Any:
    """The first true answer of ``condition``; an AssertionError naming ``what`` if there is none in time."""
    deadline = time.monotonic() + PATIENCE * timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE * timeout:g} s: {what} (last answer: {answer!r})\n{detail()}")
        time.sleep(every)


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far. Unlike time that passes, it does not count what others do meanwhile."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_memory(pid: int) -> float:
    """The memory that a process has, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def answers(url: str) -> bool:
    """Whether a program of this machine says that it is well, whoever has signed its certificate."""
    try:
        return httpx.get(url, verify=False, trust_env=False).is_success
    except httpx.TransportError:
        return False


def free_port() -> int:
    """A port nobody listens on, from below the range that the kernel gives to outgoing connections.

    A program that is restarted on its port must not find it taken by somebody's outgoing connection; and a
    client that dials a port of that range while nobody listens there may even be connected to itself.
    """
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
