"""For whom a node is reserved: a pod, or a member of a Job that waits as a whole. No watch shows such members."""

from dataclasses import dataclass
from itertools import pairwise

from tests.chaos.history import Amounts, History, Life, Position, request_of
from tests.chaos.jobs import goes_on, pods_missing, waited_throughout
from tests.controlplane.objects import Object

_OF_JOB = "job/"
"""How the UID of a member begins. Then come that of the Job, and a number."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who waits for a node that is reserved for it, and what it requests at least."""

    name: str
    least: Amounts


def waiting(history: History, spec: Object, start: Position, end: Position) -> Waiting | None:
    """Returns for whom a node is reserved, if it waits at ``end``; a Job if it wants as many pods since ``start``."""
    pod = spec["pod"]
    if uid := job_of(spec):
        versions = list(history.jobs[uid].during(start, end)) if uid in history.jobs else [None]
        waits = all(job and job["spec"].get("suspend") and goes_on(job) for job in versions)
        waits = waits and waited_throughout(history, pod["namespace"], start, end)
        if not waits or len(set(map(pods_missing, versions))) > 1:
            return None
        return Waiting(f"{pod['namespace']}/{pod['name']}", request_of(versions[-1]["spec"]["template"]))
    life = history.lives.get(pod["uid"])
    return Waiting(life.name, life.least) if life is not None and life.waits(end) else None


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
    return of_group or spec["pod"]["uid"] == life.pod["metadata"]["uid"]


def job_of(spec: Object) -> str:
    """The UID of the Job that a node is reserved for, if it waits as a whole; else empty."""
    uid = spec["pod"]["uid"]
    return uid.removeprefix(_OF_JOB).rpartition("/")[0] if uid.startswith(_OF_JOB) else ""
