"""Pages of a queue, a quota, a namespace, a node and a pod group, as a browser gets them."""

import re
from urllib.parse import quote

import pytest

from app.pause import Pause
from app.web import subject, subject_tables, tables
from app.web.figures import Bar
from policy.nodes.table import NodeTable
from policy.stepwise import at_once
from tests.unit.app.given import client_of, namespace, node, pod, pod_group, queue, quota, refused, see, store_with
from tests.unit.app.test_page import Parsed

BELONGS = {"scheduling.volcano.sh/queue-name": "team"}
GROUPS = "podgroups.scheduling.x-k8s.io"
EVIL = "<img src=x onerror=alert(1)>\"'&"


def read(client, path, status=200):
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return Parsed(answer.text)


def cluster(*more):
    tree = [queue("company"), queue("team", parent="company"), queue("other")]
    items = [
        node("n1"),
        node("n2"),
        *tree,
        namespace("a", **BELONGS),
        quota("a", min={"cpu": 1}, max={"cpu": 2}),
        pod("runs", requests={"cpu": "3"}, nodeName="n1"),
        refused(pod("waits", requests={"cpu": "1"})),
    ]
    store = store_with(*items, *more)
    at_once(store.cluster.divide_steps())
    return client_of(store)


def without_time(words):
    return re.sub(r"\d\d:\d\d:\d\d", "", words)


def two_rows(monkeypatch):
    """Tables have at most two rows."""
    for module in (tables, subject_tables):
        monkeypatch.setattr(module, "ROWS", 2)


def test_a_queue_shows_what_is_below_it_who_is_in_it_and_who_waits():
    for name in ("team", "company"):
        words = read(cluster(), f"/queues/{name}").words
        assert "cpu used 3" in words
        assert "a/waits 1 team" in words
        assert "a/runs 1 n1 cpu 3" in words
    assert "Queues below it 1" in words
    assert "Nobody waits. Who is in it 0" in read(cluster(), "/queues/other").words


def test_between_the_pods_of_two_namespaces_others_have_their_turn(monkeypatch):
    events = []

    class Noted(Pause):
        async def if_due(self):
            events.append("pause")
            return await super().if_due()

    in_namespaces = NodeTable.in_namespaces
    monkeypatch.setattr(NodeTable, "in_namespaces", lambda *given: events.append("read") or in_namespaces(*given))
    client = cluster(namespace("b", **BELONGS), pod("runs", "b", nodeName="n2"))
    for module in (tables, subject_tables):
        monkeypatch.setattr(module, "Pause", Noted)
    events.clear()
    words = read(client, "/queues/team").words
    assert "a/runs 1 n1" in words
    assert "b/runs 1 n2" in words
    assert events[-8:] == [*["read", "pause", "pause"] * 2, "pause", "pause"]  # the last two: for each row


def test_a_quota_above_its_max_looks_different_from_a_full_one():
    above = read(cluster(), "/quotas/a/quota")
    assert "borrowed 2, max 2, 1 above max" in above.words
    assert [each for each in above.all("rect") if each["class"] == "beyond"]
    full = cluster(quota("b", max={"cpu": 1}), pod("f", "b", {"cpu": "1"}, nodeName="n2"))
    assert [each for each in read(full, "/quotas/b/quota").all("rect") if each["class"] == "beyond"] == []
    overview = read(full, "/").words
    assert "a quota 1 waiting above its limit" in overview
    assert "b quota full" in overview


@pytest.mark.parametrize(
    ("bar", "scale"),
    [
        (Bar("cpu", 40, own=60, most=10_000, wanted=80), 100),
        (Bar("cpu", 40, own=60, most=90, wanted=80), 90),
        (Bar("cpu", 40, own=60, most=10_000), 10_000),
        (Bar("cpu", 200, own=60, most=90), 200),
    ],
)
def test_a_bar_of_a_queue_is_scaled_by_what_is_used_deserved_and_asked(bar, scale):
    assert bar.scale == scale


def test_the_scarce_resource_comes_first():
    words = read(cluster(), "/nodes/n1").words
    assert words.index("cpu used 3, allocatable 4") < words.index("memory used 0")


def test_a_namespace_leads_to_its_queue_and_quota():
    parsed = read(cluster(), "/namespaces/a")
    hrefs = {each["href"] for each in parsed.all("a")}
    assert {"../queues/team", "../quotas/a/quota", "../pods/a/waits", "../nodes/n1"} <= hrefs
    assert "kubectl get namespace a -o yaml" in parsed.words


def test_a_gang_is_one_row_with_a_page_of_its_members():
    store = store_with(node("n1"), namespace("a"))
    member = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
    members = [pod(f"m{n}", metadata=member | {"uid": f"m{n}"}, nodeName="n1") for n in range(3)]
    see(store, pod_group("g"), *members)
    client = client_of(store)
    parsed = read(client, "/namespaces/a")
    assert "a/g 3 n1" in parsed.words
    assert f"../gangs/a/{GROUPS}/g" in {each["href"] for each in parsed.all("a")}
    assert "m1 runs n1" in read(client, f"/gangs/a/{GROUPS}/g").words


