"""Structured logs on standard error, for people or as JSON."""

import logging
import sys

import structlog

from app.settings import LogSettings


def configure(settings: LogSettings) -> None:
    """Sets up logging for the process, that of libraries included."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if settings.format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)


def warn_unknown(variable: str, closest: str) -> None:
    """Says that an environment variable is taken for no setting, and which may be meant."""
    structlog.get_logger(__name__).warning("environment variable is no setting", variable=variable, closest=closest)


def warn_insecure(address: str) -> None:
    """Says loudly that anybody who reaches the address may ask."""
    structlog.get_logger(__name__).warning("listening beyond loopback without TLS or authentication", address=address)
