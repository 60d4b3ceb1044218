"""What the ledger has to be: counted from scratch, in the words of the rules, out of all that was seen and decided.

Nothing here is quick and nothing is kept up to date: a sum is the sum over all pods, each time anew.
"""

from collections.abc import Callable
from dataclasses import dataclass

from policy.cluster.attempts import UNANSWERED
from policy.cluster.grants import SAME_ATTEMPT, SHORTEST
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.objects.reservation import Reservation
from policy.quota.elastic_quota import BORROWING, INVALID, MAX, ElasticQuota
from policy.quota.kept_nodes import RESERVED
from policy.quota.rules import RULES

Amounts = dict[str, int]


@dataclass
class Grant:
    """That a pod was admitted: as it was seen last, what was said of it when it was asked for, and until when."""

    pod: Pod
    said: Unschedulable | None
    version: int
    given: float
    deadline: float


class Recount:
    """All that was seen and decided."""

    def __init__(self, *, strict: bool, lifetime: float, settle_time: float, overdue_after: float) -> None:
        self.strict = strict
        self.overdue_after = overdue_after
        self.epoch = 0.0
        self.lifetime = lifetime
        self.settle_time = settle_time
        self.pods: dict[str, Pod] = {}
        self.quotas: dict[str, dict[str, ElasticQuota]] = {}
        self.reservations: dict[str, Reservation] = {}
        self.nodes: dict[str, Node] = {}
        self.grants: dict[str, Grant] = {}
        self.failures: dict[str, int] = {}
        self.outgrown: set[str] = set()
        self.in_flight: set[str] = set()
        self.settled_at = 0.0
        self.others_admit = False
        self.asked_at = float("-inf")
        self.keeps_claim: Callable[[Pod], bool] = lambda _: True

    # What happens

    def see(self, pod: Pod, now: float) -> None:
        before = self.pods.get(pod.uid)
        if before == pod:
            return
        for other in list(self.pods.values()):
            if other.uid != pod.uid and (other.namespace, other.name) == (pod.namespace, pod.name):
                self.see_deleted(other.uid)
        self.pods[pod.uid] = pod
        if before is None or not pod.pending or not self.is_promised(pod, before):
            self.outgrown.discard(pod.uid)
        elif grows(before, pod):
            self.outgrown.add(pod.uid)
        if pod.pending:
            self.see_pending(pod, before)
            return
        if pod.assigned and pod.uid in self.in_flight:
            self.settled_at = now + self.settle_time
        elif pod.assigned and pod.uid not in self.grants and before is not None and before.pending:
            self.others_admit |= pod.namespace in self.in_force()
        self.end(pod.uid)

    def see_pending(self, pod: Pod, before: Pod | None) -> None:
        grant = self.grants.get(pod.uid)
        if grant is None:
            changed = before is not None and before.unschedulable != pod.unschedulable
            if changed and (pod.unschedulable is None or not shows_nothing(pod)):
                self.in_flight.discard(pod.uid)
        elif not 0 < pod.version <= grant.version:
            in_vain = pod.unschedulable != grant.said and not shows_nothing(pod)
            if in_vain or (grows(grant.pod, pod) and self.refusal(pod, with_in_flight=True) is not None):
                del self.grants[pod.uid]
            else:
                grant.pod = pod
                self.outgrown.discard(pod.uid)

    def is_promised(self, pod: Pod, before: Pod) -> bool:
        """Whether a pod still has the plan or the nomination of before."""
        planned = any(each.pod.uid == pod.uid for each in self.reservations.values())
        return planned or before.nominated_node == pod.nominated_node != ""

    def see_deleted(self, uid: str) -> None:
        self.outgrown.discard(uid)
        self.pods.pop(uid, None)
        self.end(uid)

    def see_quota(self, quota: ElasticQuota) -> None:
        of_namespace = self.quotas.setdefault(quota.namespace, {})
        before = of_namespace.get(quota.name)
        if quota.readable or before is None or not before.readable:
            of_namespace[quota.name] = quota

    def see_quota_deleted(self, namespace: str, name: str) -> None:
        self.quotas.get(namespace, {}).pop(name, None)

    def see_node(self, node: Node) -> None:
        self.nodes[node.name] = node

    def see_node_deleted(self, name: str) -> None:
        self.nodes.pop(name, None)

    def see_reservation(self, reservation: Reservation) -> None:
        if reservation.name not in self.reservations:
            self.outgrown.discard(reservation.pod.uid)
        self.reservations[reservation.name] = reservation

    def see_reservation_deleted(self, name: str) -> None:
        self.reservations.pop(name, None)

    def start(self, now: float) -> None:
        self.in_flight |= {uid for uid, pod in self.pods.items() if pod.pending and uid not in self.grants}
        self.settled_at = now + self.settle_time

    def pass_time(self, now: float) -> None:
        for uid, grant in list(self.grants.items()):
            if grant.deadline <= now:
                del self.grants[uid]
                self.failures[uid] = self.failures.get(uid, 0) + 1
                self.forget_unknown(uid)
        if now >= self.settled_at:
            self.in_flight.clear()

    def pass_epoch(self, epoch: float) -> None:
        self.epoch = epoch

    def ask(self, pod: Pod, now: float) -> tuple[str, list[str]] | None:
        """What has to be answered: a rule and its resources, None, or ("unsettled", [])."""
        if pod.uid in self.pods and not self.pods[pod.uid].pending:
            return None
        known = self.pods.get(pod.uid, pod)
        pod = known if known.version > pod.version else pod  # the scheduler's picture is older than ours
        if self.others_admit and now - self.asked_at > self.settle_time:
            self.start(now)
        self.others_admit, self.asked_at = False, now
        self.in_flight.discard(pod.uid)
        refused = self.refusal(pod)
        if refused is None and self.refusal(pod, with_in_flight=True) is not None:
            refused = ("unsettled", [])
        earlier = self.grants.pop(pod.uid, None)
        if refused is None:
            if earlier is not None and now - earlier.given > SAME_ATTEMPT:
                self.failures[pod.uid] = self.failures.get(pod.uid, 0) + 1
            lasts = max(self.lifetime / 2 ** self.failures.get(pod.uid, 0), SHORTEST)
            self.grants[pod.uid] = Grant(pod, pod.unschedulable, pod.version, now, now + lasts)
            self.outgrown.discard(pod.uid)
        else:
            self.forget_unknown(pod.uid)
        return refused

    def end(self, uid: str) -> None:
        self.grants.pop(uid, None)
        self.failures.pop(uid, None)
        self.in_flight.discard(uid)

    def forget_unknown(self, uid: str) -> None:
        """Nothing is remembered of a pod that was never seen, or there would be no end to it."""
        if uid not in self.pods:
            self.failures.pop(uid, None)

    # What there is, but for one pod

    def assigned(self, but: str = "") -> list[Pod]:
        there = [pod for uid, pod in self.pods.items() if pod.node and not pod.finished and uid != but]
        return [pod for pod in there if not self.is_overdue(pod)]

    def is_overdue(self, pod: Pod) -> bool:
        """Whether it is being deleted, should be gone for long, and nobody hears of its node."""
        node = self.nodes.get(pod.node)
        lost = node is None or not node.reachable
        late = pod.terminating and 0 < pod.deletion_time <= self.epoch - self.overdue_after
        return lost and late

    def granted(self, but: str = "") -> list[Pod]:
        return [grant.pod for uid, grant in self.grants.items() if uid != but]

    def used(self, but: str = "") -> list[Pod]:
        return self.assigned(but) + self.granted(but)

    def flying(self, but: str = "") -> list[Pod]:
        return [self.pods[uid] for uid in self.in_flight if uid != but]

    def waiting(self, but: str = "") -> list[Pod]:
        """Pods that wait for a nominated node, or for the room that a reservation keeps for them."""
        return [
            pod
            for uid, pod in self.pods.items()
            if self.may_come(pod, pod.nominated_node) or self.is_held(pod)
            if not pod.node and not pod.finished
            if uid not in self.grants and uid not in self.in_flight and uid != but
        ]

    def hoping(self) -> list[Pod]:
        """Pods that wait and have nothing yet, that there is hope for, and that something is guaranteed to."""
        nothing_yet = self.pods.keys() - {pod.uid for pod in self.waiting()} - self.grants.keys() - self.in_flight
        pods = [self.pods[uid] for uid in sorted(nothing_yet)]
        owners = {namespace for namespace, quota in self.in_force().items() if quota.min}
        waiting = [
            pod for pod in pods if pod.pending and not (pod.terminating or pod.gated) and pod.namespace in owners
        ]
        return [pod for pod in waiting if self.keeps_claim(pod)]

    def claim(self, namespace: str) -> Amounts:
        """What is left of a quota's min, as far as pods wait for it each of which would fit into what is left."""
        quota, used = self.in_force().get(namespace), amounts(self.used(), namespace)
        if quota is None:
            return {}
        coming = amounts([pod for pod in self.ahead_elsewhere(None) if pod.namespace == namespace], namespace)
        left = {r: least - used.get(r, 0) - coming.get(r, 0) for r, least in quota.min.items()}
        bounds = {r: most - used.get(r, 0) for r, most in quota.max.items()} | left
        own = [pod for pod in self.hoping() if pod.namespace == namespace]
        fit = [pod for pod in own if all(asked <= bounds.get(r, asked) for r, asked in pod.request.items())]
        wanted = amounts(fit, namespace)
        return {r: claim for r in left if (claim := min(left[r], wanted.get(r, 0))) > 0}

    def is_held(self, pod: Pod) -> bool:
        own = [reservation for reservation in self.reservations.values() if reservation.pod.uid == pod.uid]
        return any(self.may_come(pod, reservation.node) for reservation in own)

    def may_come(self, pod: Pod, name: str) -> bool:
        """Whether the pod is free to go, and there is a node of this name that takes pods, and is as large as it."""
        node = self.nodes.get(name)
        if node is None or node.unschedulable or not node.ready or pod.terminating or pod.gated:
            return False
        if pod.uid in self.outgrown:
            return False
        return all(node.allocatable.get(resource, 0) >= asked for resource, asked in pod.request.items())

    def in_force(self) -> dict[str, ElasticQuota]:
        found = {
            namespace: sorted(some.values(), key=lambda q: (q.created, q.name))
            for namespace, some in self.quotas.items()
        }
        return {namespace: some[0] for namespace, some in found.items() if some}

    def within_min(self, namespace: str, but: str = "") -> bool:
        quota = self.in_force().get(namespace)
        used = amounts(self.used(but), namespace)
        return quota is not None and all(used.get(resource, 0) <= least for resource, least in quota.min.items())

    def lent(self) -> Amounts:
        """What all quotas together guarantee; a key is there when a min names it."""
        result: Amounts = {}
        for quota in self.in_force().values():
            for resource, least in quota.min.items():
                result[resource] = result.get(resource, 0) + least
        return result

    def ahead_elsewhere(self, namespace: str | None, but: str = "") -> list[Pod]:
        """Waiting pods of other quotas, where those do not use more than their min or room is kept for the pod."""
        return [
            pod
            for pod in self.waiting(but)
            if pod.namespace != namespace and pod.namespace in self.in_force()
            if self.is_held(pod) or self.within_min(pod.namespace, but)
        ]

    # The rules

    def refusal(self, pod: Pod, *, with_in_flight: bool = False) -> tuple[str, list[str]] | None:
        quotas, lent, but = self.in_force(), self.lent(), pod.uid
        quota = quotas.get(pod.namespace)
        if quota is None:
            return None
        if not quota.readable:
            return INVALID.name, []
        flying = self.flying(but) if with_in_flight else []
        first = [p for p in self.waiting(but) if p.namespace == pod.namespace and p.priority >= pod.priority]
        own = amounts(self.used(but) + first + flying, pod.namespace)
        held = [p for p in self.waiting(but) if p.namespace == pod.namespace and self.is_held(p)]
        everywhere = amounts(self.used(but) + first + self.ahead_elsewhere(pod.namespace, but) + flying, *quotas)
        pinned = amounts([p for p in self.used(but) + held + flying if not p.preemptible], pod.namespace)
        over = [r for r, asked in pod.request.items() if r in quota.max and own.get(r, 0) + asked > quota.max[r]]
        if over:
            return MAX.name, sorted(over)
        named = {r: asked for r, asked in pod.request.items() if asked and r in quota.min}
        guaranteed = bool(named) and all(own.get(r, 0) + asked <= quota.min[r] for r, asked in named.items())
        for resource, asked in pod.request.items():
            least = quota.min.get(resource, 0)
            within = own.get(resource, 0) + asked <= least
            owned = (guaranteed or within) and not self.strict
            others = sum(self.claim(each).get(resource, 0) for each in quotas if each != pod.namespace)
            left = everywhere.get(resource, 0) + asked <= lent.get(resource, 0)
            left = left and (within or everywhere.get(resource, 0) + asked + others <= lent.get(resource, 0))
            may_stay = pod.preemptible or pinned.get(resource, 0) + asked <= least
            if resource in lent and not (may_stay and (owned or left)):
                over.append(resource)
        return (BORROWING.name, sorted(over)) if over else None


def grows(before: Pod, after: Pod) -> bool:
    """Whether a pod requests more of something than before."""
    return any(asked > before.request.get(resource, 0) for resource, asked in after.request.items())


def ours(pod: Pod) -> bool:
    """Whether the scheduler last said of a pod that one of our rules refused it."""
    message = pod.unschedulable.message if pod.unschedulable else ""
    return any(rule.text in message for rule in RULES if rule is not RESERVED)


def shows_nothing(pod: Pod) -> bool:
    """Whether what the scheduler last said of a pod tells nothing of its grant.

    A refusal after the grant, or an answer that failed, would have ended it already; one before it may be seen late.
    """
    return pod.unschedulable is None or ours(pod) or UNANSWERED in pod.unschedulable.message


def amounts(pods: list[Pod], *namespaces: str) -> Amounts:
    """What the pods of these namespaces request together."""
    result: Amounts = {}
    for pod in pods:
        if pod.namespace in namespaces:
            for resource, asked in pod.request.items():
                result[resource] = result.get(resource, 0) + asked
    return result
