"""The demand of Jobs that wait as a whole: what their pods will take, by the defaults and the claims that there are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policy.cluster.cluster import Cluster
    from policy.objects.queued_job import Key, PodSet, QueuedJob


class JobDemands:
    """``outdated`` are the Jobs whose demand has still to be computed anew."""

    def __init__(self, cluster: Cluster) -> None:
        self.outdated: dict[Key, None] = {}
        self._naming: dict[tuple[str, str], dict[Key, None]] = {}
        self._cluster = cluster

    def of(self, job: QueuedJob) -> QueuedJob:
        """Returns a Job with what its pods will take."""
        shared: set[str] = set()
        return replace(job, pod_sets=tuple([self._set_filled(each, shared) for each in job.pod_sets]))

    def note(self, job: QueuedJob, before: QueuedJob | None) -> None:
        """Sees a Job whose demand is computed now, and which claims its pods name instead of those before."""
        self.outdated.pop(job.key, None)
        if before is not None:
            self._forget_claims(before)
        for claim in _claims_of(job):
            self._naming.setdefault(claim, {})[job.key] = None

    def forget(self, job: QueuedJob) -> None:
        """Forgets a Job."""
        self.outdated.pop(job.key, None)
        self._forget_claims(job)

    def defaults_changed(self, keys: Iterable[Key]) -> None:
        """Sees that other defaults apply to the pods of these Jobs."""
        self.outdated.update(dict.fromkeys(keys))

    def claim_changed(self, key: tuple[str, str]) -> None:
        """Sees that a claim of devices came, changed or went: Jobs whose pods name it may demand something else."""
        if key in self._naming:
            self.outdated.update(self._naming[key])

    def _set_filled(self, given: PodSet, shared: set[str]) -> PodSet:
        """Returns a pod set with what its pods will take. ``shared``: claims that count for a set before it."""
        pod = given.pod
        if given.template is not None:
            pod = self._cluster.pod_defaults.fill(pod, given.template)
            if pod.needs is not None:
                pod = replace(pod, needs=replace(pod.needs, request=pod.request))
        pod, together = self._cluster.devices.of_job(pod, shared)
        return replace(given, pod=pod, together=together)

    def _forget_claims(self, job: QueuedJob) -> None:
        for claim in _claims_of(job):
            naming = self._naming.get(claim, {})
            naming.pop(job.key, None)
            if not naming:
                self._naming.pop(claim, None)


def _claims_of(job: QueuedJob) -> Iterator[tuple[str, str]]:
    """Yields the claims of devices that pods of a Job name, with its namespace; some of them several times."""
    for needs in (each.pod.needs for each in job.pod_sets):
        yield from ((job.namespace, claim.name) for claim in (needs.claims if needs is not None else ()) if claim.name)
