"""Whatever waits, and wherever: nodes are reserved for whole jobs, within their size, and nobody else gets in."""

from collections import defaultdict
from dataclasses import replace
from math import ceil

from hypothesis import given

from policy.cluster.cluster import Cluster
from policy.cluster.reserved_nodes import is_behind
from policy.nodes import fit
from policy.objects.group import Group
from policy.objects.job import job_name
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.objects.resources import add, total
from policy.quota.admission import Rules
from policy.reserve.node_reservation import decide_steps
from policy.reserve.starving import Terms
from tests.properties.by_chance import node_of, pod_of
from tests.properties.world import seeds
from tests.unit.given_jobs import NO_ROOM, NOW, decide, in_turn, reserve_all, seen
from tests.worlds.walk import Pick, by_dice

NAMES = ("n1", "n2", "n3", "n4", "n5")
JOBS = ("podgroups.scheduling.x-k8s.io/g1", "podgroups.scheduling.x-k8s.io/g2", "")


def some_terms(pick: Pick) -> Terms:
    return Terms(starving_after=100, max_nodes_percent=pick((100, 50, 20)))


def some_objects(pick: Pick) -> list[Node | Group | Pod]:
    """Nodes, groups, pods that run, and pods that wait: old and young, in groups and alone."""
    nodes = [
        replace(node_of(name, pick(range(999))), name=name, ready=pick((True, True, True, False))) for name in NAMES
    ]
    groups = [Group(space, name, pick((1, 2, 3)), created=NOW - 500) for space in "ab" for name in JOBS if name]
    running = [
        replace(pod_of(f"r{number}", pick(range(999))), node=pick(NAMES), owner=pick(("", "", "", "DaemonSet")))
        for number in range(pick(range(8)))
    ]
    waiting = [
        replace(
            pod_of(f"w{number}", pick(range(999))),
            terminating=False,
            group=pick(JOBS),
            created=NOW - pick((500, 400, 50)),
            unschedulable=pick((NO_ROOM, NO_ROOM, None)),
            owner=pick(("", "", "", "DaemonSet")),
        )
        for number in range(pick(range(12)))
    ]
    return [*nodes, *groups, *running, *waiting]


def shuffled(pick: Pick, objects: list) -> list:
    left, result = list(objects), []
    while left:
        result.append(left.pop(pick(range(len(left)))))
    return result


def change(pick: Pick, cluster: Cluster) -> None:
    """Something happens that may or may not matter to what is reserved."""
    pods = list(cluster.pods.values())
    match pick(range(5)):
        case 0:
            cluster.delete_node(pick(NAMES))
        case 1 if pods:
            cluster.delete_pod(pick(pods).uid)
        case 2 if pods:
            cluster.upsert_pod(replace(pick(pods), node=pick(NAMES)), now=0)
        case 3:
            cluster.upsert_node(node_of(pick(NAMES), pick(range(999))))
        case _:
            group = pick(list(cluster.membership.groups.values()))
            cluster.upsert_group(replace(group, minimum=pick((1, 2, 3))))


def check(cluster: Cluster, terms: Terms) -> None:
    by_node, jobs_of, by_job = defaultdict(dict), defaultdict(set), defaultdict(list)
    for each in cluster.reservations.reserved:
        pod, node = cluster.pods[each.pod.uid], cluster.table.node(each.node)
        assert node is not None
        assert fit.fits_if_empty_on(cluster.table, pod, each.node)
        add(by_node[each.node], pod.request)
        jobs_of[each.node].add((pod.namespace, each.job))
        by_job[pod.namespace, each.job].append(pod)
    for name, together in by_node.items():
        there = cluster.table.node(name).allocatable
        assert all(amount <= there.get(resource, 0) for resource, amount in together.items())
        assert len(jobs_of[name]) == 1 or not cluster.rules.whole_nodes
    for key, members in by_job.items():
        job = cluster.groups.job(*key)
        assert len(members) == job.minimum - len(job.standing), "all or nothing"
    assert len(by_node) <= ceil(len(cluster.table.names) * terms.max_nodes_percent / 100) or terms is CHANGED
    for pod in cluster.pods.values():
        passing = by_node.keys() - cluster.reservations.nodes_reserved_from(pod)
        exempt = pod.owner == "DaemonSet" or pod.request.keys() == {"pods"}
        own = {node for node, jobs in jobs_of.items() if any(pod in by_job[job] for job in jobs)}
        mates = {node for node, jobs in jobs_of.items() if (pod.namespace, pod.group) in jobs}
        job = (pod.namespace, job_name(cluster.membership.groups, pod))
        beside = {
            node for node in by_node if not cluster.rules.whole_nodes and leaves_what_is_kept(cluster, pod, job, node)
        }
        of_own_alone = {node for node in own | mates if jobs_of[node] == {job}}
        assert passing == (set(by_node) if exempt else of_own_alone | beside)


def leaves_what_is_kept(cluster: Cluster, pod: Pod, job: tuple[str, str], name: str) -> bool:
    """Whether a pod, all others on a node, and what is reserved for other jobs there are no more than the node has."""
    taken = dict(pod.request)
    for other in cluster.pods.values():
        if other.node == name and other.assigned and other.uid != pod.uid:
            add(taken, other.request)
    for each in cluster.reservations.reserved:
        if each.node == name and (each.pod.namespace, each.job) != job and cluster.reservations.is_reserved(each):
            add(taken, cluster.pods[each.pod.uid].request)
    there = cluster.table.node(name).allocatable
    return all(taken[resource] <= there.get(resource, 0) for resource, asked in pod.request.items() if asked)


