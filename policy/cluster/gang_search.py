"""The search for members of a gang that may start together: the rules admit them, and nodes have room for all."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from policy.cluster import assumed
from policy.nodes.packing import Places, decidable
from policy.objects import signature
from policy.quota import admission

if TYPE_CHECKING:
    from collections.abc import Collection

    from policy.cluster.cluster import Cluster
    from policy.cluster.gang_holds import Holds
    from policy.nodes.packing import AlikePods
    from policy.objects.pod import Pod
    from policy.stepwise import Steps

ROUNDS = 4
"""How many times one of a group's chosen members that found no place is replaced by another."""


class GangSearch:
    """Searches the cluster as it stands, and changes nothing. Members with ``holds`` have their places already."""

    def __init__(self, cluster: Cluster, holds: Holds) -> None:
        self._cluster = cluster
        self._holds = holds

    def find(
        self, pod: Pod, others: list[Pod], missing: int, offered: Collection[str] | None
    ) -> dict[str, tuple[Pod, str]] | None:
        """Returns so many members that may run together, the pod first, each with its node; None without enough.

        ``others`` are the other members that wait. ``offered``: the nodes that the scheduler offers; None: any.
        """
        cluster = self._cluster
        without: set[str] = set()
        for _ in range(ROUNDS):
            chosen = self.admissible(pod, others, missing, without)
            if chosen is None:
                return None
            if not decidable(cluster.table, chosen):
                return {member.uid: (member, "") for member in chosen}
            coming = self.coming({member.uid for member in chosen})
            places = Places(cluster.table, chosen, offered, coming, cluster.reservations.nodes_reserved_from)
            unplaced = places.find()
            if unplaced is None:
                return {member.uid: (member, places.nodes[member.uid]) for member in chosen}
            if unplaced is chosen[0]:
                return None
            without.add(unplaced.uid)
        return None

    def most_steps(self, pod: Pod, others: list[Pod], below: int) -> Steps[int]:
        """Returns how many members may run together, the pod among them, if fewer than ``below``; 0: not even it.

        Returns 0, too, if it cannot be worked out here where members would go.
        """
        if not decidable(self._cluster.table, [pod, *others]):
            return 0
        least, most = 0, below - 1
        while least < most:
            yield
            middle = (least + most + 1) // 2
            if self.find(pod, others, middle, None) is not None:
                least = middle
            else:
                most = middle - 1
        return least

    def admissible(self, pod: Pod, others: list[Pod], missing: int, without: Collection[str] = ()) -> list[Pod] | None:
        """Returns so many members, the pod first, that the rules admit together; None if there are too few.

        Leaves out those of ``without``.
        """
        members = [member for member in chain((pod,), others) if member.uid not in without]
        if len(members) < missing:
            return None
        cluster, first = self._cluster, members[:missing]
        refused = admission.refusal_of_all(cluster.ledger, first, cluster.rules, with_in_flight=cluster.unsettled)
        if refused is None:
            return first
        ledger = cluster.ledger
        too_long = [ledger.runs_too_long(each) for each in members]
        if len({(signature.by_rules(each, each.queue), of) for each, of in zip(members, too_long, strict=True)}) == 1:
            return None  # all are alike, so others would be refused as well
        return self._admissible_one_by_one(members, missing)

    def coming(self, but: Collection[str]) -> list[AlikePods]:
        """Returns pods that may land anywhere: admitted ones on their way, and those in flight after a start."""
        cluster = self._cluster
        on_their_way = chain(cluster.grants.pods(), cluster.in_flight.pods())
        free = (pod for pod in on_their_way if pod.uid not in but and pod.uid not in self._holds)
        return assumed.alike(free, cluster.table)

    def _admissible_one_by_one(self, members: list[Pod], missing: int) -> list[Pod] | None:
        """Finds members as ``admissible`` does, with others in place of those that are refused beside earlier ones."""
        cluster, ledger = self._cluster, self._cluster.ledger
        chosen: list[Pod] = []
        with ledger.trial() as trial:
            for member in members:
                if len(chosen) == missing:
                    break
                trial.take_out(member.uid)
                if cluster.refusal(member) is None:
                    chosen.append(member)
                    trial.let_in(member)
                else:
                    trial.put_back(member.uid)
                if not chosen:
                    break  # the pod itself is refused
        return chosen if len(chosen) == missing else None
