"""Who has to go: every sentence of the rules, on one node or two.

Seed: capacity scheduling, PostFilter, cross-namespace and single-namespace preemption, cross-node preemption.
"""

from dataclasses import replace
from itertools import islice

import pytest

from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.objects.constraints import Constraints, HostPort
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.preemption.plans import NoPlan, Plan
from policy.preemption.victims import plan, search_steps
from policy.preemption.victims import victims_on as victims_on_each
from policy.quota.admission import Rules
from policy.quota.elastic_quota import ElasticQuota
from policy.stepwise import at_once
from tests.unit.given import cluster_of, pod, quota, unreadable
from tests.unit.given_nodes import labelled, node
from tests.unit.given_queues import divided, queue

SYSTEM = 2_000_000_000
LOANS = (quota("a", least={"cpu": 2}), quota("b", least={"cpu": 2}))
"""Two quotas that share four cores."""
GPU_NODE = node(size={"gpu": 8})


def victims_on(cluster, preemptor, node_name, **options):
    """The plan for one node, if there is one."""
    return next(iter(victims_on_each(cluster, preemptor, [node_name], **options)), None)


def run(uid: str, namespace: str = "b", cpu: float = 1, on: str = "n1", **rest) -> Pod:
    """A pod that stands on a node."""
    return pod(uid, namespace, request=rest.pop("request", {"cpu": cpu}), node=on, **rest)


def me(cpu: float = 1, namespace: str = "a", **rest) -> Pod:
    """The pod that room is wanted for."""
    return pod("me", namespace, request=rest.pop("request", {"cpu": cpu}), **rest)


def world(*objects: Node | Budget | Pod | ElasticQuota, **options) -> Cluster:
    cluster = cluster_of(*(each for each in objects if isinstance(each, Pod | ElasticQuota)), **options)
    for each in objects:
        if isinstance(each, Node):
            cluster.upsert_node(each)
        elif isinstance(each, Budget):
            cluster.upsert_budget(each)
    return cluster


def gone(cluster: Cluster, preemptor: Pod) -> set[str] | str:
    """Who has to go, or the reason why nobody does."""
    answer = plan(cluster, preemptor)
    return answer.reason if isinstance(answer, NoPlan) else {victim.uid for victim in answer.victims}


def gone_from(cluster: Cluster, preemptor: Pod, name: str = "n1", **options) -> set[str]:
    answer = victims_on(cluster, preemptor, name, **options)
    return {victim.uid for victim in answer.victims} if answer else set()


def reasons_after(change, objects, preemptor: Pod) -> set[str]:
    """Why nobody has to go, in the end of a search, whichever of its pauses the cluster changes in."""
    pauses = len(list(search_steps(world(*objects), preemptor)))
    assert pauses
    reasons = set()
    for number in range(pauses):
        cluster = world(*objects)
        work = search_steps(cluster, preemptor)
        for _ in islice(work, number + 1):
            pass
        change(cluster)
        answer = at_once(work)
        assert isinstance(answer, NoPlan), (number, answer)
        reasons.add(answer.reason)
    return reasons


def test_room_that_comes_during_a_search_is_found_in_whichever_pause_it_came():
    full = node(), *LOANS, *(run(f"a{number}", "a") for number in range(4))
    assert reasons_after(lambda cluster: cluster.delete_pod("a0"), full, me(1, "c")) == {"room"}


def test_where_there_is_room_nobody_is_evicted_though_rules_tighten_as_pods_leave():
    quotas = [quota(name, least={"cpu": least}) for name, least in (("a", 0), ("b", 2), ("c", 8))]
    full = node(), *quotas, run("low", "a", cpu=2), run("stays"), run("goes", cpu=2, terminating=True)
    waits = pod("waits", "b", request={"cpu": 6}, nominated_node="n2")  # comes first while b is within its min
    new = me(2, priority=1)
    assert gone(world(*full, waits), new) == {"low"}
    assert reasons_after(lambda cluster: cluster.upsert_node(node("n2")), (*full, waits), new) == {"room"}


# 1. A pod that would exceed its min takes only from lower priority in its own namespace


def test_a_pod_that_would_borrow_takes_nothing_from_another_namespace_over_its_min():
    cluster = world(node(), *LOANS, run("b1", cpu=3), run("a1", "a", cpu=1, priority=9))
    assert gone(cluster, me(2, priority=9)) == "protected"


def test_one_that_would_borrow_takes_from_lower_priority_of_its_own_namespace():
    cluster = world(node(), *LOANS, run("b1", cpu=1), run("a1", "a", cpu=3, priority=1))
    assert gone(cluster, me(3, priority=2)) == {"a1"}


@pytest.mark.parametrize("priority", [0, 1])
def test_in_its_own_namespace_it_takes_nobody_of_the_same_or_higher_priority(priority):
    cluster = world(node(), *LOANS, run("a1", "a", cpu=4, priority=1))
    assert gone(cluster, me(3, priority=priority)) == "protected"


def test_a_high_priority_pod_with_min_zero_evicts_nobody_of_another_namespace():
    quotas = [quota(n, least={"cpu": m}, most={"cpu": 2}) for n, m in (("q1", 0), ("q2", 0), ("q3", 1))]
    cluster = world(node(size={"cpu": 1}), *quotas, run("low", "q1"))
    assert gone(cluster, me(namespace="q2", priority=1_000_000)) == "protected"
    assert gone_from(cluster, me(namespace="q2", priority=1_000_000)) == set()


