"""The rules of queues: which pods a queue admits, and what it may lose.

Seeds: Queue API, queue guarantee. A pod may exceed what its queue deserves only where nobody else has a claim to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policy.objects.conditions import Condition
from policy.objects.quantity import render
from policy.objects.queue import Queue
from policy.objects.resources import NOTHING, Resources, total
from policy.objects.verdict import Hint, Refusal, all_of
from policy.quota.proportion import Division
from policy.quota.rule import QUEUE, Figures, Rule, Use

if TYPE_CHECKING:
    from policy.objects.pod import Pod
    from policy.quota.ledger import Ledger
    from policy.quota.queue_ledger import QueueAccount, QueueLedger


def conditions(queue: Queue, division: Division | None) -> list[Condition]:
    """Returns what the owner of a queue should know about it."""
    found = []
    if queue.errors:
        kept = "the last good spec stays in force" if queue.readable else "every pod is refused until it is corrected"
        found.append(Condition("Invalid", "Unreadable", f"{'; '.join(queue.errors)}; {kept}"))
    beyond = sorted(r for r, amount in queue.guarantee.items() if amount > queue.capability.get(r, amount))
    if beyond:
        message = f"guarantee exceeds capability: {', '.join(beyond)}; capability is taken for guarantee there"
        found.append(Condition("Invalid", "GuaranteeExceedsCapability", message))
    if division is not None:
        unbacked = sorted(
            resource
            for resource, amount in queue.guarantee.items()
            if division.guarantee.get(resource, 0) < min(amount, queue.capability.get(resource, amount))
        )
        if unbacked:
            message = f"the nodes do not have what all queues are guaranteed: {', '.join(unbacked)}; scaled down"
            found.append(Condition("GuaranteeNotBacked", "NotEnoughNodes", message))
    if queue.notes:
        found.append(
            Condition("NotEnforced", "FieldNotUsed", f"read and kept, but not enforced: {', '.join(queue.notes)}")
        )
    return found


@dataclass(slots=True)
class Asking:
    """A pod that asks to be let in, which is not in the ledger, and the state that its queue's rules read.

    ``taken`` is taken in its queue, ``everywhere`` in all queues. The account of a queue that does not exist is empty.
    """

    namespace: str
    request: Resources
    account: QueueAccount
    ledger: QueueLedger
    taken: Resources
    everywhere: Resources

    def count_in_flight(self) -> None:
        """Counts also what may have been admitted before this process started."""
        self.taken = total((self.taken, self.account.in_flight))
        self.everywhere = total((self.everywhere, self.ledger.in_flight))


def closed(asking: Asking) -> list[str] | None:
    """Refuses every pod of a queue that is closed or does not exist: else its tenants would be free of every rule."""
    queue = asking.account.queue
    return None if queue is not None and queue.open else []


def over_capability(asking: Asking) -> list[str] | None:
    """Returns the resources in which the queue would exceed its capability, less others' guarantees."""
    taken, most = asking.taken, asking.account.division.real_capability
    exceeded = []
    for resource, asked in asking.request.items():
        if taken.get(resource, 0) + asked > most.get(resource, 0):
            exceeded.append(resource)
    if not exceeded:
        return None
    return _beyond_bounds(asking.ledger, asking.account, exceeded, total((taken, asking.request))) or None


def over_deserved(asking: Asking) -> list[str] | None:
    """Returns the resources in which the queue would take more than it deserves, though others have a claim to them."""
    ledger, account, taken = asking.ledger, asking.account, asking.taken
    deserved = account.division.deserved
    exceeded = []
    for resource, asked in asking.request.items():
        if taken.get(resource, 0) + asked > deserved.get(resource, 0) and ledger.lists(resource):
            together = asking.everywhere.get(resource, 0) + asked + claims_of_others(ledger, account, resource)
            if together > ledger.available.get(resource, 0):
                exceeded.append(resource)
    return exceeded or None


