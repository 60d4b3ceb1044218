"""What queues deserve, and whom they admit.

Seeds: Queue API (Proportion Policy), queue guarantee.
"""

from dataclasses import replace

import pytest

from policy.cluster import dividing
from policy.explain.verdicts import verdict_on
from policy.objects.membership import Namespace
from policy.queueing.ungating import share_of_queue
from policy.quota import admission, proportion, queue_rules, shares
from policy.quota.queue_rules import conditions
from tests.unit.given import pod
from tests.unit.given_nodes import node
from tests.unit.given_queues import admitted, deserved, divided, entitled, pods, queue, why, world

TWO = ("a:q1", "b:q2")
FULL = "Queue capability exceeded: cpu"
BEYOND = "Queue deserved exceeded: cpu"


def test_by_weight_and_request():
    cluster = world(queue("q1", 2), queue("q2", 4), *TWO, *pods("a", 5), *pods("b", 10), cpu=9)
    assert (deserved(cluster, "q1"), deserved(cluster, "q2")) == (3, 6)


def test_a_guarantee_comes_first():
    cluster = world(queue("q1", kept={"cpu": 6}), queue("q2"), *TWO, *pods("a", 10), *pods("b", 10), cpu=10)
    assert (deserved(cluster, "q1"), deserved(cluster, "q2")) == (6, 4)


def test_a_guarantee_holds_without_demand():
    cluster = world(queue("q1", kept={"cpu": 4}), queue("q2"), *TWO, *pods("b", 10), cpu=10)
    assert (deserved(cluster, "q1"), deserved(cluster, "q2")) == (4, 6)
    assert len(admitted(cluster, *pods("b", 10))) == 6
    assert why(cluster, pod("next", "b")) == FULL


def test_two_queues_cannot_eat_the_guarantee_of_a_third():
    kept = [queue(name, kept={"cpu": 2}) for name in ("q1", "q2", "q3")]
    cluster = world(*kept, *TWO, "c:q3", *pods("a", 9), *pods("b", 9), cpu=9)
    turns = [each for pair in zip(pods("a", 9), pods("b", 9), strict=True) for each in pair]
    assert len(admitted(cluster, *turns)) == 7


def test_what_nobody_claims_may_be_used_beyond_what_is_deserved():
    cluster = world(queue("q1"), queue("q2"), *TWO, cpu=10)
    newcomers = pods("a", 12)  # not seen yet, so nothing is deserved for them
    assert len([each for each in newcomers if cluster.admit(each, now=0) is None]) == 10


def test_a_claim_is_kept_for_pods_that_wait():
    cluster = world(queue("q1"), queue("q2"), *TWO, *pods("a", 10), *pods("b", 3), cpu=10)
    assert len(admitted(cluster, *pods("a", 10))) == 7
    assert why(cluster, cluster.pods["a-9"]) == BEYOND


def test_a_pod_asked_about_in_another_queue_leaves_no_claim_in_its_first():
    waits = pod("p", "a", queue="q1")
    cluster = world(queue("q1"), queue("q2"), waits, cpu=10)
    ledger = cluster.ledger.queues
    assert ledger.accounts["q1"].claim == ledger.claims == {"cpu": 1000, "pods": 1}
    assert cluster.admit(replace(waits, queue="q2"), now=0) is None
    assert ledger.accounts["q1"].claim == {}
    assert ledger.claims == {}
    assert ledger.accounts["q2"].taken == {"cpu": 1000, "pods": 1}


def test_the_claim_of_a_pod_in_its_first_queue_is_not_kept_from_it_in_another():
    waits = pod("p", "a", queue="q1")
    cluster = world(queue("q1"), queue("q2"), waits, cpu=1)
    assert cluster.check(replace(waits, queue="q2")) is None


def test_what_a_pod_would_leave_in_its_first_queue_is_kept_there_for_others():
    granted, waits = (pod(name, "a", queue="q1") for name in ("granted", "waits"))
    cluster = world(queue("q1"), queue("q2"), granted, waits, cpu=1)
    assert cluster.admit(granted, now=0) is None
    assert why(cluster, replace(granted, queue="q2")) == BEYOND


