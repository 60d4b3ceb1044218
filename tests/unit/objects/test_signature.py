"""Which fields of a pod each signature tells apart, and that no other module compares parts of pods by identity."""

import ast
from dataclasses import fields, replace
from pathlib import Path

import pytest

from policy.objects import signature
from policy.objects.constraints import Constraints
from policy.objects.device import DeviceNeeds
from policy.objects.pod import JobMember, Pod, StandsFor, Unschedulable

POLICY = Path(signature.__file__).parents[1]

SIGNATURES = {
    "rules": lambda pod: signature.by_rules(pod, pod.queue),
    "empty nodes": signature.by_empty_nodes,
    "rules and nodes": lambda pod: signature.by_rules_and_nodes(pod, pod.queue),
}

TOLD_APART = {
    "namespace": {"rules", "rules and nodes"},
    "queue": {"rules", "rules and nodes"},
    "priority": {"rules", "rules and nodes"},
    "preemptible": {"rules", "rules and nodes"},
    "request": {"rules", "empty nodes", "rules and nodes"},
    "constraints": {"empty nodes", "rules and nodes"},
    "labels": {"rules and nodes"},
    "owner": {"rules and nodes"},
}
OF_ONE_POD = {
    "uid": "v",
    "name": "v",
    "node": "n",
    "nominated_node": "n",
    "created": 1.0,
    "version": 1,
    "started": 1.0,
    "checkpointed": 1.0,
    "unschedulable": Unschedulable("Unschedulable", ""),
    "counts_in": "q",
}
"""What is one pod's own, or says how far it has come."""
OF_ITS_END = {
    "finished": True,
    "terminating": True,
    "succeeded": True,
    "finished_at": 1.0,
    "deletion_time": 1.0,
    "grace": 1,
}
"""Only pods that wait, or that run, are compared."""
ASKED_BY_OTHERS = {
    "may_preempt": False,  # the search for victims, whose shape has it
    "group": "g",  # callers that meet members of different groups
    "gated": True,
    "gate": 0,
    "scheduler": "s",  # what a scheduler said of a pod
    "job": JobMember("j", "j"),
    "controller": "c",
    "stands_for": StandsFor("j", "j", 1, 1),  # the lines, and whoever shows or writes a pod
    "needs": DeviceNeeds({"cpu": 1}),  # what the request follows from
    "deadline": 60,  # callers add whether the pod runs for too long
    "run_time": 60,
    "min_run_time": 60,
}
"""What no rule of quotas and queues, and no node, asks for."""

OTHER = {
    "namespace": "b",
    "queue": "q",
    "priority": 1,
    "preemptible": False,
    "request": {"cpu": 2000, "pods": 1},
    "constraints": Constraints(node_selector=(("zone", "a"),)),
    "labels": {"app": "web"},
    "owner": "DaemonSet",
    **OF_ONE_POD,
    **OF_ITS_END,
    **ASKED_BY_OTHERS,
}
POD = Pod("u", "a", "u", {"cpu": 1000, "pods": 1})


@pytest.mark.parametrize("field", [each.name for each in fields(Pod)])
def test_each_field_is_told_apart_by_the_signatures_that_it_matters_to(field):
    changed = replace(POD, **{field: OTHER[field]})
    assert changed != POD
    differing = {name for name, signature_of in SIGNATURES.items() if signature_of(changed) != signature_of(POD)}
    assert differing == TOLD_APART.get(field, set())


@pytest.mark.parametrize("signature_of", SIGNATURES.values(), ids=SIGNATURES)
def test_pods_that_share_their_parts_have_one_signature(signature_of):
    assert signature_of(replace(POD, uid="v", name="v")) == signature_of(POD)


@pytest.mark.parametrize("signature_of", SIGNATURES.values(), ids=SIGNATURES)
def test_equal_parts_that_are_two_objects_are_told_apart(signature_of):
    assert signature_of(replace(POD, request=dict(POD.request))) != signature_of(POD)


def test_distinct_parts_keep_their_order():
    first, second = dict(POD.request), dict(POD.request)
    assert [id(each) for each in signature.distinct([second, first, second])] == [id(second), id(first)]


def compares_a_part(call):
    """Whether a call is ``id(…)`` of a request, of constraints or of labels."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "id"):
        return False
    names = {each.attr for each in ast.walk(call.args[0]) if isinstance(each, ast.Attribute)}
    names |= {each.id for each in ast.walk(call.args[0]) if isinstance(each, ast.Name)}
    return not names.isdisjoint({"request", "constraints", "labels"})


def test_nobody_else_compares_parts_of_pods_by_identity():
    found = {
        str(file.relative_to(POLICY))
        for file in POLICY.rglob("*.py")
        if any(map(compares_a_part, ast.walk(ast.parse(file.read_text()))))
    }
    assert found == {"objects/signature.py"}
