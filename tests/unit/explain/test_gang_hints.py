"""The explanation of a pod whose group cannot start."""

from dataclasses import replace

import pytest

from policy.explain.verdicts import verdict_on
from policy.quota.gang_minimum import RULE
from tests.unit.app import given
from tests.unit.app.given import pod, store_with
from tests.unit.app.test_gang_answers import member
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


@pytest.mark.parametrize(
    ("minimum", "text"),
    [
        (2, "wait until nodes have room for 2 members together, or add nodes"),
        (3, "add nodes: those that are there have room for fewer than 3 members even if they were empty"),
    ],
)
def test_it_is_told_to_wait_for_room_only_if_empty_nodes_have_enough(minimum, text):
    full = pod("full", requests={"cpu": 4}, nodeName="n2")
    gang = [given.pod_group("g", minimum=minimum), *(member(f"m{number}") for number in range(3))]
    cluster = store_with(given.node("n1"), given.node("n2"), full, *gang).cluster
    assert verdict_on(cluster, "a", "m0").hints[0].text == text
