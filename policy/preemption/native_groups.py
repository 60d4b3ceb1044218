"""Native pod groups (``scheduling.k8s.io``): whose pods kube-scheduler may evict for them.

It never calls ``preempt`` for such a group. It takes all pods of lower priority out of its snapshot, asks ``filter``
about member by member as if the nodes were so empty, and evicts only where all passed. So a node without room is
offered to a member only in such a dry run, and ``filter`` is the last to say whose pods stay.

A node that could take all members at once, or that has no pod of lower priority, is open to every member. Any other
is open if all of its pods of lower priority could be evicted together with those on nodes that other members were let
through to. If one of them may not be, the node is tight: a member may go there only for room that is free, and to no
other node, so that it is known what the members let in before take there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from policy.cluster.cluster import Cluster, Filtered
from policy.nodes import fit
from policy.objects.group import Key
from policy.objects.pod import Pod
from policy.objects.resources import total
from policy.preemption.eviction_trial import EvictionTrial, eviction_trial
from policy.preemption.ranking import importance
from policy.quota.kept_nodes import PROTECTED, refusal_by

MOST_LOOKED_AT = 4000
"""Pods on nodes that are looked at for one answer; an empty node counts as one. The nodes that remain are tight."""
MOST_TRIED = 400
"""Evictions that are tried for one answer."""
MOST_MEMBERS = 500
"""Members of a group for which pods may be evicted: each has to stay within what it is entitled to."""
FEW_GROUPS = 64


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


@dataclass(slots=True)
class NativeGroups:
    """Decides which nodes members of native groups may go to, beyond what the rules of ``Cluster.filter`` say.

    ``_passed`` has, by group and UID, where members were let through; it counts as long as they hold a grant.
    """

    _passed: dict[Key, dict[str, Passed]] = field(default_factory=dict)

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
        pending = [each for each in cluster.groups.members((pod.namespace, pod.group)) if each.pending]
        others = [each for each in pending if each.uid != pod.uid]
        free = _room_for_all(cluster, pod, others)
        contested, left = _with_lower_priority(cluster, pod, (each for each in offered if each not in free))
        if not contested and not left:
            return answer
        before = self._before(cluster, pod)
        emptied = sorted({name for each in before.values() for name in each.emptied})
        with _evicting(cluster, pod, others, emptied, respect_budgets=respect_budgets) as evicting:
            passed, chosen = _choose(evicting, cluster, pod, Offer(offered, contested, left), before)
        self._note(cluster, pod, passed)
        failed = {name: PROTECTED for name in offered if name not in chosen}
        if len(failed) < len(offered):
            return Filtered(None, {**answer.failed, **failed})
        cluster.withdraw(pod.uid)
        every = {**{name: answer.failed[name] for name in names if name in answer.failed}, **failed}
        return Filtered(refusal_by({*every.values()}), every)

    def _before(self, cluster: Cluster, pod: Pod) -> dict[str, Passed]:
        """Returns where the other members were let through that still hold a grant, by UID."""
        known = self._passed.get((pod.namespace, pod.group), {})
        return {uid: each for uid, each in known.items() if uid != pod.uid and uid in cluster.grants}

    def _note(self, cluster: Cluster, pod: Pod, passed: Passed) -> None:
        """Notes where a member is let through, and forgets what has come to nothing."""
        key = pod.namespace, pod.group
        self._passed[key] = {**self._before(cluster, pod), pod.uid: passed}
        if len(self._passed) > FEW_GROUPS + 2 * len(cluster.grants):
            self._passed = {
                key: there
                for key, each in self._passed.items()
                if (there := {uid: of for uid, of in each.items() if uid in cluster.grants})
            }


class _Evicting:
    """Takes all pods of lower priority on nodes, as far as each of them may be evicted after those before."""

    def __init__(self, trial: EvictionTrial, before: Iterable[str], *, any_at_all: bool, respect_budgets: bool) -> None:
        self._trial = trial
        self._any_at_all = any_at_all
        self._respect_budgets = respect_budgets
        self._tried = 0
        trial.evictable.one_by_one = True
        for name in before:
            trial.take_all(self._on(name))

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
def _evicting(
    cluster: Cluster, pod: Pod, others: list[Pod], emptied: list[str], *, respect_budgets: bool
) -> Iterator[_Evicting]:
    """Tries evictions for a member and all others of its group; afterwards the cluster is as it was."""
    any_at_all = len(others) < MOST_MEMBERS and not fit.undecidable(cluster.table, pod)
    with eviction_trial(cluster, pod, others if any_at_all else ()) as trial:
        yield _Evicting(trial, emptied, any_at_all=any_at_all, respect_budgets=respect_budgets)


def _choose(
    evicting: _Evicting, cluster: Cluster, pod: Pod, offer: Offer, before: Mapping[str, Passed]
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


def _has_room_beside(cluster: Cluster, pod: Pod, node: str, before: Mapping[str, Passed]) -> bool:
    """Whether a node has room for a member beside those that were let through to it alone."""
    there = [known for uid, each in before.items() if each.tight == node and (known := cluster.grants.pod(uid))]
    taken = total(each.request for each in there)
    return not there or not fit.lacking_on(cluster.table, pod, node, (), taken)


def _room_for_all(cluster: Cluster, pod: Pod, others: Iterable[Pod]) -> set[str]:
    """Returns the nodes with room for a member and all others at once, whichever of them come there."""
    members = (pod, *others)
    resources = {resource for each in members for resource in each.request}
    largest = {resource: max(each.request.get(resource, 0) for each in members) for resource in resources}
    table, group = cluster.table, cluster.membership.groups[pod.namespace, pod.group]
    number = max(len(members), group.minimum)  # the watch may not have shown all of them yet
    now = fit.fits(table, pod)
    rows, times = fit.how_often(table, table.free, replace(pod, request=largest))
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
