"""Some hundred of the inputs that ``make fuzz`` tries by the hundred thousand, the same ones each time."""

import json
from functools import cache, partial
from random import Random

import pytest

from app.extender import wire
from app.extender.endpoints import Extender
from app.problems import Problem
from app.store import placement
from policy.cluster.cluster import Cluster
from policy.nodes import pod_demands
from policy.quota.ledger import Ledger
from tests.fuzz import targets
from tests.fuzz.mutation import mutated
from tests.fuzz.seeds import ITEMS
from tests.fuzz.targets import TARGETS, run
from tests.fuzz.world import Fault, World
from tests.unit.app.given import pod

INPUTS = {"text": 1000, "requests-and-events": 100, "review": 600, "whatif": 300, "manifests": 40, "tenants": 15}
STEPS = {"tenants": 7}
"""Of so many good inputs one is run, where counting takes long."""


@pytest.mark.parametrize("name", TARGETS)
def test_good_input_does_no_harm(name):
    for seed in TARGETS[name].seeds()[:: STEPS.get(name, 1)]:
        run(name, seed)


@pytest.mark.parametrize("name", TARGETS)
def test_bad_input_does_no_harm(name):
    seeds = TARGETS[name].seeds()
    for number in range(INPUTS[name]):
        chance = Random(number)
        data = chance.choice(seeds)
        for _ in range(chance.choice((1, 2, 4))):
            data = mutated(data, seeds, chance)
        try:
            run(name, data)
        except BaseException as failure:
            failure.add_note(f"input {number}: {data!r}")
            raise


def fails(*_, **__):
    raise KeyError("x")


def counts_and_then_refuses(extender, body):
    pod = wire.read_pod(wire.read_args(body).pod)
    extender.store.cluster.grant(pod, now=0)
    raise Problem(400, "no")


@pytest.mark.parametrize(
    ("broken", "name", "instead"),
    [
        (Extender, "filter", fails),  # an error of our own
        (Extender, "preempt", fails),
        (Extender, "filter", counts_and_then_refuses),
        (Ledger, "set_quota", fails),  # an object that a watch brings ends the process
        (Ledger, "remove", lambda self, uid: None),  # somebody is gone, and still counts
        (Cluster, "tick", fails),
    ],
)
def test_harm_is_seen(monkeypatch, broken, name, instead):
    monkeypatch.setattr(broken, name, instead)
    monkeypatch.setattr(targets, "world", cache(partial(World, ITEMS)))
    with pytest.raises((Fault, KeyError, ExceptionGroup)):  # noqa: PT012 - any of them may show it
        for seed in TARGETS["requests-and-events"].seeds():
            run("requests-and-events", seed)


def with_many_terms(key):
    alone = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}
    required = [alone | {"topologyKey": f"{key}{number}"} for number in range(200)]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return json.dumps(pod("p", "a", affinity={"podAffinity": affinity, "podAntiAffinity": affinity})).encode()


def test_a_step_that_others_would_wait_for_is_seen(monkeypatch):
    run("tenants", with_many_terms("k"))
    bounded = placement._Judged.of
    monkeypatch.setattr(placement._Judged, "of", lambda self, name, parts, *_: bounded(self, name, parts, 10**6))
    monkeypatch.setattr(pod_demands, "MOST_IN_NAMESPACE", 10**6)
    with pytest.raises(Fault, match="steps"):
        run("tenants", with_many_terms("other"))
