"""The rules and the dashboard with a real Prometheus: which alerts fire when, and that live metrics answer them."""

import json
import shutil
import subprocess

import httpx
import pytest
import yaml

from tests.browser import story
from tests.browser.conftest import Served
from tests.controlplane.processes import Process, free_port, wait_until
from tests.missing import missing
from tests.monitoring.files import alerts, panels, rules

PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
CALLS = 'quotaward_extender_last_request_timestamp_seconds{verb="filter"}'
REQUESTED, ALLOCATABLE = 'quotaward_cluster_requested{resource="gpu"}', 'quotaward_cluster_allocatable{resource="gpu"}'
USED, MOST = (f'quotaward_elastic_quota_{figure}{{namespace="a",resource="gpu"}}' for figure in ("used", "max"))
LEAST = 'quotaward_elastic_quota_min{{namespace="{}",resource="{}"}}'
BY_MAX, UNTRIED = (f'quotaward_pending_pods{{rule="{rule}"}}' for rule in ("elastic-quota-max", "untried"))
BY_QUEUE = 'quotaward_pending_pods{rule="queue-deserved"}'
IN_QUEUE = 'quotaward_queue_allocated{queue="q",resource="gpu"}'
DURATION = "quotaward_extender_request_duration_seconds_bucket"
EXPIRY = 'quotaward_certificate_expiry_timestamp_seconds{{use="{}"}}'
OVERDUE = 'quotaward_overdue_pods{namespace="a"}'
IN_VAIN = 'quotaward_evictions_in_vain_total{namespace="a"}'
FAILED = 'quotaward_reclaim_failures_total{reason="not-bound"}'

# By alert: the series with which it fires after 45 minutes, and a change to them with which it does not.
SITUATIONS = {
    "QuotawardSchedulerNotCalling": ({CALLS: "0x60", UNTRIED: "3x60"}, {CALLS: "0+60x60"}),
    "QuotawardAbsent": ({}, {"quotaward_store_synced": "1x60"}),
    "QuotawardNotSynced": (
        {'quotaward_store_synced{instance="a"}': "0x60"},
        {'quotaward_store_synced{instance="a"}': "1x60"},
    ),
    "QuotawardWatchStale": (
        {'quotaward_watch_lag_seconds{kind="pods"}': "0+10x60"},
        {'quotaward_watch_lag_seconds{kind="pods"}': "0x60"},
    ),
    "QuotawardDefinitionGone": (
        {'quotaward_store_definition_gone{kind="elasticquotas"}': "1x60"},
        {'quotaward_store_definition_gone{kind="elasticquotas"}': "0x60"},
    ),
    "QuotawardNoLeader": (
        {'quotaward_leader{instance="a"}': "0x60", 'quotaward_leader{instance="b"}': "0x60"},
        {'quotaward_leader{instance="b"}': "1x60"},
    ),
    "QuotawardErrors": (
        {'quotaward_extender_requests_total{verb="filter",result="error"}': "0+60x60"},
        {'quotaward_extender_requests_total{verb="filter",result="error"}': "7x60"},
    ),
    "QuotawardSlow": (
        {
            f'{DURATION}{{verb="filter",le="0.1"}}': "0+9x60",
            f'{DURATION}{{verb="filter",le="0.5"}}': "0+60x60",
            f'{DURATION}{{verb="filter",le="+Inf"}}': "0+60x60",
        },
        {f'{DURATION}{{verb="filter",le="0.1"}}': "0+60x60"},
    ),
    "QuotawardUnusableObjects": (
        {'quotaward_store_unusable_objects_total{kind="queues"}': "0x40 1x20"},
        {'quotaward_store_unusable_objects_total{kind="queues"}': "1x60"},
    ),
    "QuotawardWritesFailing": (
        {'quotaward_status_writes_total{outcome="failed"}': "0x20 1+1x40"},
        {'quotaward_status_writes_total{outcome="failed"}': "9x60"},
    ),
    "QuotawardCertificateExpires": (
        {EXPIRY.format("serving"): "86400x60", EXPIRY.format("token"): "3600x60"},
        {EXPIRY.format("serving"): "7776000x60"},
    ),
    "QuotawardTokenExpires": (
        {EXPIRY.format("token"): "2700x60", EXPIRY.format("client"): "2700x60"},
        {EXPIRY.format("token"): "3000+60x60"},
    ),
    "QuotaRefusesWhileCapacityIsIdle": (
        {USED: "4x60", MOST: "4x60", REQUESTED: "4x60", ALLOCATABLE: "8x60", BY_MAX: "2x60"},
        {REQUESTED: "7x60"},
    ),
    "QueueRefusesWhileCapacityIsIdle": (
        {IN_QUEUE: "2x60", REQUESTED: "2x60", ALLOCATABLE: "8x60", BY_QUEUE: "1x60"},
        {REQUESTED: "8x60"},
    ),
    "GuaranteeNotBacked": (
        {LEAST.format("a", "gpu"): "5x60", LEAST.format("b", "gpu"): "5x60", ALLOCATABLE: "8x60"},
        {LEAST.format("b", "gpu"): "3x60"},
    ),
    "QueueGuaranteeNotBacked": (
        {'quotaward_queue_guarantee_missing{queue="q",resource="gpu"}': "1x60"},
        {'quotaward_queue_guarantee_missing{queue="q",resource="gpu"}': "0x60"},
    ),
    "PodsOverdue": ({OVERDUE: "2x60"}, {OVERDUE: "2x20 _x40"}),
    "ReclaimFailing": ({FAILED: "0x30 1+1x30"}, {FAILED: "9x60"}),
    "EvictionsInVain": ({IN_VAIN: "0x20 1+1x40"}, {IN_VAIN: "30x60"}),
    "EvictionsFailing": (
        {'quotaward_evictions_total{reason="reclaim",outcome="failed"}': "0x30 1+1x30"},
        {'quotaward_evictions_total{reason="reclaim",outcome="failed"}': "9x60"},
    ),
}
WITHOUT_NODES = {LEAST.format("a", "tpu"): "1x60", ALLOCATABLE: "8x60"}


