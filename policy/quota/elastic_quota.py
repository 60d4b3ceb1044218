"""Elastic quotas: min is guaranteed, max is a ceiling, and between them one borrows what others do not use.

Seed: capacity scheduling. Where its text leaves a choice: a resource absent from max is unlimited, one absent from min
is zero, and a pod within its quota's min is not refused because others have borrowed everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.objects import run_time
from policy.objects.conditions import Condition, one_of_each_type
from policy.objects.quantity import render
from policy.objects.resources import NOTHING, Resources, total
from policy.objects.verdict import Hint, all_of
from policy.quota.rule import QUOTA, Figures, Rule, Use

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policy.objects.pod import Pod
    from policy.quota.account import Account, Pool
    from policy.quota.ledger import Ledger


@dataclass(frozen=True, slots=True)
class ElasticQuota:
    """An ElasticQuota in force or not, in amounts.

    ``min`` is the effective one: where the spec's min exceeds its max (``min_over_max``), max. ``errors`` says, field
    by field, what could not be read. ``readable`` is false where no spec of this object ever could be. ``run_time`` is
    how long pods run under it that say nothing themselves (see policy.objects.run_time). ``min_run_time``: see
    policy.cluster.protection. ``max_run_time``: see policy.quota.run_time_limit. If the object has other names of
    resources than those by which they count, ``written`` are its min and max with its own names.
    """

    namespace: str
    name: str
    created: float = 0.0
    min: Resources = field(default_factory=dict)
    max: Resources = field(default_factory=dict)
    min_over_max: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    readable: bool = True
    run_time: int = 0
    min_run_time: int = 0
    max_run_time: int = 0
    written: tuple[Resources, Resources] | None = None


def elastic_quota(
    namespace: str, name: str, created: float, least: Resources, most: Resources, run_time: int = 0
) -> ElasticQuota:
    """Returns a readable quota with a spec's min and max."""
    over = tuple(sorted(resource for resource, value in least.items() if value > most.get(resource, value)))
    effective = {resource: min(value, most.get(resource, value)) for resource, value in least.items()}
    return ElasticQuota(namespace, name, created, effective, most, over, run_time=run_time)


def in_force(quotas: Iterable[ElasticQuota]) -> ElasticQuota | None:
    """Returns the elastic quota of a namespace that counts: the oldest, by creation and then name."""
    return min(quotas, key=lambda quota: (quota.created, quota.name), default=None)


def is_raised(before: ElasticQuota | None, after: ElasticQuota | None) -> bool:
    """Whether a namespace may use more than before, or is sure of more. Without a quota there is no bound."""
    if before is None or after is None:
        return after is None or bool(after.min)
    bounded = (after.max.get(r, most + 1) > most for r, most in before.max.items())
    return any(least > before.min.get(r, 0) for r, least in after.min.items()) or any(bounded)


def conditions(quota: ElasticQuota, governing: ElasticQuota) -> list[Condition]:
    """Returns what is wrong with a quota, in a namespace that ``governing`` is in force for."""
    found = []
    if quota.errors:
        kept = "the last good spec stays in force" if quota.readable else "every pod is refused until it is corrected"
        found.append(Condition("Invalid", "Unreadable", f"{'; '.join(quota.errors)}; {kept}"))
    elif quota.min_over_max:
        message = f"min exceeds max: {', '.join(quota.min_over_max)}; max is taken for min there"
        found.append(Condition("Invalid", "MinExceedsMax", message))
    found += run_time.conditions(quota.run_time, quota.min_run_time, quota.max_run_time)
    if quota.name != governing.name:
        message = f"ElasticQuota {governing.name} of this namespace is older and in force; this one counts for nothing"
        found.append(Condition("Conflict", "OlderQuotaInForce", message))
    return one_of_each_type(found)


@dataclass(slots=True)
class Asking:
    """A pod that asks to be let in, which is not in the ledger, and the state that its quota's rules read.

    ``ahead`` counts besides used in its own quota, ``ahead_in_pool`` in the pool; ``pinned`` is used by pods of the
    quota that may not be evicted. ``strict``: the sum of min bounds even a pod within its own min, as the seed has it.
    """

    pod: Pod
    quota: ElasticQuota
    account: Account
    pool: Pool
    ahead: Resources
    ahead_in_pool: Resources
    pinned: Resources
    strict: bool

    def count_in_flight(self) -> None:
        """Counts also what may have been admitted before this process started."""
        self.ahead = total((self.ahead, self.account.in_flight))
        self.ahead_in_pool = total((self.ahead_in_pool, self.pool.in_flight))
        self.pinned = total((self.pinned, self.account.pinned_in_flight))


