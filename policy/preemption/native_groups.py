"""Native pod groups (``scheduling.k8s.io``): whose pods kube-scheduler may evict for them.

It never calls ``preempt`` for such a group. It takes all pods of lower priority out of its snapshot, asks ``filter``
about member by member as if the nodes were so empty, and evicts only where all passed. So a node without room is
offered to a member only in such a dry run, and ``filter`` is the last to say whose pods stay.

A node that could take all members at once, or that has no pod of lower priority, is open to every member. Any other
is open if all of its pods of lower priority could be evicted together with those on nodes that other members were let
through to. If one of them may not be, the node is tight: a member may go there only for room that is free, and to no
other node, so that it is known what the members let in before take there.
"""

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice

from policy.cluster.cluster import Cluster
from policy.cluster.grants import Grants
from policy.cluster.pod_admission import Filtered
from policy.nodes import fit
from policy.objects.group import Key
from policy.objects.pod import Pod
from policy.objects.resources import largest, total
from policy.preemption.eviction_trial import EvictionTrial, eviction_trial
from policy.preemption.ranking import importance
from policy.quota.kept_nodes import PROTECTED, refusal_by

MOST_LOOKED_AT = 4000
"""Pods on nodes that are looked at for one answer; an empty node counts as one. The nodes that remain are tight."""
MOST_TRIED = 400
"""Evictions that are tried for one answer, with those for members before."""
MOST_MEMBERS = 500
"""Waiting members of a group for which pods may be evicted: each has to stay within what it is entitled to."""
FEW = 3
"""Members, and groups, that are looked at in passing, whether they have come to nothing."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The nodes that a member was let through to: a tight one (else empty), and open ones whose pods may be evicted."""

    tight: str = ""
    emptied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """The nodes that a member is offered. ``contested`` have pods of lower priority, ``left`` were not looked at."""

    nodes: list[str]
    contested: list[str]
    left: list[str]


class LetThrough:
    """Where members of one group were let through. Each counts for as long as it holds a grant."""

    def __init__(self, grants: Grants) -> None:
        self._grants = grants
        self._passed: dict[str, Passed] = {}
        self._tight: dict[str, dict[str, None]] = {}
        self._emptied: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._passed)

    def note(self, uid: str, passed: Passed) -> None:
        """Notes where a member is let through, in place of where it was before."""
        self.forget(uid)
        self._passed[uid] = passed
        if passed.tight:
            self._tight.setdefault(passed.tight, {})[uid] = None
        for name in passed.emptied:
            self._emptied.setdefault(name, {})[uid] = None
        self._clean()

    def forget(self, uid: str) -> None:
        """Forgets a member. Does nothing for an unknown one."""
        passed = self._passed.pop(uid, None)
        if passed is not None:
            for uids, names in ((self._tight, (passed.tight,)), (self._emptied, passed.emptied)):
                for name in names:
                    there = uids.get(name, {})
                    there.pop(uid, None)
                    if not there:
                        uids.pop(name, None)

    def emptied(self) -> list[str]:
        """Returns the nodes whose pods of lower priority members may evict."""
        return sorted(name for name, uids in self._emptied.items() if any(uid in self._grants for uid in uids))

    def on(self, node: str) -> list[Pod]:
        """Returns the members that were let through to this node alone."""
        granted = map(self._grants.pod, self._tight.get(node, ()))
        return [pod for pod in granted if pod is not None]

    def has_ended(self) -> bool:
        """Whether no member holds a grant, as far as the oldest ones tell."""
        self._clean()
        return not self._passed

    def _clean(self) -> None:
        """Forgets members without a grant, of the oldest ones a few: more than are added."""
        for uid in list(islice(self._passed, FEW)):
            if uid in self._grants:
                self._passed[uid] = self._passed.pop(uid)
            else:
                self.forget(uid)


