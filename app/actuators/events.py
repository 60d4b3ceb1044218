"""Events: what ``kubectl describe`` shows of an object beside its state. They are for people, not for programs.

A condition that lasts is one Event whose count rises, like the Events of client-go, not one Event per observation.
"""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from app.observability.evictions import Evicted
from app.store.kind import Kind
from app.store.metadata import Metadata
from app.store.pods import PODS
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod, StandsFor
from policy.objects.queued_job import QueuedJob

IS_TRIED_AGAIN = " failed, and is tried again: "
"""The words of the Event ReclaimBlocked if not a disruption budget is the reason."""
MOST_CHARACTERS = 16_384
"""Maximum number of characters of the evictions that an Event reports to programs."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an Event is about, as Kubernetes names it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Series:
    """An Event that is repeated: its own name, when it was first seen, and its count."""

    name: str
    since: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Event:
    """A fact that the subject's owner should know; ``reason`` is one word to filter by.

    ``evicted``: the evictions that it reports to programs, so that a later process knows them (app.history.earlier).
    """

    subject: Subject
    reason: str
    message: str
    warning: bool = False
    series: Series | None = None
    evicted: tuple[Evicted, ...] = ()


def told(evicted: tuple[Evicted, ...]) -> str:
    """Returns evictions as a JSON list: the first of them, as many as ``MOST_CHARACTERS`` allow."""
    parts, room = list[str](), MOST_CHARACTERS - len("[]")
    for each in evicted:
        part = msgspec.json.encode(each).decode()
        room -= len(part) + len(",")
        if room < 0:
            break
        parts.append(part)
    return f"[{','.join(parts)}]"


def about_pod(pod: Pod) -> Subject:
    """Returns a pod as the subject of an Event; for a stand-in the Job that it represents."""
    if pod.stands_for is not None:
        return about_job(pod.stands_for, pod.namespace)
    return Subject(PODS.api_version, PODS.name, pod.namespace, pod.name, pod.uid)


def about_job(job: BatchJob | QueuedJob | StandsFor, namespace: str) -> Subject:
    """Returns a job of a namespace as the subject of an Event."""
    return Subject(job.kind.api_version, job.kind.name, namespace, job.name, job.uid)


def about_quota(meta: Metadata, kind: Kind) -> Subject:
    """Returns an elastic quota as the subject of an Event."""
    return Subject(kind.api_version, kind.name, meta.namespace or "", meta.name, meta.uid or "")
