"""The rules of queues: which pods a queue admits, and what it may lose.

Seeds: Queue API, queue guarantee. A pod may exceed what its queue deserves only where nobody else has a claim to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from policy.objects import run_time
from policy.objects.conditions import Condition, one_of_each_type
from policy.objects.quantity import render
from policy.objects.queue import ROOT, Queue
from policy.objects.resources import NOTHING, Resources, total
from policy.objects.verdict import Hint, Refusal, all_of, names_in
from policy.quota.branches import Node, branches_above, way_up
from policy.quota.closed_queues import shortened
from policy.quota.proportion import Division
from policy.quota.rule import QUEUE, Figures, Rule, Use

if TYPE_CHECKING:
    from policy.objects.pod import Pod
    from policy.quota.ledger import Ledger
    from policy.quota.queue_account import QueueAccount
    from policy.quota.queue_ledger import QueueLedger


def conditions(queue: Queue, division: Division | None) -> list[Condition]:
    """Returns what the owner of a queue should know about it."""
    found = []
    if queue.errors:
        kept = "the last good spec stays in force" if queue.readable else "every pod is refused until it is corrected"
        found.append(Condition("Invalid", "Unreadable", f"{'; '.join(queue.errors)}; {kept}"))
    found += run_time.conditions(queue.run_time, queue.min_run_time, queue.max_run_time)
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
            whole = "the nodes do not have what all queues are"
            if queue.parent != ROOT:
                whole = f"Queue {shortened(queue.parent)}, or one above it, does not have what its children are"
            message = f"{whole} guaranteed: {', '.join(unbacked)}; scaled down"
            found.append(Condition("GuaranteeNotBacked", "NotEnoughNodes", message))
    if queue.notes:
        found.append(
            Condition("NotEnforced", "FieldNotUsed", f"read and kept, but not enforced: {', '.join(queue.notes)}")
        )
    return one_of_each_type(found)


TAKEN: Callable[[Node], Resources] = attrgetter("taken")


@dataclass(slots=True)
class Asking:
    """A pod that asks to be let in, which is not in the ledger, and the state that its queue's rules read.

    The account of a queue that does not exist is empty. ``taken`` returns what is taken in a queue and those below it.
    ``beyond`` are the queues, from its own up, that would take more than they deserve: see ``over_capability``.
    """

    namespace: str
    request: Resources
    account: QueueAccount
    ledger: QueueLedger
    taken: Callable[[Node], Resources] = TAKEN
    beyond: Sequence[Node] = ()

    def count_in_flight(self) -> None:
        """Counts also what may have been admitted before this process started."""
        self.taken = _with_in_flight


def _with_in_flight(node: Node) -> Resources:
    return total((node.taken, node.in_flight))


def closed(asking: Asking) -> list[str] | None:
    """Refuses every pod of a queue that is closed or does not exist: else its tenants would be free of every rule.

    A queue above it that is closed closes it, too.
    """
    return None if asking.account.opened else []


def invalid(asking: Asking) -> list[str] | None:
    """Refuses every pod of a queue that has no place in the tree: nobody knows whose part it would be from."""
    return [] if asking.account.invalid else None


def not_a_leaf(asking: Asking) -> list[str] | None:
    """Refuses every pod of a queue that has children: these share all that it has."""
    return [] if asking.account.inner else None


def over_capability(asking: Asking) -> list[str] | None:
    """Returns the resources in which the queue, or one above it, would exceed its capability, less others' guarantees.

    The first queue in whose way the pod is counts, from its own up. Within what it deserves a queue is within its
    capability, so that is looked at first, for this rule and the next.
    """
    account, root = asking.account, asking.ledger.root
    beyond = list[Node]()
    if _is_beyond(account, asking):
        beyond.append(account)
    if account.above and (beyond or asking.taken is not TAKEN or not asking.ledger.fits_above(account)):
        beyond += [each for each in account.above if _is_beyond(each, asking)]
    asking.beyond = beyond
    for each in (*beyond, root) if root.queue is not None else beyond:
        if (exceeded := over_capability_of(each, asking)) is not None:
            return exceeded
    return None


def _is_beyond(node: Node, asking: Asking) -> bool:
    """Whether a queue would take more than it deserves of a resource."""
    taken, deserved = asking.taken(node), node.division.deserved
    for resource, asked in asking.request.items():  # noqa: SIM110 - the scheduler waits; a generator takes longer
        if taken.get(resource, 0) + asked > deserved.get(resource, 0):
            return True
    return False


def over_capability_of(node: Node, asking: Asking) -> list[str] | None:
    """Returns the resources in which one of these queues would exceed its capability. The root needs none."""
    if node.parent is None and node.queue is None:
        return None
    taken, most = asking.taken(node), node.division.real_capability
    exceeded = []
    for resource, asked in asking.request.items():
        if taken.get(resource, 0) + asked > most.get(resource, 0):
            exceeded.append(resource)
    if not exceeded:
        return None
    return _beyond_bounds(asking.ledger, node, exceeded, total((taken, asking.request))) or None


def over_deserved(asking: Asking) -> list[str] | None:
    """Returns the resources in which the queue, or one above it, would take more than it deserves.

    It may, as long as its siblings have no claim to them. The first queue in whose way the pod is counts.
    """
    for node in asking.beyond:
        if (exceeded := over_deserved_of(node, asking)) is not None:
            return exceeded
    return None


def over_deserved_of(node: Node, asking: Asking) -> list[str] | None:
    """Returns the resources in which one of these queues would take more than it deserves, though others claim them."""
    taken, deserved = asking.taken(node), node.division.deserved
    exceeded = []
    for resource, asked in asking.request.items():
        if taken.get(resource, 0) + asked > deserved.get(resource, 0) and asking.ledger.lists(resource):
            parent = node.parent or asking.ledger.root
            together = asking.taken(parent).get(resource, 0) + asked + claims_of_others(asking.ledger, node, resource)
            if together > room(asking.ledger, parent, resource, asking.taken):
                exceeded.append(resource)
    return exceeded or None


def room(ledger: QueueLedger, node: Node, resource: str, taken: Callable[[Node], Resources] = TAKEN) -> int:
    """Returns what all in a queue and below it may take together of a resource that nodes list.

    That is what it deserves, or more where none of its siblings has a claim to it; never more than its bound.
    """
    deserved, parent = node.division.deserved.get(resource, 0), node.parent
    if parent is None:
        return deserved
    elsewhere = taken(parent).get(resource, 0) - taken(node).get(resource, 0)
    unclaimed = room(ledger, parent, resource, taken) - elsewhere - claims_of_others(ledger, node, resource)
    return min(max(deserved, unclaimed), node.division.real_capability.get(resource, 0))


def refusal_to_move(
    ledger: QueueLedger, account: QueueAccount, request: Resources, brought: Resources
) -> Refusal | None:
    """Returns why a queue refuses a pod that runs already, or None. The pod must not be in the ledger.

    Others claim nothing that it does not have already. The division may lag behind the queue's capability, so the lower
    of the two counts. ``brought`` is what the queues may share once the pod is in one of them: its request, if it ran
    in none. Without it, a pod that fills the only GPU would keep its queue from any GPU, and so itself from the queue.
    """
    for rule in OF_SHUT:
        if rule.refuses is not None and rule.refuses(Asking("", request, account, ledger)) is not None:
            return rule.refusal()
    for node in way_up(account):
        with_it, named = total((node.taken, request)), capability_of(node)
        bounds = total((node.division.real_capability, brought))
        most = {r: min(amount, named.get(r, amount)) for r, amount in bounds.items()}
        exceeded = [r for r in request if with_it[r] > most.get(r, 0)]
        exceeded = _beyond_bounds(ledger, node, exceeded, with_it)
        if exceeded:
            return CAPABILITY.refusal(exceeded)
    return None


def _beyond_bounds(ledger: QueueLedger, node: Node, resources: list[str], with_it: Resources) -> list[str]:
    """Returns the resources of these that are bounded. Only the queue's capability bounds those that no node lists.

    Only that of a Queue named root bounds the root.
    """
    named = capability_of(node)
    if node.parent is None:
        return [r for r in resources if with_it[r] > named.get(r, with_it[r])]
    return [r for r in resources if ledger.lists(r) or with_it[r] > named.get(r, with_it[r])]


def capability_of(node: Node) -> Resources:
    """Returns the capability that the spec of a queue names; none for a root that no Queue bounds."""
    return node.queue.capability if node.queue is not None else NOTHING


def bound(ledger: QueueLedger, node: Node, resource: str) -> int | None:
    """Returns the most that a queue may use of a resource; None if nothing bounds it."""
    if ledger.lists(resource):
        return node.division.real_capability.get(resource, 0)
    return capability_of(node).get(resource)


def claims_of_others(ledger: QueueLedger, node: Node, resource: str) -> int:
    """Returns the claims of a queue's siblings, beyond what they have taken."""
    if ledger.branches.stale:
        ledger.branches.settle()
    claims = node.parent.claims if node.parent is not None else NOTHING
    return claims.get(resource, 0) - node.claim.get(resource, 0)


