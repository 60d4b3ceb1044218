"""The version of each object that was seen last, to recognize changes that a watch delivers late.

A watch delivers changes in order. If something between us and the API server repeats or reorders them, an older state
must not replace a newer one. Nor may the deletion of an object delete another of its name.
"""

from collections import OrderedDict

from app.store.kind import Key, Kind
from app.store.metadata import Metadata, version_of
from policy.cluster.cluster import Cluster

ENDS = 1000
"""Number of deleted objects that are remembered."""


class Versions:
    """UIDs and versions of the objects of one kind. If versions are not numbers, no change counts as late."""

    def __init__(self, kind: Kind, cluster: Cluster) -> None:
        self._kind = kind
        self._cluster = cluster
        self._seen: dict[Key, tuple[str, int]] = {}
        self._ended: OrderedDict[str, int] = OrderedDict()

    def note(self, meta: Metadata) -> None:
        """Notes an object that was taken in."""
        if self._kind.version_seen is None:
            self._seen[self._kind.key(meta)] = meta.uid or "", version_of(meta)

    def end(self, meta: Metadata) -> None:
        """Notes an object that was deleted."""
        self._seen.pop(self._kind.key(meta), None)
        if meta.uid:
            self._ended[meta.uid] = version_of(meta)
            if len(self._ended) > ENDS:
                self._ended.popitem(last=False)

    def clear(self) -> None:
        """Forgets all before a new list. The history may have been lost, so that versions start again."""
        self._seen.clear()
        self._ended.clear()

    def is_late(self, meta: Metadata) -> bool:
        """Whether this change is older than a change already seen, or is of an object that is deleted."""
        version = version_of(meta)
        return 0 < version < max(self._known(meta)[1], self._ended.get(meta.uid or "", 0))

    def is_of_another(self, meta: Metadata) -> bool:
        """Whether this is not the object known by this name, but an earlier one of the same name."""
        uid = self._known(meta)[0]
        return bool(uid and meta.uid and uid != meta.uid)

    def _known(self, meta: Metadata) -> tuple[str, int]:
        key = self._kind.key(meta)
        if self._kind.version_seen is not None:
            return "", self._kind.version_seen(self._cluster, key)
        return self._seen.get(key, ("", 0))
