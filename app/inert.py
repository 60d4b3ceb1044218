"""Makes text of others harmless to show: terminals obey some characters, and others deceive readers.

It is used where text leaves for people: arguments and output of the command line, logs, Events, the page and charts.
JSON has its own escapes.
"""

import re
import sys
from typing import Any

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Unicode calls letters or marks, but that show nothing."""


def inert(text: str) -> str:
    r"""Escapes every character that is not seen as what it is, as ``\x1b`` or ``\u202e``.

    Those are control characters (ESC, DEL, line breaks and C1 among them), bidi controls, zero-width characters, lone
    surrogates, and unusual spaces. Escaping again changes nothing.
    """
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return "".join(each if each.isprintable() and not _UNSEEN.match(each) else _escaped(each) for each in text)


def inert_document(value: Any) -> Any:
    """Returns a JSON value in which all text is inert, including keys."""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, dict):
        return {inert_document(key): inert_document(each) for key, each in value.items()}
    return [inert_document(each) for each in value] if isinstance(value, list) else value


def say(*lines: str, err: bool = False) -> None:
    """Prints lines on standard output or standard error; each stays one line."""
    for line in lines:
        print(inert(line), file=sys.stderr if err else sys.stdout, flush=True)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
