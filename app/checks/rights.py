"""All rights that Quotaward needs on the API server, as the manifests grant them (a test compares them)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus

from app.checks.finding import Finding, error, info
from app.job_kinds import BUILT_IN, Row
from app.settings import LeaderSettings, ReclaimSettings
from app.store.jobs import JOBS
from app.store.kinds import KINDS, QUOTA_KINDS, SUCCESSORS
from app.store.queues import QUEUES
from app.store.reservations import RESERVATIONS

RBAC = "manifests/rbac"
ROLES = ("ClusterRole", "ClusterRoleBinding")
"""Kinds of the two objects called quotaward that give it all rights but those to its Lease."""
AGAIN = "apply your own overlay again (kubectl apply --server-side -k DIRECTORY)"


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a resource. ``needed``: something fails without it. ``given_by``: the folder of manifests to apply."""

    group: str
    resource: str
    verb: str
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    needed: bool = True
    given_by: str = RBAC

    def __str__(self) -> str:
        of = f".{self.group}" if self.group else ""
        part = f"/{self.subresource}" if self.subresource else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{of}{part}{where}"


EVERYTHING = Right("*", "*", "*")
"""A right of administrators alone."""
OWN = frozenset(
    (
        Right("", "pods", "create", "eviction"),
        Right(QUEUES.group, QUEUES.plural, "patch", "status"),
        Right(RESERVATIONS.group, RESERVATIONS.plural, "create"),
        *(Right(QUEUES.group, QUEUES.plural, verb) for verb in ("list", "watch")),
    )
)
"""Rights that no role of a scheduler has, so whoever lacks all of them lacks Quotaward's role."""


def lack(who: str, right: Right) -> Finding:
    """Returns the finding that somebody lacks a right."""
    if not right.needed:
        return info(f"{who} may not {right}; Quotaward works without that right (see {right.given_by})")
    return error(
        f"{who} may not {right}: {f'{AGAIN}, which has it' if right.given_by == RBAC else f'see {right.given_by}'}"
    )


def nothing(who: str, answers: dict[str, int]) -> str:
    """Says that somebody lacks Quotaward's role; ``answers``: the API server's status for each kind of ROLES."""
    gone = [kind for kind, status in answers.items() if status == HTTPStatus.NOT_FOUND]
    if gone:
        why = f"{' and '.join(f'{kind} quotaward' for kind in gone)} {'are' if gone[1:] else 'is'} missing"
    elif all(status == HTTPStatus.OK for status in answers.values()):
        why = "ClusterRole quotaward is not bound to it, or has lost its rules"
    else:
        why = "its ClusterRole or its ClusterRoleBinding is missing"
    return f"{who} may do nothing that only Quotaward needs: {why}; {AGAIN}"


def rights(leader: LeaderSettings, *, jobs_wait: bool = False) -> Iterator[Right]:
    """Yields every right that manifests/rbac grants. ``jobs_wait``: Jobs of some namespace wait as a whole."""
    for kind in KINDS:
        without = kind.advisory or kind.label in SUCCESSORS
        for verb in ("list", "watch"):
            yield Right(kind.group, kind.plural, verb, needed=not without or (jobs_wait and kind is JOBS))
    for kind in QUOTA_KINDS:
        yield Right(kind.group, kind.plural, "patch", "status", needed=kind.label not in SUCCESSORS)
    yield Right(QUEUES.group, QUEUES.plural, "patch", "status")
    yield Right("", "pods", "patch", "status")
    yield Right("", "pods", "create", "eviction")
    yield Right("", "resourcequotas", "create")
    for verb in ("patch", "delete"):
        yield Right("", "resourcequotas", verb, name="quotaward")
    for verb in ("create", "delete"):
        yield Right(RESERVATIONS.group, RESERVATIONS.plural, verb)
    yield Right(RESERVATIONS.group, RESERVATIONS.plural, "patch", "status")
    for verb in ("create", "patch"):
        yield Right("", "events", verb)
    yield Right("", "events", "list", needed=False)
    lease = "coordination.k8s.io", "leases"
    yield Right(*lease, "create", namespace=leader.namespace)
    for verb in ("get", "update"):
        yield Right(*lease, verb, name=leader.name, namespace=leader.namespace)


def rights_to_delete(reclaim: ReclaimSettings) -> Iterator[Right]:
    """Yields every right that manifests/patience grants. They are only needed with ``reclaim.budgetPatience``."""
    yield Right("", "pods", "delete", needed=reclaim.budget_patience is not None, given_by="manifests/patience")


def rights_to_start_jobs(*, needed: bool, rows: Iterable[Row] = ()) -> Iterator[Right]:
    """Yields every right that manifests/jobs/queued grants. ``needed``: Jobs of some namespace wait as a whole.

    For the ``rows`` of the table of kinds of jobs, also those of manifests/jobs/kinds.
    """
    yield Right(JOBS.group, JOBS.plural, "patch", needed=needed, given_by="manifests/jobs/queued")
    for row in rows:
        folder = f"manifests/jobs/kinds/{row.kind.lower()}" if row.kind in BUILT_IN else "docs/jobs.md"
        for verb in ("list", "watch", "patch"):
            yield Right(row.group, row.plural, verb, needed=needed, given_by=folder)
