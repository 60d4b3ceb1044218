"""The examples are what their comments and the documentation say."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app import checks
from app.cli import app
from app.sources.manifests import ManifestSource
from tests.unit.app.forwarding import Forwarding
from tests.unit.app.given import client_of, empty_store

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


def served(name):
    """A client of a server of this example, as it stands when all has been read."""
    store = empty_store()
    ManifestSource(EXAMPLES / name, store)
    for _ in store.cluster.divide_steps():
        pass
    return client_of(store)


@pytest.mark.parametrize("directory", sorted(path.name for path in EXAMPLES.iterdir()))
def test_check_has_nothing_against(directory):
    assert [finding.text for finding in checks.manifests(EXAMPLES / directory).findings] == []


@pytest.mark.parametrize(
    ("pod", "verdict", "message"),
    [
        ("team-a/train-3", "refused", "ElasticQuota max exceeded: nvidia.com/gpu"),
        ("team-b/serve-2", "admissible", ""),
    ],
)
def test_two_teams(pod, verdict, message):
    explanation = served("two-teams").get(f"/api/v1/pods/{pod}").json()
    assert explanation["verdict"] == verdict
    assert message in explanation["message"]


@pytest.mark.parametrize(
    ("pod", "verdict", "message"),
    [
        ("shop/search", "admissible", ""),
        ("shop/report", "refused", "Queue deserved exceeded: cpu"),
        ("vision/train-2", "admissible", ""),
        ("speech/transcribe-2", "refused", "Namespace fair share exceeded: cpu"),
    ],
)
def test_fair_share_pods(pod, verdict, message):
    explanation = served("fair-share").get(f"/api/v1/pods/{pod}").json()
    assert explanation["verdict"] == verdict
    assert message in explanation["message"]


def test_fair_share_figures():
    items = served("fair-share").get("/api/v1/queues").json()["items"]
    assert {item["name"]: item["deserved"]["cpu"] for item in items} == {"web": "4", "research": "12"}
    entitled = {each["namespace"]: each["entitled"]["cpu"] for item in items for each in item["namespaces"]}
    assert entitled == {"shop": "4", "vision": "9", "speech": "3"}


def test_what_the_page_on_what_if_shows_is_what_the_commands_print(tmp_path, monkeypatch):
    page = (ROOT / "docs/whatif.md").read_text()
    shown = re.findall(r"^```console\n\$ quotaward (.*)\n([^$]*?)^```$", page, re.MULTILINE)
    [question] = re.findall(r"^\$ curl -s \S+/api/v1/whatif -d '(.*?)'$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "quota.yaml").write_text(json.dumps(json.loads(question)["apply"][0]))
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # as wide as the chart on the page
    client = served("two-teams")
    with Forwarding(client) as server:
        for command, expected in shown:
            done = CliRunner().invoke(app, shlex.split(command), env={"QUOTAWARD_SERVER": server.url})
            assert done.stdout.split() == expected.split(), command
    assert [command.split()[0] for command, _ in shown] == ["explain", "whatif", "simulate"]
    answer = client.request("POST", "/api/v1/whatif", json=json.loads(question)).json()
    assert [each["pod"] for each in answer["admitted"]] == ["team-a/train-3", "team-b/serve-2"]
