"""What others wrote, made harmless to show: terminals obey some characters, and others deceive readers.

Used where text leaves for people: what the command line is told and prints, logs, Events, the page and charts. JSON has
escapes of its own.
"""

import re
import sys
from typing import Any

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that are letters or marks to Unicode, and show nothing."""


def inert(text: str) -> str:
    r"""The text with everything escaped that is not seen as what it is, as ``\x1b`` or ``\u202e``.

    Those are control characters (ESC, DEL, line breaks and C1 among them), bidi controls, zero-width characters, lone
    surrogates, and spaces that are none. What was escaped stays as it is if that is done again.
    """
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return "".join(each if each.isprintable() and not _UNSEEN.match(each) else _escaped(each) for each in text)


def inert_document(value: Any) -> Any:
    """A JSON value in which all text is inert, keys as well."""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, dict):
        return {inert_document(key): inert_document(each) for key, each in value.items()}
    return [inert_document(each) for each in value] if isinstance(value, list) else value


def say(*lines: str, err: bool = False) -> None:
    """Prints lines, each of which stays one, on standard output, or on standard error."""
    for line in lines:
        print(inert(line), file=sys.stderr if err else sys.stdout, flush=True)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
