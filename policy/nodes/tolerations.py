"""Which taints keep pods off, and which of them some of many pods tolerate. Source: TaintToleration of kube-scheduler.

A node that none of the pods in question tolerates is nothing to share among them, be it ever so empty.
"""

import re
from collections.abc import Hashable
from typing import Protocol

from policy.objects.constraints import Taint, Toleration

MOST_SETS = 100
"""Distinct sets of tolerations that are told apart: tenants may invent as many as they like."""
EVERYTHING = (Toleration(operator="Exists"),)
"""Tolerates every taint. So do, for all we know, pods with a set that is one too many."""

_FORBIDDING = ("NoSchedule", "NoExecute")
_OF_LOST_NODES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_MOST_KEPT = 1000
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")


class Tolerating(Protocol):
    """Whoever tolerates some taints, or does not."""

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether none of these taints, of one node, keeps it off."""
        ...

    @property
    def version(self) -> Hashable:
        """Another one whenever the answer may be another."""
        ...


class One:
    """What a single pod tolerates."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        self.version = tolerations

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether none of these taints keeps the pod off."""
        return tolerates(self.version, taints)


ALL = One(EVERYTHING)


class Several:
    """What some of several pods tolerate. ``version`` changes with the set of their distinct sets of tolerations."""

    def __init__(self) -> None:
        """Nobody: that tolerates no taint."""
        self.version = 0
        self._sets: dict[tuple[Toleration, ...], int] = {}
        self._of: dict[str, tuple[Toleration, ...]] = {}
        self._known: dict[tuple[Taint, ...], bool] = {}

    def put(self, uid: str, tolerations: tuple[Toleration, ...]) -> None:
        """A pod is one of them, or tolerates something else now."""
        special = tuple(each for each in tolerations if not _is_of_lost_nodes(each))
        if self._of.get(uid, ()) == special:
            return
        self.remove(uid)
        if special:
            if special not in self._sets and len(self._sets) >= MOST_SETS:
                special = EVERYTHING
            self._of[uid] = special
            self._sets[special] = self._sets.get(special, 0) + 1
            if self._sets[special] == 1:
                self._changed()

    def remove(self, uid: str) -> None:
        """A pod is none of them any more; of one that was not it is no error."""
        special = self._of.pop(uid, None)
        if special is not None:
            self._sets[special] -= 1
            if not self._sets[special]:
                del self._sets[special]
                self._changed()

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether none of these taints keeps all of them off. A node without any is for everybody."""
        if not taints:
            return True
        known = self._known.get(taints)
        if known is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            known = self._known[taints] = any(tolerates(each, taints) for each in self._sets)
        return known

    def _changed(self) -> None:
        self.version += 1
        self._known.clear()


class Either:
    """What some of these or of those tolerate."""

    def __init__(self, *parts: Several) -> None:
        self._parts = parts

    @property
    def version(self) -> Hashable:
        """Another one whenever that of a part is another."""
        return tuple(part.version for part in self._parts)

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether none of these taints keeps all of them off."""
        return any(part.tolerates(taints) for part in self._parts)


def forbidding(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Those that keep pods off, in one order. The others only make a node less liked."""
    found = [taint for taint in taints if taint.effect in _FORBIDDING]
    return tuple(sorted(found, key=lambda taint: (taint.key, taint.value, taint.effect)))


def tolerates(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> bool:
    """Whether none of the taints keeps a pod off."""
    return all(
        any(_tolerates_one(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in _FORBIDDING
    )


def _tolerates_one(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal":
            return toleration.value == taint.value
        case "Gt" | "Lt":
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    if not (_DECIMAL.fullmatch(toleration.value) and _DECIMAL.fullmatch(taint.value)):
        return False
    theirs, ours = int(taint.value), int(toleration.value)
    return theirs > ours if toleration.operator == "Gt" else theirs < ours


def _is_of_lost_nodes(toleration: Toleration) -> bool:
    """Whether it only says how long a pod stays on a node that is not ready, as the API server adds to every pod."""
    return toleration.effect == "NoExecute" and toleration.key in _OF_LOST_NODES
