"""Everything that waits, by job, as REST shows it: sorted, filtered, and page by page."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from operator import itemgetter

from app.api import expected, gates
from app.api.models import WaitingJobModel, WaitingList
from app.pause import Pause
from app.problems import Problem
from app.times import rfc3339_or_empty
from app.whatif.expected_starts import ExpectedStarts
from policy.cluster.cluster import Cluster
from policy.explain.reasons import GATED, NO_ROOM, OTHER, QUEUED, UNTRIED, is_waiting, reason_in
from policy.objects.job import ALONE, job_name, short
from policy.objects.pod import Pod, turn
from policy.quota.closed_queues import shortened
from policy.quota.rules import RULES

RUN = 250
"""Jobs that are sorted between two pauses."""
NAMED = 20
"""Maximum number of pods of a job that are named."""
TEXTS = {rule.name: rule.text for rule in RULES} | {
    GATED: "It waits at its gate for its turn",
    QUEUED: "It is suspended and waits for its turn",
    NO_ROOM: "No node has room for it",
    OTHER: "The scheduler names another reason",
    UNTRIED: "No scheduler has tried it yet",
}
"""The text of each reason; refusals by rules of quotas and queues also name resources."""

Key = tuple[str | int | float | bool, ...]


@dataclass(slots=True)
class WaitingJob:
    """A job of which pods wait. ``since`` in seconds since the epoch, 0 if not known; ``place`` 0 if in no line.

    ``reason``, ``message`` and ``place`` are found last, as they cost most.
    """

    namespace: str
    kind: str
    name: str
    queue: str
    pods: list[Pod] = field(default_factory=list)
    since: float = 0.0
    reason: str = ""
    message: str = ""
    place: int = 0

    @property
    def number(self) -> int:
        """The number of pods that wait."""
        job = self.pods[0].stands_for
        return job.pods if job is not None else len(self.pods)


def _name(job: WaitingJob) -> Key:
    return job.namespace, job.name, job.kind


ORDERS: Mapping[str, Callable[[WaitingJob], Key]] = {
    "since": lambda job: (job.since, *_name(job)),
    "name": _name,
    "queue": lambda job: (job.queue, not job.place, job.place, job.since, *_name(job)),
    "rule": lambda job: (job.reason, job.since, *_name(job)),
    "pods": lambda job: (-job.number, job.since, *_name(job)),
}
"""Sort keys by their name in ``sort``: who waits longest comes first, and by ``pods`` who has most of them."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs are asked for (None: all), how they are sorted, how many, and after which one (a token)."""

    namespace: str | None
    queues: Collection[str] | None
    rule: str | None
    sort: str
    limit: int
    token: str | None


async def waiting(cluster: Cluster, wanted: Wanted, starts: ExpectedStarts, *, observe: bool = False) -> WaitingList:
    """Returns a page of the jobs that wait. ``observe``: none waits for a rule of ours, as none is refused.

    Raises Problem for an unknown order, rule or queue, or a strange token.
    """
    key, after = _order_of(wanted), _key_of(wanted)
    pause, found, rest = Pause(), 0, list[tuple[Key, WaitingJob]]()
    queues, reasons = wanted.queues, _Reasons(cluster, observe=observe)
    by_reason = wanted.rule is not None or wanted.sort == "rule"
    jobs = await _jobs(cluster, wanted.namespace, queues)
    if wanted.sort == "queue":
        await _find_places(cluster, jobs)
    for job in jobs:
        await pause.if_due()
        if by_reason:
            reasons.find(job)
        if wanted.rule in (None, job.reason):
            found += 1
            rest += [(own, job)] if _is_after(own := key(job), after) else []
    if not found and queues and any(queues) and not any(name in cluster.queues for name in queues):
        raise Problem(404, f"there is no queue {', '.join(sorted(queues))}", field="queue")
    page = await _first(rest, wanted.limit, pause)
    if wanted.sort != "queue":
        await _find_places(cluster, [job for _, job in page])
    items = list[WaitingJobModel]()
    for _, job in page:
        if not by_reason:
            reasons.find(job)
        items.append(_model(job, starts))
        await pause.if_due()
    return WaitingList(
        total=found,
        remaining=len(rest) - len(page),
        continue_=_token(wanted.sort, page[-1][0]) if len(rest) > len(page) else "",
        items=items,
    )


def _order_of(wanted: Wanted) -> Callable[[WaitingJob], Key]:
    """Returns the sort key that is asked for. Raises Problem for an unknown order or rule."""
    if (key := ORDERS.get(wanted.sort)) is None:
        raise Problem(422, f"there is no order {wanted.sort!r}; there are {', '.join(ORDERS)}", field="sort")
    if wanted.rule is not None and wanted.rule not in TEXTS:
        raise Problem(422, f"there is no rule {wanted.rule!r}; there are {', '.join(TEXTS)}", field="rule")
    return key


def _is_after(key: Key, after: Key | None) -> bool:
    """Whether a job comes after that of a token. Raises Problem for a token that names no job."""
    try:
        return after is None or key > after
    except TypeError:
        raise _strange() from None


