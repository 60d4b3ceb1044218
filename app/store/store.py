"""The store: the cluster, and how complete and fresh its objects are."""

import time
from collections import ChainMap
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from app.observability import metrics
from app.observability.evictions import Evictions
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
    """How complete and fresh the objects of one kind are.

    ``synced`` is set once the first list is complete. ``connected_at`` is the time of the present connection, None
    without one. ``contact_at`` is the time of the last contact with the source. Both are in seconds on the store's
    clock. ``lacking`` tells what became of the objects of a kind whose definition was deleted. It is empty if the
    definition exists, or never did. ``without``: the kind may not be read, or is not there, and counts as empty.
    """

    synced: bool = False
    connected_at: float | None = None
    contact_at: float = 0.0
    lacking: str = ""
    without: bool = False


class Store:
    """Owns the Cluster. The sources hand all that they see to the store, in one event loop.

    ``quota_objects`` has the elastic quotas as last seen, for fields that the rules do not need. ``strange`` has a
    sentence for each thing in the cluster that looks as if it were read, and is not. ``evictions`` are the latest.
    """

    def __init__(
        self,
        cluster: Cluster,
        max_staleness: float = 60.0,
        settle_time: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
        epoch: Callable[[], float] = time.time,
        kinds: Sequence[Kind] = KINDS,
    ) -> None:
        """``epoch`` returns the seconds since 1970, the time that objects use. ``kinds`` are all that are read."""
        self.cluster = cluster
        self.clock = clock
        self._epoch = epoch
        self.cluster.epoch = epoch() - clock()
        self.kinds = kinds
        self.feeds = {kind.label: Feed() for kind in kinds}
        self._needed = dict(self.feeds)  # an advisory kind only until its first list is complete
        self._quotas: dict[str, dict[Key, ElasticQuotaObject]] = {kind.label: {} for kind in QUOTA_KINDS}
        self.quota_objects = ChainMap(*self._quotas.values())
        self.strange: tuple[str, ...] = ()
        self.evictions = Evictions()
        self._warned_of_native_groups = False
        self._max_staleness = max_staleness
        self._settle_time = settle_time

    def upsert(self, kind: Kind, obj: Any) -> None:
        """Takes in a decoded object. If it cannot be used, reports it and keeps the state that was known before."""
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
            log.warning(
                "native pod groups are in use: the scheduler itself picks victims for them, on nodes that filter allows"
            )

    def report(self, kind: Kind, meta: Metadata, field: str, problem: str) -> None:
        """Counts and logs an object that cannot be used."""
        metrics.UNUSABLE.labels(kind.label).inc()
        name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        log.error("object cannot be used", kind=kind.name, object=name, field=field, problem=problem)

    def delete(self, kind: Kind, key: Key) -> None:
        """Removes an object. An unknown key is not an error."""
        if kind in QUOTA_KINDS:
            counts = self.kind_of_quota(key)
            self._quotas[kind.label].pop(key, None)
            if kind is not counts:
                return
        kind.delete(self.cluster, key)
        if kind is ELASTIC_QUOTAS and (legacy := self.quota_objects.get(key)) is not None:
            self.upsert(LEGACY_ELASTIC_QUOTAS, legacy)

    def kind_of_quota(self, key: Key) -> Kind:
        """Returns the kind whose elastic quota of that name counts: the newer kind, if both have one."""
        is_legacy = key not in self._quotas[ELASTIC_QUOTAS.label] and key in self.quota_objects
        return LEGACY_ELASTIC_QUOTAS if is_legacy else ELASTIC_QUOTAS

    def known(self, kind: Kind) -> Collection[Key]:
        """Returns the keys of all objects of a kind."""
        return list(self._quotas[kind.label] if kind in QUOTA_KINDS else kind.known(self.cluster))

    def keep_only(self, kind: Kind, keys: Collection[Key]) -> None:
        """Removes objects that are not in a complete list: their deletion was missed."""
        for key in [key for key in self.known(kind) if key not in keys]:
            self.delete(kind, key)

    def contact(self, kind: Kind) -> None:
        """Notes contact with the source of a kind."""
        feed = self.feeds[kind.label]
        feed.contact_at = self.clock()
        if feed.connected_at is None:
            feed.connected_at = feed.contact_at

    def lost(self, kind: Kind, *, silent: bool = False) -> None:
        """Notes that the connection to the source of a kind is lost: now, or if ``silent`` since its last contact."""
        feed = self.feeds[kind.label]
        if feed.connected_at is not None and not silent:
            feed.contact_at = self.clock()
        feed.connected_at = None

    def complete(self, kind: Kind, *, without: bool = False) -> None:
        """Notes that the list of a kind is complete, or that it is done ``without``.

        With the last kind, the cluster begins.
        """
        self.contact(kind)
        self.feeds[kind.label].without = without
        if not self.feeds[kind.label].synced:
            self.feeds[kind.label].synced = True
            if kind.advisory:
                del self._needed[kind.label]
            log.info("in sync", kind=kind.label)
            if self.synced:
                self.cluster.leaving.pass_time(self._epoch())
                self.cluster.protection.pass_time(self._epoch())
                self.cluster.begin()
                for _ in self.cluster.divide_steps():
                    pass
                if self._settle_time:
                    self.cluster.in_flight.suspect(self.clock())

    def definition_lost(self, kind: Kind, *, kept: bool) -> None:
        """Notes that a definition is gone or going. ``kept``: its objects stay in force; else they are let go."""
        feed = self.feeds[kind.label]
        if feed.lacking:
            return
        number = len(self.known(kind))
        stay = "1 object stays in force" if number == 1 else f"{number} objects stay in force"
        became = stay if kept else "its objects are let go"
        feed.lacking = f"the definition of {kind.plural}.{kind.group} was deleted: {became}"
        log.warning("definition is gone", kind=kind.label, api_version=kind.api_version, kept=number if kept else 0)
        self.cluster.changes.note()

    def definition_back(self, kind: Kind) -> None:
        """Notes that the deleted definition of a kind exists again."""
        self.feeds[kind.label].lacking = ""
        log.warning("definition is back", kind=kind.label, api_version=kind.api_version)
        self.cluster.changes.note()

    def lacks(self, kind: Kind) -> bool:
        """Whether the definition of a kind existed and was deleted."""
        return bool(self.feeds[kind.label].lacking)

    @property
    def warnings(self) -> list[str]:
        """Sentences about kinds whose definition was deleted, and about objects that look as if they were read."""
        return [*(feed.lacking for feed in self.feeds.values() if feed.lacking), *self.strange]

    @property
    def synced(self) -> bool:
        """Whether the first list of every kind is complete."""
        return all(feed.synced for feed in self.feeds.values())

    def unready(self) -> str:
        """Returns why nothing may be decided now, and which kinds are missing or stale; empty if all is well."""
        if all([feed.synced and feed.connected_at is not None for feed in self._needed.values()]):  # noqa: C419 - faster
            return ""
        if not all(feed.synced for feed in self._needed.values()):
            lacking = ", ".join(sorted(label for label, each in self.feeds.items() if not each.synced))
            return f"not synced: the picture of the cluster is not complete yet, it lacks {lacking}"
        now = self.clock()
        stale = [plural for plural in self._needed if self.staleness(plural, now) > self._max_staleness]
        return f"stale: no contact to the API server for {', '.join(sorted(stale))}" if stale else ""

    def staleness(self, plural: str, now: float) -> float:
        """Returns the seconds since the last contact to a kind's source: 0 while it is connected."""
        feed = self.feeds[plural]
        return 0.0 if feed.connected_at is not None else now - feed.contact_at

    def tick(self) -> None:
        """Lets time pass in the cluster, unless bindings may have been missed.

        A grant must not end because its binding was not seen. After the watch of pods was interrupted, time therefore
        passes only once the events of the meantime have arrived.
        """
        now = self.clock()
        self.cluster.epoch = self._epoch() - now
        if self.synced and self._has_settled("pods", now):
            self.cluster.tick(now)
            self.cluster.protection.pass_time(self._epoch())
            self.count_in_vain()
            if self._has_settled("nodes", now):  # otherwise a node that counts as lost may be back
                self.cluster.leaving.pass_time(self._epoch())

    def count_in_vain(self) -> None:
        """Judges pods for which kube-scheduler may have evicted others, and counts the evictions in vain."""
        for namespace, number in self.cluster.in_vain.settle(self.cluster.pods, self.clock()):
            metrics.IN_VAIN.labels(namespace).inc(number)

    def _has_settled(self, plural: str, now: float) -> bool:
        """Whether a kind has been connected for long enough that all earlier events have arrived."""
        connected_at = self.feeds[plural].connected_at
        return connected_at is not None and now - connected_at >= self._settle_time
