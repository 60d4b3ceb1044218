"""Victims, against the rules counted by hand: every set of pods that could go is tried, in small clusters."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.objects.reservation import PodName, Reservation
from policy.objects.resources import total
from policy.preemption import joint_plans
from policy.preemption.plans import NoPlan, Plan
from policy.preemption.victims import plan, search_steps, victims_on
from policy.quota.admission import Rules
from policy.quota.elastic_quota import ElasticQuota, elastic_quota
from tests.properties.world import one_of_each
from tests.unit.given_nodes import labelled

NAMESPACES = ("a", "b", "c", "free")
CROWD = ("b", "b", "b", "c", "c", "a", "a", "free")
NODES = ("n1", "n2")
SIZES = ({"cpu": 1}, {"cpu": 2}, {"gpu": 1}, {"cpu": 1, "gpu": 1}, {"cpu": 3}, {"cpu": 1, "gpu": 2})
STANDINGS = (
    *[{}] * 12,
    {"terminating": True},
    {"preemptible": False},
    {"owner": "DaemonSet"},
    {"owner": "Node"},
    {"priority": 2_000_000_000},
)
LABELS = ({}, {"app": "x"}, {"app": "x", "tier": "y"})
LEAST = (None, 0, 1, 2, 3)
OWN = (None, 3, 4, 5, 2)
MOST = (*[None] * 4, 5, 3)


def _pod(namespace: str, size: dict, priority: int, where: dict, standing: dict, labels: dict, started: int) -> Pod:
    rest = {"priority": priority} | where | standing
    return Pod("", namespace, "", size | {"pods": 1}, labels=labels, started=float(started), **rest)


def _quota(namespace: str, *bounds: int | None) -> ElasticQuota:
    limits = [
        {r: b for r, b in zip(("cpu", "gpu"), some, strict=True) if b is not None} for some in (bounds[:2], bounds[2:])
    ]
    return elastic_quota(namespace, "quota", 0.0, *limits)


PLACES = tuple({"node": name} for name in NODES)
standing_pods = one_of_each(_pod, CROWD, SIZES, range(3), PLACES, STANDINGS, LABELS, range(2))
expected_pods = one_of_each(
    _pod, NAMESPACES, SIZES[:4], range(3), [{"nominated_node": name} for name in NODES], [{}], [{}], [0]
)
preemptors = one_of_each(
    _pod,
    ("a", "a", "a", "free"),
    SIZES,
    range(3),
    ({}, {}, {}, {"nominated_node": "n1"}),
    (*[{}] * 8, {"preemptible": False}, {"may_preempt": False}),
    [{}],
    [0],
)


@dataclass(frozen=True)
class World:
    """A cluster to be, and the pod that wants to run in it."""

    preemptor: Pod
    nodes: tuple[Node, ...]
    quotas: tuple[ElasticQuota, ...]
    pods: tuple[Pod, ...]
    budgets: tuple[Budget, ...]
    strict: bool

    def cluster(self, *, backwards: bool = False) -> Cluster:
        cluster = Cluster(Rules(strict_borrowing=self.strict), settle_time=0)
        turned = reversed if backwards else iter
        for node in turned(self.nodes):
            cluster.upsert_node(node)
        for quota in turned(self.quotas):
            cluster.upsert_quota(quota)
        for budget in turned(self.budgets):
            cluster.upsert_budget(budget)
        for pod in turned((*self.pods, self.preemptor)):
            cluster.upsert_pod(pod, now=0)
        return cluster


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = [
        draw(
            one_of_each(
                lambda name, cpu, gpu, pods: Node(name, {"cpu": cpu, "gpu": gpu, "pods": pods}),
                [name],
                (4, 3, 2),
                (2, 1, 0),
                (9, 9, 3, 2),
            )
        )
        for name in NODES
    ]
    quotas = [
        draw(one_of_each(_quota, [name], *least, MOST, MOST))
        for name, least in zip("abc", ([OWN] * 2, [LEAST] * 2, [LEAST] * 2), strict=True)
    ]
    pods = draw(st.lists(standing_pods, min_size=3, max_size=7)) + draw(st.lists(expected_pods, max_size=1))
    named = [replace(pod, uid=f"p{number}", name=f"p{number}") for number, pod in enumerate(pods)]
    budgets = [
        draw(one_of_each(Budget, [namespace], ["budget"], [labelled(app="x")], (0, 1), (frozenset(), {"p1"})))
        for namespace in "ab"
    ]
    return World(
        replace(draw(preemptors), uid="me", name="me", unschedulable=Unschedulable("Unschedulable", "no room")),
        tuple(nodes),
        tuple(quotas),
        tuple(named),
        tuple(budgets),
        draw(st.sampled_from((False, False, False, True))),
    )


# By hand: nothing here is clever, and nothing is kept


class ByHand:
    """The rules in their own words, for one world. ``gone`` are UIDs of victims; those terminating are always gone."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.me = world.preemptor
        self.quotas = {quota.namespace: quota for quota in world.quotas}
        self.by_uid = {pod.uid: pod for pod in world.pods}
        self._known: dict[tuple[frozenset[str], str], bool] = {}

    def there(self, gone: frozenset[str]) -> list[Pod]:
        return [pod for pod in self.world.pods if pod.node and not pod.terminating and pod.uid not in gone]

    def expected(self) -> list[Pod]:
        """Pods that wait for a node which could take them, were it empty: others will never come there."""
        nodes = {node.name: node.allocatable for node in self.world.nodes}
        return [
            pod
            for pod in self.world.pods
            if not pod.node
            and all(asked <= nodes[pod.nominated_node].get(resource, 0) for resource, asked in pod.request.items())
        ]

    def used(self, namespace: str, resource: str, gone: frozenset[str]) -> int:
        return sum(p.request.get(resource, 0) for p in self.there(gone) if p.namespace == namespace)

    def ahead(self, resource: str, gone: frozenset[str], namespaces: set[str]) -> int:
        return sum(
            pod.request.get(resource, 0)
            for pod in self.expected()
            if pod.namespace in namespaces
            and (
                pod.priority >= self.me.priority
                if pod.namespace == self.me.namespace
                else not any(self.used(pod.namespace, r, gone) > m for r, m in self.quotas[pod.namespace].min.items())
            )
        )

    def exceeded(self, gone: frozenset[str]) -> set[str]:
        """The resources that the rules refuse the pod for."""
        quota = self.quotas.get(self.me.namespace)
        if quota is None:
            return set()
        over_max, over_pool = set(), set()
        for resource, asked in self.me.request.items():
            own = self.used(quota.namespace, resource, gone) + self.ahead(resource, gone, {quota.namespace}) + asked
            if own > quota.max.get(resource, own):
                over_max.add(resource)
            lent = [q.min[resource] for q in self.quotas.values() if resource in q.min]
            if not lent:
                continue
            everywhere = sum(self.used(name, resource, gone) for name in self.quotas)
            everywhere += self.ahead(resource, gone, set(self.quotas)) + asked
            within = own <= quota.min.get(resource, 0) or bool(self.guaranteed(gone))
            if everywhere > sum(lent) and (self.world.strict or not within):
                over_pool.add(resource)
            pinned = sum(
                p.request.get(resource, 0)
                for p in self.there(gone)
                if p.namespace == quota.namespace and not p.preemptible
            )
            if not self.me.preemptible and pinned + asked > quota.min.get(resource, 0):
                over_pool.add(resource)
        return over_max or over_pool

    def lacking(self, node: Node, gone: frozenset[str]) -> set[str]:
        """The resources that the node is short of for the pod."""
        here = [pod for pod in self.there(gone) if pod.node == node.name]
        here += [p for p in self.expected() if p.nominated_node == node.name and p.priority >= self.me.priority]
        return {
            resource
            for resource, asked in self.me.request.items()
            if sum(pod.request.get(resource, 0) for pod in here) + asked > node.allocatable.get(resource, 0)
        }

    def runs(self, node: Node, gone: frozenset[str]) -> bool:
        return not self.lacking(node, gone) and not self.exceeded(gone)

    def guaranteed(self, gone: frozenset[str]) -> set[str]:
        """What min names of the request, if that is within it in all that it names."""
        quota = self.quotas.get(self.me.namespace)
        named = {resource for resource, asked in self.me.request.items() if asked and quota and resource in quota.min}
        for resource in named:
            own = self.used(quota.namespace, resource, gone) + self.ahead(resource, gone, {quota.namespace})
            if own + self.me.request[resource] > quota.min[resource]:
                return set()
        return named

    def entitled(self, gone: frozenset[str] = frozenset()) -> set[str]:
        """What it may take back of others, when those have gone: its own may have to go before.

        What is guaranteed, and with it a slot on a node, where some node has none left.
        """
        named = self.guaranteed(gone)
        return named | {"pods"} if named and any(self.slots(node) < 1 for node in self.world.nodes) else named

    def slots(self, node: Node) -> int:
        """How many more pods there may be on a node, with those that are expected there and those that are going."""
        there = [pod for pod in self.world.pods if node.name in (pod.node, pod.nominated_node)]
        return node.allocatable["pods"] - len(there)

    def touchable(self, pod: Pod, gone: frozenset[str] = frozenset()) -> bool:
        """One that opted out is so only while the pods of its namespace that did are within its min."""
        system = pod.owner in ("DaemonSet", "Node") or pod.priority >= 2_000_000_000
        return bool(pod.node) and not pod.terminating and not system and not self.opted_out(pod, gone)

    def opted_out(self, pod: Pod, gone: frozenset[str]) -> bool:
        quota = self.quotas.get(pod.namespace)
        if pod.preemptible or quota is None:
            return not pod.preemptible
        pinned = [p for p in self.there(gone) if p.namespace == pod.namespace and not p.preemptible]
        lent = {resource for q in self.quotas.values() for resource in q.min}
        return all(sum(p.request.get(r, 0) for p in pinned) <= quota.min.get(r, 0) for r in set(pod.request) & lent)

    def peer(self, pod: Pod) -> bool:
        same = (
            pod.namespace == self.me.namespace if self.me.namespace in self.quotas else pod.namespace not in self.quotas
        )
        return same and pod.priority < self.me.priority

    def borrowed(self, pod: Pod, wanted: set[str], gone: frozenset[str]) -> bool:
        """Whether the pod of another quota holds something wanted that its quota borrows, when those are gone."""
        quota = self.quotas.get(pod.namespace)
        if quota is None or pod.namespace == self.me.namespace:
            return False
        over = {r for r, least in quota.min.items() if self.used(pod.namespace, r, gone) > least}
        for resource in wanted & set(pod.request):
            named = {r for r, asked in pod.request.items() if asked} & set(quota.min)
            mine = self.guaranteed(gone)
            more = resource in mine and named <= mine  # all that is guaranteed to it there is guaranteed to me, too
            if resource in over if resource in quota.min else (not named or named & over or more):
                return True
        return False

    def legal(self, chosen: frozenset[str], node: Node) -> bool:
        key = chosen, node.name
        if key not in self._known:
            self._known[key] = self._legal(chosen, node)
        return self._known[key]

    def _legal(self, chosen: frozenset[str], node: Node) -> bool:
        """Whether they may go, one after the other in some order. Elsewhere only for what the rules refuse."""
        if not chosen:
            return True
        nobody = frozenset[str]()
        for uid in sorted(chosen):
            pod, before = self.by_uid[uid], chosen - {uid}
            if not self.touchable(pod, before):
                continue
            refused_for = self.exceeded(nobody) & self.entitled(before)
            lacking = (self.lacking(node, nobody) & self.entitled(before)) | refused_for
            wanted = lacking if pod.node == node.name else refused_for
            if (self.peer(pod) or self.borrowed(pod, wanted, before)) and self.legal(before, node):
                return True
        return False

    def answers(self, node: Node, *, elsewhere: bool) -> Iterator[frozenset[str]]:
        """Every set of victims with which the pod runs on the node, the smallest first."""
        nobody = frozenset[str]()
        room = next((n for n in self.world.nodes if elsewhere and not self.lacking(n, nobody)), node)
        if self.lacking(node, nobody) != self.lacking(room, nobody):
            return  # where there is room nobody need go for it
        may_go = [p.uid for p in self.world.pods if p.node and (elsewhere or p.node == node.name)]
        for some in chain.from_iterable(combinations(may_go, number) for number in range(len(may_go) + 1)):
            gone = frozenset(some)
            if self.runs(node, gone) and self.legal(gone, node):
                yield gone

    def has_to_be_found(self, node: Node, *, elsewhere: bool) -> bool:
        """Whether so many may go in any order that the pod runs, or, where only room is lacking, one is enough.

        Else it may be missed: few orders are tried, and who goes first can end what others might be taken for. So it
        may where somebody's going makes nominated pods count, as their quota is within its min then.
        """
        nobody = frozenset[str]()
        refused_for = self.exceeded(nobody)
        lacking = (self.lacking(node, nobody) | refused_for) & self.entitled()
        may_go = frozenset(p.uid for p in self.world.pods if p.node and (elsewhere or p.node == node.name))
        in_any_order = set()
        for pod, others in ((self.by_uid[uid], may_go - {uid}) for uid in may_go):
            wanted = lacking if pod.node == node.name else refused_for & self.entitled()
            if self.touchable(pod, others) and (self.peer(pod) or self.borrowed(pod, wanted, others)):
                in_any_order.add(pod.uid)
        for resource in self.me.request:
            if self.ahead(resource, may_go, set(self.quotas)) > self.ahead(resource, nobody, set(self.quotas)):
                return False
        alone = [] if refused_for else [frozenset({uid}) for uid in may_go]
        return self.runs(node, frozenset(in_any_order)) or any(
            self.runs(node, g) and self.legal(g, node) for g in alone
        )

    def violations(self, victims: tuple[Pod, ...]) -> int:
        """In the order that kube-scheduler counts them: a budget is drawn on pod by pod, the most important first."""
        allowed = {budget.namespace: budget.allowed for budget in self.world.budgets}
        violating = 0
        for pod in sorted(victims, key=lambda pod: (-pod.priority, pod.started)):
            budget = next((b for b in self.world.budgets if b.namespace == pod.namespace), None)
            if budget and pod.labels.get("app") == "x" and pod.name not in budget.disrupted:
                allowed[pod.namespace] -= 1
                violating += allowed[pod.namespace] < 0
        return violating


