"""The waiting members of groups are those that a recount finds, whatever comes and goes."""

from dataclasses import replace

from policy.cluster import waiting_members
from policy.objects.resources import largest
from tests.unit.given import cluster_of, pod
from tests.worlds.walk import by_dice, walk

GROUPS = ("g", "h", "")


class Members:
    """Pods of a few groups come, change and go."""

    def __init__(self) -> None:
        self.cluster = cluster_of()
        self.trace: list[str] = []

    def steps(self):
        return [self.is_seen] * 3 + [self.goes]

    def is_seen(self, pick):
        uid, request = pick("pqrst"), pick(({"cpu": 1}, {"cpu": 2}, {"cpu": 1, "memory": 3}))
        made = pod(uid, "a", group=pick(GROUPS), request=request)
        self.cluster.upsert_pod(replace(made, **pick(({}, {}, {"node": "n"}, {"finished": True}))), now=0)
        self.trace.append(f"{made}")

    def goes(self, pick):
        self.cluster.delete_pod(uid := pick("pqrst"))
        self.trace.append(f"{uid} goes")

    def check(self):
        for group in filter(None, GROUPS):
            there = [each for each in self.cluster.pods.values() if each.group == group and each.pending]
            found = self.cluster.groups.waiting(("a", group))
            assert sorted(found.uids()) == sorted(each.uid for each in there)
            assert len(found) == len(there)
            assert found.largest() == largest(*(each.request for each in there))
            assert found._amounts == sum(map(len, {frozenset(each.request.items()) for each in there}))

    finish = check


def test_waiting_members_are_those_of_a_recount():
    for seed in range(100):
        walk(Members(), by_dice(seed), 60)


def test_of_too_many_different_requests_the_largest_is_not_told(monkeypatch):
    cluster = cluster_of()
    for number in range(3):
        cluster.upsert_pod(pod(f"p{number}", "a", group="g", request={"cpu": number + 1}), now=0)
    waiting = cluster.groups.waiting(("a", "g"))
    amounts = sum(len(each.request) for each in cluster.pods.values())
    monkeypatch.setattr(waiting_members, "MOST_AMOUNTS", amounts)
    assert waiting.largest()["cpu"] == 3000
    monkeypatch.setattr(waiting_members, "MOST_AMOUNTS", amounts - 1)
    assert waiting.largest() is None
