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
    found = starts.of(pods)
    if found is not None:
        at, after = rfc3339(found.at), list(found.after)
        return ExpectedStartModel(at=at, basis=found.basis, after=after, assuming=ASSUMING)
    return ExpectedStartModel(at="", basis=NONE, after=[], assuming=ASSUMING) if starts.was_sought(pods) else None


def sentence(expected: ExpectedStartModel | None) -> str:
    """Returns what an explanation says of it; empty without a time."""
    if expected is None or not expected.at:
        return ""
    after = f", once {', '.join(expected.after)} {'has' if len(expected.after) == 1 else 'have'} ended"
    guess = " (estimated)" if expected.basis == ESTIMATED else ""
    return f" Expected start: {expected.at}{guess}{after if expected.after else ''}, if {expected.assuming}."