def state_of(cluster: Cluster):
    """All that is counted, whatever the order in which it was."""
    table, ledger = cluster.table, cluster.ledger
    accounts = {
        name: account for name, account in ledger.accounts.items() if account.quota or account.used or account.nominated
    }
    sites = {
        name: (site.node, site.pods, {resource: used for resource, used in site.used.items() if used})
        for name, site in table._sites.items()
    }
    rows = {resource: table.used[:, column].tolist() for resource, column in table.columns.items()}
    counted = ledger.entries, accounts, ledger.pool, sites, set(table.expected), rows, table.names
    known = (
        cluster.pods,
        cluster.reservations.plans,
        cluster.reservations.held,
        cluster.attempts.refused,
        cluster.attempts.unschedulable_since,
    )
    return deepcopy((counted, known))


def check(by_hand: ByHand, found: Plan) -> None:
    """Whatever holds of every plan."""
    node = next(node for node in by_hand.world.nodes if node.name == found.node)
    gone = frozenset(pod.uid for pod in found.victims)
    assert len(gone) == len(found.victims)
    assert by_hand.runs(node, gone)
    assert by_hand.legal(gone, node)
    for uid in gone:  # nobody could stay: a pod of its own namespace may go so that it is within its min
        others = gone - {uid}
        assert not (by_hand.runs(node, others) and by_hand.legal(others, node)), f"{uid} need not go"
    assert [pod.priority for pod in found.victims] == sorted((pod.priority for pod in found.victims), reverse=True)
    assert found.violations == by_hand.violations(found.victims)
    if by_hand.me.namespace not in by_hand.quotas:
        assert not {pod.namespace for pod in found.victims} & set(by_hand.quotas)
    elif not by_hand.entitled(gone):
        assert {pod.namespace for pod in found.victims} <= {by_hand.me.namespace}