def entitled_to(node: Node, request: Resources) -> frozenset[str]:
    """Returns the resources in which others must make room for this request; none, if it exceeds its queue's part.

    These are all requested ones, if its queue stays within what it deserves. Else they are those that the queue's
    guarantee names, if it stays within that: a guarantee holds whatever else the queue deserves, and however long the
    pod waits.
    """
    taken, deserved, kept = node.taken, node.division.deserved, node.division.guarantee
    if all(taken.get(r, 0) + asked <= deserved.get(r, 0) for r, asked in request.items()):
        return frozenset(request)
    named = frozenset(request).intersection(kept)
    return named if all(taken.get(r, 0) + request[r] <= kept[r] for r in named) else frozenset()


def is_over(node: Node, resource: str) -> bool:
    """Whether a queue has taken more than it deserves of a resource. Pods of a queue with children always are."""
    return node.taken.get(resource, 0) > node.division.deserved.get(resource, 0)


def may_lose(node: Node, request: Resources) -> bool:
    """Whether pods with this request may be taken from a queue: it is reclaimable, and keeps its guarantee."""
    if node.queue is None or not (node.queue.reclaimable or _is_own_part(node)):
        return False
    kept = node.division.guarantee
    return all(node.taken.get(r, 0) - asked >= kept.get(r, 0) for r, asked in request.items() if kept.get(r, 0))