# 2. A pod within its min takes back what others borrow, whatever their priority


@pytest.mark.parametrize("priority", [-1, 0, 1_000_000])
def test_an_owner_takes_back_from_a_borrower_of_any_priority(priority):
    cluster = world(node(), *LOANS, run("b1", cpu=2, priority=priority), run("b2", cpu=2, priority=priority))
    found = gone(cluster, me(2))
    assert len(found) == 1
    assert found < {"b1", "b2"}


def test_a_user_of_five_gpus_with_four_guaranteed_gives_one_back():
    cluster = world(
        node(size={"gpu": 5}),
        quota("a", least={"gpu": 4}, most={"gpu": 5}),
        quota("b", least={"gpu": 1}, most={"gpu": 5}),
        *(run(f"a{number}", "a", request={"gpu": 1}) for number in range(5)),
    )
    found = gone(cluster, me(namespace="b", request={"gpu": 1}))
    assert len(found) == 1


@pytest.mark.parametrize(("sizes", "expected"), [((2, 2, 2), 1), ((1,) * 6, 2)])
def test_six_of_ten_gpus_go_back_to_four_as_in_the_seeds_first_story(sizes, expected):
    pods = [run(f"a{number}", "a", request={"gpu": size}) for number, size in enumerate(sizes)]
    cluster = world(
        node(size={"gpu": 10}),
        quota("a", least={"gpu": 4}, most={"gpu": 6}),
        quota("b", least={"gpu": 6}, most={"gpu": 8}),
        *pods,
        run("b1", request={"gpu": 3}),
    )
    assert len(gone(cluster, me(namespace="b", request={"gpu": 3}))) == expected


def test_only_who_is_over_its_min_gives_back_as_in_the_seeds_second_story():
    cluster = world(
        node(size={"gpu": 10}),
        quota("a", least={"gpu": 3}, most={"gpu": 4}),
        quota("b", least={"gpu": 4}, most={"gpu": 6}),
        quota("c", least={"gpu": 3}, most={"gpu": 4}),
        *(run(f"{name}{number}", name, request={"gpu": 1}) for name in "ac" for number in range(3)),
        run("a3", "a", request={"gpu": 1}),
        run("b0", request={"gpu": 3}),
    )
    found = gone(cluster, me(namespace="b", request={"gpu": 1}))
    assert len(found) == 1
    assert next(iter(found)).startswith("a")


def test_a_pod_that_would_exceed_min_takes_from_its_own_as_in_the_second_story():
    cluster = world(
        node(size={"gpu": 10}),
        quota("a", least={"gpu": 3}, most={"gpu": 4}),
        quota("b", least={"gpu": 4}, most={"gpu": 6}),
        quota("c", least={"gpu": 3}, most={"gpu": 4}),
        run("a1", "a", request={"gpu": 2}),
        run("c1", "c", request={"gpu": 3}),
        run("b1", request={"gpu": 1}),
        run("b2", request={"gpu": 4}, priority=5),
    )
    assert gone(cluster, me(namespace="b", request={"gpu": 1}, priority=5)) == {"b1"}


def test_a_pod_of_a_quota_within_its_min_is_never_taken():
    cluster = world(node(), *LOANS, run("b1", cpu=2), run("free", "free", cpu=2))
    assert gone(cluster, me(1, priority=5)) == "protected"


def test_a_quota_that_has_given_back_enough_gives_no_more():
    cluster = world(
        node(), quota("a", least={"cpu": 3}), quota("b", least={"cpu": 2}), *(run(f"b{n}") for n in range(4))
    )
    assert gone(cluster, me(3)) == "protected"
    assert len(gone(cluster, me(2))) == 2


def test_a_quota_with_only_a_max_is_never_entitled_and_lends_all_that_it_uses():
    quotas = quota("a", most={"cpu": 4}), quota("b", least={"cpu": 4})
    assert gone(world(node(), *quotas, run("b1", cpu=4)), me(1, priority=9)) == "protected"
    assert gone(world(node(), *quotas, run("a1", "a", cpu=4, priority=9)), me(4, "b")) == {"a1"}


def test_only_resources_that_min_names_count_for_entitlement():
    cluster = world(
        GPU_NODE,
        quota("a", least={"gpu": 4}),
        quota("b", least={"gpu": 4}),
        *(run(f"b{number}", request={"gpu": 2, "cpu": 0.5}) for number in range(4)),
    )
    assert len(gone(cluster, me(request={"gpu": 2, "cpu": 1}))) == 1


def test_one_that_requests_nothing_that_its_min_names_is_not_entitled():
    cluster = world(node(), quota("a", least={"gpu": 4}), quota("b", least={"gpu": 1}), run("b1", cpu=4))
    assert gone(cluster, me(1)) == "protected"


def test_what_it_may_take_back_is_what_its_min_names_and_nothing_else():
    cluster = world(GPU_NODE, quota("a", least={"gpu": 4}), quota("b", least={"cpu": 1}), run("b1", cpu=4))
    assert gone(cluster, me(request={"gpu": 1, "cpu": 1})) == "protected"


