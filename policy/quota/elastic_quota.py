"""Elastic quotas: min is guaranteed, max is a ceiling, and between them one borrows what others do not use.

Seed: capacity scheduling. Where its text leaves a choice: a resource absent from max is unlimited, one absent from
min is zero, and a pod that stays within its quota's min is not refused because others have borrowed everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.objects.conditions import Condition
from policy.objects.quantity import render
from policy.objects.resources import NOTHING, Resources, total
from policy.objects.verdict import Refusal, Remedy, all_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policy.objects.pod import Pod
    from policy.quota.ledger import Account, Ledger, Pool

MAX = "elastic-quota-max"
BORROWING = "elastic-quota-borrowing"
INVALID = "elastic-quota-invalid"

TEXTS = {
    MAX: "ElasticQuota max exceeded",
    BORROWING: "ElasticQuota borrowing exhausted",
    INVALID: "ElasticQuota is invalid",
}


@dataclass(frozen=True, slots=True)
class ElasticQuota:
    """An ElasticQuota in force or not, in amounts.

    ``min`` is the effective one: where the spec's min exceeds its max (``min_over_max``), max. ``errors`` says, field
    by field, what could not be read. ``readable`` is false where no spec of this object ever could be.
    """

    namespace: str
    name: str
    created: float = 0.0
    min: Resources = field(default_factory=dict)
    max: Resources = field(default_factory=dict)
    min_over_max: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    readable: bool = True


def elastic_quota(namespace: str, name: str, created: float, least: Resources, most: Resources) -> ElasticQuota:
    """A readable quota of a spec's min and max."""
    over = tuple(sorted(resource for resource, value in least.items() if value > most.get(resource, value)))
    effective = {resource: min(value, most.get(resource, value)) for resource, value in least.items()}
    return ElasticQuota(namespace, name, created, effective, most, over)


def in_force(quotas: Iterable[ElasticQuota]) -> ElasticQuota | None:
    """Which of a namespace's elastic quotas counts: the oldest, by creation and then name."""
    return min(quotas, key=lambda quota: (quota.created, quota.name), default=None)


def is_raised(before: ElasticQuota | None, after: ElasticQuota | None) -> bool:
    """Whether a namespace may use more than before, or is sure of more. Without a quota there is no bound."""
    if before is None or after is None:
        return after is None or bool(after.min)
    bounded = (after.max.get(r, most + 1) > most for r, most in before.max.items())
    return any(least > before.min.get(r, 0) for r, least in after.min.items()) or any(bounded)


def conditions(quota: ElasticQuota, governing: ElasticQuota) -> list[Condition]:
    """What is wrong with a quota, in a namespace that ``governing`` is in force for."""
    found = []
    if quota.errors:
        kept = "the last good spec stays in force" if quota.readable else "every pod is refused until it is corrected"
        found.append(Condition("Invalid", "Unreadable", f"{'; '.join(quota.errors)}; {kept}"))
    elif quota.min_over_max:
        message = f"min exceeds max: {', '.join(quota.min_over_max)}; max is taken for min there"
        found.append(Condition("Invalid", "MinExceedsMax", message))
    if quota.name != governing.name:
        message = f"ElasticQuota {governing.name} of this namespace is older and in force; this one counts for nothing"
        found.append(Condition("Conflict", "OlderQuotaInForce", message))
    return found


def refusal(ledger: Ledger, pod: Pod, *, strict_borrowing: bool, with_in_flight: bool = False) -> Refusal | None:
    """Why the pod's elastic quota refuses it, or None. The pod itself must not be part of used.

    ``strict_borrowing`` is the seed to the letter: the sum of min bounds even a pod within its own min.
    ``with_in_flight`` also counts what may have been admitted before this process started.
    """
    account = ledger.accounts.get(pod.namespace)
    if account is None or account.quota is None:
        return None
    if not account.quota.readable:
        return Refusal(INVALID, TEXTS[INVALID])
    own, pooled = ledger.ahead_of(pod, account)
    pinned: Resources = account.pinned
    if with_in_flight:
        own, pooled = total((own, account.in_flight)), total((pooled, ledger.pool.in_flight))
        pinned = total((pinned, account.pinned_in_flight))
    exceeded = over_max(account, own, pod.request)
    if exceeded:
        return _refusal(MAX, exceeded)
    exceeded = beyond_borrowing(account, ledger.pool, own, pooled, pod, strict=strict_borrowing)
    exceeded += beyond_pinned_min(account, ledger.pool, pinned, pod)
    return _refusal(BORROWING, exceeded) if exceeded else None


