"""The tree of queues as people see it: REST, status, the command, and the page."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from app import cli_output
from app.cli import app
from app.controllers.queue_status import status_of
from app.web import board
from tests.unit.app.given import client_of, namespace, node, pod, queue, store_with

QUEUE = "scheduling.volcano.sh/queue-name"


@pytest.fixture
def store():
    return store_with(
        node("n1", cpu=8, memory="8Gi"),
        queue("A", capability={"cpu": 6}),
        queue("a1", parent="A", weight=3),
        queue("a2", parent="A"),
        queue("lone"),
        namespace("a", **{QUEUE: "a1"}),
        pod("runs", requests={"cpu": 2}, nodeName="n1"),
        pod("waits", requests={"cpu": 7}),
    )


def test_numbers_of_a_queue_include_all_below_it(store):
    client = client_of(store)
    found = {each["name"]: each for each in client.get("/api/v1/queues").json()["items"]}
    assert {name: (each["parent"], each["children"]) for name, each in found.items()} == {
        "A": ("root", ["a1", "a2"]),
        "a1": ("A", []),
        "a2": ("A", []),
        "lone": ("root", []),
    }
    assert [found["A"][kind]["cpu"] for kind in ("request", "deserved", "allocated")] == ["6", "6", "2"]
    assert [found["a1"][kind]["cpu"] for kind in ("request", "deserved", "realCapability")] == ["9", "6", "6"]
    assert found["lone"]["allocated"].get("cpu", "0") == "0"


def test_the_status_has_the_place_in_the_tree_and_the_sums(store):
    status = status_of(store.cluster, "A")
    assert (status["parent"], status["children"]) == ("root", ["a1", "a2"])
    assert [status[kind]["cpu"] for kind in ("deserved", "allocated", "used")] == ["6", "2", "2"]


def test_the_command_draws_the_tree(store, capsys):
    cli_output.print_queue_tree(client_of(store).get("/api/v1/queues").json())
    drawn = capsys.readouterr().out
    assert drawn.index("├─ a1") < drawn.index("└─ a2") < drawn.index("lone")


def test_the_guarantee_of_a_parent_is_the_sum_of_its_children(capsys):
    store = store_with(
        node("n1", cpu=8),
        queue("A"),
        queue("a1", parent="A", guarantee={"resource": {"cpu": 2}}),
        queue("a2", parent="A", guarantee={"resource": {"cpu": 3}}),
    )
    document = client_of(store).get("/api/v1/queues").json()
    guarantees = [(each["guarantee"].get("cpu"), each["effectiveGuarantee"]["cpu"]) for each in document["items"]]
    assert guarantees == [(None, "5"), ("2", "2"), ("3", "3")]
    cli_output.print_queue_tree(document)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if " cpu " in line]
    assert [row[-2] for row in rows] == ["5", "2", "3"]
    for each in document["items"]:
        del each["effectiveGuarantee"]  # as an older server answers
    cli_output.print_queue_tree(document)
    assert [line.split()[-2] for line in capsys.readouterr().out.splitlines() if " cpu " in line] == ["-", "2", "3"]


def test_the_chart_of_a_story_has_the_use_of_departments(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    printed = CliRunner().invoke(app, ["simulate", str(Path(__file__).parents[3] / "examples/company")]).stdout
    peaks = re.findall(r"^queue (\w+) nvidia.com/gpu \(peak (\d)\)", printed, re.MULTILINE)
    assert peaks == [("product", "5"), ("research", "4"), ("search", "5"), ("speech", "3"), ("vision", "2")]


def test_the_page_says_what_stands_below_and_above_a_queue(store):
    page = client_of(store).get("/").text
    assert "2 queues below it" in page
    assert "below A" in page


def test_the_page_follows_what_changes_below_a_queue_and_where_queues_stand(store, monkeypatch):
    monkeypatch.setattr(board, "INTERVAL", 0)
    monkeypatch.setattr(board, "RESTRAINT", 0)
    client = client_of(store)
    assert _rows(client) == ["A", "a1", "a2", "lone"]
    before = client.get("/").text
    store.cluster.delete_pod("a/runs")
    rows_of_a = [page.partition(">A</a> <small>")[2].partition("<li id")[0] for page in (before, client.get("/").text)]
    assert rows_of_a[0] != rows_of_a[1]
    store.cluster.upsert_queue(replace(store.cluster.queues["lone"], parent="A"))
    store.cluster.upsert_queue(replace(store.cluster.queues["a1"], parent="lone"))
    assert _rows(client) == ["A", "a2", "lone", "a1"]
    assert "below A / lone" in client.get("/").text


def _rows(client):
    return re.findall(r"<h3><a [^>]*>(\w+)</a> <small>weight", client.get("/").text)


def test_an_explanation_names_the_queue_in_the_way(store):
    summary = client_of(store).get("/api/v1/pods/a/waits").json()["summary"]
    assert "Queue a1 of root/A/a1 is in the way" in summary


AS_FOR_VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: root}
spec: {reclaimable: false, weight: 1}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: default}
spec: {reclaimable: true, weight: 1, parent: root}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: child-queue-a}
spec: {reclaimable: true, parent: root, deserved: {cpu: 64, memory: 128Gi}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: subchild-queue-a1}
spec: {reclaimable: true, parent: child-queue-a, deserved: {cpu: 32, memory: 64Gi}, capability: {cpu: 48}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: subchild-queue-a2}
spec: {reclaimable: true, parent: child-queue-a, guarantee: {resource: {cpu: 8}}}
"""


def test_hierarchical_queues_of_volcano_work_unchanged():
    store = store_with(node("n1", cpu=64, memory="128Gi"), *yaml.safe_load_all(AS_FOR_VOLCANO))
    found = {each["name"]: each for each in client_of(store).get("/api/v1/queues").json()["items"]}
    assert {name: each["children"] for name, each in found.items() if each["children"]} == {
        "root": ["child-queue-a", "default"],
        "child-queue-a": ["subchild-queue-a1", "subchild-queue-a2"],
    }
    assert {condition["type"] for each in found.values() for condition in each["conditions"]} == {"NotEnforced"}
    assert found["child-queue-a"]["deserved"]["cpu"] == found["subchild-queue-a2"]["guarantee"]["cpu"] == "8"