def refusal_to_move(ledger: QueueLedger, account: QueueAccount, request: Resources) -> Refusal | None:
    """Returns why a queue refuses a pod that runs in another already, or None. The pod must not be in the ledger.

    Others claim nothing that it does not have already. The division may lag behind the queue's capability, so the lower
    of the two counts.
    """
    if account.queue is None or not account.queue.open:
        return CLOSED.refusal()
    with_it, named = total((account.taken, request)), account.queue.capability
    most = {r: min(amount, named.get(r, amount)) for r, amount in account.division.real_capability.items()}
    exceeded = [r for r in request if with_it[r] > most.get(r, 0)]
    exceeded = _beyond_bounds(ledger, account, exceeded, with_it)
    return CAPABILITY.refusal(exceeded) if exceeded else None


def _beyond_bounds(ledger: QueueLedger, account: QueueAccount, resources: list[str], with_it: Resources) -> list[str]:
    """Returns the resources of these that are bounded. Only the queue's capability bounds those that no node lists."""
    named: Resources = account.queue.capability if account.queue else NOTHING
    return [r for r in resources if ledger.lists(r) or with_it[r] > named.get(r, with_it[r])]


def bound(ledger: QueueLedger, account: QueueAccount, resource: str) -> int | None:
    """Returns the most that a queue may use of a resource; None if nothing bounds it."""
    if ledger.lists(resource):
        return account.division.real_capability.get(resource, 0)
    return account.queue.capability.get(resource) if account.queue else None


def claims_of_others(ledger: QueueLedger, account: QueueAccount, resource: str) -> int:
    """Returns the claims of other queues, beyond what they have taken."""
    return ledger.claims.get(resource, 0) - account.claim.get(resource, 0)


def entitled_to(account: QueueAccount, request: Resources) -> frozenset[str]:
    """Returns the resources in which others must make room for this request; none, if it exceeds its queue's part.

    These are all requested ones, if its queue stays within what it deserves. Else they are those that the queue's
    guarantee names, if it stays within that: a guarantee holds whatever else the queue deserves, and however long the
    pod waits.
    """
    taken, deserved, kept = account.taken, account.division.deserved, account.division.guarantee
    if all(taken.get(r, 0) + asked <= deserved.get(r, 0) for r, asked in request.items()):
        return frozenset(request)
    named = frozenset(request).intersection(kept)
    return named if all(taken.get(r, 0) + request[r] <= kept[r] for r in named) else frozenset()


def is_over(account: QueueAccount, resource: str) -> bool:
    """Whether a queue has taken more than it deserves of a resource."""
    return account.taken.get(resource, 0) > account.division.deserved.get(resource, 0)


def may_lose(account: QueueAccount, request: Resources) -> bool:
    """Whether a pod with this request may be taken from the queue: it is reclaimable, and keeps its guarantee."""
    if account.queue is None or not account.queue.reclaimable:
        return False
    kept = account.division.guarantee
    return all(account.taken.get(r, 0) - asked >= kept.get(r, 0) for r, asked in request.items() if kept.get(r, 0))


def numbers(ledger: Ledger, pod: Pod) -> Figures:
    """Returns the figures that the rules compare, by requested resource."""
    account = ledger.queues.known(ledger.queue_of(pod))
    if account.queue is None:
        return {}
    return {r: _numbers(ledger.queues, account, r, asked) for r, asked in sorted(pod.request.items())}


def _numbers(ledger: QueueLedger, account: QueueAccount, resource: str, asked: int) -> dict[str, int]:
    row = {"request": asked, "allocated": account.taken.get(resource, 0)}
    named: Resources = account.queue.capability if account.queue else NOTHING
    if not ledger.lists(resource):
        return row | ({"realCapability": named[resource]} if resource in named else {})
    return row | {
        "deserved": account.division.deserved.get(resource, 0),
        "realCapability": account.division.real_capability.get(resource, 0),
        "guarantee": account.division.guarantee.get(resource, 0),
        "total": ledger.available.get(resource, 0),
        "allocatedInAllQueues": ledger.taken.get(resource, 0),
        "claimedByOtherQueues": claims_of_others(ledger, account, resource),
    }


