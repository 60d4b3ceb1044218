"""The kinds of objects that are read: where they are listed, how they are decoded, what they change in the cluster."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from app.store.objects import (
    GROUPS,
    LEGACY_GROUPS,
    NATIVE_GROUPS,
    VOLCANO_GROUPS,
    BudgetObject,
    ElasticQuotaObject,
    JobObject,
    Metadata,
    NamespaceObject,
    NodeObject,
    PodGroupObject,
    PodObject,
    QueueObject,
    ReservationObject,
    ResourceQuotaObject,
    batch_job_of,
    budget_of,
    elastic_quota_of,
    group_of,
    limit_of,
    namespace_of,
    node_of,
    pod_of,
    queue_of,
    reservation_of,
    weight_of,
)
from policy.cluster.cluster import Cluster
from policy.cluster.quota_manager import NAME

Key = str | tuple[str, str]
"""What identifies an object of its kind in the cluster."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects.

    ``optional`` kinds may not be installed; they are then waited for, and missing nobody. Of those what ``binds`` pods
    may stay in force when the definition is deleted. ``advisory`` ones only say which of several right answers is
    better: where there is no right to read them, they count as not installed. ``upsert`` raises InvalidObject for an
    object that cannot be used. ``version_seen`` is the version of an object as it was seen last, 0 if unknown; None
    where the cluster keeps none.
    """

    plural: str
    api_version: str
    name: str
    decoder: msgspec.json.Decoder[Any]
    key: Callable[[Metadata], Key]
    upsert: Callable[[Cluster, Any, float], None]
    delete: Callable[[Cluster, Key], None]
    known: Callable[[Cluster], Iterable[Key]]
    namespaced: bool = True
    optional: bool = False
    binds: bool = False
    advisory: bool = False
    title: str = ""
    version_seen: Callable[[Cluster, Key], int] | None = None

    @property
    def label(self) -> str:
        """What tells this kind from the others: its plural, with its group where another has the same."""
        return self.title or self.plural

    @property
    def group(self) -> str:
        """The API group; empty for the core one."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version within the group."""
        return self.api_version.rpartition("/")[2]

    @property
    def path(self) -> str:
        """The path of the list of all objects of this kind on the API server."""
        root = "/api" if "/" not in self.api_version else "/apis"
        return f"{root}/{self.api_version}/{self.plural}"

    def path_of(self, namespace: str, name: str, subresource: str = "") -> str:
        """The path of one object, or of a part of it; the namespace is empty for what has none."""
        root, _, plural = self.path.rpartition("/")
        parts = [root, "namespaces", namespace, plural, name] if namespace else [root, plural, name]
        return "/".join([*parts, subresource] if subresource else parts)


PODS = Kind(
    plural="pods",
    api_version="v1",
    name="Pod",
    decoder=msgspec.json.Decoder(PodObject),
    key=lambda meta: meta.uid or "",
    upsert=lambda cluster, obj, now: cluster.upsert_pod(pod_of(obj), now),
    delete=lambda cluster, key: cluster.delete_pod(str(key)),
    known=lambda cluster: cluster.pods,
    version_seen=lambda cluster, key: pod.version if (pod := cluster.pods.get(str(key))) else 0,
)

