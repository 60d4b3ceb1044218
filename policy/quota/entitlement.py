"""The resources that a waiting pod may take back, and from which pods: those over min, or in queues over deserved.

Seeds: capacity scheduling (PostFilter), queue guarantee (when a guarantee grows), namespace fair share (preemption).
One notion serves all three. Each is a bound that protects those who stay within it, and lets them take from those
beyond it. A victim that is under several bounds must be beyond each of them that could protect it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from math import fsum, inf

from policy.objects.pod import Pod
from policy.objects.resources import NOTHING as NO_RESOURCES
from policy.objects.resources import Resources, is_extended, total
from policy.quota import elastic_quota, fair_share, queue_rules
from policy.quota.account import Account
from policy.quota.elastic_quota import ElasticQuota
from policy.quota.ledger import Ledger
from policy.quota.queue_account import QueueAccount, Tenant
from policy.stepwise import Steps

LOOKED_AT = 250
"""Namespaces, or queues, that are looked at between two pauses: a fifth of a millisecond if nothing is cached."""

NOTHING: frozenset[str] = frozenset()
SLOT = "pods"
"""The resource of which every pod takes one."""


@dataclass(frozen=True, slots=True)
class Entitlement:
    """The resources that a pod may take back: by its elastic quota, its queue, and its namespace's share of the queue.

    ``share`` is its namespace's dominant share per weight as it would be with the pod. ``guaranteed`` is the part of
    ``by_quota`` that the quota's min names. ``asked`` is the request of all that start with it and have nothing yet:
    see ``stays_within``. None if queues above its own are not asked.
    """

    pod: Pod
    queue: str
    by_quota: frozenset[str]
    by_queue: frozenset[str]
    by_share: frozenset[str]
    share: float
    guaranteed: frozenset[str] = NOTHING
    asked: Resources | None = None

    @property
    def resources(self) -> frozenset[str]:
        """All resources that it may take back."""
        return self.by_quota | self.by_queue | self.by_share

    def may_take(self, ledger: Ledger, victim: Pod, queue: str, wanted: frozenset[str]) -> bool:
        """Whether a pod of another namespace holds some wanted resource that was lent to it, beyond all its bounds.

        ``queue`` is the victim's.
        """
        for resource in wanted:
            if victim.request.get(resource, 0):
                by_queue = self._lent_by_queue(ledger, victim, queue, resource) if queue else None
                if by_queue is False:
                    continue
                by_quota = self._lent_by_quota(ledger, victim, resource)
                if by_quota or (by_queue and by_quota is None):
                    return True
        return False

    def stays_within(self, ledger: Ledger, victim: Pod, queue: str) -> bool:
        """Whether the queues above the pod's own have room for it within their parts, as far as a victim asks for that.

        They are those up to the nearest one that the victim's queue is in, too: others than theirs are to give. Nearer
        victims that are gone leave room there.
        """
        own, other = (ledger.queues.accounts.get(name) for name in (self.queue, queue))
        if self.asked is None or own is None or not own.above or other is None or other.queue is None:
            return True
        way, taken = queue_rules.way_between(own, other), self.resources.intersection(victim.request)
        return all(way.entitles(self.asked, resource) for resource in taken)

    def is_quota_untouched(self, ledger: Ledger, namespace: str) -> bool:
        """Whether another quota stays within its min in all that may be taken back: no pod there can be a victim."""
        account = ledger.accounts.get(namespace)
        quota = account.quota if account is not None else None
        if account is None or quota is None:
            return False
        return not quota.readable or all(r in quota.min and not over_min(account, quota, r) for r in self.resources)

    def is_queue_untouched(self, ledger: Ledger, queue: str) -> bool:
        """Whether another queue has no more than it deserves of what may be taken back: no pod there can be victim."""
        account = ledger.queues.accounts.get(queue) if queue else None
        if account is None or account.queue is None or queue == self.queue:
            return False
        return not any(queue_rules.is_over(account, resource) for resource in self.resources)

    def borrowers_steps(self, ledger: Ledger) -> Steps[set[str]]:
        """Returns the namespaces that borrow what may be taken back. Most namespaces borrow nothing.

        Iterate to the end; the caller may pause in between, and the ledger may change.
        """
        found: set[str] = set()
        for number, (namespace, account) in enumerate(list(ledger.accounts.items())):
            if number % LOOKED_AT == LOOKED_AT - 1:
                yield
            if account.quota is not None and self._borrows(account, account.quota):
                found.add(namespace)
        for number, (name, queue) in enumerate(list(ledger.queues.accounts.items())):
            if number % LOOKED_AT == LOOKED_AT - 1:
                yield
            if name == self.queue:
                for namespace, tenant in queue.tenants.items():
                    if any(is_over_share(tenant, resource) for resource in self.by_share):
                        found.add(namespace)
            elif queue.queue is not None and any(queue_rules.is_over(queue, resource) for resource in self.by_queue):
                found.update(queue.tenants)
        return found

    def _borrows(self, account: Account, quota: ElasticQuota) -> bool:
        for resource in self.by_quota:  # noqa: SIM110 - asked of every namespace; a generator takes three times as long
            if resource not in quota.min or over_min(account, quota, resource):
                return True
        return False

    def _lent_by_quota(self, ledger: Ledger, victim: Pod, resource: str) -> bool | None:
        """Whether the victim's quota borrows the resource; None if the quota neither gives nor protects it.

        A quota that does not name the resource borrows all of it, with one exception. If it is within its min in
        whatever named resources the pod requests, it protects the pod: a quota for GPUs alone protects the CPU of its
        GPU pods. That does not protect from a pod to which all of that is guaranteed as well, and the resource besides.
        It does not protect what it has borrowed of a device either, if only cpu and the like are guaranteed to it. So
        no two pods can take from each other.
        """
        account = ledger.accounts.get(victim.namespace)
        if account is None or account.quota is None:
            return None
        if not account.quota.readable:
            return False  # nobody knows what an unreadable quota guarantees
        quota = account.quota
        if resource in quota.min:
            lent = over_min(account, quota, resource)
        else:
            named = [other for other, asked in victim.request.items() if asked and other in quota.min]
            lent = not named or any(over_min(account, quota, other) for other in named)
            lent = lent or (resource in self.guaranteed and self._outranks(named, resource))
        return (True if resource in self.by_quota else None) if lent else False

    def _outranks(self, named: Collection[str], resource: str) -> bool:
        """Whether the resource, which is guaranteed to the pod, ranks above what is guaranteed to another pod."""
        if is_extended(resource) and not any(map(is_extended, named)):
            return True
        return self.guaranteed.issuperset(named)

    def _lent_by_queue(self, ledger: Ledger, victim: Pod, name: str, resource: str) -> bool | None:
        """Whether the victim's queue, or its namespace in the same queue, has more than its part; None as above."""
        account = ledger.queues.accounts.get(name) if name else None
        if account is None or account.queue is None:
            return None
        if name == self.queue:
            tenant = account.tenants.get(victim.namespace)
            if resource not in self.by_share or tenant is None:
                return None
            return is_over_share(tenant, resource) and self.share < _share_without(ledger, tenant, victim)
        way = queue_rules.way_between(ledger.queues.accounts.get(self.queue), account)
        if not way.lends(resource) or not way.may_lose(victim.request):
            return False
        return True if resource in self.by_queue else None


