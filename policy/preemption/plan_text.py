"""The words that people read about a plan: who goes for whom, by which rule, and why it is not carried out."""

from collections.abc import Iterable

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.preemption import victims
from policy.preemption.foreseen import foreseen_steps, time_text
from policy.preemption.losses import LostJobs
from policy.preemption.plans import NoPlan
from policy.preemption.preemptors import is_shut_out, waits_since
from policy.preemption.reclaim import is_lost, lost_by, protected_victims, stuck_victims
from policy.quota import queue_rules
from policy.quota.queue_ledger import QueueLedger
from policy.stepwise import Steps


def why_evicted(cluster: Cluster, reservation: Reservation, victim: Pod) -> str:
    """By which rule a victim goes, for people; as long as it is there."""
    if victim.namespace == reservation.pod.namespace:
        return "its priority is lower"
    pod, queue = cluster.pods.get(reservation.pod.uid), cluster.queue_of(victim)
    account, rules = cluster.ledger.accounts.get(victim.namespace), list[str]()
    if account is not None and account.quota is not None:
        rules.append(f"ElasticQuota {victim.namespace}/{account.quota.name} borrows")
    if queue in cluster.queues and pod is not None and (own := cluster.queue_of(pod)) != queue:
        rules.append(_why_between_queues(cluster.ledger.queues, own, queue))
    elif queue in cluster.queues and not rules:
        rules.append(f"namespace {victim.namespace} has more than its share of Queue {queue}")
    return " and ".join(rules) or "its priority is lower"


def _why_between_queues(ledger: QueueLedger, own: str, queue: str) -> str:
    """Says that a queue has more than its part, with the one above it that does, and in which queue both are."""
    way = queue_rules.way_between(ledger.known(own), ledger.accounts[queue])
    top = way.down[-1]
    above, common = queue_rules.name_of(top), top.parent
    text = f"Queue {queue} has more than it deserves"
    if above != queue:
        text = f"Queue {queue}, and Queue {above} above it, have more than they deserve"
    if common is None or common.parent is None:
        return text
    return f"{text}, within Queue {queue_rules.name_of(common)}"


def for_pod_steps(cluster: Cluster, pod: Pod) -> Steps[str]:
    """Returns what is or will be done for a waiting pod, or why nobody is evicted for it; empty if it does not wait.

    Iterate to the end; it may pause.
    """
    for reservation in cluster.reservations.plans.values():
        if reservation.pod.uid == pod.uid and pod.pending:
            return _progress(cluster, reservation)
    if waits_since(cluster, pod) is None:
        return ""
    if not cluster.is_governed(pod) and not cluster.reservations.node_to_empty_for(pod):
        return ""
    if is_shut_out(cluster, pod):
        return ""
    if cluster.gangs.is_waiting(pod):
        return "somebody is evicted for all that its group takes to start, or nobody: see the plan"
    return _why_given_up(cluster, pod) + (yield from _search_text_steps(cluster, pod))


def _search_text_steps(cluster: Cluster, pod: Pod) -> Steps[str]:
    result = yield from victims.search_steps(cluster, pod)
    if isinstance(result, NoPlan):
        later = yield from foreseen_steps(cluster, pod, result.moments)
        if later is not None:
            at = time_text(later[0], cluster.protection.now)
            return f"to be evicted for it from {at} on, on node {later[1].node}: {_names(later[1].victims)}"
        return f"nobody is evicted for it: {result.text}"
    text = f"to be evicted for it on node {result.node}: {_names(result.victims)}"
    if reason := cluster.failed_evictions.reason(pod.uid):
        return f"{text}; the latest eviction failed: {reason}"
    return _and_its_price(text, result.lost)


def _and_its_price(text: str, lost: LostJobs) -> str:
    """A sentence, and which Jobs it costs, if any."""
    return "; ".join(filter(None, (text, lost.text)))


def _why_given_up(cluster: Cluster, pod: Pod) -> str:
    """That room was made for the pod before, and who does not end for it; empty if there is nobody."""
    for reservation in cluster.reservations.given_up.values():
        if reservation.pod.uid == pod.uid and (stuck := stuck_victims(cluster, reservation)):
            return f"room was being made on node {reservation.node}, but these do not end: {_names(stuck)}; "
    return ""


def kept_for_good(cluster: Cluster, pods: Iterable[Pod]) -> str:
    """Which budgets will never let some of these pods go, to be put behind a sentence; empty if there are none."""
    budgets = (budget for pod in pods for budget in cluster.budgets.keeping_for_good(pod))
    names = sorted({f"{budget.namespace}/{budget.name}" for budget in budgets})
    return f"; as they are, these will never let them go: {', '.join(names)}" if names else ""


def failing(cluster: Cluster, reservation: Reservation, names: str) -> str:
    """Says that evictions fail, of whom, and the API server's reason; where that is, if it is not known here."""
    text = f"room is being made on node {reservation.node}, but evictions fail, and are tried again"
    if reason := cluster.failed_evictions.reason(reservation.pod.uid):
        return f"{text}: {names}; the latest failed: {reason}"
    return f"{text} (Event ReclaimBlocked of the pod says why): {names}"


def evictions_fail(cluster: Cluster, reservation: Reservation) -> bool:
    """Whether evictions for a plan fail, as is recorded, or as this replica knows."""
    return bool(reservation.blocked_since or cluster.failed_evictions.reason(reservation.pod.uid))


def _progress(cluster: Cluster, reservation: Reservation) -> str:
    there = [cluster.pods[victim.uid] for victim in reservation.victims if victim.uid in cluster.pods]
    where = f"room is being made on node {reservation.node}"
    if is_lost(cluster, reservation):
        return f"room was being made on node {reservation.node}, which cannot take it any more; another place is sought"
    if protected := protected_victims(cluster, reservation):
        by = kept_for_good(cluster, protected)
        return f"{where}, but a disruption budget does not let go now: {_names(protected)}{by}"
    if there and evictions_fail(cluster, reservation):
        return failing(cluster, reservation, _names(there))
    if there:
        return _and_its_price(f"{where}; on their way out: {_names(there)}", lost_by(cluster, reservation))
    return f"room was made on node {reservation.node}; the scheduler has to bind it there"


def _names(pods: Iterable[Pod]) -> str:
    return ", ".join(f"{pod.namespace}/{pod.name}" for pod in pods)
