"""The four verbs that kube-scheduler calls: each takes a body and returns the reply.

No verb waits for anything but its own body, except bind, whose task is a write. The work of filter grows with neither
pods nor quotas. Nothing is decided while the state of the cluster is incomplete or stale.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

import structlog

from app.actuators.protocol import ActionFailed, Actuator
from app.extender import wire
from app.extender.decisions import Decisions
from app.observability import metrics
from app.problems import Problem
from app.store.metadata import version_of
from app.store.pod_object import PodObject
from app.store.resource_claims import RESOURCE_CLAIMS
from app.store.store import Store
from policy.cluster.pod_admission import Filtered, Unsettled
from policy.objects.pod import Pod
from policy.preemption import out_of_turn, victims
from policy.preemption.native_groups import NativeGroups
from policy.quota import exempt
from policy.reserve import preferred_nodes

log = structlog.get_logger(__name__)

Answer = tuple[str, bytes]
"""The result of a request (a label of a metric), and the reply."""

NOT_SYNCED_RETRY = 1


@dataclass(frozen=True, slots=True)
class Extender:
    """Answers kube-scheduler out of the store.

    ``observe``: no pod is refused; the pods that would be refused are counted. ``respect_budgets``: preempt never
    violates a disruption budget. ``gives_notice``: preempt evicts nobody of other namespaces, as they are told before
    reclaim evicts them. ``apart``: the score, of ten, of the nodes that keep borrowers and others apart; 0 for
    no score. ``of_folder``: the objects come from a folder of manifests, in which no API server has filled in anything.
    ``decisions``: the latest answers of filter. ``native``: where members of native groups were let through.
    """

    store: Store
    actuator: Actuator
    observe: bool = False
    respect_budgets: bool = False
    gives_notice: bool = False
    apart: int = 0
    of_folder: bool = False
    decisions: Decisions = field(default_factory=Decisions)
    native: NativeGroups = field(default_factory=NativeGroups)

    def filter(self, body: bytes) -> Answer:
        """Replies with the candidate nodes that the pod may go to. Grants an admitted pod."""
        args = wire.read_args(body)
        pod = self._pod_of(args.pod)
        if (self.observe or (pod.priority >= exempt.CRITICAL and self._is_exempt_anyway(pod))) and self.store.unready():
            return "unready", wire.all_pass(args)
        self._ensure_ready()
        if pod.needs is not None:
            self._ensure_known(pod)
        names = wire.Candidates(args)
        try:
            answer = self._decide(pod, names)
        except Unsettled as unsettled:
            if self.observe:
                self.store.cluster.grant(pod, self.store.clock())
                return "would-wait", wire.all_pass(args)
            raise Problem(503, f"not settled after the start: {unsettled}", retry_after=NOT_SYNCED_RETRY) from None
        refused = answer.refused
        if refused is None:
            self.decisions.note(pod, "admitted", None)
            log.debug("admitted", namespace=pod.namespace, pod=pod.name)
            return "admitted", _some_pass(args, names, answer) if answer.failed else wire.all_pass(args)
        for rule in {rule.name for rule in answer.failed.values()} or {refused.rule}:
            metrics.REFUSALS.labels(rule).inc()
        log.debug("refused", namespace=pod.namespace, pod=pod.name, rule=refused.rule, message=refused.message)
        self.decisions.note(pod, "would-refuse" if self.observe else "refused", refused)
        if self.observe:
            self.store.cluster.grant(pod, self.store.clock())
            return "would-refuse", wire.all_pass(args)
        return "refused", _some_pass(args, names, answer) if answer.failed else wire.none_pass(args, refused.message)

    def prioritize(self, body: bytes) -> Answer:
        """Scores the candidate nodes. A node that is not named scores 0, so an empty reply is no preference."""
        args = wire.read_args(body)
        if self.observe:
            return "neutral", wire.NO_SCORES
        self._ensure_ready()
        cluster = self.store.cluster
        if not len(cluster.reservations.reserved) and not (self.apart and cluster.ledger.borrowing):
            return "neutral", wire.NO_SCORES
        pod = self._pod_of(args.pod)
        if len(cluster.reservations.reserved) and (
            preferred := preferred_nodes.preferred(cluster, pod, wire.candidates(args))
        ):
            return "scored", wire.scores(preferred, preferred_nodes.HIGHEST)
        if self.apart and (preferred := preferred_nodes.apart(cluster, pod, wire.candidates(args))):
            return "scored", wire.scores(preferred, self.apart)
        return "neutral", wire.NO_SCORES

    def preempt(self, body: bytes) -> Answer:
        """Replies with victims on each offered node where evicting them helps; none if the pod would be refused.

        The scheduler offers victims on full nodes also for a pod that was refused on free ones. Its proposed victims
        are ignored: it knows priorities but no quotas. But it decides alone for a pod that no rule applies to.
        """
        args = wire.read_preemption(body)
        pod = self._pod_of(args.pod)
        if self.observe:
            return "proposed", wire.proposed(args)
        if self._is_exempt_anyway(pod):
            return "proposed", wire.proposed(args, respect_budgets=self.respect_budgets)
        self._ensure_ready()
        cluster = self.store.cluster
        if cluster.is_exempt(pod):
            return "proposed", wire.proposed(args, respect_budgets=self.respect_budgets)
        if cluster.is_placed(pod.uid):
            return "refused", wire.preemption([])  # nobody is evicted so that a pod may grow in place
        # A node without a proposed victim has room (kube-scheduler 1.38 offers such): only a quota can refuse.
        admitted = cluster.check(pod) is None
        nodes = [node for node, proposed in args.candidates().items() if proposed.pods or not admitted]
        plans = victims.victims_on(cluster, pod, nodes, respect_budgets=self.respect_budgets)
        if any(victim.namespace != pod.namespace for plan in plans for victim in plan.victims):
            plans = out_of_turn.in_turn(cluster, plans)
            self.store.count_in_vain()  # what ended since the last tick counts already
            now = self.store.clock()
            if self.gives_notice or now < cluster.in_vain.waits_until(pod):
                plans = [plan for plan in plans if all(each.namespace == pod.namespace for each in plan.victims)]
            else:
                cluster.in_vain.promise(pod, {plan.node: plan.victims for plan in plans}, now)
        return ("victims" if plans else "refused"), wire.preemption(plans)

    async def bind(self, body: bytes) -> Answer:
        """Binds the pod after a last check of the ledger: the grant of the pod may have ended meanwhile."""
        args = wire.read_binding(body)
        self._ensure_ready()
        cluster = self.store.cluster
        pod = cluster.pods.get(args.PodUID) or cluster.grants.pod(args.PodUID)  # the watch may lag behind the scheduler
        if pod is None or (pod.namespace, pod.name) != (args.PodNamespace, args.PodName):
            return "failed", wire.binding_failed("the pod is not known")
        refused = self._admit_again(pod, args.Node)
        if refused:
            return "refused", wire.binding_failed(refused)
        try:
            await self.actuator.bind(pod, args.Node)
        except ActionFailed as failure:
            log.warning("binding failed", namespace=pod.namespace, pod=pod.name, node=args.Node, error=str(failure))
            return "failed", wire.binding_failed(str(failure))
        return "bound", wire.BOUND

    def _pod_of(self, obj: PodObject) -> Pod:
        """Returns the pod of a request, taken from the store if that has the same version. Raises Problem (400)."""
        known = self.store.cluster.pods.get(obj.metadata.uid or "")
        if known is not None and (known.version or self.of_folder) and known.version == version_of(obj.metadata):
            return known
        return wire.read_pod(obj)

    def _decide(self, pod: Pod, names: Collection[str]) -> Filtered:
        """Asks the cluster. In observe mode it asks ``admit`` alone, so that no grant is withdrawn for kept nodes."""
        if self.observe:
            return Filtered(self.store.cluster.admit(pod, self.store.clock(), names))
        if pod.group:
            return self._decide_on_member(pod, names)
        return self.store.cluster.filter(pod, self.store.clock(), lambda: names)

    def _decide_on_member(self, pod: Pod, names: Collection[str]) -> Filtered:
        cluster = self.store.cluster
        answer = cluster.filter(pod, self.store.clock(), lambda: names)
        if self.native.concerns(cluster, pod, answer):
            return self.native.narrow(cluster, pod, answer, names, respect_budgets=self.respect_budgets)
        return answer

    def _admit_again(self, pod: Pod, node: str) -> str:
        cluster = self.store.cluster
        if pod.uid in cluster.grants:
            return ""
        try:
            refused = cluster.filter(pod, self.store.clock(), lambda: (node,)).refused
        except Unsettled as unsettled:
            return f"not settled after the start: {unsettled}"
        if refused is None:
            return ""
        if self.observe:
            cluster.grant(pod, self.store.clock())
            return ""
        return refused.message

    def _is_exempt_anyway(self, pod: Pod) -> bool:
        """Whether no rule applies to a pod. This can be known before anything is known of the cluster."""
        return exempt.by_namespace(pod, self.store.cluster.rules.exempt_namespaces)

    def _ensure_known(self, pod: Pod) -> None:
        """Ensures that it is known how many devices a pod takes: the watch of claims may lag behind the scheduler."""
        cluster = self.store.cluster
        none_there = self.of_folder and not cluster.devices.claims
        if none_there or self.store.feeds[RESOURCE_CLAIMS.label].without:
            return  # it counts without them
        if not self.observe and (why := cluster.devices.unknown(pod)) and cluster.is_governed(pod):
            raise Problem(503, f"not decided yet: {why}", retry_after=NOT_SYNCED_RETRY)

    def _ensure_ready(self) -> None:
        if reason := self.store.unready():
            raise Problem(503, reason, retry_after=NOT_SYNCED_RETRY)


def _some_pass(args: wire.ExtenderArgs, names: wire.Candidates, answer: Filtered) -> bytes:
    """Returns the reply that tells the scheduler of each node that does not pass by which rule."""
    rules = {*answer.failed.values()}
    if len(rules) == 1:
        failed = dict.fromkeys(answer.failed, rules.pop().text)
    else:
        failed = {name: rule.text for name, rule in answer.failed.items()}
    return wire.some_pass(args, names, failed)
