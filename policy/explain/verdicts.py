"""The verdict on a pod, for people: which rule refuses it now, or what it waits for, with numbers and remedies."""

from policy.cluster.cluster import Cluster
from policy.explain import gang_hints
from policy.explain.queue_path import why_in_queue
from policy.explain.run_time_remedies import why_too_long
from policy.nodes import fit
from policy.objects.pod import Pod
from policy.objects.verdict import MOST_TOLD, Verdict
from policy.quota import admission, exempt, gang_minimum
from policy.quota.kept_nodes import HELD, RESERVED
from policy.quota.rule import Rule

LONGEST_SAID = 1000
"""Characters of what a scheduler says of a pod that are told."""


def verdict_on(cluster: Cluster, namespace: str, name: str) -> Verdict:
    """All that can be said of a pod now, with the numbers and what would help."""
    pod = cluster.pod(namespace, name)
    if pod is None:
        return Verdict("unknown", message=f"no pod {name} in namespace {namespace} is known")
    if not pod.pending:
        where = f"on node {pod.node}" if pod.node else "no longer pending"
        lost = ", which is lost; it is overdue, and counts for nobody" if pod.uid in cluster.leaving.overdue else ""
        moved = cluster.queue_changes.moving.sentence_of(pod.uid)
        return Verdict("bound", message=f"finished, {where}" if pod.finished else f"{where}{lost}{moved}")
    pod = cluster.queued_jobs.at_least(pod)
    with cluster.ledger.trial() as trial:
        trial.take_out(pod.uid)
        refused = admission.refusal(cluster.ledger, pod, cluster.ledger.queue_of(pod), cluster.rules)
        numbers = admission.numbers(cluster.ledger, pod, refused)
        if refused is not None:
            hints = admission.hints(cluster.ledger, pod, refused, cluster.gangs.asked_together(pod))
            why = why_too_long(cluster, pod) or why_in_queue(cluster, pod, refused)
            message = f"{refused.message}: {why}" if why else refused.message
            told = refused.resources[:MOST_TOLD]
            return Verdict("refused", refused.rule, message, numbers, hints, told)
    numbers |= gang_hints.numbers(cluster, pod)
    if not cluster.gangs.could_start(pod):
        rule = gang_minimum.RULE
        return Verdict("refused", rule.name, rule.text, numbers, gang_hints.hints(cluster, pod))
    kept = _kept_everywhere(cluster, pod)
    if kept is not None:
        return Verdict("refused", kept.name, kept.text, numbers)
    return Verdict("admissible", message=_what_it_waits_for(cluster, pod), numbers=numbers)


def _what_it_waits_for(cluster: Cluster, pod: Pod) -> str:
    """Returns what a pod that no rule refuses waits for, in words."""
    free = exempt.why_exempt(cluster.ledger, pod, cluster.rules.exempt_namespaces)
    if pod.stands_for is not None:
        return f"{free or 'no rule refuses it'}; {_what_a_job_waits_for(cluster, pod)}"
    if pod.uid in cluster.gates and not free:
        return "no rule refuses it; it waits at its gate for its turn"
    if pod.uid in cluster.grants:
        return f"{free or 'admitted'}; waiting for the scheduler to bind it"
    if pod.unschedulable is not None and pod.uid not in cluster.attempts.refused:
        return f"{free or 'no rule refuses it'}; the scheduler says: {pod.unschedulable.message[:LONGEST_SAID]}"
    return f"{free or 'no rule refuses it'}; waiting for the scheduler to try it"


def _what_a_job_waits_for(cluster: Cluster, pod: Pod) -> str:
    if pod.uid in cluster.grants:
        return "it is being started, and room is kept for its pods until they have come"
    if pod.stands_for is not None and pod.stands_for.grows:
        return f"it runs with a parallelism of {pod.stands_for.parallelism} and waits for its turn to grow"
    return "it waits suspended for its turn" if pod.uid in cluster.gates else "it is to be started"


def _kept_everywhere(cluster: Cluster, pod: Pod) -> Rule[None] | None:
    """The rule by which all nodes that have room for a waiting pod are kept from it; None if some are not."""
    reservations = cluster.reservations
    if pod.uid in cluster.grants or not (len(reservations.reserved) or reservations.plans or cluster.gangs.holds):
        return None
    fitting = {cluster.table.names[row] for row in fit.fits(cluster.table, pod).nonzero()[0]}
    reserved = reservations.nodes_reserved_from(pod)
    if not fitting or not fitting <= reserved | reservations.nodes_held_from(pod):
        return None
    return RESERVED if fitting & reserved else HELD
