"""The usage of one namespace under its elastic quota, and the pool that all quotas lend from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy.objects.resources import NOTHING, Resources, is_extended

if TYPE_CHECKING:
    from policy.quota.elastic_quota import ElasticQuota
    from policy.quota.sizes import WaitingRequests


@dataclass(slots=True)
class Account:
    """The usage of one namespace.

    ``assigned``: on a node; ``used``: that, and what was admitted and is on its way to a node. ``nominated`` has, by
    priority, what waits for its nominated node, ``held`` the part of it for which room is kept. ``pinned`` is the part
    of used and held that may not be evicted. ``in_flight`` is what may have been admitted before this process started,
    ``pinned_in_flight`` the part of it that may not be evicted. ``pending`` is requested by pods that wait, have
    nothing yet and can be placed; ``waiting`` are these pods. ``claim`` is the part of its min that they may take, and
    that nobody may borrow. ``quota`` is the elastic quota in force, if any. ``lent`` is how much of it is lent, None if
    nobody has asked since it changed (see policy.quota.entitlement).
    """

    quota: ElasticQuota | None = None
    assigned: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    pinned: dict[str, int] = field(default_factory=dict)
    nominated: dict[int, dict[str, int]] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    in_flight: dict[str, int] = field(default_factory=dict)
    pinned_in_flight: dict[str, int] = field(default_factory=dict)
    nominated_in_pool: Resources = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    waiting: WaitingRequests | None = field(default=None, compare=False)
    claim: Resources = field(default_factory=dict)
    lent: float | None = field(default=None, compare=False)

    @property
    def over_min(self) -> bool:
        """Whether the quota's used exceeds its min in a resource that min names."""
        if self.quota is None:
            return False
        used = self.used
        for resource, least in self.quota.min.items():  # noqa: SIM110 - asked at every change; a generator takes longer
            if used.get(resource, 0) > least:
                return True
        return False

    def claims(self) -> Resources:
        """Returns what the claim has to be: as much of the rest of min as waiting pods request that fit into it."""
        if self.waiting is None or not self.pending or self.quota is None:
            return NOTHING
        used, coming, least = self.used, self.nominated_in_pool, self.quota.min
        room = {r: most - used.get(r, 0) for r, most in self.quota.max.items()}
        room |= {r: amount - used.get(r, 0) - coming.get(r, 0) for r, amount in least.items()}
        wanted = self.waiting.fitting(room, self.pending)
        return {r: claim for r in least if (claim := min(room[r], wanted.get(r, 0))) > 0}


@dataclass(slots=True)
class Pool:
    """The sums over all elastic quotas in force. A resource is lent if it is a key of ``min``, even with zero.

    ``claims`` is the part of the quotas' mins that is not used, and that pods wait for. ``outside`` is used by pods of
    namespaces without a quota. ``capacity`` is the nodes' capacity for pods, None where it is not known.
    """

    min: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    nominated: dict[str, int] = field(default_factory=dict)
    in_flight: dict[str, int] = field(default_factory=dict)
    contributors: dict[str, int] = field(default_factory=dict)
    claims: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)
    capacity: Resources | None = None

    def contribute(self, least: Resources) -> None:
        """Adds a quota's min to what is lent."""
        for resource, value in least.items():
            self.min[resource] = self.min.get(resource, 0) + value
            self.contributors[resource] = self.contributors.get(resource, 0) + 1

    def withdraw(self, least: Resources) -> None:
        """Takes a quota's min out of what is lent. A resource that no min names any more is no longer lent."""
        for resource, value in least.items():
            self.min[resource] -= value
            self.contributors[resource] -= 1
            if not self.contributors[resource]:
                del self.min[resource], self.contributors[resource]

    def room(self, resource: str) -> int | None:
        """Returns the nodes' capacity of a resource for pods under quotas, used or not; None where it is not known.

        It is not known for an extended resource that no node lists (see NodeTable.lists).
        """
        if self.capacity is None or (is_extended(resource) and resource not in self.capacity):
            return None
        return self.capacity.get(resource, 0) - self.outside.get(resource, 0)

    def claimed_by_others(self, account: Account, resource: str) -> int:
        """Returns the claims of all quotas except this one."""
        return self.claims.get(resource, 0) - account.claim.get(resource, 0)