def unreadable(asking: Asking) -> list[str] | None:
    """Refuses every pod under a quota that cannot be read: nobody knows what it allows."""
    return None if asking.quota.readable else []


def over_max(asking: Asking) -> list[str] | None:
    """Rule 1: returns the requested resources in which used would exceed the quota's max."""
    used, ahead, most = asking.account.used, asking.ahead, asking.quota.max
    exceeded = []
    for resource, asked in asking.pod.request.items():
        if resource in most and used.get(resource, 0) + ahead.get(resource, 0) + asked > most[resource]:
            exceeded.append(resource)
    return exceeded or None


def over_borrowing(asking: Asking) -> list[str] | None:
    """Rule 2: returns the resources that the pod would have to borrow, and cannot or may not."""
    exceeded = beyond_borrowing(asking)
    if not asking.pod.preemptible:
        exceeded += beyond_pinned_min(asking)
    return exceeded or None


def beyond_borrowing(asking: Asking) -> list[str]:
    """Returns the resources that the pod would have to borrow and cannot.

    A resource that no min names is not lent, so not checked. Within its own quota's min a pod borrows nothing. A pod
    with guaranteed resources is not refused for others that only the min of others names. Resources that others wait
    for within their min are theirs. So the pod has to fit beside those: into the sum of min, and into what nodes have.
    """
    account, pool, ahead, ahead_in_pool = asking.account, asking.pool, asking.ahead, asking.ahead_in_pool
    used, least, strict, request = account.used, asking.quota.min, asking.strict, asking.pod.request
    exceeded = []
    for resource, asked in request.items():
        if resource not in pool.min:
            continue
        if used.get(resource, 0) + ahead.get(resource, 0) + asked > least.get(resource, 0):
            most = _lent(pool, account, resource) - pool.claimed_by_others(account, resource)
        elif strict:
            most = pool.min[resource]
        else:
            continue
        if pool.used.get(resource, 0) + ahead_in_pool.get(resource, 0) + asked > most:
            exceeded.append(resource)
    if exceeded and not strict and least.keys().isdisjoint(exceeded) and guaranteed(account, ahead, request):
        return []  # only the min of others names it
    return exceeded


def beyond_pinned_min(asking: Asking) -> list[str]:
    """Returns the resources that a pod that may not be evicted would borrow: they could not be taken back."""
    pool, pinned, least = asking.pool, asking.pinned, asking.quota.min
    return [
        resource
        for resource, asked in asking.pod.request.items()
        if resource in pool.min and pinned.get(resource, 0) + asked > least.get(resource, 0)
    ]


def _lent(pool: Pool, account: Account, resource: str) -> int:
    """Returns what borrowers may use under all quotas: the sum of min; no more than nodes have where others claim it.

    Where nobody has a claim, the scheduler alone decides whether there is room on nodes.
    """
    least, room = pool.min[resource], pool.room(resource)
    claimed = room is not None and pool.claimed_by_others(account, resource)
    return min(least, room) if room is not None and claimed else least


def guaranteed(account: Account, ahead: Resources, request: Resources) -> frozenset[str]:
    """Returns the requested resources that min names, if used stays within min in all of them; else none.

    ``ahead`` counts besides used.
    """
    used, least = account.used, account.quota.min if account.quota else NOTHING
    named = request.keys() & least.keys()
    for resource in named:
        if request[resource] and used.get(resource, 0) + ahead.get(resource, 0) + request[resource] > least[resource]:
            return frozenset()
    return frozenset(resource for resource in named if request[resource])


def numbers(ledger: Ledger, pod: Pod) -> Figures:
    """Returns the figures that the rules compare, by requested resource. Leaves out those that do not bound it.

    ``ahead`` and ``poolAhead`` are the requests of pods with a nominated node that count first. ``claimedByOthers`` is
    the part of other quotas' min that is not used, and that pods of theirs wait for. ``poolCapacity`` is what nodes
    have for all.
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


def user_of_own(ledger: Ledger, pod: Pod, resource: str) -> Iterator[Use]:
    """Yields the pod's quota itself, by its max."""
    account = ledger.account(pod.namespace)
    if account.quota is not None:
        own, _ = ledger.ahead_of(pod, account)
        yield _use(pod.namespace, account, account.quota, account.quota.max, own, resource)


def users_of_pool(ledger: Ledger, pod: Pod, resource: str) -> Iterator[Use]:
    """Yields all quotas, by their min."""
    own, _ = ledger.ahead_of(pod, ledger.account(pod.namespace))
    for namespace, quota, account in ledger.quotas():
        ahead = own if namespace == pod.namespace else account.nominated_in_pool
        yield _use(namespace, account, quota, quota.min, ahead, resource)