def test_being_within_min_in_one_resource_does_not_protect_another_borrowed_one():
    cluster = world(
        GPU_NODE,
        quota("a", least={"gpu": 8}),
        quota("b", least={"gpu": 0, "memory": 64}),
        run("b1", request={"gpu": 8, "memory": 1}),
    )
    assert gone(cluster, me(request={"gpu": 1})) == {"b1"}


@pytest.mark.parametrize(("gpus", "expected"), [(2, "protected"), (1, {"b1"})])
def test_a_quota_of_gpus_protects_the_cpu_of_its_gpu_pods_while_within_its_min(gpus, expected):
    cluster = world(
        GPU_NODE, quota("a", least={"cpu": 4}), quota("b", least={"gpu": gpus}), run("b1", request={"cpu": 4, "gpu": 2})
    )
    assert gone(cluster, me(1)) == expected


@pytest.mark.parametrize(
    ("case", "guaranteed", "of_others", "expected"),
    [
        ("the cpu alone", {"cpu": 8}, {"gpu": 4}, "protected"),
        ("the cpu and the gpus", {"cpu": 8, "gpu": 4}, {"gpu": 4}, {"b1"}),
        ("the gpus alone", {"gpu": 4}, {"gpu": 4}, "protected"),
        ("the same", {"cpu": 8, "gpu": 4}, {"cpu": 8, "gpu": 4}, "protected"),
        ("the cpu and the gpus, the others memory", {"cpu": 8, "gpu": 4}, {"gpu": 4, "memory": 9}, "protected"),
    ],
)
def test_who_is_guaranteed_all_that_others_are_and_more_takes_the_rest_back(case, guaranteed, of_others, expected):
    running = run("b1", request={"cpu": 4, "gpu": 2, "memory": 1})
    large = node(size={"gpu": 8, "memory": 9})
    cluster = world(large, quota("a", least=guaranteed), quota("b", least=of_others), running)
    assert gone(cluster, me(request={"cpu": 1, "gpu": 2})) == expected, case
    if expected != "protected":  # and the one that went does not take it back again
        cluster.delete_pod("b1")
        cluster.upsert_pod(run("me", "a", request={"cpu": 1, "gpu": 2}), now=1)
        assert gone(cluster, replace(running, node="", uid="again", name="again")) == "protected"


GPU = "example.com/gpu"


def test_for_what_no_node_lists_nobody_goes():
    asks = me(request={"cpu": 1, GPU: 1})
    cluster = world(node(), quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0}), run("b1", cpu=4))
    answer = plan(cluster, asks)
    assert answer == NoPlan("undecidable", f"no node lists {GPU}; who serves it cannot be judged from here")
    assert victims_on(cluster, asks, "n1") is None
    cluster.upsert_node(node("n2", size={"cpu": 0, GPU: 1}))
    assert gone(cluster, asks) == "never"
    cluster.upsert_node(node("n2", size={"cpu": 0, GPU: 0}))
    assert gone(cluster, asks) == "undecidable"


@pytest.mark.parametrize(
    ("case", "mine", "of_others", "expected"),
    [
        ("a device, from who is guaranteed cpu", {GPU: 2}, {"cpu": 8}, {"b1"}),
        ("cpu, from who is guaranteed a device", {"cpu": 8}, {GPU: 2}, "protected"),
        ("a device, from who is guaranteed another", {GPU: 2}, {"cpu": 8, "example.com/nic": 1}, "protected"),
        ("cpu, from who is guaranteed memory", {"cpu": 8}, {"memory": 1}, "protected"),
        ("memory, from who is guaranteed cpu", {"memory": 8}, {"cpu": 8}, "protected"),
    ],
)
def test_a_guarantee_of_cpu_or_memory_does_not_protect_a_borrowed_device(case, mine, of_others, expected):
    size = {"cpu": 4, GPU: 2, "example.com/nic": 1, "memory": 1}
    cluster = world(node(size=size), quota("a", least=mine), quota("b", least=of_others), run("b1", request=size))
    wanted = dict.fromkeys(mine, 1)
    assert gone(cluster, me(request=wanted)) == expected, case


@pytest.mark.parametrize(
    ("case", "owner", "least", "request_", "expected"),
    [
        ("best-effort pods", {"cpu": 4}, {"cpu": 0}, {"cpu": 0}, {"b1"}),
        ("a borrower of cpu", {"cpu": 4}, {"cpu": 1}, {"cpu": 2}, {"b1"}),
        ("within its min", {"cpu": 2}, {"cpu": 2}, {"cpu": 2}, "protected"),
        ("the owner borrows", {"cpu": 0}, {"cpu": 0}, {"cpu": 0}, "protected"),
        ("slots are guaranteed", {"cpu": 4}, {"pods": 1}, {"cpu": 2}, "protected"),
    ],
)
def test_a_slot_that_a_borrower_holds_comes_back_with_what_is_guaranteed(case, owner, least, request_, expected):
    small = node(size={"pods": 1, "cpu": 8})
    cluster = world(small, quota("a", least=owner), quota("b", least=least), run("b1", request=request_))
    assert gone(cluster, me(1)) == expected, case