def test_what_is_left_of_one_resource_is_not_kept_for_pods_that_lack_another():
    size, both, graphics = {"cpu": 20, "gpu": 4, "pods": 99}, {"cpu": 1, "gpu": 1}, {"cpu": 0, "gpu": 1}
    theirs, few = pods("b", 10, request=graphics), pods("a", 10, request=both)
    queues = (queue("q1"), queue("q2", 9), queue("q3"))
    cluster = world(*queues, *TWO, "c:q3", node(size=size), *few, *theirs, *pods("c", 20))
    assert (deserved(cluster, "q1"), deserved(cluster, "q1", "gpu")) == (10, 0)
    assert len(admitted(cluster, *theirs, *pods("c", 20), *few)) == 24


def test_what_one_of_different_pods_could_use_is_kept_once_there_is_room_for_it():
    waiting = pod("both", "a", request={"cpu": 2, "gpu": 1}), pod("only", "a", request={"cpu": 3})
    cluster = world(queue("q1"), queue("q2"), *TWO, *waiting, cpu=1)
    tenant = cluster.ledger.queues.accounts["q1"].tenants["a"]
    assert tenant.claim == {}
    cluster.upsert_node(node(size={"cpu": 8, "pods": 500}))
    divided(cluster)
    assert tenant.claim["cpu"] == 5000


def test_no_place_for_a_pod_is_kept_for_one_that_does_not_fit():
    small, large = pods("a", 20, request={"cpu": 0.1}), pods("b", 5, request={"cpu": 2})
    cluster = world(queue("q1"), queue("q2"), *TWO, node(size={"cpu": 10, "pods": 10}), *small, *large)
    turns = [each for pair in zip(small, large, strict=False) for each in pair]
    assert len(admitted(cluster, *turns, *small[5:])) == 10


def test_capability_bounds_a_queue_whatever_is_free():
    cluster = world(queue("q1", most={"cpu": 2}), "a:q1", *pods("a", 5))
    assert admitted(cluster, *pods("a", 5)) == ["a-0", "a-1"]
    assert why(cluster, pod("next", "a")) == FULL


def test_a_resource_that_capability_does_not_name_is_unlimited():
    cluster = world(queue("q1", most={"cpu": 2}), "a:q1", node(size={"cpu": 4, "gpu": 4}))
    assert why(cluster, pod("p", "a", request={"gpu": 4})) == ""


def test_pods_outside_of_queues_take_from_all():
    cluster = world(queue("q1"), "a:q1", *pods("free", 6, node="n1"), *pods("a", 20), cpu=16)
    assert deserved(cluster, "q1") == 10


def test_of_a_node_that_takes_no_new_pods_counts_what_is_used():
    cluster = world(queue("q1"), "a:q1", node(size={"cpu": 8}), *pods("a", 3, node="n1"), *pods("a", 20, 3))
    assert deserved(cluster, "q1") == 8
    for change in ({"unschedulable": True}, {"ready": False}):
        cluster.upsert_node(node(size={"cpu": 8}, **change))
        assert deserved(divided(cluster), "q1") == 3


@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_a_closed_queue_admits_no_new_pod_and_keeps_what_runs(state):
    cluster = world(queue("q1", state=state), "a:q1", *pods("a", 1, node="n1"))
    assert why(cluster, pod("next", "a")) == "Queue is closed"
    assert why(cluster, cluster.pods["a-0"]) == ""


def test_a_queue_that_does_not_exist_admits_nobody():
    cluster = world(queue("q1"), "a:nowhere")
    assert why(cluster, pod("p", "a")) == "Queue is closed"
    assert "create Queue nowhere" in _remedy(cluster, pod("p", "a"))


def test_without_any_queue_there_are_no_rules_of_queues():
    assert why(world("a:nowhere"), pod("p", "a")) == ""


def test_pods_of_a_deleted_queue_stay_and_take_from_all():
    cluster = world(queue("q1"), queue("q2"), *TWO, *pods("a", 4, node="n1"), *pods("b", 20), cpu=16)
    cluster.delete_queue("q1")
    assert deserved(divided(cluster), "q2") == 12
    assert why(cluster, pod("next", "a")) == "Queue is closed"


def test_guarantees_beyond_the_cluster_are_scaled_down_and_said_not_to_be_backed():
    cluster = world(queue("q1", kept={"cpu": 12}), queue("q2", kept={"cpu": 4}), *TWO, cpu=8)
    assert (deserved(cluster, "q1"), deserved(cluster, "q2")) == (6, 2)
    for name in ("q1", "q2"):
        assert _types(cluster, name) == ["GuaranteeNotBacked"]


