"""Changes of a copy that are made for a while and taken back: that is quicker than another copy."""

from collections.abc import Iterable, Iterator
from typing import Any

from app.store.kinds import (
    BUDGETS,
    ELASTIC_QUOTAS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    Kind,
)
from app.whatif import changes
from app.whatif.changes import Change
from policy.cluster.cluster import Cluster


class Meanwhile:
    """Changes that are made, and then taken back. Not of pods that hold a grant: it would not come back with them."""

    def __init__(self, cluster: Cluster, now: float, epoch: float) -> None:
        """New pods are created at ``epoch``."""
        self._cluster = cluster
        self._now = now
        self._epoch = epoch
        self._before: list[tuple[Change, Any]] = []

    def make(self, made: Iterable[Change]) -> Iterator[None]:
        """Makes them, one after the other. Raises Problem (422) for one that cannot be made."""
        for change in made:
            self._before.append((change, _object(self._cluster, change)))
            changes.apply(self._cluster, [change], self._now, self._epoch)
            yield

    def take_back(self) -> Iterator[None]:
        """Puts back what stood there, the last first."""
        while self._before:
            _put_back(self._cluster, *self._before.pop(), self._now)
            yield


def _object(cluster: Cluster, change: Change) -> Any:  # noqa: PLR0911 - one for each kind
    """What stands there of this name, as the cluster knows it; None if nothing does."""
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
        cluster.delete_quota(obj.namespace, obj.name)  # what cannot be read would leave the good one in force
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
