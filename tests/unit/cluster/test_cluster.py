"""The cluster: what is seen and what is decided, in the order in which it can happen."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.objects.constraints import Constraints, Taint
from policy.objects.pod import Pod, Unschedulable
from policy.objects.reservation import PodName, Reservation
from policy.quota.elastic_quota import BORROWING, MAX
from tests.unit.given import LARGE, amounts, cluster_of, pod, quota, refused_for, unreadable

ONE_CORE = {"cpu": 1000, "pods": 1}
OTHER_REASON = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")


def used(cluster: Cluster, namespace: str = "a") -> dict[str, int]:
    return cluster.ledger.account(namespace).used


def kinds(cluster: Cluster) -> dict[str, str]:
    return {uid: entry.kind for uid, entry in cluster.ledger.entries.items()}


def text(cluster: Cluster, asking: Pod, now: float = 0) -> str | None:
    refused = cluster.admit(asking, now)
    return refused and refused.message


# Used is what is assigned and what is granted


def test_a_pod_on_a_node_counts_even_if_its_grant_is_withdrawn_too_late():
    cluster = cluster_of(quota(), pod("p", node="n1"))
    cluster.withdraw("p")
    assert used(cluster) == ONE_CORE


@pytest.mark.parametrize(
    ("state", "counts"),
    [
        ({}, False),
        ({"node": "n"}, True),
        ({"node": "n", "terminating": True}, True),
        ({"node": "n", "finished": True}, False),
        ({"nominated_node": "n"}, False),
    ],
)
def test_a_pod_on_a_node_is_used_until_it_has_finished_or_is_gone(state, counts):
    cluster = cluster_of(pod("p", **state))
    assert used(cluster) == (ONE_CORE if counts else {})
    cluster.delete_pod("p")
    assert used(cluster) == {}


def test_an_event_seen_twice_changes_nothing():
    cluster = cluster_of(pod("p", node="n"), pod("p", node="n"))
    assert used(cluster) == ONE_CORE
    cluster.delete_pod("p")
    cluster.delete_pod("p")
    assert used(cluster) == {}


def test_an_admitted_pod_is_used_at_once_and_moves_over_when_it_is_on_a_node():
    cluster = cluster_of(quota(most={"cpu": 1}), pod("p"), pod("q"))
    assert text(cluster, pod("p")) is None
    assert (kinds(cluster), used(cluster)) == ({"p": "granted"}, ONE_CORE)
    assert text(cluster, pod("q")) == "ElasticQuota max exceeded: cpu"
    cluster.upsert_pod(pod("p", node="n"), now=1)
    assert (kinds(cluster), used(cluster), len(cluster.grants)) == ({"p": "assigned"}, ONE_CORE, 0)


def test_a_new_pod_of_the_same_name_takes_the_place_of_the_old():
    cluster = cluster_of(pod("p", name="job-0", node="n"), pod("q", name="job-0"))
    assert (used(cluster), list(cluster.pods)) == ({}, ["q"])
    cluster.delete_pod("p")
    assert cluster.pod("a", "job-0").uid == "q"
    cluster.delete_pod("q")
    assert cluster.pod("a", "job-0") is None


# Grants


def test_a_pod_that_has_another_name_now_is_another_one():
    seen = replace(pod("p", node="n"), namespace="b")
    cluster = cluster_of(pod("p", node="n"), seen)
    assert (used(cluster), used(cluster, "b")) == ({}, ONE_CORE)
    assert (cluster.pod("a", "p"), cluster.pod("b", "p")) == (None, seen)
    cluster.upsert_pod(replace(seen, name="q"), now=0)
    assert cluster.pod("b", "p") is None
    cluster.delete_pod("p")
    assert not list(cluster.table.pods_on("n"))


@pytest.mark.parametrize(
    ("case", "seen", "kept"),
    [
        ("an unrelated change", {"priority": 5, "version": 8}, True),
        ("another condition", {"unschedulable": OTHER_REASON, "version": 8}, False),
        ("the same condition", {"unschedulable": refused_for(MAX), "version": 8}, True),
        ("another condition, but from before", {"unschedulable": OTHER_REASON, "version": 6}, True),
        ("the condition is gone", {"unschedulable": None, "version": 8}, True),
        ("finished", {"finished": True, "version": 8}, False),
    ],
)
def test_a_grant_is_taken_back_when_the_pod_shows_that_it_was_in_vain(case, seen, kept):
    asked = pod("p", unschedulable=refused_for(MAX), version=7)
    cluster = cluster_of(quota(), asked)
    cluster.admit(asked, now=0)
    cluster.upsert_pod(replace(asked, **seen), now=1)
    assert ("p" in cluster.grants, used(cluster)) == ((True, ONE_CORE) if kept else (False, {})), case


def test_a_grant_given_on_an_older_picture_outlives_what_was_seen_before_it():
    """The watch may be ahead of the scheduler: then an unrelated update repeats what was already known."""
    known = pod("p", unschedulable=refused_for(MAX), version=5)
    cluster = cluster_of(quota(), known)
    cluster.admit(pod("p", unschedulable=OTHER_REASON, version=4), now=0)
    cluster.upsert_pod(replace(known, version=6), now=1)
    assert "p" in cluster.grants


def test_the_condition_of_an_earlier_refusal_does_not_take_a_grant_back():
    """It may arrive after the next attempt was granted; a later refusal would have taken the grant back itself."""
    asked = pod("p", version=4)
    cluster = cluster_of(quota(most={"cpu": 0}), asked)
    assert text(cluster, asked) == "ElasticQuota max exceeded: cpu"
    cluster.upsert_quota(quota(most={"cpu": 1}))
    assert text(cluster, asked) is None
    cluster.upsert_pod(replace(asked, unschedulable=refused_for(MAX), version=5), now=1)
    assert "p" in cluster.grants


def test_a_later_refusal_takes_the_grant_back():
    cluster = cluster_of(quota(most={"cpu": 1}), pod("p"))
    cluster.admit(pod("p"), now=0)
    cluster.upsert_quota(quota(most={"cpu": 0}))
    generation = cluster.generations.admission
    assert text(cluster, pod("p")) == "ElasticQuota max exceeded: cpu"
    assert (used(cluster), len(cluster.grants)) == ({}, 0)
    assert cluster.generations.admission > generation


def test_a_grant_ends_by_itself_and_the_pod_waits_for_its_nominated_node_again():
    cluster = cluster_of(LARGE, quota(most={"cpu": 1}), pod("p", nominated_node="n"), pod("q"))
    cluster.admit(pod("p"), now=0)
    cluster.admit(pod("q"), now=0)
    cluster.tick(29)
    assert kinds(cluster) == {"p": "granted"}
    cluster.tick(30)
    assert kinds(cluster) == {"p": "nominated"}


def test_a_grant_of_a_pod_that_was_never_seen_leaves_nothing_behind():
    cluster = cluster_of()
    cluster.admit(pod("p"), now=0)
    cluster.tick(30)
    assert (kinds(cluster), len(cluster.grants)) == ({}, 0)


def test_a_granted_pod_that_is_deleted_frees_what_it_held():
    cluster = cluster_of(pod("p"))
    cluster.admit(pod("p"), now=0)
    cluster.delete_pod("p")
    assert (kinds(cluster), len(cluster.grants)) == ({}, 0)


def test_a_granted_pod_counts_what_it_requests_now():
    cluster = cluster_of(pod("p", version=1))
    cluster.admit(pod("p", version=1), now=0)
    cluster.upsert_pod(pod("p", request={"cpu": 2}, version=2), now=0)
    assert used(cluster)["cpu"] == 2000
    cluster.upsert_pod(pod("p", request={"cpu": 3}, version=1), now=0)
    assert used(cluster)["cpu"] == 2000


def test_a_finished_pod_never_waits_for_a_node_again():
    cluster = cluster_of(LARGE, pod("p", nominated_node="n"), pod("p", nominated_node="n", finished=True))
    cluster.admit(pod("p", nominated_node="n"), now=0)
    cluster.tick(60)
    assert kinds(cluster) == {}


# Nominated pods


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ({"nominated_node": "n"}, True),
        ({"nominated_node": "n", "terminating": True}, False),
        ({"nominated_node": "n", "gated": True}, False),
        ({"nominated_node": "n", "request": {"cpu": 101}}, False),
        ({"nominated_node": "n", "constraints": Constraints(node_selector=(("zone", "a"),))}, False),
        ({"nominated_node": "gone"}, False),
        ({"nominated_node": "n", "node": "n", "finished": True}, False),
        ({}, False),
    ],
)
def test_a_pending_pod_waits_for_its_nominated_node(state, waits):
    assert kinds(cluster_of(LARGE, pod("p", **state))) == ({"p": "nominated"} if waits else {})


LOST = {
    "gone": lambda cluster: cluster.delete_node("n"),
    "cordoned": lambda cluster: cluster.upsert_node(replace(LARGE, unschedulable=True)),
    "tainted": lambda cluster: cluster.upsert_node(replace(LARGE, taints=(Taint("broken", "", "NoSchedule"),))),
    "not ready": lambda cluster: cluster.upsert_node(replace(LARGE, ready=False)),
}


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("held", [False, True], ids=["nominated", "held"])
def test_a_pod_nominated_to_a_lost_node_counts_for_nothing_until_it_is_back(lost, held):
    cluster = cluster_of(LARGE, quota(most={"cpu": 1}), pod("p", nominated_node="" if held else "n", priority=1))
    if held:
        cluster.upsert_reservation(Reservation("r", PodName("a", "p", "p"), "n", (), since=0))
    assert text(cluster, pod("q")) == "ElasticQuota max exceeded: cpu"
    generation = cluster.generations.admission
    LOST[lost](cluster)
    assert cluster.generations.admission > generation
    assert cluster.table.placed("p") is None
    assert text(cluster, pod("q")) is None
    cluster.withdraw("q")
    cluster.upsert_node(LARGE)
    assert cluster.table.placed("p").site.name == "n"
    assert text(cluster, pod("q")) == "ElasticQuota max exceeded: cpu"


def test_an_erased_nomination_frees_what_was_kept():
    cluster = cluster_of(LARGE, quota(most={"cpu": 1}), pod("p", nominated_node="n"))
    assert text(cluster, pod("q")) == "ElasticQuota max exceeded: cpu"
    cluster.upsert_pod(pod("p"), now=0)
    assert text(cluster, pod("q")) is None


# Quotas


def test_a_deleted_quota_frees_its_namespace_at_once():
    cluster = cluster_of(quota(most={"cpu": 1}), pod("p", node="n"))
    cluster.delete_quota("a", "unknown")
    assert text(cluster, pod("q")) == "ElasticQuota max exceeded: cpu"
    cluster.delete_quota("a", "quota")
    assert text(cluster, pod("q")) is None
    cluster.delete_quota("a", "quota")
    assert cluster.ledger.pool.used == {}


def test_a_new_quota_counts_what_is_there_already_even_past_max():
    cluster = cluster_of(pod("p", node="n", request={"cpu": 5}), quota(most={"cpu": 1}, least={"cpu": 1}))
    assert used(cluster) == cluster.ledger.pool.used == {"cpu": 5000, "pods": 1}
    assert text(cluster, pod("q")) == "ElasticQuota max exceeded: cpu"
    assert text(cluster, pod("r", request={"gpu": 1})) is None


def test_of_several_quotas_only_the_oldest_counts():
    cluster = cluster_of(
        quota(name="young", created=2, least={"cpu": 9}), quota(name="old", created=1, least={"cpu": 1})
    )
    assert cluster.ledger.pool.min == amounts(cpu=1)
    cluster.delete_quota("a", "old")
    assert cluster.ledger.pool.min == amounts(cpu=9)


def test_the_last_good_spec_stays_in_force():
    cluster = cluster_of(quota(most={"cpu": 1}), unreadable())
    assert text(cluster, pod("p", request={"cpu": 2})) == "ElasticQuota max exceeded: cpu"
    assert cluster.quotas["a"]["quota"].errors
    cluster.upsert_quota(unreadable())
    assert text(cluster, pod("p", request={"cpu": 1})) is None
    cluster.upsert_quota(quota(most={"cpu": 2}))
    assert not cluster.quotas["a"]["quota"].errors


def test_a_quota_that_never_was_good_refuses_until_it_is():
    cluster = cluster_of(unreadable())
    assert text(cluster, pod("p")) == "ElasticQuota is invalid"
    cluster.upsert_quota(quota())
    assert text(cluster, pod("p")) is None
    cluster.delete_quota("a", "quota")
    cluster.upsert_quota(unreadable())
    assert text(cluster, pod("q")) == "ElasticQuota is invalid"


# Who may be worth waking


@pytest.mark.parametrize(
    ("state", "refused"),
    [
        ({"unschedulable": refused_for(MAX)}, True),
        ({"unschedulable": refused_for(BORROWING)}, True),
        ({"unschedulable": OTHER_REASON}, False),
        ({}, False),
        ({"unschedulable": refused_for(MAX), "node": "n"}, False),
        ({"unschedulable": refused_for(MAX), "finished": True}, False),
    ],
)
def test_refused_are_the_pending_pods_that_our_rules_refused(state, refused):
    cluster = cluster_of(pod("p", unschedulable=refused_for(MAX)), pod("p", **state))
    assert ("p" in cluster.attempts.refused) is refused
    cluster.delete_pod("p")
    assert cluster.attempts.refused == {}


@pytest.mark.parametrize(
    ("case", "change"),
    [
        ("a pod is gone", lambda cluster: cluster.delete_pod("p")),
        ("a pod has finished", lambda cluster: cluster.upsert_pod(pod("p", node="n", finished=True), now=1)),
        ("a pod shrinks", lambda cluster: cluster.upsert_pod(pod("p", node="n", request={"gpu": 1}), now=1)),
        ("a pod may be evicted now", lambda cluster: cluster.upsert_pod(pod("p", node="n"), now=1)),
        ("a granted pod is gone", lambda cluster: cluster.delete_pod("q")),
        ("a granted pod shrinks", lambda cluster: cluster.upsert_pod(pod("q", request={"gpu": 1}), now=1)),
        ("a grant ends", lambda cluster: cluster.tick(30)),
        ("a nomination is erased", lambda cluster: cluster.upsert_pod(pod("r"), now=1)),
        ("a nominated pod shrinks", lambda c: c.upsert_pod(pod("r", nominated_node="n", request={"gpu": 1}), now=1)),
        ("a quota is raised", lambda cluster: cluster.upsert_quota(quota(most={"cpu": 9}))),
        ("a quota is lifted", lambda cluster: cluster.delete_quota("a", "quota")),
    ],
)
def test_a_change_that_may_let_a_pod_in_is_counted(case, change):
    pinned = pod("p", node="n", preemptible=False)
    cluster = cluster_of(
        LARGE, quota(most={"cpu": 3}, least={"cpu": 9}), pinned, pod("q"), pod("r", nominated_node="n")
    )
    assert text(cluster, pod("q")) is None
    generation = cluster.generations.admission
    change(cluster)
    assert cluster.generations.admission > generation, case


def test_a_change_that_lets_nobody_in_is_not_counted():
    cluster = cluster_of(quota(most={"cpu": 9}), pod("p"), pod("q", node="n"))
    generation = cluster.generations.admission
    cluster.upsert_pod(pod("r"), now=0)
    cluster.admit(pod("p"), now=0)
    cluster.admit(pod("p"), now=0)
    cluster.upsert_pod(pod("p", node="n"), now=1)
    cluster.upsert_pod(pod("q", node="n", request={"cpu": 2}), now=1)
    cluster.delete_pod("r")
    cluster.tick(2)
    assert cluster.generations.admission == generation


def test_a_quota_over_its_min_keeps_no_room_for_nominated_pods_which_counts():
    waiting = pod("p", "a", request={"cpu": 2}, unschedulable=refused_for(BORROWING))
    cluster = cluster_of(
        LARGE,
        quota("a"),
        quota("b", least={"cpu": 4, "memory": 1}),
        quota("c", least={"memory": 5}),
        pod("q", "b", nominated_node="n", request={"cpu": 3}),
        waiting,
    )
    assert cluster.check(waiting) is not None
    generation = cluster.generations.admission
    assert text(cluster, pod("r", "b", request={"memory": 2})) is None
    assert cluster.check(waiting) is None
    assert cluster.generations.admission > generation


def test_a_quota_that_is_seen_again_as_it_was_changes_nothing():
    cluster = cluster_of(quota("a", most={"cpu": 1}))
    before = cluster.generations.of_placing
    cluster.upsert_quota(quota("a", most={"cpu": 1}))  # its status was written
    assert cluster.generations.of_placing == before
    cluster.upsert_quota(quota("a", most={"cpu": 2}))
    assert cluster.generations.admission > before[0]
    assert cluster.generations.plans > before[1]
