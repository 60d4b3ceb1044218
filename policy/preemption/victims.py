"""Who has to go so that a pod may run: min-aware victims, on one node or over all.

Seed: capacity scheduling, PostFilter. A pod that stays within its quota's min takes back what others have borrowed,
from pods of any priority; one that would itself borrow takes only from lower-priority pods of its own namespace; one
without a quota only from lower-priority pods without a quota. Nobody is taken from a quota that is within its min. Of a
gang that cannot do without a member all go, or none, and only if nobody else will do. Of a queue that has more than it
deserves those go first whose namespace has more than its share of it. Last of all go those whose eviction would fail a
Job of Kubernetes. For a pod that no rule applies to kube-scheduler decides; here it takes from
lower-priority pods of any namespace, so that it is foreseen roughly.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import fsum, inf

import numpy as np

from policy.cluster.cluster import Cluster
from policy.nodes import fit, scores
from policy.objects.group import Key
from policy.objects.pod import Pod
from policy.objects.resources import NOTHING, Resources, add, total
from policy.objects.verdict import Refusal
from policy.preemption.losses import Losses
from policy.quota import admission, queues
from policy.quota.entitlement import (
    SLOT,
    Entitlement,
    as_if_guaranteed,
    entitlement,
    exempt_from_eviction,
    share_lent,
    shortfall,
    to_spare,
)
from policy.quota.ledger import Entry
from policy.stepwise import at_once

ENOUGH_NODES = 100
"""How many nodes with victims are compared; as many candidates as kube-scheduler's own preemption looks at."""
IN_VAIN = 300
"""How many promising nodes are tried without success, or only at the price of a Job, before no more are looked at.

The time that a search takes is bounded.
"""
LOOKED_AT = 20
"""How many nodes are looked at without success before it may pause."""
MOST_FOR_A_RULE = 100
"""How many may go for a rule's sake: a quota that is exceeded by more than that is not cleared for one pod."""
LOWEST = 2**31
"""Added to priorities (32 bits, signed) so that more victims always cost more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Evicting these pods (most important first) lets the pod run on the node.

    ``violations`` of them would violate a disruption budget. ``failing`` are the Jobs that fail by it: titles by the
    UIDs of their pods among the victims.
    """

    pod: Pod
    node: str
    victims: tuple[Pod, ...]
    violations: int
    failing: Mapping[str, str] = field(default_factory=dict)

    @property
    def fails(self) -> int:
        """How many Jobs fail by it."""
        return len(set(self.failing.values()))


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Nobody is to be evicted for the pod.

    ``reason`` is room (``node`` has it), waiting (it is coming there), never (the pod may not preempt, or no node can
    ever take it), undecidable (a constraint that cannot be judged), protected (nobody may be taken who would help), or
    gang (there is no plan for some other member that it could start only together with).
    """

    reason: str
    text: str
    node: str = ""


def victims_on(cluster: Cluster, pod: Pod, nodes: Iterable[str], *, respect_budgets: bool = False) -> list[Plan]:
    """For each node where that helps, the victims on it with whom gone the pod may run there.

    For the scheduler's own preemption, which evicts on one node alone. Nobody, where room is coming already: asked
    twice, nobody goes twice. With ``respect_budgets`` nobody goes whose eviction would violate a disruption budget.
    """
    if (
        not pod.may_preempt
        or fit.undecidable(cluster.table, pod)
        or cluster.reservations.is_held_for(pod.uid)
        or cluster.gangs.is_waiting(pod)
    ):
        return []
    plans, sparing = list[Plan](), list[Plan]()
    with _trial(cluster, pod) as trial:
        if trial.node_where_room_is_coming() and trial.admitted():
            return []
        for node in nodes:
            found = trial.search_alone(node)
            if found is not None and found.victims and not (respect_budgets and found.violations):
                plans.append(found)
                if not any(map(trial.keeps_to_its_share, found.victims)):
                    sparing.append(found)
    plans = sparing or plans
    return _sparing_jobs(plans) if any(each.failing for each in plans) else plans


def _sparing_jobs(plans: list[Plan]) -> list[Plan]:
    """Those of some plans than which no other fails fewer Jobs without violating more budgets."""
    fewest, fewest_with = inf, dict[int, float]()
    for each in sorted(plans, key=lambda each: (each.violations, each.fails)):
        fewest = min(fewest, each.fails)
        fewest_with.setdefault(each.violations, fewest)
    return [each for each in plans if each.fails <= fewest_with[each.violations]]


def plan(cluster: Cluster, pod: Pod) -> Plan | NoPlan:
    """The best plan over all nodes, or why there is none. Changes nothing.

    Victims may stand on several nodes where the quota is in the way and not only the room on a node. For a pod that a
    node is reserved for, first that node alone is looked at, if borrowers are to go for it.
    """
    return at_once(search(cluster, pod))


def search(cluster: Cluster, pod: Pod, beside: Sequence[Pod] = ()) -> Generator[None, None, Plan | NoPlan]:
    """Like ``plan``, but may pause, and the cluster may change meanwhile: the answer is true at the end.

    ``beside`` are waiting pods that can start only together with this one: others go for it only if all of them stay
    within what they are entitled to (a gang counts as one preemptor).
    """
    node = cluster.reservations.node_to_empty_for(pod)
    undecidable = fit.undecidable(cluster.table, pod)
    on_reserved = _plan_on(cluster, pod, node) if node and pod.may_preempt and not undecidable else None
    return on_reserved or (yield from _search_anywhere(cluster, pod, beside))


def _plan_on(cluster: Cluster, pod: Pod, node: str) -> Plan | None:
    """The best plan with victims on the node that is reserved for the pod, where any borrower may go for it."""
    if fit.fits_on(cluster.table, pod, node, cluster.leaving.uids):
        return None
    with _trial(cluster, pod) as trial:
        trial.entitle(as_if_guaranteed(pod, cluster.ledger))
        found = trial.search_alone(node)
    return found if found is not None and found.victims else None


def _search_anywhere(cluster: Cluster, pod: Pod, beside: Sequence[Pod]) -> Generator[None, None, Plan | NoPlan]:
    for own_first in (False, True):
        yield from fit.prepare(cluster.table, pod)
        if (nobody := _without_victims(cluster, pod)) is not None:
            return nobody
        yield
        with _trial(cluster, pod, beside) as trial:
            found = (yield from _candidates(trial)) if not own_first or trial.let_own_go_first() else []
        for each in sorted(found, key=lambda each: each.cost):
            yield  # so it may have been found before something changed
            if (nobody := _without_victims(cluster, pod)) is not None:
                return nobody
            with _trial(cluster, pod, beside) as trial:
                if own_first and not trial.let_own_go_first():
                    break
                again = trial.search(each.plan.node, elsewhere=True)
            if again is not None:
                return again.plan
    return _without_victims(cluster, pod) or NoPlan("protected", "nobody may be evicted whose going would let it run")


def _without_victims(cluster: Cluster, pod: Pod) -> NoPlan | None:
    """Why nobody has to be looked for who would go, or may; None if somebody has."""
    if reason := fit.undecidable(cluster.table, pod):
        return NoPlan("undecidable", reason)
    if not pod.may_preempt:
        return NoPlan("never", "its preemptionPolicy is Never")
    roomy = _roomy_node(cluster, pod)
    if not (roomy or fit.suitable(cluster.table, pod).any()):
        return NoPlan("never", "no node could take it, however empty")
    if roomy and cluster.check(pod) is None:
        return NoPlan("room", "a node has room for it", roomy)
    with _trial(cluster, pod) as trial:
        node = trial.node_without_victims(roomy)
    if node:
        return NoPlan("waiting", "there will be room when pods that are going are gone", node)
    return None


def _roomy_node(cluster: Cluster, pod: Pod) -> str:
    """A node with room for the pod now; empty if there is none."""
    table = cluster.table
    rows = np.flatnonzero(fit.fits(table, pod) & ~table.mask_of(cluster.reservations.nodes_reserved_from(pod)))
    return min((table.names[row] for row in rows.tolist()), default="")


def _candidates(trial: "_Trial") -> Generator[None, None, list["_Found"]]:
    """Plans on nodes that need little for it, or on one that only the rules keep the pod from."""
    roomy = trial.roomy_node()
    yield from trial.pause()
    found: list[_Found] = []
    good = in_vain = 0
    for node in [roomy] if roomy else trial.promising_nodes():
        if node:
            best = trial.search(node, elsewhere=True)
            if best is not None:
                found.append(best)
                good += not best.fails
            in_vain += best is None or best.fails > 0
        yield from trial.pause()
        if good >= ENOUGH_NODES or in_vain >= IN_VAIN:
            break
    return found


def importance(pod: Pod) -> tuple[int, float, str]:
    """Orders pods as the scheduler's preemption does, the most important first: by priority, then by earlier start.

    Pods that start together are told apart by their UIDs, so that every replica has the same order.
    """
    return -pod.priority, pod.started or pod.created, pod.uid


@dataclass(frozen=True, slots=True)
class _Found:
    """A plan and its cost.

    Violated budgets, Jobs that fail, what quotas fall below their min, priority lost, number, age, name.
    """

    plan: Plan
    cost: tuple[int, int, float, int, int, float, str]

    @property
    def fails(self) -> int:
        """How many Jobs fail by it."""
        return self.cost[1]


@contextmanager
def _trial(cluster: Cluster, pod: Pod, beside: Sequence[Pod] = ()) -> Iterator["_Trial"]:
    """The cluster as it would be without the pod, and without pods that are going anyway; afterwards as it was.

    ``beside``: see ``search``.
    """
    trial = _Trial(cluster, pod, beside)
    try:
        trial.open()
        yield trial
    finally:
        trial.close()


class _Known(dict[str, bool]):
    """Answers to a question about names, each worked out once."""

    def __init__(self, answer: Callable[[str], bool]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, name: str) -> bool:
        answer = self[name] = self._answer(name)
        return answer


class _Trial:
    """Tries out who would have to go. Victims are taken out of the ledger itself, so that its own rules decide."""

    def __init__(self, cluster: Cluster, pod: Pod, beside: Sequence[Pod]) -> None:
        self._cluster = cluster
        self._ledger = cluster.ledger
        self._table = cluster.table
        self._pod = pod
        self._beside = beside
        self._own: tuple[Pod, ...] = ()
        self._governed = cluster.is_governed(pod)
        self._exempt = cluster.is_exempt(pod)
        self._reach: str | None = None
        self._givers: frozenset[str] | None = None
        self._beyond_cure = False
        self._in_turn: dict[tuple[frozenset[str], _Order | None], list[Pod]] = {}
        self._aside: dict[str, Entry] = {}
        self._victims: dict[str, tuple[Pod, Entry | None]] = {}
        self._spares_jobs = True
        self._passed_over = False

    def open(self) -> None:
        """Takes the pod out of the ledger, and those that are going; nothing is known yet of who else might go."""
        self._own = tuple(pod for pod in self._own if self._cluster.pods.get(pod.uid) is pod)
        going = self._going = self._cluster.leaving.uids | {pod.uid for pod in self._own}
        self._aside = self._ledger.set_aside_all((self._pod.uid, *going))
        self._reserved = self._cluster.reservations.nodes_reserved_from(self._pod)
        self.entitle(self._entitlement_now())
        self._together: dict[str, frozenset[str]] = {}
        self._ready: dict[Key, set[str]] = {}
        self._taken_of: dict[Key, int] = {}
        self._gone = set(going)
        self._losses = Losses(self._cluster.batch_jobs, (self._cluster.pods[uid] for uid in self._cluster.leaving.uids))
        for pod in self._own:
            self._losses.take(pod)
        self._borrowed_before: dict[tuple[str, str], float] = {}
        self._share_before: dict[tuple[str, str], tuple[Resources, Resources] | None] = {}
        self._spare_before: dict[tuple[str, str], list[tuple[Resources, Resources]]] = {}
        self._lent_before: dict[frozenset[str], dict[tuple[str, str], tuple[Resources, bool]]] = {}

    def close(self) -> None:
        """Puts everything back, also where somebody was just being taken or given back."""
        self._ledger.set_aside_all(self._victims)  # as they wait anew
        self._ledger.put_back_all({uid: entry for uid, (_, entry) in self._victims.items() if entry is not None})
        self._ledger.put_back_all(self._aside)
        self._victims, self._aside = {}, {}

    def pause(self) -> Iterator[None]:
        """Lets others do their work while everything is as it was. What was known of who might go is known no more."""
        self.close()
        yield
        self.open()

    def _entitlement_now(self) -> Entitlement:
        """What the pod may take back without those who are taken, and those that room is held for beside it."""
        with self._ledger.trial() as trial:
            trial.take_out_all(pod.uid for pod in self._beside)
            beside = total(pod.request for pod in self._beside)
            by_share, by_slot = self._cluster.rules.fair_share_preemption, self._table.is_short_of(SLOT)
            return entitlement(self._ledger, self._pod, beside, by_share=by_share, by_slot=by_slot)

    def let_own_go_first(self) -> bool:
        """Counts less important pods of the pod's own namespace as going, if it is entitled only without them.

        They are as few as that takes. Whether there are such pods. To be asked while nobody has been taken.
        """
        own = self._own_in_the_way() if not self._entitled and self._governed else ()
        self.close()
        self._own = own
        self.open()
        return bool(own) and bool(self._entitled)

    def _own_in_the_way(self) -> tuple[Pod, ...]:
        peers = self._peers_in_turn(frozenset(self._pod.request), None)
        for pod in (pod for candidates in self._passes() for pod in candidates(peers)):
            if len(self._victims) >= MOST_FOR_A_RULE:
                break
            if self._is_peer(pod):
                self._take(pod)
                if self._entitlement_now().resources:
                    break
        in_order = sorted((pod for pod, _ in self._victims.values()), key=importance)
        at_stake = self._losses.at_stake(in_order)
        for pod in sorted(in_order, key=lambda pod: at_stake.get(pod.uid, len(at_stake))):
            if pod.uid in self._victims:
                given_back = self._give_back(pod.uid)
                if not self._entitlement_now().resources:
                    self._take_all(given_back)
        own = tuple(pod for pod, _ in self._victims.values())
        self.give_back_all()
        return own

    def admitted(self) -> bool:
        """Whether the rules would let the pod in."""
        return self._refusal() is None

    def node_without_victims(self, roomy: str) -> str:
        """A node for the pod once pods that are going are gone; empty if there is none. ``roomy`` has room now."""
        node = roomy or self.node_where_room_is_coming()
        return node if node and self.admitted() else ""

    def roomy_node(self) -> str:
        """A node with room for the pod once pods that are going are gone; empty if there is none."""
        return _roomy_node(self._cluster, self._pod) or self.node_where_room_is_coming()

    def node_where_room_is_coming(self) -> str:
        """A node that has pods which are going, and room for the pod without them; empty if there is none."""
        sites = {placed.site.name for uid in self._going if (placed := self._table.placed(uid))}
        return next((name for name in sorted(sites - self._reserved) if self._fits(name)), "")

    def promising_nodes(self) -> Iterator[str]:
        """Nodes that would have room if all went who might, the least short of it first; in between nothing, to pause.

        In what they lack they stand as they did at first.
        """
        table = self._table
        rows = np.flatnonzero(fit.suitable(table, self._pod))
        shortage = scores.shortage(table, self._pod)[rows]
        rows = rows[np.lexsort((table.ranks()[rows], shortage))]
        names = table.names_by_row()  # as they are now: after a pause a row may be another's
        yield ""
        for _ in self._find_givers():
            yield ""
        yield ""
        for number, node in enumerate(map(names.__getitem__, rows)):
            if self.is_promising(node):
                yield node
            elif number % LOOKED_AT == 0:
                yield ""

    def entitle(self, entitlement: Entitlement) -> None:
        """Says what the pod may take back, and from whom; before anything is asked."""
        self._entitlement = entitlement
        self._entitled = entitlement.resources
        self._unprotected: dict[str, list[tuple[Pod, str]]] = {}
        self._protected = _Known(partial(entitlement.is_quota_untouched, self._ledger))
        self._protected_queues = _Known(partial(entitlement.is_queue_untouched, self._ledger))

    def is_promising(self, node: str) -> bool:
        """Whether there would be room on a node if all went who might. To be asked while nobody has been taken.

        Not on one that is reserved for another job: it is nobody else's candidate.
        """
        if node in self._reserved:
            return False
        own = self._pod.namespace if self._governed else None
        pods = (pod for pod in self._pods_on(node) if own is None or pod.namespace == own)
        going = {pod.uid for pod in pods if self._is_peer(pod)}
        others, wanted = self._unprotected_on(node), self._entitled
        going.update([pod.uid for pod, _ in others if self._may_take(pod, wanted) and not self._is_out(pod)])
        return bool(going) and self._could_be(node, self._going | going)

    def _unprotected_on(self, node: str) -> list[tuple[Pod, str]]:
        """The pods on a node of other namespaces that neither quota nor queue protects as a whole, and their queues.

        A look is enough for most.
        """
        known = self._unprotected.get(node)
        if known is None:
            own, over_min, entries = self._pod.namespace, self._ledger.over_min, self._ledger.entries
            known = self._unprotected[node] = []
            for pod in self._pods_on(node) if self._entitled else ():
                namespace = pod.namespace
                if namespace == own or (namespace not in over_min and self._protected[namespace]):
                    continue
                entry = entries.get(pod.uid)  # as _queue_of does; many thousands are asked for one answer
                queue = self._ledger.queue_of(pod) if entry is None else entry.queue
                if not self._protected_queues[queue]:
                    known.append((pod, queue))
        return known

    def _pods_on(self, node: str) -> Collection[Pod]:
        """The pods on a node; where it is known who could give any, only theirs: it is not found out for one node."""
        pods, givers = self._table.pods_on(node).values(), self._givers
        return pods if givers is None else [pod for pod in pods if pod.namespace in givers]

    def _could_be(self, node: str, gone: frozenset[str]) -> bool:
        """Whether the pod may fit a node without some of these pods; those that it wants to be near to may stay."""
        if self._pod.constraints.affinity:
            return not fit.lacking_on(self._table, self._pod, node, gone)
        return fit.fits_on(self._table, self._pod, node, gone)

    def _may_give(self) -> frozenset[str]:
        """Namespaces that pods might be taken from: most are lent nothing, and need no look at their pods."""
        return at_once(self._find_givers()) if self._givers is None else self._givers

    def _find_givers(self) -> Generator[None, None, frozenset[str]]:
        """The same, found some at a time. While nobody has been taken."""
        accounts = () if self._governed else self._ledger.accounts.items()
        known = {self._pod.namespace, *(n for n, account in accounts if self._exempt or not account.quota)}
        givers = self._givers = frozenset(known | (yield from self._entitlement.borrowers(self._ledger)))
        return givers

    def search(self, node: str, *, elsewhere: bool) -> "_Found | None":
        """The cheapest victims found for a node; with ``elsewhere`` also on others, where the quota is in the way.

        For a node that is promising, or was.
        """
        if self._beyond_cure or node in self._reserved or not fit.suitable_on(self._table, self._pod, node):
            return None
        alike = self._are_alike(node)
        if alike and self._take_one_that_suffices(node):
            one = self._found(node)
            self.give_back_all()
            return one
        return self._search_all_ways(node, alike=alike, elsewhere=elsewhere)

    def search_alone(self, node: str) -> Plan | None:
        """The cheapest victims found on a node, where from now on only pods on it may be taken.

        So of a gang all have to stand there. Whether the node is promising is looked at only where more than one go.
        """
        self._reach = node
        if node in self._reserved:
            return None
        alike = self._are_alike(node)
        if alike and self._take_one_that_suffices(node):
            one = self._plan(node)
            self.give_back_all()
            return one
        if not self.is_promising(node) or not fit.suitable_on(self._table, self._pod, node):
            return None
        found = self._search_all_ways(node, alike=alike, elsewhere=False)
        return found.plan if found is not None else None

    def _search_all_ways(self, node: str, *, alike: bool, elsewhere: bool) -> "_Found | None":
        """At first no Job fails while somebody else may be taken.

        But whoever is taken then may protect who would be enough, or be in a budget: then they are not passed over.
        """
        self._passed_over = False
        found = self._search_in_all_orders(node, alike=alike, elsewhere=elsewhere)
        if not self._passed_over or (found is not None and not found.plan.violations):
            return found
        self._spares_jobs = False
        other = self._search_in_all_orders(node, alike=alike, elsewhere=elsewhere)
        self._spares_jobs = True
        return min(filter(None, (found, other)), key=lambda each: each.cost, default=None)

    def _search_in_all_orders(self, node: str, *, alike: bool, elsewhere: bool) -> "_Found | None":
        found: list[_Found] = []
        tried: set[frozenset[str]] = set()
        for order, frugally in _ATTEMPTS:
            if frugally and found:
                break
            if tried and alike and not frugally:
                continue  # in this order, too, the same would be taken
            self._make_room(node, order, frugally=frugally)
            on_node = len(self._victims)
            if self._fits(node):
                self._make_admissible(None if elsewhere else node, order)
                taken = frozenset(self._victims)
                if taken not in tried and self.admitted():
                    self._prune(node)
                    found.append(self._found(node))
                alike = alike and len(taken) == on_node
                tried.add(taken)
            self.give_back_all()
        return min(found, key=lambda each: each.cost, default=None)

    def _are_alike(self, node: str) -> bool:
        """Whether the pods of a node differ in nothing that would order them by size."""
        requests = [pod.request for pod in self._table.pods_on(node).values()]
        first = requests[0] if requests else NOTHING
        # Equal requests are one object (app.store.objects), so most need no look.
        others = {id(request): request for request in requests if request is not first}.values()
        return bool(requests) and all(other.get(r, 0) == first.get(r, 0) for other in others for r in self._entitled)

    def _take_one_that_suffices(self, node: str) -> bool:
        """Takes the one borrower on a node of pods of one size whose going is enough, if one is: mostly that is found.

        It is the one that would be left if all were taken and all but one put back, as long as no budget is in its way.
        """
        lacking, size = self._lacking(node), next(iter(self._table.pods_on(node).values())).request
        wanted = lacking.keys() & self._entitled
        if not wanted or any(size.get(resource, 0) < lacking[resource] for resource in wanted):
            return False
        last = self._last_to_stay(node, frozenset(wanted))
        if last is None or not self._cluster.budgets.left().allows(last):
            return False
        self._take(last)
        if self._fits(node) and self.admitted():
            return True
        self.give_back_all()
        return False

    def _last_to_stay(self, node: str, wanted: frozenset[str]) -> Pod | None:
        """Of those who may be taken alone from other quotas the one that would be put back last, if there is one.

        For pods of one size. Whether they may be taken is asked of the last ones only.
        """
        ledger = self._ledger
        ranks = [
            (-pod.priority, share_lent(ledger, pod.namespace, queue), pod.started or pod.created, pod.uid, pod)
            for pod, queue in self._unprotected_on(node)
        ]
        ranks.sort(reverse=True)
        falls: list[tuple[float, Pod]] = []
        for *_, pod in ranks:
            if self._may_take(pod, wanted) and not self._is_out(pod) and not (pod.group and self._is_needed(pod)):
                if pod.job is not None and self._losses.would_fail([pod]):
                    continue
                fall = self._fall(pod)
                if not fall:
                    return pod
                falls.append((fall, pod))
        return min(falls, key=lambda each: each[0], default=(0.0, None))[1]

    def give_back_all(self) -> None:
        """Puts every victim back."""
        for uid in list(self._victims):
            if uid in self._victims:
                self._give_back(uid)
        self._together.clear()

    def _make_room(self, node: str, order: "_Order", *, frugally: bool) -> None:
        """Takes all who may be taken on the node: first from borrowers, and then, if need be, from the pod's peers."""
        if self._fits(node):
            return
        lacking = self._lacking(node)
        wanted = frozenset(lacking.keys() & self._entitled)
        pods = self._table.pods_on(node).values()
        others = self._in_order([pod for pod in pods if self._is_other(pod)], lacking, order) if wanted else []
        peers = sorted(pods, key=importance, reverse=True)
        for candidates in self._passes():
            if frugally:
                self._take_while_more_is_borrowed(candidates(others), wanted)
            self._take_while_borrowed(candidates(others), wanted)
            if self._fits(node):
                return
            for pod in candidates(peers):
                if self._is_peer(pod):
                    self._take(pod)

    def _passes(self) -> Iterator[Callable[[Iterable[Pod]], Iterable[Pod]]]:
        """Who of some pods may be taken: at first those whose eviction fails no Job; if that is not enough, all."""
        yield lambda pods: (pod for pod in pods if not self._goes_last(pod))
        if self._passed_over:
            yield _job_by_job

    def _goes_last(self, pod: Pod) -> bool:
        """Whether others are to be taken first, as a Job would fail by it."""
        if not self._spares_jobs or not self._fails_job(pod):
            return False
        self._passed_over = True
        return True

    def _fails_job(self, pod: Pod) -> bool:
        """Whether a Job would fail if a pod went, and with it those who need it."""
        if pod.job is None and not pod.group:
            return False
        return self._losses.would_fail([pod, *self._needing(pod)])

    def _make_admissible(self, node: str | None, order: "_Order") -> None:
        """Takes who may be taken, on one node or on all, until the rules let the pod in."""
        while refused := self._refusal():  # when one rule lets it in, the next may not
            before = len(self._victims)
            self._cure(refused, node, order)
            if len(self._victims) == before:
                return

    def _cure(self, refused: Refusal, node: str | None, order: "_Order") -> None:
        exceeded = frozenset(refused.resources)
        wanted = exceeded & self._entitled
        others = self._others_in_turn(wanted, node, order) if wanted else []
        peers = self._peers_in_turn(exceeded, node)
        for pod in (pod for candidates in self._passes() for pod in candidates(chain(others, peers))):
            if self.admitted():
                return
            if len(self._victims) >= MOST_FOR_A_RULE:
                self._beyond_cure = node is None
                return
            if self._cluster.pods.get(pod.uid) is not pod:
                continue  # it has gone or changed in a pause
            if self._is_peer(pod) or (self._is_other(pod) and self._may_take(pod, wanted)):
                self._take(pod)

    def _others_in_turn(self, wanted: frozenset[str], node: str | None, order: "_Order") -> list[Pod]:
        """Pods of other quotas that hold what is wanted, on a node or on all: who is to be taken first comes first."""
        if node is None and (known := self._in_turn.get((wanted, order))) is not None:
            return known
        pods = self._pods_of(self._may_give()) if node is None else self._table.pods_on(node).values()
        others = [p for p in pods if p.namespace != self._pod.namespace and not wanted.isdisjoint(p.request)]
        others = self._in_order(others, dict.fromkeys(wanted, 1), order)
        if node is None:
            self._in_turn[wanted, order] = others
        return others

    def _peers_in_turn(self, exceeded: frozenset[str], node: str | None) -> list[Pod]:
        """The pod's peers in its namespace that hold it; those in a budget last, and the least important first."""
        if node is None and (known := self._in_turn.get((exceeded, None))) is not None:
            return known
        pods = self._pods_of((self._pod.namespace,)) if node is None else self._table.pods_on(node).values()
        peers = [p for p in pods if self._is_less_important_peer(p) and not exceeded.isdisjoint(p.request)]
        peers.sort(key=importance)
        in_budget = self._cluster.budgets.violating(peers)
        peers.reverse()
        peers.sort(key=lambda pod: (self._is_needed(pod), pod.uid in in_budget))
        if node is None:
            self._in_turn[exceeded, None] = peers
        return peers

    def _prune(self, node: str) -> None:
        """Puts back as many as possible: first who is in a budget, and then those whose eviction would fail a Job.

        Then those whose quotas would fall below their min, then by importance, then of who borrowed least.
        """
        for gang in dict.fromkeys(self._together.values()):
            self._spare_gang(gang, node)
        victims = sorted((pod for pod, _ in self._victims.values()), key=importance)
        in_budget = self._cluster.budgets.violating(victims)
        at_stake = self._losses.at_stake(sorted(victims, key=self._worth)) if self._losses.number else {}
        in_order = sorted(
            victims,
            key=lambda pod: (
                pod.uid not in in_budget,
                at_stake.get(pod.uid, len(at_stake)),
                pod.uid not in self._together,
                *self._worth(pod),
            ),
        )
        if self._suffices(node, in_order[-1:]):
            in_order = in_order[-1:]
        for pod in in_order:
            if pod.uid in self._victims and self._fits_beside(node, self._together.get(pod.uid, (pod.uid,))):
                given_back = self._give_back(pod.uid)
                if not self.admitted():
                    self._take_all(given_back)

    def _spare_gang(self, gang: frozenset[str], node: str) -> None:
        """Puts a gang back but for those whom it can do without, if their going is enough."""
        pods = sorted((self._victims[uid][0] for uid in gang), key=self._worth)
        group = self._cluster.gangs.gang_of(pods[0])
        beyond = len(self._ready[group.key]) - group.minimum if group else 0
        if beyond <= 0:
            return
        given_back = self._give_back(pods[0].uid)
        self._take_all(pods[-beyond:])
        if self._fits(node) and self.admitted():
            for pod in pods:
                del self._together[pod.uid]
        else:
            self._take_all([pod for pod in given_back if pod not in pods[-beyond:]])

    def _suffices(self, node: str, last: list[Pod]) -> bool:
        """Whether the last one to be put back is enough, as it mostly is; then all others are put back at once."""
        gone = {uid for pod in last for uid in self._together.get(pod.uid, {pod.uid})}
        others = [uid for uid in self._victims if uid not in gone]
        if not self._fits_beside(node, others):
            return False
        given_back: list[Pod] = []
        for uid in others:
            if uid in self._victims:
                given_back += self._give_back(uid)
        if self.admitted():
            return True
        self._take_all(given_back)
        return False

    def _worth(self, pod: Pod) -> tuple[float | str, ...]:
        """Orders victims by what is kept when one is put back, the most first."""
        size, request = 0, pod.request
        for resource in self._entitled or self._pod.request:
            size += request.get(resource, 0)
        return -self._fall(pod), -pod.priority, self._borrowed(pod), pod.started or pod.created, -size, pod.uid

    def _found(self, node: str) -> _Found:
        plan = self._plan(node)
        cost = (
            plan.violations,
            self._losses.number,
            self._shortfall(),
            max((pod.priority for pod in plan.victims), default=-LOWEST),
            sum(pod.priority + LOWEST for pod in plan.victims),
            -min((importance(pod)[1] for pod in plan.victims), default=0.0),
            node,
        )
        return _Found(plan, cost)

    def _plan(self, node: str) -> Plan:
        victims = tuple(sorted((*self._own, *(pod for pod, _ in self._victims.values())), key=importance))
        violations = len(self._cluster.budgets.violating(victims))
        return Plan(self._pod, node, victims, violations, self._losses.failing(victims))

    def _shortfall(self) -> float:
        """How far the victims' quotas fall below their min by it, and queues below what they deserve, as shares.

        And namespaces below their shares of their queues.
        """
        of_quotas, of_queues = dict[str, dict[str, int]](), dict[str, dict[str, int]]()
        of_tenants = dict[tuple[str, str], dict[str, int]]()
        for pod, _ in self._victims.values():
            queue = self._ledger.queue_of(pod)
            add(of_quotas.setdefault(pod.namespace, {}), pod.request)
            add(of_queues.setdefault(queue, {}), pod.request)
            add(of_tenants.setdefault((pod.namespace, queue), {}), pod.request)
        fallen = [
            shortfall(bound, to_spare(bound, total((left, taken))), taken)
            for bounds_of, gone in ((self._min_of, of_quotas), (self._deserved_of, of_queues))
            for whose, taken in gone.items()
            for bound, left in bounds_of(whose)
        ]
        for tenant, taken in of_tenants.items():
            if (before := self._share_before.get(tenant)) is not None:
                fallen.append(shortfall(before[0], to_spare(*before), taken))
        return fsum(fallen)  # the same in whatever order

    def _fall(self, pod: Pod) -> float:
        """The same, if a pod alone were taken."""
        whose = pod.namespace, self._queue_of(pod)
        known = self._spare_before.get(whose)
        if known is None:
            bounds = [*self._min_of(whose[0]), *self._deserved_of(whose[1])]
            if (share := self._share_of(whose)) is not None:
                bounds.append(share)
            known = self._spare_before[whose] = [(bound, to_spare(bound, used)) for bound, used in bounds]
        return fsum(shortfall(bound, spare, pod.request) for bound, spare in known)

    def _min_of(self, namespace: str) -> list[tuple[Resources, Resources]]:
        """The min of another quota, and what of it is used."""
        account = self._ledger.accounts.get(namespace)
        if namespace == self._pod.namespace or account is None or account.quota is None:
            return []
        return [(account.quota.min, account.used)]

    def _deserved_of(self, name: str) -> list[tuple[Resources, Resources]]:
        """What another queue deserves, and what of it is taken."""
        queue = self._ledger.queues.accounts.get(name)
        return [(queue.division.deserved, queue.taken)] if queue is not None and name != self._entitlement.queue else []

    def _share_of(self, whose: tuple[str, str]) -> tuple[Resources, Resources] | None:
        """What another namespace has within its share of a queue, and what it has, while nobody of it is taken.

        None where nobody shares the queue with it.
        """
        if whose in self._share_before:
            return self._share_before[whose]
        namespace, name = whose
        queue = self._ledger.queues.accounts.get(name) if name and namespace != self._pod.namespace else None
        share = None
        if queue is not None and queue.queue is not None and len(queue.tenants) > 1 and namespace in queue.tenants:
            tenant = queue.tenants[namespace]
            taken = dict(tenant.taken)
            share = {r: min(amount, taken.get(r, 0)) for r, amount in tenant.entitled.items()}, taken
        self._share_before[whose] = share
        return share

    def keeps_to_its_share(self, pod: Pod) -> bool:
        """Whether a pod is of a namespace that has no more of what is wanted than its share of a queue."""
        share = self._share_of((pod.namespace, self._queue_of(pod))) if self._cluster.queues else None
        return share is not None and all(share[0].get(r, 0) >= share[1].get(r, 0) for r in self._entitled)

    def _refusal(self) -> Refusal | None:
        cluster = self._cluster
        return admission.refusal(self._ledger, self._pod, cluster.rules, with_in_flight=cluster.unsettled)

    def _fits(self, node: str) -> bool:
        return fit.fits_on(self._table, self._pod, node, self._gone)

    def _fits_beside(self, node: str, victims: Collection[str]) -> bool:
        """Whether the pod would fit a node if these were not taken; quicker than to put them back and look."""
        self._gone.difference_update(victims)
        fits = self._fits(node)
        self._gone.update(victims)
        return fits

    def _lacking(self, node: str) -> dict[str, int]:
        """What the node is short of for the pod, and by how much, once pods that are going are gone."""
        return fit.lacking_on(self._table, self._pod, node, self._going)

    def _pods_of(self, namespaces: Iterable[str]) -> Iterator[Pod]:
        return (each.pod for each in self._table.in_namespaces(namespaces))

    def _is_other(self, victim: Pod) -> bool:
        """Whether the pod may be taken from another quota, if that borrows."""
        return (
            victim.namespace != self._pod.namespace
            and not self._is_out(victim)
            and self._may_take(victim, self._entitled)
        )

    def _is_peer(self, victim: Pod) -> bool:
        """Whether the pod is of lower priority and of the same namespace; without a quota: of any such."""
        return self._is_less_important_peer(victim) and not self._is_out(victim)

    def _is_less_important_peer(self, victim: Pod) -> bool:
        if victim.priority >= self._pod.priority:
            return False
        if self._governed:
            return victim.namespace == self._pod.namespace and self._ledger.queue_of(victim) == self._entitlement.queue
        return self._exempt or not self._cluster.is_governed(victim)

    def _may_take(self, victim: Pod, wanted: frozenset[str]) -> bool:
        """Whether the pod was lent what is wanted. While nobody is taken, the same for all of its size beside it."""
        queue = self._queue_of(victim)
        if self._victims:
            return self._entitlement.may_take(self._ledger, victim, queue, wanted)
        whose = victim.namespace, queue
        known_of = self._lent_before.setdefault(wanted, {})
        known = known_of.get(whose)
        if known is None or known[0] is not victim.request:
            verdict = self._entitlement.may_take(self._ledger, victim, queue, wanted)
            known = known_of[whose] = victim.request, verdict
        return known[1]

    def _queue_of(self, victim: Pod) -> str:
        """The queue of a pod, as it stands in the ledger."""
        entry = self._ledger.entries.get(victim.uid)
        return self._ledger.queue_of(victim) if entry is None else entry.queue

    def _is_out(self, victim: Pod) -> bool:
        if victim.uid in self._going or victim.uid in self._victims or exempt_from_eviction(self._ledger, victim):
            return True
        if self._cluster.rules.spare_jobs and self._losses.would_fail_known([victim, *self._needing(victim)]):
            return True
        if not victim.group:
            return False  # nobody needs it
        of_own = victim.namespace == self._pod.namespace
        if not (of_own or self._reach is not None) or not self._is_needed(victim):
            return False
        along = self._needing(victim)
        if self._reach is not None and any(other.node != self._reach for other in along):
            return True
        return of_own and not all(self._is_less_important_peer(other) for other in along)

    def _in_order(self, pods: Iterable[Pod], lacking: Mapping[str, int], order: "_Order") -> list[Pod]:
        """In which order they are taken: last of all those whom others would have to follow.

        And before them those whose namespaces have no more than their shares.
        """

        def turn(pod: Pod) -> tuple[float | str, ...]:
            return self._is_needed(pod), self.keeps_to_its_share(pod), *order(pod, lacking, self._borrowed(pod))

        return sorted(pods, key=turn)

    def _is_needed(self, pod: Pod) -> bool:
        """Whether a running gang would fall below its minimum without the pod."""
        group = self._cluster.gangs.gang_of(pod)
        if group is None or pod.uid in self._gone:
            return False
        if group.key not in self._ready:
            self._ready[group.key] = self._cluster.gangs.ready(group) - self._going
        ready = self._ready[group.key]
        return pod.uid in ready and len(ready) - self._taken_of.get(group.key, 0) == group.minimum

    def _needing(self, pod: Pod) -> list[Pod]:
        """The other members of a gang that cannot do without the pod; they go, too.

        But for those that nobody may take, and as far as their queue keeps its guarantee: what makes a gang large must
        not protect what was lent to it.
        """
        if not self._is_needed(pod):
            return []
        queue = self._ledger.queues.accounts.get(self._ledger.queue_of(pod))
        bound_by = queue if queue is not None and queue.queue is not None and self._is_of_another_queue(pod) else None
        along, together = list[Pod](), dict(pod.request)
        pods = self._cluster.pods
        members = (pods[uid] for uid in self._ready[pod.namespace, pod.group] - self._gone if uid in pods)
        for other in sorted(members, key=importance, reverse=True):
            if other.uid == pod.uid or exempt_from_eviction(self._ledger, other):
                continue
            if bound_by is None or queues.may_lose(bound_by, total((together, other.request))):
                add(together, other.request)
                along.append(other)
        return along

    def _is_of_another_queue(self, pod: Pod) -> bool:
        return self._ledger.queue_of(pod) != self._entitlement.queue

    def _take_while_borrowed(self, pods: Iterable[Pod], wanted: frozenset[str]) -> None:
        """Takes pods in their order, each only if its quota still borrows what is wanted without those before."""
        for pod in pods:
            if self._may_take(pod, wanted) and not self._is_out(pod):
                self._take(pod)

    def _take_while_more_is_borrowed(self, pods: Iterable[Pod], wanted: frozenset[str]) -> None:
        """Takes only those after whom their quota still borrows: most can be had if the last one taken is large."""
        for pod in pods:
            if self._may_take(pod, wanted) and not self._is_out(pod):
                self._take(pod)
                if not self._may_take(pod, wanted):
                    self._give_back(pod.uid)

    def _borrowed(self, pod: Pod) -> float:
        """How much is lent to the pod's quota or queue while nobody is taken."""
        whose = pod.namespace, self._queue_of(pod)
        known = self._borrowed_before.get(whose)
        if known is None:
            known = self._borrowed_before[whose] = share_lent(self._ledger, *whose)
        return known

    def _take(self, pod: Pod) -> None:
        """Takes a pod, and with it all of its gang if that cannot do without it."""
        needing = self._needing(pod)
        self._take_all([pod, *needing])
        if needing:
            gang = frozenset(uid for uid, (each, _) in self._victims.items() if _of_one_group(each, pod))
            self._together.update(dict.fromkeys(gang, gang))

    def _take_all(self, pods: list[Pod]) -> None:
        for pod in pods:
            self._borrowed(pod)  # while it is still there
            self._fall(pod)
            self._victims[pod.uid] = pod, self._ledger.send_back(pod.uid)
            self._losses.take(pod)
            self._gone.add(pod.uid)
            if pod.group:
                key = pod.namespace, pod.group
                self._taken_of[key] = self._taken_of.get(key, 0) + 1

    def _give_back(self, uid: str) -> list[Pod]:
        """Gives back a pod, and all that were taken with it."""
        given_back = []
        for each in self._together.get(uid, (uid,)):
            pod, entry = self._victims.pop(each)
            given_back.append(pod)
            self._losses.give_back(pod)
            self._gone.discard(each)
            if pod.group:
                self._taken_of[pod.namespace, pod.group] -= 1
            if entry is not None:
                self._ledger.set_aside(each)
                self._ledger.put_back(each, entry)
        return given_back


