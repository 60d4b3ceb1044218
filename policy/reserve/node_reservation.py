"""Chooses nodes to reserve for a job that starves, or that is one of the first in line (`reserve.ahead`).

Seed: reserve action (Node selection strategy, Reserve logic). All or nothing: a place for every missing member, so that
the job could start with them, or none. A place once chosen is kept as long as the node is there and fit for it.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from math import ceil, inf

import numpy as np

from policy.cluster.cluster import Cluster
from policy.cluster.job_members import WHOLE
from policy.cluster.reserved_nodes import turn_of
from policy.nodes import fit, node_filters
from policy.objects import signature
from policy.objects.job import Job
from policy.objects.pod import Pod, turn
from policy.objects.queued_job import is_member
from policy.objects.reservation import STARVING, Reservation
from policy.preemption.reclaim import name_of
from policy.reserve import promises, starving
from policy.reserve.first_of_lines import Key, line_of
from policy.reserve.place_search import STEP, Place, Search, nodes_open_to
from policy.reserve.starving import Terms, goes_first_steps, refused_together
from policy.stepwise import Steps, within_steps

TOO_LARGE = "TooLarge"
"""The job can never run: some member, or all of them together, would not even fit empty nodes."""
UNDECIDABLE = "Undecidable"
REFUSED = "Refused"
NOT_FIRST = "OthersGoFirst"
NO_NODES = "NoNodes"
OTHERS_RESERVE = "OthersReserve"
INCOMPLETE = "Incomplete"
EXPIRED = "Expired"
NO_PROMISE = "NoPromise"
READY = "Ready"

MEMBERS = 100
"""Members of other jobs that are looked at between two pauses."""
MOST_BEFORE = 500
"""The most pods with reserved nodes that the rules are asked about together with such a job."""
MOST_BESIDE = 100
"""The most pods of other lines with reserved nodes that such a job has to be admitted beside: some milliseconds."""
MOST_KINDS = 5
"""The most kinds of members that a job may have for which nodes are reserved before it starves: each takes time."""
UNUSED = 600.0
"""Seconds after its promised start for which nodes are kept for such a job that has not started.