def _is_own_part(node: Node) -> bool:
    """Whether this is the account of a queue with children: its branch says what is taken from outside of it."""
    return node.parent is not None and node.parent.queue is node.queue


@dataclass(frozen=True, slots=True)
class Way:
    """The way between two queues over their nearest common branch, each without that branch.

    ``up`` has the branches above the first queue. ``down`` has the other queue and the branches above it; its last one
    is right below the common branch. The first queue may be none: then the way starts at the root.
    """

    up: tuple[Node, ...]
    down: tuple[Node, ...]

    def lends(self, resource: str) -> bool:
        """Whether the other queue has more than it deserves of a resource, with all around it that the first is not in.

        The branches between these two need not.
        """
        return is_over(self.down[0], resource) and (len(self.down) == 1 or is_over(self.down[-1], resource))

    def may_lose(self, request: Resources) -> bool:
        """Whether pods with this request may be taken from the other queue as far as all queues on the way say."""
        return all(may_lose(node, request) for node in self.down)

    def entitles(self, request: Resources, resource: str) -> bool:
        """Whether others must make room for this request of the first queue as far as the branches above it say."""
        return all(resource in entitled_to(node, request) for node in self.up)


def way_between(own: QueueAccount | None, other: QueueAccount) -> Way:
    """Returns the way from a queue to another one that exists."""
    if own is not None and own.parent is other.parent:
        return Way((), (other,))
    mine = tuple(branches_above(own)) if own is not None and own.queue is not None else ()
    down = tuple(node for node in way_up(other) if node not in mine)
    common = next((node for node in mine if any(node is each for each in branches_above(other))), None)
    return Way(mine[: mine.index(common)] if common is not None else mine, down)


def numbers(ledger: Ledger, pod: Pod) -> Figures:
    """Returns the figures that the rules compare, by requested resource: those of the queue that is in the way."""
    account = ledger.queues.known(ledger.queue_of(pod))
    if account.queue is None:
        return {}
    node = in_the_way(ledger.queues, account, pod.request)
    return {r: _numbers(ledger.queues, node, r, asked) for r, asked in sorted(pod.request.items())}


def in_the_way(ledger: QueueLedger, account: QueueAccount, request: Resources) -> Node:
    """Returns the first queue that refuses a pod, from its own up; its own if none does."""
    asking = Asking("", request, account, ledger)
    for refuses in (over_capability_of, over_deserved_of):
        for node in way_up(account):
            if refuses(node, asking) is not None:
                return node
        if refuses is over_capability_of and refuses(ledger.root, asking) is not None:
            return ledger.root
    return account


def _numbers(ledger: QueueLedger, node: Node, resource: str, asked: int) -> dict[str, int]:
    row = {"request": asked, "allocated": node.taken.get(resource, 0)}
    named = capability_of(node)
    if not ledger.lists(resource):
        return row | ({"realCapability": named[resource]} if resource in named else {})
    parent = node.parent or ledger.root
    return row | {
        "deserved": node.division.deserved.get(resource, 0),
        "realCapability": node.division.real_capability.get(resource, 0),
        "guarantee": node.division.guarantee.get(resource, 0),
        "total": room(ledger, parent, resource),
        "allocatedInAllQueues": parent.taken.get(resource, 0),
        "claimedByOtherQueues": claims_of_others(ledger, node, resource),
    }


def user_of_own(ledger: Ledger, pod: Pod, resource: str) -> Iterator[Use]:
    """Yields the queue that is in the pod's way, by its capability; of one with children those below it."""
    account = ledger.queues.known(ledger.queue_of(pod))
    if account.queue is not None:
        node = in_the_way(ledger.queues, account, pod.request)
        yield from _uses(ledger.queues, node, resource, lambda each: each.division.real_capability)


