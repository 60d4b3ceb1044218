"""Simulates a cluster that is left to itself: places, refuses, evicts and reserves until nothing changes.

It plays the scheduler and our controllers on a copy, at once. Only evictions are delayed, and only where time passes
(policy.simulate.delays). The rules are the real ones. Only the order of attempts, and the choice between nodes that
would do, follow kube-scheduler roughly (see docs/whatif.md). Evicted pods are gone; nobody creates them anew.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np
from numpy.typing import NDArray

from policy.cluster.attempts import UNSCHEDULABLE
from policy.cluster.cluster import Cluster
from policy.cluster.unschedulable import PATIENCE
from policy.nodes import fit
from policy.nodes.scores import scores
from policy.objects.batch_job import BatchJob
from policy.objects.group import Key
from policy.objects.pod import Pod, Unschedulable, turn
from policy.objects.reservation import RECLAIM
from policy.preemption import joint_plans, preemptors, reclaim, victims
from policy.preemption.plans import NoPlan, Plan
from policy.preemption.preemptors import Shape
from policy.queueing.ungating import has_room_for_all, largest_part
from policy.quota.exempt import is_critical
from policy.quota.kept_nodes import refusal_by
from policy.reserve import node_reservation, preferred_nodes, promises, starving
from policy.reserve.node_reservation import ReserveDecision
from policy.reserve.starving import Terms
from policy.simulate.delays import AT_ONCE, Delays
from policy.simulate.trial_order import TrialOrder
from policy.simulate.waiting_jobs import JobsAlike, PodTurn, WaitingJobs
from policy.stepwise import Steps, sorted_steps

RowNumbers = NDArray[np.intp]

NO_ROOM = "no node has room for it, or is one that it may go to"
BROKEN_GANG = "GangBroken"
JOB_FAILED = "JobFailed"
PROMISED_START = "PromisedStart"
AT_A_TIME = 100
"""Waiting pods that are looked at between two pauses."""
RESTS = 4
"""The most times that waiting pods lose their claims, so that others come first, before it stops."""

LATER = 0.001
"""Seconds after the moment at which a protection ends, when it surely has ended."""

ROUNDING = 1e-6
"""Seconds by which a time that was computed may be wrong."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that was evicted, for another or (empty) as its gang was broken or its Job failed.

    ``at`` in seconds since the epoch.
    """

    pod: Pod
    for_: Pod | None
    reason: str
    at: float


class Simulation:
    """A cluster that nobody else uses, and what has happened in it so far.

    ``now`` is on the cluster's clock; ``now + epoch`` is in seconds since the epoch. ``steps`` counts what has been
    done. ``evictions`` and ``bound`` are in their order; whoever has read them may clear them. ``again_at``: when pods
    may be evicted that min-run-time or ``delays`` protect now, on the cluster's clock. ``promises`` counts what became
    of promised starts: ``kept``, ``moved`` (later), ``lost``.
    """

    def __init__(
        self, cluster: Cluster, terms: Terms, now: float, epoch: float = 0.0, delays: Delays = AT_ONCE
    ) -> None:
        self.cluster = cluster
        self.now = now
        self.evictions: list[Eviction] = []
        self.bound: list[Pod] = []
        self.steps = 0
        self.promises: Counter[str] = Counter()
        self._promised: dict[Key, float] = {}
        self._terms = terms
        self._epoch = epoch
        self._delays = delays
        self.again_at = inf
        cluster.protection.pass_time(self.time)
        self._hurt: set[Key] = set()
        self._freed = 0
        self._near_others = False
        self._failed: dict[Hashable, str] = {}
        self._failed_as_of: Hashable = None
        self._not_started: dict[str, Pod] = {}
        self._jobs = WaitingJobs(cluster)

    @property
    def time(self) -> float:
        """Seconds since the epoch."""
        return self.now + self._epoch

    def settle_steps(self) -> Steps[None]:
        """Goes on until nothing changes any more, as things are now. Iterate to the end; it may pause in between."""
        while True:
            steps, before = self.steps, self._what_could_help()
            yield from self.cluster.devices.renew_steps()
            yield from self.cluster.queued_jobs.renew_steps()
            yield from self.cluster.divide_steps()
            yield from self._place_steps()
            self.again_at = inf
            yield from self._go_on_with_plans_steps()
            yield from self._make_room_steps()
            yield from self._reserve_steps()
            at_rest = self.steps == steps or self._what_could_help() == before
            if at_rest and not self._clean_up():
                return

    def come_to_rest_steps(self) -> Steps[None]:
        """Settles once all terminating pods have left, and again once pods tried in vain have lost their claims."""
        for pod in [pod for pod in self.cluster.pods.values() if pod.terminating]:
            self.cluster.delete_pod(pod.uid)
            yield
        yield from self.settle_steps()
        for _ in range(RESTS):
            steps, before = self.steps, self._what_could_help()
            self.advance(self.now + PATIENCE + 1)
            if before == self._what_could_help() and not self.cluster.to_be_divided:
                return
            yield from self.settle_steps()
            if steps == self.steps:
                return

    def advance(self, now: float) -> None:
        """Lets time pass. Nothing happens meanwhile but what time itself does."""
        self.now = now
        self.cluster.tick(now)
        self.cluster.protection.pass_time(self.time)

    def _what_could_help(self) -> Hashable:
        """Returns a value that changes when a refused pod might be placed after all, not when others only took room."""
        cluster = self.cluster
        return cluster.generations.of_placing, self._freed, self.steps if self._near_others else 0

    # The scheduler

    def _place_steps(self) -> Steps[None]:
        """Tries all waiting pods in order. Once one has failed, it fails all pods that are alike without a try.

        It does so until something has changed that could help one of them. Of Jobs that wait as a whole it tries the
        first of each kind, and the next if that was started. If a start eases something, all kinds have a try again.
        """
        jobs, queues = self._jobs, self.cluster.ledger.queues
        if self._failed_as_of != (helped := self._what_could_help()):
            self._failed_as_of = helped
            self._failed.clear()
            self._not_started.clear()
            jobs.anything_may_help()
        others = yield from jobs.look_steps()
        order = TrialOrder(self.cluster)
        for number, pod in enumerate(others, start=1):
            order.add((turn(pod), pod))
            if number % AT_A_TIME == 0:
                yield
        order.add_all((yield from jobs.first_steps()))
        while order:
            at, place = order.pop()
            if isinstance(place, Pod):
                yield from self._place_one_steps(place.uid)
            elif (yield from self._start_one_steps(place, at)) and (following := jobs.following(place, at)):
                order.add(following)
            yield
            while queues.turned_away or helped != self._what_could_help():
                if queues.turned_away:  # some were refused as long as it is not known what is left for them
                    yield from self.cluster.divide_steps()
                helped = self._what_could_help()
                jobs.rules_may_help()
                order = order.without_jobs()
                order.add_all((yield from jobs.first_steps()))

    def _place_one_steps(self, uid: str) -> Steps[None]:
        """Tries to place a pod, or to start an elastic Job, if it still waits and none that is alike has failed."""
        pod = self.cluster.pending.get(uid)
        if pod is None:
            return
        if pod.stands_for is not None:
            if self._not_started.get(uid) is not pod and not (yield from self._start_part_steps(pod)):
                self._not_started[uid] = pod
            return
        alike = self._kind(pod)
        if alike in self._failed:
            self._fail(pod, self._failed[alike])
        elif message := (yield from self._attempt_steps(pod)):
            self._failed[alike] = message

    def _start_one_steps(self, kind: JobsAlike, at: PodTurn) -> Steps[bool]:
        """Starts the Job of a kind whose turn it is, if it may start; returns whether it was started."""
        stand_in = self.cluster.pod(*at[2:])
        if stand_in is None or not self._jobs.may_start(kind, stand_in):
            return False
        yield from self._start_steps(stand_in)
        return True

    def _start_part_steps(self, stand_in: Pod) -> Steps[bool]:
        """Starts as much of an elastic Job as there is room for, if that may start; returns whether it was started."""
        yield
        part = self._with_room(stand_in)
        where = self.cluster.queue_of(part), part.namespace
        if not self._jobs.would_start(where, part, lambda: has_room_for_all(self.cluster, part)):
            return False
        yield from self._start_steps(part)
        return True

    def _attempt_steps(self, pod: Pod) -> Steps[str]:
        """Tries to place a pod; returns the message if it fails."""
        yield from fit.prepare_steps(self.cluster.table, pod)
        if message := self._try(pod):
            self._fail(pod, message)
        return message

    def _start_steps(self, stand_in: Pod) -> Steps[None]:
        """Starts a Job that waits as a whole. Its pods are tried at once: the room is theirs."""
        self.steps += 1
        where = self.cluster.queue_of(stand_in), stand_in.namespace
        pods = self.cluster.queued_jobs.make_pods(stand_in, self.now)
        for pod in pods:
            yield from self._attempt_steps(pod)
            yield
        if left := [pod.uid for pod in pods if pod.uid in self.cluster.pending]:
            self._jobs.note_without_room(where, left)

    def _with_room(self, stand_in: Pod) -> Pod:
        """Returns the part of an elastic Job that there is room for, or the least; of any other Job all of it."""
        job = stand_in.stands_for
        if job is None or not job.least or not self.cluster.gate_admission.holds(stand_in):
            return stand_in
        part = largest_part(self.cluster, stand_in, partial(has_room_for_all, self.cluster))
        return part if part is not None else self.cluster.queued_jobs.at_least(stand_in)

    def _kind(self, pod: Pod) -> Hashable:
        """Returns a key for pods of which none is placed if one is not. A pod of a gang, or with a node, is alone."""
        if (
            pod.group
            or pod.nominated_node
            or self.cluster.reservations.is_held_for(pod.uid)
            or self.cluster.reservations.reserved.of_pod(pod.uid)
        ):
            return pod.uid
        return starving.kind_alone(self.cluster, pod)

    def _try(self, pod: Pod) -> str:
        """Makes one attempt of the scheduler: its own filters first, then ours. Returns the message if it fails."""
        cluster, table = self.cluster, self.cluster.table
        constraints = pod.constraints
        self._near_others = self._near_others or bool(constraints.affinity or constraints.spread)
        rows = np.flatnonzero(fit.fits(table, pod))
        if not len(rows):
            return NO_ROOM
        before = cluster.generations.snapshot()
        answer = cluster.filter(pod, self.now, lambda: [table.names[row] for row in rows])
        if answer.refused is not None:
            if answer.failed:
                cluster.generations.restore(before)  # it was granted for a moment only
            return answer.refused.message
        if answer.failed:
            rows = rows[~table.mask_of(answer.failed.keys())[rows]]
        if not len(rows):  # the only node that is left to a member of a gang has no room for it
            return refusal_by({*answer.failed.values()}).message
        self._bind(pod, self._own_node(pod, rows) or self._best(pod, rows))
        return ""

    def _own_node(self, pod: Pod, rows: RowNumbers) -> str:
        """Returns the node where room is kept for the pod, which the scheduler tries first."""
        kept = (each.node for each in self.cluster.reservations.plans.values() if each.pod.uid == pod.uid)
        node = self.cluster.gangs.node_for(pod.uid) or next(kept, pod.nominated_node)
        row = self.cluster.table.rows.get(node)
        return node if row is not None and row in rows else ""

    def _best(self, pod: Pod, rows: RowNumbers) -> str:
        """Returns the node that the scheduler's scores prefer, ours among them."""
        cluster, table = self.cluster, self.cluster.table
        points = scores(table, pod, rows)
        if len(cluster.reservations.reserved):
            names = [table.names[row] for row in rows]
            preferred = set(preferred_nodes.preferred(cluster, pod, names))
            points += np.array([100 * (name in preferred) for name in names])
        return table.first_by_name(rows[points == points.max()])

    def _bind(self, pod: Pod, node: str) -> None:
        bound = replace(pod, node=node, nominated_node="", unschedulable=None, started=self.time)
        self.cluster.upsert_pod(bound, self.now)
        self.bound.append(bound)
        for reservation in [each for each in self.cluster.reservations.plans.values() if each.pod.uid == pod.uid]:
            self.cluster.delete_reservation(reservation.name)
        self.steps += 1

    def _fail(self, pod: Pod, message: str) -> None:
        said = Unschedulable(UNSCHEDULABLE, message)
        if pod.unschedulable == said and not pod.nominated_node:
            return
        self.cluster.upsert_pod(replace(pod, unschedulable=said, nominated_node=""), self.now)

    # Our controllers

    def _make_room_steps(self) -> Steps[None]:
        """Evicts for pods that may take back what was lent, and, as the scheduler does, for pods of higher priority."""
        cluster, delay = self.cluster, self._delays.claim
        waiting = yield from preemptors.waiting_steps(cluster, self.now + ROUNDING, delay)
        if delay:
            self.again_at = min(self.again_at, preemptors.next_due(cluster, self.now + ROUNDING, delay))
        free = yield from self._free_of_rules_steps()
        waiting += yield from sorted_steps(free, turn)
        without_victims: set[tuple[int, tuple[Shape, ...]]] = set()
        pods = cluster.pods.values() if waiting else ()
        lowest = min((pod.priority for pod in pods if pod.assigned), default=inf)
        seen: set[str] = set()
        too_few: set[Key] = set()
        for pod in waiting:
            if pod.uid in seen or (pod.namespace, pod.group) in too_few:
                continue
            yield
            members = preemptors.together_with(cluster, pod, waiting)
            seen.update(member.uid for member in members)
            if not members:
                too_few.add((pod.namespace, pod.group))
            shapes = cluster.gangs.takes_to_start(pod), tuple(preemptors.shape_of(each, cluster) for each in members)
            if not members or shapes in without_victims or not any(self._may_evict(each, lowest) for each in members):
                continue
            result: list[Plan] | Plan | NoPlan
            if len(members) > 1:
                result = yield from joint_plans.plans_for_all_of_a_copy_steps(cluster, members)
            else:
                result = yield from victims.search_steps(cluster, pod)
            if isinstance(result, NoPlan) and result.moments:
                self.again_at = min(self.again_at, result.moments[0] - self._epoch + LATER)
            plans = [] if isinstance(result, NoPlan) else result if isinstance(result, list) else [result]
            if plans and self._budgets_allow(plans):
                self._carry_out(plans)
            else:
                without_victims.add(shapes)
            yield

    def _may_evict(self, pod: Pod, lowest: float) -> bool:
        """Whether anybody may have to go for a pod: to one that no rule governs only priority, the lowest, matters."""
        cluster = self.cluster
        return pod.priority > lowest or cluster.is_governed(pod) or bool(cluster.reservations.node_to_empty_for(pod))

    def _budgets_allow(self, plans: list[Plan]) -> bool:
        """Whether all victims may go: none is evicted while another of the same plans may not."""
        going = [victim for plan in plans for victim in plan.victims]
        return not self.cluster.budgets.violating(going)

    def _free_of_rules_steps(self) -> Steps[list[Pod]]:
        """Returns waiting pods without a quota or queue: the scheduler evicts for them by priority alone."""
        cluster, found = self.cluster, list[Pod]()
        for number, uid in enumerate(cluster.attempts.unschedulable_since, start=1):
            pod = cluster.pods[uid]
            kept = cluster.reservations.is_held_for(uid) or uid in cluster.grants or pod.terminating
            if not (kept or cluster.is_governed(pod) or cluster.gangs.is_waiting(pod)):
                found.append(pod)
            if number % AT_A_TIME == 0:
                yield
        return found

    def _go_on_with_plans_steps(self) -> Steps[None]:
        """Evicts the victims of earlier plans, once their notice is over.

        Drops plans whose pod waits no more or needs the room no more, or whose node is lost.
        """
        cluster, notice = self.cluster, self._delays.notice
        for reservation in list(cluster.reservations.plans.values()):
            if not cluster.reservations.is_in_force(reservation) or reclaim.is_lost(cluster, reservation):
                self._lift([reservation.name])
                continue
            if notice:
                staying = reclaim.staying(cluster, reservation)
                if staying and not (yield from reclaim.still_planned_steps(cluster, reservation, staying)):
                    self._lift([reservation.name])
                    continue
                if (at := reservation.since + notice) > self.time + ROUNDING:
                    self.again_at = min(self.again_at, at - self._epoch)
                    continue
            pod = cluster.pods[reservation.pod.uid]
            for victim in [cluster.pods[each.uid] for each in reservation.victims if each.uid in cluster.pods]:
                self._evict(victim, pod, RECLAIM)

    def _carry_out(self, plans: list[Plan]) -> None:
        for plan in plans:
            self.cluster.upsert_reservation(reclaim.reservation_of(plan, self.time))
        for plan in [] if self._delays.notice else plans:
            for victim in plan.victims:
                self._evict(victim, plan.pod, RECLAIM)
        self.steps += 1
        self._freed += 1

    def _evict(self, victim: Pod, for_: Pod | None, reason: str) -> None:
        """Evicts a pod, as far as disruption budgets allow it."""
        cluster = self.cluster
        if victim.uid not in cluster.pods or not cluster.draw_on_budgets(victim):
            return
        whole = cluster.batch_jobs.whole(victim)
        if whole is not None and whole.spare > 0:
            cluster.queued_jobs.lower(whole, whole.runs - 1, self.now)
            self._take_away(victim, for_, reason)
            return
        if whole is not None:
            if whole.least:
                cluster.queued_jobs.delete(whole.key)  # nobody suspends it here, so it does not wait again
            for pod in reclaim.running_pods(cluster, whole):
                self._take_away(pod, for_, reason)
            return
        self._take_away(victim, for_, reason)
        job = cluster.batch_jobs.of(victim)
        if job is not None and not job.ended:
            self._count_failure(job)

    def _count_failure(self, job: BatchJob) -> None:
        """Counts an eviction as a failure of its Job. If that is one too many, deletes all of its pods."""
        jobs, after = self.cluster.batch_jobs, job.after_eviction()
        jobs.upsert(after)
        if after.ended:
            for pod in [pod for pod in self.cluster.pods.values() if jobs.of(pod) is after and not pod.finished]:
                self._take_away(pod, None, JOB_FAILED)

    def _take_away(self, pod: Pod, for_: Pod | None, reason: str) -> None:
        group = self.cluster.gangs.gang_of(pod)
        if group is not None:
            self._hurt.add(group.key)
        self.cluster.delete_pod(pod.uid)
        self._freed += 1
        self.evictions.append(Eviction(pod, for_, reason, self.time))
        self.steps += 1

    def _clean_up(self) -> bool:
        """Evicts what is left of gangs that fell below their minimum for good; returns whether there was anything."""
        steps = self.steps
        for key in sorted(self._hurt):
            group = self.cluster.membership.groups.get(key)
            if group is not None and len(self.cluster.gangs.ready(group)) < group.minimum:
                standing = [pod for pod in self.cluster.groups.members(key) if pod.assigned and not pod.terminating]
                left = [pod for pod in standing if not is_critical(pod)]
                for pod in reclaim.without_failing_jobs(self.cluster, left):
                    self._evict(pod, None, BROKEN_GANG)
        self._hurt.clear()
        return self.steps != steps

    def _reserve_steps(self) -> Steps[None]:
        """Reserves nodes for jobs that starve, and releases them."""
        cluster = self.cluster
        jobs = yield from starving.in_turn_steps(cluster, self._terms, self.time)
        there = {(job.namespace, job.name) for job in jobs}
        reserved = list(cluster.reservations.reserved)
        self._lift(each.name for each in reserved if (each.pod.namespace, each.job) not in there)
        for key in [(job.namespace, job.name) for job in jobs]:
            job = cluster.job_members.find(*key)
            if job is not None:
                if (given_up_at := node_reservation.given_up_at(cluster, job)) >= self.time:
                    self.again_at = min(self.again_at, given_up_at + LATER - self._epoch)
                decision = yield from node_reservation.decide_steps(cluster, job, self._terms, self.time)
                self._keep_to(decision)
                if decision.reason == node_reservation.READY:
                    self._end_promise(key)
                yield from self._promise_steps(key)
            yield

    def _promise_steps(self, job: Key) -> Steps[None]:
        """Promises a job with reserved nodes its start, and evicts who would be late for it."""
        cluster = self.cluster
        own = [each for each in cluster.reservations.reserved.of_job(*job) if cluster.reservations.is_reserved(each)]
        if not own:
            self.promises["lost"] += self._promised.pop(job, 0.0) > 0
            return
        before = max(each.promised_start for each in own)
        decision = yield from promises.decide_steps(cluster, own, before, self.time)
        for each in own:
            cluster.upsert_reservation(promises.noted(each, decision, self.time))
        after = self._promised[job] = decision.promise.at
        self.promises["moved"] += bool(decision.moved)
        if after > before:  # others may use the nodes until then
            self.steps += 1
            self._freed += 1
        for pod in decision.late:
            if (at := promises.goes_at(pod, after)) <= self.time:
                self._evict(pod, None, PROMISED_START)
            else:
                self.again_at = min(self.again_at, at - self._epoch)

    def _end_promise(self, job: Key) -> None:
        """Counts how good the promise of a job was that has started, as the controller does."""
        if promised := self._promised.pop(job, 0.0):
            self.promises["kept" if self.time <= promised + promises.PATIENCE else "lost"] += 1

    def _keep_to(self, decision: ReserveDecision) -> None:
        cluster, job = self.cluster, decision.job
        own = cluster.reservations.reserved.of_job(job.namespace, job.name)
        there = {(each.pod.uid, each.node) for each in own}
        surplus = node_reservation.surplus(cluster, own, decision.places)
        if decision.reason == node_reservation.EXPIRED:
            for each in surplus:
                cluster.upsert_reservation(replace(each, failed_at=self.time))
                self.steps += 1
                self._freed += 1
        else:
            self._lift(each.name for each in surplus)
        for place in decision.places:
            if (place.pod.uid, place.node) not in there:
                cluster.upsert_reservation(node_reservation.reservation_of(job, place, self.time))
                self.steps += 1
                self._freed += 1

    def _lift(self, names: Iterable[str]) -> None:
        for name in list(names):
            self.cluster.delete_reservation(name)
            self.steps += 1
            self._freed += 1
