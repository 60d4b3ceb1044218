"""The pods of Jobs that wait as a whole, one by one, so that nodes can be reserved for each before it exists.

No API server knows these members. Each is as the template of its Job describes it, and has a number. Once the Job has
started, each of its pods that comes to a node takes the place of a member for which that node is reserved.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING

from policy.objects.job import ALONE, Job
from policy.objects.job_kind import JOB
from policy.objects.pod import JobMember, Pod
from policy.objects.queued_job import (
    PREFIX,
    PodSet,
    QueuedJob,
    is_member,
    key_of,
    number_of_member,
    stand_in_of,
    uid_of_member,
    uid_of_stand_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policy.cluster.cluster import Cluster
    from policy.cluster.gates import Where
    from policy.objects.reservation import Reservation

MOST = 500
"""The most pods that a Job may have, and takes to run, if nodes are to be reserved for it: they are looked at often."""
WHOLE = f"{ALONE}{PREFIX}"
"""How the names of Jobs begin that wait as a whole, in the place of a group's kind."""


@dataclass(slots=True)
class _Known:
    """A member without a number, as the template of a Job describes it (``job``), and the members by number."""

    job: QueuedJob
    template: Pod
    members: dict[int, Pod] = field(default_factory=dict)

    def member(self, number: int) -> Pod:
        """Returns a member."""
        known, template = self.members.get(number), self.template
        if known is None:
            uid, name = uid_of_member(template.uid, number), f"{template.name}-{number}"
            known = self.members[number] = replace(template, uid=uid, name=name)
        return known


