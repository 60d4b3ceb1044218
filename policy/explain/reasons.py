"""Why a pod waits, in one word: the rule that a scheduler's words name, or what else they say."""

from policy.quota.rules import named_in

GATED = "gated"
"""It waits at its gate, so that no scheduler looks at it."""
NO_ROOM = "no-room"
"""No node has room for it, as far as the scheduler says so and names none of our rules."""
OTHER = "other"
"""The scheduler names another reason."""
UNTRIED = "untried"
"""No scheduler has said anything of it yet."""
_LACKS_ROOM = ("Insufficient ", "Too many pods")
"""What kube-scheduler (NodeResourcesFit) says of a node that has too little left."""


def reason_in(message: str) -> str:
    """The rule that a pod's condition names; else whether it is room that nodes lack, or something else."""
    if (rule := named_in(message)) is not None:
        return rule.name
    return NO_ROOM if any(words in message for words in _LACKS_ROOM) else OTHER