def promtool(*arguments, stdin=None):
    if PROMTOOL is None:
        missing("there is no promtool: Debian's package prometheus brings it")
    return subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, input=stdin, check=False)


def situation(alert, series, *, fires):
    """A test of promtool's: whether the alert fires, whatever its labels and texts are."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) > bool 0 or vector(0)',
                "eval_time": "45m",
                "exp_samples": [{"labels": "{}", "value": int(fires)}],
            }
        ],
    }


def test_every_alert_has_a_situation():
    assert SITUATIONS.keys() == {rule["alert"] for rule in alerts()}


def test_an_alert_fires_when_it_should_and_not_otherwise(tmp_path):
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules()))
    observing = SITUATIONS["QuotawardNoLeader"][0] | {'quotaward_observing{instance="a"}': "1x60"}
    tests = [
        situation("GuaranteeNotBacked", WITHOUT_NODES, fires=True),
        situation("QuotawardNoLeader", observing, fires=False),
    ]
    for alert, (bad, good) in SITUATIONS.items():
        tests += [situation(alert, bad, fires=True), situation(alert, bad | good, fires=False)]
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": tests}))
    checked = promtool("check", "rules", str(tmp_path / "rules.yaml"))
    assert checked.returncode == 0, checked.stderr
    tested = promtool("test", "rules", str(tmp_path / "tests.yaml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    directory = tmp_path_factory.mktemp("monitored")
    (directory / "manifests").mkdir()
    story.everything(directory / "manifests")
    served = Served(directory / "manifests", directory / "quotaward.log")
    served.start()
    served.filter(story.pod("x", "sandbox"))
    yield served
    served.process.stop()


@pytest.fixture(scope="module")
def prometheus(served, tmp_path_factory):
    """A Prometheus that has read the metrics twice."""
    if PROMETHEUS is None:
        missing("there is no Prometheus: Debian's package prometheus brings it")
    directory = tmp_path_factory.mktemp("prometheus")
    (directory / "rules.yaml").write_text(yaml.safe_dump(rules()))
    target = served.url.removeprefix("http://")
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "quotaward", "static_configs": [{"targets": [target]}]}],
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    address = f"127.0.0.1:{free_port()}"
    flags = [f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data"]
    process = Process([PROMETHEUS, *flags, f"--web.listen-address={address}"], directory / "prometheus.log")
    process.start()

    def ask(path, **parameters):
        try:
            return httpx.get(f"http://{address}/api/v1/{path}", params=parameters).json().get("data")
        except (httpx.TransportError, json.JSONDecodeError):
            return None

    def has_read_twice():
        counted = ask("query", query="count_over_time(quotaward_store_synced[1m]) > 1")
        evaluated = ask("rules")
        return counted and counted["result"] and "unknown" not in json.dumps(evaluated)

    process.wait_until_ready(has_read_twice)
    yield ask
    process.stop()


def test_prometheus_finds_nothing_to_improve_about_the_metrics(served):
    checked = promtool("check", "metrics", stdin=httpx.get(f"{served.url}/metrics").text)
    ours = [line for line in (checked.stdout + checked.stderr).splitlines() if line.startswith("quotaward_")]
    assert ours == []


def test_every_rule_can_be_evaluated_with_live_metrics(prometheus):
    found = [rule for group in prometheus("rules")["groups"] for rule in group["rules"]]
    assert len(found) == len(alerts())
    assert [(rule["name"], rule["lastError"]) for rule in found if rule["health"] != "ok"] == []


# What nothing has happened of yet has no series.
SILENT = {
    "Evictions, by queue and reason",
    "Time until admission, by queue",
    "Evictions, by reason and outcome",
    "Ended plans, and attempts without a plan",
    "Wake-ups and grants",
    "Refusals per second, by rule",
    "Failed writes",
    "Watches: events and restarts",
    "Objects",
}


def test_every_panel_draws_something_of_live_metrics(prometheus):
    answers = {}
    for title, expression in panels():
        answer = prometheus("query", query=expression)
        assert answer is not None, f"{title}: {expression}"
        answers.setdefault(title, []).extend(answer["result"])
    assert {title for title, result in answers.items() if not result} <= SILENT


WAIT = 'quotaward_wait_seconds_bucket{{queue="{}",namespace="a",le="{}"}}'
EVICTED = 'quotaward_queue_evictions_total{{queue="{}",reason="{}"}}'
ATTEMPTS = 'quotaward_evictions_total{{instance="{}",reason="{}",outcome="{}"}}'

# By panel: series, and what it draws of the last two of ten minutes, expression by expression: a value by labels.
DRAWN = {
    "Time until admission, by queue": (
        # ten pods a minute of web wait a second at most, one of twenty of research waits for an hour
        {
            WAIT.format("web", "0.1"): "0x10",
            WAIT.format("web", "1"): "0+10x10",
            WAIT.format("web", "+Inf"): "0+10x10",
            WAIT.format("research", "600"): "0+19x10",
            WAIT.format("research", "3600"): "0+20x10",
            WAIT.format("research", "+Inf"): "0+20x10",
        },
        [
            {'{queue="web"}': 0.55, '{queue="research"}': 315.789},
            {'{queue="web"}': 0.955, '{queue="research"}': 600},
        ],
    ),
    "Evictions, by queue and reason": (
        {
            EVICTED.format("web", "reclaim"): "0+3x10",
            EVICTED.format("web", "run-time-exceeded"): "0+1x10",
            EVICTED.format("research", "reclaim"): "5x10",
        },
        [
            {
                '{queue="web",reason="reclaim"}': 6,
                '{queue="web",reason="run-time-exceeded"}': 2,
                '{queue="research",reason="reclaim"}': 0,
            }
        ],
    ),
    "Evictions, by reason and outcome": (
        {
            ATTEMPTS.format("1", "reclaim", "evicted"): "0+2x10",
            ATTEMPTS.format("2", "reclaim", "evicted"): "0+2x10",
            ATTEMPTS.format("1", "reclaim", "blocked"): "0+1x10",
            ATTEMPTS.format("1", "gang-broken", "evicted"): "0+6x10",
        },
        [
            {
                '{reason="reclaim",outcome="evicted"}': 8,
                '{reason="reclaim",outcome="blocked"}': 2,
                '{reason="gang-broken",outcome="evicted"}': 12,
            }
        ],
    ),
}


def test_panels_of_waiting_and_evictions_draw_what_has_happened(tmp_path):
    tests = []
    for title, (series, drawn) in DRAWN.items():
        expressions = [expression.replace("[1m]", "[2m]") for of, expression in panels() if of == title]
        expected = [[{"labels": labels, "value": value} for labels, value in each.items()] for each in drawn]
        asked = [
            {"expr": f"round({expression}, 0.001)", "eval_time": "10m", "exp_samples": samples}
            for expression, samples in zip(expressions, expected, strict=True)
        ]
        given = [{"series": name, "values": values} for name, values in series.items()]
        tests.append({"interval": "1m", "input_series": given, "promql_expr_test": asked})
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": [], "tests": tests}))
    tested = promtool("test", "rules", str(tmp_path / "tests.yaml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_live_metrics_show_who_waits_and_what_is_full(prometheus):
    wait_until(lambda: prometheus("query", query=f"{BY_MAX} == 1")["result"], "one pod waits for max")
    full = "quotaward_elastic_quota_used >= on (namespace, resource) quotaward_elastic_quota_max"
    assert [each["metric"]["namespace"] for each in prometheus("query", query=full)["result"]] == ["search"]
