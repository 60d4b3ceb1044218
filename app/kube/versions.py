"""Which version of each object was seen last, so that what a watch brings late is known by that.

A watch brings changes in their order. Where something between us and the API server repeats or reorders them, an older
state must not replace a newer one, and the end of an object not that of its namesake.
"""

from collections import OrderedDict

from app.store.kinds import Key, Kind
from app.store.objects import Metadata, version_of
from policy.cluster.cluster import Cluster

ENDS = 1000
"""How many objects that are gone are remembered."""


class Versions:
    """UIDs and versions of the objects of one kind. Where versions are no numbers nothing is ever late."""

    def __init__(self, kind: Kind, cluster: Cluster) -> None:
        self._kind = kind
        self._cluster = cluster
        self._seen: dict[Key, tuple[str, int]] = {}
        self._ended: OrderedDict[str, int] = OrderedDict()

    def note(self, meta: Metadata) -> None:
        """An object was taken in."""
        if self._kind.version_seen is None:
            self._seen[self._kind.key(meta)] = meta.uid or "", version_of(meta)

    def end(self, meta: Metadata) -> None:
        """An object is gone."""
        self._seen.pop(self._kind.key(meta), None)
        if meta.uid:
            self._ended[meta.uid] = version_of(meta)
            if len(self._ended) > ENDS:
                self._ended.popitem(last=False)

    def clear(self) -> None:
        """All are listed anew. The history may have been lost, and versions begin again."""
        self._seen.clear()
        self._ended.clear()

    def is_late(self, meta: Metadata) -> bool:
        """Whether something newer was seen already than this change, or it is about an object that is gone."""
        version = version_of(meta)
        return 0 < version < max(self._known(meta)[1], self._ended.get(meta.uid or "", 0))

    def is_of_another(self, meta: Metadata) -> bool:
        """Whether it was a namesake that has gone, and not the object that is known by this name."""
        uid = self._known(meta)[0]
        return bool(uid and meta.uid and uid != meta.uid)

    def _known(self, meta: Metadata) -> tuple[str, int]:
        key = self._kind.key(meta)
        if self._kind.version_seen is not None:
            return "", self._kind.version_seen(self._cluster, key)
        return self._seen.get(key, ("", 0))
