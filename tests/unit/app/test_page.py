"""The page as a browser gets it, without one; tests/browser looks at it in a real one."""

import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from app import cli
from app.readiness import Readiness
from app.settings import Settings
from app.web import figures, waiting
from app.web.rendering import amount, rounded_duration
from app.web.routes import Web
from policy.objects.reservation import STARVING, PodName, Reservation
from policy.stepwise import at_once
from tests.browser.story import HOSTILE, everything, hostile
from tests.unit.app.forwarding import Forwarding
from tests.unit.app.given import client_of, empty_store, namespace, node, pod, queue, quota, refused, store_with
from tests.unit.app.situations import situations

PAGES = ["/", "/?q=team&show=full", "/pods/a/p", "/pods/a/unknown", "/jobs/a/unknown", "/docs", "/pods?name=nothing"]
PAGES += ["/namespaces/a", "/queues/unknown", "/nodes/unknown", "/quotas/a/unknown", "/gangs/a/kind/unknown"]
INLINE = {"a", "b", "code", "small", "span", "strong"}
STATIC = Path(figures.__file__).parent / "static"


class Parsed(HTMLParser):
    """The elements of a document with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self._hidden = [], "", 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.text += "" if tag in INLINE else " "

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self):
        return " ".join(self.text.split())


def page(*items, path="/"):
    answer = client_of(store_with(*items)).get(path)
    assert answer.status_code == 200, answer.text
    return Parsed(answer.text)


def cards(parsed):
    return [card for card in parsed.all("li") if card.get("class") == "card"]


def served(folder, fill):
    from app.sources.manifests import ManifestSource  # noqa: PLC0415

    fill(folder)
    store = empty_store()
    ManifestSource(folder, store)
    for _ in store.cluster.divide_steps():
        pass
    return client_of(store)


def test_a_quota_is_shown_in_words_beside_its_bar():
    words = page(
        node("n1"), quota("a", min={"cpu": 1}, max={"cpu": 4}), pod("p", requests={"cpu": "1500m"}, nodeName="n1")
    ).words
    assert "cpu used 1.5, min 1, borrowed 0.5, max 4" in words


def test_of_what_nobody_lends_nothing_is_borrowed():
    words = page(node("n1"), quota("a", max={"cpu": 4}), pod("p", nodeName="n1")).words
    assert "cpu used 1, max 4" in words


def test_a_queue_is_shown_with_its_namespaces():
    words = page(
        node("n1"),
        queue("q", weight=2),
        namespace("a", **{"scheduling.volcano.sh/queue-name": "q"}),
        pod("p", nodeName="n1"),
    ).words
    assert "q weight 2 cpu used 1, deserved 1, capability 4" in words
    assert "1 namespace a weight 1, share 25.0%" in words


def test_of_what_no_node_has_a_queue_may_have_nothing():
    asks = pod("p", requests={"cpu": 1, "hugepages-2Mi": 1, "example.com/x": 1})
    belongs = namespace("a", **{"scheduling.volcano.sh/queue-name": "q"})
    has_none = node("n1", **{"cpu": 4, "hugepages-2Mi": 0})
    store = store_with(has_none, queue("q"), quota("other", max={"example.com/x": 4}), belongs, asks)
    at_once(store.cluster.divide_steps())
    client = client_of(store)
    most = client.get("/api/v1/queues/q").json()["realCapability"]
    assert most["hugepages-2Mi"] == "0"
    assert "example.com/x" not in most, "of an extended resource that no node lists it is not known what there is"
    words = Parsed(client.get("/").text).words
    assert "hugepages-2Mi used 0, deserved 0, asked for 1, capability 0" in words
    assert "example.com/x used 0, asked for 1" in words


def test_who_waits_is_named_with_the_rule_and_a_link_to_the_explanation():
    shown = page(node("n1"), quota("a", max={"cpu": 0}), refused(pod("p")))
    assert "a/p ElasticQuota max exceeded: cpu" in shown.words
    assert "./pods/a/p" in [link["href"] for link in shown.all("a")]


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([pod("p")], "no rule refuses it; no scheduler has tried it yet"),
        ([refused(pod("p"))], "no rule refuses it any more; the scheduler has to try it again"),
        ([refused(pod("p"), "0/1 nodes are available: taints")], "the scheduler says: 0/1 nodes are available: taints"),
        ([refused(pod("p"), "node(s) resource was(were) reserved")], "node(s) resource was(were) reserved"),
    ],
)
def test_why_somebody_waits_whom_no_number_keeps_out(items, why):
    assert f"a/p {why}" in page(node("n1"), *items).words


def test_of_many_who_wait_the_first_in_turn_are_shown_and_all_are_counted(monkeypatch):
    monkeypatch.setattr(waiting, "SHOWN", 2)
    monkeypatch.setattr(waiting, "SLICE", 2)
    pods = [refused(pod(f"p{number}", priority=number)) for number in range(7)]
    words = page(quota("a", max={"cpu": 0}), *pods).words
    assert "elastic-quota-max 7 pods" in words
    assert "a/p6" in words
    assert "a/p5" in words
    assert "a/p4" not in words


def test_of_very_many_quotas_and_queues_the_first_are_shown_and_all_are_counted(monkeypatch):
    monkeypatch.setattr("app.web.overview.ROWS", 2)
    shown = page(*(quota(name) for name in "abcd"), *(queue(name) for name in "uvwx"))
    assert [card["data-name"] for card in cards(shown)] == ["a quota", "b quota", "u", "v"]
    assert "Quotas 4 The first 2 namespaces are shown" in shown.words
    assert "Queues 4 The first 2 are shown" in shown.words


def test_who_lent_to_whom_names_both_sides_and_no_quota_that_is_not_in_force():
    words = page(
        node("n1"),
        quota("a", min={"cpu": 1}, created="2026-01-01T00:00:00Z"),
        quota("a", "late", min={"cpu": 9}, created="2026-01-02T00:00:00Z"),
        quota("b", min={"cpu": 3}),
        pod("p", requests={"cpu": 3}, nodeName="n1"),
    ).words
    assert "2 borrowed by a 2 3 left unused by b 3" in words


def test_a_filter_works_without_a_script():
    items = [quota("a", max={"cpu": 1}), quota("b", max={"cpu": 1}), refused(pod("p", "b")), refused(pod("q", "a"))]
    shown = page(*items, path="/?q=B")
    assert [("hidden" in card, card["data-name"]) for card in cards(shown)] == [(True, "a quota"), (False, "b quota")]
    assert "b/p" in shown.words
    assert "a/q" not in shown.words
    full = page(node("n1"), *items, pod("r", "a", nodeName="n1"), path="/?show=full")
    assert [card["data-name"] for card in cards(full) if "hidden" not in card] == ["a quota"]


def test_who_waits_of_those_that_are_asked_for_can_be_had_alone():
    client = client_of(store_with(pod("p", "a"), pod("q", "b")))
    every, some = (Parsed(client.get(path).text) for path in ("/waiting", "/waiting?q=A%2F"))
    assert "a/p" in every.words
    assert "b/q" in every.words
    assert "a/p" in some.words
    assert "b/q" not in some.words
    assert some.all("section")[0]["id"] == "waiting"
    assert some.all("html") == []


def test_a_picture_that_is_not_complete_is_shown_with_a_warning():
    shown = Parsed(client_of(empty_store()).get("/").text)
    assert "What you see may be wrong: not synced" in shown.words


def test_the_page_says_that_no_scheduler_calls(monkeypatch):
    monkeypatch.setattr("app.web.parts._samples", lambda _: [])
    assert "No scheduler has called filter yet." in page().words


def test_the_explanation_of_a_pod_has_a_page_with_rule_numbers_and_remedies():
    words = page(node("n1"), quota("a", max={"cpu": 0}), pod("p"), path="/pods/a/p").words
    assert "refused by elastic-quota-max: ElasticQuota max exceeded: cpu" in words
    assert "raise max of cpu in ElasticQuota a/quota from 0 to at least 1" in words
    assert "request 1" in words


def test_in_observe_mode_everybody_is_told_that_the_pod_would_be_refused():
    client = client_of(store_with(quota("a", max={"cpu": 0}), pod("p"), pod("q", "b")), observe=True)
    why = "would be refused by elastic-quota-max: ElasticQuota max exceeded: cpu (observe mode: nobody is refused)"
    shown = client.get("/api/v1/pods/a/p").json()
    assert shown["verdict"] == "would-refuse"
    assert shown["summary"].startswith(f"a/p {why}. cpu: request 1, used 0, max 0.")
    assert shown["remedies"]
    page = Parsed(client.get("/pods/a/p").text)
    assert f"a/p {why}" in page.words
    assert {"class": "verdict would-refuse"} in page.all("p")
    with Forwarding(client) as server:
        told = CliRunner().invoke(cli.app, ["explain", "a/p", "--server", server.url]).output
    assert told.startswith(f"a/p {why}.")
    assert client.get("/api/v1/pods/b/q").json()["summary"].startswith("b/q is admissible: ")


@pytest.mark.parametrize("path", ["/", "/?q=a"])
def test_in_observe_mode_nobody_waits_for_a_rule(path):
    waiting = [pod("new"), refused(pod("tried"), "no cpu"), refused(pod("before"))]
    words = Parsed(client_of(store_with(quota("a", max={"cpu": 0}), *waiting), observe=True).get(path).text).words
    would_be = "(observe mode: it would be refused: ElasticQuota max exceeded: cpu)"
    assert f"a/new no scheduler has tried it yet {would_be}" in words
    assert f"a/tried the scheduler says: no cpu {would_be}" in words
    assert f"a/before the scheduler has to try it again {would_be}" in words
    assert "not tried yet 1 pod" in words


def test_the_explanation_names_holders_next_steps_and_tried_remedies(monkeypatch):
    explained = SimpleNamespace(
        namespace="a",
        name="p",
        verdict="refused",
        rule="r",
        message="m",
        outlook="",
        searched="out-of-time",
        numbers={},
        next=[
            SimpleNamespace(text="a node is reserved for it", in_seconds=7200.0),
            SimpleNamespace(text="x", in_seconds=None),
        ],
        remedies=[
            SimpleNamespace(text="raise max", tried="with-all", commands=[]),
            SimpleNamespace(text="add a node", tried="alone", commands=[]),
            SimpleNamespace(text="wait", tried="no", commands=[]),
        ],
        holders=[
            SimpleNamespace(
                kind="Queue", name="q", resource="cpu", used="4", bound="2", over="2", pods=["b/v"], number=3
            )
        ],
    )

    async def explain(*_):
        return explained

    monkeypatch.setattr("app.web.routes.explain_pod", explain)
    words = page(path="/pods/a/p").words
    assert "a node is reserved for it (in 2 h) x What would" in words
    assert (
        "raise max tried: it runs add a node tried for this pod alone wait not tried The time to try remedies was over"
        in words
    )
    assert "Queue q cpu 4 2 2 b/v and 2 more" in words


@pytest.mark.parametrize("name", situations())
def test_every_figure_of_an_explanation_is_said_what_it_is(name):
    client = client_of(store_with(*situations()[name]))
    numbers = client.get("/api/v1/pods/b/p").json()["numbers"]
    words = Parsed(client.get("/pods/b/p").text).words
    for resource, row in numbers.items():
        assert resource in words
        for figure in row:
            assert figures.MEANINGS[figure] in words


def test_the_latest_decisions_are_shown_with_a_link_to_the_pod():
    def decided(name, verdict, refused):
        return SimpleNamespace(at=1.0, namespace="a", name=name, verdict=verdict, refused=refused)

    refusal = SimpleNamespace(message="ElasticQuota max exceeded: cpu")
    web = Web.over(
        Readiness(store_with()), Settings(), [decided("p", "refused", refusal), decided("q", "admitted", None)]
    )
    asyncio.run(web.board.refresh())
    words = Parsed(web.board.html("decisions")).words
    assert "a/p refused ElasticQuota max exceeded: cpu 1970-01-01 00:00:01 UTC a/q admitted" in words


@pytest.mark.parametrize(
    ("job", "uid", "path"),
    [("pods/p", "a/p", "/pods/a/p"), ("pods/job/p", "job/u/0", "/jobs/a/p")],
    ids=["a pod", "a pod that its Job has not made yet"],
)
def test_a_reservation_leads_to_whom_it_is_for(job, uid, path):
    store = store_with(node("n1"), pod("p"))
    store.cluster.upsert_reservation(Reservation("r", PodName("a", "p", uid), "n1", (), 0.0, STARVING, job=job))
    for page in ("/", "/nodes/n1"):
        assert f'{path}">a/p</a>' in client_of(store).get(page).text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 s"), (89, "89 s"), (90, "2 min"), (5400, "2 h"), (129600, "2 days"), (1e9, "11574 days")],
)
def test_a_time_to_come_is_told_in_a_unit_of_its_size(seconds, text):
    assert rounded_duration(seconds) == text


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 1, "0.001"),
        ("memory", 2**30, "1Gi"),
        ("memory", 1_234_567_890, "1.15Gi"),
        ("memory", 1023 * 2**20, "1023Mi"),
        ("memory", 2**63 - 1, "8Ei"),
        ("pods", 110, "110"),
    ],
)
def test_an_amount_is_told_to_three_digits(resource, value, text):
    assert amount(resource, value) == text


def test_a_pod_that_is_not_known_is_not_found():
    answer = client_of(store_with()).get("/pods/a/p")
    assert answer.status_code == 404
    assert "no pod p in namespace a is known" in answer.text


def test_a_name_leads_to_the_explanation_and_nowhere_else():
    client = client_of(store_with())
    assert client.get("/pods?name=a/p").headers["location"] == "pods/a/p"
    assert client.get("/pods?name=//evil.example/p").status_code == 422
    assert client.get("/pods?name=a//evil.example").headers["location"] == "pods/a/%2Fevil.example"
    assert client.get("/pods?name=a/job/p").headers["location"] == "jobs/a/p"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_nothing_from_elsewhere_and_runs_nothing_but_files(path):
    answer = client_of(store_with(pod("p"))).get(path)
    parsed = Parsed(answer.text)
    sources = [attributes.get("src") for attributes in parsed.all("script")]
    assert all(sources), "a script stands in the page"
    linked = [*sources, *(link["href"] for link in parsed.all("link"))]
    assert all(re.fullmatch(r"[./]*static/[\w./-]+", each) for each in linked)
    assert all((STATIC / each.split("static/")[1]).is_file() for each in linked)
    assert parsed.all("style") == []
    assert not [attributes for _, attributes in parsed.elements if {"style", "onclick"} & attributes.keys()]


@pytest.mark.parametrize("path", [*PAGES, "/static/page.js", "/live/pods/a/p", "/live/jobs/a/p"])
def test_every_answer_carries_the_headers_that_keep_others_out(path):
    client = client_of(store_with(pod("p")))
    client.app.state.readiness.stopping = True
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'self';" in policy


@pytest.mark.parametrize(
    "path", ["/", "/?q=%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "/?q=%22%3E%3Cb%3E"]
)
def test_hostile_names_stay_text(tmp_path, path):
    answer = served(tmp_path, hostile).get(path)
    parsed = Parsed(answer.text)
    assert parsed.all("img") == []
    assert parsed.all("b") == [
        attributes for attributes in parsed.all("b") if attributes.get("class", "over") == "over"
    ]
    assert {attributes["src"].rpartition("/")[2] for attributes in parsed.all("script")} == {
        "page.js",
        "idiomorph.min.js",
    }
    if path == "/":
        assert HOSTILE in parsed.text


def test_hostile_names_stay_text_in_the_explanation(tmp_path):
    answer = served(tmp_path, hostile).get("/pods/%3Cimg%20src=x%20onerror=alert(1)%3E/%22%3E%3Cimg%3E")
    parsed = Parsed(answer.text)
    assert parsed.all("img") == []
    assert "<img src=x onerror=alert(1)>" in parsed.text


def test_everything_that_the_page_shows_is_shown(tmp_path):
    words = Parsed(served(tmp_path, everything).get("/").text).words
    for expected in (
        "search/embed-3 ElasticQuota max exceeded: nvidia.com/gpu",
        "physics/sim-2 research Queue deserved exceeded: cpu",
        "speech/serve-2 the scheduler says: 0/6 nodes are available: 6 Insufficient nvidia.com/gpu.",
        "A place is kept for it on gpu-3.",
        "nvidia.com/gpu used 18, min 12, borrowed 6, max 24",
        "gpu-6 ranking/rank-7 ranking/rank-7 has waited for too long nobody",
        "gpu-3 speech/serve-2 speech/serve-2 takes back what was lent vision/train-3",
        "ElasticQuota quota of this namespace is older and in force",
    ):
        assert expected in words
