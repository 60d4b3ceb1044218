"""How often something has happened that could help a pod, for those pods that somebody keeps asking about."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from policy.cluster.unschedulable import HintKey, hint_key
from policy.objects.pod import Pod


@dataclass(slots=True)
class _Alike:
    """Pods that the same events help: one of them, the UIDs of all, and how often something could help them."""

    one: Pod
    uids: set[str] = field(default_factory=set)
    helped: int = 0


class Helped:
    """Counts by pod, from the first time that somebody asks about it. Ask only about existing pods."""

    def __init__(self) -> None:
        self._kinds: dict[str, HintKey] = {}
        self._alone: dict[str, int] = {}
        self._groups: dict[HintKey, _Alike] = {}

    def count(self, pod: Pod, minimum: int) -> int:
        """Returns how often something has happened that could help the pod.

        ``minimum``: of its gang; 1 for a pod in none.
        """
        kind = hint_key(pod, minimum)
        if self._kinds.get(pod.uid) != kind:
            self.forget(pod.uid)
            self._kinds[pod.uid], self._alone[pod.uid] = kind, 0
            self._groups.setdefault(kind, _Alike(pod)).uids.add(pod.uid)
        return self._alone[pod.uid] + self._groups[kind].helped

    def forget(self, uid: str) -> None:
        """Forgets a pod that nobody asks about any more. Does nothing for an unknown one."""
        kind = self._kinds.pop(uid, None)
        if kind is None:
            return
        del self._alone[uid]
        self._groups[kind].uids.discard(uid)
        if not self._groups[kind].uids:
            del self._groups[kind]

    def uids(self) -> Iterable[str]:
        """Returns UIDs of the pods that somebody asks about."""
        return self._kinds.keys()

    def note(self, uids: Iterable[str]) -> None:
        """Notes that something has happened that could help these pods."""
        for uid in uids:
            if uid in self._alone:
                self._alone[uid] += 1

    def judge(self, helps: Callable[[Pod], bool]) -> None:
        """Notes that something has happened that could help the pods for which ``helps`` is true."""
        for group in self._groups.values():
            group.helped += helps(group.one)
