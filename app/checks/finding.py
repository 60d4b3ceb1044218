"""The findings of a check."""

from dataclasses import dataclass

ERROR, WARNING, INFO = "error", "warning", "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: an ``error`` makes an object useless, a ``warning`` is allowed but rarely intended.

    An ``info`` needs no action.
    """

    severity: str
    text: str


def warning(text: str) -> Finding:
    """Returns a finding about something allowed but rarely intended."""
    return Finding(WARNING, text)


def info(text: str) -> Finding:
    """Returns a finding that is worth knowing."""
    return Finding(INFO, text)


def error(text: str) -> Finding:
    """Returns a finding about something that cannot work."""
    return Finding(ERROR, text)
