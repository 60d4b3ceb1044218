"""For whom a node is reserved: a pod, or a member of a Job that waits as a whole. No watch shows such members."""

from dataclasses import dataclass
from itertools import pairwise
from math import inf

from tests.chaos.history import Amounts, History, Life, Position, owners_of, request_of
from tests.chaos.jobs import goes_on, pods_missing, waited_throughout
from tests.controlplane.objects import Object

_OF_JOB = "job/"
"""How the UID of a member begins. Then come that of the Job, and a number."""
COMES = 10.0
"""Seconds after the start of a Job for which its room is surely kept though none of its pods exists."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who waits for a node that is reserved for it, and what it requests at least."""

    name: str
    least: Amounts


def waiting(history: History, spec: Object, start: Position, end: Position) -> Waiting | None:
    """Returns for whom a node is reserved, if it waits at ``end``; a Job if it wants as many pods since ``start``.

    The pods of a Job that has started wait until they are on nodes.
    """
    pod = spec["pod"]
    if job_of(spec):
        job = goes_on_as_it_is(history, spec, start, end)
        if job is None or not _is_to_come(history, spec, start, end):
            return None
        return Waiting(f"{pod['namespace']}/{pod['name']}", request_of(job["spec"]["template"]))
    life = history.lives.get(pod["uid"])
    return Waiting(life.name, life.least) if life is not None and life.waits(end) else None


def goes_on_as_it_is(history: History, spec: Object, start: Position, end: Position) -> Object | None:
    """Returns the Job of a member, if it waits as a whole or has started, and wants as many pods all the time."""
    uid = job_of(spec)
    versions = list(history.jobs[uid].during(start, end)) if uid in history.jobs else [None]
    goes = all(job and goes_on(job) for job in versions) and len(set(map(pods_missing, versions))) == 1
    return versions[-1] if goes and waited_throughout(history, spec["pod"]["namespace"], start, end) else None


def _is_to_come(history: History, spec: Object, start: Position, end: Position) -> bool:
    """Whether a Job has not been suspended again since this was reserved for it, and a pod of it is to come there."""
    turns = turns_of(history, spec, end)
    began = next((began for each, began in members(history, spec, end) if each["pod"] == spec["pod"]), start)
    if not turns or any(is_suspended and since > began for since, is_suspended in turns[1:]):
        return False
    started, is_suspended = turns[-1]
    soon = max(history.times[start], history.times[started] + COMES)
    coming = (history.times[life.created] <= soon for life in pods_of(history, spec) if life.waits(end))
    return is_suspended or (any(coming) and spec in not_filled(history, spec, started, end))


def turns_of(history: History, spec: Object, end: Position) -> list[tuple[Position, bool]]:
    """Where the Job of a member was suspended (true) and went on, until a position."""
    found: list[tuple[Position, bool]] = []
    for since, _, job in history.jobs[job_of(spec)].spans():
        is_suspended = bool(job and job["spec"].get("suspend"))
        if job and since <= end and (not found or found[-1][1] != is_suspended):
            found.append((since, is_suspended))
    return found


def starts_at(history: History, spec: Object, after: Position) -> float:
    """Where a pod came to a node, or the Job of a member started after a position; infinity if it did not."""
    if not job_of(spec):
        life = history.lives.get(spec["pod"]["uid"])
        return life.bound if life is not None else inf
    turns = turns_of(history, spec, len(history.records)) if job_of(spec) in history.jobs else []
    return next((at for at, is_suspended in turns if at > after and not is_suspended), inf)


def not_filled(history: History, spec: Object, started: Position, position: Position) -> list[Object]:
    """The reservations on this node for members of a Job that are to come there since it started.

    Each pod that came has filled the place of one member: of the one with the lowest number.
    """
    node, everywhere = spec["nodeName"], members(history, spec, position)
    there = sorted((each for each, _ in everywhere if each["nodeName"] == node), key=_number_of)
    came = sum(life.node == node and started <= life.bound <= position for life in pods_of(history, spec))
    return there[came:]


def members(history: History, spec: Object, position: Position) -> list[tuple[Object, Position]]:
    """The reservations in force for members of the same Job, and where they began."""
    return [
        (reservation["spec"], began)
        for reservation, began, ended in history.reservations.values()
        if began <= position < ended and job_of(reservation["spec"]) == job_of(spec)
    ]


def pods_of(history: History, spec: Object) -> list[Life]:
    """The pods of the Job of a member."""
    lives, uid = history.pods_of(spec["pod"]["namespace"]), job_of(spec)
    return [life for life in lives if uid in owners_of(life.first)]


def has_grown(history: History, spec: Object, start: Position, end: Position) -> bool:
    """Whether a node is reserved for a Job that came to want more pods."""
    uid = job_of(spec)
    versions = history.jobs[uid].during(start, end) if uid in history.jobs else ()
    return any(after > before for before, after in pairwise(map(pods_missing, filter(None, versions))))


def is_of_job(life: Life, spec: Object) -> bool:
    """Whether a pod is of the job that a node is reserved for."""
    if spec["pod"]["namespace"] != life.namespace:
        return False
    of_group = spec.get("job", "").rpartition("/")[2] in life.groups
    return of_group or spec["pod"]["uid"] == life.pod["metadata"]["uid"] or job_of(spec) in owners_of(life.first)


def job_of(spec: Object) -> str:
    """The UID of the Job that a node is reserved for, if it waits as a whole; else empty."""
    uid = spec["pod"]["uid"]
    return uid.removeprefix(_OF_JOB).rpartition("/")[0] if uid.startswith(_OF_JOB) else ""


def _number_of(spec: Object) -> int:
    return int(spec["pod"]["uid"].rpartition("/")[2])
