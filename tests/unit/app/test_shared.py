"""What pods of one template have in common is computed and kept once, and not without bound."""

import gc
import tracemalloc

import msgspec
import pytest

from app.store import remembered
from app.store.pods import PODS, pod_of
from policy.objects import signature
from tests.unit.app.given import pod

LABELS = 250
"""Of a large pod, or whatever else there are many of."""


def seen(**spec):
    return pod_of(PODS.decoder.decode(msgspec.json.encode(pod("p", **spec))))


def required(values):
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


LARGE = {
    "affinity": lambda n: {"affinity": required([f"zone-{n}-{number}" for number in range(LABELS)])},
    "tolerations": lambda n: {
        "tolerations": [{"key": f"key-{n}-{each}", "operator": "Exists"} for each in range(LABELS)]
    },
    "node selector": lambda n: {"nodeSelector": {f"label-{n}-{number}": "x" for number in range(LABELS)}},
    "labels": lambda n: {"metadata": {"uid": "p", "labels": {f"label-{n}-{number}": "x" for number in range(LABELS)}}},
    "requests": lambda n: {"requests": {f"example.com/{n}-{number}": "1" for number in range(LABELS)}},
}


@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
def test_large_pods_that_come_and_go_leave_no_more_than_a_bound(large, monkeypatch):
    monkeypatch.setattr(remembered, "MOST", 100 * LABELS)
    seen(**large("first"))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(40):
            seen(**large(number))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 15 * remembered.MOST
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("spec", [{}, {"affinity": required(["a", "b"])}, {"nodeSelector": {"zone": "a"}}], ids=str)
def test_what_others_have_in_common_is_one_object(spec):
    first, second = seen(**spec), seen(**spec)
    assert first.request is second.request
    assert first.constraints is second.constraints
    assert first.labels is second.labels
    assert signature.by_rules_and_nodes(first, "") == signature.by_rules_and_nodes(second, "")
