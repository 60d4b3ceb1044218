"""Jobs of other kinds than that of Kubernetes, as owners: which pods are theirs, and which of them decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policy.objects.batch_job import BatchJob, Key
    from policy.objects.job_kind import JobKind
    from policy.objects.pod import Pod

_OtherKey = tuple[str, str, str]
"""Kind in lower case, namespace and name of a job of another kind."""
LONGEST_CHAIN = 4
"""The most jobs above another, each owned by the next, that are followed: a TrainJob owns a JobSet, which owns Jobs."""


class OwnedJobs:
    """Jobs by the UID of the custom resource that controls them, be that known or not."""

    def __init__(self) -> None:
        self._jobs: dict[str, dict[str, BatchJob]] = {}

    def get(self, owner: str) -> Iterable[BatchJob]:
        """Returns the jobs of the owner with this UID."""
        return self._jobs.get(owner, {}).values()

    def add(self, job: BatchJob) -> None:
        """Adds a job, if it has such an owner."""
        if job.controller:
            self._jobs.setdefault(job.controller, {})[job.uid] = job

    def remove(self, job: BatchJob) -> None:
        """Removes a job."""
        owned = self._jobs.get(job.controller, {})
        owned.pop(job.uid, None)
        if not owned:
            self._jobs.pop(job.controller, None)


class OtherJobs:
    """The jobs of other kinds (the setting ``jobs.kinds``), which own pods, Jobs, and each other.

    ``owned`` are those that another one owns.
    """

    def __init__(self) -> None:
        self._jobs: dict[_OtherKey, BatchJob] = {}
        self._by_uid: dict[str, BatchJob] = {}
        self._labels: dict[str, str] = {}
        self.owned = OwnedJobs()

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[BatchJob]:
        return iter(self._jobs.values())

    def get(self, uid: str) -> BatchJob | None:
        """Returns the job with this UID."""
        return self._by_uid.get(uid)

    def named(self, kind: str, namespace: str, name: str) -> BatchJob | None:
        """Returns the job of this kind in lower case, namespace and name."""
        return self._jobs.get((kind, namespace, name))

    def keys_of(self, kind: JobKind) -> list[Key]:
        """Returns namespaces and names of the jobs of a kind."""
        return [(namespace, name) for of, namespace, name in self._jobs if of == kind.name.lower()]

    def upsert(self, job: BatchJob) -> None:
        """Adds or changes a job."""
        self.delete(job.kind, job.key)
        self._jobs[job.kind.name.lower(), job.namespace, job.name] = job
        self.owned.add(job)
        if job.uid:
            self._by_uid[job.uid] = job
        if job.kind.pod_label:
            self._labels[job.kind.name.lower()] = job.kind.pod_label

    def delete(self, kind: JobKind, key: Key) -> None:
        """Removes a job. Does nothing for one that is not known."""
        job = self._jobs.pop((kind.name.lower(), *key), None)
        if job is not None:
            self._by_uid.pop(job.uid, None)
            self.owned.remove(job)

    def labelled(self, pod: Pod) -> BatchJob | None:
        """Returns the job that a pod names in the label of some kind."""
        named = ((kind, pod.namespace, pod.labels.get(label, "")) for kind, label in self._labels.items())
        return next((job for key in named if (job := self._jobs.get(key)) is not None), None)

    def deciding(self, job: BatchJob) -> BatchJob:
        """Returns the job that decides when another one runs: that which owns it, and so on."""
        for _ in range(LONGEST_CHAIN):
            above = self._by_uid.get(job.controller)
            if above is None:
                break
            job = above
        return job