def over_max(account: Account, ahead: Resources, request: Resources) -> list[str]:
    """Rule 1: the resources of the request with which used would exceed the quota's max."""
    used, most = account.used, account.quota.max if account.quota else NOTHING
    return [
        resource
        for resource, asked in request.items()
        if resource in most and used.get(resource, 0) + ahead.get(resource, 0) + asked > most[resource]
    ]


def beyond_borrowing(
    account: Account, pool: Pool, ahead: Resources, ahead_in_pool: Resources, pod: Pod, *, strict: bool
) -> list[str]:
    """Rule 2: the resources that the pod would have to borrow and cannot.

    A resource that no min names is not lent, so not checked. Within its own quota's min a pod borrows nothing, and what
    is guaranteed to it is not refused for the sake of something that only the min of others names. What others wait for
    within theirs is theirs, so it has to fit beside: into the sum of min, and into what nodes have.
    """
    used, least = account.used, account.quota.min if account.quota else NOTHING
    exceeded = []
    for resource, asked in pod.request.items():
        if resource not in pool.min:
            continue
        within_min = used.get(resource, 0) + ahead.get(resource, 0) + asked <= least.get(resource, 0)
        together = pool.used.get(resource, 0) + ahead_in_pool.get(resource, 0) + asked
        if within_min:
            refused = strict and together > pool.min[resource]
        else:
            refused = together + pool.claimed_by_others(account, resource) > _lent(pool, account, resource)
        if refused:
            exceeded.append(resource)
    only_others_name = bool(exceeded) and least.keys().isdisjoint(exceeded)
    return [] if only_others_name and not strict and guaranteed(account, ahead, pod.request) else exceeded


def _lent(pool: Pool, account: Account, resource: str) -> int:
    """What may be used under all quotas by who borrows: the sum of min; no more than nodes have, where others claim it.

    Where nobody has a claim, the scheduler alone decides whether there is room on nodes.
    """
    least, room = pool.min[resource], pool.room(resource)
    claimed = room is not None and pool.claimed_by_others(account, resource)
    return min(least, room) if room is not None and claimed else least


def guaranteed(account: Account, ahead: Resources, request: Resources) -> frozenset[str]:
    """The resources of the request that the quota's min names, if used stays within min in all of them; else none.

    ``ahead`` is what counts besides used.
    """
    used, least = account.used, account.quota.min if account.quota else NOTHING
    named = request.keys() & least.keys()
    for resource in named:
        if request[resource] and used.get(resource, 0) + ahead.get(resource, 0) + request[resource] > least[resource]:
            return frozenset()
    return frozenset(resource for resource in named if request[resource])


def beyond_pinned_min(account: Account, pool: Pool, pinned: Resources, pod: Pod) -> list[str]:
    """Rule 2 for a pod that may not be evicted: it may not borrow, since what it borrowed could not be taken back."""
    if pod.preemptible:
        return []
    least = account.quota.min if account.quota else NOTHING
    return [
        resource
        for resource, asked in pod.request.items()
        if resource in pool.min and pinned.get(resource, 0) + asked > least.get(resource, 0)
    ]


def numbers(ledger: Ledger, pod: Pod) -> dict[str, dict[str, int]]:
    """By resource of the request, what the rules compare; a figure that does not bound the resource is left out.

    ``ahead`` and ``poolAhead`` are the requests of pods with a nominated node that go first. ``claimedByOthers`` is
    what other quotas have not used of their min, and pods of theirs wait for; ``poolCapacity`` what nodes have for all.
    """
    account = ledger.accounts.get(pod.namespace)
    if account is None or account.quota is None:
        return {}
    own, pooled = ledger.ahead_of(pod, account)
    figures = {}
    for resource, asked in sorted(pod.request.items()):
        row = {"request": asked, "used": account.used.get(resource, 0)}
        if resource in account.quota.max:
            row["max"] = account.quota.max[resource]
        if resource in ledger.pool.min:
            row["min"] = account.quota.min.get(resource, 0)
            row["poolUsed"] = ledger.pool.used.get(resource, 0)
            row["poolMin"] = ledger.pool.min[resource]
            row["poolAhead"] = pooled.get(resource, 0)
            row["claimedByOthers"] = ledger.pool.claimed_by_others(account, resource)
            if (room := ledger.pool.room(resource)) is not None:
                row["poolCapacity"] = room
        if len(row) > 2:  # noqa: PLR2004 - more than request and used: something bounds it
            figures[resource] = row | {"ahead": own.get(resource, 0)}
    return figures


