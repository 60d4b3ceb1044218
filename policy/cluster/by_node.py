"""Which pods have something to do with a node, so that a change of one is told to these few, and to no others."""

from collections.abc import Collection


class ByNode:
    """Pods by the names of nodes, and back. A node need not exist."""

    def __init__(self) -> None:
        self._nodes: dict[str, frozenset[str]] = {}
        self._pods: dict[str, set[str]] = {}

    def put(self, uid: str, nodes: Collection[str]) -> None:
        """These nodes matter to a pod from now on, and no others."""
        for node in self._nodes.pop(uid, ()):
            self._pods[node].discard(uid)
            if not self._pods[node]:
                del self._pods[node]
        if nodes:
            self._nodes[uid] = frozenset(nodes)
            for node in self._nodes[uid]:
                self._pods.setdefault(node, set()).add(uid)

    def pods_of(self, node: str) -> list[str]:
        """UIDs of the pods that a node matters to."""
        return list(self._pods.get(node, ()))
