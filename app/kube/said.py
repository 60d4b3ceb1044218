"""What the API server says where it does not do what it was asked: a sentence for people, not the whole answer."""

import msgspec

LONGEST = 1000
"""Characters of it that are repeated: names in it may be long, and a proxy may say anything."""


class _Status(msgspec.Struct, gc=False):
    message: str = ""


_decoder = msgspec.json.Decoder(_Status)


def said(body: bytes | str | None) -> str:
    """The message of the Status that an answer consists of, in one line; of an answer that is none how it begins."""
    text = body or b""
    try:
        message = _decoder.decode(text).message
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        message = text if isinstance(text, str) else text[: 4 * LONGEST].decode(errors="replace")
    return in_one_line(message)


def in_one_line(text: str) -> str:
    """The beginning of a text, without the ends of lines."""
    return " ".join(text[: 4 * LONGEST].split())[:LONGEST]
