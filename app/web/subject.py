"""The page of a single object, as data: bars are of resources that operators name, so that each page is bounded."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from app.store.kind import Kind
from app.web.ahead import Ahead
from app.web.cells import Cell, Link
from app.web.figures import Bar
from app.web.plots import Happened
from app.web.tables import Table
from policy.objects.conditions import Condition

LINES = 200
"""Maximum number of lines of a manifest that are shown."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An object: what it is, its figures, tables of what belongs to it, and commands about it.

    ``own`` and ``most`` say what these parts of the bars are. ``manifest`` is the object as YAML, as far as the rules
    know it.
    """

    kind: str
    title: str
    above: tuple[Link, ...]
    facts: tuple[tuple[str, Cell], ...]
    bars: tuple[Bar, ...] = ()
    own: str = ""
    most: str = ""
    conditions: tuple[Condition, ...] = ()
    happened: Happened | None = None
    tables: tuple[Table, ...] = ()
    commands: tuple[str, ...] = ()
    manifest: str = ""
    ahead: Ahead | None = None


def scarce_first(bars: Iterable[Bar]) -> tuple[Bar, ...]:
    """Returns bars by how scarce their resources are, the scarcest first."""
    return tuple(sorted(bars, key=lambda bar: (-bar.scarcity, bar.resource)))


def yaml_of(kind: Kind, manifest: dict[str, Any]) -> str:
    """Formats an object; of one with thousands of lines only the first are shown."""
    whole = {"apiVersion": kind.api_version, "kind": kind.name} | manifest
    text = yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)
    lines = text.splitlines()
    return text if len(lines) <= LINES else "\n".join((*lines[:LINES], "# and more"))


def command(*words: str) -> str:
    """Returns a command as one types it into a shell."""
    return shlex.join(words)
