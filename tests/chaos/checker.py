"""Whether what happened in a cluster was lawful: the rules once more, in a few words of their own, on a whole history.

What Quotaward saw and when is not known here, nor what it had let through that was not bound yet. So a decision is
lawful if it would have been at some moment shortly before it: ``Leeway`` says how shortly. What is found is wrong;
what is not found may be wrong by so little that nobody can tell.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from tests.chaos.history import (
    CRITICAL,
    Amounts,
    Bounds,
    History,
    Life,
    Position,
    bounds_of,
    eviction_of,
    group_of,
    is_opted_out,
    owner_of,
    priority_of,
    selects,
    total,
)
from tests.chaos.jobs import of_jobs
from tests.chaos.overdue import may_not_count, surely_used
from tests.chaos.promises import is_late_for_a_promise, of_promises, on_a_reserved_node
from tests.chaos.started import of_started_jobs
from tests.controlplane.objects import number


@dataclass(frozen=True, slots=True)
class Leeway:
    """Seconds. ``granted``: how long before it is bound a pod may have been let through. ``seen``: how old the picture
    may be on which somebody is evicted.
    """

    granted: float = 35.0
    seen: float = 5.0


def violations(history: History, leeway: Leeway) -> list[str]:
    """All that was not lawful, a sentence each, in order; and what is not as it should be at the end."""
    found: list[tuple[float, str]] = []
    for life in history.lives.values():
        if life.by_scheduler:
            found += [(life.bound, text) for text in _of_binding(history, life, leeway)]
        if life.evicted < inf:
            found += [(life.evicted, text) for text in _of_eviction(history, life, leeway)]
    found += of_jobs(history, leeway.granted, leeway.seen)
    found += of_promises(history, leeway.granted, leeway.seen)
    found += of_started_jobs(history, leeway.seen)
    sentences = [f"{_seconds(history, position)}: {text}" for position, text in sorted(found)]
    return sentences + [f"at the end: {text}" for text in wrong_statuses(history)]


def wrong_statuses(history: History) -> Iterator[str]:
    """Elastic quotas whose status does not say what the pods on nodes request together."""
    end = len(history.records) - 1
    for quota in history.objects("elasticquotas"):
        meta, namespace = quota["metadata"], quota["metadata"]["namespace"]
        others = [q["metadata"] for q in history.objects("elasticquotas") if q["metadata"]["namespace"] == namespace]
        if min(others, key=lambda other: (other["creationTimestamp"], other["name"])) != meta:
            continue
        used = history.used[namespace].at(end) if namespace in history.used else {}
        said = quota.get("status", {}).get("used", {})
        bounds = bounds_of(quota)
        for resource in sorted({*bounds.min, *bounds.max}):
            if number(str(said.get(resource, "0"))) != used.get(resource, 0):
                yield (
                    f"the status of ElasticQuota {namespace}/{meta['name']} says that {said.get(resource, 'nothing')} "
                    f"of {resource} is used; it is {used.get(resource, 0)}"
                )


def _of_binding(history: History, life: Life, leeway: Leeway) -> Iterator[str]:
    yield from _over_max(history, life, leeway)
    yield from _beyond_the_pool(history, life, leeway)
    yield from on_a_reserved_node(history, life, leeway.granted)


def _over_max(history: History, life: Life, leeway: Leeway) -> Iterator[str]:
    """A binding must not lead above max; above one that is new, if what was in force a moment before allowed it."""
    in_force, start = _bounds_then(history, life, leeway), history.window(life.bound, leeway.granted)
    used = surely_used(history, life.namespace, start, life.bound)
    for resource in life.least:
        limit = max(bounds.max.get(resource, inf) if bounds else inf for bounds in in_force)
        if used.get(resource, 0) > limit:
            yield (
                f"{life.name} was bound to {life.node}, and its ElasticQuota used {used[resource]} of {resource} "
                f"then, above its max of {limit}"
            )


def _beyond_the_pool(history: History, life: Life, leeway: Leeway) -> Iterator[str]:
    """Who does not stay within min must not take more than all quotas guarantee together."""
    in_force = _bounds_then(history, life, leeway)
    if None in in_force:
        return
    start = history.window(life.bound, leeway.granted)
    used = surely_used(history, life.namespace, start, life.bound)
    before = list(history.pool.during(start, life.bound - 1))
    pooled, _ = history.pool.at(life.bound)
    governed = (each for each in history.lives.values() if each.namespace in history.bounds)
    overdue = may_not_count(history, governed, start, life.bound)
    for resource, asked in life.least.items():
        lent = all(resource in least for _, least in before)
        within_min = used.get(resource, 0) <= max(bounds.min.get(resource, 0) for bounds in in_force)
        of_others_alone = any(
            resource not in bounds.min and _is_guaranteed(life, used, bounds) for bounds in in_force if bounds
        )
        if not lent or within_min or of_others_alone:
            continue
        more = asked - overdue.get(resource, 0)
        if all(taken.get(resource, 0) + more > least[resource] for taken, least in before):
            yield (
                f"{life.name} was bound to {life.node} and borrows {resource} that nobody has left over: "
                f"all quotas together used {pooled.get(resource, 0)} then"
            )


def _is_guaranteed(life: Life, used: Mapping, bounds: Bounds) -> bool:
    """Whether a pod stays within min in all that it asks for and min names, and asks for some of it."""
    named = [resource for resource, asked in life.least.items() if asked and resource in bounds.min]
    return bool(named) and all(used.get(resource, 0) <= bounds.min[resource] for resource in named)


def _bounds_then(history: History, life: Life, leeway: Leeway) -> list[Bounds | None]:
    """The elastic quotas that may have been in force when the pod was let through."""
    if life.namespace not in history.bounds:
        return [None]
    return list(history.bounds[life.namespace].during(history.window(life.bound, leeway.granted), life.bound))


def _of_eviction(history: History, life: Life, leeway: Leeway) -> Iterator[str]:
    start = history.window(life.evicted, leeway.seen)
    for_whom = _preemptors(history, life, start)
    of_scheduler = eviction_of(life.pod) != "EvictionByEvictionAPI"
    if of_scheduler and any(history.may_be_exempt(other, start, life.evicted) for other in for_whom):
        return  # for such it decides alone
    cleaned_up = eviction_of(life.pod) == "EvictionByEvictionAPI" and not for_whom
    if cleaned_up and not _is_of_broken_gang(history, life) and not is_late_for_a_promise(history, life, leeway.seen):
        yield f"{life.name} was evicted, and no reservation says for whom"
    if (owner := owner_of(life.first)) in ("DaemonSet", "Node") and owner_of(life.pod) == owner:
        yield f"{life.name} was evicted, which is a pod of a {owner}"
    if priority_of(life.pod) >= CRITICAL:
        yield f"{life.name} was evicted, which is critical to the system"
    opted_out = is_opted_out(life.first) and is_opted_out(life.pod)
    if opted_out and not cleaned_up and _opted_out_within_min(history, life, start):
        yield f"{life.name} was evicted, which has opted out of it"
    of_peer = any(
        other.namespace == life.namespace and priority_of(other.pod) > priority_of(life.pod) for other in for_whom
    )
    outranked = any(_is_guaranteed_more(history, other, life, start) for other in for_whom)
    if not (of_peer or cleaned_up or outranked) and _is_protected(history, life, start, leeway):
        yield f"{life.name} was evicted, and its ElasticQuota was within its min"
    yield from _beyond_a_budget(history, life, start)


def _preemptors(history: History, life: Life, start: Position) -> list[Life]:
    """For whom a pod was evicted: as a reservation says; of kube-scheduler's own preemption nobody knows."""
    uid = life.pod["metadata"]["uid"]
    if eviction_of(life.pod) == "EvictionByEvictionAPI":
        named = (
            reservation["spec"]["pod"]["uid"]
            for reservation, began, ended in history.reservations.values()
            if began <= life.evicted and start <= ended
            if any(victim["uid"] == uid for victim in reservation["spec"].get("victims", ()))
        )
        return [history.lives[each] for each in named if each in history.lives]
    return [
        other
        for other in history.lives.values()
        if other.created <= life.evicted and min(other.bound, other.ended) >= start
    ]