class JobMembers:
    """The members, and which of them have come. Jobs that are elastic, or of other kinds, have none."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, _Known] = {}
        self._latest: _Known | None = None  # a Job without reserved nodes is asked about several times in a row

    def waits_in(self, job: QueuedJob) -> Where | None:
        """Returns the line of gates in which a Job waits for room for its members; None if it does not, or has none."""
        stands = self._cluster.gates.line_of(uid_of_stand_in(job.uid))
        return stands[0] if stands is not None and job.kind is JOB and not job.least and job.pods <= MOST else None

    def wait_as_a_whole(self, namespace: str, name: str) -> bool:
        """Whether the job of this name is a Job that waits as a whole, or has just started."""
        return name.startswith(WHOLE) and self._cluster.pod(namespace, name.removeprefix(ALONE)) is not None

    def find(self, namespace: str, name: str) -> Job | None:
        """Returns the job of this name; of a Job that waits as a whole, or has just started, with all of its members.

        Its members are ``granted`` from its start on. None if there is no such job, a Job has too many pods, or what is
        reserved was for another Job of this name, or before this one was suspended again: it has to starve anew.
        """
        if not name.startswith(WHOLE):
            return self._cluster.groups.job(namespace, name)
        cluster, reserved = self._cluster, self._cluster.reservations.reserved.of_job(namespace, name)
        stand_in = cluster.pod(namespace, name.removeprefix(ALONE))
        if stand_in is None and not reserved:
            return None
        uid = stand_in.uid if stand_in is not None else stand_in_of(reserved[0].pod.uid)
        if not reserved and cluster.batch_jobs.pods.number_of(namespace, uid.removeprefix(PREFIX)) > MOST:
            return None
        known, waits = self._of(namespace, name.removeprefix(WHOLE), uid), uid in cluster.gates
        if known is None or any(
            stand_in_of(each.pod.uid) != uid or each.since <= known.template.created for each in reserved
        ):
            return None
        pods = [] if waits else list(self._pods(namespace, uid))  # before its start, none is of its own making
        standing = tuple(pod for pod in pods if pod.assigned and not (pod.terminating or pod.finished))
        left = sum(pod.pending and not (pod.terminating or pod.gated) for pod in pods)
        left += stand_in.stands_for.pods if stand_in is not None and stand_in.stands_for is not None else 0
        left = min(left, max(0, known.job.pods - len(standing)))  # others may name it as their controller
        if left > MOST or not (left or standing):
            return None
        members = tuple(known.member(number) for number in islice(self._numbers(reserved), left))
        return Job(
            namespace,
            name,
            minimum=len(standing) + left,
            created=known.template.created,
            standing=standing,
            granted=() if waits else members,
            waiting=members if waits else (),
        )

    def pod_of(self, reservation: Reservation) -> Pod | None:
        """Returns the pod, or the member, that a reservation is for; None if it is gone, or is not known."""
        uid = reservation.pod.uid
        if not is_member(uid):
            return self._cluster.pods.get(uid)
        stand_in = stand_in_of(uid)
        there = stand_in in self._cluster.pods or any(self._pods(reservation.pod.namespace, stand_in))
        known = self._of(reservation.pod.namespace, reservation.job.removeprefix(WHOLE), stand_in) if there else None
        return known.member(number_of_member(uid)) if known is not None else None

    def has_come(self, reservation: Reservation) -> bool:
        """Whether a pod of the Job is on the node in the place of this member.

        Pods that name a Job as their controller before its start are not of its making.
        """
        waits = stand_in_of(reservation.pod.uid) in self._cluster.gates
        return not waits and self._cluster.reservations.reserved.has_come(reservation)

    def subjects(self, job: Job) -> Iterable[Pod]:
        """Returns whom Events about a waiting job are written on: its pods, or the stand-in for its members."""
        if not job.name.startswith(WHOLE):
            return job.waiting
        stand_in = self._cluster.pod(job.namespace, job.name.removeprefix(ALONE))
        return () if stand_in is None else (stand_in,)

    def asking(self, pods: Iterable[Pod]) -> list[Pod]:
        """Returns the pods that the rules are asked about for these: for members their stand-in, which counts for all.

        The pods of a Job that have come are asked about themselves.
        """
        asking = {pod.uid: pod for pod in pods if not is_member(pod.uid)}
        for uid in {stand_in_of(pod.uid) for pod in pods if is_member(pod.uid)}:
            if (stand_in := self._cluster.pods.get(uid)) is not None:
                asking[uid] = stand_in
        return list(asking.values())

    def forget(self, stand_in: str) -> None:
        """Notes that nothing is reserved for a Job any more."""
        self._known.pop(stand_in, None)

    def all_for(self, reservation: Reservation) -> Iterator[Pod]:
        """Yields the stand-in of the Job that waits as a whole, if it is there, and its pods; for other jobs none."""
        namespace, stand_in = reservation.pod.namespace, stand_in_of(reservation.pod.uid)
        if (pod := self._cluster.pods.get(stand_in)) is not None:
            yield pod
        yield from self._seen(namespace, stand_in)

    def _pods(self, namespace: str, stand_in: str) -> Iterator[Pod]:
        """Yields the pods of a Job, also those that have asked and were not seen yet."""
        unseen = self._cluster.queued_jobs.unseen_of(namespace, stand_in.removeprefix(PREFIX))
        return chain(self._seen(namespace, stand_in), unseen)

    def _seen(self, namespace: str, stand_in: str) -> Iterator[Pod]:
        """Yields the pods of a Job that were seen."""
        pods = self._cluster.pods
        return (pods[uid] for uid in self._cluster.batch_jobs.pods.of(namespace, stand_in.removeprefix(PREFIX)))

    def _of(self, namespace: str, name: str, stand_in: str) -> _Known | None:
        """Returns what is known of a Job. Once that is forgotten, as it has started, it counts as it was before."""
        known, job = self._known.get(stand_in), self._cluster.queued_jobs.get(key_of(JOB, namespace, name))
        if known is None and job is None:
            known = self._as_its_pods(namespace, name, stand_in)
        if job is None or uid_of_stand_in(job.uid) != stand_in or (known is not None and known.job is job):
            return known
        if job.least:
            return None
        known = self._latest if self._latest is not None and self._latest.job is job else self._new(job, stand_in)
        if stand_in in self._cluster.reservations.reserved.of_stand_ins:
            self._known[stand_in] = known
        else:
            self._latest = known
        return known

    def _as_its_pods(self, namespace: str, name: str, stand_in: str) -> _Known | None:
        """Returns what its first pod tells of a Job that had started before this process did, and has reserved nodes.

        The Job itself says only how many pods it has.
        """
        job, pod = self._cluster.batch_jobs.get((namespace, name)), next(self._pods(namespace, stand_in), None)
        reserved = stand_in in self._cluster.reservations.reserved.of_stand_ins
        if not reserved or pod is None or job is None or job.least or uid_of_stand_in(job.uid) != stand_in:
            return None
        alike = Pod(pod.uid, namespace, name, pod.request, pod.priority, constraints=pod.constraints, labels=pod.labels)
        sets = (PodSet(alike, job.parallelism),)
        as_it_was = QueuedJob(namespace, name, job.uid, sets, job.parallelism, suspended=False)
        known = self._known[stand_in] = self._new(as_it_was, stand_in)
        return known

    def _new(self, job: QueuedJob, stand_in: str) -> _Known:
        template = replace(
            job.pod_sets[0].pod,
            uid=stand_in,
            namespace=job.namespace,
            name=job.name,
            created=max(job.created, job.since),
            group="",
            gated=False,
            gate=-1,
            owner=JOB.name,
            job=JobMember(job.uid, job.name),
        )
        return _Known(job, template)

    def _numbers(self, reserved: list[Reservation]) -> Iterator[int]:
        """Yields numbers of members that have not come, those with reserved nodes first."""
        known = sorted(number_of_member(each.pod.uid) for each in reserved if not self.has_come(each))
        taken = {number_of_member(each.pod.uid) for each in reserved}
        return chain(known, (number for number in count() if number not in taken))
