"""The pods that a node concerns, so that a change of the node reaches only these few."""

from collections.abc import Collection


class ByNode:
    """Pods by names of nodes, and names of nodes by pod. A node need not exist."""

    def __init__(self) -> None:
        self._nodes: dict[str, frozenset[str]] = {}
        self._pods: dict[str, set[str]] = {}

    def put(self, uid: str, nodes: Collection[str]) -> None:
        """Sets the nodes that matter to a pod, in place of earlier ones."""
        for node in self._nodes.pop(uid, ()):
            self._pods[node].discard(uid)
            if not self._pods[node]:
                del self._pods[node]
        if nodes:
            self._nodes[uid] = frozenset(nodes)
            for node in self._nodes[uid]:
                self._pods.setdefault(node, set()).add(uid)

    def nodes_of(self, uid: str) -> frozenset[str]:
        """Returns the nodes of a pod."""
        return self._nodes.get(uid, frozenset())

    def pods_of(self, node: str) -> list[str]:
        """Returns UIDs of the pods that a node matters to."""
        return list(self._pods.get(node, ()))