def _is_of_broken_gang(history: History, life: Life) -> bool:
    """Whether a group of the pod may have fewer pods on nodes than it needs; of some kinds of groups nobody knows."""
    for name in life.groups:
        minimum = history.groups.get((life.namespace, name), 0 if name == group_of(life.first) else inf)
        mates = (other for other in history.pods_of(life.namespace) if name in other.groups)
        if sum(mate.is_on_node(life.evicted) and mate.evicted >= life.evicted for mate in mates) < minimum:
            return True
    return False


def _opted_out_within_min(history: History, life: Life, start: Position) -> bool:
    """Whether the pods of the namespace that have opted out stayed within its min, which is the condition for it."""
    out = [other for other in history.pods_of(life.namespace) if other.ever_opted_out]
    _, lent = history.pool.at(life.evicted)
    for moment in _moments(out, start, life.evicted):
        used = total(other.most for other in out if other.is_on_node(moment))
        for bounds in _bounds_during(history, life.namespace, start, life.evicted):
            least = bounds.min if bounds else {}
            if any(used.get(resource, 0) > least.get(resource, 0) for resource in life.held if resource in lent):
                return False
    return True


def _is_protected(history: History, life: Life, start: Position, leeway: Leeway) -> bool:
    """Whether the pod's quota was within its min, at each moment, in every resource that it names and the pod requests.

    What went before does not count, nor what was lent to a pod on its way to a node. Of those that went in the same
    plan the smaller ones are taken to have gone first, and those of one gang all at once.
    """
    end = life.evicted
    soon = history.times[end] + leeway.seen
    coming = [
        other
        for other in history.pods_of(life.namespace)
        if other.created <= end < other.bound < inf and history.times[other.bound] <= soon
    ]
    there = [other for other in history.pods_of(life.namespace) if other.bound <= end]
    mates = _mates(history, life, leeway)
    for bounds in _bounds_during(history, life.namespace, start, end):
        named = [resource for resource in life.held if bounds and resource in bounds.min]
        if not named:
            return False
        for resource in named:
            left = [other for other in there if not _went_before(life, other, mates, resource)]
            for moment in _moments(left, start, end):
                here = (other.most for other in left if other.is_on_node(moment))
                if _sum(resource, here) + _sum(resource, (other.most for other in coming)) > bounds.min[resource]:
                    return False
    return True


