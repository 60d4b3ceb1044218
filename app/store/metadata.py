"""The metadata of objects of all kinds."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from app.store.heeded import (
    ALLOWED_QUEUES,
    CHECKPOINTED_AT,
    INDEX_FAILURES,
    MAX_RUN_TIME,
    MIN_PARALLELISM,
    MIN_RUN_TIME,
    MIRROR,
    PARALLELISM,
    PREEMPTIBLE,
    QUEUE,
    RUN_TIME,
    VOLCANO_GROUP,
)
from app.store.remembered import remembered
from app.times import LAST
from policy.objects.run_time import MOST_CHARACTERS, NOT_SAID, seconds_of

LONGEST_TIME = 40
"""The most characters of a time that is read."""
LONGEST_NAME = 253
"""The most characters that the name of an object may have."""


class Annotations(Struct, gc=False):
    """The annotations that are read. docs/security.md lists what a tenant can do with each."""

    preemptible: Any = field(name=PREEMPTIBLE, default=None)
    queue: Any = field(name=QUEUE, default=None)
    allowed_queues: Any = field(name=ALLOWED_QUEUES, default=None)
    group: Any = field(name=VOLCANO_GROUP, default=None)
    mirror: Any = field(name=MIRROR, default=None)
    index_failures: Any = field(name=INDEX_FAILURES, default=None)
    min_parallelism: Any = field(name=MIN_PARALLELISM, default=None)
    parallelism: Any = field(name=PARALLELISM, default=None)
    run_time: Any = field(name=RUN_TIME, default=None)
    min_run_time: Any = field(name=MIN_RUN_TIME, default=None)
    max_run_time: Any = field(name=MAX_RUN_TIME, default=None)
    checkpointed_at: Any = field(name=CHECKPOINTED_AT, default=None)


class OwnerReference(Struct, rename="camel", gc=False):
    """The fields that are read of an owner reference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Struct, rename="camel", gc=False):
    """The fields that are read of an object's metadata."""

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


def controller_ref(meta: Metadata) -> OwnerReference | None:
    """Returns the reference to the controller of an object, if it has one."""
    return next((owner for owner in meta.owner_references or () if owner.controller), None)


def is_custom(owner: OwnerReference) -> bool:
    """Whether an owner is a custom resource. The groups of Kubernetes' own controllers have no dots."""
    return "." in owner.api_version.partition("/")[0]


def version_of(meta: Metadata) -> int:
    """Returns the resourceVersion as a number, which orders the states of one object; 0 where there is none."""
    return number_of(meta.resource_version)


def number_of(text: str | None) -> int:
    """Returns a resourceVersion as a number, 0 if it is not one. Clients may compare them since Kubernetes 1.35."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 20 else 0  # noqa: PLR2004 - 64 bit


def seconds(timestamp: datetime | None) -> float:
    """Returns the seconds since the epoch, 0 where there is no time."""
    if timestamp is None:
        return 0.0
    return (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)).timestamp()


def time_in(value: Any) -> float:
    """Returns a time in an annotation (RFC 3339), in seconds since the epoch; 0 if there is none, or none is read."""
    text = as_text(value)[: LONGEST_TIME + 1]
    try:
        said = seconds(datetime.fromisoformat(text)) if len(text) <= LONGEST_TIME else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return min(max(0.0, said), LAST)


def as_text(value: Any) -> str:
    """Returns an annotation as text; empty if it has another type."""
    return value if isinstance(value, str) else ""


def run_time_of(annotations: Annotations | None) -> int:
    """Returns the run time in annotations, in seconds (see policy.objects.run_time)."""
    return _time_in(annotations.run_time) if annotations is not None else NOT_SAID


def min_run_time_of(annotations: Annotations | None) -> int:
    """Returns the min-run-time in annotations, likewise."""
    return _time_in(annotations.min_run_time) if annotations is not None else NOT_SAID


def max_run_time_of(annotations: Annotations | None) -> int:
    """Returns the max-run-time in annotations, likewise."""
    return _time_in(annotations.max_run_time) if annotations is not None else NOT_SAID


def _time_in(value: Any) -> int:
    return NOT_SAID if value is None else _seconds_in(as_text(value)[: MOST_CHARACTERS + 1])


@remembered(1024)
def _seconds_in(text: str) -> int:
    return seconds_of(text)


def as_name(value: Any) -> str:
    """Returns a name in an annotation, cut at the longest that an object can have: annotations may have 256 KiB."""
    name = as_text(value)
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
