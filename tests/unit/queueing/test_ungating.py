"""Gates are opened for whoever is next in the fair order, as far as admission passes and there is room."""

from dataclasses import replace

import pytest

from policy.cluster.gates import LOOKAHEAD, PATIENCE
from policy.objects.constraints import Constraints, Taint, Toleration
from policy.objects.membership import Namespace
from policy.objects.reservation import Reservation
from policy.preemption import joint_plans, reclaim
from policy.queueing.positions import in_order
from policy.queueing.ungating import UngatingRound, adopt
from policy.reserve.starving import Terms
from tests.unit.given import cluster_of, pod, quota, wait_for_room
from tests.unit.given_gangs import group, members, seeing
from tests.unit.given_gates import NO_ROOM, gate, gated, opened, ungated, waiting
from tests.unit.given_jobs import in_turn
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, pods, queue, world

LARGE = {"cpu": 8, "pods": 99}
TABLES = {  # queue: weight, and by namespace: weight, waiting, to be let out
    "default weights": {"q1": (1, {"a": (1, 5, 4), "b": (1, 10, 4)}), "q2": (1, {"c": (1, 10, 6), "d": (1, 2, 2)})},
    "weights": {"q1": (1, {"a": (3, 5, 3), "b": (1, 10, 1)}), "q2": (3, {"c": (2, 10, 10), "d": (6, 2, 2)})},
    "spill over": {"q1": (1, {}), "q2": (3, {"a": (2, 5, 4), "b": (6, 20, 12)})},
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_as_many_are_ungated_as_the_tables_of_the_seed_say(table):
    cluster, expected = world(*(queue(name, weight) for name, (weight, _) in table.items()), cpu=16), {}
    for name, (_, namespaces) in table.items():
        for namespace, (weight, count, to_be_ungated) in namespaces.items():
            gate(cluster, f"{namespace}:{name}")
            cluster.upsert_weight(namespace, "weight", weight)
            for each in waiting(namespace, count):
                cluster.upsert_pod(each, now=0)
            expected[namespace] = to_be_ungated
    out = ungated(cluster)
    assert {namespace: sum(uid[0] == namespace for uid in out) for namespace in expected} == expected


def test_the_namespace_comes_first_then_the_job_and_the_order_is_new_after_each():
    cluster = gate(world(queue("q"), *waiting("a", 4, priority=9), *waiting("b", 4)), "a:q", "b:q")
    assert [uid[0] for uid in ungated(cluster)] == list("abababab")


def test_a_namespace_that_weighs_more_is_ungated_more_often():
    cluster = gate(world(queue("q"), *waiting("a", 9), *waiting("b", 9), cpu=12), "a:q", "b:q")
    cluster.upsert_weight("b", "weight", 2)
    assert "".join(uid[0] for uid in ungated(cluster)) == "babbabbabbab"


def test_the_queue_with_less_of_its_deserved_is_first_after_one_of_higher_priority():
    some = [*pods("a", 4, start=10, node="n1"), *waiting("a", 2), *waiting("b", 2)]
    assert ungated(gate(world(queue("q"), queue("r"), *some), "a:q", "b:r"))[:2] == ["b-0", "b-1"]
    assert ungated(gate(world(queue("q", priority=1), queue("r"), *some), "a:q", "b:r"))[:2] == ["a-0", "a-1"]


def test_within_a_namespace_jobs_come_by_priority_and_then_by_creation():
    some = gated(pod("new", created=3), pod("old", created=1), pod("high", priority=1, created=9))
    assert ungated(gate(world(queue("q"), *some), "a:q")) == ["high", "old", "new"]


@pytest.mark.parametrize(
    ("namespace", "asks"),
    [("a", {"priority": 9}), ("a", {"request": {"cpu": 2}, "priority": 9}), ("b", {}), ("c", {})],
    ids=["of another priority", "that asks for more", "of a namespace that was refused", "of another namespace"],
)
def test_somebody_who_comes_while_others_are_ungated_has_a_turn_at_once(namespace, asks):
    cluster = gate(world(*waiting("a", 4), *waiting("b", 1, request={"cpu": 4}), cpu=16), "a", "b", "c")
    cluster.upsert_quota(quota("b", most={"cpu": 2}))
    out = (pod.uid for pods in UngatingRound(cluster, 1.2).run(0) for pod in pods)
    assert [next(out), next(out)] == ["a-0", "a-1"]
    [late] = waiting(namespace, 1, start=9, **asks)
    cluster.upsert_pod(late, now=0)
    assert [*out] == [late.uid, "a-2", "a-3"]


def test_a_namespace_that_backs_off_is_left_out_until_its_backoff_ends():
    cluster, aside = gate(world(*waiting("a", 2), *waiting("b", 3), cpu=16), "a", "b"), {"a"}
    steps = UngatingRound(cluster, 1.2, aside.__contains__).run(0)
    out = (pod.uid for pods in steps for pod in pods)
    assert [next(out), next(out)] == ["b-0", "b-1"]
    aside.clear()
    cluster.gates.look_again()
    assert [*out] == ["a-0", "a-1", "b-2"]


def test_a_namespace_that_comes_to_stand_aside_is_left_out_from_then_on():
    cluster, aside = gate(world(*waiting("a", 3), *waiting("b", 3), cpu=16), "a", "b"), set()
    out = (pod.uid for pods in UngatingRound(cluster, 1.2, aside.__contains__).run(0) for pod in pods)
    assert next(out) == "a-0"
    aside.add("a")
    assert [next(out), next(out)] == ["b-0", "b-1"]
    aside.clear()
    cluster.gates.look_again()
    assert [*out] == ["a-1", "a-2", "b-2"]


def test_no_more_are_ungated_than_the_quota_has_left_and_those_count_at_once():
    cluster = gate(cluster_of(quota(most={"cpu": 3}), *waiting("a", 9), *pods("a", 1, start=50, node="n1")), "a")
    cluster.upsert_node(node(size={"cpu": 64, "pods": 99}))
    assert ungated(cluster) == ["a-0", "a-1"]
    assert ungated(cluster) == []
    assert cluster.ledger.account("a").used["cpu"] == 3000
    cluster.delete_pod("a-50")
    assert ungated(cluster) == ["a-2"]


def test_a_job_that_is_refused_lets_others_go_past_that_ask_for_less():
    some = gated(pod("large", request={"cpu": 8}, created=1), pod("small", created=2))
    cluster = gate(world(*some), "a")
    cluster.upsert_quota(quota(most={"cpu": 4}))
    assert ungated(cluster) == ["small"]


def test_who_has_a_foreign_gate_as_well_is_not_ungated_and_counts_for_nothing():
    cluster = gate(world(queue("q"), *(replace(each, gated=True) for each in waiting("a", 2))), "a:q")
    assert ungated(cluster) == []
    assert not cluster.ledger.queues.accounts["q"].request


# Room on nodes


def test_beyond_the_free_room_of_nodes_no_more_than_the_lookahead_is_ungated():
    cluster = gate(world(*waiting("a", 40), cpu=10), "a")
    assert len(ungated(cluster)) == 12
    assert ungated(cluster) == []


def test_one_that_lacks_what_nobody_on_the_way_asks_for_is_ungated_beyond_the_room():
    more = pod("gpu", "a", request={"cpu": 0, "gpu": 1}, gate=0, created=99.0)
    nodes = node(size={"cpu": 10, "gpu": 1, "pods": 99}), pod("x", "x", request={"cpu": 0, "gpu": 1}, node="n1")
    cluster = gate(world(*nodes, *waiting("a", 5), more), "a")
    assert "gpu" in ungated(cluster)


def test_those_that_were_bound_make_way_for_the_next():
    cluster = gate(world(*waiting("a", 40), cpu=10), "a")
    for uid in ungated(cluster)[:5]:
        opened(cluster, uid, node="n1", unschedulable=None)
    assert len(cluster.gates.ungated) == 7
    assert ungated(cluster) == []
    for uid in list(cluster.gates.ungated):
        cluster.delete_pod(uid)
    assert len(ungated(cluster)) == 6


def test_on_a_full_cluster_one_of_each_namespace_is_ungated_to_show_who_waits():
    cluster = gate(world(*waiting("a", 5), *waiting("b", 5), *pods("x", 8, node="n1"), cpu=8), "a", "b")
    assert ungated(cluster) == ["a-0", "b-0"]
    opened(cluster, "a-0", unschedulable=NO_ROOM)
    assert ungated(cluster) == []
    cluster.tick(PATIENCE + 1)
    assert ungated(cluster) == ["a-1"]


def test_a_cordoned_node_has_no_room():
    cluster = gate(world(node(size={"cpu": 8, "pods": 99}, unschedulable=True), *waiting("a", 9)), "a")
    assert ungated(cluster) == ["a-0"]


def test_a_node_has_room_for_those_who_tolerate_its_taints():
    nodes = node(size={"cpu": 4, "pods": 99}), node("n2", size=LARGE, taints=(Taint("dedicated", "", "NoSchedule"),))
    tolerant = waiting("b", 20, constraints=Constraints(tolerations=(Toleration("dedicated", "Exists"),)))
    cluster = gate(world(*nodes, *waiting("a", 20), *tolerant), "a:", "b:")
    out = ungated(cluster)
    assert [sum(uid[0] == namespace for uid in out) for namespace in "ab"] == [2, 12]
    cluster = gate(world(*nodes, *waiting("a", 20)), "a")
    assert len(ungated(cluster)) == 4


def test_for_what_no_node_lists_rules_and_numbers_decide():
    asking = waiting("a", 20, request={"cpu": 0.1, "example.com/gpu": 1})
    quotas = quota(most={"example.com/gpu": 6})
    cluster = world(*asking, cpu=8)
    cluster.upsert_quota(quotas)
    assert len(ungated(gate(cluster, "a"))) == 6


# How long somebody who was let out counts


@pytest.fixture
def tried():
    """A cluster whose quota has one place, let out and found no room for, and another pod that waits."""
    cluster = gate(_one_place(), "a")
    assert ungated(cluster) == ["a-0"]
    opened(cluster, "a-0", unschedulable=NO_ROOM)
    return cluster


def _one_place():
    cluster = world(*waiting("a", 2), cpu=4)
    cluster.upsert_quota(quota(most={"cpu": 1}))
    return cluster


def test_somebody_for_whom_no_place_is_found_counts_until_the_patience_is_over(tried):
    tried.tick(PATIENCE - 1)
    assert ungated(tried, now=PATIENCE - 1) == []
    tried.tick(PATIENCE)
    assert ungated(tried, now=PATIENCE) == ["a-1"]
    assert tried.pods["a-0"].pending


def test_asking_filter_does_not_shorten_how_long_somebody_counts(tried):
    assert tried.admit(tried.pods["a-0"], now=1) is None
    tried.tick(60)
    assert "a-0" not in tried.grants  # it is unschedulable for longer than the patience
    cluster = gate(_one_place(), "a")
    ungated(cluster)
    assert cluster.admit(opened(cluster, "a-0"), now=1) is None
    cluster.tick(10_000)
    assert "a-0" in cluster.grants


def test_somebody_whom_filter_refuses_counts_no_more(tried):
    tried.upsert_quota(quota(most={"cpu": 0}))
    assert tried.admit(tried.pods["a-0"], now=1) is not None
    assert not tried.gates.ungated
    assert tried.ledger.account("a").used == {}


def test_somebody_whose_gate_could_not_be_opened_waits_again_in_the_same_place():
    cluster = gate(_one_place(), "a")
    ungated(cluster)
    cluster.upsert_pod(replace(cluster.pods["a-0"], version=2), now=0)  # changed by somebody, and still at its gate
    assert ungated(cluster) == []
    cluster.gate_admission.regate("a-0", now=0)
    assert ungated(cluster) == ["a-0"]


def test_a_pod_whose_gate_the_server_would_not_open_backs_off_and_others_go_on():
    cluster = gate(_one_place(), "a")
    ungated(cluster)
    cluster.gate_admission.back_off("a-0", now=0)
    assert ungated(cluster) == ["a-1"]


def test_a_pod_that_goes_meanwhile_leaves_its_place_to_the_next():
    cluster = gate(_one_place(), "a")
    ungated(cluster)
    cluster.delete_pod("a-0")
    cluster.gate_admission.regate("a-0", now=0)
    assert ungated(cluster) == ["a-1"]


@pytest.mark.parametrize("cpu", [4, 0], ids=["that had room", "that had none"])
def test_nothing_is_remembered_of_lines_that_are_gone(cpu):
    cluster = gate(world(*waiting("a", 2), cpu=cpu), "a")
    assert ungated(cluster)
    for uid in list(cluster.pods):
        cluster.delete_pod(uid)
    gates = cluster.gates
    assert not any((gates._beyond, gates._on_their_way, gates.lines, gates.ungated, gates.ungating, gates._since))


def test_pods_like_one_that_waited_in_vain_claim_nothing_and_are_ungated_singly():
    cluster = gate(world(queue("q"), queue("r"), *waiting("a", 9), cpu=8), "a:q")
    first = ungated(cluster)
    for uid in first:
        opened(cluster, uid, unschedulable=NO_ROOM)
    cluster.tick(0)
    cluster.tick(PATIENCE + 1)
    assert not cluster.ledger.queues.accounts["q"].claim
    assert ungated(cluster, now=PATIENCE + 1) == ["a-8"]
    cluster.upsert_node(node("n2"))
    cluster.tick(PATIENCE + 2)
    assert divided(cluster).ledger.queues.accounts["q"].pending["cpu"] == 8000


def test_a_new_leader_adopts_ungated_pods_as_far_as_rules_admit_them():
    cluster = gate(cluster_of(quota(most={"cpu": 2}), *pods("a", 3), *waiting("a", 3, start=5)), "a")
    cluster.upsert_node(node())
    adopt(cluster, now=0)
    assert len(cluster.gates.ungated) == 2
    assert ungated(cluster) == []


def test_a_new_leader_adopts_no_pods_where_only_jobs_wait():
    cluster = cluster_of(quota(most={"cpu": 9}), *pods("a", 1))
    cluster.upsert_namespace(Namespace("a", queues_jobs=True))
    adopt(cluster, now=0)
    assert not cluster.gates.ungated


def test_after_a_start_gated_pods_are_not_taken_for_admitted_by_an_earlier_process():
    cluster = cluster_of(quota(most={"cpu": 1}), *waiting("a", 3), settle_time=3)
    cluster.in_flight.suspect(now=0)
    assert not cluster.unsettled


@pytest.mark.parametrize("node", ["", "n1"], ids=["seen without its gate", "seen on a node"])
@pytest.mark.parametrize("said", ["regate", "back_off"])
def test_a_pod_whose_gate_is_seen_open_counts_though_opening_seemed_to_fail(node, said):
    cluster = gate(cluster_of(quota(most={"cpu": 1}), *waiting("a", 2)), "a")
    assert ungated(cluster) == ["a-0"]
    opened(cluster, "a-0", node=node)
    getattr(cluster.gate_admission, said)("a-0", now=0)
    assert cluster.ledger.account("a").used == {"cpu": 1000, "pods": 1}
    assert ungated(cluster) == []


# Namespaces that are not gated


def test_pods_of_a_namespace_no_longer_gated_are_ungated_and_count_for_nothing():
    cluster = gate(cluster_of(quota(most={"cpu": 0}), *waiting("a", 3)), "a")
    assert ungated(cluster) == []
    cluster.delete_namespace("a")
    assert ungated(cluster) == ["a-0", "a-1", "a-2"]
    assert not cluster.gates.ungated
    assert not len(cluster.gates)


def test_the_line_of_a_namespace_no_longer_gated_may_be_gone_when_its_turn_comes():
    cluster = gate(cluster_of(*waiting("a", 1), *waiting("b", 1)), "a", "b")
    for namespace in ("a", "b"):
        cluster.delete_namespace(namespace)
    ungating = UngatingRound(divided(cluster), LOOKAHEAD).run(0)
    assert [pod.uid for pod in next(ungating)] == ["a-0"]
    cluster.delete_pod("b-0")
    assert list(ungating) == []


# Gangs


def test_a_gang_is_ungated_whole_or_not_at_all():
    cluster = gate(seeing(node(), group(), *gated(*members(count=2))), "a")
    assert ungated(cluster) == []
    cluster.upsert_pod(gated(*members(count=3))[2], now=0)
    assert ungated(cluster) == ["g0", "g1", "g2"]


def test_a_gang_for_which_nodes_have_no_room_is_not_ungated():
    cluster = gate(seeing(node(size={"cpu": 2}), group(), *gated(*members()), *gated(pod("alone", created=9))), "a")
    assert ungated(cluster) == ["alone"]


def test_members_beyond_the_minimum_are_ungated_one_by_one_as_their_turn_comes():
    cluster = gate(seeing(node(size={"cpu": 9}), group(minimum=2), *gated(*members(count=4))), "a")
    cluster.upsert_quota(quota(most={"cpu": 3}))
    assert ungated(cluster) == ["g0", "g1", "g2"]


def firsts_in_order(cluster, queue):
    return [job.first().uid for job in in_order(cluster, queue) if job is not None]


def a_started_gang_and_a_fresh_job(*others, count=2):
    """Of a, which has most of queue q, a gang runs that lacks a third member; b has nothing, and a job waits longer."""
    runs = members(count=count)
    some = [*(replace(each, node="n1") for each in runs), *gated(*members(count=1, start=2, created=9.0))]
    fresh = waiting("b", 2)
    return gate(seeing(queue("q"), node(size={"cpu": 9}), group(), some, fresh, *others), "a:q", "b:q")


def test_missing_members_of_a_started_gang_are_ungated_before_a_fresh_job():
    assert ungated(a_started_gang_and_a_fresh_job())[0] == "g2"
    assert firsts_in_order(a_started_gang_and_a_fresh_job(), "q") == ["g2", "b-0", "b-1"]


def test_jobs_of_one_name_in_two_namespaces_take_what_each_requests_itself():
    cluster = cluster_of(node("n1", size=LARGE))
    for uid, namespace, cpu in (("a-x", "a", 1), ("a-y", "a", 1), ("a-z", "a", 1), ("b-x", "b", 4), ("b-y", "b", 1)):
        [waits] = gated(replace(pod(uid, namespace, request={"cpu": cpu}), name=uid[2:], created=ord(uid[2])))
        cluster.upsert_pod(waits, now=0)
    gate(cluster, "a", "b")
    assert firsts_in_order(cluster, "") == ["a-x", "b-x", "a-y", "a-z", "b-y"]


def test_before_the_order_there_is_a_pause_for_each_line_which_may_be_gone_then():
    cluster = cluster_of(node("n1", size=LARGE))
    for uid, namespace in (("a-x", "a"), ("b-x", "b"), ("c-x", "c")):
        [waits] = gated(replace(pod(uid, namespace), name="x"))
        cluster.upsert_pod(waits, now=0)
    gate(cluster, "a", "b", "c")
    order = in_order(cluster, "")
    assert next(order) is None
    cluster.delete_pod("b-x")
    assert [next(order), next(order)] == [None, None]
    assert [job.first().uid for job in order] == ["a-x", "c-x"]


def test_a_gang_that_has_not_started_or_lacks_nobody_comes_in_its_turn():
    assert ungated(a_started_gang_and_a_fresh_job(count=0))[0] == "b-0"
    enough = [replace(each, node="n1") for each in members(count=2, start=5)]
    assert ungated(a_started_gang_and_a_fresh_job(enough))[0] == "b-0"


def test_a_gang_that_loses_a_member_while_others_are_ungated_comes_at_once():
    cluster = a_started_gang_and_a_fresh_job([replace(each, node="n1") for each in members(count=1, start=5)])
    out = (pod.uid for pods in UngatingRound(divided(cluster), 1.2).run(0) for pod in pods)
    assert next(out) == "b-0"
    cluster.delete_pod("g5")
    assert next(out) == "g2"


def test_one_that_was_refused_lets_others_go_on():
    cluster = a_started_gang_and_a_fresh_job()
    cluster.upsert_quota(quota("a", most={"cpu": 2}))
    assert ungated(cluster) == ["b-0", "b-1"]


def test_nothing_is_remembered_of_groups_whose_members_have_left_the_gates():
    cluster = a_started_gang_and_a_fresh_job()
    cluster.delete_pod("g2")
    assert cluster.gates.groups == {}
    for uid in ("g0", "g1"):
        cluster.delete_pod(uid)
    assert not cluster.gangs.started()


def test_a_native_group_is_ungated_as_many_as_it_takes_or_not_at_all():
    some = (node(size={"cpu": 9}), group(native=True), *gated(*members()))
    cluster = gate(seeing(*some, quota(most={"cpu": 2})), "a")
    assert ungated(cluster) == []
    assert cluster.ledger.account("a").used == {}
    cluster.upsert_quota(quota(most={"cpu": 3}))
    assert ungated(cluster) == ["g0", "g1", "g2"]


def test_members_that_filter_has_held_room_for_are_ungated_at_once():
    first, *others = members()
    cluster = gate(seeing(node(), group(), first, *gated(*others), quota(most={"cpu": 3})), "a")
    assert cluster.admit(first, now=0) is None
    assert ungated(cluster) == ["g1", "g2"]


def test_a_gang_that_waits_at_its_gates_for_too_long_starves_like_one_that_is_tried():
    some = gated(*members(created=1.0))
    cluster = gate(seeing(node(size={"cpu": 2}), node("n2"), pod("x", "b", node="n2"), group(created=1.0), *some), "a")
    terms = Terms(starving_after=10)
    assert in_turn(cluster, terms, now=5) == []
    assert [job.name for job in in_turn(cluster, terms, now=20)] == ["g"]


# Taking back


def test_the_first_gated_pod_of_each_kind_may_reclaim_though_rules_refuse_it_now():
    some = [*waiting("a", 30), *gated(pod("high", priority=1))]
    cluster = gate(cluster_of(quota(most={"cpu": 0}), *some), "a")
    found = [each.uid for each in wait_for_room(cluster, now=1, delay=1)]
    assert found == ["high", *(f"a-{number}" for number in range(10))]
    assert wait_for_room(cluster, now=0.5, delay=1) == []


def test_for_all_that_a_gang_at_gates_takes_to_start_or_for_nobody():
    lent = [pod(f"lent{number}", "b", node="n1") for number in range(4)]
    quotas = quota(least={"cpu": 3}), quota("b", least={"cpu": 1}, most={"cpu": 4})
    cluster = gate(seeing(node(), group(), *quotas, *lent, *gated(*members())), "a")
    plans = [plan for _, plan in filter(None, joint_plans.preview(cluster, wait_for_room(cluster, 1, 1)))]
    assert len({victim.uid for plan in plans for victim in plan.victims}) == 3


def test_somebody_for_whom_room_was_made_is_ungated_before_all_others():
    cluster = gate(cluster_of(quota(most={"cpu": 1}), *waiting("a", 3)), "a")
    cluster.upsert_node(node())
    last = cluster.pods["a-2"]
    cluster.upsert_reservation(Reservation("r", reclaim.name_of(last), "n1", (), 0.0))
    assert ungated(cluster) == ["a-2"]


def test_a_gang_stands_where_its_group_belongs_that_was_made_anew():
    some = gated(*members("g", 2), *members("h", 2))
    cluster = gate(seeing(node(size={"cpu": 2}), group("g", 2, created=1.0), group("h", 2, created=2.0), *some), "a")
    cluster.upsert_group(group("g", 2, created=3.0))
    assert ungated(cluster, lookahead=1) == ["h0", "h1"]
