"""Starts programs, none of which outlives us.

While tests run, Quotaward is forked from a process that has imported it: importing takes it longer than most tests do.
It runs as if it had been started by itself, with its own environment, files, session and signals.
"""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

QUOTAWARD = Path(sys.executable).parent / "quotaward"
"""The program, of the environment that the tests run in."""

_fork = multiprocessing.get_context("forkserver")
_fork.set_forkserver_preload([__name__, "tests.controlplane.preloaded"])
_forks = False
_LONGEST = 180  # seconds that a command may take

# Run by a fresh interpreter, which then becomes the program itself: so that the kernel kills it when we die,
# however we die. (A preexec_fn would do, but is not safe where threads run.)
_LAUNCHER = """
import os, sys
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the test run is gone already")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Forked:
    """A Quotaward that runs in a fork; it is used as a subprocess.Popen is."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str], errors: Path | None = None):
        self.args = command
        arguments = (list(command), log, errors or log, dict(env))
        self._process = _fork.Process(target=_become, args=arguments, daemon=True)
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_quotaward() -> None:
    """From now on Quotaward is forked. (Not where it is measured.)"""
    global _forks  # noqa: PLW0603
    _forks = True


def launch(command: Sequence[str], log: Path, env: Mapping[str, str]) -> subprocess.Popen | Forked:
    """Starts a program in a session of its own: a Ctrl-C reaches us alone. What it prints is added to the log."""
    if _forks and command[0] == str(QUOTAWARD):
        return Forked(command, log, env)
    launcher = [sys.executable, "-ISc", _LAUNCHER, str(os.getpid())]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*launcher, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )


def run_quotaward(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command of Quotaward to its end, as subprocess.run does, but in a fork."""
    with tempfile.TemporaryDirectory(prefix="quotaward-said-") as directory:
        said, errors = Path(directory) / "stdout", Path(directory) / "stderr"
        command = [str(QUOTAWARD), *arguments]
        status = Forked(command, said, os.environ if env is None else env, errors).wait(_LONGEST)
        return subprocess.CompletedProcess(command, status, said.read_text(), errors.read_text())


def _become(command: list[str], log: Path, errors: Path, env: dict[str, str]) -> None:
    """Runs in the fork."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, 9)  # as above; whom it was forked from ends after us
        if not multiprocessing.parent_process().is_alive():
            sys.exit("the test run is gone already")
    os.setsid()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # one of them would keep alive whom it was forked from
    output, failure = (os.open(each, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) for each in (log, errors))
    for ours, opened in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, failure)):
        os.dup2(opened, ours)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = command
    from app.cli import main  # noqa: PLC0415 - in the fork alone

    main()
