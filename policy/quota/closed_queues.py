"""Tells people why a queue admits nobody. kube-scheduler is told in all these cases that the queue is closed."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice

from policy.objects.membership import Membership
from policy.objects.pod import Pod
from policy.objects.queue import Queue

LONGEST = 63
"""Characters of a name that are shown: tenants may write names of any length."""
MOST_COMPARED = 500
"""The most names that are compared with a missing one: that takes some milliseconds."""
NEAR = 3
"""The most similar names that are told."""


def why_closed(queues: Mapping[str, Queue], membership: Membership, pod: Pod) -> str:
    """Returns why the pod's queue admits nobody; empty if it does, or the pod is in none."""
    name = membership.queue_of(pod) if queues else ""
    queue = queues.get(name)
    if not name or (queue is not None and queue.open):
        return ""
    if queue is None:
        return f"there is no Queue {shortened(name)}, which {membership.who_names_the_queue_of(pod)} names"
    return f"Queue {name} cannot be read" if not queue.readable else f"Queue {name} is {queue.state}"


def near(name: str, names: Iterable[str]) -> list[str]:
    """Returns the existing names that the author of a missing one may have meant."""
    return get_close_matches(shortened(name), list(islice(names, MOST_COMPARED)), n=NEAR)


def shortened(name: str) -> str:
    """Returns a name, cut to what is shown."""
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
