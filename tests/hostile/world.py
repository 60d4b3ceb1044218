"""The cluster that hostile tenants share with others: full nodes, and tenants that each have a quota or a queue."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench import world
from tests.controlplane.cluster import QUEUE
from tests.controlplane.objects import Object, elastic_quota, node, queue
from tests.hostile.pods import RENTED, Place

QUEUES = ("queue-0", "queue-1", "queue-2")
HONEST, STANDING, HOSTILE, OWNER = "honest", "standing", "hostile", "owner"
"""How the names of namespaces begin: whose pods come and go, whose stay, who means harm, and who takes nodes back."""
HONEST_NAMESPACES = 10
_IN_A_NAMESPACE = 200
_SPARE = 6
"""Cores of a node that standing pods leave."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is. ``pods`` stand on nodes for good; ``pace``: pods of honest tenants that come by the second,
    and requests of hostile ones.
    """

    tenants: int
    nodes: int
    pods: int
    honest_pace: float
    hostile_pace: float

    @property
    def rented(self) -> int:
        """Nodes on which hostile tenants borrow, besides the others."""
        return max(2, self.nodes // 50)


def objects(size: Size) -> Iterator[Object]:
    """Everything that there is before anybody means harm."""
    for number in range(size.nodes + size.rented):
        yield _node(number, size)
    for name in QUEUES:
        yield queue(name, weight=1, capability={"cpu": str(max(10, size.tenants))})
    standing = max(1, size.pods // _IN_A_NAMESPACE)
    for number in range(standing):
        count = len(range(number, size.pods, standing))
        yield from _team(f"{STANDING}-{number}", least=count, most=count + 5)
    for name in honest_namespaces():
        yield from _team(name, least=100, most=200)
    yield from _team(OWNER, least=8 * size.rented, most=8 * size.rented)
    for number, place in enumerate(places(size)):
        yield from _hostile(number, place.namespace)
    for number in range(size.pods):
        item = world.pod(number, 0, node=f"node-{number % size.nodes}")
        item["metadata"]["namespace"] = f"{STANDING}-{number % standing}"
        yield item


def honest_namespaces() -> list[str]:
    return [f"{HONEST}-{number}" for number in range(HONEST_NAMESPACES)]


def places(size: Size) -> list[Place]:
    """Where hostile tenants are."""
    names = [f"{HOSTILE}-{number}" for number in range(size.tenants)]
    others = (*names, *honest_namespaces(), f"{STANDING}-0")
    return [Place(name, QUEUES, others=others, mark="hostile") for name in names]


def _node(number: int, size: Size) -> Object:
    name, rented = f"node-{number}", number >= size.nodes
    labels = {"kubernetes.io/hostname": name, "zone": "ab"[number % 2]} | (RENTED if rented else {})
    return node(name, cpu=8 if rented else size.pods // size.nodes + _SPARE, pods=110, labels=labels)


def _team(name: str, *, least: int, most: int, in_queue: str = "") -> Iterator[Object]:
    annotations = {QUEUE: in_queue} if in_queue else {}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}
    yield elastic_quota(name, min={"cpu": least}, max={"cpu": most})


def _hostile(number: int, name: str) -> Iterator[Object]:
    """A namespace with a quota: with a little of its own, with nothing but what it borrows, or in a queue as well."""
    if number % 3 == 0:
        yield from _team(name, least=2, most=8)
    elif number % 3 == 1:
        yield from _team(name, least=0, most=8)
    else:
        yield from _team(name, least=1, most=8, in_queue=QUEUES[number % len(QUEUES)])
