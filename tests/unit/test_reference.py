"""docs/reference.md names every setting, command, endpoint, metric and rule that there is."""

from pathlib import Path

import pytest
from prometheus_client import Gauge
from prometheus_client.metrics import MetricWrapperBase
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from app.cli import app as cli
from app.observability import metrics, queue_metrics, quota_metrics, wait_times, waiting_metrics
from app.settings import Settings
from policy.quota.rules import RULES

REFERENCE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text()


def settings(model: type[BaseModel], prefix: str = ""):
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from settings(field.annotation, f"{prefix}{to_camel(name)}.")
        else:
            yield f"{prefix}{to_camel(name)}"


def exported_metrics():
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            name = metric._name
            yield name if isinstance(metric, Gauge) or name.endswith("_seconds") else f"{name}_total"
    yield from (f"quotaward_elastic_quota_{figure}" for figure, _ in quota_metrics.FIGURES)
    yield from (f"quotaward_queue_{figure}" for figure, _ in queue_metrics.FIGURES)
    yield from (waiting_metrics.NAME, wait_times.NAME)


@pytest.mark.parametrize("setting", list(settings(Settings)))
def test_every_setting_is_described(setting):
    assert f"| `{setting}` |" in REFERENCE


@pytest.mark.parametrize("metric", list(exported_metrics()))
def test_every_metric_is_described(metric):
    assert f"`{metric}`" in REFERENCE


@pytest.mark.parametrize("command", [command.name or command.callback.__name__ for command in cli.registered_commands])
def test_every_command_is_described(command):
    assert f"`quotaward {command}" in REFERENCE


def test_the_table_of_what_the_scheduler_is_told_is_that_of_the_rules():
    rows = [
        f"| `{rule.text}{': RESOURCES' if rule.figures else ''}` | `{rule.name}` |"
        f"{''.join(f' `{figure}`,' for figure in rule.figures).rstrip(',')} |"
        for rule in RULES
    ]
    table = REFERENCE.partition("## What the scheduler is told\n")[2].partition("| HTTP 503 |")[0]
    assert table.splitlines()[3:] == rows


def test_the_events_of_elastic_quotas_are_those_of_the_rules():
    events = ", ".join(f"`{rule.event}`" for rule in RULES if rule.event)
    assert f"| ElasticQuota | {events} | pods wait for that rule" in REFERENCE
