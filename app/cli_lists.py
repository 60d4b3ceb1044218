"""Lists on the command line: as a table, or as kubectl users expect them; sorted, and followed as they change."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from app.client import Command, WrongOption, with_options
from policy.objects.quantity import InvalidQuantity, to_milli

Document = dict[str, Any]


class Format(StrEnum):
    """The forms of output. ``name``: what other commands take, a line each."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


AGAIN = 2.0
"""Seconds between two looks of ``--watch``."""

ABSENT = (2, 0.0, "")
"""The sort key of an item without the field."""

Output = Annotated[
    Format, typer.Option("--output", "-o", help="Form of the output; wide has more columns, if there are any.")
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Show the list again each time it has changed.")]
SortBy = Annotated[
    str, typer.Option("--sort-by", metavar="FIELD", help="Sort by a field of -o json: place, or used.cpu.")
]


@dataclass(frozen=True, slots=True)
class Listing:
    """How a list is to be shown."""

    output: Format
    watch: bool
    sort_by: str

    def show(self, ask: Callable[[], Document], print_table: Callable[..., None], name_of: Callable[..., str]) -> None:
        """Shows a list, until interrupted if it is watched. Raises CannotAsk, or WrongOption for an unknown field."""
        before: Document | None = None
        try:
            while True:
                document = ask()
                if document != before:
                    before = document
                    self._print(document, print_table, name_of)
                if not self.watch:
                    return
                time.sleep(AGAIN)
        except KeyboardInterrupt:
            return

    def _print(self, document: Document, print_table: Callable[..., None], name_of: Callable[..., str]) -> None:
        if self.sort_by:
            document = document | {"items": _sorted(document["items"], self.sort_by)}
        if self.output in (Format.JSON, Format.YAML):
            print_document(document, self.output)
        elif self.output == Format.NAME:
            for item in document["items"]:
                print(name_of(item), flush=self.watch)
        elif self.output == Format.WIDE:
            print_table(document, wide=True)
        else:
            print_table(document)


def showing_a_list(command: Command) -> Command:
    """Replaces a command's argument ``listing`` by the options of lists."""
    options = {"output": (Output, Format.TABLE), "watch": (Watch, False), "sort_by": (SortBy, "")}
    return with_options(command, "listing", options, Listing)


def print_document(document: Any, output: Format) -> None:
    """Prints a document as JSON or YAML."""
    if output == Format.JSON:
        print(json.dumps(document, indent=2, ensure_ascii=False), flush=True)
        return
    import yaml  # noqa: PLC0415 - only needed here

    print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), end="", flush=True)


def _sorted(items: list[Document], path: str) -> list[Document]:
    """Sorts by a field, numbers and quantities by their size. Raises WrongOption if no item has it."""
    field, _, key = path.partition(".")
    there = {name for item in items for name, value in item.items() if not isinstance(value, list)}
    found = [item.get(field) for item in items]
    sizes = [_size(value.get(key) if isinstance(value, dict) else value) for value in found]
    if items and (field not in there or all(size == ABSENT for size in sizes)):
        raise WrongOption(f"--sort-by: no item has {path!r}; there are {', '.join(sorted(there))}")
    return [item for _, _, item in sorted(zip(sizes, range(len(items)), items, strict=True), key=lambda each: each[:2])]


def _size(value: Any) -> tuple[int, float, str]:
    if isinstance(value, str):
        try:
            return 0, float(to_milli(value)), ""
        except InvalidQuantity:
            return 1, 0.0, value
    return (0, 1000.0 * value, "") if isinstance(value, int | float) else ABSENT