def remedies(ledger: Ledger, pod: Pod, refused: Refusal, asked: Resources | None = None) -> tuple[Remedy, ...]:
    """What would let a refused pod in, computed from the numbers now; nobody has tried it.

    ``asked`` is what all request that it can start only together with; None: it starts alone.
    """
    account = ledger.accounts[pod.namespace]
    quota = account.quota
    if quota is None:
        return ()
    target = f"ElasticQuota {quota.namespace}/{quota.name}"
    if refused.rule == INVALID:
        return (Remedy(f"correct {target}: {'; '.join(quota.errors)}", target),)
    together = pod.request if asked is None else asked
    figures = {r: row | {"request": together.get(r, row["request"])} for r, row in numbers(ledger, pod).items()}
    remedy = _raise_max if refused.rule == MAX else _raise_min
    result = [*all_of([remedy(target, resource, figures[resource]) for resource in refused.resources])]
    waiting = _wait_in_namespace if refused.rule == MAX else _wait_for_borrowers
    hints = [waiting(ledger, pod, resource, figures[resource]) for resource in refused.resources]
    if all(hints):  # else waiting would not help in all that it is refused for
        result += all_of([hint for hint in hints if hint])
    if not pod.preemptible and refused.rule == BORROWING:
        text = 'drop the annotation quotaward.dev/preemptible: "false": a pod that may not be evicted may not borrow'
        result.append(Remedy(text, f"Pod {pod.namespace}/{pod.name}"))
    return tuple(result)


def _refusal(rule: str, exceeded: list[str]) -> Refusal:
    return Refusal(rule, TEXTS[rule], tuple(sorted(set(exceeded))))


def _raise_max(target: str, resource: str, row: dict[str, int]) -> Remedy:
    now, needed = render(resource, row["max"]), render(resource, row["used"] + row["ahead"] + row["request"])
    return Remedy(
        f"raise max of {resource} in {target} from {now} to at least {needed}", target, f"spec.max.{resource}", needed
    )


def _raise_min(target: str, resource: str, row: dict[str, int]) -> Remedy:
    now, needed = render(resource, row["min"]), render(resource, row["used"] + row["ahead"] + row["request"])
    return Remedy(
        f"raise min of {resource} in {target} from {now} to at least {needed}", target, f"spec.min.{resource}", needed
    )


def _wait_in_namespace(_: Ledger, pod: Pod, resource: str, row: dict[str, int]) -> Remedy | None:
    if row["request"] > row["max"]:
        return None  # no pod that ends can help one that is larger than max
    lacking = render(resource, row["used"] + row["ahead"] + row["request"] - row["max"])
    text = f"wait until pods in namespace {pod.namespace} release {lacking} of {resource}"
    return Remedy(text, f"Namespace {pod.namespace}")


def _wait_for_borrowers(ledger: Ledger, pod: Pod, resource: str, row: dict[str, int]) -> Remedy | None:
    claimed = row["claimedByOthers"]
    most = min(row["poolMin"], row.get("poolCapacity", row["poolMin"])) if claimed else row["poolMin"]
    lacking = row["poolUsed"] + row["poolAhead"] + row["request"] + claimed - most
    if lacking <= 0 or row["request"] > most:
        return None
    borrowers = [
        namespace
        for namespace, quota, account in ledger.quotas()
        if account.used.get(resource, 0) > quota.min.get(resource, 0)
    ]
    waiting = [
        namespace
        for namespace, _, account in ledger.quotas()
        if namespace != pod.namespace and account.claim.get(resource, 0)
    ]
    notes = [f"borrowing now: {', '.join(borrowers)}"] if borrowers else []
    notes += [f"waiting within their min: {', '.join(waiting)}"] if waiting else []
    who = f" ({'; '.join(notes)})" if notes else ""
    text = f"wait until {render(resource, lacking)} of {resource} is released under any elastic quota{who}"
    return Remedy(text, "")