def _use(
    namespace: str, account: Account, quota: ElasticQuota, bound: Resources, ahead: Resources, resource: str
) -> Use:
    used, most = account.used.get(resource, 0), bound.get(resource, 0)
    return Use(QUOTA, f"{namespace}/{quota.name}", used, most, (namespace,), ahead=ahead.get(resource, 0))


def _to_correct(ledger: Ledger, pod: Pod, _refused: Sequence[str], _asked: Resources) -> tuple[Hint, ...]:
    quota = ledger.account(pod.namespace).quota
    if quota is None:
        return ()
    return (Hint(f"correct {_title(quota)}: {'; '.join(quota.errors)}", _title(quota)),)


def _to_raise_max(ledger: Ledger, pod: Pod, refused: Sequence[str], asked: Resources) -> tuple[Hint, ...]:
    return _raised(ledger, pod, refused, asked, (_raise_max, _wait_in_namespace))


def _to_raise_min(ledger: Ledger, pod: Pod, refused: Sequence[str], asked: Resources) -> tuple[Hint, ...]:
    found = _raised(ledger, pod, refused, asked, (_raise_min, _wait_for_borrowers))
    if pod.preemptible or not found:
        return found
    text = 'drop the annotation quotaward.dev/preemptible: "false": a pod that may not be evicted may not borrow'
    return (*found, Hint(text, pod.object))


_Raise = Callable[[str, str, dict[str, int]], Hint]
_Wait = Callable[["Ledger", "Pod", str, dict[str, int]], Hint | None]


def _raised(
    ledger: Ledger, pod: Pod, refused: Sequence[str], asked: Resources, ways: tuple[_Raise, _Wait]
) -> tuple[Hint, ...]:
    """Suggests raising a bound of the quota, or waiting if that helps in all that the pod is refused for."""
    quota = ledger.account(pod.namespace).quota
    if quota is None:
        return ()
    raising, waiting = ways
    figures = {r: row | {"request": asked.get(r, row["request"])} for r, row in numbers(ledger, pod).items()}
    found = all_of([raising(_title(quota), resource, figures[resource]) for resource in refused])
    hints = [waiting(ledger, pod, resource, figures[resource]) for resource in refused]
    return found + all_of([hint for hint in hints if hint]) if all(hints) else found


def _title(quota: ElasticQuota) -> str:
    return f"{QUOTA} {quota.namespace}/{quota.name}"


def _raise_max(target: str, resource: str, row: dict[str, int]) -> Hint:
    now, needed = render(resource, row["max"]), render(resource, row["used"] + row["ahead"] + row["request"])
    return Hint(
        f"raise max of {resource} in {target} from {now} to at least {needed}", target, f"spec.max.{resource}", needed
    )


def _raise_min(target: str, resource: str, row: dict[str, int]) -> Hint:
    now, needed = render(resource, row["min"]), render(resource, row["used"] + row["ahead"] + row["request"])
    return Hint(
        f"raise min of {resource} in {target} from {now} to at least {needed}", target, f"spec.min.{resource}", needed
    )


def _wait_in_namespace(_: Ledger, pod: Pod, resource: str, row: dict[str, int]) -> Hint | None:
    if row["request"] > row["max"]:
        return None  # no pod that ends can help one that is larger than max
    lacking = render(resource, row["used"] + row["ahead"] + row["request"] - row["max"])
    text = f"wait until pods in namespace {pod.namespace} release {lacking} of {resource}"
    return Hint(text, f"Namespace {pod.namespace}")


def _wait_for_borrowers(ledger: Ledger, pod: Pod, resource: str, row: dict[str, int]) -> Hint | None:
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
    return Hint(text, "")


INVALID: Rule[Asking] = Rule(
    "elastic-quota-invalid",
    "ElasticQuota is invalid",
    QUOTA,
    refuses=unreadable,
    numbers=numbers,
    hints=_to_correct,
    event="QuotaInvalid",
)
MAX: Rule[Asking] = Rule(
    "elastic-quota-max",
    "ElasticQuota max exceeded",
    QUOTA,
    refuses=over_max,
    numbers=numbers,
    figures=("request", "used", "ahead", "max"),
    bound="max",
    users=user_of_own,
    hints=_to_raise_max,
    event="MaxExceeded",
)
BORROWING: Rule[Asking] = Rule(
    "elastic-quota-borrowing",
    "ElasticQuota borrowing exhausted",
    QUOTA,
    refuses=over_borrowing,
    numbers=numbers,
    figures=("request", "used", "ahead", "min", "poolUsed", "poolAhead", "poolMin"),
    bound="min",
    users=users_of_pool,
    hints=_to_raise_min,
    event="BorrowingExhausted",
)
RULES = (INVALID, MAX, BORROWING)
