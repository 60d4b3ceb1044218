"""Pod groups: those of scheduler-plugins in its current and its former API group, Volcano's, and native ones."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from app.store.kind import Key, Kind
from app.store.metadata import Metadata, as_name, run_time_of, seconds
from policy.cluster.cluster import Cluster
from policy.objects.group import LARGEST_MINIMUM, Group

GROUPS = "podgroups.scheduling.x-k8s.io"
VOLCANO_GROUPS = "podgroups.scheduling.volcano.sh"
LEGACY_GROUPS = "podgroups.scheduling.sigs.k8s.io"
NATIVE_GROUPS = "podgroups.scheduling.k8s.io"
"""The kinds of pod groups, with the API group, as all of them have the same plural."""


class Gang(Struct, rename="camel", gc=False):
    """The fields that are read of the gang policy of a native pod group."""

    min_count: int | None = None


class SchedulingPolicy(Struct, gc=False):
    """The scheduling policy of a native pod group."""

    gang: Gang | None = None


class PodGroupSpec(Struct, rename="camel", gc=False):
    """The fields that are read of the spec of a pod group, for all kinds together."""

    queue: str | None = None
    min_member: int | None = None
    scheduling_policy: SchedulingPolicy | None = None


class PodGroupObject(Struct, gc=False):
    """A PodGroup of any of the kinds."""

    metadata: Metadata
    spec: PodGroupSpec | None = None


def group_of(obj: PodGroupObject, kind: str) -> Group:
    """Returns the pod group as the rules see it. Its minimum is at least 1 and fits into 32 bits."""
    meta, spec = obj.metadata, obj.spec or PodGroupSpec()
    gang = spec.scheduling_policy.gang if spec.scheduling_policy else None
    minimum = gang.min_count if kind == NATIVE_GROUPS and gang else spec.min_member
    return Group(
        meta.namespace or "",
        f"{kind}/{meta.name}",
        max(1, min(minimum or 1, LARGEST_MINIMUM)),
        as_name(spec.queue) if kind == VOLCANO_GROUPS else "",
        seconds(meta.creation_timestamp),
        native=kind == NATIVE_GROUPS,
        run_time=run_time_of(meta.annotations),
    )


def _pod_groups(kind: str, version: str) -> Kind:
    """Makes the row of one kind of pod groups; ``kind`` is plural and API group."""

    def upsert(cluster: Cluster, obj: PodGroupObject, _: float) -> None:
        cluster.upsert_group(group_of(obj, kind))

    def known(cluster: Cluster) -> Iterable[Key]:
        return [key for key in cluster.membership.groups if key[1].startswith(f"{kind}/")]

    plural, _, group = kind.partition(".")
    return Kind(
        plural=plural,
        api_version=f"{group}/{version}",
        name="PodGroup",
        decoder=msgspec.json.Decoder(PodGroupObject),
        key=lambda meta: (meta.namespace or "", f"{kind}/{meta.name}"),
        upsert=upsert,
        delete=lambda cluster, key: cluster.delete_group(key[0], key[1]),
        known=known,
        optional=True,
        binds=True,
        title=kind,
    )


POD_GROUPS = (
    _pod_groups(GROUPS, "v1alpha1"),
    _pod_groups(VOLCANO_GROUPS, "v1beta1"),
    NATIVE_POD_GROUPS := _pod_groups(NATIVE_GROUPS, "v1beta1"),
    LEGACY_POD_GROUPS := _pod_groups(LEGACY_GROUPS, "v1alpha1"),
)
