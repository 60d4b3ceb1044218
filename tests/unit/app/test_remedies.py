"""How remedies are looked for: what is enough for the pod alone first, and nothing is said to be tried that was not."""

import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, islice

import pytest

from app.settings import Settings
from app.whatif import remedies
from app.whatif.remedies import ALONE, UNTRIED, WITH_ALL, RemedySearch
from app.whatif.service import COMPLETE, OUT_OF_TIME, Trials
from app.whatif.trial import Scene
from policy.explain.next_steps import Times, next_steps
from policy.explain.remedies import WAYS
from policy.explain.verdicts import verdict_on
from policy.reserve.starving import Terms
from policy.simulate.snapshot import snapshot
from policy.stepwise import at_once
from tests.unit.app.given import client_of, node, pod, quota, refused, see, store_with
from tests.unit.app.situations import NO_ROOM, TOLD, cpus, group, member, running, situations

MAX = "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu."


def search(store, name="p"):
    return RemedySearch(
        Scene(snapshot(store.cluster, store.clock()), Terms(), time.time()), store.cluster.pod("b", name)
    )


def stop_when_all_take_part(monkeypatch):
    """The question with all others takes for ever."""

    def forever(*_):
        yield from count()

    monkeypatch.setattr(remedies, "run_steps", forever)


def alone(monkeypatch, store, steps=100_000):
    """What is known of the remedies of b/p when the question with all others has begun."""
    stop_when_all_take_part(monkeypatch)
    looked = search(store)
    list(islice(looked.run_steps(), steps))
    assert not looked.complete
    return looked.found


NOTHING_TO_CHANGE = {"victims", "reserved", "budget"}


@pytest.mark.parametrize("name", sorted(situations().keys() - NOTHING_TO_CHANGE))
def test_what_is_enough_for_the_pod_alone_is_known_before_all_others_are_looked_at(monkeypatch, name):
    found = alone(monkeypatch, store_with(*situations()[name]))
    assert any(TOLD[name][-1] in each.text for each in found if each.tried == ALONE), found
    assert all(each.tried in (ALONE, UNTRIED) for each in found)


def test_before_a_promised_start_a_deadline_is_tried_first():
    there = situations()["reserved"]
    there[1]["spec"] |= {"activeDeadlineSeconds": 3600, "terminationGracePeriodSeconds": 0}
    there[1]["status"] = {"phase": "Running", "startTime": datetime.now(UTC).isoformat()}
    store, now = store_with(*there), time.time()
    cluster, epoch = store.cluster, now - store.clock()
    cluster.protection.pass_time(now)
    [own] = cluster.reservations.reserved
    cluster.upsert_reservation(replace(own, promised_start=float(int(now) + 3600), promised_at=float(int(now))))
    looked = RemedySearch(Scene(snapshot(cluster, store.clock()), Terms(), epoch), cluster.pod("b", "p"))
    at_once(looked.run_steps())
    [first, *_, last] = looked.found
    assert (first.target, first.path, first.value) == ("Pod b/p", "spec.activeDeadlineSeconds", "3480")
    assert (first.tried, last.tried) == (WITH_ALL, WITH_ALL)
    assert last.text.startswith("wait until a/big has started")
    step = at_once(next_steps(cluster, cluster.pod("b", "p"), Terms(), Times(store.clock(), epoch, 1.0)))[0]
    assert re.search(r"reserved for a/big, which has room by \d\d:\d\d UTC( tomorrow)? at the latest, and", step.text)


def crowd(number):
    """So many nodes, full of pods, and as many pods that wait for room, of as many shapes."""
    items = [node(f"n{at}", **cpus(4)) for at in range(number)]
    items += [pod(f"r-{at}", "a", {"cpu": 4}, nodeName=f"n{at}") for at in range(number)]
    items += [refused(pod(f"w-{at}", "b", {"cpu": 1 + at % 4, "memory": at}), NO_ROOM) for at in range(number)]
    return store_with(*items, refused(pod("p", "b", {"cpu": 2}), NO_ROOM))


def steps_until_alone(monkeypatch, number):
    stop_when_all_take_part(monkeypatch)
    looked = search(crowd(number))
    work = looked.run_steps()
    for step in count():
        next(work)
        if looked.found and all(each.tried == ALONE for each in looked.found):
            return step
    return 0


def test_the_small_question_grows_no_faster_than_the_cluster(monkeypatch):
    few, many = (steps_until_alone(monkeypatch, number) for number in (20, 80))
    assert many < 6 * few


def test_a_copy_that_remedies_were_tried_on_stands_as_before(monkeypatch):
    for name, items in situations().items():
        store = store_with(*items)
        made = []
        copied = Scene.copy_steps

        def copy_steps(scene, made=made, copied=copied):
            cluster = yield from copied(scene)
            made.append(cluster)
            return cluster

        monkeypatch.setattr(Scene, "copy_steps", copy_steps)
        alone(monkeypatch, store)
        [cluster] = made
        assert {pod.uid for pod in cluster.pods.values()} == store.cluster.pods.keys(), name
        assert {uid: pod.node for uid, pod in cluster.pods.items()} == {
            uid: pod.node for uid, pod in store.cluster.pods.items()
        }
        assert cluster.quotas == store.cluster.quotas
        assert cluster.queues == store.cluster.queues
        assert cluster.table.names == store.cluster.table.names
        assert cluster.membership.groups == store.cluster.membership.groups
        assert cluster.membership.weights == store.cluster.membership.weights
        assert cluster.budgets == store.cluster.budgets
        monkeypatch.setattr(Scene, "copy_steps", copied)


