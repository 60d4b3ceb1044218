"""Whatever happens in whatever order: the accounts of queues are what a recount finds, and guarantees are kept free."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.cluster import pod_states
from policy.cluster.cluster import Cluster
from policy.nodes.tolerations import tolerates
from policy.objects.constraints import UNCONSTRAINED, Constraints, Taint, Toleration
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.objects.queue import ROOT, Queue
from policy.objects.reservation import PodName, Reservation
from policy.objects.resources import largest, total
from policy.quota.admission import refusal, refusal_of_all
from policy.quota.entitlement import share_lent
from policy.quota.queue_rules import is_over
from policy.stepwise import at_once
from tests.unit.given_queues import Demand, divisions, entitlements
from tests.worlds.walk import Pick, by_dice, by_hypothesis, scaled, walk

NO_ROOM = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
REFUSED = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Queue deserved exceeded: cpu.")
UIDS = {f"{namespace}{number}": namespace for namespace in "abc" for number in range(3)}
QUEUES = ("p", "q", "default", ROOT)
PATIENCE = 30.0
FPGA = "example.com/fpga"
"""Nodes list it at times only."""
REQUESTS = ({"cpu": 1}, {"cpu": 3}, {"cpu": 2, "gpu": 1}, {"memory": 4, "cpu": 1}, {"cpu": 9}, {"cpu": 1, FPGA: 2})
STATES = (*({},) * 3, {"node": "n1"}, {"node": "n2"}, {"node": "n1", "finished": True}, {"nominated_node": "n1"})
NODES = ({}, {"cpu": 8, "memory": 9}, {"cpu": 4, "gpu": 2, "memory": 3}, {"cpu": 8, FPGA: 3})
HELD_ON = Node("n1", {"cpu": 12, "memory": 12, "gpu": 2})
"""The node that room is held on; pods that request what it has none of can never come there, so nothing is held."""


TAINT, SPOT = Taint("dedicated", "x", "NoSchedule"), Taint("spot", "", "NoExecute")
TAINTS = ((), (), (TAINT,), (SPOT, TAINT), (SPOT,))
CONSTRAINTS = (
    UNCONSTRAINED,
    UNCONSTRAINED,
    Constraints(tolerations=(Toleration("dedicated", "Equal", "x"),)),
    Constraints(tolerations=(Toleration("spot", "Exists"), Toleration("dedicated", "Exists"))),
    Constraints(tolerations=(Toleration("node.kubernetes.io/not-ready", "Exists", effect="NoExecute"),)),
)


def without_zeros(amounts):
    return {resource: amount for resource, amount in amounts.items() if amount}


class QueueWalker:
    """Does what can happen to queues and their pods, and counts from scratch after each step."""

    def __init__(self, pick: Pick) -> None:
        self.trace: list[str] = []
        self.now = 0.0
        self.cluster = Cluster(settle_time=0, patience=PATIENCE)
        self.dividing = False
        for name in QUEUES[: pick(range(5))]:
            self.put(self.a_queue(pick, name))
        for namespace in "abc":
            self.cluster.upsert_namespace(self.a_namespace(pick, namespace))
        self.cluster.upsert_node(HELD_ON)
        self.begun = pick((True, True, False))
        if self.begun:
            self.cluster.begin()

    def steps(self):
        return [
            *[self.pod_is_seen] * 5,
            *[self.pod_is_asked_for] * 4,
            *(self.pod_is_deleted, self.queue_changes, self.node_changes, self.namespace_changes, self.is_held),
            *(self.weight_changes, self.group_changes, self.time_passes, self.divided, self.divided),
            self.divided_with_pauses,
        ]

    def a_queue(self, pick, name):
        return Queue(
            name,
            weight=pick((1, 1, 2, 5)),
            capability=pick(({}, {}, {"cpu": 6}, {"gpu": 0}, {FPGA: 1})),
            guarantee=pick(({}, {}, {"cpu": 3}, {"cpu": 7, "gpu": 1}, {FPGA: 1})),
            state=pick(("Open", "Open", "Open", "Closed")),
            parent=pick((ROOT, ROOT, ROOT, "p", "q", "nobody")),
        )

    def a_namespace(self, pick, name):
        return Namespace(name, pick(("", "p", "q", "ghost")), frozenset(pick(((), ("q",)))))

    def put(self, queue):
        self.trace.append(f"see {queue}")
        self.cluster.upsert_queue(queue)

    def pod_is_seen(self, pick):
        uid = pick(sorted(UIDS))
        pod = Pod(
            uid,
            UIDS[uid],
            uid,
            pick(REQUESTS),
            **pick(STATES),
            unschedulable=pick((None, None, NO_ROOM, REFUSED)),
            terminating=pick((False, False, False, True)),
            queue=pick(("", "", "p", "q")),
            group=pick(("", "", "g")),
            gated=pick((False, False, False, True)),
            preemptible=pick((True, True, True, False)),
            owner=pick(("", "", "", "DaemonSet")),
            constraints=pick(CONSTRAINTS),
        )
        self.trace.append(f"see {pod}")
        self.cluster.upsert_pod(pod, self.now)

    def pod_is_asked_for(self, pick):
        pending = sorted(uid for uid, pod in self.cluster.pods.items() if pod.pending)
        if not pending:
            return
        pod = self.cluster.pods[pick(pending)]
        self.trace.append(f"ask for {pod.uid}")
        known = not (self.dividing or self.cluster.to_be_divided)
        in_order = known and not self.anybody_is_over()
        refused = self.cluster.admit(pod, self.now)
        if refused is None and in_order:
            assert not self.unkept()
        smaller = replace(pod, request={r: max(1, amount - 1) for r, amount in pod.request.items()})
        if refused is None and known and not self.cluster.to_be_divided:
            assert self.cluster.check(smaller) is None

    def anybody_is_over(self):
        accounts = self.cluster.ledger.queues.accounts.values()
        return any(is_over(account, resource) for account in accounts if account.queue for resource in account.taken)

    def unkept(self):
        """The resources in which all that is taken and all that is guaranteed besides do not fit below some queue."""
        ledger = self.cluster.ledger.queues
        found = set()
        for parent in (ROOT, *self.cluster.queues):
            children = [
                ledger.node(name) for name in self.cluster.queues if name != ROOT and self.above(name) == parent
            ]
            most = ledger.node(parent).division.real_capability
            for resource in {*ledger.available, *ledger.taken}:  # of what no node lists nothing is kept
                needed = sum(
                    max(each.taken.get(resource, 0), each.division.guarantee.get(resource, 0)) for each in children
                )
                if needed > most.get(resource, 0) and ledger.lists(resource):
                    found.add((parent, resource))
        return found

    # The tree, from what queues say

    def way(self, name):
        """The queues above one, up to the root; None if it does not lead there."""
        found, queues = [], self.cluster.queues
        while name != ROOT:
            if name not in queues or name in found:
                return None
            found.append(name)
            name = queues[name].parent
        return [*found[1:], ROOT]

    def above(self, name):
        """The parent, which is the root for a queue that has no place."""
        way = self.way(name)
        return ROOT if way is None else way[0]

    def is_inner(self, name):
        return name == ROOT or any(each != ROOT and self.above(each) == name for each in self.cluster.queues)

    def is_shut(self, name):
        """Whether a queue admits no pod at all."""
        queues, way = self.cluster.queues, self.way(name) if name != ROOT else []
        if name not in queues:
            return False
        if way is None or self.is_inner(name):
            return True
        return any(each in queues and not queues[each].open for each in (name, *way))

    def pod_is_deleted(self, pick):
        uid = pick(sorted(UIDS))
        self.trace.append(f"delete {uid}")
        self.cluster.delete_pod(uid)

    def queue_changes(self, pick):
        name = pick(QUEUES)
        if pick((True, True, False)):
            self.put(self.a_queue(pick, name))
        else:
            self.trace.append(f"delete queue {name}")
            self.cluster.delete_queue(name)

    def node_changes(self, pick):
        allocatable, usable, taints = pick(NODES), pick((True, True, False)), pick(TAINTS)
        self.trace.append(f"node {allocatable} {usable} {taints}")
        if allocatable:
            self.cluster.upsert_node(Node("n2", allocatable, taints=taints, unschedulable=not usable))
        else:
            self.cluster.delete_node("n2")

    def namespace_changes(self, pick):
        namespace = self.a_namespace(pick, pick("abc"))
        self.trace.append(f"see {namespace}")
        before = self.taken_without_held()
        if pick((True, False)):
            self.cluster.upsert_namespace(namespace)
        else:
            self.cluster.delete_namespace(namespace.name)
        self.check_that_none_moved_beyond_a_capability(before)

    def group_changes(self, pick):
        namespace, queue = pick("abc"), pick(("", "p", "q", None))
        self.trace.append(f"group {namespace}/g {queue}")
        before = self.taken_without_held()
        if queue is None:
            self.cluster.delete_group(namespace, "g")
        else:
            self.cluster.upsert_group(Group(namespace, "g", queue=queue))
        self.check_that_none_moved_beyond_a_capability(before)

    def taken_without_held(self):
        """What each queue counts of pods that were admitted."""
        accounts = self.cluster.ledger.queues.accounts
        return {name: {r: a - each.held.get(r, 0) for r, a in each.taken.items()} for name, each in accounts.items()}

    def check_that_none_moved_beyond_a_capability(self, before):
        """Whatever is named for pods that were admitted, it fills no queue beyond what it may use."""
        for name, taken in self.taken_without_held().items() if self.begun else ():
            most = self.cluster.queues[name].capability if name in self.cluster.queues else {}
            for resource, amount in most.items():
                assert taken.get(resource, 0) <= max(amount, before.get(name, {}).get(resource, 0))

    def weight_changes(self, pick):
        namespace, weight = pick("abc"), pick((None, 1, 4))
        self.trace.append(f"weight {namespace} {weight}")
        self.cluster.upsert_weight(namespace, "quota", weight)

    def is_held(self, pick):
        uid = pick((None, *sorted(UIDS)))
        self.trace.append(f"held {uid}")
        if uid is None:
            self.cluster.delete_reservation("r")
        else:
            self.cluster.upsert_reservation(Reservation("r", PodName(UIDS[uid], uid, uid), "n1", (), since=0))

    def time_passes(self, pick):
        seconds = pick((0.5, 9.0, PATIENCE + 1, 40.0))
        self.trace.append(f"wait {seconds}")
        self.now += seconds
        self.cluster.tick(self.now)

    def divided(self, _):
        self.trace.append("divide")
        for _ in self.cluster.divide_steps():
            pass

    def divided_with_pauses(self, pick):
        """Something happens in some of the pauses."""
        others = [step for step in self.steps() if step not in (self.divided, self.divided_with_pauses)]
        self.trace.append("divide {")
        self.dividing = True
        for _ in self.cluster.divide_steps():
            if pick((True, False)):
                pick(others)(pick)
        self.dividing = False
        self.trace.append("}")

    # What has to hold

    def counted(self):
        """What pods have taken, wait for, use on nodes, are held room for, and may not lose, by queue and namespace."""
        cluster = self.cluster
        held = {each.pod.uid for each in cluster.reservations.plans.values()} - cluster.destinations.outgrown
        closed = {name for name in cluster.queues if self.is_shut(name)}
        taken, pending, running, kept, pinned = {}, {}, {}, {}, {}
        for uid, pod in cluster.pods.items():
            where = cluster.queue_of(pod), pod.namespace
            waits = pod.pending and not pod.terminating
            if pod.assigned:
                kinds = (running, taken)
            elif uid in cluster.grants:
                kinds = (taken,)
            elif waits and uid in held and not pod.gated and HELD_ON.allocatable.keys() >= pod.request.keys():
                kinds = (kept, taken)
            elif waits and not pod.gated and cluster.attempts.unschedulable.keeps_claim(uid) and where[0] not in closed:
                kinds = (pending,)
            else:
                kinds = ()
            if any(kind is taken for kind in kinds) and not pod.preemptible:
                kinds = (*kinds, pinned)
            for kind in kinds:
                kind.setdefault(where, []).append(pod.request)
        return taken, pending, running, kept, pinned

    def check(self):
        at_once(self.cluster.states.catch_up_steps())
        self.check_many_at_once()
        cluster, ledger = self.cluster, self.cluster.ledger.queues
        taken, pending, running, kept, pinned = self.counted()
        outside = [r for (queue, _), some in taken.items() if queue not in cluster.queues for r in some]
        assert ledger.outside == total(outside)
        for name, account in ledger.accounts.items():
            assert account.queue == cluster.queues.get(name)
            for sums, counted in ((account.taken, taken), (account.pending, pending), (account.running, running)):
                assert sums == total(r for (queue, _), some in counted.items() if queue == name for r in some)
            for sums, counted in ((account.held, kept), (account.pinned, pinned)):
                assert sums == total(r for (queue, _), some in counted.items() if queue == name for r in some)
            for namespace, tenant in account.tenants.items():
                assert tenant.taken == total(taken.get((name, namespace), []))
                assert tenant.pending == total(pending.get((name, namespace), []))
                assert tenant.claim == claim(tenant.entitled, tenant.taken, pending.get((name, namespace), []), ledger)
            assert account.tenant_claims == total(tenant.claim for tenant in account.tenants.values())
            waiting = [r for (queue, _), some in pending.items() if queue == name for r in some]
            guaranteed = left(account.division.guarantee, account.taken)
            assert account.claim == largest(
                claim(account.division.deserved, account.taken, waiting, ledger), guaranteed
            )
        existing = [account for account in ledger.accounts.values() if account.queue is not None]
        assert ledger.taken == total(account.taken for account in existing)
        self.check_branches()
        assert ledger.pending == total(account.pending for account in existing)
        assert ledger.over_deserved == {
            account.queue.name
            for account in existing
            if any(is_over(account, r) for r in account.taken if ledger.lists(r))
        }
        for account in existing:
            deserved = account.division.deserved
            lent = {r: taken for r, taken in account.taken.items() if ledger.lists(r)}
            shares = [(taken - deserved.get(r, 0)) / max(deserved.get(r, 0), 1) for r, taken in lent.items()]
            assert share_lent(cluster.ledger, "", account.queue.name) == max([0, *shares])
        for queue, namespace in {where for where in (*taken, *pending) if where[0]}:
            assert namespace in ledger.accounts[queue].tenants
        requested = {r for account in ledger.accounts.values() for r, asked in account.request.items() if asked}
        whole = self.there(lambda taints: True)
        there = self.there(self.is_tolerated)
        assert without_zeros(cluster.capacity.for_queues) == there
        if not cluster.to_be_divided:
            there = {r: (there if r in requested else whole).get(r, 0) for r in {**there, **whole} if ledger.lists(r)}
            available = {r: max(0, amount - ledger.outside.get(r, 0)) for r, amount in there.items()}
            if ROOT in cluster.queues:
                most = cluster.queues[ROOT].capability
                available = {r: min(amount, most.get(r, amount)) for r, amount in available.items()}
            assert without_zeros(ledger.available) == without_zeros(available)
            assert ledger.listed == {
                r for node in cluster.table.nodes() for r, some in node.allocatable.items() if some
            }
            self.check_division()

    def check_branches(self):
        """What a queue counts with all below it, and what its children claim."""
        cluster, ledger = self.cluster, self.cluster.ledger.queues
        assert ledger.branches.by_name.keys() == {ROOT} | {name for name in cluster.queues if self.is_inner(name)}
        claims = ledger.claims  # brings them up to date
        for name, branch in ledger.branches.by_name.items():
            inside = [each for each in cluster.queues if name in (each, *(self.way(each) or [ROOT]))]
            assert branch.queue == cluster.queues.get(name)
            assert branch.taken == total(ledger.accounts[each].taken for each in inside)
            assert branch.in_flight == total(ledger.accounts[each].in_flight for each in inside)
            if name != ROOT:
                assert branch.over == sum(ledger.accounts[each].over for each in inside)
            children = [each for each in cluster.queues if each != ROOT and self.above(each) == name]
            assert branch.claims == total(ledger.node(each).claim for each in children)
            if name != ROOT:
                rest, kept = (
                    left(each, branch.taken) for each in (branch.division.deserved, branch.division.guarantee)
                )
                within = {r: min(more, branch.claims[r]) for r, more in rest.items() if r in branch.claims}
                assert branch.claim == largest(within, kept)
        assert claims is ledger.root.claims
        for name in cluster.queues:
            account = ledger.accounts[name]
            assert account.shut == self.is_shut(name)
            assert account.inner == self.is_inner(name)
            assert bool(account.invalid) == (name != ROOT and self.way(name) is None)
            assert account.parent is ledger.node(name if account.inner else self.above(name))
            if ledger.fits_above(account):
                assert not any(is_over(branch, r) for branch in account.above for r in branch.taken if ledger.lists(r))

    def is_tolerated(self, taints):
        """Whether some pod of a queue may stand where these taints are, as far as they say."""
        cluster = self.cluster
        pods = [pod for pod in cluster.pods.values() if not pod.finished and pod.owner != "DaemonSet"]
        return any(tolerates(pod.constraints.tolerations, taints) for pod in pods if cluster.queue_of(pod))

    def there(self, is_tolerated):
        """What nodes have for pods of queues: those that nobody may come to as much as is used there."""
        parts = []
        for node in self.cluster.table.nodes():
            for_somebody = node.usable and (not node.taints or is_tolerated(node.taints))
            pods = [pod for pod in self.cluster.pods.values() if pod.node == node.name and not pod.finished]
            parts += [node.allocatable] if for_somebody else [pod.request for pod in pods]
        return without_zeros(total(parts))

    def check_many_at_once(self):
        """What is done with many pods in one step is what is done one by one, and nothing is left of it."""
        cluster, ledger = self.cluster, self.cluster.ledger
        pods = sorted((pod for pod in cluster.pods.values() if pod.pending), key=lambda pod: (pod.namespace, pod.uid))
        together = refusal_of_all(ledger, pods, cluster.rules)
        before = {pod.uid: entry for pod in pods if (entry := ledger.set_aside(pod.uid)) is not None}
        refused = None
        for pod in pods:
            refused = refused or refusal(ledger, pod, cluster.queue_of(pod), cluster.rules)
            ledger.put_back(pod.uid, ledger.entry("granted", pod))
        ledger.end_assuming([pod.uid for pod in pods], before)
        assert (together is None) == (refused is None)
        tenants = [tenant for account in ledger.queues.accounts.values() for tenant in account.tenants.values()]
        assert not any(tenant.empty for tenant in tenants)
        ledger.put_back_all(ledger.set_aside_all(list(cluster.pods)))

    def check_division(self):
        """What was computed by and by is what is computed at once."""
        cluster, ledger = self.cluster, self.cluster.ledger.queues
        requests = {name: ledger.accounts[name].request for name in cluster.queues}
        found = divisions(ledger.available, cluster.queues, requests)
        weights = cluster.membership.weight_by_namespace()
        for name in cluster.queues:
            account = ledger.accounts[name]
            if name != ROOT:
                assert ledger.node(name).division == found[name]
            wanted = {namespace: tenant.request for namespace, tenant in account.tenants.items()}
            deserved = {} if account.inner else found[name].deserved
            [parts] = entitlements(ledger.available, [Demand(deserved, wanted, weights)])
            assert {namespace: tenant.entitled for namespace, tenant in account.tenants.items()} == parts

    def finish(self):
        for uid in UIDS:
            self.cluster.delete_pod(uid)
        self.now += 1000
        self.cluster.tick(self.now)
        ledger = self.cluster.ledger.queues
        assert ledger.taken == {}
        assert all(not account.tenants and not account.pending for account in ledger.accounts.values())
        assert set(ledger.accounts) <= set(self.cluster.queues)


def left(part, taken):
    return {r: more for r, amount in part.items() if (more := amount - taken.get(r, 0)) > 0}


def claim(part, taken, waiting, ledger):
    """What is left of a part, as far as it is waited for, if there is one of those who wait that it is enough for.

    Of what no node lists there is enough.
    """
    rest, wanted = left(part, taken), total(waiting)
    waiting = [{r: amount for r, amount in request.items() if ledger.lists(r)} for request in waiting]
    if not any(all(amount <= rest.get(r, 0) for r, amount in request.items()) for request in waiting):
        return {}
    useful = {r for request in waiting for r, amount in request.items() if amount <= rest.get(r, 0)}
    return {r: c for r, amount in rest.items() if r in useful and (c := min(amount, wanted.get(r, 0)))}


@given(st.data())
def test_the_accounts_of_queues_equal_a_recount(data):
    pick = by_hypothesis(data)
    walk(QueueWalker(pick), pick, length=20)


@pytest.mark.parametrize("seed", range(4))
def test_the_accounts_of_queues_equal_a_recount_after_long_walks(seed, monkeypatch):
    monkeypatch.setattr(pod_states, "AT_ONCE", seed % 2)  # most of what only waits is entered later
    for number in range(scaled(60)):
        pick = by_dice(1000 * seed + number)
        walk(QueueWalker(pick), pick, length=60)