@dataclass(slots=True)
class NativeGroups:
    """Decides which nodes members of native groups may go to, beyond what the rules of ``PodAdmission.filter`` say.

    ``_let_through`` has, by group, where members were let through.
    """

    _let_through: dict[Key, LetThrough] = field(default_factory=dict)

    def concerns(self, cluster: Cluster, pod: Pod, answer: Filtered) -> bool:
        """Whether a pod was let in that kube-scheduler may evict for without asking further."""
        group = cluster.membership.groups.get((pod.namespace, pod.group))
        native = group is not None and group.native and pod.uid in cluster.grants
        return native and answer.refused is None and pod.may_preempt and not cluster.is_exempt(pod)

    def narrow(
        self, cluster: Cluster, pod: Pod, answer: Filtered, names: Collection[str], *, respect_budgets: bool = False
    ) -> Filtered:
        """Returns the answer to ``filter`` for a pod that it concerns, with further nodes refused.

        Takes back the grant if no node is left. ``respect_budgets``: evictions never violate a disruption budget.
        """
        pod = cluster.grants.pod(pod.uid) or pod  # with what is charged for its claims
        offered = sorted(name for name in names if name not in answer.failed)
        free = _room_for_all(cluster, pod)
        contested, left = _with_lower_priority(cluster, pod, (each for each in offered if each not in free))
        if not contested and not left:
            return answer
        before = self._before(cluster, pod)
        with _evicting(cluster, pod, before.emptied(), respect_budgets=respect_budgets) as evicting:
            passed, chosen = _choose(evicting, cluster, pod, Offer(offered, contested, left), before)
        before.note(pod.uid, passed)
        failed = {name: PROTECTED for name in offered if name not in chosen}
        if len(failed) < len(offered):
            return Filtered(None, {**answer.failed, **failed})
        cluster.withdraw(pod.uid)
        every = {**{name: answer.failed[name] for name in names if name in answer.failed}, **failed}
        return Filtered(refusal_by({*every.values()}), every)

    def _before(self, cluster: Cluster, pod: Pod) -> LetThrough:
        """Returns where the other members were let through. Forgets a few groups of which none holds a grant."""
        for key in list(islice(self._let_through, FEW)):
            there = self._let_through.pop(key)
            if not there.has_ended():
                self._let_through[key] = there
        found = self._let_through.setdefault((pod.namespace, pod.group), LetThrough(cluster.grants))
        found.forget(pod.uid)
        return found


class _Evicting:
    """Takes all pods of lower priority on nodes, as far as each of them may be evicted after those before."""

    def __init__(self, trial: EvictionTrial, before: Iterable[str], *, any_at_all: bool, respect_budgets: bool) -> None:
        self._trial = trial
        self._any_at_all = any_at_all
        self._respect_budgets = respect_budgets
        self._tried = 0
        trial.evictable.one_by_one = True
        for name in before if any_at_all else ():
            leaving = self._on(name)
            self._tried += len(leaving)
            trial.take_all(leaving)

    def open(self, names: Iterable[str]) -> set[str]:
        """Returns those of the nodes whose pods of lower priority may all be evicted, together with all before."""
        return {name for name in names if self._any_at_all and self._empties(name)}

    def _empties(self, name: str) -> bool:
        trial, taken = self._trial, self._trial.taken
        before = set(taken.victims)
        trial.evictable.reach = name
        may_go = all(map(self._takes, self._on(name))) and trial.admitted()
        if may_go and self._respect_budgets:
            may_go = not trial.cluster.budgets.violating(taken.pods())
        if not may_go:
            for uid in [uid for uid in taken.victims if uid not in before]:
                taken.give_back(uid)
        return may_go

    def _takes(self, victim: Pod) -> bool:
        """Takes a pod if it may be evicted. A member that its gang needs may not: kube-scheduler may leave the rest."""
        trial, self._tried = self._trial, self._tried + 1
        may_go = trial.evictable.is_borrower(victim) or trial.evictable.is_peer(victim)
        if self._tried > MOST_TRIED or not may_go or (victim.group and trial.gangs.is_needed(victim)):
            return False
        trial.take_all([victim])
        return True

    def _on(self, node: str) -> list[Pod]:
        """Returns the pods of lower priority on a node that are still there, the least important first."""
        trial = self._trial
        there = _lower(trial.cluster, trial.preemptor.pod, node, trial.taken.gone)
        return sorted(there, key=importance, reverse=True)


