"""The expected start of a waiting job, as REST and explanations show it."""

from collections.abc import Collection

from app.api.models import ExpectedStartModel
from app.times import rfc3339
from app.whatif.expected_starts import ExpectedStarts
from policy.objects.pod import Pod
from policy.simulate.expected_start import ESTIMATED

NONE = "none"
"""The basis of an expected start if no end that is known lets the job start."""
ASSUMING = "nobody of higher rank comes"


def model(starts: ExpectedStarts, pods: Collection[Pod]) -> ExpectedStartModel | None:
    """Returns the first expected start of these pods; None if it is not known yet."""
    found, earliest = starts.of(pods), starts.earliest(pods)
    first = rfc3339(earliest) if earliest is not None else None
    if found is not None:
        at, after = rfc3339(found.at), list(found.after)
        return ExpectedStartModel(at=at, earliest=first, basis=found.basis, after=after, assuming=ASSUMING)
    if not starts.was_sought(pods):
        return None
    return ExpectedStartModel(at="", earliest=first, basis=NONE, after=[], assuming=ASSUMING)


def sentence(expected: ExpectedStartModel | None, unknown: str = "") -> str:
    """Returns what an explanation says of it; empty without a time. ``unknown``: why nobody can know it."""
    if unknown:
        return f" Expected start: not known, since {unknown}."
    if expected is None or not expected.at:
        return ""
    after = f", once {', '.join(expected.after)} {'has' if len(expected.after) == 1 else 'have'} ended"
    guess = " (estimated)" if expected.basis == ESTIMATED else ""
    said = f" Expected start: {expected.at}{guess}{after if expected.after else ''}, if {expected.assuming}."
    if expected.earliest is None or expected.earliest == expected.at:
        return said
    return f"{said} Nodes have room for it from {expected.earliest} on, if nobody else waited."
