"""Whatever happens, gates are opened in the fair order, for no more than fits, and nobody who waits is forgotten."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from policy.cluster.cluster import Cluster
from policy.cluster.gates import Ungated
from policy.nodes.tolerations import One
from policy.objects.membership import Namespace
from policy.objects.pod import Pod, turn
from policy.queueing.ungating import UngatingRound, share_of_namespace, share_of_queue
from tests.unit.given import pod, quota
from tests.unit.given_gates import LOOKAHEAD, NO_ROOM, gated
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, queue

NAMESPACES = {"a": "q", "b": "q", "c": "r", "d": ""}
numbers = st.integers(0, 10_000)
weights = st.fixed_dictionaries(dict.fromkeys(NAMESPACES, st.integers(1, 4)))
limits = st.fixed_dictionaries(dict.fromkeys(NAMESPACES, st.none() | st.integers(0, 9)))
steps = st.lists(st.tuples(st.sampled_from(("create", "delete", "bind", "stay", "fail", "wait", "ungate")), numbers))


def world(weight: dict[str, int], most: dict[str, int | None], cpu: int) -> Cluster:
    cluster = Cluster(settle_time=0)
    cluster.upsert_node(node(size={"cpu": cpu, "pods": 500}))
    cluster.upsert_queue(queue("q"))
    cluster.upsert_queue(queue("r", 2))
    for name, its_queue in NAMESPACES.items():
        cluster.upsert_namespace(Namespace(name, its_queue, gated=True))
        cluster.upsert_weight(name, "weight", weight[name])
        if most[name] is not None:
            cluster.upsert_quota(quota(name, most={"cpu": most[name]}))
    return cluster


def born(number: int) -> Pod:
    namespace = sorted(NAMESPACES)[number % 4]
    [one] = gated(pod(f"{namespace}{number}", namespace, priority=number % 3, created=float(number % 7)))
    return one


@given(weights, limits, st.integers(1, 30), st.sets(numbers, max_size=40))
@example(  # what is left of a queue's part is less than a pod, so that claims fall in the middle
    {"a": 3, "b": 2, "c": 3, "d": 3},
    {"a": None, "b": None, "c": None, "d": 1},
    2,
    {468, 574, 659, 738, 787, 1012, 1942, 2584, 4303, 8322},
)
def test_the_order_is_that_of_somebody_who_looks_at_all_who_wait_after_each_one(weight, most, cpu, some):
    ours, naive = (world(weight, most, cpu) for _ in range(2))
    for cluster in (ours, naive):
        for number in sorted(some):
            cluster.upsert_pod(born(number), now=0)
        divided(cluster)
    ungated = [each.uid for pods in UngatingRound(ours, LOOKAHEAD).run(0) for each in pods]
    by_hand = []
    while (chosen := next_by_hand(naive, weight)) is not None:
        where = naive.queue_of(chosen), chosen.namespace
        beyond = not has_room(naive, where[0], chosen)
        naive.gate_admission.ungate(chosen, Ungated(where, chosen.request, beyond), 0)
        by_hand.append(chosen.uid)
    assert ungated == by_hand


def next_by_hand(cluster: Cluster, weight: dict[str, int]) -> Pod | None:
    def key(each: Pod):
        name = cluster.queue_of(each)
        share = share_of_namespace(cluster, name, each.namespace) / weight[each.namespace]
        return share_of_queue(cluster, name), name, share, -weight[each.namespace], each.namespace, turn(each)

    def may_be_ungated(each: Pod) -> bool:
        name = cluster.queue_of(each)
        gates = cluster.gates
        nobody = not (gates.some_beyond((name, each.namespace)) or gates.on_their_way(name).get("cpu"))
        return cluster.check(each) is None and (has_room(cluster, name, each) or nobody)

    waiting = [each for each in cluster.pods.values() if each.uid in cluster.gates and may_be_ungated(each)]
    return min(waiting, key=key, default=None)


def has_room(cluster: Cluster, name: str, each: Pod) -> bool:
    free, opened = cluster.table.room(One(each.constraints.tolerations)), cluster.gates.on_their_way(name)
    return all(opened.get(r, 0) + asked <= LOOKAHEAD * free.get(r, 0) for r, asked in each.request.items())


@given(weights, limits, st.integers(1, 30), steps)
def test_no_more_is_admitted_than_fits_and_nobody_who_waits_is_forgotten(weight, most, cpu, events):
    cluster, now = world(weight, most, cpu), 0.0
    for what, number in events:
        now = happen(cluster, what, number, now)
        divided(cluster)
        for _ in UngatingRound(cluster, LOOKAHEAD).run(now):
            pass
        check(cluster, most)
    for name in NAMESPACES:
        cluster.delete_quota(name, "quota")
    cluster.upsert_node(node("large", size={"cpu": 10_000, "pods": 10_000}))
    for uid in [*cluster.gates.ungating]:
        cluster.gate_admission.regate(uid, now)
    cluster.tick(now)
    divided(cluster)
    for _ in range(3):
        for _ in UngatingRound(cluster, LOOKAHEAD).run(now):
            pass
    assert not len(cluster.gates)


def happen(cluster: Cluster, what: str, number: int, now: float) -> float:
    """Something happens, to the pods that it can happen to; what time it is then."""
    if what == "create":
        cluster.upsert_pod(born(number), now)
    elif what == "wait":
        cluster.tick(now + number % 40)
        return now + number % 40
    elif what == "ungate":
        name = sorted(NAMESPACES)[number % 4]
        gates = not cluster.membership.namespaces[name].gated
        cluster.upsert_namespace(Namespace(name, NAMESPACES[name], gated=gates))
    elif candidates := sorted(cluster.pods if what == "delete" else cluster.gates.ungated):
        uid = candidates[number % len(candidates)]
        one = cluster.pods[uid]
        if what == "delete":
            cluster.delete_pod(uid)
        elif what == "fail":
            cluster.gate_admission.regate(uid, now)
        elif what == "bind":
            cluster.upsert_pod(replace(one, gate=-1, node="n1", unschedulable=None), now)
        else:
            cluster.upsert_pod(replace(one, gate=-1, unschedulable=NO_ROOM), now)
    return now


def check(cluster: Cluster, most: dict[str, int | None]) -> None:
    for name, limit in most.items():
        if limit is not None:
            assert cluster.ledger.account(name).used.get("cpu", 0) <= limit * 1000
    there = {uid for uid, each in cluster.pods.items() if each.at_gate and uid not in cluster.gates.ungating}
    lines = {where: list(line) for where, line in cluster.gates.lines.items()}
    assert {uid for line in lines.values() for job in line for uid in job.members} == there
    assert set(cluster.gates.ungated) <= set(cluster.grants._grants)
    for (name, namespace), line in lines.items():
        assert line == sorted(line, key=lambda job: job.turn)
        assert [cluster.gates.lines[name, namespace].position(job.name) for job in line] == [*range(1, len(line) + 1)]
    on_their_way = [out.request for out in cluster.gates.ungated.values() if not out.beyond and not out.placed]
    assert sum(request["cpu"] for request in on_their_way) == sum(
        cluster.gates.on_their_way(name).get("cpu", 0) for name in ("q", "r", "")
    )
