"""An exception in a rule, wherever it is raised, leaves the books right: no pod is lost, and no grant alone."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice

import pytest
from hypothesis import assume, given, settings

from app.whatif.trial import Scene, run_steps
from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.cluster.pod_admission import Unsettled
from policy.explain import gang_hints
from policy.explain.next_steps import Times, next_steps
from policy.explain.verdicts import verdict_on
from policy.nodes.table import NodeTable
from policy.objects.constraints import Constraints
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.queue import Queue
from policy.objects.reservation import STARVING, PodName, Reservation
from policy.preemption import joint_plans, reclaim, victims
from policy.queueing.ungating import UngatingRound, adopt
from policy.queueing.waking import to_wake
from policy.quota.admission import Rules
from policy.quota.elastic_quota import MAX, elastic_quota
from policy.quota.ledger import Ledger
from policy.quota.trial import Lifted, Trial
from policy.reserve import node_reservation
from policy.reserve.starving import Terms
from policy.simulate.snapshot import snapshot
from policy.stepwise import at_once
from tests.properties.failing import Calls, RuleFailed
from tests.properties.world import seeds
from tests.unit.given import refused_for, wait_for_room
from tests.unit.given_gates import AT_GATE, NO_ROOM
from tests.unit.given_jobs import decide, in_turn
from tests.unit.given_nodes import HOSTNAME, term
from tests.worlds.walk import Pick, by_dice, scaled

NOW = 100.0
NODES = {"n1": 4, "n2": 3, "n3": 6}
APART = Constraints(anti_affinity=(term(HOSTNAME, None, app="apart"),))
SAID = (None, NO_ROOM, NO_ROOM, refused_for(MAX))
ENOUGH = 5
"""A question comes to more rules than that."""
TERMS = Terms(starving_after=1.0, max_nodes_percent=50)


def a_world(pick: Pick) -> Cluster:
    """A crowded cluster with all there is: quotas, queues, gangs, gates, kept room and grants."""
    rules = Rules(fair_share_preemption=pick((True, False)), evict_for_reserved=pick((True, False)))
    cluster = Cluster(rules, settle_time=pick((0.0, 0.0, 1000.0)))
    _bound(cluster, pick)
    for number in range(14):
        cluster.upsert_pod(_a_pod(pick, f"u{number}"), 0.0)
    at_once(cluster.divide_steps())
    _keep_room(cluster, pick)
    for pod in waiting(cluster):
        if pick((True, False, False)) and pod.gate < 0:
            with suppress(Unsettled):
                cluster.admit(pod, 1.0)
    if pick((True, False, False)):
        cluster.in_flight.suspect(2.0)
    if pick((True, True, False)):
        at_once(cluster.divide_steps())
    return cluster


def _bound(cluster: Cluster, pick: Pick) -> None:
    """Nodes, and all that pods are bound by."""
    for name, cores in NODES.items():
        cluster.upsert_node(Node(name, {"cpu": cores, "pods": 100}, {HOSTNAME: name}))
    for name in pick(("qr", "qr", "")):
        cluster.upsert_queue(Queue(name, pick((1, 2)), pick(({}, {"cpu": 8})), pick(({}, {"cpu": 2}))))
    for namespace in "abc":
        cluster.upsert_namespace(Namespace(namespace, pick(("q", "r", "")), gated=pick((True, False))))
        cluster.upsert_group(Group(namespace, "g", pick((2, 3)), native=pick((False, False, True))))
        least, most = pick((None, 0, 2, 4)), pick(({}, {"cpu": 6}))
        if least is not None:
            cluster.upsert_quota(elastic_quota(namespace, "quota", 0.0, {"cpu": least}, most))
    for namespace in pick(("", "a", "b", "c")):
        cluster.upsert_budget(Budget(namespace, "budget", None, pick((0, 1)), frozenset()))


def _a_pod(pick: Pick, uid: str) -> Pod:
    namespace = pick("aabbc")
    rest = {
        "priority": pick((0, 0, 1)),
        "group": pick(("", "", "g", "g")),
        "preemptible": pick((True, True, True, False)),
        "created": float(pick(range(5))),
    }
    if pick((False, False, False, True)):
        rest |= {"constraints": APART, "labels": {"app": "apart"}}
    kind = pick(("stands", "stands", "gate", "waits", "waits", "waits"))
    if kind == "stands":
        rest |= {"node": pick(tuple(NODES)), "terminating": pick((False, False, True))}
    elif kind == "gate":
        rest |= {"gate": 0, "unschedulable": AT_GATE}
    else:
        rest |= {"unschedulable": pick(SAID), "nominated_node": pick(("", "", "", "n1"))}
    return Pod(uid, namespace, uid, {"cpu": pick((1, 1, 2, 3)), "pods": 1}, **rest)


def _keep_room(cluster: Cluster, pick: Pick) -> None:
    """For some of the pods that wait: on one node until others have gone, or one that is kept for a starving job."""
    there = [pod for pod in cluster.pods.values() if pod.assigned]
    for number, pod in enumerate(waiting(cluster)):
        kind = pick(("", "", "reclaim", STARVING))
        name, of = f"r{number}", PodName(pod.namespace, pod.name, pod.uid)
        if kind == STARVING:
            cluster.upsert_reservation(Reservation(name, of, pick(tuple(NODES)), (), 0.0, STARVING, job=f"pods/{name}"))
        elif kind:
            gone = tuple(PodName(each.namespace, each.name, each.uid) for each in there[: pick((0, 1))])
            cluster.upsert_reservation(Reservation(name, of, pick(tuple(NODES)), gone, 0.0))


def waiting(cluster: Cluster) -> list[Pod]:
    """The pods that wait, those at gates among them."""
    return [pod for pod in cluster.pods.values() if pod.pending]


# What has to hold


def kinds(cluster: Cluster) -> dict[str, tuple[str, Pod]]:
    """How each pod has to stand in the ledger."""
    found = {}
    for uid, pod in cluster.pods.items():
        if pod.assigned:
            found[uid] = "assigned", pod
        elif uid in cluster.in_flight.uids:
            found[uid] = "in_flight", pod
        elif pod.pending and cluster.reservations.is_held_for(uid) and not pod.terminating:
            found[uid] = "held", pod
        elif pod.pending and pod.nominated_node and not pod.terminating:
            found[uid] = "nominated", pod
        elif pod.pending and (cluster.queue_of(pod) or cluster.ledger.entry("pending", pod).claims):
            found[uid] = "pending", pod
    return found | {pod.uid: ("granted", pod) for pod in cluster.grants.pods()}


def places(cluster: Cluster) -> dict[str, str]:
    """The node where each pod has to stand in the table."""
    found = {}
    for uid, pod in cluster.pods.items():
        held = cluster.reservations.held_for(uid)
        expected = cluster.gangs.node_for(uid) or (held.node if held else pod.nominated_node)
        if pod.assigned or (pod.pending and expected):
            found[uid] = pod.node or expected
    return found


def check(cluster: Cluster) -> None:
    """The ledger and the table equal what is counted from all pods; all that is granted is in the ledger."""
    ledger, entries = cluster.ledger, cluster.ledger.entries
    wanted = {uid: ledger.entry(kind, pod) for uid, (kind, pod) in kinds(cluster).items()}
    assert entries == wanted
    counted = Ledger(cluster.queue_of, cluster.states.has_claim)
    for name, queue in cluster.queues.items():
        counted.queues.set_queue(name, queue)
        counted.queues.set_division(counted.queues.account(name), ledger.queues.accounts[name].division)
    for namespace, account in ledger.accounts.items():
        if account.quota is not None:
            counted.set_quota(namespace, account.quota)
    for uid, entry in wanted.items():
        counted.put_back(uid, entry)
    assert ledger.accounts == counted.accounts
    counted.pool.capacity = ledger.pool.capacity
    assert ledger.pool == counted.pool
    assert ledger.over_min == counted.over_min
    ours, theirs = ledger.queues, counted.queues
    assert (ours.outside, ours.taken, ours.in_flight) == (theirs.outside, theirs.taken, theirs.in_flight)
    for name, account in theirs.accounts.items():
        for part in ("taken", "running", "held", "pending", "request", "in_flight", "claim"):
            assert getattr(ours.accounts[name], part) == getattr(account, part)
        for namespace, tenant in account.tenants.items():
            mine = ours.accounts[name].tenants[namespace]
            assert (mine.taken, mine.pending, mine.request) == (tenant.taken, tenant.pending, tenant.request)
            assert mine.claim == mine.claims(ours.lists)
    check_table(cluster)
    for pod in waiting(cluster):
        if pod.at_gate:
            assert pod.uid in cluster.gates or pod.uid in cluster.grants or pod.uid in cluster.gates.ungating


def check_table(cluster: Cluster) -> None:
    table, counted = cluster.table, NodeTable()
    for node in table.nodes():
        counted.upsert_node(node)
    where = places(cluster)
    for uid, node in where.items():
        counted.add(cluster.pods[uid], node)
    assert {uid: placed.site.name for uid in cluster.pods if (placed := table.placed(uid))} == where
    assert (table.used == counted.used).all()
    assert table.expected.keys() == counted.expected.keys()


def all_there_is(cluster: Cluster) -> tuple:
    """What a question must not change, but for the answer itself."""
    return (
        dict(cluster.ledger.entries),
        {pod.uid for pod in cluster.grants.pods()},
        set(cluster.in_flight.uids),
        set(cluster.gates.ungated),
    )


def kept(cluster: Cluster) -> tuple:
    """The reservations, as they were and as they stay."""
    held = {pod.uid: cluster.reservations.held_for(pod.uid) for pod in cluster.pods.values()}
    there = cluster.reservations
    return dict(there.plans), {each.name: each for each in there.reserved}, dict(there.given_up), held


# What is asked: what a question does, in steps where it pauses


def is_filtered(cluster: Cluster, pod: Pod, pick: Pick) -> None:
    with suppress(Unsettled):
        cluster.admit(replace(pod, gate=-1), NOW, pick((None, ("n1", "n2"))))


def is_checked(cluster: Cluster, pod: Pod, _: Pick) -> None:
    cluster.check(pod)


def is_explained(cluster: Cluster, pod: Pod, _: Pick) -> None:
    verdict_on(cluster, pod.namespace, pod.name)


def are_woken(cluster: Cluster, _: Pod, __: Pick) -> None:
    to_wake(cluster)


def victims_on_nodes(cluster: Cluster, pod: Pod, _: Pick) -> None:
    victims.victims_on(cluster, pod, NODES)


def is_planned(cluster: Cluster, pod: Pod, _: Pick) -> Iterator[None]:
    return victims.search_steps(cluster, pod)


def all_are_planned(cluster: Cluster, _: Pod, __: Pick) -> Iterator[object]:
    return joint_plans.preview(cluster, wait_for_room(cluster, NOW, 1.0))


def is_planned_again(cluster: Cluster, _: Pod, pick: Pick) -> Iterator[None]:
    there = [each for each in cluster.reservations.plans.values() if cluster.reservations.is_in_force(each)]
    return reclaim.still_planned_steps(cluster, pick(there), ()) if there else iter(())


def nodes_are_reserved(cluster: Cluster, _: Pod, __: Pick) -> Iterator[object]:
    return node_reservation.preview(cluster, in_turn(cluster, TERMS, NOW), TERMS, NOW)


def is_foreseen(cluster: Cluster, pod: Pod, _: Pick) -> Iterator[None]:
    return next_steps(cluster, pod, TERMS, Times(NOW, 0.0, 1.0))


def gates_are_opened(cluster: Cluster, _: Pod, __: Pick) -> Iterator[list[Pod]]:
    return UngatingRound(cluster, 1.2).run(NOW)


def gates_are_taken_over(cluster: Cluster, _: Pod, __: Pick) -> None:
    adopt(cluster, NOW)


def gang_is_looked_at(cluster: Cluster, pod: Pod, _: Pick) -> None:
    cluster.gangs.could_start(pod)
    gang_hints.hints(cluster, pod)


def is_simulated(cluster: Cluster, _: Pod, __: Pick) -> Iterator[None]:
    return run_steps(Scene(snapshot(cluster, NOW), TERMS, 0.0), ())


def is_divided(cluster: Cluster, _: Pod, __: Pick) -> Iterator[None]:
    return cluster.divide_steps()


ADMIT = (is_filtered, gates_are_opened, gates_are_taken_over)
ASK = (
    is_checked,
    is_explained,
    are_woken,
    victims_on_nodes,
    is_planned,
    all_are_planned,
    is_planned_again,
    nodes_are_reserved,
    is_foreseen,
    gang_is_looked_at,
    is_simulated,
    is_divided,
)


PAUSE = (is_planned, all_are_planned, nodes_are_reserved, is_foreseen, gates_are_opened, is_simulated, is_divided)


def asked(question, cluster: Cluster, seed: int, told: list) -> None:
    """Asks a question, to its end; what it tells in between is put into the list."""
    pick = by_dice(seed)
    for each in question(cluster, pick(waiting(cluster)), pick) or ():
        told.append(each)  # noqa: PERF402 - also what was told before it fails


def check_after(question, cluster: Cluster, before: tuple) -> None:
    check(cluster)
    assert kept(cluster) == before[0]
    if question in ASK:
        assert all_there_is(cluster) == before[1]


def check_that_it_is_divided_anew(cluster: Cluster) -> None:
    assert cluster.divided or cluster.to_be_divided
    at_once(cluster.divide_steps())
    check(cluster)


def calls_of(question, seed: int) -> Counter[str]:
    """How often each rule is called."""
    cluster = a_world(by_dice(seed))
    with Calls() as calls:
        if waiting(cluster):
            asked(question, cluster, seed, [])
    return calls.number


def check_that_it_fails_well(question, seed: int, name: str, number: int) -> None:
    """The question fails at this call of a rule."""
    cluster, told = a_world(by_dice(seed)), []
    check(cluster)
    before, out = (kept(cluster), all_there_is(cluster)), set(cluster.gates.ungated)
    with suppress(RuleFailed), Calls(name, number):
        asked(question, cluster, seed, told)
    try:
        check_after(question, cluster, before)
        if question is gates_are_opened:
            assert cluster.gates.ungated.keys() - out <= {pod.uid for pods in told for pod in pods}
        check_that_it_is_divided_anew(cluster)
    except AssertionError as failure:
        failure.add_note(f"{question.__name__} failed at call {number} of {name}, seed {seed}")
        raise


def check_that_it_fails_well_somewhere(question, seed: int) -> None:
    """By dice: each rule as likely as the others."""
    pick, number = by_dice(seed + 1), calls_of(question, seed)
    if number:
        name = pick(sorted(number))
        check_that_it_fails_well(question, seed, name, pick(range(1, number[name] + 1)))


@pytest.mark.parametrize("question", ADMIT + ASK)
@settings(max_examples=scaled(60))
@given(seeds)
def test_a_rule_that_fails_leaves_the_books_as_they_have_to_be(question, seed):
    check_that_it_fails_well_somewhere(question, seed)


@pytest.mark.parametrize("question", ADMIT)
@pytest.mark.parametrize("name", ["queue_changes.QueueChanges.queue_of", "pod_states.PodStates.has_claim"])
def test_wherever_the_ledger_asks_about_a_pod_that_may_fail(question, name):
    """What is asked while a pod is entered comes between the steps of granting and of taking back."""
    for seed in range(scaled(12)):
        for number in range(1, calls_of(question, seed)[name] + 1):
            check_that_it_fails_well(question, seed, name, number)


@pytest.mark.parametrize("question", PAUSE)
@settings(max_examples=scaled(30))
@given(seeds)
def test_work_that_is_left_where_it_pauses_leaves_the_books_as_they_have_to_be(question, seed):
    cluster, pick = a_world(by_dice(seed)), by_dice(seed)
    assume(waiting(cluster))
    before = kept(cluster), all_there_is(cluster)
    work, pauses = question(cluster, pick(waiting(cluster)), pick), pick((1, 2, 3, 5, 8, 13))
    for _ in islice(work, pauses):
        check_after(question, cluster, before)
    if pick((True, False)):
        work.close()
    else:
        with suppress(RuleFailed):
            work.throw(RuleFailed("while it paused"))
    check_after(question, cluster, before)
    check_that_it_is_divided_anew(cluster)


def test_every_question_comes_to_rules_that_may_fail():
    """Else the properties above would hold of nothing."""
    for question in ADMIT + ASK:
        called = set()
        for seed in range(20):
            called |= calls_of(question, seed).keys()
            if len(called) > ENOUGH:
                break
        assert len(called) > ENOUGH, question


@pytest.mark.parametrize(("context", "question"), [(Lifted, is_filtered), (Lifted, is_checked), (Trial, are_woken)])
def test_a_context_that_puts_nothing_back_after_a_failure_is_found(context, question, monkeypatch):
    leave = context.__exit__
    monkeypatch.setattr(context, "__exit__", lambda self, kind, *rest: None if kind else leave(self, kind, *rest))
    with pytest.raises(AssertionError):
        fail_again_and_again(question)


def fail_again_and_again(question) -> None:
    for seed in range(100):
        check_that_it_fails_well_somewhere(question, seed)


# Small worlds, in which every single call fails in turn


def with_a_gang(*, native: bool = False, gated: bool = False) -> Cluster:
    """Three members that keep apart, and have room."""
    cluster = Cluster(settle_time=0)
    cluster.upsert_queue(Queue("q"))
    cluster.upsert_namespace(Namespace("a", "q", gated=gated))
    cluster.upsert_group(Group("a", "g", 3, native=native))
    for name in NODES:
        cluster.upsert_node(Node(name, {"cpu": 4, "pods": 100}, {HOSTNAME: name}))
    waits = {"gate": 0, "unschedulable": AT_GATE} if gated else {}
    for uid in ("m1", "m2", "m3"):
        rest = {"group": "g", "labels": {"app": "apart"}, "constraints": APART, "created": 1.0} | waits
        cluster.upsert_pod(Pod(uid, "a", uid, {"cpu": 2, "pods": 1}, **rest), 0.0)
    at_once(cluster.divide_steps())
    return cluster


def with_a_lowered_quota() -> Cluster:
    """A pod was admitted, and would be no more."""
    cluster = Cluster(settle_time=0)
    cluster.upsert_queue(Queue("q"))
    cluster.upsert_namespace(Namespace("a", "q"))
    cluster.upsert_node(Node("n1", {"cpu": 4, "pods": 100}))
    cluster.upsert_quota(elastic_quota("a", "quota", 0.0, {"cpu": 4}, {"cpu": 4}))
    cluster.upsert_pod(Pod("m1", "a", "m1", {"cpu": 2, "pods": 1}), 0.0)
    at_once(cluster.divide_steps())
    assert cluster.admit(cluster.pods["m1"], 1.0) is None
    cluster.upsert_quota(elastic_quota("a", "quota", 0.0, {"cpu": 1}, {"cpu": 1}))
    return cluster


def ask_for_the_first(cluster: Cluster, _: list) -> None:
    cluster.admit(cluster.pods["m1"], NOW)


def open_gates(cluster: Cluster, told: list) -> None:
    for pods in UngatingRound(cluster, 1.2).run(NOW):
        told += pods


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "ask"),
    [
        (with_a_gang, ask_for_the_first),
        (partial(with_a_gang, gated=True), open_gates),
        (partial(with_a_gang, gated=True, native=True), open_gates),
        (with_a_lowered_quota, ask_for_the_first),
    ],
    ids=["gang starts", "gang is let out", "native gang is let out", "quota was lowered"],
)
def test_wherever_it_fails_nobody_is_granted_who_does_not_count_or_is_not_told(world, ask):
    with Calls() as calls:
        ask(world(), [])
    for name, times in calls.number.items():
        for number in range(1, times + 1):
            cluster, told = world(), []
            with suppress(RuleFailed), Calls(name, number):
                ask(cluster, told)
            check(cluster)
            assert cluster.gates.ungated.keys() <= {pod.uid for pod in told}, (name, number)


@pytest.mark.parametrize("number", [2, 3])
def test_members_that_were_to_keep_apart_are_expected_nowhere_after_a_failure(number):
    cluster = Cluster(settle_time=0)
    for name in NODES:
        cluster.upsert_node(Node(name, {"cpu": 4, "pods": 100}, {HOSTNAME: name}))
        cluster.upsert_pod(Pod(f"on-{name}", "b", f"on-{name}", {"cpu": 4, "pods": 1}, node=name), 0.0)
    cluster.upsert_group(Group("a", "g", 3))
    for uid in ("m1", "m2", "m3"):
        rest = {"group": "g", "labels": {"app": "apart"}, "constraints": APART, "created": 1.0}
        cluster.upsert_pod(Pod(uid, "a", uid, {"cpu": 2, "pods": 1}, unschedulable=NO_ROOM, **rest), 0.0)
    terms = Terms(starving_after=1.0, max_nodes_percent=100)
    [job] = in_turn(cluster, terms, NOW)
    with pytest.raises(RuleFailed), Calls("place_search.Search._is_met", number):
        decide(cluster, job, terms, NOW)
    check(cluster)
