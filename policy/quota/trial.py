"""Takes pods out of the ledger, or lets them in, for no longer than a question takes.

However the question ends, also by an exception, every pod counts afterwards as it did before. Putting them back asks no
rule, so it cannot fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policy.objects.pod import Pod
    from policy.quota.entry import Entry
    from policy.quota.ledger import Ledger


class Lifted:
    """A context in which a pod does not count against itself, so that the rules can be asked about it alone.

    ``entry`` is how it would count if it were admitted. Once the context ends it counts so if ``admitted`` was set, and
    else as before. It is quicker than a trial: the claims of the pod's queue and namespace stay as they were, as no
    rule counts them against a pod of their own. A pod that waits in the queue that it is asked about in is not even
    taken out: rules count waiting pods only through claims, and these stay as they are.
    """

    __slots__ = ("_before", "_claims", "_entry", "_ledger", "_out", "_uid", "admitted")

    def __init__(self, ledger: Ledger, uid: str, entry: Entry) -> None:
        self._entry, self.admitted = entry, False
        self._ledger, self._uid, self._before = ledger, uid, ledger.entries.get(uid)
        before = self._before
        self._claims = before is not None and (before.namespace, before.queue) != (entry.namespace, entry.queue)
        self._out = before is not None and (before.kind != "pending" or self._claims)

    def __enter__(self) -> Self:
        if self._out:
            self._ledger.lift(self._uid, claims=self._claims)
        return self

    def __exit__(self, *_: object) -> None:
        before = self._before
        if self.admitted:
            if before is not None and not self._out:
                self._ledger.lift(self._uid, claims=False)
            self._ledger.enter_lifted(self._uid, self._entry, before, claims=self._claims)
        elif before is not None and self._out:
            self._ledger.lower(self._uid, before, claims=self._claims)


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
