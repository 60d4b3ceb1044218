"""The history of the last day: what is recorded, how much memory it takes, and how it is read."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from app import cli_output
from app.extender.decisions import Decisions
from app.history import recorder as recording
from app.history.recorder import CHANGES, Recorder
from app.history.rows import BLOCK, LIMIT, MINUTES, Rows
from app.observability import evictions
from app.web.plots import happened
from policy.objects.verdict import Refusal
from policy.quota.rules import RULES
from policy.stepwise import at_once
from tests.unit.app.given import (
    Clock,
    client_of,
    namespace,
    node,
    pod,
    queue,
    quota,
    refused,
    run_in_the_same_loop,
    see,
    store_with,
)
from tests.unit.app.reclaim_world import World
from tests.unit.app.test_page import Parsed

BELONGS = {"scheduling.volcano.sh/queue-name": "team"}
START = 30_000_000
"""The minute since the epoch at which a history begins here."""


class Day:
    """A cluster of namespace a in queue team below company, and the history of it."""

    def __init__(self, *more, **options):
        self.clock = Clock(START * 60.0)
        tree = [queue("company"), queue("team", parent="company"), namespace("a", **BELONGS)]
        mine = [quota("a", min={"cpu": 1}, max={"cpu": 4}), pod("runs", requests={"cpu": "3"}, nodeName="n1")]
        self.store = store_with(node("n1"), *tree, *mine, refused(pod("waits")), *more, clock=self.clock)
        self.store.cluster.epoch = 0.0
        at_once(self.store.cluster.divide_steps())
        self.client = client_of(self.store)
        self.decisions = Decisions()
        self.recorder = self.client.app.state.recorder = Recorder(self.store, self.decisions, **options)

    def passes(self, minutes=1):
        self.clock.now += 60.0 * minutes
        self.record()

    def record(self):
        run_in_the_same_loop(self.recorder.record())

    def answers(self, number=1, rule="", name="waits", of="a"):
        known = self.store.cluster.pod(of, name)
        uid = known.uid if known else "?"
        asked = replace(self.store.cluster.pod("a", "waits"), namespace=of, name=name, uid=uid)
        for _ in range(number):
            self.decisions.note(asked, "refused" if rule else "admitted", Refusal(rule, rule, ()) if rule else None)

    def ask(self, query):
        answer = self.client.get(f"/api/v1/history?{query}")
        assert answer.status_code == 200, answer.text
        return answer.json()


def test_answers_count_for_the_quota_the_queue_and_all_above_it_by_rule():
    day = Day()
    day.record()
    day.answers(3, "elastic-quota-max")
    day.answers(2)
    day.record()
    day.passes()
    day.answers(1, "queue-capability")
    day.record()
    for whom in ("quota=a/quota", "queue=team", "queue=company"):
        [item] = day.ask(f"{whom}&since=2m&step=1m")["items"]
        assert item["admitted"] == [2, 0]
        assert item["refused"] == {"elastic-quota-max": [3, 0], "queue-capability": [0, 1]}


def test_an_answer_is_counted_once_however_often_it_is_looked_at():
    day = Day()
    day.answers(2)
    for _ in range(3):
        day.record()
    assert day.ask("quota=a/quota&since=1m&step=1m")["items"][0]["admitted"] == [2]


def test_amounts_are_those_of_each_minute():
    day = Day()
    day.record()
    see(day.store, quota("a", min={"cpu": 2}, max={"cpu": 4}), pod("more", nodeName="n1"))
    day.passes()
    [item] = day.ask("quota=a/quota&since=3m&step=1m")["items"]
    assert item["resources"]["cpu"] == {
        "used": [None, "3", "4"],
        "min": [None, "1", "2"],
        "max": [None, "4", "4"],
    }
    assert item["waiting"] == [None, 1, 1]
    [item] = day.ask("quota=a/quota&since=2m&step=2m")["items"]
    assert item["resources"]["cpu"] == {"used": ["4"], "min": ["2"], "max": ["4"]}
    [item] = day.ask("queue=company&since=1m&step=1m")["items"]
    assert (item["resources"]["cpu"]["used"], item["waiting"]) == (["4"], [1])
    assert "deserved" in item["resources"]["cpu"]


def test_what_is_older_than_a_day_is_forgotten_and_what_was_not_seen_is_unknown():
    day = Day()
    day.answers(5)
    day.record()
    day.passes(MINUTES - 1)
    found = day.ask("quota=a/quota&step=12h")
    assert found["items"][0]["admitted"] == [5, 0]
    assert day.ask("quota=a/quota&since=3m&step=1m")["items"][0]["admitted"] == [None, None, 0]
    day.passes()
    assert day.ask("quota=a/quota&step=12h")["items"][0]["admitted"] == [None, 0]


def test_it_says_from_when_on_it_knows():
    day = Day()
    assert day.ask("")["since"] is None
    day.record()
    day.passes(10)
    assert day.ask("")["since"] == "2027-01-15T08:00:00Z"


def test_all_queues_and_quotas_are_summed_up_in_one_step():
    day = Day()
    day.answers(2, "elastic-quota-max")
    day.record()
    found = day.ask("")
    rows = {each["name"]: each for each in found["items"]}
    assert set(rows) == {"quota", "team", "company"}
    assert (found["step"], len(found["at"])) == (86400, 1)
    assert rows["company"]["refused"] == {"elastic-quota-max": [2]}
    assert day.ask("step=5m&since=2h")["step"] == 7200


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("queue=nobody", 404, "queue"),
        ("quota=a/other", 404, "quota"),
        ("quota=nobody", 404, "quota"),
        ("since=soon", 422, "query.since"),
        ("queue=team&step=0m", 422, "query.step"),
        ("since=-1h", 422, "query.since"),
        ("since=" + "9" * 65, 422, "query.since"),
    ],
)
def test_what_cannot_be_shown_is_named(query, status, field):
    day = Day()
    day.record()
    answer = day.client.get(f"/api/v1/history?{query}")
    assert (answer.status_code, answer.json()["field"]) == (status, field)


def test_a_duration_may_have_several_units():
    day = Day()
    day.record()
    assert day.ask("queue=team&since=2h30m&step=1h15m")["step"] == 75 * 60
    assert len(day.ask("queue=team&since=2h30m&step=1h15m")["at"]) == 2


def test_steps_are_never_of_less_than_a_minute_nor_go_back_more_than_a_day():
    day = Day()
    day.record()
    assert day.ask("queue=team&step=1s&since=999999999d")["at"][-1] == "2027-01-15T08:00:00Z"
    assert len(day.ask("queue=team&step=1s&since=" + "9" * 64)["at"]) == MINUTES


# Memory


def test_what_tenants_write_adds_no_row():
    day = Day()
    day.record()
    day.answers(1, "elastic-quota-max")
    day.record()
    before = sum(len(each.rows) for each in day.recorder.recorded.values())
    rich = pod("strange", "b", {f"example.com/{n}": "1" for n in range(50)})
    see(
        day.store,
        refused(
            rich | {"metadata": rich["metadata"] | {"annotations": {"scheduling.volcano.sh/queue-name": "invented"}}}
        ),
    )
    for number in range(30):
        day.answers(1, "elastic-quota-max", f"p{number}", of=f"namespace-{number}")
    day.answers(1, "elastic-quota-max", "strange", of="b")
    day.passes()
    assert sum(len(each.rows) for each in day.recorder.recorded.values()) == before


def test_a_thousand_quotas_take_at_most_64_mib():
    bounds = {"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": 1, "pods": 10}
    teams = [f"t{number}" for number in range(1000)]
    quotas = [quota(team, min=bounds, max=bounds) for team in teams]
    queues = [queue(f"q{number}") for number in range(50)]
    homes = [namespace(team, **{"scheduling.volcano.sh/queue-name": f"q{n % 50}"}) for n, team in enumerate(teams)]
    day = Day(*quotas, *queues, *homes)
    day.record()
    for team in teams:
        day.answers(1, "elastic-quota-max", "p", of=team)
        day.answers(1, "", "p", of=team)
        day.record()
    for team in teams:
        for figure in (("evicted", ""), ("refused", "queue-capability")):
            day.recorder._count(team, "", figure)
    assert LIMIT == 64 * 2**20
    assert not day.recorder.left_out
    assert day.recorder.nbytes <= 56 * 2**20
    assert min(len(day.recorder.recorded["quota", team].rows) for team in teams) == 9


def test_where_the_memory_is_full_it_says_so_and_who_is_gone_makes_room():
    blocks = 1
    day = Day(limit=blocks * BLOCK * MINUTES * 4)
    for number in range(BLOCK):
        see(day.store, quota(f"t{number}", max={"cpu": 1}))
    day.record()
    assert day.recorder.nbytes == BLOCK * MINUTES * 4
    assert day.ask("")["incomplete"] == "there was no memory left for the history of some"
    for number in range(BLOCK):
        day.store.delete(next(k for k in day.store.kinds if k.name == "ElasticQuota"), (f"t{number}", "quota"))
    day.recorder.left_out = False
    day.passes(3)
    see(day.store, quota("late", max={"cpu": 1}))
    day.passes()
    assert day.ask("quota=late/quota&since=1m&step=1m")["items"][0]["resources"]["cpu"]["used"] == ["0"]


def test_who_is_gone_is_known_for_a_day():
    day = Day(queue("gone"))
    day.record()
    day.store.delete(next(kind for kind in day.store.kinds if kind.name == "Queue"), "gone")
    day.passes()
    assert len(day.ask("queue=gone")["items"]) == 1
    day.passes(MINUTES)
    assert day.client.get("/api/v1/history?queue=gone").status_code == 404


def test_bounds_that_change_all_the_time_are_bounded():
    day = Day()
    for number in range(CHANGES + 10):
        see(day.store, quota("a", min={"cpu": number}, max={"cpu": 1000}))
        day.passes()
    assert max(len(each) for each in day.recorder.recorded["quota", "a"].bounds.values()) == CHANGES


def test_a_clock_that_goes_back_begins_anew():
    day = Day()
    day.record()
    day.passes(-60)
    assert day.recorder.minute == START - 60
    assert day.ask("quota=a/quota&since=1m&step=1m")["items"][0]["waiting"] == [1]


def test_rows_that_are_given_back_are_empty_and_used_again():
    rows = Rows()
    taken = [rows.take() for _ in range(BLOCK)]
    for row in taken:
        row[:] = 1
    rows.give_back(taken[5])
    again = rows.take()
    assert again is not None
    assert np.isnan(again).all()
    assert all((row == 1).all() for index, row in enumerate(taken) if index != 5)
    assert rows.nbytes == BLOCK * MINUTES * 4


def test_the_rules_that_are_counted_are_those_that_there_are():
    assert len(RULES) < 30  # a queue or quota has a row for each that has refused a pod of it


# Evictions


def reclaimed():
    world = World()
    world.passes(2)
    world.passes(2)
    assert world.api.evicted
    return world, world.api.evicted[0]


def test_a_pod_that_was_evicted_and_is_gone_has_a_page_that_says_why():
    world, name = reclaimed()
    assert world.store.cluster.pod("a", name) is None
    assert [each.name for each in world.api.handed_on] == [name], "to who starts later"
    client = client_of(world.store)
    answer = client.get(f"/pods/a/{name}")
    assert answer.status_code == 200
    words = Parsed(answer.text).words
    assert "from node n1 to make room for b/owner: ElasticQuota a/quota borrows." in words
    assert "used 4 used under its quota" in words
    assert "used in its queue" not in words
    assert "min 3 guaranteed by its quota" in words
    document = client.get(f"/api/v1/pods/a/{name}").json()
    assert document["evicted"]["for"] == "b/owner"
    assert document["evicted"]["numbers"] == {"cpu": {"request": "1", "used": "4", "min": "3", "max": "9"}}
    assert "It was evicted from n1 at " in document["summary"]
    assert client.get("/pods/a/nobody").status_code == 404


def test_a_new_pod_of_the_name_was_not_evicted():
    world, name = reclaimed()
    see(world.store, pod(name, metadata={"uid": "another"}, nodeName="n1"))
    assert client_of(world.store).get(f"/api/v1/pods/a/{name}").json()["evicted"] is None


def test_the_latest_evictions_are_found_by_name_and_no_others(monkeypatch):
    monkeypatch.setattr(evictions, "MOST", 2)
    known = evictions.Evictions()

    def note(uid, name):
        known.note(evictions.Evicted(0.0, uid, "a", name, "", "n1", "reclaim", "", "", ()))

    for uid, name in (("1", "p"), ("2", "p"), ("3", "q")):
        note(uid, name)
    assert [known.of("a", name).uid for name in "pq"] == ["2", "3"]
    note("4", "r")
    assert known.of("a", "p") is None
    assert [each.uid for each in known] == ["4", "3"]


def test_evictions_are_counted_once_and_listed():
    world, name = reclaimed()
    client = client_of(world.store)
    recorder = client.app.state.recorder
    asyncio.run(recorder.record())
    asyncio.run(recorder.record())
    found = client.get("/api/v1/history?quota=a/quota&since=1m&step=1m").json()["items"][0]
    assert found["evicted"] == [1]
    [item] = client.get("/api/v1/evictions?namespace=a").json()["items"]
    assert (item["pod"], item["reason"]) == (f"a/{name}", "reclaim")
    assert client.get("/api/v1/evictions?namespace=b").json()["items"] == []
    assert f"a/{name}" in Parsed(client.get("/quotas/a/quota").text).words


def test_reservations_are_counted_but_not_those_of_an_earlier_process():
    world = World()
    client = client_of(world.store)
    recorder = client.app.state.recorder
    asyncio.run(recorder.record())
    world.passes(2)
    assert world.held
    asyncio.run(recorder.record())
    later = Recorder(world.store, ())
    asyncio.run(later.record())
    assert ("reserved", "") in recorder.recorded["quota", "b"].rows
    assert ("reserved", "") not in later.recorded["quota", "b"].rows


# What people see


def test_pages_show_plots_with_words_and_a_table():
    day = Day()
    day.answers(4, "elastic-quota-max")
    day.record()
    day.passes(10)
    for path in ("/quotas/a/quota", "/namespaces/a", "/queues/team"):
        parsed = Parsed(day.client.get(path).text)
        labels = [each["aria-label"] for each in parsed.all("svg") if each.get("role") == "img"]
        assert any(label.startswith("cpu: highest 3; now used 3") for label in labels), labels
        assert "Waiting pods: highest 1; now waiting 1" in labels
        assert "Pods refused: highest 4; now refused 0" in labels
        assert "Known since 2027-01-15 08:00:00 UTC" in parsed.words


def test_a_plot_has_gaps_where_nothing_is_known():
    day = Day()
    day.record()
    day.passes(20)
    drawn = happened(day.recorder, ("quota", "a"), "min", "max", lambda _: 0.0)
    [used] = [line.path for line in drawn.plots[0].lines if line.name == "used"]
    assert used == "M283 100V25H284V100ZM287 100V25H288V100Z"
    [most] = [line.path for line in drawn.plots[0].lines if line.name == "max"]
    assert most == "M283 0H288"
    assert [row[0] for row in drawn.rows] == ["2027-01-15T07:21:00Z"]


def test_pages_tell_which_limits_have_changed():
    day = Day()
    day.record()
    assert "No limit has changed" in Parsed(day.client.get("/quotas/a/quota").text).words
    see(day.store, quota("a", min={"cpu": 2}, max={"cpu": 4, "memory": "1Gi"}))
    day.passes(10)
    words = Parsed(day.client.get("/quotas/a/quota").text).words
    assert "min of cpu 2027-01-15 08:10:00 UTC 1 2" in words
    assert "max of cpu" not in words
    see(day.store, quota("a", min={"cpu": 2}, max={"memory": "1Gi"}))
    day.passes(10)
    assert "max of cpu 2027-01-15 08:20:00 UTC 4 none" in Parsed(day.client.get("/namespaces/a").text).words
    day.passes(MINUTES)
    assert "min of cpu" not in Parsed(day.client.get("/quotas/a/quota").text).words


def test_a_page_without_history_has_no_plots():
    assert "The last day" not in Parsed(Day().client.get("/queues/team").text).words


def test_tables_of_the_command_line(capsys):
    day = Day()
    day.answers(4, "elastic-quota-max")
    day.record()
    cli_output.print_history(day.ask(""))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["quota", "a/quota", "0", "4", "0", "0", "1"] in lines
    assert ["known", "since", "2027-01-15T08:00:00Z"] in lines
    cli_output.print_history_of_one(day.ask("quota=a/quota&since=2m&step=1m"))
    first, *rows, _ = capsys.readouterr().out.splitlines()
    columns = ("SINCE CPU USED", "CPU MIN", "CPU MAX", "WAITING", "ADMITTED", "EVICTED", "RESERVED", "REFUSED BY")
    assert first.split() == " ".join((*columns, "elastic-quota-max")).split()
    assert rows[0].split()[1:] == ["-"] * 8
    assert rows[1].split()[1:] == ["3", "1", "4", "1", "0", "0", "0", "4"]


def test_long_work_is_done_in_slices():
    day = Day(*[refused(pod(f"w{number}")) for number in range(1000)])
    day.recorder._move_on(START)
    pieces = sum(1 for _ in day.recorder._sample_steps())
    assert pieces >= 10
    for number in range(200):
        day.answers(1, "elastic-quota-max", f"w{number}")
    assert sum(1 for _ in day.recorder._count_steps()) >= 200 // recording.FEW