def test_a_pod_that_requests_nothing_its_quota_names_is_lent_all_it_has():
    cluster = world(node(), quota("a", least={"cpu": 4}), quota("b", least={"gpu": 8}), run("b1", cpu=4))
    assert gone(cluster, me(1)) == {"b1"}


def test_a_pod_that_frees_nothing_that_is_lacked_is_never_taken():
    cluster = world(
        GPU_NODE,
        quota("a", least={"cpu": 2, "gpu": 8}),
        quota("b", least={"cpu": 0, "gpu": 0}),
        run("cpu", cpu=1),
        run("gpu", request={"gpu": 8}),
    )
    assert gone(cluster, me(request={"cpu": 1, "gpu": 1})) == {"gpu"}


def test_a_borrower_is_not_taken_for_a_port():
    ports = Constraints(host_ports=(HostPort(80),))
    cluster = world(node(), *LOANS, run("b1", cpu=3, constraints=ports))
    assert gone(cluster, me(1, constraints=ports)) == "protected"


def test_its_own_lower_priority_pods_go_where_borrowers_are_not_enough():
    cluster = world(
        node(), quota("a", least={"cpu": 3}), quota("b", least={"cpu": 1}), run("b1"), run("b2"), run("a1", "a", cpu=2)
    )
    assert gone(cluster, me(1, priority=1)) <= {"b1", "b2"}
    cluster = world(
        node(), quota("a", least={"cpu": 4}), quota("b", least={"cpu": 1}), run("b1"), run("b2"), run("a1", "a", cpu=2)
    )
    assert gone(cluster, me(2, priority=1)) == {"a1"}
    cluster = world(node(), quota("a", least={"cpu": 4}), run("free", "free", cpu=2), run("a1", "a", cpu=2))
    assert gone(cluster, me(2, priority=1)) == {"a1"}


def test_nominated_pods_of_its_own_quota_count_for_entitlement():
    ahead = pod("ahead", "a", request={"cpu": 1}, nominated_node="n2", priority=0)
    full = node("n2"), run("full", "free", on="n2", cpu=3)
    cluster = world(node(), *full, *LOANS, run("b1", cpu=4), ahead)
    assert gone(cluster, me(1)) == {"b1"}
    assert gone(cluster, me(2)) == "protected"
    assert gone(cluster, me(2, priority=1)) == {"b1"}


def test_of_a_quota_that_cannot_be_read_nobody_is_taken():
    cluster = world(node(), quota("a", least={"cpu": 4}), unreadable("b"), run("b1", cpu=4))
    assert gone(cluster, me(1)) == "protected"


def test_a_quota_falls_below_its_min_as_little_as_possible():
    cluster = world(
        node(size={"cpu": 8}),
        quota("a", least={"cpu": 2}),
        quota("b", least={"cpu": 6}),
        run("large", cpu=5, created=9.0),
        run("middle", cpu=2),
        run("small", cpu=1),
    )
    assert gone(cluster, me(2)) == {"middle"}


def test_rather_than_below_its_min_a_quota_loses_an_older_pod():
    quotas = quota("a", least={"cpu": 1}), quota("b", least={"cpu": 2})
    cluster = world(node(), *quotas, run("large", cpu=3, started=9.0), run("small", priority=1, started=1.0))
    assert gone(cluster, me()) == gone_from(cluster, me()) == {"small"}


def test_rather_than_below_its_min_a_quota_loses_nothing_if_another_can_spare_it():
    quotas = quota("a", least={"cpu": 2}), quota("b", least={"cpu": 1}), quota("c", least={"cpu": 10})
    spare = (run(f"c{number}", "c", cpu=2, priority=1) for number in range(6))
    cluster = world(node(size={"cpu": 14}), *quotas, run("b1", cpu=2), *spare)
    assert {uid[0] for uid in gone(cluster, me(2))} == {uid[0] for uid in gone_from(cluster, me(2))} == {"c"}


def test_a_quota_does_not_fall_below_a_min_that_it_did_not_use_up_anyway():
    quotas = quota("a", least={"cpu": 1}), quota("b", least={"cpu": 0, "memory": 9}), quota("c", least={"cpu": 0})
    pods = run("b1", request={"cpu": 4, "memory": 1}), run("c1", "c", cpu=4, priority=1, on="n2")
    assert gone(world(node(), node("n2"), *quotas, *pods), me()) == {"b1"}


def test_what_must_overshoot_does():
    cluster = world(node(size={"cpu": 6}), quota("a", least={"cpu": 2}), quota("b", least={"cpu": 5}), run("b1", cpu=6))
    assert gone(cluster, me(1)) == {"b1"}


def test_most_can_be_had_of_a_quota_when_a_large_pod_goes_last():
    cluster = world(
        node(), quota("a", least={"cpu": 3}), quota("b", least={"cpu": 2}), run("s1"), run("s2"), run("l", cpu=2)
    )
    assert gone(cluster, me(3)) in ({"s1", "l"}, {"s2", "l"})


