"""The rules in order, for one pod."""

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, replace

from policy.objects.pod import Pod
from policy.objects.resources import Resources
from policy.objects.verdict import MOST_TOLD, Refusal, Remedy, told
from policy.quota import elastic_quota, exempt, fair_share, gang_minimum, queues
from policy.quota.ledger import Ledger

TEXTS = {
    **elastic_quota.TEXTS,
    **queues.TEXTS,
    fair_share.FAIR_SHARE: fair_share.TEXT,
    gang_minimum.MINIMUM: gang_minimum.TEXT,
}
"""By rule, what kube-scheduler gets to write of it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator may choose about the rules.

    ``fair_share_preemption``: a namespace that has less than its share of a queue may take from one that has more.
    ``quota_manager``: resource quotas keep pods from being created beyond what queues deserve, so that what a queue
    would ask for is not seen, and is taken to be all there is. ``gangs``: members of a pod group wait until it
    can start. ``evict_for_reserved``: borrowers on a node go for the job that it is reserved for. ``spare_jobs``:
    nobody goes whose eviction would fail a Job, not even last.
    ``exempt_namespaces``: no rule applies to system-critical pods there (see policy.quota.exempt).
    """

    strict_borrowing: bool = False
    fair_share_preemption: bool = False
    quota_manager: bool = False
    gangs: bool = True
    evict_for_reserved: bool = False
    spare_jobs: bool = False
    exempt_namespaces: frozenset[str] = exempt.NAMESPACES


def refusal(ledger: Ledger, pod: Pod, rules: Rules, *, with_in_flight: bool = False) -> Refusal | None:
    """The first rule that refuses the pod, or None if it may run. The pod itself must not be part of used."""
    if pod.priority >= exempt.CRITICAL and exempt.grounds(ledger, pod, rules.exempt_namespaces):
        return None
    refused = elastic_quota.refusal(ledger, pod, strict_borrowing=rules.strict_borrowing, with_in_flight=with_in_flight)
    queue = ledger.queue_of(pod)
    if refused is not None or not queue:
        return refused
    return queues.refusal(ledger.queues, queue, pod.request, with_in_flight=with_in_flight) or fair_share.refusal(
        ledger.queues, queue, pod.namespace, pod.request, with_in_flight=with_in_flight
    )


def refusal_of_all(
    ledger: Ledger, pods: Collection[Pod], rules: Rules, *, with_in_flight: bool = False
) -> Refusal | None:
    """What refuses one of these pods if all are to run together, each counted for the next. Changes nothing.

    Of pods that are alike it is the last: every rule lets in what it would let in beside more.
    """
    with ledger.trial() as trial:
        trial.take_out_all(pod.uid for pod in pods)
        for alike in _by_kind(ledger, pods, rules):
            last = alike[-1]
            trial.let_in_all(alike[:-1])
            refused = refusal(ledger, last, rules, with_in_flight=with_in_flight)
            if refused is not None:
                return refused
            trial.let_in(last)
    return None


def _by_kind(ledger: Ledger, pods: Iterable[Pod], rules: Rules) -> Iterable[list[Pod]]:
    """The pods by what the rules know of them; the kinds in the order of their first pods.

    Equal requests are one object (app.store.objects), which is quicker to compare.
    """
    kinds: dict[Hashable, list[Pod]] = {}
    for pod in pods:
        freed = bool(exempt.grounds(ledger, pod, rules.exempt_namespaces))
        kind = pod.namespace, ledger.queue_of(pod), pod.priority, pod.preemptible, id(pod.request), freed
        kinds.setdefault(kind, []).append(pod)
    return kinds.values()


def refused_by(message: str) -> str | None:
    """The rule that a pod's condition names, if it names one of ours."""
    return next((rule for rule, text in TEXTS.items() if text in message), None)


def numbers(ledger: Ledger, pod: Pod, refused: Refusal | None) -> dict[str, dict[str, int]]:
    """By resource of the request, what the rules compare; of many resources those first that it is refused for."""
    request = told(pod.request, refused.resources if refused else ())
    figures = elastic_quota.numbers(ledger, replace(pod, request=request))
    queue = ledger.queue_of(pod)
    if queue:
        for more in (
            queues.numbers(ledger.queues, queue, request),
            fair_share.numbers(ledger.queues, queue, pod.namespace, request),
        ):
            for resource, row in more.items():
                figures.setdefault(resource, {}).update(row)
    return figures


def remedies(ledger: Ledger, pod: Pod, refused: Refusal, asked: Resources) -> tuple[Remedy, ...]:
    """What would let a refused pod in, computed from the numbers now; nobody has tried it.

    ``asked`` is what it requests together with all that it can start only together with. Nothing is told to a pod that
    is refused for more resources than are told of: to change some of them would not help.
    """
    if len(refused.resources) > MOST_TOLD:
        return ()
    if refused.rule in elastic_quota.TEXTS:
        return elastic_quota.remedies(ledger, pod, refused, asked)
    queue = ledger.queue_of(pod)
    if refused.rule == fair_share.FAIR_SHARE:
        return fair_share.remedies(ledger.queues, queue, pod, refused)
    return queues.remedies(ledger.queues, queue, asked, refused)
