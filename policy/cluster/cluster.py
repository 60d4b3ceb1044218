"""The cluster: its objects and the ledger, kept consistent by add, update and delete. The only mutable state.

Every method is synchronous and leaves everything consistent, so the owner of the cluster needs no locks. Times are
seconds on the caller's clock, which never goes back.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace

from policy.cluster import bounds, dividing, gates, in_vain
from policy.cluster.attempts import Attempts
from policy.cluster.budgets import Budget, Budgets
from policy.cluster.capacity import Capacity
from policy.cluster.destinations import Destinations
from policy.cluster.device_names import DeviceNames
from policy.cluster.devices import Devices
from policy.cluster.ended import EndedPods
from policy.cluster.failed_evictions import FailedEvictions
from policy.cluster.gang_admission import Gangs
from policy.cluster.gang_holds import HOLD_TIME
from policy.cluster.gate_admission import GateAdmission
from policy.cluster.gates import Gates
from policy.cluster.grants import Grants
from policy.cluster.groups import Groups
from policy.cluster.in_flight import SETTLE_TIME, InFlight
from policy.cluster.in_vain import InVain
from policy.cluster.job_members import JobMembers
from policy.cluster.leaving import Leaving
from policy.cluster.lowered import Lowered
from policy.cluster.overdue import AFTER, STUCK_AFTER
from policy.cluster.pod_admission import PodAdmission
from policy.cluster.pod_defaults import PodDefaults
from policy.cluster.pod_states import GRANT_LIFETIME, PodStates
from policy.cluster.priorities import Priorities
from policy.cluster.protection import Protection
from policy.cluster.queue_changes import QueueChanges
from policy.cluster.queued_jobs import START_PATIENCE, QueuedJobs
from policy.cluster.queueing_hints import QueueingHints
from policy.cluster.quota_manager import Limit
from policy.cluster.reservations import Reservations
from policy.cluster.room import FreedRoom, grown
from policy.cluster.run_times import RunTimes
from policy.cluster.unschedulable import PATIENCE
from policy.nodes.table import NodeTable
from policy.objects import signature
from policy.objects.batch_job import BatchJob, BatchJobs, Key
from policy.objects.group import Group
from policy.objects.job_kind import JobKind
from policy.objects.membership import Membership, Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.queue import Queue
from policy.objects.queued_job import uid_of_stand_in
from policy.objects.reservation import Reservation
from policy.quota import exempt
from policy.quota.admission import Rules
from policy.quota.changes import Changes
from policy.quota.elastic_quota import ElasticQuota
from policy.quota.ledger import Ledger
from policy.quota.lent import Lent
from policy.quota.queue_tree import MOST_LEVELS
from policy.stepwise import Steps, at_once

TOGETHER = 5
"""Pods that are taken in between two pauses: in no more time than a slice takes (app.pause)."""


_NO_PRIORITIES = (0,) * MOST_LEVELS


class Cluster:
    """Pods, nodes, elastic quotas and queues, and who uses what.

    It takes in what is seen of the world. Its parts do the rest. Each of them owns one piece of the state; its module
    says which. ``filter``, ``admit``, ``check``, ``refusal``, ``why_waits`` and ``grant`` decide about pods (see
    policy.cluster.pod_admission).

    ``pending`` are the pods that wait for a node. ``queue_of`` says which queue's rules apply to a pod (see
    policy.cluster.queue_changes). ``generations`` count what has changed. ``epoch`` is the difference from the caller's
    clock to seconds since the epoch.
    """

    def __init__(
        self,
        rules: Rules | None = None,
        grant_lifetime: float = GRANT_LIFETIME,
        settle_time: float = SETTLE_TIME,
        patience: float = PATIENCE,
        hold_time: float = HOLD_TIME,
        gate_patience: float = gates.PATIENCE,
        overdue_after: float = AFTER,
        stuck_after: float = STUCK_AFTER,
        reclaim_backoff: float = in_vain.FIRST,
        start_patience: float = START_PATIENCE,
    ) -> None:
        self.rules = rules or Rules()
        self.epoch = 0.0
        # Objects, as they were last seen
        self.pods: dict[str, Pod] = {}
        self.pending: dict[str, Pod] = {}
        self._uids: dict[str, dict[str, str]] = {}
        self.table = NodeTable()
        self.budgets = Budgets()
        self.batch_jobs = BatchJobs()
        self.quotas: dict[str, dict[str, ElasticQuota]] = {}
        self.queues: dict[str, Queue] = {}
        self.limits: dict[str, Limit] = {}
        self.membership = Membership()
        self.groups = Groups(self)
        self.pod_defaults = PodDefaults(self)
        self.reservations = Reservations(self)
        self.device_names = DeviceNames()
        self.devices = Devices(self, self.device_names)
        self.run_times = RunTimes(self)
        self.ended = EndedPods()
        # What is counted
        self.queue_changes = QueueChanges(self)
        self.queue_of: Callable[[Pod], str] = self.queue_changes.queue_of
        self.states = PodStates(self, grant_lifetime)
        of_pods = self.queue_of, self.states.has_claim, self.queue_changes.own_queue_of, self.run_times.declared
        self.ledger = Ledger(*of_pods)
        self.lent = Lent(self.ledger)
        self.generations = self.ledger.generations
        self.grants = Grants(self.devices.note)
        self.in_flight = InFlight(self, settle_time)
        self.capacity = Capacity(self)
        self.destinations = Destinations(self)
        self.leaving = Leaving(self, overdue_after, stuck_after)
        self.table.overdue = self.leaving.overdue
        self.lowered = Lowered(self)
        self.protection = Protection(self)
        self.priorities = Priorities()
        # What is decided
        admission = PodAdmission(self)
        self.filter, self.admit, self.check = admission.filter, admission.admit, admission.check
        self.refusal, self.why_waits, self.grant = admission.refusal, admission.why_waits, admission.grant
        # Who waits
        self.gangs = Gangs(self, hold_time)
        self.gates = Gates(self.generations)
        self.gate_admission = GateAdmission(self, gate_patience)
        self.queued_jobs = QueuedJobs(self, start_patience)
        self.job_members = JobMembers(self)
        self.attempts = Attempts(self, patience)
        self.hints = QueueingHints(self)
        self.in_vain = InVain(reclaim_backoff)
        self.failed_evictions = FailedEvictions()

    # What is seen of the world

    def upsert_pod(self, pod: Pod, now: float) -> None:
        """Adds a pod, or updates it. Does nothing if the pod has not changed."""
        pod = self.devices.charged(pod)
        if self.pods.get(pod.uid) == pod:
            return
        self._take_the_place_of_others(pod)
        before = self.pods.get(pod.uid)
        self.queue_changes.choose(pod, before)
        self.pods[pod.uid] = pod
        self.reservations.reserved.see(pod, before)
        self.batch_jobs.see(pod, before)
        self.protection.see(pod)
        self.priorities.see(pod)
        self.lowered.see(pod, before)
        self.changes.note(pod.namespace, self.queue_of(pod))
        if pod.pending:
            self.pending[pod.uid] = pod
        else:
            self.pending.pop(pod.uid, None)
        self.attempts.see(pod, before, now)
        self.in_vain.see(pod)
        if before is not None and not (pod.assigned and pod.terminating):
            self.leaving.end(pod.uid)
        self._uids.setdefault(pod.namespace, {})[pod.name] = pod.uid
        if before is not None and before.group != pod.group:
            self.generations.admission += self.gangs.holds.take_back(pod.uid)  # its place is free for other gangs
            self.groups.leave(before)
        if pod.group:
            self.gangs.note(pod)
            self.groups.join(pod)
            if before is None or _differs(pod, before):
                self.gangs.changed((pod.namespace, pod.group))
        if pod.pending:
            self.states.see_pending(pod, before)
        elif pod.finished:
            self.ended.see(pod, before)
            self.states.leave(pod.uid)
        else:
            self.states.see_assigned(pod, before, now)
        self.gate_admission.stand(pod, now)
        self.destinations.place(pod)
        self.capacity.note(pod)
        if pod.assigned and pod.terminating:
            self.leaving.watch(pod)
        self.queued_jobs.see(pod, before, now)
        self.devices.note(pod, before)
        self.devices.settle()

    def take_in_steps(self, pods: Iterable[tuple[Pod, float]]) -> Steps[None]:
        """Adds new pods, each as ``upsert_pod`` does at its time. Iterate to the end; the caller may pause in between.

        Most pods only stand on a node. It counts those that are alike in one step.
        """
        alike: dict[Hashable, list[Pod]] = {}
        for number, (pod, now) in enumerate(pods):
            plain = not (pod.terminating or pod.group or pod.uid in self.reservations.held or pod.counts_in is not None)
            if pod.assigned and plain and pod.needs is None:
                before, self.pods[pod.uid] = self.pods.get(pod.uid), pod
                self._uids.setdefault(pod.namespace, {})[pod.name] = pod.uid
                self.reservations.reserved.see(pod, before)
                self.batch_jobs.pods.see(pod)
                self.table.add(pod, pod.node)
                self.capacity.note(pod)
                self.protection.see(pod)
                self.priorities.see(pod)
                alike.setdefault(signature.by_rules(pod, pod.queue), []).append(pod)
            else:
                self.upsert_pod(pod, now)
            if number % TOGETHER == 0:
                yield
        for number, each in enumerate(alike.values()):
            self.ledger.enter_alike("assigned", each)
            if number % TOGETHER == 0:
                yield

    def delete_pod(self, uid: str) -> None:
        """Removes a pod. Does nothing for an unknown one."""
        pod = self.pods.pop(uid, None)
        self.pending.pop(uid, None)
        self.reservations.reserved.see(None, pod)
        if pod is not None:
            self.changes.note(pod.namespace, self.queue_of(pod))
            self.batch_jobs.gone(pod)
            self.lowered.forget(pod)
            self.protection.gone(uid)
            self.priorities.forget(uid)
            self._forget_name(pod)
            self.groups.leave(pod)
            self.attempts.forget(pod)
            self.in_vain.forget(uid)
            self.failed_evictions.forget(uid)
            self.hints.helped.forget(uid)
        self.leaving.end(uid)
        self.destinations.forget(uid)
        self.gates.leave(uid)
        stood = self.destinations.stands(uid)
        self.table.remove(uid)
        self.table.wait_no_more(uid)
        self.capacity.forget(uid)
        self.states.leave(uid)
        self.hints.pod_left(uid, *stood)
        if pod is not None:
            self.devices.note(pod)
        self.devices.settle()

    def upsert_node(self, node: Node) -> None:
        """Adds or changes a node."""
        node = self.devices.node(node)
        before = self.table.node(node.name)
        if before != node:
            self.changes.note()
            self.generations.plans += 1
            self.table.upsert_node(node)
            self.generations.shares += 1
            self.hints.room_came(FreedRoom(node.name, grown(before, node), before))
            self.destinations.node_changed(node.name)
            self.leaving.node_changed(node.name)

    def delete_node(self, name: str) -> None:
        """Removes a node. Does nothing for an unknown one."""
        self.changes.note()
        self.generations.plans += 1
        self.table.delete_node(name)
        self.generations.shares += 1
        self.destinations.node_changed(name)
        self.leaving.node_changed(name)

    def upsert_budget(self, budget: Budget) -> None:
        """Adds or changes a disruption budget."""
        before = self.budgets.get((budget.namespace, budget.name))
        if before != budget:
            self.generations.plans += 1
            self.budgets.put(budget)
            if before is not None and (budget.allowed > before.allowed or budget.selector != before.selector):
                self.hints.budget_eased(budget.namespace)

    def delete_budget(self, namespace: str, name: str) -> None:
        """Removes a disruption budget. Does nothing for an unknown one."""
        if self.budgets.remove(namespace, name) is not None:
            self.generations.plans += 1
            self.hints.budget_eased(namespace)

    def draw_on_budgets(self, victim: Pod) -> bool:
        """Counts an eviction in the budgets that protect a pod, as the Eviction API does.

        Returns False and counts nothing if one of them allows none now.
        """
        protecting = self.budgets.protecting(victim)
        if any(budget.allowed < 1 for budget in protecting):
            return False
        for budget in protecting:
            self.upsert_budget(replace(budget, allowed=budget.allowed - 1))
        return True

    def upsert_reservation(self, reservation: Reservation) -> None:
        """Keeps room for a pod from now on. If the reservation was given up, keeps none, and never will again."""
        self.reservations.upsert(reservation)

    def delete_reservation(self, name: str) -> None:
        """Stops keeping the room of a reservation. Does nothing for an unknown one."""
        self.reservations.delete(name)

    def upsert_quota(self, quota: ElasticQuota) -> None:
        """Adds or changes an elastic quota. If it cannot be read, the last good spec of the object stays in force."""
        self.protection.note((quota.namespace, quota.name), quota.min_run_time)
        self.ledger.run_time_limits.note((quota.namespace, quota.name), quota.max_run_time)
        quota = self.device_names.quota(quota)
        of_namespace = self.quotas.setdefault(quota.namespace, {})
        before = of_namespace.get(quota.name)
        if not quota.readable and before is not None and before.readable:
            least, most = quota.min_run_time, quota.max_run_time
            quota = replace(before, errors=quota.errors, min_run_time=least, max_run_time=most)
        if quota == before:
            return  # the watch also shows what we write into its status
        of_namespace[quota.name] = quota
        bounds.quotas_changed(self, quota.namespace)

    def delete_quota(self, namespace: str, name: str) -> None:
        """Removes an elastic quota. Does nothing for an unknown one."""
        self.device_names.forget_quota(namespace, name)
        self.protection.forget((namespace, name))
        self.ledger.run_time_limits.forget((namespace, name))
        of_namespace = self.quotas.get(namespace, {})
        if of_namespace.pop(name, None) is not None:
            if not of_namespace:
                del self.quotas[namespace]
            bounds.quotas_changed(self, namespace)

    def upsert_queue(self, queue: Queue) -> None:
        """Adds or changes a queue. If it cannot be read, the last good spec of the object stays in force."""
        self.protection.note(("", queue.name), queue.min_run_time)
        self.ledger.run_time_limits.note(("", queue.name), queue.max_run_time)
        queue = self.device_names.queue(queue)
        before = self.queues.get(queue.name)
        if before == queue:
            return
        if not queue.readable and before is not None and before.readable:
            least, most = queue.min_run_time, queue.max_run_time
            queue = replace(before, errors=queue.errors, state=queue.state, min_run_time=least, max_run_time=most)
        self.queues[queue.name] = queue
        bounds.queue_changed(self, queue.name, queue)

    def delete_queue(self, name: str) -> None:
        """Removes a queue. Its pods stay, and are in no queue from now on. Does nothing for an unknown one."""
        self.device_names.forget_queue(name)
        self.protection.forget(("", name))
        self.ledger.run_time_limits.forget(("", name))
        if self.queues.pop(name, None) is not None:
            bounds.queue_changed(self, name, None)

    def upsert_namespace(self, namespace: Namespace) -> None:
        """Adds a namespace, or changes which queue is its own."""
        if self.membership.namespaces.get(namespace.name) != namespace:
            self.membership.namespaces[namespace.name] = namespace
            self.generations.shares += 1
            self.queue_changes.named_anew(self._uids.get(namespace.name, {}).values())
            self.queued_jobs.namespace_changed(namespace.name)

    def delete_namespace(self, name: str) -> None:
        """Removes a namespace. Does nothing for an unknown one."""
        if self.membership.namespaces.pop(name, None) is not None:
            self.generations.shares += 1
            self.queue_changes.named_anew(self._uids.get(name, {}).values())
            self.queued_jobs.namespace_changed(name)

    def upsert_group(self, group: Group) -> None:
        """Adds or changes a pod group."""
        before = self.membership.groups.get(group.key)
        if before != group:
            self.membership.groups[group.key] = group
            self.groups.changed(group.key)
            bounds.group_changed(self, before, group)

    def upsert_batch_job(self, job: BatchJob) -> None:
        """Adds or changes a Job. Pods of it that wait may be let in now, or no longer, by how long it says they run."""
        before = self.batch_jobs.get(job.key)
        self.batch_jobs.upsert(job)
        if job.controller and (before is None or before.uid != job.uid):
            self.protection.see_new_job(job)
        if before is None or before.parallelism != job.parallelism:
            self.reservations.reserved.see_anew(uid_of_stand_in(job.uid))
        bounds.job_changed(self, before, job)

    def delete_batch_job(self, key: Key) -> None:
        """Removes a Job. Does nothing for an unknown one."""
        before = self.batch_jobs.get(key)
        self.batch_jobs.delete(key)
        bounds.job_changed(self, before, None)

    def upsert_other_job(self, job: BatchJob) -> None:
        """Adds or changes a job of another kind."""
        others = self.batch_jobs.others
        before = others.named(job.kind.name.lower(), *job.key)
        others.upsert(job)
        if before is not None and before.uid != job.uid:
            self.protection.forget_job(before.uid)
        self.protection.see_job(job)
        if before is None or before.uid != job.uid:
            self.protection.see_new_job(job)

    def delete_other_job(self, kind: JobKind, key: Key) -> None:
        """Removes a job of another kind. Does nothing for an unknown one."""
        before = self.batch_jobs.others.named(kind.name.lower(), *key)
        self.batch_jobs.others.delete(kind, key)
        if before is not None:
            self.protection.forget_job(before.uid)

    def delete_group(self, namespace: str, name: str) -> None:
        """Removes a pod group. Does nothing for an unknown one."""
        before = self.membership.groups.pop((namespace, name), None)
        if before is not None:
            self.groups.changed(before.key)
            bounds.group_changed(self, before, None)

    def upsert_weight(self, namespace: str, name: str, weight: int | None) -> None:
        """Sets the weight that a resource quota gives its namespace, or removes it."""
        if weight is None:
            self.delete_weight(namespace, name)
        elif self.membership.weights.get((namespace, name)) != weight:
            self.membership.weights[namespace, name] = weight
            bounds.weight_changed(self, namespace)

    def delete_weight(self, namespace: str, name: str) -> None:
        """Removes the weight that a resource quota gave its namespace. Does nothing if it gave none."""
        if self.membership.weights.pop((namespace, name), None) is not None:
            bounds.weight_changed(self, namespace)

    def upsert_limit(self, namespace: str, limit: Limit) -> None:
        """Notes that a namespace has a resource quota of the quota manager's name, whoever has written it."""
        self.limits[namespace] = limit

    def delete_limit(self, namespace: str) -> None:
        """Notes that a namespace has no such resource quota any more. Does nothing if it had none."""
        self.limits.pop(namespace, None)

    def begin(self) -> None:
        """Notes that all existing objects have been read. From now on it is known what has admitted a pod.

        Until then pods count in the queue that they name, or in the one that an earlier process has noted on them.
        """
        at_once(self.devices.renew_steps())
        at_once(self.states.catch_up_steps())
        self.queue_changes.begin()

    def tick(self, now: float) -> None:
        """Lets time pass: ends grants whose time is over. Call this only while the known pods are up to date."""
        self.devices.tick(now)
        self.gangs.tick(now)
        for uid in self.grants.expire(now):
            self.states.restore_pending(uid)
        self.in_flight.settle(now)
        self.in_vain.tick(now, self.pods)
        self.leaving.tick(now)
        self.gate_admission.tick(now)
        self.queued_jobs.tick(now)
        self.lowered.tick(now)
        self.devices.settle()
        self.hints.look(now)
        self.queue_changes.try_to_move()

    def divide_steps(self, most: int | None = None) -> Steps[None]:
        """Computes anew what queues deserve and namespaces are entitled to. Iterate to the end; it may pause.

        Before that, it enters waiting pods anew that events have left for later: all of them, or no more than ``most``.
        """
        yield from self.states.catch_up_steps(most)
        yield from dividing.divide_steps(self)

    @property
    def to_be_divided(self) -> bool:
        """Whether what queues deserve may have changed since it was computed, or waiting pods are to be entered."""
        return self.ledger.queues.stale or self.states.to_catch_up

    @property
    def divided(self) -> bool:
        """Whether the parts of queues and namespaces are up to date, and not just being computed."""
        accounts = self.ledger.queues.accounts.values()
        return not self.to_be_divided and not any(each.stale for each in accounts if each.queue is not None)

    def is_exempt(self, pod: Pod) -> bool:
        """Whether no rule applies to a pod because it is critical to the system (see policy.quota.exempt)."""
        return pod.priority >= exempt.CRITICAL and bool(
            exempt.why_exempt(self.ledger, pod, self.rules.exempt_namespaces)
        )

    def priority_of_queue(self, pod: Pod) -> tuple[int, ...]:
        """Returns a key by the priorities of the queues above the pod's and of its own, from the root down.

        Higher priorities come first. For a pod in no queue all are 0.
        """
        name = self.queue_of(pod) if self.queues else ""
        if name not in self.queues:
            return _NO_PRIORITIES
        way = (name, *self.ledger.queues.tree.above(name))
        priorities = [-self.queues[each].priority for each in reversed(way) if each in self.queues]
        return (*priorities, *_NO_PRIORITIES[len(priorities) :])

    def is_governed(self, pod: Pod) -> bool:
        """Whether the rules of an elastic quota or of a queue apply to a pod."""
        return (pod.namespace in self.quotas or bool(self.queue_of(pod))) and not self.is_exempt(pod)

    def pending_in(self, namespace: str) -> Iterator[Pod]:
        """Yields the pods of a namespace that wait for a node."""
        uids = self._uids.get(namespace, {}).values()
        return (self.pending[uid] for uid in uids if uid in self.pending)

    def is_expected(self, uid: str) -> bool:
        """Whether a pod was admitted, and the scheduler has not said since that it finds no place for it."""
        return uid in self.grants and not (uid in self.gates.ungated and uid in self.attempts.unschedulable_since)

    @property
    def changes(self) -> Changes:
        """The namespaces and queues of which something has changed."""
        return self.ledger.changes

    @property
    def unsettled(self) -> bool:
        """Whether pods that an earlier process admitted may still arrive on nodes."""
        return bool(self.in_flight.uids)

    def is_placed(self, uid: str) -> bool:
        """Whether a pod is on a node or has ended: then the scheduler's cache is older than the store."""
        return uid not in self.pending and uid in self.pods

    def withdraw(self, uid: str) -> None:
        """Takes back the grant of a pod."""
        self.states.withdraw(uid)

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Returns the pod of that name, if there is one."""
        uid = self._uids.get(namespace, {}).get(name)
        return self.pods.get(uid) if uid else None

    def knows_namespace(self, name: str) -> bool:
        """Whether a namespace exists, or (in a folder of manifests) a pod or an elastic quota in it does."""
        return name in self.membership.namespaces or name in self._uids or name in self.quotas

    # How it is kept consistent

    def _take_the_place_of_others(self, pod: Pod) -> None:
        """Removes an earlier pod of this name: it is gone, or its name would not be free.

        Removes the pod itself under another name, too. No API server renames a pod, but manifests may.
        """
        namesake = self._uids.get(pod.namespace, {}).get(pod.name)
        if namesake is not None and namesake != pod.uid:
            self.delete_pod(namesake)
        renamed = self.pods.get(pod.uid)
        if renamed is not None and (renamed.namespace, renamed.name) != (pod.namespace, pod.name):
            self.delete_pod(pod.uid)

    def _forget_name(self, pod: Pod) -> None:
        names = self._uids.get(pod.namespace, {})
        names.pop(pod.name, None)
        if not names:
            self._uids.pop(pod.namespace, None)


def _differs(pod: Pod, before: Pod) -> bool:
    """Whether a pod differs from before in more than what the scheduler says of it, or when it has saved its work."""
    told, at = pod.unschedulable, pod.checkpointed
    return replace(before, unschedulable=told, version=pod.version, checkpointed=at) != pod
