"""A row of the table of kinds: where objects are listed, how they are decoded, and what they change in the cluster."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from app.store.metadata import Metadata
from policy.cluster.cluster import Cluster

Key = str | tuple[str, str]
"""Identifies an object among those of its kind in the cluster."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects.

    An ``optional`` kind need not be installed: the store is complete without it, and waits for it to appear. Objects of
    an optional kind that ``binds`` pods may stay in force when its definition is deleted. An ``advisory`` kind only
    tells which of several right answers is better; without the right to read it, it counts as not installed.
    ``owns_pods``: pods are told by the UIDs of such objects, so that those in a folder need one, too.
    ``upsert`` raises InvalidObject for an object that cannot be used. ``version_seen`` returns the version of an object
    that was seen last, 0 if unknown; it is None where the cluster keeps no versions.
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
    owns_pods: bool = False
    title: str = ""
    version_seen: Callable[[Cluster, Key], int] | None = None

    @property
    def label(self) -> str:
        """The unique name of this kind: its plural, with the group where another kind has the same plural."""
        return self.title or self.plural

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version within the group."""
        return self.api_version.rpartition("/")[2]

    @property
    def path(self) -> str:
        """The path on the API server that lists all objects of this kind."""
        root = "/api" if "/" not in self.api_version else "/apis"
        return f"{root}/{self.api_version}/{self.plural}"

    def path_of(self, namespace: str, name: str, subresource: str = "") -> str:
        """Returns the path of one object or of its subresource. Cluster-scoped objects have an empty namespace."""
        root, _, plural = self.path.rpartition("/")
        parts = [root, "namespaces", namespace, plural, name] if namespace else [root, plural, name]
        return "/".join([*parts, subresource] if subresource else parts)