def test_a_sufficient_victim_goes_though_another_would_end_the_borrowing():
    """The quota borrows one core: whoever goes first goes alone, be it the smallest, the largest or the newest."""
    cluster = world(
        node(size={"cpu": 6, "gpu": 2}),
        quota("a", least={"cpu": 3, "gpu": 2}),
        quota("b", least={"cpu": 5, "gpu": 2}),
        run("small", cpu=1, created=9.0),
        run("both", request={"cpu": 2, "gpu": 2}),
        run("large", cpu=3),
    )
    preemptor = me(request={"cpu": 2, "gpu": 1})
    assert gone(cluster, preemptor) == gone_from(cluster, preemptor) == {"both"}


def test_one_who_is_enough_goes_though_it_is_another_resource_that_it_is_taken_for():
    cluster = world(
        node(size={"cpu": 2, "gpu": 1}),
        quota("a", least={"cpu": 2}),
        quota("b", least={"cpu": 1}),
        run("cores", priority=-1),
        run("both", request={"cpu": 1, "gpu": 1}),
    )
    assert gone(cluster, me(request={"cpu": 1, "gpu": 1})) == {"both"}


# 3. Without a quota


def test_a_pod_without_a_quota_takes_from_lower_priority_without_one_anywhere():
    cluster = world(node(), *LOANS, run("free", "free", cpu=2), run("b1", cpu=2))
    assert gone(cluster, me(2, "other", priority=1)) == {"free"}
    assert gone(cluster, me(3, "other", priority=1)) == "protected"
    assert gone(cluster, me(2, "other", priority=0)) == "protected"


def test_an_owner_takes_nothing_from_those_without_a_quota():
    cluster = world(node(), *LOANS, run("free", "free", cpu=4, priority=-1))
    assert gone(cluster, me(1, priority=5)) == "protected"


# Never


@pytest.mark.parametrize(
    ("kept", "preemptor"),
    [
        ({"owner": "DaemonSet"}, {}),
        ({"owner": "Node"}, {}),
        ({"priority": SYSTEM}, {"priority": SYSTEM - 1}),
        ({"priority": SYSTEM}, {"priority": SYSTEM}),
        ({"priority": SYSTEM + 1000}, {"priority": SYSTEM}),
        ({"priority": SYSTEM}, {"priority": SYSTEM + 1000}),
    ],
    ids=str,
)
def test_some_never_go(kept, preemptor):
    cluster = world(node(), quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0}), run("b1", cpu=4, **kept))
    assert gone(cluster, me(1, **preemptor)) == "protected"
    assert gone_from(cluster, me(1, **preemptor)) == set()


def test_one_that_opted_out_goes_only_if_its_kind_exceeds_the_min():
    quotas = quota("a", least={"cpu": 2}), quota("b", least={"cpu": 2})
    cluster = world(node(), *quotas, run("firm", cpu=2, preemptible=False), run("b1", cpu=2, priority=5))
    assert gone(cluster, me(2)) == {"b1"}
    cluster = world(node(), *quotas, run("f1", cpu=2, preemptible=False), run("f2", cpu=2, preemptible=False))
    assert len(gone(cluster, me(2))) == 1


def test_one_that_is_expected_but_not_there_is_not_taken():
    expected = pod("b1", "b", request={"cpu": 4}, nominated_node="n1")
    assert gone(world(node(), *LOANS, expected), me(1)) == "protected"


def test_what_is_going_already_is_room_to_come():
    cluster = world(node(), *LOANS, run("b1", cpu=2, terminating=True), run("b2", cpu=2))
    assert gone(cluster, me(2)) == "waiting"
    assert gone_from(cluster, me(2)) == set()


def test_what_is_going_already_helps_a_victim_to_make_room():
    cluster = world(
        node(), quota("a", least={"cpu": 4}), quota("b"), run("b1", cpu=2, terminating=True), run("b2", cpu=2)
    )
    assert gone(cluster, me(4)) == {"b2"}
    assert gone_from(cluster, me(4)) == {"b2"}


def test_its_own_nomination_is_not_in_its_way():
    cluster = world(node(), quota("a", least={"cpu": 4}), quota("b"), run("b1", cpu=4), me(4, nominated_node="n1"))
    assert gone(cluster, me(4, nominated_node="n1")) == {"b1"}


def test_a_less_important_nomination_is_not_in_its_way():
    waiting = pod("low", "a", request={"cpu": 4}, nominated_node="n1", priority=-1)
    cluster = world(node(), quota("a", least={"cpu": 4}), quota("b"), run("b1", cpu=4), waiting)
    assert gone(cluster, me(4)) == {"b1"}


def test_one_whose_preemption_policy_is_never_takes_nobody():
    cluster = world(node(), *LOANS, run("b1", cpu=4))
    assert gone(cluster, me(1, may_preempt=False)) == "never"
    assert gone_from(cluster, me(1, may_preempt=False)) == set()


def test_where_it_cannot_be_decided_nobody_goes():
    cluster = world(node(), *LOANS, run("b1", cpu=4))
    bound = me(1, constraints=Constraints(undecidable=("volume data is bound to nodes",)))
    assert gone(cluster, bound) == "undecidable"
    assert gone_from(cluster, bound) == set()


def test_where_no_node_could_ever_take_it_nobody_goes():
    cluster = world(node(), quota("a", least={"cpu": 9}), run("b1", cpu=4))
    assert gone(cluster, me(5)) == "never"
    tied = me(1, constraints=Constraints(node_selector=(("zone", "a"),)))
    assert gone(cluster, tied) == "never"


