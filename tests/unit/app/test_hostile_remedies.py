"""What tenants write may call for any number of objects, or be nonsense: remedies are looked for all the same."""

import pytest

from tests.unit.app.given import client_of, node, pod, quota, refused, store_with
from tests.unit.app.situations import NO_ROOM, cpus, group, member, running


def remedies(*items, of):
    return [each["text"] for each in client_of(store_with(*items)).get(f"/api/v1/pods/{of}").json()["remedies"]]


@pytest.mark.parametrize("minimum", [2**31 - 1, 2**63, 10**300, 10**400])
def test_of_members_that_a_gang_lacks(minimum):
    waiting = refused(member("p"), "Gang minimum cannot be placed yet")
    texts = remedies(node("n1", **cpus(9)), group("b", minimum), waiting, member("mate"), of="b/p")
    assert not any("create" in text for text in texts)
    assert any("lower the minimum" in text for text in texts)


@pytest.mark.parametrize("absurd", ["1000000000000", "1e30", "1e999999999"])
def test_of_nodes_that_the_other_members_take(absurd):
    waiting = refused(member("p"), "Gang minimum cannot be placed yet")
    mate = member("mate")
    mate["spec"]["containers"][0]["resources"]["requests"]["cpu"] = absurd
    assert not any("add" in text for text in remedies(node("n1", **cpus(9)), group("b", 2), waiting, mate, of="b/p"))


def test_of_a_quota_that_has_to_be_corrected_first_and_is_too_small_then():
    nonsense = quota("b", min=[{"cpu": 2}])
    lender = quota("a", min={"cpu": 1})
    texts = remedies(
        node("n1", **cpus(9)), lender, nonsense, *running("a", 1), refused(pod("p", "b"), NO_ROOM), of="b/p"
    )
    assert any("correct ElasticQuota b/quota" in text and "raise min of cpu" in text for text in texts)
