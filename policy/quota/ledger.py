"""The usage of quotas: one account per namespace, and the pool that all elastic quotas lend from. Queues: queue_ledger.

Every change is a difference to a few numbers, so the cost of reading them does not grow with pods or quotas. A recount
from the pods (``tests/properties``) defines the right numbers, in the words of the seed (capacity scheduling, Cache)
and of Kubernetes.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from policy.objects import signature
from policy.objects.resources import (
    NOTHING,
    Resources,
    add,
    change,
    count_names,
    is_lighter,
    replace_part,
    subtract,
    total,
)
from policy.quota.account import Account, Pool
from policy.quota.changes import Changes, Generations
from policy.quota.entry import TAKING, Entry, key_of, may_ease
from policy.quota.queue_ledger import QueueLedger
from policy.quota.run_time_limit import RunTimeLimits, says_nothing
from policy.quota.sizes import WaitingRequests
from policy.quota.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from policy.objects.pod import Pod
    from policy.quota.elastic_quota import ElasticQuota
    from policy.quota.entry import EntryKind


def in_no_queue(_: Pod) -> str:
    """Returns no queue for any pod, for a ledger without queues."""
    return ""


def without_claim(_: Pod) -> bool:
    """Returns that no waiting pod has a claim, for a ledger without queues."""
    return False


class Ledger:
    """Entries by pod UID, and the sums that follow from them and from the quotas in force.

    ``over_min`` are the namespaces whose quota exceeds its min. ``queues`` is the part of the ledger that is kept by
    queue. ``queue_of`` tells which queue a pod is in, ``own_queue_of`` which one was named for it. ``has_claim`` tells
    whether room is kept for what a waiting pod waits for. ``generations`` and ``changes`` tell others what has changed.
    ``named`` counts by resource the quotas in force that name it. ``declared``: see ``RunTimeLimits``.
    """

    def __init__(
        self,
        queue_of: Callable[[Pod], str] = in_no_queue,
        has_claim: Callable[[Pod], bool] = without_claim,
        own_queue_of: Callable[[Pod], str] = in_no_queue,
        declared: Callable[[Pod], int | None] = says_nothing,
    ) -> None:
        self.accounts: dict[str, Account] = {}
        self.pool = Pool()
        self.entries: dict[str, Entry] = {}
        self.generations, self.changes = Generations(), Changes()
        self.queues = QueueLedger(self.generations, self.changes)
        self.over_min: set[str] = set()
        self.named: dict[str, int] = {}
        self.run_time_limits = RunTimeLimits(declared)
        self.queue_of = queue_of
        self.own_queue_of = own_queue_of
        self._has_claim = has_claim

    def runs_too_long(self, pod: Pod) -> bool:
        """Whether a limit refuses how long a pod says that it runs, or that nobody says it (``max-run-time``)."""
        limits = self.run_time_limits
        return bool(limits.most) and limits.refuses(self, pod, self.queue_of(pod))

    def enter(self, kind: EntryKind, pod: Pod) -> None:
        """Enters a pod in place of its earlier entry. An entry that is equal to the earlier one changes nothing.

        ``pending`` pods wait and have nothing yet. Leaves out those without a claim that no queue counts either.
        """
        entry = self.entry(kind, pod)
        if kind == "pending" and not (entry.queue or entry.claims):
            self.remove(pod.uid)
            return
        before = self.entries.get(pod.uid)
        if before == entry:
            return
        kept = self._kept_in_pool(pod.namespace)
        if before is not None:
            self._take_out(pod.uid)
        self._enter(pod.uid, entry, before, kept)

    def trial(self) -> Trial:
        """Returns a context in which pods may be taken out or let in, to ask about the rest."""
        return Trial(self)

    def lift(self, uid: str, *, claims: bool) -> None:
        """Takes out a pod that is in the ledger. The caller must lower it again, or enter it.

        ``claims`` False: the claims of its queue and its namespace stay as they were.
        """
        self._apply(self.entries.pop(uid), -1, claims=claims)

    def lower(self, uid: str, entry: Entry, *, claims: bool) -> None:
        """Enters a lifted pod as it was before."""
        self.entries[uid] = entry
        self._apply(entry, 1, claims=claims)

    def enter_lifted(self, uid: str, entry: Entry, before: Entry | None, *, claims: bool) -> None:
        """Enters a lifted pod whose entry was ``before``, and that does not wait any more."""
        if before == entry:
            self.lower(uid, entry, claims=claims)
        else:
            self._enter(uid, entry, before, self._kept_in_pool(entry.namespace))

    def enter_alike(self, kind: EntryKind, pods: Sequence[Pod]) -> None:
        """Enters new pods that count alike: of one namespace and queue, with the same request and priority."""
        entry = self.entry(kind, pods[0])
        self.entries.update(dict.fromkeys((pod.uid for pod in pods), entry))
        self._apply(entry.times(len(pods)), 1)
        self.queues.note(None, entry)

    def entry(self, kind: EntryKind, pod: Pod) -> Entry:
        """Returns the entry that a pod would have."""
        queue, pinned = self.queue_of(pod), not pod.preemptible
        if kind in TAKING:
            return Entry(kind, pod.namespace, pod.request, pod.priority, pinned, queue)
        owner = kind == "pending" and self._is_owner(pod.namespace)
        claims = bool(queue or owner) and self._has_claim(pod)
        return Entry(kind, pod.namespace, pod.request, pod.priority, pinned, queue, claims, owner=owner)

    def remove(self, uid: str) -> Entry | None:
        """Takes a pod out; returns its entry, or None if it had none."""
        entry = self.entries.get(uid)
        if entry is None:
            return None
        claimed = self.account(entry.namespace).claim
        self._take_out(uid)
        eases = self.queues.note(entry, None) or entry.kind != "pending"
        self.generations.admission += eases or is_lighter(self.account(entry.namespace).claim, claimed)
        return entry

    def restore(self, uid: str, entry: Entry | None) -> None:
        """Sets a pod's entry to an earlier one, or takes the pod out (None). Asks no rule."""
        now = self.entries.get(uid)
        if now != entry:
            self._take_out(uid)
            if entry is not None:
                self.put_back(uid, entry)
            self.queues.note(now, entry)

    def set_aside(self, uid: str) -> Entry | None:
        """Takes a pod out to ask about the rest. The caller must put it back."""
        return self._take_out(uid)

    def send_back(self, uid: str) -> Entry | None:
        """Takes a pod out like ``set_aside``, but lets it wait in its queue, as an evicted pod returns with a claim."""
        entry = self._take_out(uid)
        if entry is not None and entry.queue:
            self.put_back(uid, entry._replace(kind="pending", claims=True))
        return entry

    def put_back(self, uid: str, entry: Entry) -> None:
        """Enters a pod that is not in the ledger, as it was when it was removed."""
        self.entries[uid] = entry
        self._apply(entry, 1)

    def set_aside_all(self, uids: Iterable[str]) -> dict[str, Entry]:
        """Takes pods out to ask about the rest, those that are alike in one step; returns the entries taken out."""
        aside = {uid: entry for uid in uids if (entry := self.entries.pop(uid, None)) is not None}
        self._apply_all(aside.values(), -1)
        return aside

    def put_back_all(self, aside: Mapping[str, Entry]) -> None:
        """Enters pods that are not in the ledger, those that are alike in one step."""
        self.entries.update(aside)
        self._apply_all(aside.values(), 1)

    def end_assuming(self, uids: Iterable[str], before: Mapping[str, Entry]) -> None:
        """Takes out pods that were entered only to ask about the rest, and enters those that were there before.

        Drops tenants that have no pods afterwards.
        """
        assumed = self.set_aside_all(uids)
        self.put_back_all(before)
        for entry in signature.distinct(assumed.values()):
            self.queues.drop_if_empty(entry)

    def grant_all(self, pods: Iterable[Pod]) -> None:
        """Grants these pods, which are of one gang, in place of their earlier entries, those alike in one step.

        Does not count whether that eases anything for others: the code that holds room for a gang counts it.
        """
        known: dict[Hashable, Entry] = {}
        entries = {}
        for pod in pods:
            same = signature.by_rules(pod, pod.queue)
            entry = known.get(same)
            if entry is None:
                entry = known[same] = self.entry("granted", pod)
            entries[pod.uid] = entry
        before = self.set_aside_all(entries)
        self.put_back_all(entries)
        pairs = groupby((before.get(uid), entry) for uid, entry in entries.items())
        unlike = {
            (id(entry), None if earlier is None else key_of(earlier)): (earlier, entry) for (earlier, entry), _ in pairs
        }
        for earlier, entry in unlike.values():
            self.queues.note(earlier, entry)

    def set_quota(self, namespace: str, quota: ElasticQuota | None) -> None:
        """Puts a quota in force for a namespace, in place of the earlier one; None lifts the earlier one."""
        self.generations.admission += 1
        account = self.accounts.get(namespace) or self._open(namespace)
        if account.quota is not None:
            subtract(self.pool.used, account.used)
            subtract(self.pool.in_flight, account.in_flight)
            self.pool.withdraw(account.quota.min)
        else:
            subtract(self.pool.outside, account.used)
        count_names(self.named, _names_of(account.quota), _names_of(quota))
        account.quota = quota
        if quota is not None:
            add(self.pool.used, account.used)
            add(self.pool.in_flight, account.in_flight)
            self.pool.contribute(quota.min)
        else:
            add(self.pool.outside, account.used)
        self._settle(namespace, account)

    def quotas(self) -> Iterator[tuple[str, ElasticQuota, Account]]:
        """Yields namespace, quota and account of every elastic quota in force, by namespace."""
        for namespace in sorted(self.accounts):
            account = self.accounts[namespace]
            if account.quota is not None:
                yield namespace, account.quota, account

    @property
    def borrowing(self) -> AbstractSet[str]:
        """The namespaces that borrow: their quota exceeds its min, or a queue of theirs exceeds what it deserves."""
        over = [self.queues.accounts[name].tenants for name in self.queues.over_deserved]
        return self.over_min.union(*over) if over else self.over_min

    def borrows(self, pod: Pod, *, by_share: bool = False) -> bool | None:
        """Whether a pod borrows, now or if it runs; None where nothing is guaranteed to it.

        ``by_share``: its namespace's fair share of its queue counts as guaranteed, too.
        """
        account, queue = self.accounts.get(pod.namespace), self.queues.accounts.get(self.queue_of(pod))
        bounds = list[tuple[Resources, Resources]]()
        if account is not None and account.quota is not None:
            bounds.append((account.used, account.quota.min))
        if queue is not None and queue.queue is not None:
            bounds.append((queue.taken, queue.division.deserved))
            if by_share and (tenant := queue.tenants.get(pod.namespace)) is not None:
                bounds.append((tenant.taken, tenant.entitled))
        if not bounds:
            return None
        entry = self.entries.get(pod.uid)
        request = NOTHING if entry is not None and entry.kind in TAKING else pod.request
        return any(
            used.get(resource, 0) + request.get(resource, 0) > guaranteed.get(resource, 0)
            for used, guaranteed in bounds
            for resource in pod.request
            if resource in guaranteed
        )

    def ahead_of(self, pod: Pod, account: Account) -> tuple[Resources, Resources]:
        """Returns what counts besides used against a pod that is not in the ledger: in its own quota, and in the pool.

        That is what pods with a nominated node wait for. Of the same quota, those of equal or higher priority count; of
        other quotas, those whose quota does not exceed its min (seed: capacity scheduling; as scheduler-plugins
        counts).
        """
        pool = self.pool.nominated
        if not account.nominated:
            return NOTHING, pool
        own = total(requests for priority, requests in account.nominated.items() if priority >= pod.priority)
        others = dict(pool)
        subtract(others, account.nominated_in_pool)
        add(others, own)
        return own, others

    def account(self, namespace: str) -> Account:
        """Returns the namespace's account; where nothing stands in it, an empty one that is not kept."""
        return self.accounts.get(namespace) or Account()

    def _open(self, namespace: str) -> Account:
        account = self.accounts[namespace] = Account()
        return account

    def _enter(self, uid: str, entry: Entry, before: Entry | None, kept: tuple[Resources, Resources]) -> None:
        """Enters a pod that was taken out. ``kept``: what its account had in the pool for others than its used."""
        self.put_back(uid, entry)
        eases = self.queues.note(before, entry) or (before is not None and may_ease(before, entry))
        lent, claimed = kept
        if lent or claimed:
            lent_now, claimed_now = self._kept_in_pool(entry.namespace)
            eases = eases or is_lighter(lent_now, lent)
            if is_lighter(claimed_now, claimed):
                taken = entry.request if entry.kind in ("assigned", "granted") else NOTHING
                eases = eases or is_lighter(total((claimed_now, taken)), claimed)
        self.generations.admission += eases

    def _kept_in_pool(self, namespace: str) -> tuple[Resources, Resources]:
        """Returns what a namespace has in the pool beside its used: for its nominated pods, and by its claim."""
        account = self.account(namespace)
        return account.nominated_in_pool, account.claim

    def _take_out(self, uid: str) -> Entry | None:
        entry = self.entries.pop(uid, None)
        if entry is not None:
            self._apply(entry, -1)
        return entry

    def _apply_all(self, entries: Collection[Entry], times: int) -> None:
        kinds: dict[Hashable, tuple[Entry, int]] = {}
        for entry, alike in groupby(entries):  # mostly those that follow each other are alike
            first, so_far = kinds.get(same := key_of(entry), (entry, 0))
            kinds[same] = first, so_far + len(list(alike))
        for entry, number in kinds.values():
            self._apply(entry.times(number), times)

    def _apply(self, entry: Entry, times: int, *, claims: bool = True) -> None:
        """Adds an entry (``times`` is 1) or subtracts it (-1). ``claims`` False: leaves claims as they are."""
        waits, account = entry.kind == "pending", None
        if not waits or (entry.owner and entry.claims):
            account = self.accounts.get(entry.namespace) or self._open(entry.namespace)
        sums = self.queues.sums(entry) if entry.queue else []
        if not entry.queue and entry.kind in TAKING:
            sums.append(self.queues.outside)
        if account is not None:
            sums += self._sums(account, entry)
        change(sums, entry.request, times)
        if entry.queue:
            self.queues.settle(entry, times, claims=claims)
        if account is None:
            return
        if waits:
            account.waiting = account.waiting or WaitingRequests()
            account.waiting.change(entry.of_one, times * entry.number)
            if not account.pending:
                account.waiting = None
        elif entry.kind in ("nominated", "held") and not account.nominated[entry.priority]:
            del account.nominated[entry.priority]
        self._settle(entry.namespace, account, claims=claims)

    def _sums(self, account: Account, entry: Entry) -> Sequence[dict[str, int]]:
        """Returns the sums outside of queues that an entry is a part of."""
        if entry.kind == "pending":
            return (account.pending,)
        governed = account.quota is not None
        if entry.kind == "in_flight":
            sums = [account.in_flight]
            if entry.pinned:
                sums.append(account.pinned_in_flight)
            if governed:
                sums.append(self.pool.in_flight)
        elif entry.kind in ("nominated", "held"):
            sums = [account.nominated.setdefault(entry.priority, {})]
            if entry.kind == "held":
                sums.append(account.held)
                if entry.pinned:
                    sums.append(account.pinned)
        else:
            sums = [account.used, self.pool.used if governed else self.pool.outside]
            if entry.kind == "assigned":
                sums.append(account.assigned)
            if entry.pinned:
                sums.append(account.pinned)
        return sums

    def _is_owner(self, namespace: str) -> bool:
        """Whether an elastic quota guarantees something to a namespace, so that it can have a claim to that."""
        account = self.accounts.get(namespace)
        return account is not None and account.quota is not None and bool(account.quota.min)

    def _settle(self, namespace: str, account: Account, *, claims: bool = True) -> None:
        """Updates what follows from a change of an account: whether its quota borrows, and what the pool lends.

        Drops an empty account: namespaces come and go without end. ``claims``: updates its claim, too.
        """
        account.lent = None
        if account.quota is not None or namespace in self.over_min:
            (self.over_min.add if account.over_min else self.over_min.discard)(namespace)
        if account.nominated or account.nominated_in_pool:
            self._lend_nominated(account)
        if claims and (account.pending or account.claim):
            claim = account.claims()
            replace_part(self.pool.claims, account.claim, claim)
            account.claim = claim
        if account.quota is None and not (account.used or account.nominated or account.in_flight or account.pending):
            del self.accounts[namespace]

    def _lend_nominated(self, account: Account) -> None:
        """Keeps in the pool what the account's nominated pods wait for, as long as its used does not exceed its min.

        Always keeps what is held for a pod: other pods were evicted for it.
        """
        subtract(self.pool.nominated, account.nominated_in_pool)
        if account.quota is None:
            lent: Resources = NOTHING
        else:
            lent = dict(account.held) if account.over_min else total(account.nominated.values())
        account.nominated_in_pool = lent
        add(self.pool.nominated, account.nominated_in_pool)


def _names_of(quota: ElasticQuota | None) -> Resources:
    """Returns the resources that a quota names, whatever the amounts."""
    return {**quota.min, **quota.max} if quota is not None else NOTHING
