"""What is said of a pod: to the scheduler in few stable words, to people with numbers."""

import pytest

from policy.objects.verdict import Refusal
from policy.quota.elastic_quota import BORROWING, MAX
from tests.unit.given import LARGE, cluster_of, pod, quota, refused_for


def test_the_scheduler_gets_the_text_of_the_rule_and_sorted_names():
    assert Refusal(MAX, "Too much", ("cpu", "nvidia.com/gpu")).message == "Too much: cpu, nvidia.com/gpu"
    assert Refusal(MAX, "Too much").message == "Too much"


def test_a_refusal_says_the_same_whatever_the_numbers_are():
    said = set()
    for used in range(2, 9):
        cluster = cluster_of(quota(most={"cpu": 2}), pod("p", node="n", request={"cpu": used}))
        said.add(cluster.admit(pod("q", request={"cpu": used}), now=0).message)
    assert said == {"ElasticQuota max exceeded: cpu"}


def test_nothing_is_known_of_a_pod_that_was_never_seen():
    assert cluster_of().verdict("a", "p").outcome == "unknown"


@pytest.mark.parametrize(
    ("state", "message"),
    [({"node": "n1"}, "on node n1"), ({"node": "n1", "finished": True}, "finished, on node n1")],
)
def test_a_pod_on_a_node_is_bound(state, message):
    verdict = cluster_of(pod("p", **state)).verdict("a", "p")
    assert (verdict.outcome, verdict.message) == ("bound", message)


def test_a_refused_pod_comes_with_rule_numbers_and_remedies():
    verdict = cluster_of(quota(most={"cpu": 2}), pod("p", request={"cpu": 3})).verdict("a", "p")
    assert (verdict.outcome, verdict.rule) == ("refused", MAX.name)
    assert verdict.message == "ElasticQuota max exceeded: cpu"
    assert verdict.numbers["cpu"]["max"] == 2000
    assert [remedy.path for remedy in verdict.remedies] == ["spec.max.cpu"]


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
    verdict = cluster.verdict("a", "p")
    assert (verdict.outcome, verdict.message) == ("admissible", message)


def test_asking_for_a_verdict_changes_nothing():
    cluster = cluster_of(LARGE, quota(most={"cpu": 2}), pod("p", nominated_node="n"), pod("q", request={"cpu": 3}))
    before = dict(cluster.ledger.entries), cluster.eased
    cluster.verdict("a", "p")
    cluster.verdict("a", "q")
    assert (dict(cluster.ledger.entries), cluster.eased) == before
