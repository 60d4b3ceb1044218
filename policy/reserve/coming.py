"""Granted pods on their way, by kind: what they may take of a node. Nobody tells where they come before they are bound.

They are looked at once, however many nodes are asked about.
"""

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, field

from policy.cluster.assumed import MOST_KINDS
from policy.nodes import fit
from policy.nodes.table import NodeTable
from policy.objects import signature
from policy.objects.pod import Pod
from policy.objects.resources import Resources, add, subtract


@dataclass(slots=True)
class _Kind:
    """Pods that the same nodes could take, the end of the last of them, and what they request together."""

    end: float = 0.0
    pods: dict[str, Pod] = field(default_factory=dict)
    request: dict[str, int] = field(default_factory=dict)

    def add(self, pod: Pod, end: float) -> None:
        self.end = max(self.end, end)
        self.pods[pod.uid] = pod
        add(self.request, pod.request)

    def without(self, uids: Collection[str]) -> dict[str, int]:
        """Returns what they request together, except these pods."""
        left = dict(self.request)
        for uid in uids:
            if uid in self.pods:
                subtract(left, self.pods[uid].request)
        return left


class Coming:
    """Granted pods that are added one by one. Those of all but the first kinds may come to each node."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._kinds = dict[Hashable, _Kind]()
        self._rest = _Kind()

    def add(self, pod: Pod, end: float) -> None:
        """Adds a pod that is gone by ``end``."""
        key = signature.by_empty_nodes(pod), end
        if key not in self._kinds and len(self._kinds) < MOST_KINDS:
            self._kinds[key] = _Kind()
        self._kinds.get(key, self._rest).add(pod, end)

    def on(self, node: str, without: Collection[str]) -> Iterator[tuple[float, Resources]]:
        """Yields what they may take of a node, except the pods with these UIDs, and when it is free again."""
        for kind in self._kinds.values():
            if fit.fits_if_empty_on(self._table, next(iter(kind.pods.values())), node):
                yield kind.end, kind.without(without)
        if self._rest.pods:
            yield self._rest.end, self._rest.without(without)
