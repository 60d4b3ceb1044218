"""Changes of a copy that are made and then undone, which is faster than another copy."""

from collections.abc import Iterable
from typing import Any

from app.store.budgets import BUDGETS
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.kind import Kind
from app.store.namespaces import NAMESPACES
from app.store.nodes import NODES
from app.store.pod_groups import POD_GROUPS
from app.store.pods import PODS
from app.store.queues import QUEUES
from app.whatif import changes
from app.whatif.changes import Change
from policy.cluster.cluster import Cluster
from policy.stepwise import Steps


class Meanwhile:
    """Changes that are made and then undone. Not for pods with a grant, which would be lost."""

    def __init__(self, cluster: Cluster, now: float, epoch: float) -> None:
        """New pods are created at ``epoch``."""
        self._cluster = cluster
        self._now = now
        self._epoch = epoch
        self._before: list[tuple[Change, Any]] = []

    def make_steps(self, made: Iterable[Change]) -> Steps[None]:
        """Makes the changes one by one. Raises Problem (422) for one that cannot be made."""
        for change in made:
            self._before.append((change, _object(self._cluster, change)))
            changes.apply(self._cluster, [change], self._now, self._epoch)
            yield

    def take_back_steps(self) -> Steps[None]:
        """Restores the objects, the last change first."""
        while self._before:
            _put_back(self._cluster, *self._before.pop(), self._now)
            yield


def _object(cluster: Cluster, change: Change) -> Any:  # noqa: PLR0911 - one for each kind
    """Returns the cluster's object of this name; None if there is none."""
    where = change.namespace, change.name
    if change.kind is PODS:
        return cluster.pod(*where)
    if change.kind is NODES:
        return cluster.table.node(change.name)
    if change.kind is ELASTIC_QUOTAS:
        return cluster.quotas.get(change.namespace, {}).get(change.name)
    if change.kind is QUEUES:
        return cluster.queues.get(change.name)
    if change.kind is NAMESPACES:
        return cluster.membership.namespaces.get(change.name)
    if change.kind is BUDGETS:
        return cluster.budgets.get(where)
    if change.kind in POD_GROUPS:
        return cluster.membership.groups.get((change.namespace, f"{change.kind.label}/{change.name}"))
    return cluster.membership.weights.get(where)


def _put_back(cluster: Cluster, change: Change, obj: Any, now: float) -> None:
    kind: Kind = change.kind
    if obj is None:
        key = changes.key_of(cluster, kind, change.namespace, change.name)
        if key is not None:
            kind.delete(cluster, key)
    elif kind is PODS:
        cluster.upsert_pod(obj, now)
    elif kind is NODES:
        cluster.upsert_node(obj)
    elif kind is ELASTIC_QUOTAS:
        cluster.delete_quota(obj.namespace, obj.name)  # an unreadable quota would leave the good one in force
        cluster.upsert_quota(obj)
    elif kind is QUEUES:
        cluster.upsert_queue(obj)
    elif kind is NAMESPACES:
        cluster.upsert_namespace(obj)
    elif kind is BUDGETS:
        cluster.upsert_budget(obj)
    elif kind in POD_GROUPS:
        cluster.upsert_group(obj)
    else:
        cluster.upsert_weight(change.namespace, change.name, obj)