def test_of_a_guarantee_beyond_capability_capability_counts():
    cluster = world(queue("q1", kept={"cpu": 5}, most={"cpu": 2}), "a:q1")
    assert deserved(cluster, "q1") == 2
    assert _types(cluster, "q1") == ["Invalid"]


def test_a_guarantee_of_a_resource_that_no_node_has_is_not_backed():
    cluster = world(queue("q1", kept={"fpga": 5}), "a:q1")
    assert _types(cluster, "q1") == ["GuaranteeNotBacked"]
    assert why(cluster, pod("p", "a")) == ""


def test_what_cannot_be_read_leaves_the_last_good_spec_in_force():
    cluster = world(queue("q1", most={"cpu": 1}), "a:q1")
    cluster.upsert_queue(queue("q1", errors=("spec.weight: must be a whole number",), readable=False))
    assert why(divided(cluster), pod("p", "a", request={"cpu": 2})) == FULL
    assert _types(cluster, "q1") == ["Invalid"]


def test_a_queue_that_never_could_be_read_is_closed():
    cluster = world(queue("q1", errors=("spec.weight: must be a whole number",), readable=False), "a:q1")
    assert why(cluster, pod("p", "a")) == "Queue is closed"
    assert "must be a whole number" in _remedy(cluster, pod("p", "a"))


def test_a_queue_that_is_new_is_divided_for_when_first_asked():
    cluster = world(queue("q1"), "a:q1")
    cluster.upsert_queue(queue("q2"))
    cluster.upsert_namespace(Namespace("b", "q2"))
    assert why(cluster, pod("p", "b")) == ""


# Namespaces within a queue

SHARES = [  # weights of queues, of namespaces, what they ask for, and what they are entitled to
    ((1, 1), (1, 1, 1, 1), (5, 10, 10, 2), (4, 4, 6, 2)),
    ((1, 3), (3, 1, 2, 6), (5, 10, 10, 2), (3, 1, 10, 2)),
]


@pytest.mark.parametrize(("queues", "weights", "asked", "expected"), SHARES)
def test_the_tables_of_the_seed(queues, weights, asked, expected):
    cluster = world(queue("q1", queues[0]), queue("q2", queues[1]), "ns1:q1", "ns2:q1", "ns3:q2", "ns4:q2")
    names = ("ns1", "ns2", "ns3", "ns4")
    for name, weight, count in zip(names, weights, asked, strict=True):
        cluster.upsert_weight(name, "quota", weight)
        for each in pods(name, count):
            cluster.upsert_pod(each, now=0)
    divided(cluster)
    assert tuple(entitled(cluster, f"q{1 + at // 2}", name) for at, name in enumerate(names)) == expected
    everybody = [each for name, count in zip(names, asked, strict=True) for each in pods(name, count)]
    for order in (everybody, everybody[::-1], everybody[::2] + everybody[1::2]):
        found = admitted(cluster, *order)
        assert tuple(sum(uid.startswith(name) for uid in found) for name in names) == expected
        for uid in found:
            cluster.withdraw(uid)


def test_one_that_has_its_share_is_refused_while_another_waits_for_its_own():
    cluster = world(queue("q"), "a:q", "b:q", *pods("a", 9), *pods("b", 9), cpu=10)
    assert len(admitted(cluster, *pods("a", 9))) == 5
    assert why(cluster, cluster.pods["a-8"]) == "Namespace fair share exceeded: cpu"


def test_a_namespace_may_use_what_no_other_waits_for():
    cluster = world(queue("q"), "a:q", "b:q", *pods("a", 9), *pods("b", 2), cpu=10)
    assert len(admitted(cluster, *pods("a", 9))) == 8


def test_shares_are_counted_in_the_dominant_resource():
    cluster = world(node(size={"cpu": 12, "gpu": 12, "pods": 99}), queue("q"), "a:q", "b:q")
    for namespace, size in (("a", {"cpu": 2, "gpu": 1}), ("b", {"cpu": 1})):
        for each in pods(namespace, 12, request=size):
            cluster.upsert_pod(each, now=0)
    divided(cluster)
    assert (entitled(cluster, "q", "a"), entitled(cluster, "q", "b")) == (6, 6)


def _remedy(cluster, one) -> str:
    cluster.upsert_pod(one, now=0)
    return " ".join(hint.text for hint in verdict_on(cluster, one.namespace, one.name).hints)


