"""Whether what happened to Jobs that wait as a whole was lawful; see the checker, of which this is a part."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from tests.chaos.history import (
    Amounts,
    History,
    Life,
    Position,
    eviction_of,
    labels_of,
    owners_of,
    request_of,
)
from tests.chaos.overdue import surely_used
from tests.controlplane.objects import Object, condition

MARK = "quotaward.dev/queued"
BY_USER = "tests.quotaward.dev/suspended"
"""Annotation that a user of the workload changes with each suspension."""


@dataclass(slots=True)
class Turn:
    """A Job that was started or suspended at a position. ``before`` and ``after`` are what it was like."""

    at: Position
    before: Object
    after: Object

    @property
    def name(self) -> str:
        return f"Job {self.after['metadata']['namespace']}/{self.after['metadata']['name']}"

    @property
    def starts(self) -> bool:
        return not self.after["spec"].get("suspend")

    @property
    def by_user(self) -> bool:
        return annotation_of(self.before) != annotation_of(self.after)


@dataclass(slots=True)
class Jobs:
    """The Jobs of a history that were suspended when they were created."""

    history: History
    turns: list[Turn] = field(default_factory=list)
    last: dict[str, Object] = field(default_factory=dict)
    lost: dict[str, list[Position]] = field(default_factory=dict)
    """By name, where in the order a node was deleted."""

    @classmethod
    def of(cls, history: History) -> "Jobs":
        found, versions = cls(history), dict[str, list[tuple[Position, Object]]]()
        for position, record in enumerate(history.records):
            item, meta = record.object, record.object["metadata"]
            if record.kind == "nodes" and record.type == "DELETED":
                found.lost.setdefault(meta["name"], []).append(position)
            elif record.kind == "jobs" and labels_of(item).get(MARK) == "true" and record.type != "DELETED":
                versions.setdefault(meta["uid"], []).append((position, item))
        for uid, seen in versions.items():
            found.last[uid] = seen[-1][1]
            for (_, before), (position, after) in pairwise(seen):
                if bool(before["spec"].get("suspend")) != bool(after["spec"].get("suspend")):
                    found.turns.append(Turn(position, before, after))
        return found

    def pods_of(self, job: Object) -> list[Life]:
        """The pods that a Job has had."""
        lives = self.history.pods_of(job["metadata"]["namespace"])
        return [life for life in lives if job["metadata"]["uid"] in owners_of(life.first)]


def of_jobs(history: History, granted: float, seen: float) -> Iterator[tuple[float, str]]:
    """Yields what was not lawful, a sentence each, with its position. The times are those of the leeway."""
    jobs = Jobs.of(history)
    for turn in jobs.turns:
        if turn.starts:
            yield from _beyond_max(jobs, turn, granted)
        elif not turn.by_user:
            yield from _without_a_plan(jobs, turn, seen)
    for job in jobs.last.values():
        yield from _evicted(jobs, job, seen)
        yield from _failed(jobs, job)


def _beyond_max(jobs: Jobs, turn: Turn, granted: float) -> Iterator[tuple[float, str]]:
    """A Job that waits must not be started above max; above one that is new, if the one before allowed it."""
    history, namespace = jobs.history, turn.after["metadata"]["namespace"]
    start = history.window(turn.at, granted)
    if namespace not in history.bounds or not waited_throughout(history, namespace, start, turn.at):
        return
    in_force = list(history.bounds[namespace].during(start, turn.at))
    used = surely_used(history, namespace, start, turn.at)
    for resource, asked in demand(turn.before).items():
        limit = max(bounds.max.get(resource, inf) if bounds else inf for bounds in in_force)
        if used.get(resource, 0) + asked > limit:
            yield turn.at, f"{turn.name} was started above max: {asked} of {resource} beside {used.get(resource, 0)}"


def _without_a_plan(jobs: Jobs, turn: Turn, seen: float) -> Iterator[tuple[float, str]]:
    """A Job is only suspended for somebody: a reservation names one of its pods as a victim."""
    start = jobs.history.window(turn.at, seen)
    uids = {life.pod["metadata"]["uid"] for life in jobs.pods_of(turn.after)}
    named = (
        victim["uid"]
        for reservation, began, ended in jobs.history.reservations.values()
        if began <= turn.at and start <= ended
        for victim in reservation["spec"].get("victims", ())
    )
    if uids.isdisjoint(named):
        yield turn.at, f"{turn.name} was suspended, and no reservation says for whom"


def _evicted(jobs: Jobs, job: Object, seen: float) -> Iterator[tuple[float, str]]:
    """A Job that waits as a whole is suspended. The scheduler alone may evict its pods, for those that are exempt."""
    for life in jobs.pods_of(job):
        if life.evicted < inf and eviction_of(life.pod) == "EvictionByEvictionAPI":
            start = jobs.history.window(life.evicted, seen)
            if waited_throughout(jobs.history, life.namespace, start, life.evicted):
                yield life.evicted, f"{life.name} was evicted, and its Job waits as a whole: it could be suspended"


def _failed(jobs: Jobs, job: Object) -> Iterator[tuple[float, str]]:
    """A Job none of whose pods was evicted or on a node that was lost must not fail: its pods all end well.

    Unless its own deadline ends it.
    """
    failed = condition(job, "Failed")
    if failed.get("status") != "True" or failed.get("reason") == "DeadlineExceeded":
        return
    lives = jobs.pods_of(job)
    lost = any(life.bound <= at <= life.ended for life in lives for at in jobs.lost.get(life.node, ()))
    if not lost and all(life.evicted == inf for life in lives):
        meta, end = job["metadata"], len(jobs.history.records) - 1
        yield end, f"Job {meta['namespace']}/{meta['name']} has failed: {failed.get('reason')}"


def waited_throughout(history: History, namespace: str, start: Position, end: Position) -> bool:
    """Whether Jobs of a namespace were to wait as a whole all the time."""
    return namespace in history.queued and all(history.queued[namespace].during(start, end))


def pods_missing(job: Object) -> int:
    """How many pods a Job has at once when it is started."""
    done = job.get("status", {}).get("succeeded") or 0
    return min(job["spec"]["parallelism"], max(0, job["spec"]["completions"] - done))


def demand(job: Object) -> Amounts:
    """What the pods of a Job request together when it is started."""
    pods = pods_missing(job)
    return {resource: pods * amount for resource, amount in request_of(job["spec"]["template"]).items()}


def goes_on(job: Object) -> bool:
    """Whether a Job has not ended, and is not being deleted."""
    ended = any(condition(job, kind).get("status") == "True" for kind in ("SuccessCriteriaMet", "FailureTarget"))
    return not ended and "deletionTimestamp" not in job["metadata"]


def annotation_of(item: Object) -> str:
    return item["metadata"].get("annotations", {}).get(BY_USER, "")
