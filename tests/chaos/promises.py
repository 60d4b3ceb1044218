"""Whether reserved nodes were kept for their jobs, and promised starts stood; see the checker, of which this is a part.

A start is promised in the status of a Reservation: the node has room by then. Who is gone before may come meanwhile.
The promise may move earlier at any time. It may move later, or be withdrawn, only by what nobody let in.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tests.chaos.history import Amounts, History, Life, Position, is_opted_out, owner_of, owners_of, selects, total
from tests.chaos.reserved import has_grown, is_of_job, starts_at, waiting
from tests.controlplane.objects import Object

PATIENCE = 30.0
"""Seconds after a promised start for which pods that are going are waited for."""
LEAD = 5.0
"""Seconds, beside its grace period, before a promised start at which a pod is evicted that would be late for it."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A start that was promised without a break from ``given`` on, and was ``start`` from ``began`` until ``ended``.

    ``then`` is what was promised instead, 0 if nothing. It is infinity if the reservation had ended, or the history.
    """

    uid: str
    spec: Object
    start: float
    given: Position
    began: Position
    ended: float
    then: float

    @property
    def is_moved_later(self) -> bool:
        return self.then < inf and not 0 < self.then <= self.start

    @property
    def text(self) -> str:
        pod = self.spec["pod"]
        return f"{pod['namespace']}/{pod['name']} was promised room on {self.spec['nodeName']}"


def promises(history: History) -> Iterator[Promise]:
    """Yields all starts that were promised; one that was moved, once for each time."""
    for uid, line in history.promised.items():
        reservation, _, over = history.reservations[uid]
        spans, given = list(line.spans()), -1
        for (began, ended, start), then in zip(spans, [each for *_, each in spans[1:]] + [inf], strict=True):
            given = began if given < 0 < start else given if start else -1
            if start and began < over:
                until = min(ended, over)
                yield Promise(uid, reservation["spec"], start, given, began, until, then if ended < over else inf)


def of_promises(history: History, granted: float, seen: float) -> Iterator[tuple[float, str]]:
    """Yields what was not lawful, a sentence each, with its position. The times are those of the leeway."""
    for promise in promises(history):
        if promise.is_moved_later and not why_moved(history, promise, promise.ended, granted, seen):
            how = f"{promise.then - promise.start:.0f} s later" if promise.then else "not any more"
            yield promise.ended, f"{promise.text}, and then {how}; {_who_came(history, promise, promise.ended)}"
        due = history.since(promise.start + PATIENCE + seen)
        stands = promise.began <= due < promise.ended and due < len(history.records)
        lacks = stands and _lacks_room(history, promise, history.window(due, seen), due)
        if lacks and not why_moved(history, promise, due, granted, seen):
            yield due, f"{promise.text}, and has none; {_who_came(history, promise, due)}"


def moved(history: History, granted: float, seen: float) -> Counter[str]:
    """How often promises were moved later or withdrawn, by what may do that; the empty text is our fault."""
    late = (each for each in promises(history) if each.is_moved_later)
    return Counter(why_moved(history, each, each.ended, granted, seen) for each in late)


def kept(history: History) -> int:
    """How many reserved nodes had a promised start by which their job started indeed, or soon after."""
    last = [promise for promise in promises(history) if promise.then == inf]
    return sum(
        promise.given <= at < inf and history.moment(int(at)) <= promise.start + PATIENCE
        for promise in last
        for at in [starts_at(history, promise.spec, promise.given)]
    )


def why_moved(history: History, promise: Promise, end: Position, granted: float, seen: float) -> str:
    """Returns what may have moved a promise by a position though nobody let it in; empty if there was nothing."""
    nodes = _nodes(history, promise, end)
    if any(len(list(history.sizes[node].during(promise.given, end))) > 1 for node in nodes if node in history.sizes):
        return "a node was lost or has changed"
    if has_grown(history, promise.spec, history.window(promise.given, seen), end):
        return "its Job has grown"
    there = [life for life in history.lives.values() if life.node in nodes and life.bound <= end]
    if _by_a_wrong_clock(history, promise, end, there, granted, seen):
        return "a clock was wrong"
    return _why_moved_by_pods(history, promise, end, there, granted, seen)


def _why_moved_by_pods(
    history: History, promise: Promise, end: Position, there: list[Life], granted: float, seen: float
) -> str:
    nodes = _nodes(history, promise, end)
    known, recently = history.window(promise.given, seen), history.window(end, seen)
    came = [life for life in there if life.bound > known and life.ended > recently]
    planned = (history.lives.get(uid) for uid in _planned_on(history, nodes, promise.given, end))
    if any(_may_not_be_refused(history, life, granted) for life in came) or any(
        life is not None and owner_of(life.first) == "DaemonSet" for life in planned
    ):
        return "a pod came that may not be refused"
    before = (life for life in came if life.bound <= promise.given and life.is_on_node(end))
    if any(gone_at(history, life, history.moment(life.bound)) > promise.start for life in before):
        return "a pod came just before the promise"
    stay = [life for life in came if life.bound > promise.given and life.is_on_node(end) and is_opted_out(life.pod)]
    ends = (gone_at(history, life, history.moment(life.bound)) for life in stay)
    if any(promise.start < each < inf for each in ends):
        return "a pod was bound late that may not be evicted"
    overdue = history.moment(end) > promise.start + PATIENCE
    if overdue and any(_has_budget(history, life, end) for life in there if life.is_on_node(end)):
        return "a budget protects a pod that has not ended"
    return ""


def _by_a_wrong_clock(
    history: History, promise: Promise, end: Position, there: list[Life], granted: float, seen: float
) -> bool:
    """Whether a clock was wrong when something was decided on which the end of the promise depends.

    That is its end itself. Of a pod that stays too long it is its admission, its eviction in time, and the promise,
    if it was there by then. Pods that came after a promise are known by the time at which that was given.
    """
    wrong, window = history.wrong_clocks.during, history.window
    spans, overdue = [(window(end, seen), end)], history.moment(end) > promise.start
    for life in there:
        late = gone_at(history, life, history.moment(life.bound)) > promise.start
        if life.is_on_node(end) and (late or overdue):
            grace = life.pod["spec"].get("terminationGracePeriodSeconds", 30)
            spans.append((window(life.bound, granted), life.bound))
            spans.append((history.since(promise.start - grace - LEAD - seen), end))
            depends = [at for at in (promise.given, promise.began) if late and window(life.bound, granted) <= at]
            spans += [(window(at, seen), at) for at in (*depends, *([promise.given] if overdue else []))]
    return any(True in wrong(start, until) for start, until in spans if start <= until)


def gone_at(history: History, life: Life, now: float) -> float:
    """Returns when a pod is gone at the latest that starts now, in seconds since the epoch."""
    spec = life.pod["spec"]
    ends = [now + spec["activeDeadlineSeconds"]] if "activeDeadlineSeconds" in spec else []
    for owner in owners_of(life.first):
        ends += [(since or now) + deadline for since, deadline in history.deadlines.get(owner, ())]
    return min(ends, default=inf) + spec.get("terminationGracePeriodSeconds", 30)


def on_a_reserved_node(history: History, life: Life, granted: float) -> Iterator[str]:
    """Who is not of the job, and requests something, must take nothing of what is reserved, or be gone in time."""
    if not life.least.keys() - {"pods"} or _may_not_be_refused(history, life, granted):
        return
    start, let_in = history.window(life.bound, granted), history.moment(life.bound) - granted
    for uid, (reservation, began, ended) in history.reservations.items():
        spec = reservation["spec"]
        if spec["reason"] != "Starving" or spec["nodeName"] != life.node:
            continue
        known_for = history.times[life.bound] - history.times[began]
        if not began < life.bound < ended or known_for <= granted or is_of_job(life, spec):
            continue
        whom = waiting(history, spec, start, life.bound)
        if whom is None or not _takes_of_it(history, life, spec, start, start):
            continue
        text = f"{life.name} was bound to {life.node}, reserved for {whom.name} since {known_for:.1f} s"
        promised, gone = max(history.promised[uid].during(start, life.bound)), gone_at(history, life, let_in)
        if not promised:
            yield text
        elif gone > promised and True not in history.wrong_clocks.during(start, life.bound):
            yield f"{text}, and is not gone by the promised start, but {gone - promised:.0f} s later"


def is_backfilled(history: History, life: Life, granted: float) -> bool:
    """Whether a pod took of what is reserved for another that is promised a start."""
    if not life.by_scheduler:
        return False
    start = history.window(life.bound, granted)
    for uid, (reservation, began, ended) in history.reservations.items():
        spec = reservation["spec"]
        if spec["nodeName"] == life.node and began < life.bound < ended and not is_of_job(life, spec):
            whom = waiting(history, spec, life.bound, life.bound) if history.promised[uid].at(life.bound) else None
            if whom is not None and _takes_of_it(history, life, spec, start, life.bound):
                return True
    return False


def is_late_for_a_promise(history: History, life: Life, seen: float) -> bool:
    """Whether a pod was evicted because it would have been late for a promised start, and not sooner than it had to.

    Only who has an enforced end is.
    """
    evicted, grace = life.evicted, life.pod["spec"].get("terminationGracePeriodSeconds", 30)
    start, now = history.window(evicted, seen), history.moment(evicted)
    ends = gone_at(history, life, history.moment(life.bound))
    for uid, (reservation, began, ended) in history.reservations.items():
        if reservation["spec"]["nodeName"] != life.node or not (began <= evicted and start <= ended):
            continue
        promised = min(filter(None, history.promised[uid].during(start, evicted)), default=0.0)
        if promised and ends < inf:
            late = (ends > promised or now > ends) and now >= promised - grace - LEAD - seen
            if late or True in history.wrong_clocks.during(start, evicted):
                return True
    return False


def _may_not_be_refused(history: History, life: Life, granted: float) -> bool:
    """Whether a pod may go anywhere, or was put on its node by hand."""
    if not life.by_scheduler or "DaemonSet" in (owner_of(life.first), owner_of(life.pod)):
        return True
    return history.may_be_exempt(life, history.window(life.bound, granted), life.bound)


def _nodes(history: History, promise: Promise, end: Position) -> set[str]:
    """All nodes that were reserved for the job while the promise stood."""
    job = promise.spec["pod"]["namespace"], promise.spec.get("job")
    return {
        reservation["spec"]["nodeName"]
        for reservation, began, ended in history.reservations.values()
        if (reservation["spec"]["pod"]["namespace"], reservation["spec"].get("job")) == job
        if began <= end and promise.given <= ended
    }


def _planned_on(history: History, nodes: set[str], start: Position, end: Position) -> set[str]:
    """UIDs of the pods for which others had to go from these nodes."""
    return {
        reservation["spec"]["pod"]["uid"]
        for reservation, began, ended in history.reservations.values()
        if reservation["spec"]["reason"] == "Reclaim" and reservation["spec"]["nodeName"] in nodes
        if began <= end and start <= ended
    }


def _has_budget(history: History, life: Life, position: Position) -> bool:
    budgets = (line.at(position) for (namespace, _), line in history.budgets.items() if namespace == life.namespace)
    return any(budget and selects(budget["spec"].get("selector"), life.pod) for budget in budgets)


def _who_came(history: History, promise: Promise, end: Position) -> str:
    """For people: who is on the nodes of a job, and until when by their deadlines."""
    nodes = _nodes(history, promise, end)
    there = (life for life in history.lives.values() if life.node in nodes and life.is_on_node(end))
    said = (
        f"{life.name} since {history.moment(life.bound) - history.moment(promise.given):.0f} s, "
        f"gone {gone_at(history, life, history.moment(life.bound)) - promise.start:.0f} s after the start"
        for life in sorted(there, key=lambda each: each.bound)
    )
    return f"there are: {'; '.join(said) or 'none'}"


def _lacks_room(history: History, promise: Promise, start: Position, position: Position) -> bool:
    """Whether a node has no room for all that it is reserved for of the job, and that wait."""
    node = promise.spec["nodeName"]
    wanted = _kept(history, promise.spec, start, position, position)
    size = history.sizes[node].at(position) if node in history.sizes else {}
    there = [life.least for life in history.lives.values() if life.node == node and life.is_on_node(position)]
    return any(
        sum((each.get(resource, 0) for each in there), start=asked) > size.get(resource, 0)
        for resource, asked in wanted.items()
    )


def _kept(history: History, spec: Object, start: Position, end: Position, since: Position) -> Amounts:
    """What is kept on a node for all that wait of a job, by reservations that have been in force since a position."""
    pod, job, node = spec["pod"], spec.get("job"), spec["nodeName"]
    same = (
        each["spec"]
        for each, began, ended in history.reservations.values()
        if began <= since and end < ended and each["spec"]["nodeName"] == node
        if (each["spec"]["pod"]["namespace"], each["spec"].get("job")) == (pod["namespace"], job)
    )
    return total(each.least for each in (waiting(history, one, start, end) for one in same) if each is not None)


def _takes_of_it(history: History, life: Life, spec: Object, start: Position, since: Position) -> bool:
    """Whether a node has less than a pod, what is reserved for another job, and what others used there, all together.

    What has been reserved since that position counts. Others may have come since the pod was let through, so what they
    used then counts, too.
    """
    size = history.sizes[life.node].at(life.bound) if life.node in history.sizes else {}
    kept = _kept(history, spec, start, life.bound, since)
    for resource, asked in life.least.items():
        used = (
            sum(
                (each.least.get(resource, 0) for each in history.lives.values() if _is_beside(each, life, moment)),
                start=asked + kept.get(resource, 0),
            )
            for moment in (start, life.bound - 1)
        )
        if min(used) > size.get(resource, 0):
            return True
    return False


def _is_beside(other: Life, life: Life, moment: Position) -> bool:
    return other is not life and other.node == life.node and other.is_on_node(moment)