def _is_guaranteed_more(history: History, other: Life, life: Life, start: Position) -> bool:
    """Whether a pod's min does not protect what it has borrowed and is guaranteed to another pod.

    That is so if all that the min names is guaranteed to the other as well; and of devices, if the min names none.
    """
    line = history.used.get(other.namespace)
    wanted = total((other.most, history.still_wanted(other, start, life.evicted)))
    used = list(line.during(start, life.evicted)) if line is not None else [{}]
    for bounds in filter(None, _bounds_during(history, other.namespace, start, life.evicted)):
        asked = {resource: amount for resource, amount in wanted.items() if resource in bounds.min}
        guaranteed = {
            resource
            for resource, amount in asked.items()
            if any(each.get(resource, 0) + amount <= bounds.min[resource] for each in used)
        }
        for own in _bounds_during(history, life.namespace, start, life.evicted):
            named = {resource for resource in life.held if own and resource in own.min}
            for resource in guaranteed & life.held.keys() - named:
                if named <= guaranteed or ("/" in resource and not any("/" in each for each in named)):
                    return True
    return False


def _went_before(life: Life, other: Life, mates: set[str], resource: str) -> bool:
    if other.pod["metadata"]["uid"] not in mates:
        return other.evicted < life.evicted
    if life.groups & other.groups:
        return False
    size, own = other.most.get(resource, 0), life.held[resource]
    return size < own or (size == own and other.evicted < life.evicted)


def _mates(history: History, life: Life, leeway: Leeway) -> set[str]:
    """UIDs of those that went in the same plan."""
    uid, evicted = life.pod["metadata"]["uid"], history.times[life.evicted]
    plans = [
        {victim["uid"] for victim in reservation["spec"].get("victims", ())}
        for reservation, _, _ in history.reservations.values()
    ]
    mates = set().union(*(plan for plan in plans if uid in plan))
    if eviction_of(life.pod) == "PreemptionByScheduler":
        mates |= {
            each
            for each, other in history.lives.items()
            if other.evicted < inf and other.node == life.node
            if abs(history.times[other.evicted] - evicted) <= leeway.seen
        }
    return {each for each in mates if each in history.lives and history.lives[each].evicted < inf} - {uid}


def _beyond_a_budget(history: History, life: Life, start: Position) -> Iterator[str]:
    """The Eviction API heeds budgets; who goes by other ways of ours must not go beyond one either."""
    if eviction_of(life.pod) != "EvictionByEvictionAPI":
        return
    if life.namespace in history.relabelled:
        return
    for (namespace, name), line in history.budgets.items():
        budgets = list(line.during(start, life.evicted)) if namespace == life.namespace else [None]
        if None in budgets or not all(isinstance(each["spec"].get("minAvailable"), int) for each in budgets):
            continue
        selector = budgets[-1]["spec"].get("selector")
        if not selects(selector, life.pod):
            continue
        selected = [
            other
            for other in history.pods_of(namespace)
            if selects(selector, other.pod) and other.evicted >= life.evicted
        ]
        least = min(budget["spec"]["minAvailable"] for budget in budgets)
        moments = _moments(selected, start, life.evicted)
        most = max(sum(other.is_on_node(moment) for other in selected) for moment in moments)
        if most - 1 < least:
            yield f"{life.name} was evicted, and PodDisruptionBudget {name} wants {least} of {most} to stay"


def _bounds_during(history: History, namespace: str, start: Position, end: Position) -> list[Bounds | None]:
    return list(history.bounds[namespace].during(start, end)) if namespace in history.bounds else [None]


def _moments(lives: list[Life], start: Position, end: Position) -> list[Position]:
    """The positions from one to another at which different ones of these pods are on nodes."""
    changes = {int(p) for life in lives for p in (life.bound, life.ended) if start < p <= end}
    return sorted({start, end, *changes})


def _sum(resource: str, many: Iterator[Amounts]) -> Amounts:
    return sum((amounts.get(resource, 0) for amounts in many), 0)


def _seconds(history: History, position: float) -> str:
    return f"{history.times[int(position)] - history.times[0]:.1f} s"
