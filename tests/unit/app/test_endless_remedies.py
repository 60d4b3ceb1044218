"""What tenants write may call for any number of objects; no remedy that adds so many is even thought of."""

import pytest

from tests.unit.app.given import client_of, node, refused, store_with
from tests.unit.app.situations import cpus, group, member


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