def entitlement(
    ledger: Ledger,
    pod: Pod,
    beside: Resources = NO_RESOURCES,
    coming: Resources = NO_RESOURCES,
    *,
    by_share: bool,
    by_slot: bool = False,
) -> Entitlement:
    """Returns what the pod may take back; nothing if it would itself exceed a bound. It must not be in the ledger.

    ``beside`` is the request of other pods that start only together with it, ``coming`` the part of it by those that
    have nothing yet. The pod may take back nothing unless all of them stay within their bounds. Of its quota's min only
    the resources that it names count. ``by_share``: namespaces of one queue take from each other, too. ``by_slot``: one
    of the resource ``pods``, which every pod needs, comes with the resources that min names.
    """
    request = total((pod.request, beside)) if beside else pod.request
    name = ledger.queue_of(pod)
    account = ledger.accounts.get(pod.namespace)
    queue = ledger.queues.accounts.get(name) if name else None
    everything = frozenset(pod.request)
    of_quota = _within_min(ledger, account, pod, request) if account is not None and account.quota is not None else None
    of_queue = None if queue is None or queue.queue is None else everything & queue_rules.entitled_to(queue, request)
    if of_quota == NOTHING:
        return Entitlement(pod, name, NOTHING, NOTHING, NOTHING, inf)
    tenant = queue.tenants.get(pod.namespace) if queue is not None else None
    shares = by_share and fair_share.is_entitled(tenant, request)
    named = of_quota or NOTHING if of_queue != NOTHING else NOTHING
    return Entitlement(
        pod,
        name,
        named | {SLOT} if named and by_slot else named,
        of_queue or NOTHING,
        everything if shares else NOTHING,
        _share_with(ledger, tenant, request) if tenant else inf,
        named,
        total((pod.request, coming)) if coming else pod.request,
    )