def test_lists_are_bounded_and_have_a_next_page(monkeypatch):
    two_rows(monkeypatch)
    client = cluster(
        *(pod(f"p{number}", requests={"cpu": 0}, nodeName="n2") for number in range(3)),
        *(refused(pod(f"w{number}")) for number in range(2)),
    )
    seen, path = [], "/namespaces/a"
    for param in ("placed", "waiting"):
        following = path
        while following:
            parsed = read(client, following)
            seen += [each["href"].rpartition("/")[2] for each in parsed.all("a") if each["href"].startswith("../pods/")]
            following = next(
                (path + each["href"].partition("#")[0] for each in parsed.all("a") if f"?{param}=" in each["href"]), ""
            )
    assert set(seen) == {"runs", "waits", "p0", "p1", "p2", "w0", "w1"}


@pytest.mark.parametrize(
    "path", ["/queues/none", "/nodes/none", "/namespaces/none", "/quotas/a/none", "/gangs/a/k/none"]
)
def test_what_is_not_known_is_not_found(path):
    assert "there is no" in read(cluster(), path, 404).words


@pytest.mark.parametrize("path", ["queues", "nodes", "namespaces", "quotas/{0}", f"gangs/{{0}}/{GROUPS}"])
def test_hostile_names_stay_text_on_each_page(path):
    store = store_with(
        node(EVIL),
        queue(EVIL),
        namespace(EVIL, **{"scheduling.volcano.sh/queue-name": EVIL}),
        quota(EVIL, EVIL, max={EVIL: 1}),
        refused(pod("w", EVIL), EVIL),
        pod("r", EVIL, nodeName=EVIL),
        pod_group(EVIL) | {"metadata": {"name": EVIL, "namespace": EVIL}},
    )
    at_once(store.cluster.divide_steps())
    evil = quote(EVIL, safe="")
    parsed = read(client_of(store), f"/{path.format(evil)}/{evil}?waiting=&placed={evil}")
    assert parsed.all("img") == []
    assert EVIL in parsed.text
    assert not [attributes for _, attributes in parsed.elements if "onerror" in attributes]


def test_a_compact_table_shows_dozens_of_queues_in_the_order_of_the_tree(monkeypatch):
    two_rows(monkeypatch)
    client = cluster()
    assert "queues" in {each["href"] for each in read(client, "/").all("a")}
    first = read(client, "/queues")
    assert "All queues 3" in first.words
    assert "company/team 1 cpu 3" in first.words
    assert {"./queues/company", "./queues/team"} <= {each["href"] for each in first.all("a")}
    following = next(each["href"] for each in first.all("a") if "?queues=" in each["href"])
    assert "other 1" in read(client, "/queues" + following.partition("#")[0]).words


def test_who_waits_is_sorted_by_the_server_and_stays_so_on_the_next_page(monkeypatch):
    two_rows(monkeypatch)
    client = cluster(*(refused(pod(name)) for name in ("b", "c", "d")))
    first = read(client, "/namespaces/a?sort=name")
    assert "Job ▲" not in first.words
    assert [each["aria-sort"] for each in first.all("th") if "aria-sort" in each] == ["ascending"]
    assert {"?sort=pods#waiting", "?sort=since#waiting"} <= {each["href"] for each in first.all("a")}
    following = next(each["href"] for each in first.all("a") if "&waiting=" in each["href"])
    words = read(client, "/namespaces/a" + following.partition("#")[0]).words
    assert "a/d" in words
    assert "a/waits" in words
    assert "a/b" not in words
    by_nonsense, by_default = (read(client, f"/namespaces/a{query}").words for query in ("?sort=nonsense", ""))
    assert without_time(by_nonsense) == without_time(by_default)


def test_a_table_can_be_sorted_in_the_browser_only_if_all_its_rows_are_there(monkeypatch):
    def sortable(client):
        page = client.get("/namespaces/a").text.partition('id="placed"')[2].partition("</section>")[0]
        return '<button class="sort">' in page

    more = [pod(f"p{number}", requests={"cpu": 0}, nodeName="n2") for number in range(3)]
    assert sortable(cluster(*more))
    two_rows(monkeypatch)
    assert not sortable(cluster(*more))


def test_the_expected_start_stands_beside_who_waits():
    run_time = {"annotations": {"quotaward.dev/run-time": "1h"}, "uid": "ends"}
    client = cluster(quota("b", max={"cpu": 9}), pod("ends", "b", {"cpu": "4"}, run_time, nodeName="n2"))
    assert "Expected start" in read(client, "/namespaces/a").words


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/queues/team", "kind: Queue"),
        ("/quotas/a/quota", "kind: ElasticQuota"),
        ("/namespaces/a", "scheduling.volcano.sh/queue-name: team"),
        ("/nodes/n1", "kind: Node"),
    ],
)
def test_the_object_stands_there_as_yaml(path, line):
    parsed = read(cluster(), path)
    assert line in parsed.text
    assert [each for each in parsed.all("button") if each.get("aria-label") == "Copy the YAML"]


def test_a_long_object_is_cut(monkeypatch):
    monkeypatch.setattr(subject, "LINES", 3)
    assert "# and more" in read(cluster(), "/quotas/a/quota").text