def _job_by_job(pods: Iterable[Pod]) -> list[Pod]:
    """Orders pods so that those of one Job follow each other: once it fails, more of them cost nothing more."""
    turns: dict[tuple[str, str], int] = {}

    def turn(pod: Pod) -> int:
        return turns.setdefault((pod.namespace, pod.job.uid if pod.job is not None else pod.uid), len(turns))

    return sorted(pods, key=turn)


def _of_one_group(pod: Pod, other: Pod) -> bool:
    return (pod.namespace, pod.group) == (other.namespace, other.group)


_Order = Callable[[Pod, Mapping[str, int], float], tuple[float | str, ...]]
"""In which order borrowers are taken, by what is lacking and how much; the order decides which of them are still
borrowing when their turn comes."""


def _by_importance(pod: Pod, _: Mapping[str, int], borrowed: float) -> tuple[float | str, ...]:
    start, uid = importance(pod)[1:]
    return pod.priority, -borrowed, -start, uid


def _small_first(pod: Pod, lacking: Mapping[str, int], borrowed: float) -> tuple[float | str, ...]:
    size = fsum(pod.request.get(resource, 0) / amount for resource, amount in lacking.items())
    return (size, *_by_importance(pod, lacking, borrowed))


def _helpful_first(pod: Pod, lacking: Mapping[str, int], borrowed: float) -> tuple[float | str, ...]:
    helps = fsum(min(1, pod.request.get(resource, 0) / amount) for resource, amount in lacking.items())
    return (-helps, *_by_importance(pod, lacking, borrowed))


_ATTEMPTS: tuple[tuple[_Order, bool], ...] = (
    (_by_importance, False),
    (_small_first, False),
    (_helpful_first, False),
    (_helpful_first, True),
)
"""How borrowers are taken on a node: in which order, and, where all else fails, frugally."""
