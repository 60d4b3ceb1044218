"""The dashboard and the alerts ask only for what there is, and the documentation names them all."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from app.cli import app
from tests.monitoring.files import alerts, dashboard, panels
from tests.unit.app.given import client_of, namespace, node, pod, queue, quota, store_with

DOCS = Path(__file__).parents[2] / "docs"
TROUBLESHOOTING = (DOCS / "troubleshooting.md").read_text()
PRODUCTION = (DOCS / "production.md").read_text()
ASKED = [(rule["alert"], rule["expr"]) for rule in alerts()] + list(panels())


@pytest.fixture(scope="module")
def exported():
    """The metrics that a server has, each with the names of its labels as far as there are samples."""
    from app.observability import metrics, wait_times  # noqa: PLC0415 - nothing is counted while tests are collected

    assert metrics
    wait_times.WAIT_TIMES.observe("q", "a", 1.0)
    store = store_with(
        node("n1"),
        quota("a", min={"cpu": 1}, max={"cpu": 2}),
        queue("q", guarantee={"resource": {"cpu": 1}}),
        namespace("a", **{"scheduling.volcano.sh/queue-name": "q"}),
        pod("p", nodeName="n1"),
    )
    client = client_of(store)
    client.ask("filter", {"Pod": pod("x"), "NodeNames": ["n1"]})
    labels = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        names = {family.name, *(sample.name for sample in family.samples)}
        if family.type == "counter":
            names.add(f"{family.name}_total")
        for name in names:
            labels[name] = {label for sample in family.samples for label in sample.labels}
    return labels


@pytest.mark.parametrize(("title", "expression"), ASKED, ids=[title for title, _ in ASKED])
def test_every_metric_that_is_asked_for_exists(exported, title, expression):
    found = re.findall(r"(quotaward_\w+)(?:\{([^}]*)\})?", expression)
    assert found
    for name, selector in found:
        assert name in exported
        if exported[name]:
            assert set(re.findall(r"(\w+)[=!]", selector)) <= exported[name]


def test_every_metric_that_a_server_has_is_described(exported):
    text = (DOCS / "reference.md").read_text()
    ours = {name for name in exported if name.startswith("quotaward_")}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in ours}
    missing = [name for name in sorted(families) if f"`{name}`" not in text and f"`{name}_total`" not in text]
    assert missing == []


@pytest.mark.parametrize("alert", [rule["alert"] for rule in alerts()])
def test_every_alert_is_described_and_says_what_it_means(alert):
    [rule] = [each for each in alerts() if each["alert"] == alert]
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert f"| `{alert}` |" in (DOCS / "monitoring.md").read_text()


def test_a_panel_has_a_place_of_its_own():
    taken = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(dashboard()["panels"])


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_leads_to_its_section_with_three_commands(rule):
    name = rule["alert"]
    assert rule["annotations"]["runbook_url"].endswith(f"/docs/troubleshooting/#{name.lower()}")
    section = TROUBLESHOOTING.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert section.startswith("\n**Meaning.** ")
    assert len(re.findall(r"^ {4}\S", section, re.MULTILINE)) == 3
    assert "\n**Remedy.** " in section


def test_every_section_on_troubles_is_that_of_an_alert():
    assert re.findall(r"^## (\w+)$", TROUBLESHOOTING, re.MULTILINE) == [rule["alert"] for rule in alerts()]


def quotaward_commands():
    for line in re.findall(r"^ {4,7}quotaward (.+)$", TROUBLESHOOTING + PRODUCTION, re.MULTILINE):
        yield line.partition(" ")[0], line


@pytest.mark.parametrize(("command", "line"), sorted(set(quotaward_commands())))
def test_each_command_on_troubles_and_before_production_exists_with_its_options(command, line):
    options = set(re.findall(r"--[a-z-]+|-[a-zA-Z]\b", line))
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    assert {option for option in options if option not in text} == set()
