"""What a check has found."""

from dataclasses import dataclass

ERROR, WARNING, INFO = "error", "warning", "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found: an ``error`` makes an object useless, a ``warning`` is allowed and rarely meant.

    An ``info`` is as it may be.
    """

    severity: str
    text: str


def warning(text: str) -> Finding:
    """Something that is allowed and rarely meant."""
    return Finding(WARNING, text)


def info(text: str) -> Finding:
    """Something that is worth knowing."""
    return Finding(INFO, text)


def error(text: str) -> Finding:
    """Something that cannot work."""
    return Finding(ERROR, text)
