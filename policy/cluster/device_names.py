"""The names of devices in quotas and queues: a device class has several, and one of them counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from policy.objects.device import IMPLICIT, as_in_pods, class_of
from policy.quota.elastic_quota import elastic_quota

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policy.objects.device import DeviceClass
    from policy.objects.queue import Queue
    from policy.objects.resources import Resources
    from policy.quota.elastic_quota import ElasticQuota


class DeviceNames:
    """The device classes, and the quotas and queues that name one, as they are written."""

    def __init__(self) -> None:
        self.classes: dict[str, DeviceClass] = {}
        self.of_quotas: dict[tuple[str, str], ElasticQuota] = {}
        self.of_queues: dict[str, Queue] = {}

    def upsert_class(self, name: str, of: DeviceClass) -> bool:
        """Adds or changes a device class; returns whether something has changed."""
        if self.classes.get(name) == of:
            return False
        self.classes[name] = of
        return True

    def delete_class(self, name: str) -> bool:
        """Removes a device class; returns whether there was one."""
        return self.classes.pop(name, None) is not None

    def key_of(self, resource: str) -> str:
        """Returns the name by which a resource counts: the names of a device class are one."""
        name = class_of(resource)
        return self.key_of_class(name) if name else resource

    def key_of_class(self, name: str) -> str:
        """Returns the name by which the devices of a class count."""
        of = self.classes.get(name)
        return (of.extended if of is not None else "") or IMPLICIT + name

    def names_in(self, written: Resources) -> dict[str, list[str]]:
        """Returns the names that the bounds of an object have for each resource, by the name by which it counts."""
        names: dict[str, list[str]] = {}
        for name in written:
            names.setdefault(self.key_of(as_in_pods(name)), []).append(name)
        return names

    def quota(self, quota: ElasticQuota) -> ElasticQuota:
        """Returns a quota with the names by which resources count. See ``forget_quota``."""
        least, most = quota.written or (quota.min, quota.max)
        named, key = {**least, **most}, (quota.namespace, quota.name)
        if _names_class(named):
            self.of_quotas[key] = quota
        else:
            self.of_quotas.pop(key, None)
        keeps = self._keeps(named)
        if keeps and quota.written is None:
            return quota
        renamed = elastic_quota(quota.namespace, quota.name, quota.created, self._bounds(least), self._bounds(most))
        return replace(
            quota,
            min=renamed.min,
            max=renamed.max,
            min_over_max=renamed.min_over_max,
            written=None if keeps else (least, most),
        )

    def forget_quota(self, namespace: str, name: str) -> None:
        """Forgets a quota that is gone."""
        self.of_quotas.pop((namespace, name), None)

    def queue(self, queue: Queue) -> Queue:
        """Returns a queue with the names by which resources count. See ``forget_queue``."""
        most, kept = queue.written or (queue.capability, queue.guarantee)
        named = {**most, **kept}
        if _names_class(named):
            self.of_queues[queue.name] = queue
        else:
            self.of_queues.pop(queue.name, None)
        keeps = self._keeps(named)
        if keeps and queue.written is None:
            return queue
        written = None if keeps else (most, kept)
        return replace(queue, capability=self._bounds(most), guarantee=self._bounds(kept), written=written)

    def forget_queue(self, name: str) -> None:
        """Forgets a queue that is gone."""
        self.of_queues.pop(name, None)

    def _keeps(self, names: Iterable[str]) -> bool:
        """Whether all these names of a quota or queue are those by which resources count."""
        return all(self.key_of(as_in_pods(name)) == name for name in names)

    def _bounds(self, given: Resources) -> Resources:
        """Returns bounds by the names that count. Of several names of one resource the smallest amount counts."""
        bounded: dict[str, int] = {}
        for name, amount in given.items():
            key = self.key_of(as_in_pods(name))
            bounded[key] = min(amount, bounded.get(key, amount))
        return bounded


def _names_class(names: Iterable[str]) -> bool:
    return any(class_of(as_in_pods(name)) for name in names)