NODES = Kind(
    plural="nodes",
    api_version="v1",
    name="Node",
    decoder=msgspec.json.Decoder(NodeObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.upsert_node(node_of(obj)),
    delete=lambda cluster, key: cluster.delete_node(str(key)),
    known=lambda cluster: cluster.table.names,
    namespaced=False,
)

ELASTIC_QUOTAS = Kind(
    plural="elasticquotas",
    api_version="scheduling.x-k8s.io/v1alpha1",
    name="ElasticQuota",
    decoder=msgspec.json.Decoder(ElasticQuotaObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: cluster.upsert_quota(elastic_quota_of(obj)),
    delete=lambda cluster, key: cluster.delete_quota(key[0], key[1]),
    known=lambda cluster: [(namespace, name) for namespace, quotas in cluster.quotas.items() for name in quotas],
    optional=True,
    binds=True,
)

LEGACY_ELASTIC_QUOTAS = replace(
    ELASTIC_QUOTAS,
    api_version="scheduling.sigs.k8s.io/v1alpha1",
    title="elasticquotas.scheduling.sigs.k8s.io",
)
"""The same of the API group that scheduler-plugins had before. Of two of one name the newer group's counts."""

BUDGETS = Kind(
    plural="poddisruptionbudgets",
    api_version="policy/v1",
    name="PodDisruptionBudget",
    decoder=msgspec.json.Decoder(BudgetObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: cluster.upsert_budget(budget_of(obj)),
    delete=lambda cluster, key: cluster.delete_budget(key[0], key[1]),
    known=lambda cluster: cluster.budgets,
)

JOBS = Kind(
    plural="jobs",
    api_version="batch/v1",
    name="Job",
    decoder=msgspec.json.Decoder(JobObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: cluster.batch_jobs.upsert(batch_job_of(obj)),
    delete=lambda cluster, key: cluster.batch_jobs.delete((key[0], key[1])),
    known=lambda cluster: cluster.batch_jobs.keys(),
    optional=True,
    advisory=True,
)

RESERVATIONS = Kind(
    plural="reservations",
    api_version="quotaward.dev/v1alpha1",
    name="Reservation",
    decoder=msgspec.json.Decoder(ReservationObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.upsert_reservation(reservation_of(obj)),
    delete=lambda cluster, key: cluster.delete_reservation(str(key)),
    known=lambda cluster: [*cluster.reservations, *(each.name for each in cluster.reserved), *cluster.given_up],
    namespaced=False,
    optional=True,
)

QUEUES = Kind(
    plural="queues",
    api_version="scheduling.volcano.sh/v1beta1",
    name="Queue",
    decoder=msgspec.json.Decoder(QueueObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.upsert_queue(queue_of(obj)),
    delete=lambda cluster, key: cluster.delete_queue(str(key)),
    known=lambda cluster: cluster.queues,
    namespaced=False,
    optional=True,
    binds=True,
)

NAMESPACES = Kind(
    plural="namespaces",
    api_version="v1",
    name="Namespace",
    decoder=msgspec.json.Decoder(NamespaceObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.upsert_namespace(namespace_of(obj)),
    delete=lambda cluster, key: cluster.delete_namespace(str(key)),
    known=lambda cluster: cluster.membership.namespaces,
    namespaced=False,
)


def _pod_groups(kind: str, version: str) -> Kind:
    """One of the kinds of pod groups, named by plural and group."""

    def upsert(cluster: Cluster, obj: PodGroupObject, _: float) -> None:
        cluster.upsert_group(group_of(obj, kind))

    def known(cluster: Cluster) -> Iterable[Key]:
        return [key for key in cluster.membership.groups if key[1].startswith(f"{kind}/")]

    plural, _, group = kind.partition(".")
    return Kind(
        plural=plural,
        api_version=f"{group}/{version}",
        name="PodGroup",
        decoder=msgspec.json.Decoder(PodGroupObject),
        key=lambda meta: (meta.namespace or "", f"{kind}/{meta.name}"),
        upsert=upsert,
        delete=lambda cluster, key: cluster.delete_group(key[0], key[1]),
        known=known,
        optional=True,
        binds=True,
        title=kind,
    )


POD_GROUPS = (
    _pod_groups(GROUPS, "v1alpha1"),
    _pod_groups(VOLCANO_GROUPS, "v1beta1"),
    NATIVE_POD_GROUPS := _pod_groups(NATIVE_GROUPS, "v1beta1"),
    LEGACY_POD_GROUPS := _pod_groups(LEGACY_GROUPS, "v1alpha1"),
)


def _upsert_resource_quota(cluster: Cluster, obj: ResourceQuotaObject) -> None:
    namespace, name = obj.metadata.namespace or "", obj.metadata.name
    cluster.upsert_weight(namespace, name, weight_of(obj))
    if name == NAME:
        cluster.upsert_limit(namespace, limit_of(obj))


def _delete_resource_quota(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.delete_weight(namespace, name)
    if name == NAME:
        cluster.delete_limit(namespace)


RESOURCE_QUOTAS = Kind(
    plural="resourcequotas",
    api_version="v1",
    name="ResourceQuota",
    decoder=msgspec.json.Decoder(ResourceQuotaObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: _upsert_resource_quota(cluster, obj),
    delete=lambda cluster, key: _delete_resource_quota(cluster, key[0], key[1]),
    known=lambda cluster: {*cluster.membership.weights, *((namespace, NAME) for namespace in cluster.limits)},
)

KINDS = (
    *(NAMESPACES, QUEUES, *POD_GROUPS, RESOURCE_QUOTAS, NODES, JOBS),  # first what says which queue a pod is in
    *(PODS, ELASTIC_QUOTAS, LEGACY_ELASTIC_QUOTAS, BUDGETS, RESERVATIONS),
)
QUOTA_KINDS = (ELASTIC_QUOTAS, LEGACY_ELASTIC_QUOTAS)
SUCCESSORS = {LEGACY_ELASTIC_QUOTAS.label: ELASTIC_QUOTAS, LEGACY_POD_GROUPS.label: POD_GROUPS[0]}
"""The kind of today for each that scheduler-plugins had before, by its label."""
