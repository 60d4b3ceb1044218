"""The reason why a pod waits, in one word: the rule that the scheduler's message names, or another reason."""

from policy.quota.rules import named_in

GATED = "gated"
"""It waits at its gate, so that no scheduler looks at it."""
QUEUED = "queued"
"""It stands for a Job that waits as a whole, so that no scheduler knows it."""
NO_ROOM = "no-room"
"""No node has room for it, says the scheduler, and names none of our rules."""
OTHER = "other"
"""The scheduler names another reason."""
UNTRIED = "untried"
"""No scheduler has judged it yet."""
_LACKS_ROOM = ("Insufficient ", "Too many pods")
"""The words of kube-scheduler (NodeResourcesFit) for a node that has too little left."""


def reason_in(message: str) -> str:
    """Returns the rule that a pod's condition names; else whether nodes lack room, or something else."""
    if (rule := named_in(message)) is not None:
        return rule.name
    return NO_ROOM if any(words in message for words in _LACKS_ROOM) else OTHER
