"""The explanation of a pod whose group cannot start."""

from dataclasses import replace

from policy.explain.verdicts import verdict_on
from policy.quota.gang_minimum import RULE
from tests.unit.cluster.test_gang_admission import OVER_TWO
from tests.unit.given import quota
from tests.unit.given_gangs import group, members, see, seeing
from tests.unit.given_nodes import node


def test_the_explanation_names_numbers_and_what_would_help():
    gang = members()
    cluster = seeing(node(size=OVER_TWO), group("kind/g", minimum=4), [replace(each, group="kind/g") for each in gang])
    verdict = verdict_on(cluster, "a", "g0")
    assert (verdict.outcome, verdict.rule, verdict.message) == ("refused", RULE.name, RULE.text)
    assert verdict.numbers["members"] == {"minimum": 4, "ready": 0, "pending": 3}
    assert [hint.text for hint in verdict.hints] == ["create 1 more members of PodGroup a/g, or lower its minMember"]
    assert (verdict.hints[0].path, verdict.hints[0].value) == ("spec.minMember", "3")
    cluster.upsert_group(group("kind/g", minimum=3))
    assert "room for 3 members together" in verdict_on(cluster, "a", "g0").hints[0].text
    see(cluster, node("n2"), quota(most={"cpu": 2}))
    assert "not enough left for 3 members" in verdict_on(cluster, "a", "g0").hints[0].text
    cluster.upsert_quota(quota(most={"cpu": 3}))
    assert verdict_on(cluster, "a", "g0").outcome == "admissible"
    assert len(cluster.grants) == 0
