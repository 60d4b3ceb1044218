"""The rules in order, for one pod or several together."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from policy.objects import signature
from policy.objects.device_selector import Comparison
from policy.objects.pod import Pod
from policy.objects.resources import NOTHING, Resources
from policy.objects.verdict import MOST_TOLD, Hint, Refusal, told
from policy.quota import elastic_quota, exempt, queue_rules, run_time_limit
from policy.quota.ledger import Ledger
from policy.quota.rule import QUEUE, QUOTA, Figures, no_figures
from policy.quota.rules import BY_NAME, RULES

OF_QUOTAS = tuple((rule, rule.refuses) for rule in RULES if rule.of == QUOTA and rule.refuses is not None)
OF_QUEUES = tuple((rule, rule.refuses) for rule in RULES if rule.of == QUEUE and rule.refuses is not None)
OF_OPEN_QUEUES = tuple((rule, refuses) for rule, refuses in OF_QUEUES if rule not in queue_rules.OF_SHUT)
_NUMBERS = tuple(dict.fromkeys(rule.numbers for rule in RULES))


@dataclass(frozen=True, slots=True)
class Rules:
    """An operator's choices about the rules.

    ``fair_share_preemption``: a namespace that has less than its share of a queue may take from one that has more.
    ``quota_manager``: resource quotas keep pods from being created beyond what queues deserve. The demand of a queue is
    not seen then, and taken to be all there is. ``gangs``: members of a pod group wait until it can start.
    ``evict_for_reserved``: borrowers on a node are evicted for the job that it is reserved for. ``whole_nodes``: nobody
    else starts on a reserved node, whatever room it has beside what the job needs. ``backfill_margin``: how many
    seconds, its grace period not included, a pod has to end before the promised start of a node's job to start there
    all the same. ``promise_ahead``: how many seconds ahead a start is promised at most. ``run_time_grace``:
    how many seconds after it a pod is evicted that outlives its run time; inf: never. ``spare_jobs``: a pod whose
    eviction would fail a Job is never evicted, not even last. ``exempt_namespaces``: no rule applies to
    system-critical pods there (see policy.quota.exempt). ``device_classes``: which devices are of the classes whose own
    selectors are not judged.
    """

    strict_borrowing: bool = False
    fair_share_preemption: bool = False
    quota_manager: bool = False
    gangs: bool = True
    evict_for_reserved: bool = False
    whole_nodes: bool = False
    backfill_margin: float = 30.0
    promise_ahead: float = 86_400.0
    run_time_grace: float = inf
    spare_jobs: bool = False
    exempt_namespaces: frozenset[str] = exempt.NAMESPACES
    device_classes: Mapping[str, tuple[Comparison, ...]] = field(default_factory=dict)


def refusal(  # noqa: C901 - asked of each pod: a function for each part of it would take longer
    ledger: Ledger, pod: Pod, queue: str, rules: Rules, *, with_in_flight: bool = False
) -> Refusal | None:
    """Returns the refusal by the first rule that refuses the pod of a queue, or None. Used must not contain it."""
    if pod.priority >= exempt.CRITICAL and exempt.why_exempt(ledger, pod, rules.exempt_namespaces):
        return None
    if ledger.run_time_limits.most and ledger.run_time_limits.refuses(ledger, pod, queue):
        return run_time_limit.REFUSAL
    account = ledger.accounts.get(pod.namespace)
    if account is not None and (quota := account.quota) is not None:
        ahead, in_pool = ledger.ahead_of(pod, account) if account.nominated else (NOTHING, ledger.pool.nominated)
        of_quota = elastic_quota.Asking(
            pod, quota, account, ledger.pool, ahead, in_pool, account.pinned, rules.strict_borrowing
        )
        if with_in_flight:
            of_quota.count_in_flight()
        for rule, refuses in OF_QUOTAS:
            if (exceeded := refuses(of_quota)) is not None:
                return rule.refusal(exceeded)
    if queue:
        account_of_queue = ledger.queues.known(queue)
        of_queue = queue_rules.Asking(pod.namespace, pod.request, account_of_queue, ledger.queues)
        if with_in_flight:
            of_queue.count_in_flight()
        is_open = account_of_queue.queue is not None and not account_of_queue.shut
        for rule, refuses in OF_OPEN_QUEUES if is_open else OF_QUEUES:
            if (exceeded := refuses(of_queue)) is not None:
                return rule.refusal(exceeded)
    return None


def refusal_of_all(
    ledger: Ledger, pods: Collection[Pod], rules: Rules, beside: Collection[Pod] = (), *, with_in_flight: bool = False
) -> Refusal | None:
    """Returns the refusal of one of these pods if all are to run together, or None. Each counts for the next.

    Changes nothing. Of pods that are alike it asks about the last one: a rule that lets a pod in beside more pods lets
    it in beside fewer. ``beside`` are others that run with them, about whom it does not ask.
    """
    with ledger.trial() as trial:
        trial.take_out_all(pod.uid for pod in (*beside, *pods))
        for alike in _by_kind(ledger, beside, rules):
            trial.let_in_alike(alike)
        for alike in _by_kind(ledger, pods, rules):
            last = alike[-1]
            trial.let_in_alike(alike[:-1])
            refused = refusal(ledger, last, ledger.queue_of(last), rules, with_in_flight=with_in_flight)
            if refused is not None:
                return refused
            trial.let_in(last)
    return None


def _by_kind(ledger: Ledger, pods: Iterable[Pod], rules: Rules) -> Iterable[list[Pod]]:
    """Groups pods by what the rules know of them; the kinds are in the order of their first pods."""
    kinds: dict[Hashable, list[Pod]] = {}
    limited = bool(ledger.run_time_limits.most)
    for pod in pods:
        freed = pod.priority >= exempt.CRITICAL and bool(exempt.why_exempt(ledger, pod, rules.exempt_namespaces))
        too_long = limited and ledger.runs_too_long(pod)
        kinds.setdefault((signature.by_rules(pod, ledger.queue_of(pod)), freed, too_long), []).append(pod)
    return kinds.values()


def numbers(ledger: Ledger, pod: Pod, refused: Refusal | None) -> Figures:
    """Returns the figures that the rules compare, by requested resource. Of many resources, refused ones come first.

    Returns none for a pod that is refused by a rule that compares none: the others say nothing of why.
    """
    if refused is not None and BY_NAME[refused.rule].numbers is no_figures:
        return {}
    pod, figures = replace(pod, request=told(pod.request, refused.resources if refused else ())), Figures()
    for rows in _NUMBERS:
        for resource, row in rows(ledger, pod).items():
            figures.setdefault(resource, {}).update(row)
    return figures


def hints(ledger: Ledger, pod: Pod, refused: Refusal, asked: Resources) -> tuple[Hint, ...]:
    """Returns changes that would let a refused pod in, computed from the numbers now; nobody has tried them.

    ``asked`` is its request together with those of all that it can start only together with. Returns none for a pod
    that is refused for more resources than are told of: changing some of them would not help.
    """
    if len(refused.resources) > MOST_TOLD:
        return ()
    return BY_NAME[refused.rule].hints(ledger, pod, refused.resources, asked)
