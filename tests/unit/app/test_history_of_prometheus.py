"""The time before a start, as a Prometheus tells it, and what is said where it tells nothing of use."""

import asyncio
import json

import pytest
from aiohttp import web

from app.history import prometheus
from app.history.prometheus import Restorer, queries
from app.history.rows import MINUTES
from tests.unit.app.given import quota
from tests.unit.app.test_history import START, Day

A_QUOTA = ("quota", "a")


@pytest.fixture(autouse=True)
def _without_rest(monkeypatch):
    """Questions follow each other at once."""
    monkeypatch.setattr(prometheus, "REST", 0.0)


def matrix(*series):
    result = [{"metric": metric, "values": values} for metric, values in series]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def used(resource, *amounts, name="quotaward_elastic_quota_used"):
    """The amounts of every fifth minute before the start."""
    first = START - 5 * len(amounts)
    times = [((first + 5 * index) * 60, str(amount)) for index, amount in enumerate(amounts)]
    return {"__name__": name, "resource": resource}, times


def asked(day, answer, url="{}", monkeypatch=None):
    """Asks a Prometheus that answers so, until it is asked no more or the first failure."""
    queries = []

    async def serve():
        async def reply(request):
            queries.append((await request.post())["query"])
            return answer(queries[-1])

        app = web.Application()
        app.router.add_post("/api/v1/query_range", reply)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        fill = asyncio.create_task(
            Restorer(day.recorder, day.store.cluster, url.format(f"http://127.0.0.1:{port}")).run()
        )
        beginning = f"http://127.0.0.1:{port} is being"
        while not fill.done():
            await asyncio.sleep(0.01)
            if queries and not day.recorder.lacking.startswith(beginning):
                break
        fill.cancel()
        await runner.cleanup()

    day.record()
    asyncio.run(serve())
    return queries


def by_minute(day, minutes=20):
    return day.ask(f"quota=a/quota&since={minutes}m&step=1m")["items"][0]


def test_amounts_bounds_and_waiting_pods_of_the_time_before_are_filled_in():
    def answer(query):
        if "waiting_pods" in query and 'namespace="a"' in query:
            return web.json_response(matrix(({}, used("", 7, 8)[1])))
        if 'namespace="a"' in query:
            least = used("cpu", 5, 5, name="quotaward_elastic_quota_min")
            return web.json_response(matrix(used("cpu", 2.5, 3), least))
        return web.json_response(matrix())

    day = Day()
    asked(day, answer)
    found = by_minute(day, 11)
    assert found["resources"]["cpu"]["used"] == ["2500m"] + ["3"] * 5 + [None] * 4 + ["3"]
    assert found["resources"]["cpu"]["min"] == ["5"] * 10 + ["1"]
    assert found["waiting"] == [7] + [8] * 5 + [None] * 4 + [1]
    assert found["admitted"] == [None] * 10 + [0]
    document = day.ask("quota=a/quota")
    assert (document["since"], document["countedSince"]) == ("2027-01-15T07:50:00Z", "2027-01-15T08:00:00Z")
    assert document["incomplete"] == ""
    assert "admissions and refusals since 2027-01-15 08:00:00 UTC" in day.client.get("/quotas/a/quota").text.replace(
        "</time>", ""
    ).replace('<time datetime="2027-01-15T08:00:00Z">', "")


def test_evictions_of_a_queue_are_filled_in():
    day = Day()
    asked(day, lambda query: web.json_response(matrix(({}, used("", 0, 2)[1]) if "evictions" in query else used("x"))))
    assert day.ask("queue=team&since=10m&step=10m")["items"][0]["evicted"] == [2]


def test_whatever_it_answers_nothing_is_recorded_that_was_not_before():
    strange = [used(f"example.com/{number}", 1, 2) for number in range(200)]
    strange += [used("cpu", "NaN", "+Inf"), used("cpu", 1, name="up"), ({}, [(1, "1")])]
    day = Day()
    day.record()
    before = {name: set(each.rows) for name, each in day.recorder.recorded.items()}
    asked(day, lambda _: web.json_response(matrix(*strange)))
    after = {name: set(each.rows) - {("evicted", "")} for name, each in day.recorder.recorded.items()}
    assert after == before
    assert day.recorder.lacking == ""


def test_the_day_that_is_known_is_never_overwritten():
    day = Day()
    day.record()
    day.recorder.restore(A_QUOTA, ("used", "cpu"), {START: 9000, START - 2 * MINUTES: 9000}, 5)
    assert by_minute(day, 1)["resources"]["cpu"]["used"] == ["3"]
    assert day.ask("")["since"] == "2027-01-15T08:00:00Z"


@pytest.mark.parametrize("value", ["1e300", "-1", "1e23"])
def test_values_that_no_quantity_can_have_are_left_out(value):
    day = Day()
    names = [f"quotaward_elastic_quota_{each}" for each in ("used", "max")]
    asked(day, lambda _: web.json_response(matrix(*[used("cpu", 2, value, name=name) for name in names])))
    found = by_minute(day, 15)["resources"]["cpu"]
    assert found["used"] == ["2"] * 5 + [None] * 9 + ["3"]
    assert set(found["max"][4:]) == {"2", "4"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            lambda _: web.json_response({"status": "error", "error": "query timed out"}, status=503),
            "503: query timed out",
        ),
        (lambda _: web.Response(text="<html>"), "does not answer as Prometheus does (status 200)"),
        (lambda _: web.Response(body=b" " * (2**20 + 1)), "the answer is larger than 1048576 bytes"),
        (lambda _: web.json_response(matrix(({}, [(1, "soon")]))), "could not convert string to float: 'soon'"),
        (lambda _: web.json_response(matrix(({}, [("x", "1")]))), "does not answer as Prometheus does"),
    ],
    ids=["an error", "no JSON", "too large", "no number", "no time"],
)
def test_what_goes_wrong_is_named_and_nothing_waits_for_it(answer, said):
    day = Day()
    assert len(asked(day, answer)) == 1
    assert said in day.ask("")["incomplete"]
    assert day.ask("")["incomplete"].startswith("the time before the start is not known: http://127.0.0.1:")
    assert said.partition("'")[0] in day.client.get("/quotas/a/quota").text


def test_a_password_in_the_url_is_told_nobody():
    restorer = Restorer(Day().recorder, Day().store.cluster, "https://me:secret@prometheus.example/p?x")
    assert restorer._shown == "https://prometheus.example/p"


def test_it_gives_up_after_some_failures(monkeypatch):
    monkeypatch.setattr(prometheus, "AGAIN", 0.0)
    day = Day()
    day.record()
    asyncio.run(_fill_with_nobody_there(day))
    assert "Cannot connect" in day.recorder.lacking


async def _fill_with_nobody_there(day):
    restorer = Restorer(day.recorder, day.store.cluster, "http://127.0.0.1:1")
    async with prometheus.aiohttp.ClientSession() as session:
        await asyncio.wait_for(restorer._fill(session), 20)


def test_a_query_is_about_one_queue_or_quota_with_all_below_it():
    day = Day(quota('"};\\', max={"cpu": 1}))
    team = [each.text for each in queries(day.store.cluster, ("queue", "company"))]
    assert any('queue=~"company|team"' in query for query in team)
    evil = [each.text for each in queries(day.store.cluster, ("quota", '"};\\'))]
    assert json.loads(evil[0].partition("namespace=")[2].partition("}))")[0]) == '"};\\'
