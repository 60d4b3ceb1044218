"""The rule that .github/CONTRIBUTING.md gives as an example works as it stands there."""

import re
from textwrap import dedent
from typing import Any

import pytest

from policy.quota import admission
from policy.quota.admission import Rules
from policy.quota.rule import Rule
from policy.quota.rules import BY_NAME
from tests.unit.given_queues import pods, queue, why, world
from tests.unit.test_design_map import CONTRIBUTING


def example() -> dict[str, Any]:
    """What the block defines that begins with the example's imports."""
    [block] = re.findall(r"^ *```python\n(.*?)^ *```$", CONTRIBUTING, re.DOTALL | re.MULTILINE)
    defined: dict[str, Any] = {"__name__": "policy.quota.queue_pods"}
    exec(dedent(block), defined)
    return defined


@pytest.fixture
def rule(monkeypatch) -> Rule:
    """The rule, asked after all others of queues."""
    made: Rule = example()["RULE"]
    for asked in ("OF_QUEUES", "OF_OPEN_QUEUES"):
        monkeypatch.setattr(admission, asked, (*getattr(admission, asked), (made, made.refuses)))
    monkeypatch.setitem(BY_NAME, made.name, made)
    return made


def full(rule: Rule, less: int = 0):
    """A queue in which as many pods run as the rule lets in, or so many less, and one that waits."""
    most = example()["MOST"]
    running = pods("a", most - less, node="n1")
    [waits] = pods("a", 1, start=most)
    return world(queue("q"), "a:q", *running, cpu=2 * most), waits


def test_it_refuses_a_pod_of_a_queue_that_has_enough(rule):
    assert why(*full(rule)) == "Queue has enough pods: pods"


def test_it_lets_in_a_pod_of_a_queue_that_has_not(rule):
    assert why(*full(rule, less=1)) == ""


def test_it_says_what_it_compares_and_what_would_help(rule):
    cluster, waits = full(rule)
    most = example()["MOST"]
    assert rule.numbers(cluster.ledger, waits) == {"pods": {"allocated": most, "most": most}}
    refused = cluster.check(waits)
    [hint] = admission.hints(cluster.ledger, waits, refused, waits.request)
    assert hint.target == "Queue q"


def test_it_counts_what_may_be_in_flight(rule):
    cluster, waits = full(rule, less=1)
    cluster.ledger.enter("in_flight", pods("a", 1, start=200)[0])
    refused = admission.refusal(cluster.ledger, waits, "q", Rules(), with_in_flight=True)
    assert refused == rule.refusal(["pods"])
