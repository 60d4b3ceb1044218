"""When a job for which nodes are reserved starts at the latest, and what keeps that promise.

The last of its nodes has room by then, as each pod that has to end there has an enforced end. Pods that are let in
afterwards take nothing of that room, or are gone before (policy.cluster.reserved_nodes). So the promise moves earlier
by what ends early, and later only by what nobody let in: a node that is lost or shrinks, a pod that may go anywhere.
Pods that were let in and run longer after all have to go in time.

Times are in seconds since the epoch.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil, inf

from policy.cluster.cluster import Cluster
from policy.cluster.reserved_nodes import is_behind, turn_of
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.objects.resources import Resources, add, total
from policy.quota.exempt_from_eviction import SYSTEM_OWNERS, exempt_from_eviction
from policy.reserve.coming import Coming
from policy.stepwise import Steps

OVERDUE = 10.0
"""Seconds after its end at which a pod that is still there is not expected to end by itself any more."""
LEAD = 5.0
"""Seconds, beside its grace period, before the promised start at which a pod that would be late is evicted."""
PATIENCE = 30.0
"""Seconds after the promised start for which pods that are going are waited for. Then the promise is moved."""
AT_A_TIME = 50
"""Pods that are looked at between two pauses."""


@dataclass(frozen=True, slots=True)
class Promise:
    """When the last node has room. ``due``: by reservation, who has to be gone by then."""

    at: float
    due: Mapping[str, tuple[str, ...]]


NO_PROMISE = Promise(0.0, {})


@dataclass(frozen=True, slots=True)
class PromiseDecision:
    """The promise that a job has from now on. ``late``: who would be late for it, and has to go in time.

    ``moved``: why it is later than before, or there is none any more; empty if that is not so.
    """

    promise: Promise
    late: tuple[Pod, ...] = ()
    moved: str = ""


@dataclass(slots=True)
class _OnNode:
    """A node: the amounts that are to be free there, and all that takes room, with when it is gone (inf: never)."""

    name: str
    need: dict[str, int]
    there: list[tuple[float, Pod]] = field(default_factory=list)


def decide_steps(cluster: Cluster, own: list[Reservation], start: float, now: float) -> Steps[PromiseDecision]:
    """Decides about the promise of a job with these reservations, to which ``start`` was promised before (0: none)."""
    due, late, broken = dict[str, tuple[str, ...]](), tuple[Pod, ...](), ""
    if start:
        due, late, broken = yield from _standing_steps(cluster, own, start, now)
    if late and not broken:
        return PromiseDecision(Promise(start, due), late)
    found = yield from _promise_steps(cluster, own, now)
    if not start and found is not None and found.at <= ceil(now):
        found = None  # it has room already, and starts
    if broken or not start:
        return PromiseDecision(found or NO_PROMISE, (), broken)
    if found is None or found.at >= start:
        return PromiseDecision(Promise(start, due))
    return PromiseDecision(Promise(found.at, _due_earlier(cluster, due, start, found.at)))


def can_be_given_steps(cluster: Cluster, own: list[Reservation], now: float) -> Steps[bool]:
    """Whether a promise could be given to a job with these reservations, which does not have room already."""
    found = yield from _promise_steps(cluster, own, now)
    return found is not None and found.at > ceil(now)


def room_at_steps(cluster: Cluster, name: str, request: Resources, coming: Coming, now: float) -> Steps[float]:
    """Returns when a node surely has room for a request beside all that is reserved there; inf if that is not sure."""
    on, margin = cluster.reservations.nodes.on(name), cluster.rules.backfill_margin
    need = dict(total((request, on.need))) if on is not None else dict(request)
    there = ((_gone_at(cluster, pod, now, margin), pod.request) for pod in _standing_on(cluster, name))
    everybody = chain(there, _coming_to(cluster, name, coming, now))
    return (yield from _has_room_at_steps(cluster, _OnNode(name, need), everybody))


def coming_steps(cluster: Cluster, now: float) -> Steps[Coming]:
    """Returns the granted pods that may come to reserved nodes."""
    found = Coming(cluster.table)
    for number, pod in enumerate(list(cluster.reservations.nodes.may_come()), 1):
        found.add(pod, _gone_at(cluster, pod, now, cluster.rules.backfill_margin))
        if not number % AT_A_TIME:
            yield
    return found


def _due_earlier(
    cluster: Cluster, due: Mapping[str, tuple[str, ...]], start: float, earlier: float
) -> dict[str, tuple[str, ...]]:
    """Returns who has to be gone for a promise that moves earlier: not those that may stay by their own deadline."""

    def may_stay(uid: str) -> bool:
        pod = cluster.pods.get(uid)
        return pod is not None and not pod.preemptible and _is_gone_by(pod, start) and not _is_gone_by(pod, earlier)

    return {name: tuple(uid for uid in uids if not may_stay(uid)) for name, uids in due.items()}


def noted(reservation: Reservation, decision: PromiseDecision, now: float) -> Reservation:
    """Returns a reservation with its promise."""
    promise = decision.promise
    since = reservation.promised_at or float(int(now))
    return replace(
        reservation,
        promised_start=promise.at,
        promised_at=since if promise.at else 0.0,
        due=promise.due.get(reservation.name, ()),
        moved=decision.moved or reservation.moved,
    )


def _promise_steps(cluster: Cluster, own: list[Reservation], now: float) -> Steps[Promise | None]:
    """Returns the promise that can be given to a job with these reservations.

    None if some end is not enforced, or too far ahead: then all others are kept from these nodes.
    """
    at, nodes = now, dict[str, _OnNode]()
    coming = yield from coming_steps(cluster, now)
    for reservation in own:
        yield
        node = _on_node(cluster, own, reservation, now, cluster.rules.backfill_margin)
        there = ((end, pod.request) for end, pod in node.there)
        everybody = chain(there, _coming_to(cluster, reservation.node, coming, now))
        has_room = yield from _has_room_at_steps(cluster, node, everybody)
        if has_room > now + cluster.rules.promise_ahead:
            return None
        at = max(at, has_room)
        nodes[reservation.name] = node
    at = float(ceil(at))
    return Promise(at, {name: tuple(sorted(_gone_by(node, at))) for name, node in nodes.items()})


def _standing_steps(
    cluster: Cluster, own: list[Reservation], start: float, now: float
) -> Steps[tuple[dict[str, tuple[str, ...]], tuple[Pod, ...], str]]:
    """Returns who has to be gone by the promised start, who of them would be late, and what breaks the promise."""
    due, late = dict[str, tuple[str, ...]](), list[Pod]()
    for reservation in own:
        yield
        node = _on_node(cluster, own, reservation, now)
        since = reservation.promised_at or inf
        later = {pod.uid for _, pod in node.there if (pod.started or now) >= since}  # or just before: in whole seconds
        let_in = _backfilled(cluster, node)  # even if they have no end any more: by a budget, or what is said of them
        after = {pod.uid: end for end, pod in node.there if (pod.started or now) > since}
        came = {uid for uid, end in after.items() if end < inf or uid in let_in}
        known = set(reservation.due) & {pod.uid for _, pod in node.there}
        known |= _gone_by(node, start) & later if reservation.promised_at else _gone_by(node, start)
        staying = [pod for end, pod in node.there if end > max(now, start) and _stays(cluster, pod, start, now)]
        may_go = [pod for pod in staying if pod.uid in known | came and _may_be_evicted(cluster, pod)]
        may_go += [pod for pod in staying if pod.uid in known & later and _opted_out_late(cluster, pod, start)]
        first = (known - later) | let_in
        gone = _in_the_way(cluster, node, staying, sorted(may_go, key=lambda each: _turn(each, first)))
        due[reservation.name] = tuple(sorted(known | {pod.uid for pod in gone or ()}))
        if gone is None:
            return due, (), _why_moved(cluster, reservation, staying)
        if gone and now > start + PATIENCE:
            return due, (), f"pods on node {reservation.node} have not ended in time"
        late += gone
    return due, tuple(late), ""


def _in_the_way(cluster: Cluster, node: _OnNode, staying: list[Pod], may_go: list[Pod]) -> list[Pod] | None:
    """Returns who of those that stay has to go for the promise, in this order; None if that is not enough.

    It is nobody whose room does not help, and nobody for whom there is room once the others are gone.
    """
    room = _room(cluster, node)
    if room is None:
        return None
    for pod in staying:
        _take(room, pod.request)
    gone: list[Pod] = []
    for pod in may_go:
        lacking = _lacking(room)
        if not lacking:
            break
        if any(pod.request.get(resource, 0) for resource in lacking):
            _give_back(room, pod.request)
            gone.append(pod)
    if _lacking(room):
        return None
    for pod in reversed(gone):
        _take(room, pod.request)
        if _lacking(room):
            _give_back(room, pod.request)
        else:
            gone.remove(pod)
    return gone


def _backfilled(cluster: Cluster, node: _OnNode) -> set[str]:
    """Returns who had no room beside what is kept there, for all who came before and are still there."""
    room, found = _room(cluster, node) or {}, set[str]()
    for _, pod in sorted(node.there, key=lambda each: (each[1].started or inf, each[1].uid)):
        _take(room, pod.request)
        if any(pod.request.get(resource, 0) for resource in _lacking(room)):
            found.add(pod.uid)
    return found


def _turn(pod: Pod, first: set[str]) -> tuple[bool, float, str]:
    """Orders who may have to go: ``first`` those without whose end there is no promise, and the last to come."""
    return pod.uid not in first, -(pod.started or inf), pod.uid


def _may_be_evicted(cluster: Cluster, pod: Pod) -> bool:
    return pod.terminating or not exempt_from_eviction(cluster.ledger, pod)


def _opted_out_late(cluster: Cluster, pod: Pod, start: float) -> bool:
    """Whether a pod on whose end the promise relies has opted out of evictions after it was let in.

    Had it opted out before, then its own deadline alone would have let it in, and that cannot be raised.
    """
    evictable = replace(pod, preemptible=True)
    return not pod.preemptible and not _is_gone_by(pod, start) and _may_be_evicted(cluster, evictable)


def _is_gone_by(pod: Pod, at: float) -> bool:
    """Whether a pod is gone by its own deadline, if it ends by then."""
    return pod.deadline > 0 and pod.started + pod.deadline + pod.grace <= at


def goes_at(pod: Pod, promised_start: float) -> float:
    """Returns when a pod that would be late has to be evicted, so that it is gone by the promised start."""
    return promised_start - pod.grace - LEAD


def _why_moved(cluster: Cluster, reservation: Reservation, staying: list[Pod]) -> str:
    """Says what moves a promise later."""
    node = cluster.table.node(reservation.node)
    if node is None or not node.ready:
        return f"node {reservation.node} was lost"
    if not reservation.promised_at:
        return f"node {reservation.node} was reserved instead of another one"
    others = [pod for pod in staying if pod.owner in SYSTEM_OWNERS or cluster.is_exempt(pod)]
    if any((pod.started or inf) > reservation.promised_at for pod in others):
        return f"pods that may not be refused have come to node {reservation.node}"
    return f"node {reservation.node} has changed, or what stands there"


def _on_node(
    cluster: Cluster, own: list[Reservation], reservation: Reservation, now: float, starts_within: float = 0.0
) -> _OnNode:
    """Returns who is on a node, and what is to be free for this job and for all whom it was reserved for before."""
    name, need = reservation.node, dict[str, int]()
    last = max((each for each in own if each.node == name), key=turn_of)
    on = cluster.reservations.nodes.on(name)
    for each in on.members if on is not None else ():
        if not is_behind(each, last):
            add(need, cluster.reservations.request_of(each))
    return _OnNode(name, need, _there(cluster, name, now, starts_within))


def _there(cluster: Cluster, name: str, now: float, starts_within: float) -> list[tuple[float, Pod]]:
    return [(_gone_at(cluster, pod, now, starts_within), pod) for pod in _standing_on(cluster, name)]


def _standing_on(cluster: Cluster, name: str) -> list[Pod]:
    return [pod for pod in cluster.table.pods_on(name).values() if pod.assigned]


def _stays(cluster: Cluster, pod: Pod, start: float, now: float) -> bool:
    """Whether a pod stays beyond a promised start, by all deadlines as they are now."""
    return _gone_by_deadline(pod, cluster.run_times.ends_at(pod, now, enforced=True), now) > max(now, start)


def _gone_at(cluster: Cluster, pod: Pod, now: float, starts_within: float = 0.0) -> float:
    """Returns when a pod is gone at the latest, whatever its user does; inf if that is not sure, or is over.

    ``starts_within``: seconds that a pod that has not started yet may still take until it does.
    """
    return _gone_by_deadline(pod, cluster.run_times.surely_ends_at(pod, now), now, starts_within)


def _gone_by_deadline(pod: Pod, deadline: float | None, now: float, starts_within: float = 0.0) -> float:
    if pod.terminating:
        end = pod.deletion_time or now + pod.grace
    elif deadline is None:
        return inf
    else:
        end = deadline + pod.grace + (0.0 if pod.started else starts_within)
    return max(now, end) if now <= end + OVERDUE else inf


def _coming_to(cluster: Cluster, name: str, coming: Coming, now: float) -> Iterator[tuple[float, Resources]]:
    """Yields what granted and expected pods may take of a node, and when they are gone."""
    expected = {pod.uid: pod for pod in cluster.table.pods_on(name).values() if not pod.assigned}
    on = cluster.reservations.nodes.on(name)
    own = {each.pod.uid for each in on.members} if on is not None else set()
    for uid, pod in expected.items():
        if uid not in own:
            yield _gone_at(cluster, pod, now, cluster.rules.backfill_margin), pod.request
    yield from coming.on(name, own | expected.keys())


def _has_room_at_steps(cluster: Cluster, node: _OnNode, everybody: Iterable[tuple[float, Resources]]) -> Steps[float]:
    """Returns when a node has room for all that is kept there: as soon as enough of those on it are gone.

    Looks at no more of them once those without an end leave too little.
    """
    room, ending = _room(cluster, node), list[tuple[float, Resources]]()
    if room is None or _lacking(room):
        return inf
    for number, (end, request) in enumerate(everybody, 1):
        if end < inf:
            ending.append((end, request))
        else:
            _take(room, request)
            if _lacking(room):
                return inf
        if not number % AT_A_TIME:
            yield
    for _, request in ending:
        _take(room, request)
    at = 0.0
    for number, (end, request) in enumerate(sorted(ending, key=lambda each: each[0]), 1):
        if not _lacking(room):
            break
        _give_back(room, request)
        at = end
        if not number % AT_A_TIME:
            yield
    return at


def _room(cluster: Cluster, node: _OnNode) -> dict[str, int] | None:
    """Returns what a node has beside what is kept there, below zero where it lacks; None if it takes no pods.

    It has the resources that are kept there, and no others.
    """
    known = cluster.table.node(node.name)
    if known is None or not known.ready:
        return None
    return {resource: known.allocatable.get(resource, 0) - amount for resource, amount in node.need.items() if amount}


def _take(room: dict[str, int], request: Resources) -> None:
    for resource in room:
        room[resource] -= request.get(resource, 0)


def _give_back(room: dict[str, int], request: Resources) -> None:
    for resource in room:
        room[resource] += request.get(resource, 0)


def _lacking(room: dict[str, int]) -> list[str]:
    return [resource for resource, amount in room.items() if amount < 0]


def _gone_by(node: _OnNode, at: float) -> set[str]:
    return {pod.uid for end, pod in node.there if end <= at}
