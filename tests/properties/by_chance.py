"""Nodes and pods by chance, with every kind of constraint: each made of one number, and always the same of the same.

That is much faster than to let hypothesis draw all that they consist of. Zero is plain, so that examples shrink.
"""

import random

from policy.objects.constraints import (
    UNCONSTRAINED,
    Constraints,
    HostPort,
    NodeTerm,
    PodTerm,
    Requirement,
    Selector,
    Spread,
    Taint,
    Toleration,
)
from policy.objects.node import Node
from policy.objects.pod import Pod

NODES = ("n1", "n2", "n3", "n4")


def node_of(name: str, number: int) -> Node:
    chance = Chance(number)
    size = {"pods": chance.of(9, 9, 2, 0)} | chance.some_of({"cpu": (5, 2, 9), "gpu": (0, 1, 2)})
    own = {"zone": ("a", "b", ""), "rack": ("1", "2", "3"), "disk": ("ssd", "7", "12"), "host": (name,)}
    return Node(name, size, chance.some_of(own), chance.several(chance.taint, 1), chance.often(0.2))


def pod_of(uid: str, number: int) -> Pod:
    chance = Chance(number)
    return Pod(
        uid,
        chance.of("x", "x", "y"),
        uid,
        {"pods": 1} | chance.some_of({"cpu": (0, 1, 2, 5), "gpu": (0, 1)}),
        priority=chance.of(0, 1),
        terminating=chance.often(0.2),
        labels=chance.some_of({"app": ("web", "db"), "tier": ("front",)}),
        constraints=chance.constraints(),
    )


class Chance:
    """Everything that nodes and pods are made of, by chance, but the same for the same number."""

    def __init__(self, number: int):
        self.plain = number == 0
        self.random = random.Random(number)

    def of(self, *values):
        return values[0] if self.plain else self.random.choice(values)

    def often(self, share: float) -> bool:
        return not self.plain and self.random.random() < share

    def some_of(self, values: dict) -> dict:
        return {key: self.of(*these) for key, these in values.items() if self.often(0.7)}

    def several(self, make, most: int = 2) -> tuple:
        return tuple(make() for _ in range(self.of(*range(most + 1))))

    def constraints(self) -> Constraints:
        if self.plain or self.often(0.3):
            return UNCONSTRAINED
        return Constraints(
            node_selector=self.of((), (), (), (("zone", "a"),), (("rack", "1"), ("disk", "ssd"))),
            node_terms=self.several(self.node_term) if self.often(0.3) else None,
            tolerations=self.several(self.toleration),
            host_ports=self.several(self.port),
            affinity=self.several(self.pod_term) if self.often(0.4) else (),
            anti_affinity=self.several(self.pod_term) if self.often(0.4) else (),
            spread=self.several(self.spread) if self.often(0.4) else (),
        )

    def requirement(self, keys: tuple, values: tuple) -> Requirement:
        operator = self.of("In", "In", "NotIn", "Exists", "DoesNotExist")
        named = self.random.sample(values, self.of(1, 2)) if operator.endswith("In") else ()
        return Requirement(self.of(*keys), operator, tuple(named))

    def node_term(self) -> NodeTerm:
        return NodeTerm(self.several(self.node_requirement), self.several(self.name, 1))

    def node_requirement(self) -> Requirement:
        if self.often(0.3):
            return Requirement(self.of("disk", "rack"), self.of("Gt", "Lt"), (self.of("2", "9"),))
        return self.requirement(("zone", "rack", "disk"), ("a", "b", "ssd", "1"))

    def name(self) -> Requirement:
        return Requirement("metadata.name", self.of("In", "NotIn"), (self.of(*NODES),))

    def selector(self) -> Selector | None:
        if self.often(0.1):
            return None
        return Selector(self.several(lambda: self.requirement(("app", "tier"), ("web", "db", "front"))))

    def pod_term(self) -> PodTerm:
        return PodTerm(self.selector(), self.key(), self.of(None, frozenset("x"), frozenset("xy")))

    def key(self) -> str:
        return self.of("zone", "rack", "host")

    def taint(self) -> Taint:
        return Taint(self.of("gpu", "spot"), self.of("", "yes"), self.of("NoSchedule", "NoExecute", "PreferNoSchedule"))

    def toleration(self) -> Toleration:
        if self.often(0.3):
            return self.of(Toleration("node.kubernetes.io/unschedulable", "Exists"), Toleration("", "Exists"))
        effect = self.of("NoSchedule", "NoExecute", "")
        return Toleration(self.of("gpu", "spot"), self.of("Equal", "Exists"), self.of("", "yes"), effect)

    def port(self) -> HostPort:
        return HostPort(self.of(80, 81), self.of("TCP", "UDP"), self.of("0.0.0.0", "10.0.0.1", "10.0.0.2"))

    def spread(self) -> Spread:
        return Spread(
            topology_key=self.key(),
            max_skew=self.of(1, 2),
            selector=self.selector(),
            min_domains=self.of(1, 1, 2, 3),
            honor_node_affinity=self.often(0.5),
            honor_taints=self.often(0.5),
        )
