"""What people ask about a tree of queues: which level refuses, what would help there, and what a move would change."""

import pytest

from tests.unit.app.given import client_of, namespace, node, pod, queue, refused, store_with
from tests.unit.app.situations import QUEUE, cpus, running

COMPANY = (
    *(queue("A"), queue("a1", parent="A"), queue("a2", parent="A"), queue("B"), queue("b1", parent="B")),
    *(namespace("x", **{QUEUE: "a1"}), namespace("b", **{QUEUE: "a2"}), namespace("z", **{QUEUE: "b1"})),
)
BOUNDED = {"capability": {"cpu": 4}}
ASIDE = queue("a1", parent="A", reclaimable=False)
OTHERS_WAIT = [refused(pod(f"w{number}", "z")) for number in range(9)]
SITUATIONS = {  # objects, what is in the way, a remedy
    "capability above": (
        (node("n1", **cpus(16)), queue("A", **BOUNDED), *running("b", 4)),
        "Queue a2 of root/A/a2 is in the way, as the capability of Queue A bounds it",
        "raise capability of cpu in Queue A from 4 to at least 5",
    ),
    "capability above, taken by a sibling": (
        (node("n1", **cpus(16)), queue("A", **BOUNDED), ASIDE, *running("x", 3), *running("b", 1)),
        "Queue A of root/A/a2 is in the way.",
        "raise capability of cpu in Queue A from 4 to at least 5",
    ),
    "capability at two levels": (
        (node("n1", **cpus(16)), queue("A", **BOUNDED), queue("a2", parent="A", **BOUNDED), *running("b", 4)),
        "Queue a2 of root/A/a2 is in the way.",
        "raise capability of cpu in Queue a2 from 4 to at least 5 and of cpu in Queue A from 4 to at least 5",
    ),
    "capability of the root": (
        (node("n1", **cpus(16)), queue("root", **BOUNDED), *running("z", 2), *running("b", 2)),
        "Queue root of root/A/a2 is in the way.",
        "raise capability of cpu in Queue root from 4 to at least 5",
    ),
    "weight above": (
        (node("n1", **cpus(8)), *running("b", 4), *running("z", 3), *OTHERS_WAIT),
        "Queue a2 of root/A/a2 is in the way.",
        "raise the weight of Queue A from 1 to at least 2",
    ),
    "weight above, taken by a sibling": (
        (node("n1", **cpus(8)), ASIDE, *running("x", 4), *running("z", 3), *OTHERS_WAIT),
        "Queue A of root/A/a2 is in the way.",
        "raise the weight of Queue A from 1 to at least 2",
    ),
    "guarantee": (
        (node("n1", **cpus(8)), *running("b", 4), *running("z", 3), *OTHERS_WAIT),
        "Queue a2 of root/A/a2 is in the way.",
        "guarantee Queue a2 5 of cpu",
    ),
    "weight of its own": (
        (
            *(node("n1", **cpus(8)), queue("A", **BOUNDED), *running("b", 2), *running("x", 1)),
            *[refused(pod(f"w{number}", "x")) for number in range(9)],
        ),
        "Queue a2 of root/A/a2 is in the way.",
        "raise the weight of Queue a2 from 1 to at least 2",
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_would_help_is_tried_at_the_level_that_refuses(name):
    objects, in_the_way, expected = SITUATIONS[name]
    store = store_with(*COMPANY, *objects, refused(pod("p", "b"), "Queue deserved exceeded: cpu"))
    told = client_of(store).get("/api/v1/pods/b/p").json()
    assert in_the_way in told["summary"]
    tried = {each["text"]: each["tried"] for each in told["remedies"]}
    assert any(expected in text and how in ("with-all", "alone") for text, how in tried.items()), tried


def test_moving_a_team_to_another_department_is_a_question():
    waiting = [refused(pod(f"w{number}", "z")) for number in range(4)]
    objects = node("n1", **cpus(8)), *running("x", 2), *running("b", 2), *running("z", 4), *waiting
    client = client_of(store_with(*COMPANY, *objects))
    move = {"kind": "Queue", "metadata": {"name": "a2"}, "spec": {"parent": "B"}}
    told = client.request("POST", "/api/v1/whatif", json={"apply": [move], "remove": []}).json()
    after = {each["name"]: each["after"] for each in told["queues"]}
    before = {each["name"]: each["before"] for each in told["queues"]}
    assert (before["a2"]["parent"], after["a2"]["parent"]) == ("A", "B")
    assert [before[name]["deserved"]["cpu"] for name in ("A", "B")] == ["4", "4"]
    assert [after[name]["deserved"]["cpu"] for name in ("A", "B")] == ["2", "6"]
