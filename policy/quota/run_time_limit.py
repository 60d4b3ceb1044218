"""The limit on how long pods may say that they run (``quotaward.dev/max-run-time`` of a Queue or an ElasticQuota).

A pod that says more is refused, and so is one of which nobody says how long it runs. The limit of its quota counts,
that of its queue, and those of the queues above it; the shortest decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policy.objects.run_time import keep_last
from policy.quota.rule import QUEUE, QUOTA, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policy.objects.pod import Pod
    from policy.objects.run_time import Key
    from policy.quota.ledger import Ledger

RULE: Rule[None] = Rule("run-time-exceeded", "Run time exceeds the limit", f"{QUOTA} or {QUEUE}")
REFUSAL = RULE.refusal()


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit or the default of an elastic quota, or of a queue (then its namespace is empty), in seconds."""

    seconds: int
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """Its object for people."""
        return f"{QUOTA} {self.namespace}/{self.name}" if self.namespace else f"{QUEUE} {self.name}"


def says_nothing(_: Pod) -> int | None:
    """Says of no pod how long it runs."""
    return None


class RunTimeLimits:
    """``most`` are the limits in force, in seconds. ``declared`` tells how long a pod runs, as far as somebody says."""

    def __init__(self, declared: Callable[[Pod], int | None] = says_nothing) -> None:
        self.most: dict[Key, int] = {}
        self.declared = declared

    def note(self, key: Key, seconds: int) -> None:
        """Notes the limit of a quota or queue. If it cannot be read, the last one that could be stays in force."""
        keep_last(self.most, key, seconds)

    def forget(self, key: Key) -> None:
        """Forgets a quota or queue that is gone."""
        self.most.pop(key, None)

    def refuses(self, ledger: Ledger, pod: Pod, queue: str) -> bool:
        """Whether a pod of this queue may not run for as long as it says, or says nothing."""
        limit = self.limit(ledger, pod.namespace, queue) if self.most else None
        if limit is None:
            return False
        declared = self.declared(pod)
        return declared is None or declared > limit.seconds

    def limit(self, ledger: Ledger, namespace: str, queue: str) -> Limit | None:
        """Returns the shortest limit for pods of a namespace in a queue; None if there is none."""
        return min(self._limits(ledger, namespace, queue), key=lambda each: each.seconds, default=None)

    def _limits(self, ledger: Ledger, namespace: str, queue: str) -> Iterator[Limit]:
        account, most = ledger.accounts.get(namespace), self.most
        quota = account.quota if account is not None else None
        if quota is not None and (seconds := most.get((namespace, quota.name))):
            yield Limit(seconds, namespace, quota.name)
        of_queue = ledger.queues.accounts.get(queue) if queue else None
        if of_queue is None:
            return
        above = (each.queue.name for each in of_queue.above if each.queue is not None)
        for name in (queue, *above):
            if seconds := most.get(("", name)):
                yield Limit(seconds, "", name)
