"""Structured logs on standard error, for people or as JSON.

Logging never fails, whatever happens to standard error: the caller is about to answer the scheduler.
"""

import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog

from app.inert import inert
from app.observability import metrics
from app.settings import LogSettings


class Sink:
    """Writes to standard error. Counts lines that cannot be written and are lost: no reader of the pipe, a full disk.

    Nothing is buffered, so that a lost line does not reappear with the next one, or at the end.
    """

    def __init__(self, stream: TextIO | None) -> None:
        """``stream`` is None if there is no standard error."""
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        try:
            self._file = stream.fileno() if stream is not None else None
        except (OSError, ValueError):
            self._file = None

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._file is not None and os.isatty(self._file)

    def write(self, text: str) -> int:
        """Writes as much as possible."""
        rest = text.encode(self._encoding, "backslashreplace")
        try:
            while rest and self._file is not None:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            pass
        if rest:
            metrics.LOG_LOST.inc()
        return len(text)

    def flush(self) -> None:
        """Does nothing, as nothing is buffered."""


def configure(settings: LogSettings) -> None:
    """Configures logging for the process, including libraries."""
    _occupy_standard_streams()
    sink = Sink(sys.stderr)
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    rendering: list[structlog.typing.Processor] = (
        [structlog.processors.JSONRenderer()]  # it escapes text itself
        if settings.format == "json"
        else [_make_inert, structlog.dev.ConsoleRenderer(colors=sink.isatty())]
    )
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", sink)),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sink)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)


def _make_inert(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Makes an event safe for a terminal: on one line, except the lines of a traceback."""
    for key, value in event.items():
        lines = str(value).split("\n") if key == "exception" else [value if isinstance(value, str) else repr(value)]
        event[key] = "\n".join(map(inert, lines))
    return event


def _occupy_standard_streams() -> None:
    """Opens those of 0, 1 and 2 that are closed: the next file would get the number, which breaks libuv."""
    while (lowest := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 - standard error
        pass
    os.close(lowest)


def warn_unknown(variable: str, closest: str) -> None:
    """Warns that an environment variable is no setting, and names the closest one."""
    structlog.get_logger(__name__).warning("environment variable is no setting", variable=variable, closest=closest)


def warn_insecure(address: str) -> None:
    """Warns that anybody who reaches the address may use it."""
    structlog.get_logger(__name__).warning("listening beyond loopback without TLS or authentication", address=address)
