"""Renders templates to HTML, in which all text from the cluster is escaped, and sets their headers."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from app.amounts import amount
from app.inert import inert
from app.problems import Problem
from app.web.board import id_of

CHUNK = 16_000
"""Characters of a page that are sent at a time."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers that allow no other origin, no scripts but our files, and no framing of the page."""
EVENTS = HEADERS | {"content-type": "text/event-stream", "x-accel-buffering": "no"}
DOCS_HEADERS = HEADERS | {
    "content-security-policy": HEADERS["content-security-policy"].replace(
        "style-src 'self'", "style-src 'self' 'unsafe-inline'"
    )
}
"""Headers for /docs: Swagger UI writes styles into elements."""


def percent(part: int, whole: int) -> str:
    """Formats a part of a whole as a percentage, to a tenth."""
    return f"{max(0, min(100, 100 * part / whole)) if whole else 0:.1f}".removesuffix(".0")


def rounded_duration(seconds: float) -> str:
    """Formats a duration for people, in the largest unit of which it is more than one and a half."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def time_of(seconds: float) -> Markup:
    """Formats seconds since the epoch as an element, of which the script makes an age."""
    try:
        return written(datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    except (OverflowError, ValueError, OSError):
        return Markup("at some time")


def written(text: str) -> Markup:
    """Formats a time in RFC 3339 as an element."""
    return Markup('<time datetime="{}">{} UTC</time>').format(text, text.replace("T", " ").removesuffix("Z"))


def _inert(value: Any) -> Any:
    """Sanitizes a value for a template: makes text of others inert, and keeps our own HTML."""
    return inert(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def environment() -> Environment:
    """Returns the environment with all templates compiled: compiling takes too long while the scheduler waits."""
    made = Environment(
        loader=PackageLoader("app.web"),
        autoescape=True,
        finalize=_inert,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "amount": amount,
        "duration": rounded_duration,
        "id_of": id_of,
        "percent": percent,
        "time_of": time_of,
        "written": written,
        "root": ".",
    }
    for name in made.list_templates():
        made.get_template(name)
    return made


async def in_chunks(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Joins a page into chunks, between which the loop answers the scheduler."""
    gathered: list[str] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield "".join(gathered)
            await asyncio.sleep(0)
            gathered.clear()
            size = 0
    yield "".join(gathered)


def error_page(problem: Problem, root: str) -> Response:
    """Shows a problem as a page."""
    title = problem.document()["title"]
    text = (
        environment()
        .get_template("error.html")
        .render(root=root, version="", now=time.time(), live_of="", title=title, detail=problem.detail)
    )
    return HTMLResponse(text, problem.status, HEADERS)
