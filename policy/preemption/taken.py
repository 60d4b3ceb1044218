"""Taken: the pods that are out of the ledger while a preemption is tried out, and how they are put back."""

from collections.abc import Collection, Iterable

from policy.cluster.cluster import Cluster
from policy.objects.group import Key
from policy.objects.pod import Pod
from policy.preemption.losses import Losses
from policy.quota.entry import Entry


class Taken:
    """All that is taken out of the ledger so far: the pending pod, pods that leave in any case, and victims.

    ``own`` are less important pods of the pending pod's namespace that leave first; they count as leaving. ``leaving``
    are UIDs of pods that leave in any case, ``gone`` of these and the victims. ``victims`` are by UID, each with its
    entry in the ledger as it was. ``by_gang`` counts victims by group, ``changes`` how often one was taken or given
    back. ``losses`` knows the Jobs that fail.
    ``together`` names, by UID, the members of a gang that can only be given back together, as one frozenset.
    """

    __slots__ = ("_aside", "_cluster", "by_gang", "changes", "gone", "leaving", "losses", "own", "together", "victims")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._aside: dict[str, Entry] = {}
        self.own: tuple[Pod, ...] = ()
        self.changes = 0
        self.leaving = frozenset[str]()
        self.gone = set[str]()
        self.victims: dict[str, tuple[Pod, Entry | None]] = {}
        self.by_gang: dict[Key, int] = {}
        self.together: dict[str, frozenset[str]] = {}
        self.losses = Losses(cluster.batch_jobs)

    def open(self, pod: Pod) -> None:
        """Takes the pending pod out of the ledger, and those that leave in any case. There are no victims yet."""
        cluster = self._cluster
        going = cluster.leaving.uids
        self.own = tuple(each for each in self.own if cluster.pods.get(each.uid) is each)
        self.leaving = going | {each.uid for each in self.own}
        self._aside = cluster.ledger.set_aside_all((pod.uid, *self.leaving))
        self.gone = set(self.leaving)
        self.by_gang, self.together = {}, {}
        self.losses = Losses(cluster.batch_jobs, (cluster.pods[uid] for uid in going))
        for each in self.own:
            self.losses.take(each)

    def close(self) -> None:
        """Puts everything back, also where somebody was just being taken or given back."""
        ledger = self._cluster.ledger
        ledger.set_aside_all(self.victims)  # as they wait anew
        ledger.put_back_all({uid: entry for uid, (_, entry) in self.victims.items() if entry is not None})
        ledger.put_back_all(self._aside)
        self.victims, self._aside = {}, {}

    def pods(self) -> list[Pod]:
        """The victims, in the order in which they were taken."""
        return [pod for pod, _ in self.victims.values()]

    def take(self, pod: Pod) -> None:
        """Makes a pod a victim: in the ledger it waits anew, or is out."""
        self.changes += 1
        self.victims[pod.uid] = pod, self._cluster.ledger.send_back(pod.uid)
        self.losses.take(pod)
        self.gone.add(pod.uid)
        if pod.group:
            key = pod.namespace, pod.group
            self.by_gang[key] = self.by_gang.get(key, 0) + 1

    def join(self, pod: Pod) -> None:
        """Lets all victims of a pod's gang be given back only together from now on."""
        group = pod.namespace, pod.group
        gang = frozenset(uid for uid, (each, _) in self.victims.items() if (each.namespace, each.group) == group)
        self.together.update(dict.fromkeys(gang, gang))

    def separate(self, pods: Iterable[Pod]) -> None:
        """Lets each of these be given back alone from now on."""
        for pod in pods:
            self.together.pop(pod.uid, None)

    def with_mates(self, uid: str) -> Collection[str]:
        """The UID of a victim, and of those that are given back together with it."""
        return self.together.get(uid, (uid,))

    def give_back(self, uid: str) -> list[Pod]:
        """Gives back a victim, and all that are given back together with it; returns them."""
        ledger, given_back = self._cluster.ledger, []
        for each in self.with_mates(uid):
            self.changes += 1
            pod, entry = self.victims.pop(each)
            if entry is not None:  # first: if the rest fails, nobody else would put it back
                ledger.set_aside(each)
                ledger.put_back(each, entry)
            given_back.append(pod)
            self.losses.give_back(pod)
            self.gone.discard(each)
            if pod.group:
                self.by_gang[pod.namespace, pod.group] -= 1
        return given_back

    def give_back_all(self) -> None:
        """Gives every victim back."""
        for uid in list(self.victims):
            if uid in self.victims:
                self.give_back(uid)
        self.together.clear()