CHANGED = Terms(starving_after=100, max_nodes_percent=50)
"""What is kept stays so where nodes went away, however many are left."""


@given(seeds)
def test_nodes_are_reserved_for_whole_jobs_within_their_size_and_for_nobody_else(seed):
    pick = by_dice(seed)
    terms, cluster = some_terms(pick), seen(*some_objects(pick))
    cluster.rules = Rules(whole_nodes=pick((True, False)))
    before = dict(cluster.ledger.entries), cluster.table.used.tolist(), set(cluster.table.expected)
    reserve_all(cluster, terms)
    check(cluster, terms)
    assert (cluster.ledger.entries, cluster.table.used.tolist(), set(cluster.table.expected)) == before


@given(seeds)
def test_the_same_is_chosen_in_whatever_order_things_were_seen(seed):
    pick = by_dice(seed)
    terms, objects = some_terms(pick), some_objects(pick)
    chosen = []
    for order in (objects, shuffled(pick, objects)):
        cluster = seen(*order)
        jobs = in_turn(cluster, terms, NOW)
        found = [decide(cluster, job, terms, NOW) for job in jobs]
        chosen.append([(each.job.title, each.reason, [(p.pod.uid, p.node) for p in each.places]) for each in found])
    assert chosen[0] == chosen[1]


@given(seeds)
def test_it_stays_so_whatever_changes_and_nobody_moves_who_need_not(seed):
    pick = by_dice(seed)
    cluster = seen(*some_objects(pick))
    for _ in range(5):
        reserve_all(cluster, CHANGED)
        check(cluster, CHANGED)
        before = {each.pod.uid: each.node for each in cluster.reservations.reserved}
        change(pick, cluster)
        for each in list(cluster.reservations.reserved):
            if cluster.groups.job(each.pod.namespace, each.job) is None:
                cluster.delete_reservation(each.name)
        reserve_all(cluster, CHANGED)
        for each in cluster.reservations.reserved:
            was = before.get(each.pod.uid, each.node)
            node = cluster.table.node(was)
            fit_still = node and node.ready and fit.fits_if_empty_on(cluster.table, cluster.pods[each.pod.uid], was)
            assert each.node == was or not fit_still or _is_full(cluster, was, each.pod.uid)


@given(seeds)
def test_a_decision_survives_changes_between_its_steps_and_leaves_nothing_behind(seed):
    pick = by_dice(seed)
    cluster = seen(*some_objects(pick))
    reserve_all(cluster, CHANGED)
    for job in in_turn(cluster, CHANGED, NOW):
        work, done = decide_steps(cluster, job, CHANGED, NOW), False
        while not done:
            before = as_it_is(cluster)
            done = next(work, "decided") == "decided"
            assert as_it_is(cluster) == before
            change(pick, cluster)
    for each in list(cluster.reservations.reserved):
        if cluster.groups.job(each.pod.namespace, each.job) is None:
            cluster.delete_reservation(each.name)
    reserve_all(cluster, CHANGED)
    check(cluster, CHANGED)


@given(seeds)
def test_who_is_on_the_way_counts_wherever_it_may_come(seed):
    pick = by_dice(seed)
    cluster = seen(*some_objects(pick))
    reserve_all(cluster, CHANGED)
    for pod in list(cluster.pending.values()):
        if pick((True, False)):
            cluster.grant(pod, 0.0)
        if pick((True, False)):
            cluster.table.add(pod, pick(NAMES))
    nodes = cluster.reservations.nodes
    for pod in cluster.pending.values():
        exempt = pod.owner == "DaemonSet" or pod.request.keys() == {"pods"}
        others = {name: for_others(cluster, pod, name) for name in NAMES if not exempt}
        kept = {name: total(map(cluster.reservations.request_of, each)) for name, each in others.items() if each}
        one_by_one = {name for name, need in kept.items() if nodes.without_room_beside(pod, {name: need})}
        assert cluster.reservations.nodes_reserved_from(pod) == one_by_one


def for_others(cluster: Cluster, pod: Pod, name: str) -> list[Reservation]:
    """What is reserved on a node for other jobs than the pod's, but for what was reserved there after it was for it."""
    on, own = cluster.reservations.nodes.on(name), cluster.reservations.reserved.of_pod(pod.uid)
    job = (pod.namespace, job_name(cluster.membership.groups, pod))
    others = [each for each in on.members if (each.pod.namespace, each.job) != job] if on is not None else []
    return [each for each in others if own is None or own.node != name or not is_behind(each, own)]


def as_it_is(cluster: Cluster):
    """What a decision must not leave changed: who stands in the ledger, and who is where."""
    table = cluster.table
    return (
        dict(cluster.ledger.entries),
        table.used.tolist(),
        {uid: each.site.name for uid, each in table.expected.items()},
    )


def _is_full(cluster: Cluster, node: str, uid: str) -> bool:
    """Whether a node is too small by now for all that was reserved there, or pods that stay have come."""
    together = dict(cluster.pods[uid].request)
    for pod in cluster.table.pods_on(node).values():
        if pod.owner == "DaemonSet" or (pod.namespace, pod.group) == (
            cluster.pods[uid].namespace,
            cluster.pods[uid].group,
        ):
            add(together, pod.request)
    for each in cluster.reservations.reserved:
        if each.node == node:
            add(together, cluster.pods[each.pod.uid].request)
    there = cluster.table.node(node).allocatable
    return any(amount > there.get(resource, 0) for resource, amount in together.items())
