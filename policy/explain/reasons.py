"""The reason why a pod waits, in one word: the rule that the scheduler's message names, or another reason."""

from functools import lru_cache

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
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


LONGEST_KEPT = 2000
"""Maximum number of characters of a scheduler's message for which the reason is cached."""


def is_waiting(cluster: Cluster, pod: Pod) -> bool:
    """Whether a pod (or the Job that it stands for) waits for a rule, for room, or for its turn."""
    return pod.pending and not pod.terminating and not pod.gated and pod.uid not in cluster.grants


def reason_in(message: str) -> str:
    """Returns the rule that a pod's condition names; else whether nodes lack room, or something else.

    Cached, as many pods have the same message.
    """
    return _cached_reason_in(message) if len(message) <= LONGEST_KEPT else _reason_in(message)


def _reason_in(message: str) -> str:
    if (rule := named_in(message)) is not None:
        return rule.name
    return NO_ROOM if any(words in message for words in _LACKS_ROOM) else OTHER


_cached_reason_in = lru_cache(maxsize=1024)(_reason_in)