def users_of_all(ledger: Ledger, pod: Pod, resource: str) -> Iterator[Use]:
    """Yields all queues, by what they deserve; where one above is in the pod's way, those below that one's parent."""
    node = in_the_way(ledger.queues, ledger.queues.known(ledger.queue_of(pod)), pod.request)
    yield from _uses(ledger.queues, node.parent or ledger.queues.root, resource, lambda each: each.division.deserved)


def _uses(ledger: QueueLedger, node: Node, resource: str, bound: Callable[[Node], Resources]) -> Iterator[Use]:
    for name, account in below(ledger, node):
        used, most = account.taken.get(resource, 0), bound(account).get(resource, 0)
        yield Use(QUEUE, name, used, most, tuple(account.tenants), name)


def below(ledger: QueueLedger, node: Node) -> Iterator[tuple[str, QueueAccount]]:
    """Yields the names and accounts of the queues that count in one: itself, and all below it."""
    for name, account in ledger.accounts.items():
        if account.queue is not None and any(each is node for each in (*way_up(account), ledger.root)):
            yield name, account


def name_of(node: Node) -> str:
    """Returns the name of a queue."""
    return node.queue.name if node.queue is not None else ROOT


def closed_on_the_way(ledger: QueueLedger, name: str) -> Queue | None:
    """Returns the first queue that is closed, of one that exists and those above it; None if all are open."""
    way = (ledger.accounts[each].queue for each in (name, *ledger.tree.above(name)))
    return next((each for each in (*way, ledger.root.queue) if each is not None and not each.open), None)


def _to_open(ledger: Ledger, pod: Pod, _refused: Sequence[str], _asked: Resources) -> tuple[Hint, ...]:
    name = ledger.queue_of(pod)
    if ledger.queues.known(name).queue is None:
        return (Hint(f"choose a queue that exists, or create {QUEUE} {name}", f"{QUEUE} {name}"),)
    shut = closed_on_the_way(ledger.queues, name)
    if shut is None:
        return ()
    text = "; ".join(shut.errors) or f"it is {shut.state}"
    return (Hint(f"open {QUEUE} {shut.name}: {text}", f"{QUEUE} {shut.name}"),)


def _to_correct_parent(ledger: Ledger, pod: Pod, _refused: Sequence[str], _asked: Resources) -> tuple[Hint, ...]:
    name = ledger.queue_of(pod)
    text = f"correct spec.parent of {QUEUE} {name}, or of one above it: {ledger.queues.known(name).invalid}"
    return (Hint(text, f"{QUEUE} {name}", "spec.parent"),)


def _to_choose_a_leaf(ledger: Ledger, pod: Pod, _refused: Sequence[str], _asked: Resources) -> tuple[Hint, ...]:
    name = ledger.queue_of(pod)
    children = names_in(ledger.queues.tree.children_of(name))
    return (Hint(f"choose a queue below {QUEUE} {name} that has no children itself: {children}", f"{QUEUE} {name}"),)


def _to_raise_capability(ledger: Ledger, pod: Pod, refused: Sequence[str], asked: Resources) -> tuple[Hint, ...]:
    """Suggests a higher capability; more nodes where the capability is not what bounds the queue."""
    node = in_the_way(ledger.queues, ledger.queues.known(ledger.queue_of(pod)), pod.request)
    target, named = f"{QUEUE} {name_of(node)}", capability_of(node)
    found = []
    for resource in refused:
        row = _numbers(ledger.queues, node, resource, asked[resource])
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
    node = in_the_way(ledger.queues, ledger.queues.known(ledger.queue_of(pod)), pod.request)
    target = f"{QUEUE} {name_of(node)}"
    found = []
    for resource in refused:
        row = _numbers(ledger.queues, node, resource, asked[resource])
        lacking = row["allocatedInAllQueues"] + row["request"] + row["claimedByOtherQueues"] - row["total"]
        amount = render(resource, lacking)
        text = f"wait until other queues leave {amount} of {resource}, or raise the weight of {target}"
        found.append(Hint(text, target))
    return all_of(found)


CLOSED: Rule[Asking] = Rule("queue-closed", "Queue is closed", QUEUE, refuses=closed, numbers=numbers, hints=_to_open)
INVALID: Rule[Asking] = Rule(
    "queue-invalid", "Queue is invalid", QUEUE, refuses=invalid, numbers=numbers, hints=_to_correct_parent
)
NOT_A_LEAF: Rule[Asking] = Rule(
    "queue-not-a-leaf", "Queue has child queues", QUEUE, refuses=not_a_leaf, hints=_to_choose_a_leaf
)
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
OF_SHUT = (CLOSED, INVALID, NOT_A_LEAF)
"""Rules that refuse every pod of a queue, or none."""
RULES = (*OF_SHUT, CAPABILITY, DESERVED)
