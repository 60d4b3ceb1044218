"""The metadata of objects of all kinds."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from app.store.heeded import ALLOWED_QUEUES, INDEX_FAILURES, MIRROR, PREEMPTIBLE, QUEUE, VOLCANO_GROUP

LONGEST_NAME = 253
"""Characters of a name that an object may have."""


class Annotations(Struct, gc=False):
    """The annotations that are read. docs/security.md lists what a tenant could do with each."""

    preemptible: Any = field(name=PREEMPTIBLE, default=None)
    queue: Any = field(name=QUEUE, default=None)
    allowed_queues: Any = field(name=ALLOWED_QUEUES, default=None)
    group: Any = field(name=VOLCANO_GROUP, default=None)
    mirror: Any = field(name=MIRROR, default=None)
    index_failures: Any = field(name=INDEX_FAILURES, default=None)


class OwnerReference(Struct, rename="camel", gc=False):
    """What is read of an owner reference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Struct, rename="camel", gc=False):
    """What is read of an object's metadata."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: Annotations | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


def version_of(meta: Metadata) -> int:
    """The resourceVersion as a number (it orders the states of one object), 0 where there is none."""
    return number_of(meta.resource_version)


def number_of(text: str | None) -> int:
    """A resourceVersion as a number, 0 where it is none. From Kubernetes 1.35 on such numbers may be compared."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 20 else 0  # noqa: PLR2004 - 64 bit


def seconds(timestamp: datetime | None) -> float:
    """Seconds since the epoch, 0 where there is no time."""
    if timestamp is None:
        return 0.0
    return (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)).timestamp()


def as_text(value: Any) -> str:
    """An annotation as text; one of another type is as good as none."""
    return value if isinstance(value, str) else ""


def as_name(value: Any) -> str:
    """A name in an annotation. No object has a longer one than is kept: anybody may write a quarter of a megabyte."""
    name = as_text(value)
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
