"""Lent: whether anybody holds what a pod may take back, found out once for all who ask until something has changed.

Many thousands of Jobs ask, and most of what they ask is the same: their namespaces, queues and resources are few.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from policy.quota import queue_rules
from policy.quota.entitlement import is_over_share

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from policy.quota.entitlement import Entitlement
    from policy.quota.ledger import Ledger


class Lent:
    """Knows, by resource, namespaces that hold more than is theirs: two of them, so that one is not who asks."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[tuple[str, str, str], list[str]] = {}
        self._as_of: Hashable = None

    def is_held_by_others(self, entitled: Entitlement) -> bool:
        """Whether another namespace holds a resource that may be taken back, beyond the bound that lets it be taken."""
        if self._as_of != (now := self._state()):
            self._known, self._as_of = {}, now
        kinds = [("quota", "", resource) for resource in entitled.by_quota]
        kinds += [("queue", "", resource) for resource in entitled.by_queue]
        kinds += [("share", entitled.queue, resource) for resource in entitled.by_share]
        return any(namespace != entitled.pod.namespace for kind in kinds for namespace in self._holders(*kind))

    def _state(self) -> Hashable:
        """Returns what is different once anybody has more, or less, or something else is theirs.

        A sum changes if somebody takes more. A change that eases is counted, so no two can cancel each other out.
        """
        ledger, generations = self._ledger, self._ledger.generations
        taken = tuple(tuple(sums.items()) for sums in (ledger.pool.used, ledger.queues.taken))
        return generations.of_placing, generations.shares, ledger.queues.as_of, taken

    def _holders(self, bound: str, queue: str, resource: str) -> list[str]:
        known = self._known.get((bound, queue, resource))
        if known is None:
            if bound == "quota":
                found = self._by_quota(resource)
            else:
                found = self._by_queue(resource) if bound == "queue" else self._by_share(queue, resource)
            known = self._known[bound, queue, resource] = list(islice(found, 2))
        return known

    def _by_quota(self, resource: str) -> Iterator[str]:
        """Yields namespaces whose quota uses more than its min: what min does not name is all borrowed."""
        for namespace, account in self._ledger.accounts.items():
            quota = account.quota
            if quota is not None and quota.readable and account.used.get(resource, 0) > quota.min.get(resource, 0):
                yield namespace

    def _by_queue(self, resource: str) -> Iterator[str]:
        """Yields namespaces in queues that have more than they deserve, each once."""
        queues, seen = self._ledger.queues, set[str]()
        for account in (queues.accounts[name] for name in queues.over_deserved):
            for namespace, tenant in account.tenants.items() if queue_rules.is_over(account, resource) else ():
                if tenant.taken.get(resource, 0) and namespace not in seen:
                    seen.add(namespace)
                    yield namespace

    def _by_share(self, queue: str, resource: str) -> Iterator[str]:
        """Yields namespaces that have more than their fair share of a queue."""
        tenants = self._ledger.queues.known(queue).tenants
        return (namespace for namespace, tenant in tenants.items() if is_over_share(tenant, resource))
