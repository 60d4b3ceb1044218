"""The limits of namespaces by what their queues deserve, and who goes for a lowered one."""

from policy.cluster import quota_manager
from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.cluster.quota_manager import Limit
from policy.objects.constraints import Requirement, Selector
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.queue import Queue
from policy.quota.admission import Rules

GI = 2**30


def cluster_of(*queues, namespaces, cpu=12, weights=(), pods=(), limits=()):
    """A cluster with the quota manager on, divided; pods are (name, namespace, cpu, more)."""
    cluster = Cluster(Rules(quota_manager=True), settle_time=0)
    cluster.upsert_node(node(cpu))
    for queue in queues:
        cluster.upsert_queue(queue)
    for name, queue in namespaces.items():
        cluster.upsert_namespace(Namespace(name, queue))
    for namespace, weight in weights:
        cluster.upsert_weight(namespace, "weights", weight)
    for pod in pods:
        cluster.upsert_pod(pod, 0)
    for namespace, limit in limits:
        cluster.upsert_limit(namespace, limit)
    divide(cluster)
    return cluster


def node(cpu, name="n"):
    return Node(name, {"cpu": cpu * 1000, "memory": cpu * GI, "pods": 100, "attachable-volumes-x": 5})


def divide(cluster):
    for _ in cluster.divide_steps():
        pass


def running(name, namespace, cpu=1, **rest):
    request = {"cpu": cpu * 1000, "pods": 1}
    return Pod(f"{namespace}/{name}", namespace, name, request, node="n", **{"started": 1.0} | rest)


def limit(*, ours=True, **hard):
    """Ours and true for cpu, in cores."""
    known = {"requests.memory": hard.get("memory", 0), "pods": hard.get("pods", 100)}
    return Limit("uid", {"requests.cpu": hard["cpu"] * 1000, **known}, ours)


def cpu_limits(cluster, **written):
    decision = quota_manager.decide(cluster, {name: dict(hard) for name, hard in written.items()})
    return {namespace: hard["requests.cpu"] / 1000 for namespace, (hard, _) in decision.limits.items()}


def victims(cluster):
    decision = quota_manager.decide(cluster, {})
    return {namespace: [pod.name for pod in pods] for namespace, pods in decision.victims.items()}


ONE, OTHER = Queue("one", weight=1, uid="1"), Queue("other", weight=2, uid="2")


def test_without_any_pod_limits_follow_weights_so_that_everybody_can_begin():
    cluster = cluster_of(ONE, OTHER, namespaces={"a": "one", "b": "other", "c": "other"})
    assert cpu_limits(cluster) == {"a": 4, "b": 4, "c": 4}


def test_without_the_manager_a_queue_that_asks_for_nothing_deserves_nothing():
    cluster = cluster_of(ONE, namespaces={"a": "one"})
    cluster.rules = Rules()
    divide(cluster)
    assert cluster.ledger.queues.account("one").division.deserved == {}


def test_a_queue_without_namespaces_leaves_its_part_to_others():
    cluster = cluster_of(ONE, OTHER, namespaces={"a": "one"})
    assert cpu_limits(cluster) == {"a": 12}


def test_limits_sum_to_what_the_queue_deserves_by_the_weights_of_namespaces():
    namespaces = {"a": "one", "b": "one", "c": "one"}
    cluster = cluster_of(ONE, namespaces=namespaces, weights=[("a", 4)], cpu=7)
    decision = quota_manager.decide(cluster, {})
    for key, total in (("requests.cpu", 7000), ("requests.memory", 7 * GI), ("pods", 100)):
        assert sum(hard[key] for hard, _ in decision.limits.values()) == total
    assert decision.limits["a"][0]["requests.cpu"] == 4667


def test_a_greedy_namespace_does_not_keep_its_neighbour_out():
    pods = [running(str(number), "a") for number in range(12)]
    cluster = cluster_of(ONE, namespaces={"a": "one", "b": "one"}, pods=pods)
    assert cpu_limits(cluster)["b"] == 6


def test_capability_and_guarantee_bound_limits():
    capped = Queue("one", capability={"cpu": 2000})
    sure = Queue("other", guarantee={"cpu": 9000})
    cluster = cluster_of(capped, sure, Queue("third"), namespaces={"a": "one", "b": "other", "c": "third"})
    assert cpu_limits(cluster) == {"a": 1.5, "b": 9, "c": 1.5}


def test_what_a_queue_may_not_have_is_limited_to_nothing():
    cluster = cluster_of(Queue("one", capability={"cpu": 0}), namespaces={"a": "one"})
    assert cpu_limits(cluster) == {"a": 0}


def test_only_resources_that_a_resource_quota_knows_are_limited():
    [(hard, queues)] = quota_manager.decide(cluster_of(ONE, namespaces={"a": "one"}), {}).limits.values()
    assert set(hard) == {"requests.cpu", "requests.memory", "pods"}
    assert queues == ("one",)


def test_a_namespace_with_pods_in_two_queues_gets_both_parts():
    cluster = cluster_of(ONE, OTHER, namespaces={"a": "", "b": "other"}, pods=[running("p", "a", queue="one")])
    cluster.upsert_pod(running("q", "a", queue="other"), 0)
    divide(cluster)
    decision = quota_manager.decide(cluster, {})
    assert decision.limits["a"][1] == ("one", "other")
    assert cpu_limits(cluster) == {"a": 4 + 4, "b": 4}