def test_of_a_search_that_comes_to_its_end_only_what_works_with_all_others_is_left():
    told = client_of(store_with(*situations()["max"])).get("/api/v1/pods/b/p").json()
    assert told["searched"] == COMPLETE
    assert {each["tried"] for each in told["remedies"]} == {WITH_ALL}


def test_what_was_tried_for_the_pod_alone_is_said_to_be_so(monkeypatch):
    store = store_with(*situations()["max"])
    found = alone(monkeypatch, store)

    async def searched(*_):
        from app.whatif.service import Searched  # noqa: PLC0415

        return Searched(found, OUT_OF_TIME)

    monkeypatch.setattr(Trials, "remedies", searched)
    told = client_of(store).get("/api/v1/pods/b/p").json()
    assert {(each["tried"], each["verified"]) for each in told["remedies"]} == {(ALONE, False)}
    assert (
        "What helps if no other pod that waits comes before it (tried for this one alone): raise max"
        in (told["summary"])
    )
    assert told["summary"].endswith(
        "The time to try remedies was over before all of them were tried (whatif.remedyTime)."
    )


def test_where_nothing_that_was_tried_works_nothing_is_suggested(monkeypatch):
    monkeypatch.setattr(RemedySearch, "run_steps", _finds_nothing)
    told = client_of(store_with(*situations()["max"])).get("/api/v1/pods/b/p").json()
    assert told["remedies"] == []
    assert told["summary"].endswith("Nothing that was tried lets it run.")


def _finds_nothing(self):
    self.complete = True
    yield


def test_remedies_are_searched_again_only_if_what_is_said_in_words_changes(monkeypatch):
    searches = []
    monkeypatch.setattr(RemedySearch, "run_steps", lambda self: searches.append(1) or _finds_nothing(self))
    store = store_with(*situations()["max"], quota("other", min={"cpu": 1}))
    client = client_of(store)

    def used_elsewhere():
        return client.get("/api/v1/pods/b/p").json()["numbers"]["cpu"]["poolUsed"]

    before = used_elsewhere()
    see(store, *running("other", 1))
    assert (used_elsewhere() != before, len(searches)) == (True, 1)
    see(store, quota("b", max={"cpu": 0}))
    client.get("/api/v1/pods/b/p")
    assert len(searches) == 2


def gang_of_three(*more):
    """Three members of two cpu each, of a namespace that uses two of a max of four."""
    members = [refused(member(name), MAX) for name in ("p", "q", "r")]
    for each in members:
        each["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    return [node("n1", **cpus(20)), group("b", 3), *members, *more]


@pytest.mark.parametrize(
    ("bound", "texts"),
    [
        (
            [quota("b", max={"cpu": 2}), *running("b", 2)],
            ["raise max of cpu in ElasticQuota b/quota from 2 to at least 8"],
        ),
        (
            [quota("b", min={"cpu": 1}), quota("a", min={"cpu": 3}), *running("a", 3)],
            ["raise min of cpu in ElasticQuota b/quota from 1 to at least 6"],
        ),
    ],
    ids=["max", "borrowing"],
)
def test_what_the_numbers_suggest_for_a_gang_is_enough_for_all_of_it(bound, texts):
    client = client_of(store_with(*gang_of_three(*bound)))
    client.app.state.trials._settings = Settings(whatif={"remedy_time": 0})
    told = client.get("/api/v1/pods/b/p").json()
    assert told["searched"] == OUT_OF_TIME
    assert [each["text"] for each in told["remedies"]] == texts
    assert {(each["tried"], each["verified"], each["change"]) for each in told["remedies"]} == {(UNTRIED, False, None)}
    assert f"What may help (not tried): {texts[0]}." in told["summary"]


def test_where_a_rule_has_no_remedy_to_try_what_the_numbers_suggest_is_told(monkeypatch):
    monkeypatch.delitem(WAYS, "elastic-quota-max")
    items = [node("n1", **cpus(20)), refused(pod("p", "b"), MAX), quota("b", max={"cpu": 0})]
    told = client_of(store_with(*items)).get("/api/v1/pods/b/p").json()
    assert told["searched"] == COMPLETE
    assert [each["tried"] for each in told["remedies"]] == [UNTRIED]


def test_a_gang_whose_members_lack_is_suggested_what_all_of_it_takes():
    items = [node("n1", **cpus(20)), group("b", 5), refused(member("p"), MAX), quota("b", max={"cpu": 0})]
    cluster = store_with(*items).cluster
    assert verdict_on(cluster, "b", "p").hints[0].value == "5"


def test_bounds_that_have_to_be_raised_together_are_one_suggestion():
    items = [node("n1", **cpus(20)), quota("b", max={"cpu": 1, "memory": 1}), pod("p", "b", {"cpu": 2, "memory": 2})]
    [hint] = verdict_on(store_with(*items).cluster, "b", "p").hints
    assert "raise max of cpu" in hint.text
    assert " and raise max of memory" in hint.text
    assert (hint.path, hint.value) == ("", "")
