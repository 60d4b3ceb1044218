"""What a check has found."""

from dataclasses import dataclass

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found: an ``error`` makes an object useless, a ``warning`` is allowed and rarely meant."""

    severity: str
    text: str


def warning(text: str) -> Finding:
    """Something that is allowed and rarely meant."""
    return Finding(WARNING, text)


def error(text: str) -> Finding:
    """Something that cannot work."""
    return Finding(ERROR, text)