def test_the_namespace_of_the_clusters_own_pods_gets_no_limit_and_counts_for_nobody():
    pods = [running("dns", "kube-system", 2)]
    cluster = cluster_of(Queue("default"), namespaces={"a": "default", "kube-system": ""}, pods=pods)
    assert cpu_limits(cluster) == {"a": 10}


# How a limit moves


def test_next_to_nothing_moves_no_limit():
    seen = limit(cpu=12, memory=12 * GI)
    cluster = cluster_of(ONE, namespaces={"a": "one"}, limits=[("a", seen)])
    cluster.upsert_node(Node("n", {"cpu": 12100, "memory": 12 * GI, "pods": 100}))
    divide(cluster)
    assert quota_manager.decide(cluster, {}).limits["a"][0] == seen.hard
    cluster.upsert_node(Node("n", {"cpu": 12200, "memory": 12 * GI, "pods": 100}))
    divide(cluster)
    assert cpu_limits(cluster) == {"a": 12.2}


def test_next_to_nothing_by_hand_is_put_back():
    by_hand = limit(cpu=12, memory=12 * GI)
    cluster = cluster_of(ONE, namespaces={"a": "one"}, limits=[("a", by_hand)])
    written = {**by_hand.hard, "requests.cpu": 11990}
    assert quota_manager.decide(cluster, {"a": written}).limits["a"][0]["requests.cpu"] == 11990


def test_who_is_above_a_lowered_limit_goes_the_least_important_and_the_newest_first():
    pods = [
        running("old", "a", started=1),
        running("new", "a", started=9),
        running("newest", "a", started=10, priority=5),
        running("important", "a", started=10, priority=10),
    ]
    cluster = cluster_of(ONE, namespaces={"a": "one"}, cpu=2, pods=pods, limits=[("a", limit(cpu=4))])
    assert victims(cluster) == {"a": ["new", "old"]}
    assert cpu_limits(cluster) == {"a": 2}


def test_nobody_goes_in_vain():
    pods = [running("small", "a", 1, started=9), running("large", "a", 3, started=1)]
    cluster = cluster_of(ONE, namespaces={"a": "one"}, cpu=1, pods=pods)
    assert victims(cluster) == {"a": ["large"]}


def test_a_limit_is_not_lowered_below_what_those_use_who_may_not_go():
    pods = [running("daemon", "a", 3, owner="DaemonSet"), running("p", "a")]
    cluster = cluster_of(ONE, namespaces={"a": "one"}, cpu=2, pods=pods, limits=[("a", limit(cpu=4))])
    assert victims(cluster) == {"a": ["p"]}
    assert cpu_limits(cluster) == {"a": 3}


def test_a_disruption_budget_is_heeded():
    pods = [running(name, "a", labels={"app": "web"}) for name in "pqr"]
    cluster = cluster_of(ONE, namespaces={"a": "one"}, cpu=1, pods=pods)
    selector = Selector((Requirement("app", "In", ("web",)),))
    cluster.upsert_budget(Budget("a", "budget", selector, allowed=1))
    assert len(victims(cluster)["a"]) == 1
    assert cpu_limits(cluster) == {"a": 2}


def test_who_is_on_the_way_out_is_not_counted_and_not_evicted_again():
    pods = [running("going", "a", terminating=True), running("p", "a")]
    cluster = cluster_of(ONE, namespaces={"a": "one"}, cpu=1, pods=pods)
    assert victims(cluster) == {}
    assert cpu_limits(cluster) == {"a": 1}


def test_what_is_used_beyond_a_limit_is_preempting():
    pods = [running(name, "a") for name in "pqr"]
    cluster = cluster_of(ONE, namespaces={"a": "one"}, pods=pods, limits=[("a", limit(cpu=2))])
    assert quota_manager.preempting(cluster, "one") == {"cpu": 1000}
    cluster.delete_pod("a/p")
    assert quota_manager.preempting(cluster, "one") == {}


def test_a_queue_keeps_what_it_deserves_also_for_pods_that_cannot_be_created_yet():
    pods = [Pod("a/waits", "a", "waits", {"cpu": 5000, "pods": 1})]
    cluster = cluster_of(ONE, OTHER, namespaces={"a": "one", "b": "other"}, pods=pods)
    refused = cluster.check(cluster.pods["a/waits"])
    assert refused.message == "Queue deserved exceeded: cpu"


# Whose it is


def test_an_object_of_the_name_that_is_not_ours_is_left_alone():
    pods = [running(name, "a") for name in "pqr"]
    theirs = limit(ours=False, cpu=1)
    cluster = cluster_of(ONE, namespaces={"a": "one"}, cpu=2, pods=pods, limits=[("a", theirs)])
    decision = quota_manager.decide(cluster, {})
    assert (decision.limits, decision.victims, decision.removals, decision.taken) == ({}, {}, [], ["a"])
    assert quota_manager.leftovers(cluster) == []


def test_what_is_nobodys_any_more_is_removed():
    cluster = cluster_of(ONE, namespaces={"a": "one", "b": "gone"}, limits=[("b", limit(cpu=1))])
    assert quota_manager.decide(cluster, {}).removals == ["b"]
    assert quota_manager.leftovers(cluster) == ["b"]


def test_a_queue_whose_part_is_not_computed_yet_is_left_as_it_is():
    cluster = cluster_of(ONE, namespaces={"a": "one"}, limits=[("b", limit(cpu=1))], pods=[running("p", "b")])
    cluster.upsert_namespace(Namespace("b", "new"))
    cluster.upsert_queue(Queue("new"))
    decision = quota_manager.decide(cluster, {})
    assert set(decision.limits) == {"a"}
    assert decision.removals == []
    assert decision.victims == {}
