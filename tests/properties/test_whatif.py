"""What is tried on copies: a copy stands as the cluster does, a manifest says what the object did, a remedy helps."""

from dataclasses import fields, replace

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.store.budgets import BUDGETS, budget_of
from app.store.elastic_quotas import ELASTIC_QUOTAS, elastic_quota_of
from app.store.namespaces import NAMESPACES, namespace_of
from app.store.nodes import NODES, node_of
from app.store.pod_groups import NATIVE_GROUPS, NATIVE_POD_GROUPS, VOLCANO_GROUPS, group_of
from app.store.pods import PODS, pod_of
from app.store.queues import QUEUES, queue_of
from app.whatif import changes
from app.whatif.remedies import RemedySearch
from app.whatif.rendering import (
    budget_manifest,
    group_manifest,
    namespace_manifest,
    node_manifest,
    pod_manifest,
    queue_manifest,
    quota_manifest,
)
from app.whatif.trial import Scene, run_steps
from policy.cluster.budgets import Budget
from policy.objects.constraints import Requirement, Selector
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.objects.queue import ROOT, Queue
from policy.quota.elastic_quota import elastic_quota
from policy.reserve.starving import Terms
from policy.simulate.expected_start import Forecast
from policy.simulate.snapshot import _held_by_parts, copy_steps, snapshot
from policy.stepwise import at_once
from tests.properties import by_chance
from tests.properties.world import a_cluster, limits, seeds
from tests.worlds.anatomy import standing
from tests.worlds.walk import by_dice, scaled

NO_ROOM = Unschedulable("Unschedulable", "0/2 nodes are available: 2 Insufficient cpu.")


def decoded(kind, manifest):
    return kind.decoder.decode(msgspec.json.encode(manifest))


@given(seeds)
def test_a_pod_rendered_as_a_manifest_is_the_same_pod(seed):
    pick = by_dice(seed)
    pod = by_chance.pod_of("u", seed)
    more = pick(
        ({}, {"node": "n1", "started": 3.0}, {"nominated_node": "n2", "unschedulable": NO_ROOM}, {"gated": True})
    )
    group = pick(("", "podgroups.scheduling.volcano.sh/g", "podgroups.scheduling.k8s.io/g"))
    other = pick(({}, {"queue": "q", "preemptible": False}, {"owner": "DaemonSet", "may_preempt": False}))
    other = (
        other
        | pick(({}, {"scheduler": "another"}))
        | pick(({}, {"deadline": 60, "run_time": pick((90, -1)), "min_run_time": pick((30, -1)), "checkpointed": 8.0}))
    )
    done = pick(({}, {"node": "n1", "finished": True, "succeeded": True, "finished_at": 7.0}))
    fields = {name: getattr(pod, name) for name in Pod.__slots__} | more | other | {"group": group, "created": 5.0}
    fields |= done | {"controller": "job" if "owner" in other and group else ""}
    fields |= {"deletion_time": 9.0 if pod.terminating else 0.0}
    made = Pod(**fields | {"request": {resource: amount for resource, amount in pod.request.items() if amount}})
    assert pod_of(decoded(PODS, pod_manifest(made))) == made


def a_quota(pick):
    least = limits(pick)
    most = {r: max(amount, least.get(r, amount)) for r, amount in limits(pick).items()}  # min is in force as written
    quota = elastic_quota(pick("ab"), pick("xy"), pick((0.0, 7.0)), least, most, pick((0, 60, -1)))
    return replace(quota, min_run_time=pick((0, 30, -1)), max_run_time=pick((0, 90, -1)))


def a_queue(pick):
    return Queue(
        pick("qr"),
        weight=pick((1, 5)),
        capability=limits(pick),
        guarantee=limits(pick),
        reclaimable=pick((True, False)),
        priority=pick((0, -3)),
        state=pick(("Open", "Closed")),
        uid=pick(("", "u")),
        parent=pick((ROOT, "p")),
        run_time=pick((0, 60, -1)),
        min_run_time=pick((0, 30, -1)),
        max_run_time=pick((0, 90, -1)),
    )


def a_budget(pick):
    selector = pick((None, Selector((Requirement("app", "In", ("web",)), Requirement("x", "Exists")))))
    disrupted = frozenset(pick(("", "p")))
    return Budget(pick("ab"), pick("xy"), selector, pick((0, 2)), disrupted, never=pick((False, True)))


def a_node(pick):
    node = by_chance.node_of(pick(("n1", "n2")), pick(range(1_000_000)))
    return replace(node, unschedulable=pick((False, True)))


def a_group(pick):
    kind = pick((VOLCANO_GROUPS, NATIVE_GROUPS))
    native, queue = kind == NATIVE_GROUPS, pick(("", "q")) if kind == VOLCANO_GROUPS else ""
    return Group(pick("ab"), f"{kind}/g", pick((1, 3)), queue, pick((0.0, 7.0)), native, pick((0, 60, -1)))


def a_namespace(pick):
    queue, allowed, flags = pick(("", "q")), frozenset(pick(("", "q", "qr"))), (False, True)
    return Namespace(pick("ab"), queue, allowed, gated=pick(flags), queues_jobs=pick(flags))


OTHERS = {
    "node": (a_node, lambda node: node_of(decoded(NODES, node_manifest(node))), {"own"}),
    "quota": (
        a_quota,
        lambda quota: elastic_quota_of(decoded(ELASTIC_QUOTAS, quota_manifest(quota))),
        {"min_over_max", "errors", "readable", "written"},
    ),
    "queue": (
        a_queue,
        lambda queue: queue_of(decoded(QUEUES, queue_manifest(queue))),
        {"notes", "errors", "readable", "written"},
    ),
    "group": (
        a_group,
        lambda group: group_of(decoded(NATIVE_POD_GROUPS, group_manifest(group)), group.name.partition("/")[0]),
        set(),
    ),
    "namespace": (a_namespace, lambda each: namespace_of(decoded(NAMESPACES, namespace_manifest(each))), set()),
    "budget": (a_budget, lambda budget: budget_of(decoded(BUDGETS, budget_manifest(budget))), set()),
}
"""By kind: an object by chance, what is read of its manifest, and the fields that no manifest has."""