@contextmanager
def _evicting(cluster: Cluster, pod: Pod, emptied: list[str], *, respect_budgets: bool) -> Iterator[_Evicting]:
    """Tries evictions for a member and all others of its group; afterwards the cluster is as it was."""
    waiting = cluster.groups.waiting((pod.namespace, pod.group))
    any_at_all = len(waiting) <= MOST_MEMBERS and not fit.undecidable(cluster.table, pod)
    others = [cluster.pods[uid] for uid in waiting.uids() if uid != pod.uid] if any_at_all else []
    with eviction_trial(cluster, pod, others) as trial:
        yield _Evicting(trial, emptied, any_at_all=any_at_all, respect_budgets=respect_budgets)


def _choose(
    evicting: _Evicting, cluster: Cluster, pod: Pod, offer: Offer, before: LetThrough
) -> tuple[Passed, set[str]]:
    """Returns what to note of a member, and the nodes that it may go to.

    First come nodes where it would be placed now, then free room on a tight one, then room that evictions make.
    """
    table = cluster.table
    now = fit.fits(table, pod)
    roomy = [name for name in offer.contested if now[table.rows[name]]]
    with_room = evicting.open(roomy)
    if chosen := {*offer.nodes}.difference(offer.contested, offer.left) | with_room:
        return Passed(emptied=tuple(sorted(with_room))), chosen
    for name in (*roomy, *offer.left):
        if name in table.rows and now[table.rows[name]] and _has_room_beside(cluster, pod, name, before):
            return Passed(tight=name), {name}
    emptied = evicting.open(name for name in offer.contested if name not in roomy)
    return Passed(emptied=tuple(sorted(emptied))), emptied


def _has_room_beside(cluster: Cluster, pod: Pod, node: str, before: LetThrough) -> bool:
    """Whether a node has room for a member beside those that were let through to it alone."""
    there = before.on(node)
    return not there or not fit.lacking_on(cluster.table, pod, node, (), total(each.request for each in there))


def _room_for_all(cluster: Cluster, pod: Pod) -> set[str]:
    """Returns the nodes with room for a member and all others at once, whichever of them come there.

    There is none if the others request so many different things that it would take long to say.
    """
    key = pod.namespace, pod.group
    waiting, group, table = cluster.groups.waiting(key), cluster.membership.groups[key], cluster.table
    requested = waiting.largest()
    if requested is None:
        return set()
    seen = len(waiting) + (pod.uid not in waiting)
    number = max(seen, group.minimum)  # the watch may not have shown all of them yet
    now = fit.fits(table, pod)
    rows, times = fit.how_often(table, table.free, replace(pod, request=largest(pod.request, requested)))
    return {table.names[row] for row, often in zip(rows, times, strict=True) if often >= number and now[row]}


def _with_lower_priority(cluster: Cluster, pod: Pod, nodes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the nodes with pods of lower priority, and those that were not looked at, or are not known."""
    found, left, looked, leaving = list[str](), list[str](), 0, cluster.leaving.uids
    for name in nodes:
        if looked > MOST_LOOKED_AT or cluster.table.node(name) is None:
            left.append(name)
            continue
        looked += max(1, len(cluster.table.pods_on(name)))
        if any(_lower(cluster, pod, name, leaving)):
            found.append(name)
    return found, left


def _lower(cluster: Cluster, pod: Pod, node: str, gone: AbstractSet[str]) -> Iterator[Pod]:
    """Yields the pods of lower priority on a node without those that are gone, or leave anyway."""
    there = cluster.table.pods_on(node).values()
    return (each for each in there if each.priority < pod.priority and each.uid not in gone)