@given(worlds())
def test_a_plan_keeps_to_the_rules_and_is_found_where_there_is_one(world):
    by_hand, cluster = ByHand(world), world.cluster()
    before = state_of(cluster)
    result = plan(cluster, world.preemptor)
    assert state_of(cluster) == before
    if not world.preemptor.may_preempt:
        assert isinstance(result, NoPlan)
        return
    smallest = [next(by_hand.answers(node, elsewhere=True), None) for node in world.nodes]
    possible = [gone for gone in smallest if gone is not None]
    if isinstance(result, Plan):
        check(by_hand, result)
        assert result.victims, "somebody had to go"
        assert all(possible), "nobody had to go"
    elif result.reason in ("room", "waiting"):
        assert not all(possible)
    elif not world.strict:  # there what is lacking and what is refused may be told apart in more than one way
        missed = [node for node, gone in zip(world.nodes, smallest, strict=True) if gone is not None]
        assert not any(by_hand.has_to_be_found(node, elsewhere=True) for node in missed), f"{result} but {possible}"


@given(worlds())
def test_victims_on_a_node_keep_to_the_rules_and_are_found_where_there_are_any(world):
    by_hand, cluster = ByHand(world), world.cluster()
    before = state_of(cluster)
    for node in world.nodes:
        result = next(iter(victims_on(cluster, world.preemptor, [node.name])), None)
        assert state_of(cluster) == before
        smallest = next(by_hand.answers(node, elsewhere=False), None)
        if not world.preemptor.may_preempt or not smallest:
            assert result is None
        elif result is None:
            waits, going = plan(cluster, world.preemptor), any(pod.terminating for pod in world.pods)
            coming = isinstance(waits, NoPlan) and (waits.reason == "waiting" or (waits.reason == "room" and going))
            missed = by_hand.has_to_be_found(node, elsewhere=False)
            assert world.strict or coming or not missed, f"nothing on {node.name}, but {smallest}"
        else:
            assert {pod.node for pod in result.victims} == {node.name}
            check(by_hand, result)


