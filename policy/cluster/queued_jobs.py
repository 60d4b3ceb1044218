"""Jobs that wait as a whole: their stand-ins at the gates, and what is kept for the pods of those that were started.

A Job is started by not suspending it any more. Its pods come a little later, one by one. Until then its stand-in keeps
the grant for them; each pod that comes takes over its own part of it. Jobs of other kinds are treated alike.

An elastic Job stays known while it runs. As long as it runs with fewer pods than its user asks for, its stand-in waits
for the others, at the end of its line, and is granted as many of them as there is room for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from policy.cluster.early_pods import EarlyPods
from policy.cluster.gates import Ungated
from policy.cluster.job_ages import JobAges
from policy.cluster.job_demands import JobDemands
from policy.cluster.job_starts import JobStarts, Part
from policy.objects.job_kind import JOB
from policy.objects.owned_pods import owner_uid
from policy.objects.queued_job import (
    PREFIX,
    key_of,
    pods_of,
    shapes_of,
    stand_in,
    started,
    uid_of_stand_in,
    waiting,
)
from policy.objects.resources import add

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from policy.cluster.cluster import Cluster
    from policy.objects.batch_job import BatchJob
    from policy.objects.constraints import Toleration
    from policy.objects.pod import Pod
    from policy.objects.queued_job import Key, QueuedJob
    from policy.objects.resources import Resources
    from policy.stepwise import Steps

START_PATIENCE = 60.0
"""Seconds after its start for which room is kept for pods of a Job that have not come."""
MOST_LATE = 1000
"""Late Jobs that are noted at most: replicas that do not lead tell nobody of them."""


class QueuedJobs:
    """The Jobs that are suspended or are being started, or are elastic. ``patience``: seconds that a start may take.

    ``arrived`` are pods of started Jobs at their own gates, with the grant that was kept for them. ``late`` are Jobs
    of which some pods have not come in time: the number of these, and of how many. The controller that tells
    people of them takes them out. ``ages`` tells which Jobs have waited for long.
    """

    def __init__(self, cluster: Cluster, patience: float) -> None:
        self.arrived: set[str] = set()
        self.late: list[tuple[QueuedJob, int, int]] = []
        self.demands = JobDemands(cluster)
        self.ages = JobAges()
        self._starts = JobStarts()
        self._early = EarlyPods(patience)
        self._cluster = cluster
        self._patience = patience
        self._jobs: dict[Key, QueuedJob] = {}
        self._names: dict[str, set[str]] = {}
        self._asked: dict[str, float] = {}
        self._unseen: dict[str, tuple[Pod, float]] = {}  # pods that asked, and until when they may come
        self._settled: dict[Key, str] = {}  # UIDs of Jobs that were started, and for which nothing is kept any more
        self._made: dict[Key, list[str]] = {}
        self._others: Counter[str] = Counter()
        self._now = -inf

    def __contains__(self, key: Key) -> bool:
        return key in self._jobs

    def __iter__(self) -> Iterator[QueuedJob]:
        return iter(self._jobs.values())

    def get(self, key: Key) -> QueuedJob | None:
        """Returns the Job of this key."""
        return self._jobs.get(key)

    def of(self, stand_in: Pod) -> QueuedJob | None:
        """Returns the Job that a stand-in represents; None if it represents none any more, or is a pod."""
        job = stand_in.stands_for
        return self._jobs.get(key_of(job.kind, stand_in.namespace, job.name)) if job is not None else None

    def wanted(self, pod: Pod) -> list[tuple[Pod, int]]:
        """Returns the pods that a stand-in waits for, one of each pod set and how many; none for a pod."""
        job, of = self.of(pod), pod.stands_for
        if job is None or of is None:
            return []
        counts = [of.pods] if job.least else waiting(job)
        return [(each.pod, count) for each, count in zip(job.pod_sets, counts, strict=True)]

    def shapes_of(self, pod: Pod) -> Hashable:
        """Returns the shapes of the pods that a stand-in waits for; None for a pod."""
        job, of = self.of(pod), pod.stands_for
        return shapes_of(job, of.pods) if job is not None and of is not None else None

    def demands_of(self, pod: Pod) -> Mapping[tuple[Toleration, ...], Resources]:
        """Returns what a pod requests, by its tolerations; for a stand-in what the pods of its Job request."""
        if self.of(pod) is None:
            return {pod.constraints.tolerations: pod.request}
        found: dict[tuple[Toleration, ...], dict[str, int]] = {}
        for each, count in self.wanted(pod):
            asked = {resource: count * amount for resource, amount in each.request.items()}
            add(found.setdefault(each.constraints.tolerations, {}), asked)
        return found

    def upsert(self, job: QueuedJob, now: float) -> None:
        """Sees a Job that is suspended or elastic, or one that was when it was seen last."""
        self._now, known = now, self._jobs.get(job.key)
        if known is not None and known.uid != job.uid:
            self.delete(job.key)
        elif known is not None:
            self._note_grant(known)
        if not job.awaits_pods:
            self._settled.pop(job.key, None)
        self.demands.note(job, self._jobs.get(job.key))
        self._jobs[job.key] = job = self.demands.of(job)
        self.ages.note(job)
        self._cluster.reservations.reserved.see_job(job)
        names = self._names.setdefault(job.namespace, set())
        self._others[job.namespace] += job.kind is not JOB and job.key[1] not in names
        names.add(job.key[1])
        self._stand(job, now)

    def delete(self, key: Key) -> None:
        """Forgets a Job that waits no more. Does nothing for an unknown one."""
        job = self._jobs.pop(key, None)
        if job is None:
            return
        self.demands.forget(job)
        self.ages.forget(key)
        names = self._names[job.namespace]
        names.discard(key[1])
        self._others[job.namespace] -= job.kind is not JOB
        if not names:
            del self._names[job.namespace], self._others[job.namespace]
        self._end(uid_of_stand_in(job.uid))

    def gone(self, key: Key) -> None:
        """Sees that a Job is gone, and with it the pods that were made for it here."""
        self.late = [each for each in self.late if each[0].key != key]
        self._settled.pop(key, None)
        self.delete(key)
        for uid in self._made.pop(key, ()):
            self._cluster.delete_pod(uid)

    def namespace_changed(self, namespace: str) -> None:
        """Sees that Jobs of a namespace may have to wait now, or no longer."""
        queued_in = self._cluster.batch_jobs.queued_in
        (queued_in.add if self.are_queued(namespace) else queued_in.discard)(namespace)
        for name in list(self._names.get(namespace, ())):
            self._stand(self._jobs[namespace, name], self._now)

    def defaults_changed(self, namespace: str = "") -> None:
        """Sees that other defaults apply to pods: to those of a namespace, or without a name to all.

        The demand of Jobs that wait is then computed anew by ``renew_steps``, as tenants choose how many there are.
        """
        if namespace:
            self.demands.defaults_changed((namespace, name) for name in self._names.get(namespace, ()))
        else:
            self.demands.defaults_changed(self._jobs)

    def renew_steps(self) -> Steps[None]:
        """Computes the demand of Jobs anew that wait and whose defaults have changed. It pauses after each Job."""
        outdated = self.demands.outdated
        for key in list(outdated):
            job = self._jobs.get(key) if key in outdated else None
            if job is not None and uid_of_stand_in(job.uid) in self._cluster.gates.ungated:
                continue  # what is kept for it stays; it is computed anew once it waits again
            outdated.pop(key, None)
            if job is not None:
                renewed = self.demands.of(job)
                if renewed.pod_sets != job.pod_sets:
                    self._jobs[key] = renewed
                    self._cluster.reservations.reserved.see_job(renewed)
                    self._stand(renewed, self._now)
            yield

    def is_outdated(self, pod: Pod) -> bool:
        """Whether a pod is a stand-in whose demand has still to be computed anew, so that its Job may not start yet."""
        job = pod.stands_for
        return job is not None and key_of(job.kind, pod.namespace, job.name) in self.demands.outdated

    def waits(self, job: QueuedJob) -> bool:
        """Whether a Job waits for us to start it, or to let it grow: its namespace or its label says that it is ours.

        A Job without pods to run waits for nothing. Nor does one whose pods have all come, before it was seen started.
        """
        return (job.suspended or job.least > 0) and self._is_ours(job) and any(self._starts.missing(job))

    def part(self, pod: Pod, pods: int) -> Pod:
        """Returns the stand-in of an elastic Job for so many of its pods alone."""
        job = self.of(pod)
        assert job is not None, "it is a stand-in"  # noqa: S101
        return self._stand_in(job, [pods], at_gate=True)

    def at_least(self, pod: Pod) -> Pod:
        """Returns the stand-in of a Job for as few pods as are enough; any other pod as it is."""
        job = pod.stands_for
        return pod if job is None or not job.least else self.part(pod, job.least)

    def grant(self, part: Pod) -> None:
        """Notes that a part of an elastic Job is granted: it is to run with these pods, or with these, too."""
        job = self.of(part)
        assert job is not None and part.stands_for is not None, "it is a stand-in"  # noqa: S101, PT018
        self._starts.grant(part.uid, Part(part.stands_for.pods, job.suspended, job.parallelism))

    def not_started(self, uid: str, now: float) -> None:
        """Notes that a stand-in waits again, for all pods of its Job. Does nothing if its Job is seen started."""
        if uid in self._cluster.gates.ungated:
            return
        if self._starts.take_back(uid):  # its Job may have changed since it was granted
            pod = self._cluster.pods.get(uid)
            job = self.of(pod) if pod is not None else None
            if job is not None:
                self._stand(job, now)

    def are_queued(self, namespace: str) -> bool:
        """Whether Jobs of a namespace are to wait as a whole."""
        return self._cluster.gate_admission.is_gated(namespace, jobs=True)

    def see(self, pod: Pod, before: Pod | None, now: float) -> None:
        """Sees a pod. A new one of a Job that was started takes over its part of what is kept.

        It does so only if the rules still admit it: it may request more than the template of its Job says.
        """
        if before is not None or (pod.job is None and not self._others[pod.namespace]):
            return
        self._unseen.pop(pod.uid, None)
        job = self._job_of(pod)
        if job is not None:
            self._comes(job, pod, now)
        elif self._others[pod.namespace]:
            self._note_early(pod, now)

    def see_asking(self, pod: Pod, now: float) -> None:
        """Sees that the scheduler wants to place a pod that was not seen yet: the two watches are not in step.

        One of a Job that was started takes over its part of what is kept, once. It is gone if it is not seen in time
        and does not ask again.
        """
        job = self._job_of(pod) if pod.job is not None or self._others[pod.namespace] else None
        if pod.uid in self._unseen or (job is not None and self._comes(job, pod, now)):
            self._unseen[pod.uid] = pod, now + self._patience

    def unseen_of(self, namespace: str, owner: str) -> Iterator[Pod]:
        """Yields the pods of an owner that have asked, and that were not seen yet."""
        return (pod for pod, _ in self._unseen.values() if pod.namespace == namespace and owner_uid(pod) == owner)

    def owner_seen(self, job: BatchJob, now: float) -> None:
        """Sees a job that has an owner, or may own pods. Those that came before it take over their parts now."""
        for uid in self._early.take(job.uid):
            if (pod := self._cluster.pods.get(uid)) is not None:
                self.see(pod, None, now)

    def adopt(self, now: float) -> None:
        """Keeps room for growth that an earlier leader has granted, whose pods have not come, as the Jobs show it."""
        for job in list(self._jobs.values()):
            grows = job.least > 0 and not job.suspended and self._is_ours(job)
            if grows and uid_of_stand_in(job.uid) not in self._cluster.gates.ungated:
                self._keep_grown(job, now)

    def make_pods(self, stand_in: Pod, now: float) -> list[Pod]:
        """Makes the pods of a Job that was started or has grown, where no controller of Jobs does it."""
        job, by = self.of(stand_in), stand_in.stands_for
        if job is None or by is None:
            return []
        counts = [by.pods] if job.least else waiting(job)
        self.upsert(started(job, by), now)  # without a grant, nothing is kept for them
        made = self._made.setdefault(job.key, [])
        pods = list(pods_of(job, counts, len(made) or by.grows * job.parallelism))
        made += [pod.uid for pod in pods]
        for pod in pods:
            self._cluster.upsert_pod(pod, now)
        return pods

    def lower(self, job: BatchJob, to: int, now: float) -> None:
        """Sees that an elastic Job runs fewer pods, where no watch shows it."""
        self._cluster.batch_jobs.upsert(replace(job, parallelism=to, runs=to))
        known = self._jobs.get(job.key)
        if known is not None and not known.suspended:
            lacking = known.lacking + known.parallelism - to
            self.upsert(replace(known, parallelism=to, lacking=min(lacking, known.pods - to)), now)

    def at_gates(self) -> list[str]:
        """Returns UIDs of the pods that have arrived and whose own gates are still closed."""
        gates, grants = self._cluster.gates, self._cluster.grants
        self.arrived = {uid for uid in self.arrived if uid in gates and uid in grants}
        return list(self.arrived)

    def starting(self) -> list[Pod]:
        """Returns the stand-ins of Jobs that are being started, or that could not be started and are tried again."""
        gates, pods = self._cluster.gates, self._cluster.pods
        uids = (uid for uid in gates.ungated.keys() | gates.ungating if uid in pods)
        return [pods[uid] for uid in uids if pods[uid].stands_for is not None]

    def tick(self, now: float) -> None:
        """Releases what is kept for pods that have not come in time, and notes their Jobs as ``late``."""
        self._now = now
        self._early.tick(now)
        self._forget_unseen(now)
        for uid in [uid for uid, until in self._starts.until.items() if until <= now]:
            (job, missing), part = self._kept(uid), self._starts.part(uid)
            if part is None or part.suspended:
                late = job, missing, self._starts.as_granted(job).pods if part is None else part.pods
                self.late = [*self.late[1 - MOST_LATE :], late]
            self._settle(job, now)
        self._ask_again(now)

    def _comes(self, job: QueuedJob, pod: Pod, now: float) -> bool:
        """Lets a new pod take over its part, if its Job was started; returns whether it is counted now."""
        ungated = self._cluster.gates.ungated.get(uid_of_stand_in(job.uid))
        if ungated is None or self._starts.knows(job, pod):
            return False
        self._note_grant(job)
        self._starts.has_come(self._starts.as_granted(job), pod)
        self._keep_for_missing(job, ungated, now)
        if pod.pending and not pod.terminating and self._cluster.check(pod) is None:
            self._take_over(pod, ungated, now)
        return True

    def _forget_unseen(self, now: float) -> None:
        """Forgets pods that asked and were not seen in time: they are gone, and the scheduler had not heard of it."""
        for pod in [pod for pod, until in self._unseen.values() if until <= now]:
            del self._unseen[pod.uid]
            if pod.uid not in self._cluster.pods:
                self._cluster.states.leave(pod.uid)
                self._cluster.reservations.reserved.see_anew(uid_of_stand_in(owner_uid(pod)))

    def _job_of(self, pod: Pod) -> QueuedJob | None:
        """Returns the Job that a pod belongs to, if that waits or is being started: its own, or one above that."""
        if pod.job is not None:
            job = self._jobs.get((pod.namespace, pod.job.name))
            if job is not None and job.uid == pod.job.uid:
                return job
        owner = self._cluster.batch_jobs.owner_of(pod, by_label=True) if self._others[pod.namespace] else None
        job = self._jobs.get(key_of(owner.kind, owner.namespace, owner.name)) if owner is not None else None
        return job if job is not None and owner is not None and job.uid == owner.uid else None

    def _note_early(self, pod: Pod, now: float) -> None:
        """Notes for a while a pod whose controller is not known yet: the watches of two kinds are not in step."""
        uid, known = owner_uid(pod), self._cluster.batch_jobs
        if uid and pod.pending and known.of(pod) is None and known.others.get(uid) is None:
            self._early.note(uid, pod.uid, now)

    def _stand_in(self, job: QueuedJob, counts: list[int], *, at_gate: bool) -> Pod:
        return stand_in(job, counts, at_gate=at_gate, begins=self._starts.begins(job))

    def _note_grant(self, job: QueuedJob) -> None:
        """Remembers a Job as it was granted, if it is being started."""
        if uid_of_stand_in(job.uid) in self._cluster.gates.ungated:
            self._starts.note(job)

    def _kept(self, uid: str) -> tuple[QueuedJob, int]:
        """Returns the Job of a stand-in, and how many pods it stands for."""
        kept = self._cluster.pods[uid]
        job = self.of(kept)
        assert job is not None and kept.stands_for is not None, "it is a stand-in"  # noqa: S101, PT018
        return job, kept.stands_for.pods

    def _ask_again(self, now: float) -> None:
        """Puts Jobs back in line that are still seen suspended long after they were to be started.

        The API server may accept a start, and a policy may undo it in the same breath, as if nothing had been asked.
        """
        ungated, seen = self._cluster.gates.ungated, self._starts.until
        starting = (uid for uid in ungated if uid.startswith(PREFIX) and uid not in seen)
        self._asked = {uid: self._asked.get(uid, now + self._patience) for uid in starting}
        for uid in [uid for uid, until in self._asked.items() if until <= now]:
            job, _ = self._kept(uid)
            self._end(uid)
            self._stand(job, now)

    def _stand(self, job: QueuedJob, now: float) -> None:
        uid = uid_of_stand_in(job.uid)
        part = self._starts.part(uid)
        if job.suspended:
            self._cluster.lowered.suspended(job.uid)
        if job.suspended and (uid in self._starts.until or (part is not None and not part.suspended)):
            self._end(uid)  # it was suspended again while it was starting or growing
        ungated = self._cluster.gates.ungated.get(uid)
        if ungated is None and part is not None and part.is_seen_by(job):
            self._settle(job, now)  # all its pods have come before it was seen started
        elif ungated is not None:
            if self._starts.is_seen(job):
                self._starts.until.setdefault(uid, now + self._patience)
            self._keep_for_missing(job, ungated, now)
        elif self._starts.part(uid) is not None and not (self._starts.is_seen(job) or any(self._starts.missing(job))):
            pass  # all its pods have come before it is seen started
        elif not (job.awaits_pods and self._keep_anew(job, now)):
            self._wait_or_rest(job, now)

    def _wait_or_rest(self, job: QueuedJob, now: float) -> None:
        """Puts a Job into its line, if it waits for pods; else its pods ask for themselves.

        An elastic one stays known then, as it may lack pods again, or its namespace may get the label.
        """
        if self.waits(job):
            self._cluster.upsert_pod(self._stand_in(job, waiting(job), at_gate=True), now)
            self._cluster.gate_admission.stand_again(uid_of_stand_in(job.uid))  # its pods may differ in what it hides
        elif job.suspended or job.least:
            self._end(uid_of_stand_in(job.uid))
        else:
            self.delete(job.key)

    def _keep_anew(self, job: QueuedJob, now: float) -> bool:
        """Keeps room for the pods of a Job that was started, if the rules admit them; returns whether they do.

        An earlier leader may have started it, or this one, and the answer was lost. Its controller says that it has
        begun only after its first pods have come, and the Job may change between.
        """
        if self._settled.get(job.key) == job.uid:
            return False
        if job.least:
            part = Part(job.pods - job.lacking, suspended=True, parallelism=job.asked)
            self._starts.grant(uid_of_stand_in(job.uid), part)
        self._count_come(job)
        return self._keep(job, now)

    def _keep(self, job: QueuedJob, now: float) -> bool:
        """Keeps room for the pods of a Job that have not come, if there are such and the rules admit them."""
        cluster, uid = self._cluster, uid_of_stand_in(job.uid)
        if not any(missing := self._starts.missing(job)):
            self._starts.forget(uid)
            return False
        kept = self._stand_in(job, missing, at_gate=False)
        cluster.upsert_pod(kept, now)
        if cluster.check(kept) is not None:
            self._starts.forget(uid)
            return False
        cluster.gate_admission.ungate(kept, Ungated((cluster.queue_of(kept), kept.namespace), kept.request), now)
        self._starts.until[uid] = now + self._patience
        self._starts.keep(job)
        self._keep_for_missing(job, cluster.gates.ungated[uid], now)
        return True

    def _keep_grown(self, job: QueuedJob, now: float) -> None:
        """Keeps room for the pods that an elastic Job is still to get, as it runs with fewer than it may."""
        pods = (self._cluster.pods[uid] for uid in self._cluster.batch_jobs.pods.of(job.namespace, job.uid))
        missing = min(job.parallelism, job.pods) - sum(self._job_of(pod) is job and _is_there(pod) for pod in pods)
        if missing > 0:
            part = Part(missing, suspended=False, parallelism=job.parallelism - missing)
            self._starts.grant(uid_of_stand_in(job.uid), part)
            if not self._keep(job, now):
                self._wait_or_rest(job, now)

    def _count_come(self, job: QueuedJob) -> None:
        """Counts the pods of a Job that have come before it was known here. Those that wait ask for themselves.

        It is one of ``batch/v1``: no other kind tells that its pods have still to come.
        """
        for uid in self._cluster.batch_jobs.pods.of(job.namespace, job.uid):
            pod = self._cluster.pods[uid]
            if not (pod.terminating or pod.finished) and self._job_of(pod) is job:
                self._starts.has_come(job, pod)

    def _keep_for_missing(self, job: QueuedJob, ungated: Ungated, now: float) -> None:
        uid, seen = uid_of_stand_in(job.uid), self._starts.is_seen(job)
        granted = self._starts.as_granted(job)
        missing = self._starts.missing(granted)
        if not any(missing):
            self._starts.until.pop(uid, None)
            self._cluster.delete_pod(uid)
            if seen:
                self._settle(job, now)
            return
        self._starts.keep(granted)
        kept = self._stand_in(granted, missing, at_gate=not seen)
        self._cluster.gates.count(uid, replace(ungated, request=kept.request))
        self._cluster.grants.keep(kept, now, inf)
        self._cluster.upsert_pod(kept, now)

    def _settle(self, job: QueuedJob, now: float) -> None:
        """Ends a start, or a growth. An elastic Job may wait for more pods at once."""
        self._end(uid_of_stand_in(job.uid))
        self._settled[job.key] = job.uid
        self._wait_or_rest(job, now)

    def _is_ours(self, job: QueuedJob) -> bool:
        return job.marked or self.are_queued(job.namespace)

    def _take_over(self, pod: Pod, ungated: Ungated, now: float) -> None:
        cluster = self._cluster
        if pod.at_gate:
            cluster.ledger.enter("granted", pod)
            cluster.grants.keep(pod, now, inf)
            self.arrived.add(pod.uid)
        elif not pod.gated:
            cluster.gate_admission.ungate(pod, replace(ungated, request=pod.request), now)
            cluster.gates.leave(pod.uid)

    def _end(self, uid: str) -> None:
        self._starts.forget(uid)
        self._cluster.delete_pod(uid)


def _is_there(pod: Pod) -> bool:
    """Whether a pod is one of those that its Job runs at once, also if it has ended and the Job has not counted it."""
    return not pod.terminating and (not pod.finished or (pod.job is not None and pod.job.tracked))
