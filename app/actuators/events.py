"""Events: what ``kubectl describe`` shows of an object beside its state. People read them, no program relies on them.

What goes on is one event whose count is raised, as those that client-go writes: not one event per observation.
"""

from dataclasses import dataclass
from datetime import datetime

from app.store.kinds import JOBS, PODS, Kind
from app.store.objects import Metadata
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an event is about, as it is named in Kubernetes."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Series:
    """An event that goes on: its own name, when it was first seen, and how often until now."""

    name: str
    since: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that whoever owns the subject should know; ``reason`` is one word to filter by."""

    subject: Subject
    reason: str
    message: str
    warning: bool = False
    series: Series | None = None


def about_pod(pod: Pod) -> Subject:
    """A pod as the subject of an event."""
    return Subject(PODS.api_version, PODS.name, pod.namespace, pod.name, pod.uid)


def about_job(job: BatchJob) -> Subject:
    """A Job as the subject of an event."""
    return Subject(JOBS.api_version, JOBS.name, job.namespace, job.name, job.uid)


def about_quota(meta: Metadata, kind: Kind) -> Subject:
    """An elastic quota as the subject of an event."""
    return Subject(kind.api_version, kind.name, meta.namespace or "", meta.name, meta.uid or "")