@given(worlds(), st.lists(st.tuples(st.sampled_from(("go", "come")), standing_pods), max_size=4, min_size=2))
def test_a_search_changes_nothing_where_it_pauses_and_what_changes_there_is_heeded(world, changes):
    cluster, pods = world.cluster(), list(world.pods)
    pending = [(what, replace(pod, uid=f"c{number}", name=f"c{number}")) for number, (what, pod) in enumerate(changes)]
    before, work = state_of(cluster), search_steps(cluster, world.preemptor)
    while True:
        try:
            next(work)
        except StopIteration as end:
            result = end.value
            break
        assert state_of(cluster) == before
        if pending:
            what, pod = pending.pop()
            if what == "come":
                pods.append(pod)
                cluster.upsert_pod(pod, now=0)
            elif pods:
                cluster.delete_pod(pods.pop().uid)
            before = state_of(cluster)
    assert state_of(cluster) == before
    if isinstance(result, Plan):
        check(ByHand(replace(world, pods=tuple(pods))), result)


@given(worlds())
def test_the_answer_does_not_depend_on_the_order_in_which_things_were_seen(world):
    forwards, backwards = world.cluster(), world.cluster(backwards=True)
    assert plan(forwards, world.preemptor) == plan(backwards, world.preemptor)
    for name in NODES:
        assert victims_on(forwards, world.preemptor, [name]) == victims_on(backwards, world.preemptor, [name])


