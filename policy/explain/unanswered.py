"""Finds in messages of kube-scheduler that an extender gave no answer."""

import re
from dataclasses import dataclass

SHOWN = 300
"""Maximum number of characters of a reason that are shown."""
_FAILED = re.compile(
    r'Post "(?P<url>https?://[^"]+)": (?P<why>.+)'
    r"|failed \w+ with extender at URL (?P<at>\S+), code (?P<code>\d+)"
)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The address that an extender was called at, and why that gave no answer."""

    url: str
    why: str


def unanswered_in(message: str) -> NoAnswer | None:
    """Returns what a message says of an extender that gave no answer, or None if it is about something else."""
    found = _FAILED.match(message)
    if found is None:
        return None
    return NoAnswer(found["url"] or found["at"], (found["why"] or f"it answers {found['code']}")[:SHOWN])
