"""What it takes to suggest remedies."""

from policy.cluster.gang_search import GangSearch
from policy.explain.remedies import remedies_steps
from policy.stepwise import at_once
from tests.unit.app.given import node, pod_group, store_with
from tests.unit.app.test_gang_answers import member


def test_it_is_searched_once_how_many_of_a_gang_have_room(monkeypatch):
    members = [member(f"m{number}") for number in range(4)]
    cluster = store_with(node("n1"), node("n2"), pod_group("g", minimum=4), *members).cluster
    asked, find = [], GangSearch.find
    monkeypatch.setattr(GangSearch, "find", lambda self, *of: asked.append(of[2]) or find(self, *of))
    found = at_once(remedies_steps(cluster, cluster.pods["a/m0"]))
    assert [each.sort for each in found] == ["node", "minimum"]
    assert sorted(asked) == sorted(set(asked)) != []
