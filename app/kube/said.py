"""Error messages of the API server: one sentence for people, not the whole answer."""

import msgspec

LONGEST = 1000
"""Characters of a message that are kept: names in it may be long, and a proxy may answer anything."""


class _Status(msgspec.Struct, gc=False):
    message: str = ""


_decoder = msgspec.json.Decoder(_Status)


def said(body: bytes | str | None) -> str:
    """Returns the message of the Status in an answer, in one line; the beginning of the answer if it is no Status."""
    text = body or b""
    try:
        message = _decoder.decode(text).message
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        message = text if isinstance(text, str) else text[: 4 * LONGEST].decode(errors="replace")
    return in_one_line(message)


def in_one_line(text: str) -> str:
    """Returns the beginning of a text in one line."""
    return " ".join(text[: 4 * LONGEST].split())[:LONGEST]
