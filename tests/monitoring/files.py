"""The dashboard and the alert rules, as the tests read them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MANIFESTS = Path(__file__).parents[2] / "manifests/monitoring"
VARIABLES = {"$__rate_interval": "1m", "$namespace": ".+", "$resource": "cpu"}
"""What stands for Grafana's variables."""


def rules() -> dict[str, Any]:
    """The rules as Prometheus reads them from a file: what the operator's object has as its spec."""
    return yaml.safe_load((MANIFESTS / "prometheusrule.yaml").read_text())["spec"]


def alerts() -> list[dict[str, Any]]:
    return [rule for group in rules()["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    return json.loads((MANIFESTS / "dashboard.json").read_text())


def panels() -> Iterator[tuple[str, str]]:
    """Title and expression of everything that the dashboard draws, with its variables filled in."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            yield panel["title"], expression
