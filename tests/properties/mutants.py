"""Rules of the core, each broken in one way, to see that tests find it.

``QUOTAWARD_MUTANT=NAME python -m pytest -p tests.properties.mutants FILES`` runs tests on the mutant of that name.
"""

import os
from collections.abc import Callable, Iterable
from math import inf
from unittest.mock import patch

from policy.cluster import gate_admission
from policy.cluster.cluster import Cluster
from policy.cluster.lowered import Lowered
from policy.cluster.queued_jobs import QueuedJobs
from policy.cluster.reservations import Reservations
from policy.cluster.unschedulable import UnschedulablePods
from policy.nodes import tolerations
from policy.objects.batch_job import BatchJob
from policy.objects.pod import Pod
from policy.objects.resources import NOTHING
from policy.preemption import eviction_trial, reclaim, victims
from policy.queueing import ungating
from policy.quota import entitlement, exempt
from policy.quota.account import Account, Pool
from policy.quota.ledger import Ledger
from policy.reserve import node_reservation

_EXEMPT = ("tests/unit/quota/test_exempt.py", "tests/properties/test_exempt.py")
_GANGS = ("tests/unit/preemption/test_reclaim_for_gangs.py",)
_ENDING = ("tests/properties/test_evictions_end.py",)
_CLAIMS = ("tests/unit/quota/test_elastic_quota_claims.py", "tests/properties/test_borrowing.py")
_ELASTIC = ("tests/unit/cluster/test_queued_jobs_elastic.py",)
_LOWERED = ("tests/unit/cluster/test_lowered.py",)
_TAKEN_BACK = ("tests/unit/preemption/test_losses.py",)
_RESERVED = ("tests/unit/app/test_reserve_for_jobs.py",)
_TOLERATIONS = ("tests/unit/nodes/test_tolerations.py",)

_entitlement = entitlement.entitlement


def _always(answer: object) -> Callable[..., object]:
    return lambda *_, **__: answer


def _alone(ledger: Ledger, pod: Pod, *_: object, **options: bool) -> entitlement.Entitlement:
    """What a pod may take back if nobody starts together with it."""
    return _entitlement(ledger, pod, **options)


def _whatever_namespace(_: Ledger, pod: Pod, __: Iterable[str]) -> str:
    return "it says so" if exempt.is_critical(pod) else ""


def _all_or_nothing(cluster: Cluster, pod: Pod, has_room: Callable[[Pod], bool]) -> Pod | None:
    """An elastic Job with all of its pods, if there is room for these."""
    return pod if cluster.check(pod) is None and has_room(pod) else None


def _minimum(cluster: Cluster, pod: Pod, has_room: Callable[[Pod], bool]) -> Pod | None:
    """An elastic Job with as few pods as are enough, if there is room for these."""
    return _all_or_nothing(cluster, cluster.queued_jobs.at_least(pod), has_room)


MUTANTS: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "nobody-is-exempt": (lambda: patch.object(exempt, "why_exempt", _always("")), _EXEMPT),
    "whoever-is-critical-is-exempt": (lambda: patch.object(exempt, "why_exempt", _whatever_namespace), _EXEMPT),
    "critical-pods-are-victims": (lambda: patch.object(exempt, "is_critical", _always(answer=False)), _EXEMPT),
    "held-nodes-are-closed-to-exempt-pods": (
        lambda: patch.object(Reservations, "_may_go_anywhere", _always(answer=False)),
        _EXEMPT,
    ),
    "members-of-a-gang-take-back-alone": (lambda: patch.object(eviction_trial, "entitlement", _alone), _GANGS),
    "evicted-pods-do-not-come-back": (lambda: patch.object(Ledger, "send_back", Ledger.set_aside), _ENDING),
    "a-gang-gets-only-some-of-its-plans": (lambda: patch.object(reclaim, "mates_of", _always([])), _GANGS),
    "budgets-let-some-victims-go": (lambda: patch.object(reclaim, "held_back", _always([])), _GANGS),
    "own-pods-stay": (lambda: patch.object(victims, "let_own_leave_first", _always(answer=False)), _GANGS),
    "owners-claim-nothing": (lambda: patch.object(Account, "claims", _always(NOTHING)), _CLAIMS),
    "others-claims-are-not-heeded": (lambda: patch.object(Pool, "claimed_by_others", _always(0)), _CLAIMS),
    "who-waits-in-vain-goes-on-claiming": (
        lambda: patch.object(UnschedulablePods, "keeps_claim", _always(answer=True)),
        _CLAIMS,
    ),
    "elastic-jobs-start-only-whole": (lambda: patch.object(ungating, "largest_part", _all_or_nothing), _ELASTIC),
    "elastic-jobs-start-with-their-minimum": (lambda: patch.object(ungating, "largest_part", _minimum), _ELASTIC),
    "elastic-jobs-are-owed-all-that-they-ask-for": (
        lambda: patch.object(QueuedJobs, "at_least", lambda _, pod: pod),
        _ELASTIC,
    ),
    "elastic-jobs-grow-without-room": (
        lambda: patch.object(ungating, "may_go_without_room", _always(answer=True)),
        _ELASTIC,
    ),
    "elastic-jobs-grow-before-others-start": (lambda: patch.object(gate_admission, "BEHIND", 0.0), _ELASTIC),
    "grants-of-elastic-jobs-are-forgotten": (lambda: patch.object(QueuedJobs, "grant", _always(None)), _ELASTIC),
    "grants-stay-when-the-start-fails": (lambda: patch.object(QueuedJobs, "not_started", _always(None)), _ELASTIC),
    "elastic-jobs-grow-while-they-are-taken-from": (
        lambda: patch.object(Lowered, "is_taken_from", _always(answer=False)),
        (*_ELASTIC, *_LOWERED),
    ),
    "lowered-jobs-grow-at-once": (lambda: patch.object(Lowered, "rests", _always(answer=False)), _LOWERED),
    "pods-that-go-unasked-do-not-count": (lambda: patch.object(Lowered, "_one_goes", _always(None)), _LOWERED),
    "lowered-jobs-are-waited-for-for-ever": (lambda: patch.object(Lowered, "tick", _always(None)), _LOWERED),
    "elastic-jobs-have-nothing-to-spare": (lambda: patch.object(BatchJob, "spare", property(_always(0))), _TAKEN_BACK),
    "elastic-jobs-can-spare-all": (
        lambda: patch.object(BatchJob, "spare", property(lambda job: job.runs)),
        _TAKEN_BACK,
    ),
    "nodes-of-a-started-job-are-given-up-one-by-one": (
        lambda: patch.object(node_reservation, "_has_come", _always(answer=False)),
        _RESERVED,
    ),
    "nodes-of-a-started-job-are-kept-for-ever": (
        lambda: patch.object(node_reservation, "given_up_at", _always(inf)),
        _RESERVED,
    ),
    "every-taint-is-tolerated": (lambda: patch.object(tolerations, "tolerates", _always(answer=True)), _TOLERATIONS),
    "no-taint-is-tolerated": (lambda: patch.object(tolerations, "tolerates", _always(answer=False)), _TOLERATIONS),
    "tolerations-stay-when-their-pods-go": (
        lambda: patch.object(tolerations.Several, "remove", _always(None)),
        _TOLERATIONS,
    ),
}
"""By name: how the rule is broken, and the tests of which one has to fail."""


def pytest_configure() -> None:
    """Break the rule, for the whole run."""
    MUTANTS[os.environ["QUOTAWARD_MUTANT"]][0]().start()