def test_where_there_is_room_nobody_goes():
    cluster = world(node(), node("n2"), *LOANS, run("b1", cpu=4))
    assert gone(cluster, me(1)) == "room"
    assert gone_from(cluster, me(1), "n2") == set()


def test_one_whose_quota_cannot_be_read_takes_nobody():
    cluster = world(node(), unreadable("a"), quota("b", least={"cpu": 4}), run("a1", "a", cpu=4))
    assert gone(cluster, me(1, priority=9)) == "protected"


# Refused by its own quota: only what resolves that


def test_one_past_its_max_takes_from_lower_priority_of_its_own_only():
    quotas = quota("a", least={"cpu": 1}, most={"cpu": 2}), quota("b", least={"cpu": 3})
    cluster = world(node(size={"cpu": 8}), *quotas, run("a1", "a", cpu=2), run("b1", cpu=3))
    assert gone(cluster, me(1, priority=0)) == "protected"
    assert gone(cluster, me(1, priority=1)) == {"a1"}


def test_one_past_its_max_gets_its_victims_wherever_they_stand():
    quotas = quota("a", least={"cpu": 0}, most={"cpu": 2}), quota("b", least={"cpu": 8})
    cluster = world(node(), node("n2"), *quotas, run("a1", "a", on="n1"), run("a2", "a", on="n2"))
    assert gone(cluster, me(2, priority=1)) == {"a1", "a2"}
    assert gone_from(cluster, me(2, priority=1), "n1") == set()


def test_when_max_is_resolved_the_next_rule_is():
    quotas = (
        quota("a", least={"cpu": 0, "memory": 0}, most={"cpu": 1}),
        quota("b", least={"cpu": 8, "memory": 8}),
    )
    room = node(size={"memory": 16})
    cpu, memory = run("cpu", "a"), run("memory", "a", request={"memory": 8})
    assert gone(world(room, *quotas, cpu, memory), me(request={"cpu": 1, "memory": 1}, priority=1)) == {"cpu", "memory"}


def test_one_that_no_victim_can_resolve_takes_nobody():
    quotas = quota("a", least={"cpu": 1}, most={"cpu": 2}), quota("b", least={"cpu": 3})
    cluster = world(node(), *quotas, run("a1", "a", cpu=1), run("b1", cpu=3))
    assert gone(cluster, me(3, priority=1)) == "protected"
    assert gone_from(cluster, me(3, priority=1)) == set()


def test_an_owner_takes_back_halves_from_two_nodes_where_the_sum_of_min_binds_all():
    nodes = node(size={"cpu": 3}), node("n2", size={"cpu": 1})
    quotas = quota("q1", least={"cpu": 0}, most={"cpu": 2}), quota("q2", least={"cpu": 2})
    cluster = world(
        *nodes, *quotas, run("x", "q1", on="n1"), run("y", "q1", on="n2"), rules=Rules(strict_borrowing=True)
    )
    assert gone(cluster, me(2, "q2")) == {"x", "y"}
    assert gone_from(cluster, me(2, "q2"), "n1") == set()


# Which of them


def test_pods_are_put_back_until_nobody_can_be_spared():
    cluster = world(node(), quota("a", least={"cpu": 4}), quota("b"), *(run(f"b{number}") for number in range(4)))
    for cpu in (1, 2, 3, 4):
        assert len(gone(cluster, me(cpu))) == cpu


@pytest.mark.parametrize(
    ("stays", "goes"),
    [
        ({"priority": 1}, {"priority": 0}),
        ({"started": 1.0}, {"started": 2.0}),
        ({"priority": 1, "started": 2.0}, {"priority": 0, "started": 1.0}),
        ({"created": 1.0}, {"created": 2.0}),
    ],
    ids=str,
)
def test_the_more_important_stay(stays, goes):
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})
    for uids in (("x", "y"), ("y", "x")):
        pods = run(uids[0], cpu=2, **stays), run(uids[1], cpu=2, **goes)
        assert gone(world(node(), *quotas, *pods), me(1)) == {uids[1]}


def test_among_equals_the_one_whose_quota_borrows_most_goes():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 1}), quota("c", least={"cpu": 1})
    cluster = world(
        node(size={"cpu": 6}),
        *quotas,
        *(run(f"b{number}", created=9.0) for number in range(2)),
        *(run(f"c{number}", "c", created=1.0) for number in range(4)),
    )
    found = gone(cluster, me(1))
    assert len(found) == 1
    assert next(iter(found)).startswith("c")


def test_one_without_any_min_borrows_most():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 1}), quota("c")
    cluster = world(node(), *quotas, run("b1", created=9.0), run("b2", created=9.0), run("c1", "c", cpu=2))
    assert gone(cluster, me(1)) == {"c1"}


def test_victims_are_named_most_important_first():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})
    pods = [
        run("low", priority=0, started=1.0),
        run("high", priority=2, started=9.0),
        run("old", priority=1, started=1.0),
        run("new", priority=1, started=2.0),
    ]
    found = victims_on(world(node(), *quotas, *pods), me(4), "n1")
    assert [victim.uid for victim in found.victims] == ["high", "old", "new", "low"]


