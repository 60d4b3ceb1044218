"""The usage of queues: an account per queue, a tenant per namespace in it, and the claims of each.

It is a part of the ledger and changes by differences too, so the cost of reading it does not grow with pods or queues.
The deserved share of a queue and the fair share of a tenant are computed elsewhere, now and then, and put in here.
Usage of a queue counts in all branches above it, too (see policy.quota.branches).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from policy.objects.resources import Resources, add, count_names, is_extended, replace_part, subtract
from policy.quota.branches import Branch, Branches, Node, branches_above, claim_of, count
from policy.quota.changes import Changes, Generations
from policy.quota.entry import TAKING, asked_by, weight_of
from policy.quota.proportion import Columns, Division
from policy.quota.queue_account import QueueAccount, Tenant

if TYPE_CHECKING:
    from collections.abc import Collection

    from policy.objects.queue import Queue
    from policy.quota.entry import Entry


class QueueLedger:
    """Accounts by name of queue, branches above them, and the sums over all queues that exist: those of the root.

    ``listed`` are the resources of which nodes have something. ``outside`` is
    used by pods in no queue. ``over_deserved`` names the queues that have taken more than they deserve. ``pending`` is
    what pods wait for in all queues. ``as_of``: the generation for which the deserved shares were last computed, or are
    being computed if ``unfinished``; ``columns``: the last result, empty where it is not for the queues and the listed
    resources as they are now. ``turned_away``: a pod was refused because they were
    not known yet. ``named`` counts by resource the queues that name it.
    """

    def __init__(self, generations: Generations, changes: Changes) -> None:
        """Begins without any usage. Notes there what has changed."""
        self._generations = generations
        self._changes = changes
        self.accounts: dict[str, QueueAccount] = {}
        self.branches = Branches()
        self.root, self.tree = self.branches.root, self.branches.tree
        self.listed: frozenset[str] = frozenset()
        self.outside: dict[str, int] = {}
        self.taken, self.in_flight = self.root.taken, self.root.in_flight
        self.pending: dict[str, int] = {}
        self.over_deserved: set[str] = set()
        self.as_of = generations.shares
        self.unfinished = self.turned_away = False
        self.columns: Columns = {}
        self.named: dict[str, int] = {}

    @property
    def stale(self) -> bool:
        """Whether the deserved shares have to be computed anew."""
        return self.as_of != self._generations.shares

    @property
    def available(self) -> Resources:
        """The resources that all queues share."""
        return self.root.division.deserved

    @available.setter
    def available(self, amounts: Resources) -> None:
        self.root.division = Division(real_capability=amounts, deserved=amounts, known=True)

    @property
    def claims(self) -> dict[str, int]:
        """The claims of all queues right below the root."""
        self.branches.settle()
        return self.root.claims

    def lists(self, resource: str) -> bool:
        """Whether there is anything of a resource to divide. No rule refuses an extended resource that no node lists.

        See NodeTable.lists; this is its answer at the time of the last division.
        """
        return resource in self.listed or not is_extended(resource)

    def see_listed(self, listed: frozenset[str]) -> None:
        """Sets the resources that nodes list."""
        if listed != self.listed:
            self.listed, self.columns = listed, {}
            for account in self.accounts.values():
                self.touch(account)
                self._compare(account)
                self._claim(account)
                for tenant in account.tenants.values():
                    self.claim_anew(account, tenant)

    def account(self, name: str) -> QueueAccount:
        """Returns the queue's account; opens one where there is none yet."""
        account = self.accounts.get(name)
        if account is None:
            account = self.accounts[name] = QueueAccount(parent=self.root, counted=[self.outside])
        return account

    def known(self, name: str) -> QueueAccount:
        """Returns the queue's account; where nothing stands in it, an empty one that is not kept."""
        return self.accounts.get(name) or QueueAccount()

    def node(self, name: str) -> Node:
        """Returns a queue with all queues below it: its branch, or the account of a leaf."""
        return self.branches.by_name.get(name) or self.account(name)

    def inside(self, name: str) -> Iterator[QueueAccount]:
        """Returns the accounts of a queue that exists and of all below it."""
        return (self.accounts[each] for each in self.tree.inside(name) if each in self.accounts)

    def requested(self, name: str) -> Resources:
        """Returns what a queue that exists requests: of one with children what these do, each within its bound."""
        if not self.tree.has_children(name):
            return self.accounts[name].request
        sums: dict[str, int] = {}
        for child in self.tree.children_of(name):
            most = self.node(child).division.real_capability
            add(sums, {r: min(amount, most.get(r, amount)) for r, amount in self.requested(child).items()})
        return sums

    def set_queue(self, name: str, queue: Queue | None) -> set[str]:
        """Creates, replaces or removes (None) a queue. The pods of a removed queue stay, and are in no queue.

        Returns the queues whose pods may be admitted at some time and could not before, or the other way round.
        """
        account, before = self.account(name), self.known(name).queue
        if queue is None:
            self.set_division(account, Division())
        if (account.queue is None) != (queue is None):
            counted, not_counted = (add, subtract) if account.queue is None else (subtract, add)
            counted(self.taken, account.taken)
            counted(self.pending, account.pending)
            counted(self.in_flight, account.in_flight)
            not_counted(self.outside, account.taken)
        count_names(self.named, _names_of(account.queue), _names_of(queue))
        account.queue = queue
        moved = self.tree.put(name, queue.parent if queue is not None else None)
        if before is None or queue is None or before.open != queue.open:
            moved |= self.tree.with_all_below(name)
        changed = self._place(moved)
        if (branch := self.branches.by_name.get(name)) is not None:
            branch.queue = queue
        self._compare(account)
        if queue is None:
            self.over_deserved.discard(name)
        self._drop_if_unused(name, account)
        self.columns = {}
        account.stale = True
        self._generations.shares += 1
        return changed

    def _place(self, names: Collection[str]) -> set[str]:
        """Lets queues count where the tree has them now; returns those that are shut now, or no longer."""
        accounts = {name: self.accounts[name] for name in names if name in self.accounts}
        before = {name: account.shut for name, account in accounts.items()}
        for name, account in accounts.items():
            self.branches.note(account)
            claim_of(account, {})
            count(account, -1)
            account.above = ()
            self.branches.withdraw(name)
        self.branches.put(names, {name: account.queue for name, account in accounts.items()})
        for name, account in accounts.items():
            self._stand(name, account)
            self._changes.note(queue=name)
        return {name for name, account in accounts.items() if account.shut != before[name]}

    def _stand(self, name: str, account: QueueAccount) -> None:
        """Lets one of these count below its branch."""
        was_inner, exists = account.inner, account.queue is not None
        account.inner, account.invalid = exists and self.tree.has_children(name), self.tree.invalid.get(name, "")
        way = [self.accounts[each].queue for each in (name, *self.tree.above(name))]
        account.opened = all(each is not None and each.open for each in way)
        account.opened = account.opened and (self.root.queue is None or self.root.queue.open)
        account.shut = exists and (account.inner or bool(account.invalid) or not account.opened)
        account.parent = self.branches.by_name[name] if account.inner else self.branches.above(name)
        if account.inner != was_inner:
            self.set_division(account, Division(known=account.inner))
        account.above = tuple(branches_above(account))
        account.counted = [each.taken for each in (*account.above, self.root)] if exists else [self.outside]
        count(account, 1)
        self._claim(account)

    def set_division(self, node: Node, division: Division) -> bool:
        """Sets the part of the cluster of a leaf or a branch; returns whether it has changed."""
        if division == node.division:
            return False
        if isinstance(node, Branch):
            node.division = division
            if node.queue is not None:
                self._changes.note(queue=node.queue.name)
            self.branches.note_division(node)
            return True
        account = node
        account.stale = account.stale or division.deserved != account.division.deserved
        account.division = division
        self.touch(account)
        self._compare(account)
        self._claim(account)
        return True

    def sums(self, entry: Entry) -> list[dict[str, int]]:
        """Returns the sums that an entry of a queue is a part of. The ledger changes them, and calls settle."""
        asks, in_flight = asked_by(entry), entry.kind == "in_flight"
        if not asks and not in_flight:
            return []
        account = self.account(entry.queue)
        sums = self._sums_of_tenant(account, entry) if asks else []
        if in_flight:
            sums.append(account.in_flight)
            branch = account.parent if account.queue is not None else None
            while branch is not None:
                sums.append(branch.in_flight)
                branch = branch.parent
        return sums

    def settle(self, entry: Entry, times: int, *, claims: bool) -> None:
        """Updates what follows from an entry that was added (``times`` is 1) or subtracted (-1).

        ``claims`` False: neither the claims, nor whether the queue borrows, as a question about a pod needs none of it.
        """
        if not asked_by(entry):
            return
        account = self.accounts[entry.queue]
        tenant = account.tenants[entry.namespace]
        if entry.kind not in TAKING:
            for waiting in (account.waiting, tenant.waiting):
                waiting.change(entry.of_one, times * entry.number)
        if account.above and entry.kind in TAKING:
            self.branches.stale.update(account.above)
        if claims:
            if entry.kind in TAKING:
                self._compare(account)
            self._claim(account)
            self.claim_anew(account, tenant)

    def _sums_of_tenant(self, account: QueueAccount, entry: Entry) -> list[dict[str, int]]:
        """Returns the sums that an entry is a part of as it takes or claims something of its queue."""
        tenant, governed = account.tenants.get(entry.namespace), account.queue is not None
        if tenant is None:
            tenant = account.tenants[entry.namespace] = Tenant()
        if entry.kind not in TAKING:
            waiting = [account.request, tenant.request, account.pending, tenant.pending]
            return [*waiting, self.pending] if governed else waiting
        sums = [account.request, tenant.request, account.taken, tenant.taken, *account.counted]
        if entry.pinned:
            sums.append(account.pinned)
        if entry.kind == "assigned":
            sums.append(account.running)
        elif entry.kind == "held":
            sums.append(account.held)
        return sums

    def _compare(self, account: QueueAccount) -> None:
        """Notes whether a queue has more than it deserves of some resource."""
        account.lent, over = None, False
        if account.queue is not None:
            deserved = account.division.deserved
            for resource, amount in account.taken.items():
                if amount > deserved.get(resource, 0) and self.lists(resource):
                    over = True
                    break
        if over != account.over:
            self._set_over(account, over=over)

    def _set_over(self, account: QueueAccount, *, over: bool) -> None:
        account.over = over
        if account.queue is not None:
            (self.over_deserved.add if over else self.over_deserved.discard)(account.queue.name)
        for branch in account.above:
            branch.over += 1 if over else -1

    def fits_above(self, account: QueueAccount) -> bool:
        """Whether what stays within a queue's part is sure to stay within those of all queues above it.

        The parts of a family sum to no more than its parent's. So it is, if none of the queues below the topmost has
        more than its part, and the parts are those of the tree as it is now.
        """
        return not (account.above and (account.above[-1].over or not self.columns))

    def note(self, before: Entry | None, after: Entry | None) -> bool:
        """Notes that a pod's entry has changed for good (not for a trial), and what is stale for that reason.

        Returns whether some other pod may be admitted now that was not before.
        """
        asks_anew = asked_by(before) != asked_by(after)
        self._generations.shares += asks_anew
        for entry in (before, after):
            if entry is None:
                continue
            self._changes.note(entry.namespace, entry.queue)
            account = self.accounts.get(entry.queue)
            if account is not None:
                account.stale = account.stale or asks_anew
                account.unread.add(entry.namespace)
                if account.queue is None:
                    self._generations.shares += 1  # its usage is subtracted from what the others share
        if before is not None:
            self.drop_if_empty(before)
        return before is not None and bool(before.queue) and weight_of(after) < weight_of(before)

    def touch(self, account: QueueAccount) -> None:
        """Notes that something about a queue, if it exists, has changed."""
        if account.queue is not None:
            self._changes.note(queue=account.queue.name)

    def drop_if_empty(self, entry: Entry) -> None:
        """Drops the account of a tenant, and of its queue, where no pod stands any more."""
        account = self.accounts.get(entry.queue)
        if account is None:
            return
        tenant = account.tenants.get(entry.namespace)
        if tenant is not None and tenant.empty:
            self.claim_anew(account, tenant)
            del account.tenants[entry.namespace]
        self._drop_if_unused(entry.queue, account)

    def _drop_if_unused(self, name: str, account: QueueAccount) -> None:
        if account.queue is None and not account.tenants and not account.in_flight:
            del self.accounts[name]

    def _claim(self, account: QueueAccount) -> None:
        """Updates the claim of a queue."""
        claims = account.claims(self.lists)
        if account.queue is not None and claims != account.claim:
            claim_of(account, claims)
            self.branches.note(account)
        account.claim = claims

    def claim_anew(self, account: QueueAccount, tenant: Tenant) -> None:
        """Updates the claim of a tenant."""
        claims = tenant.claims(self.lists)
        replace_part(account.tenant_claims, tenant.claim, claims)
        tenant.claim = claims


def _names_of(queue: Queue | None) -> Resources:
    """Returns the resources that a queue names, whatever the amounts."""
    return {**queue.capability, **queue.guarantee} if queue is not None else {}
