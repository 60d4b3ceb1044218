"""Bodies beyond any real one are refused before much is made of them, and nothing of them is kept."""

import asyncio
import gc
import json
import tracemalloc

import httpx
import msgspec
import pytest

from app import bodies
from app.api import whatif
from app.observability import metrics
from app.settings import Settings
from policy.stepwise import at_once
from tests.unit.app.given import client_of, node, pod, quota, store_with
from tests.unit.app.lines import longest_step

WHATIF, REVIEW, FILTER = "/api/v1/whatif", "/admission/gate", "/extender/filter"
LIMIT = 4 * 2**20
MOST = LIMIT // bodies.BYTES_PER_ITEM


def items(number, item=b"0"):
    return b"[" + b",".join([item] * number) + b"]"


def review_of(spec):
    return b'{"request":{"uid":"u","object":{"metadata":{"name":"p"},"spec":' + spec + b"}}}"


def refused(reason):
    return metrics.BODIES_REFUSED.labels(reason)._value.get()


@pytest.mark.parametrize(
    ("path", "setting", "limit"),
    [
        (WHATIF, "whatif.bodyLimit", LIMIT),
        (REVIEW, "gates.bodyLimit", LIMIT),
        (FILTER, "extender.bodyLimit", Settings().extender.body_limit),
    ],
)
def test_a_body_that_is_too_large_is_refused_by_the_setting_that_says_so(path, setting, limit):
    before = refused("too-large")
    answer = client_of(store_with()).request("POST", path, content=b" " * (limit + 1))
    assert (answer.status_code, answer.json()["detail"]) == (413, f"the body is larger than {limit} bytes ({setting})")
    assert refused("too-large") == before + 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (WHATIF, b'{"apply":' + items(MOST) + b"}"),
        (WHATIF, b'{"apply":[{"kind":"Pod","metadata":{"name":"p"},"spec":' + items(MOST // 2, b"{}") + b"}]}"),
        (WHATIF, b'{"apply":[{"kind":"Pod","metadata":{"name":"p"},"spec":' + items(bodies.WIDEST) + b"}]}"),
        (WHATIF, b'{"apply":[' + items(5, b"[" * 60 + b"]" * 60 + b"," + items(MOST // 60)) + b"]}"),
        (REVIEW, review_of(items(MOST))),
        (REVIEW, review_of(b'{"containers":' + items(MOST // 2, b"{}") + b"}")),
    ],
)
def test_a_body_with_more_items_than_any_real_one_is_refused_before_decoding(path, body, monkeypatch):
    decoded = []

    def decode(raw, **_):
        decoded.append(len(raw))
        raise AssertionError("it is decoded")

    monkeypatch.setattr(msgspec.json, "decode", decode)
    monkeypatch.setattr(whatif, "_anything", msgspec.json.Decoder(int))
    before = refused("too-wide")
    answer = client_of(store_with()).request("POST", path, content=body)
    assert (answer.status_code, decoded) == (422, [])
    assert "more than" in answer.json()["detail"]
    assert refused("too-wide") == before + 1


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (WHATIF, b'{"apply":' + b"[" * 90_000, None),
        (
            WHATIF,
            b'{"apply":[{"kind":"Pod","metadata":{"name":"p"},"spec":' + b"[" * 64 + b"]" * 64 + b"}]}",
            "apply[0]",
        ),
        (WHATIF, b'{"remove":[{"kind":"Pod","name":"p"},' + b'{"a":' * 65 + b"{}" + b"}" * 65 + b"]}", "remove[1]"),
        (REVIEW, review_of(b'{"what":[' + b"[" * 100_000), None),
    ],
)
def test_what_is_nested_deeper_than_any_real_object_is_refused(path, body, field):
    before = refused("too-deep")
    client = client_of(store_with(pod("p", "default")))
    answer = client.request("POST", path, content=body)
    assert (answer.status_code, answer.json().get("field")) == (422, field)
    assert "deep" in answer.json()["detail"]
    assert refused("too-deep") == before + 1


def test_a_body_of_real_objects_is_taken_up_to_the_limit_however_small_its_pieces():
    one = json.dumps(pod("p", labels={"app": "x"}), separators=(",", ":")).encode()
    body = b'{"apply":' + items(LIMIT // (len(one) + 1) - 1, one) + b"}"
    assert LIMIT - 2 * len(one) < len(body) <= LIMIT
    assert len(at_once(whatif._read_steps(body, MOST))) == LIMIT // (len(one) + 1) - 1
    few = whatif._read_steps(b'{"apply":' + items(5, one) + b"}", MOST)
    many = whatif._read_steps(b'{"apply":' + items(500, one) + b"}", MOST)
    assert longest_step(many) <= longest_step(few)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            WHATIF,
            b'{"apply":[{"kind":"Pod","metadata":{"name":"p","annotations":{"a":"' + b"x" * (LIMIT - 100) + b'"}}}]}',
        ),
        (WHATIF, b'{"apply":[' + b" " * LIMIT),
        (WHATIF, b'{"apply":' + items(MOST) + b"}"),
        (REVIEW, review_of(items(MOST))),
        (FILTER, b" " * LIMIT),
    ],
)
def test_nothing_of_a_large_body_is_kept_when_it_was_answered(path, body):
    client = client_of(store_with(node("n1"), quota("a", max={"cpu": 2})))
    scope = {}

    async def story():
        async def ask():
            await client.app(scope | {"state": state}, receive, send)

        async def receive():
            return {"type": "http.request", "body": bytes(bytearray(body))}

        async def send(_):
            pass

        state = {}
        request = httpx.Request("POST", f"http://quotaward{path}")
        scope.update(type="http", method="POST", path=path, raw_path=path.encode(), query_string=b"", headers=[])
        scope.update(http_version="1.1", scheme="http", client=("10.0.0.1", 1), server=("x", 80), root_path="")
        assert request
        await ask()
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        await ask()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return kept, state

    kept, state = asyncio.run(story())
    assert kept < LIMIT // 20
    assert state == {}


def test_who_sends_reviews_without_an_end_is_refused_and_others_are_answered():
    app = client_of(store_with()).app
    review = json.dumps({"request": {"uid": "u", "object": pod("p")}}).encode()

    async def ask(address, content):
        transport = httpx.ASGITransport(app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://quotaward") as http:
            return (await http.post(REVIEW, content=content)).status_code

    async def slowly():
        yield b" " * (LIMIT - 1)
        await asyncio.Event().wait()

    async def story(clients):
        slow = [asyncio.create_task(ask(f"10.0.1.{number % clients}", slowly())) for number in range(40)]
        while not any(task.done() for task in slow):
            await asyncio.sleep(0)
        answers = [await ask("10.0.0.1", review), await ask("10.0.1.0", review)]
        refused = [task.result() for task in slow if task.done()]
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        return answers, set(refused), await ask("10.0.1.0", review)

    assert asyncio.run(story(1)) == ([200, 503], {503}, 200)
    assert asyncio.run(story(40)) == ([503, 503], {503}, 200)
    assert app.state.room._taken == {}