def as_if_guaranteed(pod: Pod, ledger: Ledger) -> Entitlement:
    """Returns an entitlement to all that a pod requests, from any borrower, whatever the pod is entitled to itself.

    For a pod that a node is reserved for (``reserve.evict``). Other pods are protected as always.
    """
    everything = frozenset(pod.request)
    return Entitlement(pod, ledger.queue_of(pod), everything, everything, NOTHING, inf)


def over_min(account: Account, quota: ElasticQuota, resource: str) -> bool:
    """Whether a quota borrows a resource that its min names."""
    return account.used.get(resource, 0) > quota.min[resource]


def share_lent(ledger: Ledger, namespace: str, queue: str) -> float:
    """Returns how much is lent to a quota or queue, as the largest share of its min, or of what it deserves."""
    account = ledger.accounts.get(namespace)
    if account is None or account.quota is None:
        by_quota = 0.0
    elif account.lent is not None:
        by_quota = account.lent
    else:
        used = account.used
        shares = [(used.get(resource, 0) - least) / max(least, 1) for resource, least in account.quota.min.items()]
        by_quota = account.lent = max(shares, default=inf)  # without a min, all is borrowed
    return max(by_quota, _lent_to_queue(ledger, queue)) if queue else by_quota


def to_spare(bound: Resources, used: Resources) -> Resources:
    """Returns how much may go before used falls below a bound. Leaves out resources where it is below already."""
    return {r: left for r, least in bound.items() if least and (left := used.get(r, 0) - least) >= 0}


def shortfall(bound: Resources, spare: Resources, taken: Resources) -> float:
    """Returns how far below a bound something falls if so much is taken of it, as shares of the bound."""
    return fsum((taken[r] - left) / bound[r] for r, left in spare.items() if taken.get(r, 0) > left)


def _within_min(ledger: Ledger, account: Account, pod: Pod, request: Resources) -> frozenset[str]:
    """Returns the pod's resources that min names, if used stays within min in all named ones with the whole request."""
    if account.quota is None or not account.quota.readable:
        return NOTHING
    ahead, _ = ledger.ahead_of(pod, account)
    return elastic_quota.guaranteed(account, ahead, request).intersection(pod.request)


def is_over_share(tenant: Tenant, resource: str) -> bool:
    """Whether a namespace has taken more than its fair share of its queue."""
    return tenant.taken.get(resource, 0) > tenant.entitled.get(resource, 0)


def _share_with(ledger: Ledger, tenant: Tenant, request: Resources) -> float:
    taken = {r: tenant.taken.get(r, 0) + asked for r, asked in request.items()}
    return fair_share.share({**tenant.taken, **taken}, ledger.queues.available) / tenant.weight


def _share_without(ledger: Ledger, tenant: Tenant, victim: Pod) -> float:
    taken = {r: amount - victim.request.get(r, 0) for r, amount in tenant.taken.items()}
    return fair_share.share(taken, ledger.queues.available) / tenant.weight


def _lent_to_queue(ledger: Ledger, name: str) -> float:
    account: QueueAccount | None = ledger.queues.accounts.get(name)
    if account is None or account.queue is None:
        return 0.0
    if account.lent is None:
        deserved = account.division.deserved
        taken = {r: amount for r, amount in account.taken.items() if ledger.queues.lists(r)}
        shares = [(amount - deserved.get(r, 0)) / max(deserved.get(r, 0), 1) for r, amount in taken.items()]
        account.lent = max(shares, default=0.0)
    return account.lent