Its nodes have room since then, or the promise had been moved. kube-scheduler tries each pod again within five minutes.
Nodes are also kept for so long for a Job that waited as a whole and has been started, if its pods are not on nodes.
"""
SETTLES = 10.0
"""Seconds after which nodes are not kept any longer for such a job without the promise of a start."""


@dataclass(frozen=True, slots=True)
class ReserveDecision:
    """The places to reserve for a job, and no others. If there are none, the reason."""

    job: Job
    places: tuple[Place, ...] = ()
    reason: str = ""
    text: str = ""


def decide_steps(cluster: Cluster, job: Job, terms: Terms, now: float) -> Steps[ReserveDecision]:
    """Decides what to reserve for a job that starves, or that already has reserved nodes. Changes nothing.

    ``now`` is in seconds since the epoch. Others may work between its steps; only the next decision sees their changes.
    """
    own = {each.pod.uid: each for each in cluster.reservations.reserved.of_job(job.namespace, job.name)}
    early = starving.is_early(job, terms, now)
    none = _none_at_all(cluster, job, own.values(), terms, now, early=early)
    if none is None and not own:
        none = yield from _others_reserve_steps(cluster, job, terms, now, early=early)
    if none is not None:
        return none
    search = Search(cluster, job, soonest_from=now if early else None)
    members = sorted((pod for pod in job.granted + job.waiting if pod.uid in own), key=turn)
    kept = yield from search.keep_steps(members, {uid: each.node for uid, each in own.items()})
    kept = kept[: job.minimum - len(job.standing)]
    search.only(kept)
    yield
    missing = job.minimum - len(job.standing) - len(kept) - sum(pod.uid not in own for pod in job.granted)
    if missing > 0:
        seconds = 0.0 if early else terms.starving_after
        others = job.waiting if own else starving.members_waiting(cluster, job, seconds, now)
        why_not = yield from _add_members_steps(cluster, search, job, others, missing, terms, now, early=early)
    else:
        why_not = yield from _refused_steps(cluster, job, kept, early=early)
    if why_not is not None:
        return why_not
    yield
    if not own and (first := (yield from goes_first_steps(cluster, job, now))) is not None:
        return ReserveDecision(job, (), NOT_FIRST, f"{first.title} has a higher priority, and could be scheduled now")
    if early and not own:
        if not (yield from _can_be_promised_steps(cluster, job, search.places, now)):
            return ReserveDecision(job, (), NO_PROMISE, "no start can be promised to it, or it has room already")
        yield
        pods = [place.pod for place in search.places]
        if (refused := (yield from _refused_beside_steps(cluster, job, pods))) is not None:
            return refused
    return ReserveDecision(job, search.places)


def given_up_at(cluster: Cluster, job: Job) -> float:
    """Returns when nodes are not kept any longer for a Job that waited as a whole, and has started in part; else inf.

    Its pods may not be as its template says, or never come. Its controller says when it started, so that the next
    leader knows it, too. Jobs that start in a simulation are on nodes at once, and say nothing.
    """
    if not (job.name.startswith(WHOLE) and job.granted) or job.has_started:
        return inf
    itself = cluster.batch_jobs.get((job.namespace, job.name.removeprefix(WHOLE)))
    return itself.started + UNUSED if itself is not None and itself.started else inf


def surplus(cluster: Cluster, own: Iterable[Reservation], places: Collection[Place]) -> list[Reservation]:
    """Returns which reservations of a job are not needed any more, where these are its places.

    On a node where members are still to come, those that have come keep theirs. Pods fill the places of the first
    members there: without such a place, its pod would fill the next one, too.
    """
    wanted, nodes = {(place.pod.uid, place.node) for place in places}, {place.node for place in places}
    rest = [each for each in own if (each.pod.uid, each.node) not in wanted]
    return [each for each in rest if not (each.node in nodes and _has_come(cluster, each))]


def _has_come(cluster: Cluster, reservation: Reservation) -> bool:
    return is_member(reservation.pod.uid) and cluster.job_members.has_come(reservation)


def _can_be_promised_steps(cluster: Cluster, job: Job, places: Iterable[Place], now: float) -> Steps[bool]:
    """Whether a start could be promised to a job if these nodes were reserved for it."""
    planned = [reservation_of(job, place, now) for place in places]
    work = promises.can_be_given_steps(cluster, planned, now)
    return (yield from within_steps(partial(_assumed, cluster, planned), work, at_a_time=1 + len(planned) // STEP))


def _none_at_all(
    cluster: Cluster, job: Job, own: Collection[Reservation], terms: Terms, now: float, *, early: bool
) -> ReserveDecision | None:
    """Returns the reason if no node is to be reserved for a job whatever else there is, or None."""
    if job.has_started:
        return ReserveDecision(job, (), READY, "it has started")
    if now > given_up_at(cluster, job):
        return ReserveDecision(job, (), EXPIRED, "it was started long ago, and its pods are not on nodes")
    since = min((each.since for each in own), default=now)
    if now - since > terms.max_duration:
        return ReserveDecision(job, (), EXPIRED, "nodes were reserved for it for as long as reserve.maxDuration allows")
    promised = max((each.promised_start for each in own), default=0.0)
    if early and not promised and now - since > SETTLES:
        return ReserveDecision(job, (), NO_PROMISE, "no start can be promised to it any more")
    if early and promised and now - promised > UNUSED:
        return ReserveDecision(job, (), EXPIRED, "its nodes have had room for so long, and it has not started")
    return None


def _others_reserve_steps(
    cluster: Cluster, job: Job, terms: Terms, now: float, *, early: bool
) -> Steps[ReserveDecision | None]:
    """Refuses to reserve nodes for one more job of a line; None if that may be.

    Jobs that starve are counted apart from those that do not starve yet, so that neither keep the others from it.
    """
    line = _line(cluster, job)
    others = yield from _reserving_beside_steps(cluster, job, line)
    beside = [each for each in others if starving.is_early(each, terms, now) == early]
    most, limit = float(terms.ahead), "reserve.ahead"
    if not early:
        most, limit = terms.max_jobs if line is not None and line[1] else inf, "reserve.maxJobs"
    if len(beside) < most:
        return None
    text = (
        f"as many jobs of its queue have reserved nodes as {limit} allows: {', '.join(each.title for each in beside)}"
    )
    return ReserveDecision(job, (), OTHERS_RESERVE, text)


def _reserving_beside_steps(cluster: Cluster, job: Job, line: Key | None) -> Steps[list[Job]]:
    """Returns other jobs of the same line that have reserved nodes."""
    found = yield from _reserved_steps(cluster, lambda *_: True)
    keys = {(each.pod.namespace, each.job) for each, _ in found}
    others = yield from _jobs_steps(cluster, sorted(keys - {(job.namespace, job.name)}))
    return [each for each in others.values() if _line(cluster, each) == line]


def _jobs_steps(cluster: Cluster, keys: Iterable[Key]) -> Steps[dict[Key, Job]]:
    """Returns the jobs of these keys that exist."""
    found, members = dict[Key, Job](), 0
    for key in keys:
        if (job := cluster.job_members.find(*key)) is not None:
            found[key] = job
            members += len(job.standing) + len(job.granted) + len(job.waiting)
        if members >= MEMBERS:
            yield
            members = 0
    return found


def _line(cluster: Cluster, job: Job) -> Key | None:
    return next((line_of(cluster, pod) for pod in job.waiting + job.granted), None)


def _add_members_steps(  # noqa: PLR0911 - one answer each
    cluster: Cluster,
    search: Search,
    job: Job,
    others: Iterable[Pod],
    missing: int,
    terms: Terms,
    now: float,
    *,
    early: bool,
) -> Steps[ReserveDecision | None]:
    """Finds a place for ``missing`` of these members; returns the reason if there is none, or None."""
    kept = [place.pod for place in search.places]
    there = {pod.uid for pod in kept}
    waiting = [pod for pod in others if pod.uid not in there and not pod.gated]
    if len(waiting) < missing:
        return ReserveDecision(job, (), INCOMPLETE, "fewer of its members wait than it takes to start")
    decidable = [pod for pod in waiting if not fit.undecidable(cluster.table, pod)]
    if len(decidable) < missing:
        return ReserveDecision(
            job, (), UNDECIDABLE, next(filter(None, (fit.undecidable(cluster.table, pod) for pod in waiting)))
        )
    chosen: list[Pod] = []
    for number, pod in enumerate(decidable):
        if not number % STEP:
            yield
        if len(chosen) < missing and (yield from search.has_node_for_steps(pod)):
            chosen.append(pod)
    if len(chosen) < missing:
        return ReserveDecision(job, (), TOO_LARGE, "no node could take it, however empty")
    yield
    refused = yield from _refused_steps(cluster, job, [*kept, *chosen], early=early)
    if refused is not None:
        return refused
    spare = yield from _spare_nodes_steps(cluster, job, terms, now, early=early)
    if (yield from search.place_all_steps(chosen, spare)):
        return None
    elsewhere = Search(cluster, job, everywhere=True)
    if not (yield from elsewhere.place_all_steps([*kept, *chosen], len(cluster.table.names))):
        return ReserveDecision(job, (), TOO_LARGE, "its members would not fit the nodes together, however empty")
    return ReserveDecision(
        job, (), NO_NODES, "the nodes that could take it are kept for others, or too many are reserved"
    )


def _kinds(pods: Iterable[Pod]) -> set[Hashable]:
    """Returns which requests and constraints these pods have."""
    unlike = {signature.by_empty_nodes(pod): pod for pod in pods}
    return {(frozenset(pod.request.items()), pod.constraints) for pod in unlike.values()}


def _refused_steps(cluster: Cluster, job: Job, pods: list[Pod], *, early: bool) -> Steps[ReserveDecision | None]:
    """Refuses these pods if the rules do; before a job starves, together with those who have reserved nodes already."""
    before: list[Pod] = []
    if early:
        if len(_kinds(pods)) > MOST_KINDS:
            return ReserveDecision(job, (), NO_PROMISE, "its members are of too many kinds to promise it a start")
        before = yield from _reserved_before_steps(cluster, job)
        if len(before) > MOST_BEFORE:
            return ReserveDecision(job, (), REFUSED, "nodes are reserved for too many pods of its quota or queue")
    refused = refused_together(cluster, cluster.job_members.asking([*before, *pods]))
    return ReserveDecision(job, (), REFUSED, f"it would be refused: {refused.message}") if refused else None


def _reserved_before_steps(cluster: Cluster, job: Job) -> Steps[list[Pod]]:
    """Returns pods of other jobs of its quota or queue for which nodes were reserved before they were for this job."""
    reserved, line = cluster.reservations.reserved, _line(cluster, job)
    first = min(map(turn_of, reserved.of_job(job.namespace, job.name)), default=None)

    def is_before(each: Reservation, pod: Pod) -> bool:
        is_own = (each.pod.namespace, each.job) == (job.namespace, job.name)
        is_later = first is not None and turn_of(each) > first
        return not (is_own or is_later) and (pod.namespace == job.namespace or line_of(cluster, pod) == line)

    found = yield from _reserved_steps(cluster, is_before, MOST_BEFORE + 1)
    return [pod for _, pod in found]


def _refused_beside_steps(cluster: Cluster, job: Job, pods: list[Pod]) -> Steps[ReserveDecision | None]:
    """Refuses these pods if the rules do beside all who have reserved nodes and share a bound with them.

    That may be the bound of the pool that quotas lend from, or of a queue above their queues. Only so many are looked
    at, and only once a start could be promised: it takes longer than all that is asked before.
    """
    line = _line(cluster, job)
    share_a_bound = partial(_share_a_bound, cluster, job, line)
    found = yield from _reserved_steps(cluster, lambda _, pod: share_a_bound(pod), MOST_BESIDE)
    beside = [pod for _, pod in found]
    asking = cluster.job_members.asking
    refused = refused_together(cluster, asking(pods), asking(beside))
    text = "beside those who have reserved nodes it would be refused"
    return ReserveDecision(job, (), REFUSED, f"{text}: {refused.message}") if refused else None


def _reserved_steps(
    cluster: Cluster, is_meant: Callable[[Reservation, Pod], bool], most: float = inf
) -> Steps[list[tuple[Reservation, Pod]]]:
    """Returns nodes that are reserved, and for whom, of those that are meant the first so many."""
    found: list[tuple[Reservation, Pod]] = []
    for number, each in enumerate(list(cluster.reservations.reserved)):
        if len(found) >= most:
            break
        if number % STEP == STEP - 1:
            yield
        pod = cluster.reservations.pod_of(each) if cluster.reservations.is_reserved(each) else None
        if pod is not None and is_meant(each, pod):
            found.append((each, pod))
    return found


def _share_a_bound(cluster: Cluster, job: Job, line: Key | None, pod: Pod) -> bool:
    accounts = (cluster.ledger.accounts.get(namespace) for namespace in (job.namespace, pod.namespace))
    in_queues = line is not None and bool(line[1] and line_of(cluster, pod)[1])
    return in_queues or all(account is not None and account.quota is not None for account in accounts)


def preview(cluster: Cluster, jobs: list[Job], terms: Terms, now: float) -> Iterator[ReserveDecision | None]:
    """Yields what would be reserved for each of these jobs, one after the other. Leaves nothing changed in between.

    None stands for a pause within one answer; nothing is changed then either.
    """
    planned: list[Reservation] = []
    for each in jobs:
        job = cluster.job_members.find(each.namespace, each.name)
        if job is None:
            continue  # it has gone in a pause
        decision = yield from within_steps(partial(_assumed, cluster, planned), decide_steps(cluster, job, terms, now))
        planned += [reservation_of(job, place, now) for place in decision.places]
        yield decision


def _assumed(cluster: Cluster, planned: list[Reservation]) -> AbstractContextManager[None]:
    """A context in which the planned nodes count as reserved, for one step of the work."""
    known = {*cluster.reservations.given_up, *(each.name for each in cluster.reservations.reserved)}
    return cluster.reservations.assumed([each for each in planned if each.name not in known])


def are_open(cluster: Cluster, job: Job, places: Iterable[Place]) -> bool:
    """Whether these nodes may still be reserved for a job: they are ready, and no other pod is promised room there.

    Call it before acting on a decision that was made in steps. The next decision corrects all other changes, but not
    this one: a place once reserved is kept, and a pod that is promised room there would wait in vain.
    """
    rows, may_be_reserved = cluster.table.rows, nodes_open_to(cluster, job)
    return all(place.node in rows and may_be_reserved[rows[place.node]] for place in places)


def reservation_of(job: Job, place: Place, since: float) -> Reservation:
    """Returns the reservation that records a place. Its name has the pod's UID, so there is never a second one."""
    name = f"starving-{place.pod.uid}".lower().replace("/", ".")
    return Reservation(name, name_of(place.pod), place.node, (), since, STARVING, job=job.name)


def _spare_nodes_steps(cluster: Cluster, job: Job, terms: Terms, now: float, *, early: bool) -> Steps[int]:
    """Returns how many nodes may be reserved for the job, beside those that are reserved for others.

    Counts only nodes whose taints it tolerates: other nodes are of no use to it, whoever they are reserved for. For a
    job that starves, nodes of jobs that do not starve yet do not count.
    """
    nodes_of: dict[Key, set[str]] = {}
    for each in cluster.reservations.reserved:
        nodes_of.setdefault((each.pod.namespace, each.job), set()).add(each.node)
    nodes_of.pop((job.namespace, job.name), None)
    if terms.ahead and not early:
        jobs = yield from _jobs_steps(cluster, nodes_of)
        for key, other in jobs.items():
            if starving.is_early(other, terms, now):
                del nodes_of[key]
    others = set[str]().union(*nodes_of.values())
    table = cluster.table
    tolerated = np.zeros(len(table.names), np.bool_)
    for tolerations in {pod.constraints.tolerations for pod in job.waiting}:
        tolerated |= node_filters.tolerated(table, tolerations)
    taken = int((tolerated & table.mask_of(others)).sum())
    return max(0, ceil(int(tolerated.sum()) * terms.max_nodes_percent / 100) - taken)