def _types(cluster, name) -> list[str]:
    return [each.type for each in conditions(cluster.queues[name], cluster.ledger.queues.accounts[name].division)]


def test_only_what_has_changed_is_looked_at_again(monkeypatch):
    """Counted, where seconds would vary: to a pod that comes, ten thousand namespaces are as good as these."""
    homes = [f"ns{number}:q{number % 3}" for number in range(12)]
    waiting = [pods(f"ns{number}", 1)[0] for number in range(12)]
    cluster = world(*(queue(f"q{number}") for number in range(3)), *homes, *waiting, cpu=6)
    read, computed = [], []
    read_row, divide = shares.Rows.read, proportion._divide
    monkeypatch.setattr(shares.Rows, "read", lambda *each: (read.append(each[1]), read_row(*each)))
    monkeypatch.setattr(
        proportion, "_divide", lambda *each, **rest: (computed.append(each[1]), divide(*each, **rest))[1]
    )
    cluster.upsert_pod(pod("more", "ns4", request={"cpu": 1}), now=0)
    divided(cluster)
    assert (len(read), computed) == (1, ["cpu", "pods"])
    cluster.upsert_node(node("n2", size={"cpu": 3, "pods": 0}))
    divided(cluster)
    assert (len(read), computed) == (1, ["cpu", "pods", "cpu"])
    assert sum(entitled(cluster, f"q{number % 3}", f"ns{number}") for number in range(12)) == 9


def test_a_weight_that_changes_in_a_pause_of_a_division_is_not_lost(monkeypatch):
    monkeypatch.setattr(dividing, "BATCH", 1)
    asked = [*pods("a", 8), *pods("b", 8), *pods("c", 8), *pods("d", 8)]
    cluster = world(queue("p"), queue("q"), "a:p", "b:p", "c:q", "d:q", *asked, cpu=8)
    cluster.upsert_node(node(size={"cpu": 16, "pods": 500}))
    work, done = cluster.divide_steps(), cluster.ledger.queues.accounts["p"]
    while done.stale or done.division.deserved["cpu"] < 8000:
        next(work)
    for namespace in ("a", "c"):  # one that was just divided among, and one that comes next
        cluster.upsert_weight(namespace, "weight", 3)
    for _ in work:
        pass
    while cluster.to_be_divided:
        divided(cluster)
    assert [entitled(cluster, each, namespace) for each, namespace in (("p", "a"), ("p", "b"))] == [6, 2]
    assert [entitled(cluster, each, namespace) for each, namespace in (("q", "c"), ("q", "d"))] == [6, 2]


def test_a_weight_that_changes_while_namespaces_are_read_is_not_lost():
    names = [f"n{number}" for number in range(2 * shares.FEW)]
    asked = [each for name in names for each in pods(name, 2)]
    cluster = world(queue("q"), *(f"{name}:q" for name in names), *asked, cpu=150)
    for name in names:
        cluster.upsert_pod(pod(f"{name}-more", name, request={"cpu": 1}), now=0)
    work, account = cluster.divide_steps(), cluster.ledger.queues.accounts["q"]
    while len(account.unread) != len(names) - shares.FEW:
        next(work)
    late = next(iter(account.unread))
    cluster.upsert_weight(late, "weight", 3)
    for _ in work:
        pass
    while cluster.to_be_divided:
        divided(cluster)
    assert entitled(cluster, "q", late) == 3


def test_names_that_tenants_make_up_take_no_place_beside_what_nodes_have():
    invented = [pod(f"a-{number}", "a", request={"cpu": 1, f"example.com/{number}": 1}) for number in range(20)]
    cluster = world(queue("q"), "a:q", "b:q", *invented, *pods("b", 8), cpu=8)
    account = cluster.ledger.queues.accounts["q"]
    assert account.rows.resources == ["cpu", "pods"]
    assert cluster.ledger.queues.columns.keys() == {"cpu", "pods"}
    assert account.division.real_capability == {"cpu": 8000, "pods": 500}
    assert account.tenants["a"].entitled == {"cpu": 4000, "pods": 20}
    assert account.tenants["a"].claim == {"cpu": 4000, "pods": 20}
    assert cluster.admit(invented[0], now=0) is None, "the scheduler asks only where somebody serves it"


GPU = "example.com/gpu"