def test_of_pods_that_are_alike_the_same_one_goes_whatever_the_order_of_events():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})
    pods = [run(f"b{number}", created=1.0) for number in range(4)]
    answers = {
        frozenset(gone(world(node(), *quotas, *some), me(1))) for some in (pods, pods[::-1], pods[2:] + pods[:2])
    }
    assert len(answers) == 1


def budget(allowed: int, namespace: str = "b", **labels: str) -> Budget:
    return Budget(namespace, "budget", labelled(**(labels or {"app": "x"})), allowed)


def test_those_in_a_budget_stay_if_others_can_go_even_more_important_ones():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})
    pods = run("safe", cpu=2, labels={"app": "x"}), run("bare", cpu=2, priority=7)
    found = victims_on(world(node(), *quotas, *pods, budget(0)), me(2), "n1")
    assert [victim.uid for victim in found.victims] == ["bare"]
    assert found.violations == 0


def test_a_violation_is_counted_and_is_hard_only_if_asked():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})
    pods = [run(f"b{number}", labels={"app": "x"}) for number in range(4)]
    cluster = world(node(), *quotas, *pods, budget(1))
    assert victims_on(cluster, me(3), "n1").violations == 2
    assert gone_from(cluster, me(3), respect_budgets=True) == set()
    assert len(gone_from(cluster, me(1), respect_budgets=True)) == 1


def test_a_node_without_violations_is_better_than_one_with_fewer_victims():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})
    pods = run("safe", cpu=4, labels={"app": "x"}), *(run(f"b{number}", on="n2") for number in range(4))
    found = plan(world(node(), node("n2"), *quotas, *pods, budget(0)), me(4))
    assert isinstance(found, Plan)
    assert (found.node, found.violations, len(found.victims)) == ("n2", 0, 4)


def test_elsewhere_too_those_in_a_budget_stay_if_others_can_go():
    quotas = quota("a", least={"cpu": 0}, most={"cpu": 2}), quota("b", least={"cpu": 8})
    pods = run("safe", "a", on="n2", labels={"app": "x"}), run("bare", "a", on="n2", priority=1)
    cluster = world(node(), node("n2"), *quotas, *pods, budget(0, "a"))
    assert gone(cluster, me(1, priority=2)) == {"bare"}


@pytest.mark.parametrize(
    ("on_n1", "on_n2", "better"),
    [
        ([{"priority": 1}], [{"priority": 0}], "n2"),
        ([{"priority": 0, "started": 1.0}], [{"priority": 0, "started": 2.0}], "n2"),
        ([{}], [{}], "n1"),
        ([{"cpu": 2}, {"cpu": 2}], [{"cpu": 4}], "n2"),
    ],
    ids=["lower priority lost", "newest", "by name", "fewer"],
)
def test_of_two_nodes_the_better_is_chosen(on_n1, on_n2, better):
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})
    pods = [
        run(f"{name}-{number}", on=name, **({"cpu": 4, "created": 1.0} | words))
        for name, some in (("n1", on_n1), ("n2", on_n2))
        for number, words in enumerate(some)
    ]
    assert plan(world(node(), node("n2"), *quotas, *pods), me(4)).node == better


def test_an_unknown_node_has_nobody():
    assert gone_from(world(node(), *LOANS, run("b1", cpu=4)), me(1), "n9") == set()


# Members of a gang


def gang(*uids: str, minimum: int = 3, on: str = "n1", group: str = "g", **rest) -> list[Group | Pod]:
    """A group and its members, of one core each, that stand on a node."""
    return [Group("b", group, minimum), *(run(uid, on=on, group=group, **rest) for uid in uids)]


def with_gangs(*objects) -> Cluster:
    cluster = world(*(each for each in objects if not isinstance(each, Group)))
    for each in objects:
        if isinstance(each, Group):
            cluster.upsert_group(each)
    return cluster


LENDING = (quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0}))


def test_of_a_gang_that_cannot_do_without_a_member_all_go():
    cluster = with_gangs(node(), *LENDING, *gang("b1", "b2", "b3", minimum=3), run("a1", "a"))
    assert gone(cluster, me(1)) == {"b1", "b2", "b3"}


def test_members_beyond_the_minimum_go_one_by_one():
    cluster = with_gangs(node(), *LENDING, *gang("b1", "b2", "b3", minimum=2), run("a1", "a"))
    assert len(gone(cluster, me(1))) == 1


def test_when_more_has_to_go_than_is_beyond_the_minimum_all_go():
    cluster = with_gangs(node(), *LENDING, *gang("b1", "b2", "b3", "b4", minimum=3))
    assert gone(cluster, me(2)) == {"b1", "b2", "b3", "b4"}


@pytest.mark.parametrize("age", [0.0, 100.0])
def test_others_go_first(age):
    cluster = with_gangs(node(), *LENDING, *gang("b1", "b2", "b3"), run("lone", priority=9, started=age))
    assert gone(cluster, me(1)) == {"lone"}