@given(worlds(), st.lists(preemptors, max_size=3))
def test_a_preview_changes_nothing(world, others):
    cluster = world.cluster()
    pods = [world.preemptor, *(replace(pod, uid=f"m{n}", name=f"m{n}") for n, pod in enumerate(others))]
    for pod in pods[1:]:
        cluster.upsert_pod(pod, now=0)
    before = state_of(cluster)
    seen = [
        victim.uid
        for _, each in filter(None, joint_plans.preview(cluster, pods))
        if isinstance(each, Plan)
        for victim in each.victims
    ]
    assert len(seen) == len(set(seen))
    assert state_of(cluster) == before


# Rooms that are kept

KEPT_FOR = ("a0", "a1", "b0", "b1")
states = ({}, {"nominated_node": "n2"}, {"terminating": True}, {"node": "n1"}, {"node": "n1", "finished": True})
sightings = one_of_each(
    lambda uid, size, state: Pod(uid, uid[0], uid, size | {"pods": 1}, priority=int(uid[1]), **state),
    KEPT_FOR,
    SIZES[:1] + SIZES[4:5],
    states,
)
reservations = one_of_each(
    lambda uid, node: Reservation(f"for-{uid}", PodName(uid[0], uid, uid), node, (), 0.0), KEPT_FOR, NODES
)

ACTIONS = ("delete", "release", "ask", "expire")


