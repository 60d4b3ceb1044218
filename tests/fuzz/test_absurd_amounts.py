"""Amounts beyond all that there is, which Kubernetes takes: in thousandths they fit into no number of 64 bits."""

import pytest

from policy.nodes.scores import shortage
from policy.nodes.table import NodeTable
from policy.objects.node import Node
from policy.objects.pod import Pod
from tests.fuzz.targets import loop
from tests.fuzz.world import World
from tests.unit.app.given import namespace, node, pod, queue, refused
from tests.unit.app.situations import QUEUE, cpus, created, group, member, reservation

ABSURD = ("9223372036854775807", "9223372036854775")
NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."


def asking(name, amount, of="a", **rest):
    return refused(pod(name, of, {"cpu": amount, "nvidia.com/gpu": amount}, created(3), **rest), NO_ROOM)


def mate(name, amount):
    made = refused(member(name), NO_ROOM)
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": amount}
    return made


@pytest.mark.parametrize("amount", ABSURD)
@pytest.mark.parametrize("queues", [False, True])
def test_whoever_asks_for_them_the_others_are_answered(amount, queues):
    pods = [
        *(asking("p", amount), asking("small", "1", priority=5), asking("n", amount, nominatedNodeName="n1")),
        *(mate("m0", amount), mate("m1", "1"), mate("m2", amount)),
        *(pod(f"on-{number}", "c", {"cpu": size}, nodeName=f"n{number}") for number, size in ((1, amount), (2, "1"))),
    ]
    bounds = (
        [queue("q", guarantee={"resource": {"cpu": amount}}), queue("r", capability={"cpu": amount})] if queues else []
    )
    homes = [namespace(name, **({QUEUE: of} if queues else {})) for name, of in (("a", "q"), ("b", "q"), ("c", "r"))]
    nodes = [node("n1", **cpus(4)), node("n2", cpu=amount, memory="8Gi", pods="110")]
    kept = reservation("starving-a.p", "Starving", "a/p", job="pods/p")
    world = World([*nodes, *bounds, *homes, group("b", 2), *pods, kept])
    run = loop().run_until_complete
    run(world.control())
    world.recount()
    for each in pods:
        for verb in ("filter", "prioritize"):
            asked = {"Pod": each, "NodeNames": ["n1", "n2"]}
            assert run(world.ask_json(f"/extender/{verb}", asked)) == 200
        victims = {"Pod": each, "NodeNameToMetaVictims": {name: {"Pods": [{"UID": "c/on-1"}]} for name in ("n1", "n2")}}
        assert run(world.ask_json("/extender/preempt", victims)) == 200
        named = each["metadata"]
        assert run(world.ask("GET", f"/api/v1/pods/{named['namespace']}/{named['name']}"))[0] == 200
    for path in ("/", "/metrics", "/api/v1/plan", "/api/v1/queues", "/api/v1/podgroups"):
        assert run(world.ask("GET", path))[0] == 200
    run(world.control())
    world.recount()


@pytest.mark.parametrize("amount", [2**63, 10**30])
def test_a_node_is_short_of_nearly_all_of_them(amount):
    table = NodeTable()
    table.upsert_node(Node("n1", {"cpu": 4000}))
    assert shortage(table, Pod("p", "a", "p", {"cpu": amount})).tolist() == [1.0]
