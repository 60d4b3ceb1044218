"""Whatever happens while room is held for a gang: nothing of it stays behind, and nobody is lost."""

from dataclasses import replace

import pytest

from policy.objects.constraints import Constraints
from tests.unit.given import amounts, pod, quota
from tests.unit.given_gangs import asked, bound, group, members, see, seeing
from tests.unit.given_nodes import node

TWO = {"cpu": 2, "pods": 9}
NEVER = Constraints(node_selector=(("disk", "none"),))

MEANWHILE = {
    "a node is gone": lambda cluster: cluster.delete_node("n1"),
    "all nodes are gone": lambda cluster: [cluster.delete_node(name) for name in ("n1", "n2")],
    "a node is cordoned": lambda cluster: see(cluster, replace(cluster.table.node("n1"), unschedulable=True)),
    "a node becomes smaller": lambda cluster: see(
        cluster, replace(cluster.table.node("n1"), allocatable=amounts(cpu=1))
    ),
    "the group is gone": lambda cluster: cluster.delete_group("a", "g"),
    "the minimum is raised": lambda cluster: see(cluster, group(minimum=4)),
    "the minimum is lowered": lambda cluster: see(cluster, group(minimum=1)),
    "a member is gone": lambda cluster: cluster.delete_pod("g1"),
    "a member is made anew": lambda cluster: see(cluster, replace(members()[1], uid="other")),
    "a member has another size": lambda cluster: see(
        cluster, replace(members()[1], request=amounts(cpu=9) | {"pods": 1})
    ),
    "a member may go nowhere": lambda cluster: see(cluster, replace(members()[1], constraints=NEVER)),
    "a member leaves the group": lambda cluster: see(cluster, replace(members()[1], group="")),
    "a member is on its way out": lambda cluster: see(cluster, replace(members()[1], terminating=True)),
    "a member was bound by hand": lambda cluster: see(cluster, bound(members()[1], "n2")),
    "the quota is lowered": lambda cluster: see(cluster, quota(most={"cpu": 1})),
    "everybody is gone": lambda cluster: [cluster.delete_pod(f"g{number}") for number in range(3)],
}


@pytest.mark.parametrize("happens", MEANWHILE.values(), ids=MEANWHILE)
@pytest.mark.parametrize("after", [0, 1, 2], ids=["before it", "with one through", "with two through"])
def test_nothing_is_left_of_what_was_held(happens, after):
    cluster = seeing(node("n1", size=TWO), node("n2", size=TWO), group(), members(), hold_time=10)
    assert asked(cluster, members()[0], *members()[:after]) == ["g0", *(f"g{number}" for number in range(after))]
    happens(cluster)
    for member in list(cluster.pods.values()):
        if member.pending:
            asked(cluster, member, offered=tuple(cluster.table.names))
    for now in (10.0, 100.0, 1000.0):
        cluster.tick(now)
    assert len(cluster.gangs.holds) == len(cluster.grants) == 0
    assert cluster.table.expected == {}
    assert not cluster.gangs.holds.nodes()
    standing = [each for each in cluster.pods.values() if each.assigned]
    assert cluster.ledger.account("a").used.get("cpu", 0) == sum(each.request["cpu"] for each in standing)
    assert cluster.pending == {uid: each for uid, each in cluster.pods.items() if each.pending}


@pytest.mark.parametrize("happens", MEANWHILE.values(), ids=MEANWHILE)
def test_others_are_not_kept_out_for_longer_than_it_is_held(happens):
    cluster = seeing(node("n1", size=TWO), node("n2", size=TWO), group(), members(), hold_time=10)
    assert asked(cluster, members()[0]) == ["g0"]
    happens(cluster)
    cluster.tick(10.0)
    cluster.tick(100.0)
    assert cluster.reservations.nodes_held_from(pod("o", "b", request={"cpu": 2})) == set()
