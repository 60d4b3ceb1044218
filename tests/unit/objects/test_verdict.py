"""What is said of a pod that is refused: to the scheduler in few stable words."""

from policy.objects.verdict import Refusal
from policy.quota.elastic_quota import MAX
from tests.unit.given import cluster_of, pod, quota


def test_the_scheduler_gets_the_text_of_the_rule_and_sorted_names():
    assert Refusal(MAX, "Too much", ("cpu", "nvidia.com/gpu")).message == "Too much: cpu, nvidia.com/gpu"
    assert Refusal(MAX, "Too much").message == "Too much"


def test_a_refusal_says_the_same_whatever_the_numbers_are():
    said = set()
    for used in range(2, 9):
        cluster = cluster_of(quota(most={"cpu": 2}), pod("p", node="n", request={"cpu": used}))
        said.add(cluster.admit(pod("q", request={"cpu": used}), now=0).message)
    assert said == {"ElasticQuota max exceeded: cpu"}
