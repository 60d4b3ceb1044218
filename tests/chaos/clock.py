"""Quotaward whose wall clock can be put forward and back while it runs; its monotonic clock goes on as ever.

``python -m tests.chaos.clock FILE serve ...`` is ``quotaward serve ...`` on a wall clock that is wrong by as many
seconds as the file says. It stands for libfaketime, which is not everywhere.
"""

import datetime as dt
import importlib
import sys
import time
from pathlib import Path

_EVERY = 0.2  # seconds between looks at the file


class Clock:
    """The wall clock, with an error that is read from a file."""

    def __init__(self, file: Path):
        self._file = file
        self._time = time.time
        self._error, self._read_at = 0.0, float("-inf")

    def time(self) -> float:
        now = time.monotonic()
        if now - self._read_at > _EVERY:
            self._error, self._read_at = float(self._file.read_text() or 0), now
        return self._time() + self._error


class Datetime(dt.datetime):
    """Tells the time by the wrong clock, but gives plain objects."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
        return dt.datetime.fromtimestamp(time.time(), tz)


def set_wrong(file: str) -> None:
    """Gives the wrong clock to everything of Quotaward, which must not be imported yet."""
    time.time = Clock(Path(file)).time
    for name in ("app.main", "app.actuators.kubernetes", "app.kube.lease"):  # the last two are imported late
        importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        if name.startswith(("app.controllers.", "app.kube.")) and getattr(module, "datetime", None) is dt.datetime:
            module.datetime = Datetime


if __name__ == "__main__":
    set_wrong(sys.argv.pop(1))
    from app.cli import main

    main()
