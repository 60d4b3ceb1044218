"""Reservations: the fields that are read, and the translation to the reservation of the rules."""

from datetime import datetime

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata, seconds
from policy.objects.reservation import PodName, Reservation


class PodReference(Struct, gc=False):
    """Identifies a pod."""

    namespace: str
    name: str
    uid: str


class ReservationSpec(Struct, rename="camel", gc=False):
    """A reservation's spec."""

    reason: str
    pod: PodReference
    node_name: str
    victims: list[PodReference] | None = None
    failures: int = 0
    job: str = ""


class ReservationStatus(Struct, rename="camel", gc=False):
    """A reservation's status."""

    freed_at: datetime | None = None
    blocked_since: datetime | None = None
    failed_at: datetime | None = None
    promised_start: datetime | None = None
    promised_at: datetime | None = None
    due: list[str] | None = None
    moved: str = ""


class ReservationObject(Struct, gc=False):
    """A Reservation."""

    metadata: Metadata
    spec: ReservationSpec
    status: ReservationStatus | None = None


def reservation_of(obj: ReservationObject) -> Reservation:
    """Returns the reservation as the rules see it."""
    spec, status = obj.spec, obj.status or ReservationStatus()
    return Reservation(
        obj.metadata.name,
        PodName(spec.pod.namespace, spec.pod.name, spec.pod.uid),
        spec.node_name,
        tuple(PodName(victim.namespace, victim.name, victim.uid) for victim in spec.victims or ()),
        seconds(obj.metadata.creation_timestamp),
        spec.reason,
        spec.failures,
        seconds(status.freed_at),
        seconds(status.blocked_since),
        seconds(status.failed_at),
        spec.job,
        seconds(status.promised_start),
        seconds(status.promised_at),
        tuple(status.due or ()),
        status.moved,
    )


RESERVATIONS = Kind(
    plural="reservations",
    api_version="quotaward.dev/v1alpha1",
    name="Reservation",
    decoder=msgspec.json.Decoder(ReservationObject),
    key=lambda meta: meta.name,
    upsert=lambda cluster, obj, _: cluster.upsert_reservation(reservation_of(obj)),
    delete=lambda cluster, key: cluster.delete_reservation(str(key)),
    known=lambda cluster: [each.name for each in cluster.reservations.all()],
    namespaced=False,
    optional=True,
)