def user_of_own(ledger: Ledger, pod: Pod, resource: str) -> Iterator[Use]:
    """Yields the pod's queue itself, by its capability."""
    name = ledger.queue_of(pod)
    account = ledger.queues.known(name)
    if account.queue is not None:
        yield _use(name, account, account.division.real_capability, resource)


def users_of_all(ledger: Ledger, _pod: Pod, resource: str) -> Iterator[Use]:
    """Yields all queues, by what they deserve."""
    for name, account in ledger.queues.accounts.items():
        if account.queue is not None:
            yield _use(name, account, account.division.deserved, resource)


def _use(name: str, account: QueueAccount, bound: Resources, resource: str) -> Use:
    used, most = account.taken.get(resource, 0), bound.get(resource, 0)
    return Use(QUEUE, name, used, most, tuple(account.tenants), name)


def _to_open(ledger: Ledger, pod: Pod, _refused: Sequence[str], _asked: Resources) -> tuple[Hint, ...]:
    name = ledger.queue_of(pod)
    target, queue = f"{QUEUE} {name}", ledger.queues.known(name).queue
    if queue is None:
        return (Hint(f"create {target}, or choose a queue that exists", target),)
    text = "; ".join(queue.errors) or f"it is {queue.state}"
    return (Hint(f"open {target}: {text}", target),)


def _to_raise_capability(ledger: Ledger, pod: Pod, refused: Sequence[str], asked: Resources) -> tuple[Hint, ...]:
    """Suggests a higher capability; more nodes where the capability is not what bounds the queue."""
    name = ledger.queue_of(pod)
    target, account = f"{QUEUE} {name}", ledger.queues.known(name)
    named: Resources = account.queue.capability if account.queue else NOTHING
    found = []
    for resource in refused:
        row = _numbers(ledger.queues, account, resource, asked[resource])
        needed = row["allocated"] + row["request"]
        if named.get(resource, needed) < needed:
            path = f"spec.capability.{resource}"
            text = f"raise capability of {resource} in {target} to at least {render(resource, needed)}"
            found.append(Hint(text, target, path, render(resource, needed)))
        else:
            amount = render(resource, needed - row["realCapability"])
            text = f"add nodes with {amount} of {resource}: the rest is used outside of queues, or guaranteed to others"
            found.append(Hint(text, "Node"))
    return all_of(found)


def _to_wait_for_others(ledger: Ledger, pod: Pod, refused: Sequence[str], asked: Resources) -> tuple[Hint, ...]:
    name = ledger.queue_of(pod)
    target, account = f"{QUEUE} {name}", ledger.queues.known(name)
    found = []
    for resource in refused:
        row = _numbers(ledger.queues, account, resource, asked[resource])
        lacking = row["allocatedInAllQueues"] + row["request"] + row["claimedByOtherQueues"] - row["total"]
        amount = render(resource, lacking)
        text = f"wait until other queues leave {amount} of {resource}, or raise the weight of {target}"
        found.append(Hint(text, target))
    return all_of(found)


CLOSED: Rule[Asking] = Rule("queue-closed", "Queue is closed", QUEUE, refuses=closed, numbers=numbers, hints=_to_open)
CAPABILITY: Rule[Asking] = Rule(
    "queue-capability",
    "Queue capability exceeded",
    QUEUE,
    refuses=over_capability,
    numbers=numbers,
    figures=("request", "allocated", "realCapability"),
    bound="realCapability",
    users=user_of_own,
    hints=_to_raise_capability,
)
DESERVED: Rule[Asking] = Rule(
    "queue-deserved",
    "Queue deserved exceeded",
    QUEUE,
    refuses=over_deserved,
    numbers=numbers,
    figures=("request", "allocated", "deserved", "total", "allocatedInAllQueues", "claimedByOtherQueues"),
    bound="deserved",
    users=users_of_all,
    hints=_to_wait_for_others,
)
RULES = (CLOSED, CAPABILITY, DESERVED)