@given(
    st.lists(
        st.one_of(sightings, reservations, st.tuples(st.sampled_from(ACTIONS), st.sampled_from(KEPT_FOR))),
        max_size=25,
    )
)
def test_what_is_held_is_what_a_recount_says(events):
    cluster, now, outgrown = Cluster(settle_time=0), 0.0, set[str]()
    quotas = elastic_quota("a", "q", 0.0, {"cpu": 1}, {}), elastic_quota("b", "q", 0.0, {"cpu": 3}, {})
    for each in quotas:
        cluster.upsert_quota(each)
    for name in NODES:
        cluster.upsert_node(Node(name, dict.fromkeys(("cpu", "memory", "gpu", "pods"), 100)))
    for event in events:
        now += 1
        match event:
            case Pod():
                see_size(cluster, event, outgrown)
                cluster.upsert_pod(event, now)
            case Reservation():
                outgrown -= {event.pod.uid} if event.name not in cluster.reservations.plans else set()
                cluster.upsert_reservation(event)
            case ("delete", uid):
                cluster.delete_pod(uid)
                outgrown.discard(uid)
            case ("release", uid):
                cluster.delete_reservation(f"for-{uid}")
            case ("ask", uid) if uid in cluster.pods and cluster.pods[uid].pending:
                cluster.admit(cluster.pods[uid], now)
            case _:
                now += 60
                cluster.tick(now)
        outgrown -= {each.uid for each in cluster.grants.pods()}  # the rules have admitted them
        for uid in KEPT_FOR:
            entry = cluster.ledger.entries.get(uid)
            assert (entry and entry.kind, where_expected(cluster, uid)) == stands(cluster, uid, outgrown)
        assert_sums(cluster, {each.namespace: each for each in quotas})


def where_expected(cluster: Cluster, uid: str) -> str:
    placed = cluster.table.placed(uid)
    return placed.site.name if placed else ""


def see_size(cluster: Cluster, pod: Pod, outgrown: set[str]) -> None:
    """Notes a pod that requests more than before, though it still has the plan or the nomination of before."""
    before, planned = cluster.pods.get(pod.uid), f"for-{pod.uid}" in cluster.reservations.plans
    if before is None or pod.node or not (planned or before.nominated_node == pod.nominated_node != ""):
        outgrown.discard(pod.uid)
    elif any(amount > before.request.get(resource, 0) for resource, amount in pod.request.items()):
        outgrown.add(pod.uid)


def stands(cluster: Cluster, uid: str, outgrown: set[str]) -> tuple[str | None, str]:
    """How a pod has to stand in the ledger, and on which node in the table."""
    pod = cluster.pods.get(uid)
    held = next((each.node for each in cluster.reservations.plans.values() if each.pod.uid == uid), "")
    if pod is None or pod.finished:
        return None, ""
    if pod.node:
        return "assigned", pod.node
    node = "" if pod.terminating or uid in outgrown else held or pod.nominated_node
    if uid in cluster.grants:
        return "granted", node
    waits = None if pod.terminating or not cluster.attempts.keeps_claim(pod) else "pending"
    return ("held" if held else "nominated") if node else waits, node


def assert_sums(cluster: Cluster, quotas: dict[str, ElasticQuota]) -> None:
    ahead: dict[str, int] = {}
    for namespace, quota in quotas.items():
        of_kind = {
            kind: [e.request for e in cluster.ledger.entries.values() if (e.namespace, e.kind) == (namespace, kind)]
            for kind in ("assigned", "granted", "held", "nominated")
        }
        account = cluster.ledger.account(namespace)
        used = total(of_kind["assigned"] + of_kind["granted"])
        assert (account.used, account.held) == (used, total(of_kind["held"]))
        assert total(account.nominated.values()) == total(of_kind["held"] + of_kind["nominated"])
        within = all(used.get(resource, 0) <= least for resource, least in quota.min.items())
        ahead = total([ahead, *of_kind["held"], *(of_kind["nominated"] if within else [])])
    assert cluster.ledger.pool.nominated == ahead


@given(worlds(), st.sampled_from((1, 2, 3)), st.sampled_from((0, 1, 9)))
def test_no_victim_of_another_quota_is_younger_than_its_min_run_time(world, of_quotas, of_pods):
    quotas = [replace(quota, min_run_time=of_quotas) for quota in world.quotas]
    pods = [
        replace(pod, started=1.0 + number % 4, min_run_time=of_pods * (number % 2))
        for number, pod in enumerate(world.pods)
    ]
    cluster = replace(world, quotas=tuple(quotas), pods=tuple(pods)).cluster()
    cluster.protection.pass_time(4.0)
    found = plan(cluster, world.preemptor)
    plans = victims_on(cluster, world.preemptor, NODES) + ([found] if isinstance(found, Plan) else [])
    lent = {quota.namespace for quota in quotas} - {world.preemptor.namespace}
    for victim in (victim for each in plans for victim in each.victims if victim.namespace in lent):
        assert 4.0 - victim.started >= min(of_quotas, victim.min_run_time or of_quotas)
