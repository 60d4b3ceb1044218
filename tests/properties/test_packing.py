"""Members that are placed together, whatever they demand of each other: compared with the scheduler's own filters."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from policy.nodes.gang_demands import demands_something
from policy.nodes.packing import Places
from tests.properties.by_chance import pod_of
from tests.properties.scheduler_filters import Cluster, places
from tests.properties.test_fit import clusters, numbers, some, table_of

OFTEN = settings(max_examples=4 * settings().max_examples)


@st.composite
def gangs(draw):
    """Up to three kinds of members, of each up to three, in one namespace; equal requests and constraints are one."""
    members = []
    for kind, number in enumerate(draw(st.lists(numbers, min_size=1, max_size=3))):
        one = replace(pod_of(f"g{kind}", number), namespace="a", terminating=False)
        for each in range(draw(st.integers(1, 3))):
            own = {"index": str(each)} if draw(st.booleans()) else {}
            members.append(replace(one, uid=f"g{kind}-{each}", labels=one.labels | own))
    return draw(st.permutations(members))


def _in_turn(found: Places, members):
    """In the order in which they were placed."""
    placed = {uid: at for at, uid in enumerate(found.nodes)}
    return sorted((each for each in members if each.uid in placed), key=lambda each: placed[each.uid])


@OFTEN
@given(clusters(), gangs())
def test_each_is_where_the_scheduler_would_place_it_after_those_before_it(cluster, members):
    table = table_of(cluster)
    found = Places(table, members)
    unplaced = found.find()
    standing = list(cluster.standing)
    for member in _in_turn(found, members):
        node = found.nodes[member.uid]
        assert places(Cluster(cluster.nodes, standing, []), member, node)
        standing.append((replace(member, node=node), node))
    if unplaced is None:
        assert found.nodes.keys() == {each.uid for each in members}
    elif any(map(demands_something, members)):  # or else it is not noted where those before it would go
        then = Cluster(cluster.nodes, standing, [])
        assert not any(places(then, unplaced, name) for name in cluster.nodes)


@OFTEN
@given(clusters(), gangs(), some("s0", "s1"))
def test_to_place_members_changes_nothing(cluster, members, uid):
    table = table_of(cluster)
    before = {name: dict(table.pods_on(name)) for name in table.names}
    memo, index = dict(table.memo), dict(table.index.slots)
    Places(table, members).find()
    assert {name: dict(table.pods_on(name)) for name in table.names} == before
    assert table.index.slots == index
    assert memo.keys() <= table.memo.keys()
