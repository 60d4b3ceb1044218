"""The store: the cluster together with what is known of how true it is."""

import time
from collections import ChainMap
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import structlog

from app.observability import metrics
from app.store.elastic_quotas import ELASTIC_QUOTAS, LEGACY_ELASTIC_QUOTAS, ElasticQuotaObject
from app.store.kind import Key, Kind
from app.store.kinds import KINDS, QUOTA_KINDS
from app.store.metadata import Metadata
from app.store.pod_groups import NATIVE_POD_GROUPS
from app.store.quantities import InvalidObject
from policy.cluster.cluster import Cluster

log = structlog.get_logger(__name__)

TICK = 0.25


@dataclass(slots=True)
class Feed:
    """How far the picture of one kind can be trusted.

    ``synced`` once the first list is complete. ``connected_at`` is when the present connection was made, None without
    one; ``contact_at`` when the source was last heard of. On the store's clock, in seconds. ``lacking`` says what has
    become of the objects of a kind whose definition was there and is gone; empty where it is there, or never was.
    """

    synced: bool = False
    connected_at: float | None = None
    contact_at: float = 0.0
    lacking: str = ""


class Store:
    """Owns the Cluster: what the sources see comes in here, all in one event loop.

    ``quota_objects`` has elastic quotas as they were last seen, for what the rules do not need of them. ``strange``
    says, in a sentence each, what there is in the cluster that looks as if it were read.
    """

    def __init__(
        self,
        cluster: Cluster,
        max_staleness: float = 60.0,
        settle_time: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
        epoch: Callable[[], float] = time.time,
    ) -> None:
        """``epoch`` tells the seconds since the epoch, as the times in objects are given."""
        self.cluster = cluster
        self.clock = clock
        self._epoch = epoch
        self.cluster.epoch = epoch() - clock()
        self.feeds = {kind.label: Feed() for kind in KINDS}
        self._needed = dict(self.feeds)  # advisory ones only until they were seen
        self._quotas: dict[str, dict[Key, ElasticQuotaObject]] = {kind.label: {} for kind in QUOTA_KINDS}
        self.quota_objects = ChainMap(*self._quotas.values())
        self.strange: tuple[str, ...] = ()
        self._warned_of_native_groups = False
        self._max_staleness = max_staleness
        self._settle_time = settle_time

    def upsert(self, kind: Kind, obj: Any) -> None:
        """Takes in a decoded object. One that cannot be used is reported, and what was known of it stays."""
        if kind in QUOTA_KINDS:
            key = kind.key(obj.metadata)
            is_new = key not in self._quotas[kind.label]
            self._quotas[kind.label][key] = obj
            if kind is not self.kind_of_quota(key):
                if is_new:
                    log.warning("of two elastic quotas of a name the newer group's counts", quota="/".join(key))
                return
        try:
            kind.upsert(self.cluster, obj, self.clock())
        except InvalidObject as error:
            self.report(kind, obj.metadata, error.field, error.problem)
        if kind is NATIVE_POD_GROUPS and not self._warned_of_native_groups:
            self._warned_of_native_groups = True
            log.warning("native pod groups are in use: for them the scheduler evicts without asking any extender")

    def report(self, kind: Kind, meta: Metadata, field: str, problem: str) -> None:
        """Notes that an object cannot be used."""
        metrics.UNUSABLE.labels(kind.label).inc()
        name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        log.error("object cannot be used", kind=kind.name, object=name, field=field, problem=problem)

    def delete(self, kind: Kind, key: Key) -> None:
        """Removes an object; one that is not known is no error."""
        if kind in QUOTA_KINDS:
            counts = self.kind_of_quota(key)
            self._quotas[kind.label].pop(key, None)
            if kind is not counts:
                return
        kind.delete(self.cluster, key)
        if kind is ELASTIC_QUOTAS and (legacy := self.quota_objects.get(key)) is not None:
            self.upsert(LEGACY_ELASTIC_QUOTAS, legacy)

    def kind_of_quota(self, key: Key) -> Kind:
        """Of which kind the elastic quota of that name is that counts: the newer, where there are both."""
        is_legacy = key not in self._quotas[ELASTIC_QUOTAS.label] and key in self.quota_objects
        return LEGACY_ELASTIC_QUOTAS if is_legacy else ELASTIC_QUOTAS

    def known(self, kind: Kind) -> Collection[Key]:
        """The keys of all objects of a kind."""
        return list(self._quotas[kind.label] if kind in QUOTA_KINDS else kind.known(self.cluster))

    def keep_only(self, kind: Kind, keys: Collection[Key]) -> None:
        """Removes what is not in a complete list: its deletion was missed."""
        for key in [key for key in self.known(kind) if key not in keys]:
            self.delete(kind, key)

    def contact(self, kind: Kind) -> None:
        """The source of a kind was heard of just now."""
        feed = self.feeds[kind.label]
        feed.contact_at = self.clock()
        if feed.connected_at is None:
            feed.connected_at = feed.contact_at

    def lost(self, kind: Kind, *, silent: bool = False) -> None:
        """The connection to the source of a kind was lost: just now, unless it had been silent before that."""
        feed = self.feeds[kind.label]
        if feed.connected_at is not None and not silent:
            feed.contact_at = self.clock()
        feed.connected_at = None

    def complete(self, kind: Kind) -> None:
        """The list of a kind is complete."""
        self.contact(kind)
        if not self.feeds[kind.label].synced:
            self.feeds[kind.label].synced = True
            if kind.advisory:
                del self._needed[kind.label]
            log.info("in sync", kind=kind.label)
            if self.synced:
                self.cluster.leaving.pass_time(self._epoch())
                self.cluster.begin()
                for _ in self.cluster.divide():
                    pass
                if self._settle_time:
                    self.cluster.in_flight.suspect(self.clock())

    def definition_lost(self, kind: Kind, *, kept: bool) -> None:
        """The definition of a kind is gone, or is going; its objects stay in force (``kept``), or were let go."""
        feed = self.feeds[kind.label]
        if feed.lacking:
            return
        number = len(self.known(kind))
        stay = "1 object stays in force" if number == 1 else f"{number} objects stay in force"
        became = stay if kept else "its objects are let go"
        feed.lacking = f"the definition of {kind.plural}.{kind.group} was deleted: {became}"
        log.warning("definition is gone", kind=kind.label, api_version=kind.api_version, kept=number if kept else 0)
        self.cluster.touched.note()

    def definition_back(self, kind: Kind) -> None:
        """The definition of a kind that was gone is there again."""
        self.feeds[kind.label].lacking = ""
        log.warning("definition is back", kind=kind.label, api_version=kind.api_version)
        self.cluster.touched.note()

    def lacks(self, kind: Kind) -> bool:
        """Whether the definition of a kind was there, and is gone."""
        return bool(self.feeds[kind.label].lacking)

    @property
    def warnings(self) -> list[str]:
        """What has become of kinds whose definition is gone, and what there is that is not read."""
        return [*(feed.lacking for feed in self.feeds.values() if feed.lacking), *self.strange]

    @property
    def synced(self) -> bool:
        """Whether every kind was seen as a whole."""
        return all(feed.synced for feed in self.feeds.values())

    def unready(self) -> str:
        """Why nothing may be decided on this picture, and for want of which kinds; empty when all is well."""
        if all([feed.synced and feed.connected_at is not None for feed in self._needed.values()]):  # noqa: C419 - faster
            return ""
        if not all(feed.synced for feed in self._needed.values()):
            lacking = ", ".join(sorted(label for label, each in self.feeds.items() if not each.synced))
            return f"not synced: the picture of the cluster is not complete yet, it lacks {lacking}"
        now = self.clock()
        stale = [plural for plural in self._needed if self.staleness(plural, now) > self._max_staleness]
        return f"stale: no contact to the API server for {', '.join(sorted(stale))}" if stale else ""

    def staleness(self, plural: str, now: float) -> float:
        """Seconds since a kind's source was last known to be there: 0 while it is connected."""
        feed = self.feeds[plural]
        return 0.0 if feed.connected_at is not None else now - feed.contact_at

    def tick(self) -> None:
        """Lets time pass in the cluster, unless bindings may have been missed.

        A grant must not end because its binding was not seen: after the watch of pods was cut off, what happened
        meanwhile arrives first.
        """
        now = self.clock()
        self.cluster.epoch = self._epoch() - now
        if self.synced and self._has_settled("pods", now):
            self.cluster.tick(now)
            self.count_in_vain()
            if self._has_settled("nodes", now):  # or else one that is taken for lost may be back
                self.cluster.leaving.pass_time(self._epoch())

    def count_in_vain(self) -> None:
        """Judges the pods for which kube-scheduler may have evicted others, and counts those that went in vain."""
        for namespace, number in self.cluster.in_vain.settle(self.cluster.pods, self.clock()):
            metrics.IN_VAIN.labels(namespace).inc(number)

    def _has_settled(self, plural: str, now: float) -> bool:
        """Whether a kind is connected, and has been for so long that all that happened before is seen."""
        connected_at = self.feeds[plural].connected_at
        return connected_at is not None and now - connected_at >= self._settle_time
