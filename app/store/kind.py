"""A row of the table of kinds: where objects are listed, how they are decoded, what they change in the cluster."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from app.store.metadata import Metadata
from policy.cluster.cluster import Cluster

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