async def _first(jobs: list[tuple[Key, WaitingJob]], limit: int, pause: Pause) -> list[tuple[Key, WaitingJob]]:
    """Returns the first jobs, in order. It sorts them in runs, between which others have their turn."""
    runs = list[list[tuple[Key, WaitingJob]]]()
    for start in range(0, len(jobs), RUN):
        runs.append(sorted(jobs[start : start + RUN], key=itemgetter(0)))
        await pause.if_due()
    page = list[tuple[Key, WaitingJob]]()
    for each in islice(merge(*runs, key=itemgetter(0)), limit):
        page.append(each)
        await pause.if_due()
    return page


async def _jobs(cluster: Cluster, namespace: str | None, queues: Collection[str] | None) -> Sequence[WaitingJob]:
    """Returns the jobs of a namespace, of queues, or of all, without reasons and places. Pauses in between."""
    pause = Pause()
    jobs: dict[tuple[str, str, str], WaitingJob] = {}
    for pod in list(cluster.pending.values() if namespace is None else cluster.pending_in(namespace)):
        await pause.if_due()
        if is_waiting(cluster, pod):
            kind, name = job_of(cluster, pod)
            if (job := jobs.get((pod.namespace, kind, name))) is None:
                job = WaitingJob(pod.namespace, kind, name, shortened(cluster.queue_of(pod)))
                jobs[pod.namespace, kind, name] = job
            job.pods.append(pod)
    wanted = [job for job in jobs.values() if queues is None or job.queue in queues]
    for job in wanted:
        await pause.if_due()
        if len(job.pods) > 1:
            job.pods.sort(key=turn)
        job.since = min(_since(cluster, pod) for pod in job.pods)
    return wanted


async def _find_places(cluster: Cluster, jobs: Iterable[WaitingJob]) -> None:
    """Notes where these jobs stand in the lines of their queues. Goes no further than to the last of them."""
    sought, queues = dict[str, WaitingJob](), set[str]()
    for job in jobs:
        if (stands := cluster.gates.line_of(job.pods[0].uid)) is not None:
            (queue, _), _, _ = stands
            sought[job.pods[0].uid] = job
            queues.add(queue)
    async with aclosing(gates.in_order(cluster, None, queues)) as in_order:
        async for _, place, gated in in_order:
            for uid in gated.members:
                if (found := sought.pop(uid, None)) is not None:
                    found.place = place
            if not sought:
                break


def _since(cluster: Cluster, pod: Pod) -> float:
    """Returns since when a pod waits: for a pod that had a node nominated, or a Job that ran, since it lost that."""
    known = cluster.queued_jobs.of(pod) if pod.stands_for is not None else None
    said = pod.unschedulable.since if pod.unschedulable is not None else 0.0
    return (known.since if known is not None else said) or pod.created


class _Reasons:
    """Why jobs wait. ``observe``: none waits for a rule of ours, as none is refused."""

    def __init__(self, cluster: Cluster, *, observe: bool) -> None:
        self._cluster = cluster
        self._observe = observe
        self._refusals = gates.Refusals(cluster)

    def find(self, job: WaitingJob) -> None:
        """Notes the reason of a job and its text."""
        job.reason, job.message = self._why(job.pods[0])

    def _why(self, pod: Pod) -> tuple[str, str]:
        refused = None
        if (stands := self._cluster.gates.line_of(pod.uid)) is not None:
            (queue, _), _, gated = stands
            refused = self._refusals.of(queue, gated)
        if not (pod.at_gate or pod.unschedulable or self._observe):
            refused = self._cluster.check(pod) if pod.uid in self._cluster.pods else None
        if refused is not None:
            return refused.rule, refused.message
        if pod.at_gate:
            reason = GATED if pod.stands_for is None else QUEUED
        else:
            reason = UNTRIED if pod.unschedulable is None else reason_in(pod.unschedulable.message)
        return reason, TEXTS[reason]


def job_of(cluster: Cluster, pod: Pod) -> tuple[str, str]:
    """Returns the kind and the name of the job that a pod belongs to."""
    if pod.stands_for is not None:
        return pod.stands_for.kind.name, pod.stands_for.name
    name = job_name(cluster.membership.groups, pod)
    return ("Pod", pod.name) if name.startswith(ALONE) else (name.partition("/")[0], short(name))


def _model(job: WaitingJob, starts: ExpectedStarts) -> WaitingJobModel:
    exist = job.pods[0].stands_for is None
    return WaitingJobModel(
        kind=job.kind,
        namespace=job.namespace,
        name=job.name,
        queue=job.queue,
        rule=job.reason,
        message=job.message,
        since=rfc3339_or_empty(job.since),
        place=job.place,
        pods=job.number,
        pod_names=[pod.name for pod in job.pods[:NAMED]] if exist else [],
        expected_start=expected.model(starts, job.pods),
    )


def _token(sort: str, key: Key) -> str:
    return urlsafe_b64encode(json.dumps([sort, *key]).encode()).decode()


def _key_of(wanted: Wanted) -> Key | None:
    """Returns the key in a token. Raises Problem for a token that is not of this order."""
    if not wanted.token:
        return None
    try:
        sort, *key = json.loads(urlsafe_b64decode(wanted.token))
    except (ValueError, TypeError, RecursionError):
        raise _strange() from None
    if sort != wanted.sort:
        raise Problem(422, "it is of a list in another order: ask from the beginning", field="continue")
    return tuple(key)


def _strange() -> Problem:
    return Problem(422, "it is not from an earlier answer: ask from the beginning", field="continue")
