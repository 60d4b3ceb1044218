"""Nodes and pods by chance as the rules see them, with every kind of constraint: each made of one number.

That is much faster than to let hypothesis draw all that they consist of. Zero is plain, so that examples shrink.
"""

import msgspec

from app.store import nodes, pods
from policy.objects.node import Node
from policy.objects.pod import Pod
from tests.worlds.objects import CHOOSY, Objects
from tests.worlds.walk import by_number


def node_of(name: str, number: int) -> Node:
    made = Objects(by_number(number), CHOOSY).node(name)
    return nodes.node_of(msgspec.convert(made, nodes.NodeObject))


def pod_of(uid: str, number: int) -> Pod:
    chance = Objects(by_number(number), CHOOSY)
    made = chance.pod(chance.of("a", "a", "b"), uid, uid, 0.0)
    pod = pods.pod_of(pods.PODS.decoder.decode(msgspec.json.encode(made)))
    state = {"priority": chance.of(0, 1), "terminating": chance.often(2)}
    return Pod(uid, pod.namespace, uid, pod.request, labels=pod.labels, constraints=pod.constraints, **state)
