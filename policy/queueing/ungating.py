"""Chooses the gates to open next: queue by share, namespace by share per weight, job by priority and creation.

Seed: namespace fair share (Scheduling loop): choose the namespace first, then the job, then look again after each one.
Queues in a tree are chosen from the root down.
A gate is opened exactly when admission passes. Opening it grants, as filter does. Where nodes have no room, it opens
only a little beyond it, so that the scheduler's own queue stays short.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from heapq import heapify, heappop, heappush
from math import inf

from policy.cluster.cluster import Cluster
from policy.cluster.gates import GatedJob, Heads, Ungated, Where
from policy.nodes import room_for_all
from policy.nodes.tolerations import One
from policy.objects.constraints import Toleration
from policy.objects.pod import Pod, turn
from policy.objects.resources import NOTHING, Resources, is_lighter, total
from policy.queueing.owed_room import may_go_without_room
from policy.queueing.queue_turns import QueueKey, QueueTurns
from policy.quota import exempt, fair_share

NamespaceKey = tuple[float, int, str]

FEW = 20
"""The most lines, and refusals in them, that are looked at again if something changes in a pause."""
AGAIN = 3
"""How often that is done at most, before the next job is opened."""
SORTED = 20
"""Lines that are sorted anew for each job that was opened: with more lines, all are after as many more jobs."""


class UngatingRound:
    """One round: opens one job after the other, beginning with the state at its start. It may pause anywhere.

    The caller iterates to the end. ``lookahead``: how many times the free room of nodes is opened per queue at most.
    ``backs_off``: whether a namespace backs off now. That may change meanwhile; ``Gates.look_again`` tells of it.
    """

    def __init__(self, cluster: Cluster, lookahead: float, backs_off: Callable[[str], bool] = lambda _: False) -> None:
        self._cluster = cluster
        self._lookahead = lookahead
        self._backs_off = backs_off
        self._left_out: set[Where] = set()
        self._weights = cluster.membership.weight_by_namespace()
        self._heads: dict[Where, Heads] = {}
        self._ungated: list[Pod] = []
        self._first: dict[str, list[tuple[Where, str]]] = {}
        self._first_as_of: tuple[int, int] | None = None
        self._refused = 0
        self._refused_as_of: tuple[int, ...] = ()
        self._again = 0

    def run(self, now: float) -> Iterator[list[Pod]]:
        """Yields the pods whose gates are to be opened, of one job after the other; none where a job may not start.

        If it raises, it takes back the ungating of all pods that it has not yielded yet.
        """
        jobs = self._run(now)
        while True:
            self._ungated.clear()
            try:
                pods = next(jobs)
            except StopIteration:
                return
            except BaseException:
                for each in self._ungated:
                    self._cluster.gate_admission.regate(each.uid, now)
                raise
            yield pods

    def _run(self, now: float) -> Iterator[list[Pod]]:
        self._cluster.lowered.look()
        yield from self._ungoverned()
        yield from self._awaited(now)
        while (yield from self._until_claims_fall(now)):
            self._heads.clear()
            self._first_as_of = None

    def _until_claims_fall(self, now: float) -> Generator[list[Pod], None, bool]:
        """Opens one job after the other until none is left, or one that was refused may be admitted now.

        Returns whether one may. A job that is ungated takes no more than it had a claim to. Claims may fall by more,
        because the rest is less than any pod needs. Then pods that were refused before are looked at again.
        """
        self._refused = 0
        queues = QueueTurns(self._cluster.ledger.queues.tree, partial(queue_key, self._cluster))
        namespaces: dict[str, list[NamespaceKey]] = {}
        arrivals, opened = self._join(queues, namespaces), 0
        while queues or arrivals != self._cluster.generations.arrivals:
            if self._has_changed_for_refused():
                self._again += 1
                return True
            if arrivals != self._cluster.generations.arrivals:
                arrivals = self._join(queues, namespaces)
                continue
            if opened and opened * SORTED >= len(self._cluster.gates.lines):
                queues, opened = self._sorted_anew(namespaces), 0
            queue = queues.pop()
            before = self._not_for_all(queue)
            pods = self._open_one(queue, namespaces[queue], now)
            if namespaces[queue]:
                queues.add(queue)
            opened += bool(pods)
            fell = bool(pods) and _fell(before, self._not_for_all(queue))
            yield pods
            if fell:
                return True
        return False

    def _sorted_anew(self, namespaces: dict[str, list[NamespaceKey]]) -> QueueTurns:
        """Sorts all lines by what their namespaces have now: if pods have ended in a pause, one is needier than before.

        Those that have more than before are put in their place when they are taken.
        """
        queues = QueueTurns(self._cluster.ledger.queues.tree, partial(queue_key, self._cluster))
        for queue, keys in namespaces.items():
            keys[:] = [self._namespace_key(queue, key[2]) for key in keys]
            heapify(keys)
            if keys:
                queues.add(queue)
        return queues

    def _has_changed_for_refused(self) -> bool:
        """Whether few jobs were refused, and one may be admitted now: others would come before it in this round.

        Where many are refused, that would be too much work, and they wait for the next round.
        """
        few = 0 < self._refused <= FEW and len(self._cluster.gates.lines) <= FEW
        return few and self._again < AGAIN and self._refused_as_of != self._cluster.generations.of_ungating

    def _note_look(self, pods: list[Pod]) -> None:
        """Notes which pods of a job were ungated, or that it was refused."""
        self._refused += not pods
        if pods:
            self._again = 0
        if pods or self._refused == 1:
            self._refused_as_of = self._cluster.generations.of_ungating

    def _join(self, queues: QueueTurns, namespaces: dict[str, list[NamespaceKey]]) -> int:
        """Adds the lines that have a job to look at and are not there; returns the arrivals seen so far."""
        there = {(queue, key[2]) for queue, keys in namespaces.items() for key in keys}
        for (queue, namespace), line in self._cluster.gates.lines.items():
            heads = self._heads.get((queue, namespace))
            if (queue, namespace) in there or self._backs_off(namespace):
                continue
            if heads is None or heads.lacks(line) or (queue, namespace) in self._left_out:
                self._left_out.discard((queue, namespace))
                keys = namespaces.setdefault(queue, [])
                if not keys:
                    queues.add(queue)
                heappush(keys, self._namespace_key(queue, namespace))
        return self._cluster.generations.arrivals

    def _not_for_all(self, queue: str) -> tuple[Resources, ...]:
        """Returns what is taken or claimed: of all queues, of this queue by its namespaces, under elastic quotas."""
        ledger, pool = self._cluster.ledger.queues, self._cluster.ledger.pool
        account = ledger.accounts.get(queue)
        own = total((account.taken, account.tenant_claims)) if account else NOTHING
        return total((ledger.taken, ledger.claims)), own, total((pool.used, pool.claims))

    def _open_one(self, queue: str, namespaces: list[NamespaceKey], now: float) -> list[Pod]:
        """Opens one job of the queue's neediest namespace; drops the namespace if it has none left to look at.

        Gangs that have started and lack members come before all others of the queue.
        """
        if pods := self._open_incomplete(queue, now):
            self._note_look(pods)
            return pods
        key = heappop(namespaces)
        namespace = key[2]
        if (now_is := self._namespace_key(queue, namespace)) != key:
            heappush(namespaces, now_is)
            return []
        line = self._cluster.gates.lines.get((queue, namespace))
        if line is None:
            return []
        if self._backs_off(namespace):
            self._left_out.add((queue, namespace))
            return []
        heads = self._heads.get((queue, namespace))
        if heads is None or not heads.are_of(line):
            heads = self._heads[queue, namespace] = Heads(line)
        job = heads.first()
        if job is None:
            return []
        pods = self._open((queue, namespace), job, now)
        self._note_look(pods)
        if not pods:
            heads.leave_out()
        heappush(namespaces, self._namespace_key(queue, namespace))
        return pods

    def _open_incomplete(self, queue: str, now: float) -> list[Pod]:
        """Opens missing members of a started gang of the queue. Tries each gang once, until something has changed."""
        gates = self._cluster.gates
        as_of = self._cluster.generations.of_incomplete_gangs
        if as_of != self._first_as_of:
            self._first, self._first_as_of = incomplete(self._cluster), as_of
        waiting = self._first.get(queue, [])
        while waiting:
            where, name = waiting.pop(0)
            line = gates.lines.get(where)
            job = line.jobs.get(name) if line is not None else None
            if job is not None and not self._backs_off(where[1]) and (pods := self._open(where, job, now)):
                return pods
        return []

    def _open(self, where: Where, job: GatedJob, now: float) -> list[Pod]:
        """Ungates a job, or as much of it as may start now; nobody, if it may not start."""
        pod = job.first()
        if self._cluster.queued_jobs.is_outdated(pod):
            return []
        is_elastic = pod.stands_for is not None and pod.stands_for.least > 0
        return self._open_part(where, pod, now) if is_elastic else self._open_whole(where, job, now)

    def _open_whole(self, where: Where, job: GatedJob, now: float) -> list[Pod]:
        """Ungates a job, or the next member of a started group; nobody, if it may not start now."""
        cluster, pod = self._cluster, job.first()
        if cluster.check(pod) is not None:
            return []
        group = cluster.gangs.gang_of(pod)
        missing = max(1, group.minimum - len(cluster.gangs.ready(group) - {pod.uid})) if group else 1
        if missing == 1:
            lacking = self._lacking(where[0], cluster.queued_jobs.demands_of(pod), self._lookahead)
            beyond = bool(lacking) or not (cluster.attempts.keeps_claim(pod) and has_room_for_all(cluster, pod))
            if beyond and (self._some_beyond(where, lacking) or not may_go_without_room(cluster, pod)):
                return []
            self._ungate(pod, Ungated(where, pod.request, beyond), now)
            return [pod]
        if group is not None and group.native:
            return self._open_native(where, job, missing, now)
        if cluster.gangs.refusal(pod, None, now) is not None:
            return []
        members = [cluster.pods[uid] for uid in cluster.gangs.holds.members((pod.namespace, pod.group))]
        members = sorted((each for each in members if each.uid in cluster.gates), key=turn)
        for each in members:
            placed = bool(cluster.gangs.node_for(each.uid))
            self._ungate(each, Ungated(where, each.request, placed=placed), now)
        return members

    def _open_part(self, where: Where, pod: Pod, now: float) -> list[Pod]:
        """Lets an elastic Job start, or grow, with as many pods as the rules admit and there is room for; or not.

        Like other Jobs it may start without room, if others owe it that, but then with as few pods as are enough. It
        grows without lookahead: what is on its way may be its own pods. It does not grow while no place is found for
        one of its pods, or for another of its namespace: room that becomes free is for that one, which may have no
        grant any more.
        """
        grows, attempts = pod.stands_for is not None and pod.stands_for.grows, self._cluster.attempts
        if grows and (attempts.lacks_place(pod) or attempts.is_behind_others(pod)):
            return []
        lookahead = 1.0 if grows else self._lookahead
        job = self._cluster.batch_jobs.of_stand_in(pod)
        lowered = self._cluster.lowered
        if job is not None and job.runs and (lowered.rests(job) or lowered.is_taken_from(job)):
            return []

        def has_room(part: Pod) -> bool:
            demands = self._cluster.queued_jobs.demands_of(part)
            return not self._lacking(where[0], demands, lookahead) and has_room_for_all(self._cluster, part)

        part = largest_part(self._cluster, pod, has_room)
        beyond = part is None
        if part is None:
            part = self._cluster.queued_jobs.at_least(pod)
            lacking = self._lacking(where[0], self._cluster.queued_jobs.demands_of(part), lookahead)
            if self._some_beyond(where, lacking) or not may_go_without_room(self._cluster, part):
                return []
            if self._cluster.check(part) is not None:
                return []
        self._cluster.queued_jobs.grant(part)
        self._ungate(part, Ungated(where, part.request, beyond), now)
        self._cluster.upsert_pod(part, now)  # else whoever counts it anew would count all that the Job waits for
        return [part]

    def _open_native(self, where: Where, job: GatedJob, missing: int, now: float) -> list[Pod]:
        """Ungates as many members as a group needs, which the scheduler itself places together; or nobody."""
        cluster = self._cluster
        members = sorted(job.members.values(), key=turn)[:missing]
        asked = total(each.request for each in members)
        lacking = self._lacking(where[0], {members[0].constraints.tolerations: asked}, self._lookahead)
        beyond = bool(lacking)
        if len(members) < missing or (beyond and self._some_beyond(where, lacking)):
            return []
        for at, each in enumerate(members):
            if cluster.check(each) is not None:
                for known in members[:at]:
                    cluster.gate_admission.regate(known.uid, now)
                return []
            self._ungate(each, Ungated(where, each.request, beyond), now)
        return members

    def _ungate(self, pod: Pod, ungated: Ungated, now: float) -> None:
        self._cluster.gate_admission.ungate(pod, ungated, now)
        self._ungated.append(pod)

    def _ungoverned(self) -> Iterator[list[Pod]]:
        """Ungates pods that filter alone decides about: exempt ones, and those in namespaces no longer gated."""
        cluster = self._cluster
        for where in list(cluster.gates.lines):
            line = cluster.gates.lines.get(where)  # it may have gone in a pause
            if line is None or self._backs_off(where[1]):
                continue
            admission = cluster.gate_admission
            for job in list(line.of_priority(exempt.CRITICAL) if admission.holds_all(where[1]) else line):
                for pod in sorted(job.members.values(), key=turn):
                    waits = pod.uid in cluster.gates and not self._backs_off(where[1])
                    if waits and (not admission.holds(pod) or cluster.is_exempt(pod)):
                        cluster.gates.begin_ungating(pod.uid)
                        yield [pod]

    def _awaited(self, now: float) -> Iterator[list[Pod]]:
        """Ungates pods that room is held for: of plans, of gangs with a place, of Jobs that were started.

        A Job that waits as a whole starts so once there is room on the nodes that are reserved for it.
        """
        cluster = self._cluster
        held = [each.pod.uid for each in cluster.reservations.plans.values()]
        held += [uid for uid in cluster.gangs.holds.uids() if uid in cluster.grants]
        held += cluster.queued_jobs.at_gates()
        held += cluster.reservations.nodes.jobs_with_room() if len(cluster.reservations.reserved) else []
        for uid in held:
            stands = cluster.gates.line_of(uid)
            if stands is None or self._backs_off(stands[0][1]):
                continue
            if cluster.check(pod := cluster.pods[uid]) is not None or cluster.queued_jobs.is_outdated(pod):
                continue
            if uid in cluster.grants or not cluster.gangs.is_waiting(pod):
                self._ungate(pod, Ungated(stands[0], pod.request, placed=True), now)
                yield [pod]

    def _lacking(self, queue: str, demands: Mapping[tuple[Toleration, ...], Resources], lookahead: float) -> list[str]:
        """Returns the resources of which nodes, with the lookahead, lack room beside all ungated pods of the queue.

        Nodes with taints that pods do not tolerate do not count for what is requested with these tolerations.
        """
        opened, table = self._cluster.gates.on_their_way(queue), self._cluster.table
        return [
            resource
            for tolerations, request in demands.items()
            for free in [table.room(One(tolerations))]
            for resource, asked in request.items()
            if asked and table.lists(resource)
            if opened.get(resource, 0) + asked > lookahead * free.get(resource, 0)
        ]

    def _some_beyond(self, where: Where, lacking: list[str]) -> bool:
        """Whether the scheduler already has a pod for which it may look for victims.

        That is a pod of the line that was ungated without room. It is also any pod of the queue that is on its way and
        requests a lacking resource: with lookahead, more of these are ungated than there is room for.
        """
        opened = self._cluster.gates.on_their_way(where[0])
        return self._cluster.gates.some_beyond(where) or any(opened.get(resource) for resource in lacking)

    def _namespace_key(self, queue: str, namespace: str) -> NamespaceKey:
        return namespace_key(self._cluster, queue, namespace, self._weights.get(namespace, 1))


def queue_key(cluster: Cluster, queue: str) -> QueueKey:
    """Returns the sort key of a queue among its siblings: by priority, then by the part of what it deserves."""
    declared = cluster.queues.get(queue)
    return -(declared.priority if declared else 0), share_of_queue(cluster, queue), queue


def namespace_key(cluster: Cluster, queue: str, namespace: str, weight: int) -> NamespaceKey:
    """Returns the sort key of a namespace in its queue: by share per weight."""
    return share_of_namespace(cluster, queue, namespace) / weight, -weight, namespace


def has_room_for_all(cluster: Cluster, pod: Pod) -> bool:
    """Whether nodes have room for each pod of a Job that waits as a whole; true for any other pod."""
    wanted = cluster.queued_jobs.wanted(pod)
    return not wanted or room_for_all.has_room(cluster.table, wanted, cluster.reservations.free_beside_reserved(pod))


def largest_part(cluster: Cluster, pod: Pod, has_room: Callable[[Pod], bool]) -> Pod | None:
    """Returns the stand-in of an elastic Job for as many of its pods as the rules admit and there is room for.

    None if these are too few. It finds the number by bisection, so that a Job of any size takes some thirty questions.
    """
    job, found = pod.stands_for, None
    assert job is not None, "only Jobs have parts"  # noqa: S101
    low, high, tried = job.least, job.pods, job.least
    while low <= high:
        part = cluster.queued_jobs.part(pod, tried)
        if cluster.check(part) is None and has_room(part):
            low, found = tried + 1, part
            tried = high if tried == job.least else (low + high) // 2
        elif found is None:
            return None
        else:
            high = tried - 1
            tried = (low + high) // 2
    return found


def incomplete(cluster: Cluster) -> dict[str, list[tuple[Where, str]]]:
    """Returns by queue the waiting members of started gangs that lack them: line and job, in their order."""
    gates, found = cluster.gates, dict[str, list[tuple[Where, str]]]()
    for key in gates.groups.keys() & cluster.gangs.started():
        group = cluster.membership.groups.get(key)
        if group is not None and cluster.gangs.lacks_some(group):
            for where in gates.groups[key]:
                found.setdefault(where[0], []).append((where, key[1]))
    for jobs in found.values():
        jobs.sort(key=lambda each: gates.lines[each[0]].jobs[each[1]].turn)
    return found


def adopt(cluster: Cluster, now: float) -> None:
    """Treats pods of gated namespaces that stand before the scheduler as ungated, as far as the rules admit them.

    Likewise those of Jobs where these wait as a whole, and those that such a Job has still to get as it grows. The
    previous leader has opened their gates, or started their Jobs. Call this once, at the start. If this process itself
    led before, pods that it had put into backoff wait at their gates again.
    """
    for uid in [uid for uid in cluster.gates.ungating if uid not in cluster.grants]:
        cluster.gate_admission.regate(uid, now)
    for pod in list(cluster.pods.values()):
        waits = pod.pending and pod.gate < 0 and not (pod.gated or pod.terminating)
        if waits and pod.uid not in cluster.grants and _was_let_go(cluster, pod):
            judged = pod.uid in cluster.attempts.unschedulable_since
            if not judged and not cluster.gangs.is_waiting(pod) and cluster.check(pod) is None:
                cluster.gate_admission.ungate(pod, Ungated((cluster.queue_of(pod), pod.namespace), pod.request), now)
                cluster.gates.leave(pod.uid)
    cluster.queued_jobs.adopt(now)


def _was_let_go(cluster: Cluster, pod: Pod) -> bool:
    """Whether a pod that stands before the scheduler waited before: at its own gate, or as its Job waited."""
    is_gated = cluster.gate_admission.is_gated
    return is_gated(pod.namespace) or (pod.job is not None and is_gated(pod.namespace, jobs=True))


def _fell(before: tuple[Resources, ...], after: tuple[Resources, ...]) -> bool:
    return any(is_lighter(now, old) for old, now in zip(before, after, strict=True))


def share_of_queue(cluster: Cluster, queue: str) -> float:
    """Returns the largest part, over resources, that a queue and those below it have taken of what it deserves."""
    ledger = cluster.ledger.queues
    if queue not in ledger.accounts:
        return fair_share.share(ledger.outside, cluster.capacity.for_others)
    node = ledger.node(queue)
    deserved, taken = node.division.deserved, node.taken
    return max(
        (amount / deserved[r] if deserved.get(r) else inf for r, amount in taken.items() if ledger.lists(r)),
        default=0.0,
    )


def share_of_namespace(cluster: Cluster, queue: str, namespace: str) -> float:
    """Returns the dominant share of what a namespace has taken."""
    return fair_share.share(taken_by(cluster, queue, namespace), to_share(cluster, queue))


def taken_by(cluster: Cluster, queue: str, namespace: str) -> Resources:
    """Returns what a namespace has taken of its queue; for pods in no queue, all that it uses."""
    if not queue:
        of_namespace = cluster.ledger.accounts.get(namespace)
        return of_namespace.used if of_namespace else NOTHING
    account = cluster.ledger.queues.accounts.get(queue)
    tenant = account.tenants.get(namespace) if account else None
    return tenant.taken if tenant else NOTHING


def to_share(cluster: Cluster, queue: str) -> Resources:
    """Returns the total that shares refer to: of all queues; for pods in no queue, what nodes have for them."""
    return cluster.ledger.queues.available if queue else cluster.capacity.for_others