@pytest.mark.parametrize(
    ("case", "most", "kept", "expected"),
    [
        ("nothing names it", {}, {}, None),
        ("capability has enough", {GPU: 3}, {}, None),
        ("capability has too little", {GPU: 2}, {}, f"Queue capability exceeded: {GPU}"),
        ("a capability of none", {GPU: 0}, {}, f"Queue capability exceeded: {GPU}"),
        ("it is guaranteed", {}, {GPU: 1}, None),
    ],
)
def test_for_what_no_node_lists_only_the_number_in_a_capability_holds(case, most, kept, expected):
    running = pod("run", "a", request={"cpu": 1, GPU: 2}, node="n1")
    asking = pod("asking", "b", request={"cpu": 1, GPU: 1})
    cluster = world(queue("q", most=most, kept=kept), queue("other"), "a:q", "b:q", "c:other", running, cpu=8)
    refused = cluster.check(asking)
    assert (refused and refused.message) == expected, case
    ledger = cluster.ledger.queues
    assert not ledger.over_deserved
    assert share_of_queue(cluster, "q") <= 1
    numbers = queue_rules.numbers(cluster.ledger, asking)[GPU]
    assert numbers == {"request": 1, "allocated": 2} | ({"realCapability": most[GPU]} if most else {})
    if refused:
        (hint,) = admission.hints(cluster.ledger, asking, refused, asking.request)
        assert hint.path == f"spec.capability.{GPU}"
    cluster.upsert_node(node("n2", size={GPU: 2}))
    divided(cluster)
    assert cluster.check(asking) is not None, "now there are two of it, and both are used"


def test_who_waits_for_what_no_node_lists_claims_the_rest_of_what_it_asks_for():
    waiting = pods("a", 8, request={"cpu": 1, GPU: 1})
    cluster = world(queue("q"), queue("r"), "a:q", "b:r", *waiting, *pods("b", 6, node="n1"), cpu=8)
    ledger = cluster.ledger.queues
    assert ledger.accounts["q"].claim == {"cpu": 4000, "pods": 8}
    assert cluster.check(pod("more", "b")).rule == queue_rules.DESERVED.name
    cluster.upsert_node(node("n2", size={"cpu": 0, GPU: 1}, unschedulable=True))
    divided(cluster)
    assert ledger.accounts["q"].claim == {}, "a cordoned node lists it: there is none for a new pod"
    cluster.delete_node("n2")
    divided(cluster)
    assert ledger.accounts["q"].claim == {"cpu": 4000, "pods": 8}


def with_gpus(*asked):
    """A cluster of eight cores and four GPUs, in nodes of their own, and its only queue."""
    sizes = [node("cpus", size={"cpu": 8, "pods": 50}), node("gpus", size={"gpu": 4})]
    cluster = world(*sizes, queue("q"), "a:q", "b:q", *asked)
    return cluster, cluster.ledger.queues.accounts["q"]


def test_of_a_resource_that_went_with_its_last_node_nobody_is_entitled_to_anything():
    cluster, account = with_gpus(*pods("a", 4, request={"cpu": 1, "gpu": 1}))
    assert account.tenants["a"].entitled == account.tenant_claims == {"cpu": 4000, "gpu": 4, "pods": 4}
    cluster.delete_node("gpus")
    divided(cluster)
    assert (account.tenants["a"].entitled, account.tenant_claims) == ({"cpu": 4000, "pods": 4}, {})
    cluster.upsert_pod(pod("one-more", "b"), now=0)
    divided(cluster)
    assert account.rows.resources == ["cpu", "pods"], "and then it is forgotten"


def test_of_a_resource_that_is_gone_nobody_has_a_share():
    cluster, _ = with_gpus(*pods("a", 4, request={"cpu": 2, "gpu": 1}), *pods("b", 8))
    cluster.delete_node("gpus")
    divided(cluster)
    assert [entitled(cluster, "q", name) for name in ("a", "b")] == [4, 4]


def test_a_resource_that_comes_as_another_goes_does_not_take_its_place():
    cluster, account = with_gpus(*pods("b", 1))
    cluster.delete_node("gpus")
    cluster.upsert_node(node("fpgas", size={"fpga": 4}))
    cluster.upsert_pod(pod("b", "b", request={"cpu": 1, "fpga": 1}), now=0)
    divided(cluster)
    assert account.tenants["b"].entitled == {"cpu": 2000, "fpga": 1, "pods": 2}