@pytest.mark.parametrize("kind", OTHERS)
@given(seed=seeds)
def test_other_objects_rendered_as_manifests_are_the_same_objects(kind, seed):
    make, rendered_and_read, _ = OTHERS[kind]
    made = make(by_dice(seed))
    assert rendered_and_read(made) == made


@pytest.mark.parametrize("kind", OTHERS)
def test_objects_that_are_rendered_differ_in_each_field_of_a_manifest(kind):
    make, _, in_no_manifest = OTHERS[kind]
    some = [make(by_dice(seed)) for seed in range(100)]
    alike = {each.name for each in fields(some[0]) if len({repr(getattr(made, each.name)) for made in some}) == 1}
    assert alike == in_no_manifest


@given(seeds)
def test_a_copy_stands_as_the_cluster_does(seed):
    cluster = a_cluster(by_dice(seed))
    for _ in cluster.divide_steps():  # what nodes have is known from then on
        pass
    copied = at_once(copy_steps(snapshot(cluster, 0.0)))
    assert copied.ledger.entries == cluster.ledger.entries
    assert copied.ledger.pool == cluster.ledger.pool
    assert copied.pods.keys() == cluster.pods.keys()
    assert set(copied.attempts.unschedulable_since) == set(cluster.attempts.unschedulable_since)


@given(seeds)
def test_pods_that_are_copied_together_count_as_they_did_one_by_one(seed):
    cluster = a_world(by_dice(seed))
    copied = at_once(copy_steps(snapshot(cluster, 0.0)))
    assert copied.ledger.accounts == cluster.ledger.accounts
    ours, theirs = (each.ledger.queues for each in (copied, cluster))
    assert (ours.taken, ours.outside, ours.claims) == (theirs.taken, theirs.outside, theirs.claims)
    for name, account in theirs.accounts.items():
        for part in ("taken", "running", "pending", "request", "claim", "division", "tenant_claims"):
            assert getattr(ours.accounts[name], part) == getattr(account, part)
    assert {node: copied.table.pods_on(node) for node in copied.table.rows} == {
        node: cluster.table.pods_on(node) for node in cluster.table.rows
    }


@given(seeds)
def test_a_copy_that_is_discarded_takes_nothing_from_the_cluster(seed):
    cluster = (a_world if seed % 2 else a_cluster)(by_dice(seed))
    at_once(cluster.divide_steps())
    before, scene = standing(cluster), Scene(snapshot(cluster, 0.0), Terms(), 0.0)
    at_once(run_steps(scene, ()))
    [copy] = scene.copies
    at_once(Forecast(at_once(scene.copy_steps()), Terms(), 0.0, 0.0, cluster.ended.estimate).play_steps())
    maps = {id(each) for each in _held_by_parts(cluster)}
    assert not any(id(each) in maps for made in scene.copies for each in _held_by_parts(made))
    at_once(scene.discard_steps())
    assert (copy.pods, copy.ledger.accounts, scene.copies) == ({}, {}, [])
    assert standing(cluster) == before


def a_world(pick):
    """Two or three nodes that are short of room, quotas, at times queues, running pods, and some that wait."""
    from policy.cluster.cluster import Cluster  # noqa: PLC0415

    cluster = Cluster(settle_time=0)
    nodes = [f"n{number}" for number in range(pick((2, 3)))]
    for name in nodes:
        cluster.upsert_node(Node(name, {"cpu": pick((2000, 4000)), "pods": pick((3, 9))}))
    if pick((True, False)):
        for name in "ab":
            cluster.upsert_queue(Queue(name, pick((1, 2)), pick(({}, {"cpu": 3000})), pick(({}, {"cpu": 1000}))))
    for namespace in "abc":
        cluster.upsert_namespace(Namespace(namespace, pick(("a", "b", ""))))
        if pick((True, True, False)):
            least, most = pick((0, 1000, 2000)), pick((1000, 3000, None))
            bound = {} if most is None else {"cpu": most}
            cluster.upsert_quota(elastic_quota(namespace, "quota", 0.0, {"cpu": least}, bound))
    for number in range(9):
        namespace = pick("abc")
        waits = pick((True, False))
        cluster.upsert_pod(
            Pod(
                f"u{number}",
                namespace,
                f"p{number}",
                {"cpu": pick((500, 1000, 2000)), "pods": 1},
                priority=pick((0, 0, 1)),
                node="" if waits else pick(nodes),
                preemptible=pick((True, True, False)),
                created=float(number),
                unschedulable=NO_ROOM if waits else None,
            ),
            now=0.0,
        )
    for _ in cluster.divide_steps():
        pass
    return cluster


@settings(max_examples=scaled(40))
@given(seeds, st.integers(0, 8))
def test_with_a_remedy_the_pod_really_runs(seed, number):
    cluster = a_world(by_dice(seed))
    pod = cluster.pods[f"u{number}"]
    assume(pod.pending)
    scene = Scene(snapshot(cluster, 0.0), Terms(), 1_000_000.0)
    search = RemedySearch(scene, pod)
    at_once(search.run_steps())
    for remedy in search.found:
        made = changes.read(remedy.change.apply, remedy.change.remove)
        assert at_once(run_steps(scene, made)).admits(pod.namespace, pod.name), remedy
