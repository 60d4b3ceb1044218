"""Quotaward with one of its rules broken, to see that the checker finds it.

``python -m tests.chaos.mutants MUTANT serve ...`` is ``quotaward serve ...`` with the mutant of that name.
"""

import asyncio
import sys
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from app.actuators.kubernetes import KubernetesActuator
from app.cli import main
from app.controllers import status
from app.controllers.wake import Wake
from policy.cluster.devices import Devices
from policy.cluster.reservations import Reservations
from policy.cluster.reserved_nodes import ReservedNodes
from policy.objects.pod import Pod
from policy.objects.queued_job import is_member
from policy.objects.reservation import STARVING, Reservation
from policy.quota import admission, elastic_quota, entitlement, exempt, exempt_from_eviction
from policy.quota.ledger import Ledger
from policy.quota.rule import Rule
from policy.reserve import promises
from policy.reserve.promises import PromiseDecision

_reserve = KubernetesActuator.reserve
_gone_at = ReservedNodes.gone_at
_noted = promises.noted
_reserved_from = Reservations.nodes_reserved_from


async def _forever(*_: object) -> None:
    await asyncio.Event().wait()


async def _record_only_starving(self: KubernetesActuator, reservation: Reservation) -> None:
    if reservation.reason == STARVING:
        await _reserve(self, reservation)


def _gone_at_once(nodes: ReservedNodes, pod: Pod) -> float | None:
    """When a pod of enforced run time would be gone if it ended as soon as it has started."""
    return None if _gone_at(nodes, pod) is None else nodes._cluster.protection.now


def _reserved_for_pods(reservations: Reservations, pod: Pod) -> set[str]:
    """The nodes that are kept from a pod, but for those that are reserved for Jobs that wait as a whole."""
    for_jobs = {each.node for each in reservations.reserved if is_member(each.pod.uid)}
    return {*_reserved_from(reservations, pod)} - for_jobs


def _closed_to_pods(reservations: Reservations, pod: Pod) -> AbstractSet[str]:
    """The nodes that are kept from a pod: none from those of Jobs."""
    return frozenset() if pod.job is not None else _reserved_from(reservations, pod)


def _put_off(before: Reservation, decision: PromiseDecision, now: float) -> Reservation:
    """Notes a promise, and once a later one."""
    after = _noted(before, decision, now)
    if before.moved or not before.promised_start:
        return after
    return replace(after, promised_start=after.promised_start + 60, moved="a mutant has moved it")


def _without(rule: Rule[Any]) -> object:
    """That pods are not asked about a rule of elastic quotas."""
    return patch.object(admission, "OF_QUOTAS", [each for each in admission.OF_QUOTAS if each[0] is not rule])


MUTANTS: dict[str, tuple[Callable[[], object], str]] = {
    "max-is-not-enforced": (lambda: _without(elastic_quota.MAX), "above its max"),
    "borrowing-is-not-bounded": (lambda: _without(elastic_quota.BORROWING), "nobody has left"),
    "grants-do-not-count": (lambda: patch.object(Ledger, "enter_lifted", lambda *_, **__: None), "above its max"),
    "min-protects-nobody": (lambda: patch.object(entitlement, "over_min", lambda *_: True), "was within its min"),
    "opting-out-is-ignored": (
        lambda: patch.object(exempt_from_eviction, "_may_opt_out", lambda *_: False),
        "has opted out",
    ),
    "critical-pods-are-evicted": (
        lambda: patch.object(exempt, "is_critical", lambda _: False),
        "is critical to the system",
    ),
    "daemons-are-evicted": (lambda: patch.object(exempt_from_eviction, "SYSTEM_OWNERS", ()), "is a pod of a DaemonSet"),
    "plans-are-not-recorded": (
        lambda: patch.object(KubernetesActuator, "reserve", _record_only_starving),
        "says for whom",
    ),
    "reserved-nodes-are-open": (
        lambda: patch.object(Reservations, "nodes_reserved_from", lambda *_: set()),
        "reserved for",
    ),
    "backfill-does-not-fit-in-time": (
        lambda: patch.object(ReservedNodes, "gone_at", _gone_at_once),
        "is not gone by the promised start",
    ),
    "backfill-does-not-heed-nodes-of-jobs": (
        lambda: patch.object(Reservations, "nodes_reserved_from", _reserved_for_pods),
        "/ordinary was bound to whole, reserved for",
    ),
    "other-jobs-start-into-reserved-room": (
        lambda: patch.multiple(
            Reservations,
            free_beside_reserved=lambda reservations, _: reservations._cluster.table.free,
            nodes_reserved_from=_closed_to_pods,
        ),
        "/small-",
    ),
    "promises-are-moved": (lambda: patch.object(promises, "noted", _put_off), "and then 60 s later"),
    "nobody-is-woken": (lambda: patch.object(Wake, "run", _forever), "waits although it may run"),
    "status-is-wrong": (
        lambda: patch.object(
            status, "used_of", lambda _cluster, _quota, used: {name: 2 * each for name, each in used.items()}
        ),
        "the status of ElasticQuota",
    ),
    "claims-do-not-count": (lambda: patch.object(Devices, "_add", lambda *_: None), "/nic then, above its max"),
    "shared-claims-count-for-each-pod": (
        lambda: patch.object(Devices, "_pays", lambda *_, **__: True),
        "/nic is used; it is",
    ),
}
"""By name: how the rule is broken, and what the checker says of it."""


if __name__ == "__main__":
    MUTANTS[sys.argv.pop(1)][0]().start()
    main()
