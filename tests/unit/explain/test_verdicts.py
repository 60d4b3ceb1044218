"""What is said of a pod to people: the rule that refuses it or what it waits for, with numbers."""

import pytest

from policy.explain.verdicts import verdict_on
from policy.quota.elastic_quota import BORROWING, MAX
from tests.unit.given import LARGE, cluster_of, pod, quota, refused_for


def test_nothing_is_known_of_a_pod_that_was_never_seen():
    assert verdict_on(cluster_of(), "a", "p").outcome == "unknown"


@pytest.mark.parametrize(
    ("state", "message"),
    [({"node": "n1"}, "on node n1"), ({"node": "n1", "finished": True}, "finished, on node n1")],
)
def test_a_pod_on_a_node_is_bound(state, message):
    verdict = verdict_on(cluster_of(pod("p", **state)), "a", "p")
    assert (verdict.outcome, verdict.message) == ("bound", message)


def test_a_refused_pod_comes_with_rule_numbers_and_remedies():
    verdict = verdict_on(cluster_of(quota(most={"cpu": 2}), pod("p", request={"cpu": 3})), "a", "p")
    assert (verdict.outcome, verdict.rule) == ("refused", MAX.name)
    assert verdict.message == "ElasticQuota max exceeded: cpu"
    assert verdict.numbers["cpu"]["max"] == 2000
    assert [hint.path for hint in verdict.hints] == ["spec.max.cpu"]


@pytest.mark.parametrize(
    ("unschedulable", "granted", "message"),
    [
        (None, False, "no rule refuses it; waiting for the scheduler to try it"),
        (refused_for(BORROWING), False, "no rule refuses it; waiting for the scheduler to try it"),
        (None, True, "admitted; waiting for the scheduler to bind it"),
    ],
)
def test_an_admissible_pod_waits_for_the_scheduler(unschedulable, granted, message):
    waiting = pod("p", unschedulable=unschedulable)
    cluster = cluster_of(quota(most={"cpu": 2}), waiting)
    if granted:
        assert cluster.admit(waiting, now=0) is None
    verdict = verdict_on(cluster, "a", "p")
    assert (verdict.outcome, verdict.message) == ("admissible", message)


def test_asking_for_a_verdict_changes_nothing():
    cluster = cluster_of(LARGE, quota(most={"cpu": 2}), pod("p", nominated_node="n"), pod("q", request={"cpu": 3}))
    before = dict(cluster.ledger.entries), cluster.generations.admission
    verdict_on(cluster, "a", "p")
    verdict_on(cluster, "a", "q")
    assert (dict(cluster.ledger.entries), cluster.generations.admission) == before
