"""Takes pods out of the ledger, or lets them in, for no longer than a question takes.

However the question ends, also by an exception, every pod counts afterwards as it did before. Putting them back asks no
rule, so it cannot fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policy.objects.pod import Pod
    from policy.quota.ledger import Entry, Kind, Ledger


class Lifted:
    """A context in which one pod is not in the ledger, so that the rules can be asked about it alone.

    It is quicker than a trial: the claims of the pod's queue and namespace stay as they were, as no rule counts them
    against a pod of their own. They are updated where the pod was in another queue than it is asked about in.
    """

    __slots__ = ("_alone", "_before", "_ledger", "_pod")

    _before: Entry | None

    def __init__(self, ledger: Ledger, pod: Pod) -> None:
        self._ledger, self._pod, self._before, self._alone = ledger, pod, None, False

    def __enter__(self) -> Self:
        if (entry := self._ledger.entries.get(self._pod.uid)) is not None:
            own = self._pod.namespace, self._ledger.queue_of(self._pod)
            self._alone = (entry.namespace, entry.queue) == own
            self._ledger.lift(self._pod.uid, alone=self._alone)
            self._before = entry
        return self

    def enter(self, kind: Kind) -> None:
        """Enters the pod for good, so that leaving the context does not undo it. Not for pending pods."""
        self._ledger.enter_lifted(kind, self._pod, self._before, alone=self._alone)
        self._before = None

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            self._ledger.lower(self._pod.uid, self._before, alone=self._alone)


class Trial:
    """A context in which pods are taken out of the ledger or count as admitted, to ask about the rest."""

    __slots__ = ("_ledger", "_let_in", "_stood")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stood: dict[str, Entry] = {}
        self._let_in: list[str] = []

    def __enter__(self) -> Self:
        return self

    def take_out(self, uid: str) -> None:
        """Takes out a pod. Does nothing if it is not in the ledger."""
        entry = self._ledger.set_aside(uid)
        if entry is not None:
            self._stood[uid] = entry

    def take_out_all(self, uids: Iterable[str]) -> None:
        """Takes out pods, those that are alike in one step."""
        self._stood |= self._ledger.set_aside_all(uids)

    def put_back(self, uid: str) -> None:
        """Puts back a pod that was taken out."""
        entry = self._stood.pop(uid, None)
        if entry is not None:
            self._ledger.put_back(uid, entry)

    def let_in(self, pod: Pod) -> None:
        """Counts a pod that was taken out as admitted."""
        self._ledger.put_back(pod.uid, self._ledger.entry("granted", pod))
        self._let_in.append(pod.uid)

    def let_in_alike(self, pods: Sequence[Pod]) -> None:
        """Counts pods that were taken out as admitted, in one step. The rules treat them alike."""
        if pods:
            entry, uids = self._ledger.entry("granted", pods[0]), [pod.uid for pod in pods]
            self._ledger.put_back_all(dict.fromkeys(uids, entry))
            self._let_in += uids

    def __exit__(self, *_: object) -> None:
        self._ledger.end_assuming(self._let_in, self._stood)