@pytest.mark.parametrize("age", [0.0, 100.0])
def test_others_go_first_for_a_rule(age):
    cluster = with_gangs(
        node("n1"),
        node("n2"),
        quota("a", least={"cpu": 3}, most={"cpu": 3}),
        *[Group("a", "g", 2), run("a1", "a", group="g", priority=-1), run("a2", "a", group="g", priority=-1)],
        run("lone", "a", priority=-1, started=age),
    )
    assert gone(cluster, me(1)) == {"lone"}
    cluster.delete_pod("lone")
    assert gone(cluster, me(2)) == {"a1", "a2"}


def test_the_others_of_a_gang_go_wherever_they_stand():
    cluster = with_gangs(
        node(), node("n2", size={"cpu": 1}), *LENDING, *gang("b1", "b2"), run("b3", on="n2", group="g"), run("a1", "a")
    )
    assert gone(cluster, me(3)) == {"b1", "b2", "b3"}


def test_the_schedulers_preemption_takes_a_gang_only_if_all_of_it_is_on_the_node():
    there = [node(), node("n2"), *LENDING, *gang("b1", "b2"), run("b4", cpu=2, group="other", priority=9, on="n2")]
    assert gone_from(with_gangs(*there, run("b3", on="n1", group="g"), run("a1", "a")), me(1)) == {"b1", "b2", "b3"}
    assert gone_from(with_gangs(*there, run("b3", on="n2", group="g"), run("a1", "a", 2)), me(1)) == set()


def test_the_schedulers_own_preemption_looks_at_each_node_for_itself():
    other = run("c1", group="h", on="n2"), run("c2", group="h", on="n2"), Group("b", "h", 2)
    cluster = with_gangs(
        *(node(name, size={"cpu": 2, "pods": 9}) for name in ("n1", "n2")),
        *LENDING,
        *gang("b1", "b2", minimum=2),
        *other,
    )
    plans = victims_on_each(cluster, me(1), ["n1", "n2"])
    assert [{victim.uid for victim in each.victims} for each in plans] == [{"b1", "b2"}, {"c1", "c2"}]


def test_a_member_that_may_not_go_protects_none_of_the_others():
    cluster = with_gangs(node(), *LENDING, *gang("b1", "b2"), run("b3", group="g", owner="DaemonSet"), run("a1", "a"))
    assert gone(cluster, me(1)) == {"b1", "b2"}


def test_a_gang_in_its_own_namespace_stays_if_one_of_its_members_is_as_important():
    cluster = with_gangs(
        node(),
        Group("a", "g", 2),
        quota("a", least={"cpu": 2}, most={"cpu": 2}),
        run("a1", "a", group="g"),
        run("a2", "a", group="g", priority=5),
    )
    assert gone(cluster, me(1, priority=5)) == "protected"


def test_of_a_gang_that_stays_after_all_one_beyond_its_minimum_may_be_tried_alone():
    there = [node(size={"cpu": 3, "pods": 9}), node("n2", size={"cpu": 1, "pods": 9})]
    quotas = [quota("a", least={"cpu": 3}), quota("b", least={"cpu": 2})]
    others = [run("b2", group="g", priority=2), run("b3", on="n2", group="g", priority=5), run("b4", priority=1)]
    cluster = with_gangs(*there, *quotas, *gang("b1", minimum=2), *others)
    assert gone(cluster, me(3)) == "protected"  # b keeps two cores, so not all may leave n1


def test_of_a_gang_that_is_starting_those_go_that_stand():
    cluster = with_gangs(node(), *LENDING, *gang("b1", "b2"), pod("b3", "b", group="g"), run("a1", "a", 2))
    cluster.grant(pod("b3", "b", group="g"), now=0)
    assert gone(cluster, me(1)) == {"b1", "b2"}


def test_what_is_left_of_a_gang_goes_one_by_one():
    cluster = with_gangs(node(), *LENDING, *gang("b1", "b2", minimum=3), run("a1", "a", 2))
    assert len(gone(cluster, me(1))) == 1


def test_those_who_have_succeeded_count_towards_the_minimum_and_stay():
    cluster = with_gangs(
        node(),
        *LENDING,
        *gang("b1", "b2", minimum=3),
        run("b3", group="g", finished=True, succeeded=True),
        run("a1", "a", 2),
    )
    assert gone(cluster, me(1)) == {"b1", "b2"}


@pytest.mark.parametrize(("kept", "expected"), [(0, 3), (1, 2)])
def test_of_a_gang_so_many_go_that_its_queue_keeps_its_guarantee(kept, expected):
    cluster = with_gangs(node(), *gang("b1", "b2", "b3"), run("a1", "a"))
    for each in (queue("qa"), queue("qb", kept={"cpu": kept})):
        cluster.upsert_queue(each)
    for namespace, name in (("a", "qa"), ("b", "qb")):
        cluster.upsert_namespace(Namespace(namespace, name))
    cluster.upsert_pod(me(1), now=0)
    assert len(gone(divided(cluster), me(1))) == expected


def test_preempt_makes_no_room_for_one_member_of_a_gang_that_cannot_start():
    waiting = [pod(f"a{at}", "a", group="g") for at in range(2)]
    cluster = with_gangs(node(), *LOANS, Group("a", "g", 2), *waiting, run("b1", cpu=4))
    assert gone_from(cluster, waiting[0]) == set()
    cluster.upsert_group(Group("a", "g", 1))
    assert gone_from(cluster, waiting[0]) == {"b1"}
