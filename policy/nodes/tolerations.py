"""Decides which taints keep pods off a node, and which of them at least one of many pods tolerates.

A node that none of the pods in question tolerates adds nothing to what they share, however empty it is. Source:
TaintToleration of kube-scheduler.
"""

import re
from collections.abc import Hashable
from typing import Protocol

from policy.objects.constraints import Taint, Toleration

MOST_SETS = 100
"""The most distinct sets of tolerations that are told apart: tenants may invent as many as they like."""
EVERYTHING = (Toleration(operator="Exists"),)
"""Tolerates every taint. Pods whose set is beyond ``MOST_SETS`` count as if they had this one."""

_FORBIDDING = ("NoSchedule", "NoExecute")
_OF_LOST_NODES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_MOST_KEPT = 1000
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")


class Tolerating(Protocol):
    """One pod or several that tolerate some taints and not others."""

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether none of these taints, all of one node, keeps it off."""
        ...

    @property
    def version(self) -> Hashable:
        """A value that changes whenever an answer may change."""
        ...


class One:
    """The tolerations of a single pod."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        self.version = tolerations

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether none of these taints keeps the pod off."""
        return tolerates(self.version, taints)


ALL = One(EVERYTHING)


class Several:
    """The taints that at least one of several pods tolerates. ``version`` changes with their distinct tolerations."""

    def __init__(self) -> None:
        """Begins without pods, so that no taint is tolerated."""
        self.version = 0
        self._sets: dict[tuple[Toleration, ...], int] = {}
        self._of: dict[str, tuple[Toleration, ...]] = {}
        self._known: dict[tuple[Taint, ...], bool] = {}

    def put(self, uid: str, tolerations: tuple[Toleration, ...]) -> None:
        """Adds a pod, or replaces its tolerations."""
        special = tuple([each for each in tolerations if not _is_of_lost_nodes(each)]) if tolerations else ()
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
        """Removes a pod. Does nothing if it was not there."""
        special = self._of.pop(uid, None)
        if special is not None:
            self._sets[special] -= 1
            if not self._sets[special]:
                del self._sets[special]
                self._changed()

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether at least one of the pods is not kept off by these taints. A node without taints is open to all."""
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
    """The taints that some pod of any of the parts tolerates."""

    def __init__(self, *parts: Several) -> None:
        self._parts = parts

    @property
    def version(self) -> Hashable:
        """The versions of the parts."""
        return tuple(part.version for part in self._parts)

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Whether at least one of the pods is not kept off by these taints."""
        return any(part.tolerates(taints) for part in self._parts)


def forbidding(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Returns the taints that keep pods off, sorted. The others only make a node less preferred."""
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
    """Whether it only limits a pod's stay on a node that is not ready. The API server adds such to every pod."""
    return toleration.effect == "NoExecute" and toleration.key in _OF_LOST_NODES
