"""The table of the kinds of objects that are read."""

from collections.abc import Iterable

from app.job_kinds import Row
from app.store.budgets import BUDGETS
from app.store.custom_jobs import kind_of
from app.store.device_classes import DEVICE_CLASSES
from app.store.elastic_quotas import ELASTIC_QUOTAS, LEGACY_ELASTIC_QUOTAS
from app.store.jobs import JOBS
from app.store.kind import Kind
from app.store.limit_ranges import LIMIT_RANGES
from app.store.namespaces import NAMESPACES
from app.store.nodes import NODES
from app.store.pod_groups import LEGACY_POD_GROUPS, POD_GROUPS
from app.store.pods import PODS
from app.store.priority_classes import PRIORITY_CLASSES
from app.store.queues import QUEUES
from app.store.reservations import RESERVATIONS
from app.store.resource_claims import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from app.store.resource_quotas import RESOURCE_QUOTAS
from app.store.resource_slices import RESOURCE_SLICES
from app.store.runtime_classes import RUNTIME_CLASSES

_BEFORE_PODS = (
    *(NAMESPACES, QUEUES, *POD_GROUPS, RESOURCE_QUOTAS, NODES),  # first those that tell which queue a pod is in
    *(
        DEVICE_CLASSES,
        RESOURCE_SLICES,
        RESOURCE_CLAIM_TEMPLATES,
        RESOURCE_CLAIMS,
    ),  # what devices there are, and are taken
    *(PRIORITY_CLASSES, LIMIT_RANGES, RUNTIME_CLASSES, JOBS),  # and those that tell what a Job's pods will request
)
_OTHERS = (PODS, ELASTIC_QUOTAS, LEGACY_ELASTIC_QUOTAS, BUDGETS, RESERVATIONS)
KINDS = (*_BEFORE_PODS, *_OTHERS)


def kinds_with(rows: Iterable[Row]) -> tuple[Kind, ...]:
    """Returns all kinds that are read where these rows are in the table of kinds of jobs."""
    return (*_BEFORE_PODS, *map(kind_of, rows), *_OTHERS)


QUOTA_KINDS = (ELASTIC_QUOTAS, LEGACY_ELASTIC_QUOTAS)
SUCCESSORS = {LEGACY_ELASTIC_QUOTAS.label: ELASTIC_QUOTAS, LEGACY_POD_GROUPS.label: POD_GROUPS[0]}
"""The current kind for each former kind of scheduler-plugins, by the label of the former."""
