"""The objects from which pods get defaults when they are created: PriorityClasses, LimitRanges and RuntimeClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.objects.pod_template import class_named, created
from policy.objects.resources import NOTHING, largest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policy.cluster.cluster import Cluster
    from policy.objects.pod import MilliResources, Pod
    from policy.objects.pod_template import PodTemplate, PriorityClass


class PodDefaults:
    """The defaults of a cluster's pods, by the names of the objects that give them. Amounts are in thousandths.

    ``limit_ranges`` has, by namespace and name, what a container requests that names no request. ``runtime_classes``
    has the overhead of each.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.priority_classes: dict[str, PriorityClass] = {}
        self.runtime_classes: dict[str, MilliResources] = {}
        self.limit_ranges: dict[str, dict[str, MilliResources]] = {}
        self._requests: dict[str, MilliResources] = {}
        self._cluster = cluster

    def upsert_priority_class(self, name: str, of: PriorityClass) -> None:
        """Adds or changes a PriorityClass."""
        if self.priority_classes.get(name) != of:
            self.priority_classes[name] = of
            self._cluster.queued_jobs.defaults_changed()

    def delete_priority_class(self, name: str) -> None:
        """Removes a PriorityClass. Does nothing for an unknown one."""
        if self.priority_classes.pop(name, None) is not None:
            self._cluster.queued_jobs.defaults_changed()

    def upsert_runtime_class(self, name: str, overhead: MilliResources) -> None:
        """Adds or changes a RuntimeClass."""
        if self.runtime_classes.get(name) != overhead:
            self.runtime_classes[name] = overhead
            self._cluster.queued_jobs.defaults_changed()

    def delete_runtime_class(self, name: str) -> None:
        """Removes a RuntimeClass. Does nothing for an unknown one."""
        if self.runtime_classes.pop(name, None) is not None:
            self._cluster.queued_jobs.defaults_changed()

    def upsert_limit_range(self, namespace: str, name: str, requests: MilliResources) -> None:
        """Adds or changes a LimitRange."""
        of_namespace = self.limit_ranges.setdefault(namespace, {})
        before = of_namespace.get(name)
        if before != requests:
            of_namespace[name] = requests
            so_far = [self._requests.get(namespace, NOTHING)] if before is None else of_namespace.values()
            self._note(namespace, largest(*so_far, requests))

    def delete_limit_range(self, namespace: str, name: str) -> None:
        """Removes a LimitRange. Does nothing for an unknown one."""
        of_namespace = self.limit_ranges.get(namespace, {})
        if of_namespace.pop(name, None) is not None:
            if not of_namespace:
                del self.limit_ranges[namespace]
            self._note(namespace, largest(*of_namespace.values()))

    def keys_of_limit_ranges(self) -> Iterator[tuple[str, str]]:
        """Yields namespace and name of each LimitRange."""
        return ((namespace, name) for namespace, ranges in self.limit_ranges.items() for name in ranges)

    def fill(self, pod: Pod, template: PodTemplate) -> Pod:
        """Returns a pod of the template as it would be if it were created now."""
        return created(
            pod,
            template,
            class_named(template.priority_class, self.priority_classes),
            self._requests.get(pod.namespace, NOTHING),
            self.runtime_classes.get(template.runtime_class, NOTHING),
        )

    def _note(self, namespace: str, requests: MilliResources) -> None:
        """Notes the defaults of a namespace. Of several LimitRanges the largest default of a resource counts.

        The API server takes the first that it comes across, in no order (LimitRanger goes through them one by one, and
        never replaces a request). So a pod may request the largest, and a Job must not be started on less.
        """
        before = self._requests.pop(namespace, NOTHING)
        if requests:
            self._requests[namespace] = requests
        if requests != before:
            self._cluster.queued_jobs.defaults_changed(namespace)
