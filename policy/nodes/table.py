"""Nodes as rows of numbers, and the pods on them. The questions of ``fit`` read this table.

A search asks thousands of nodes at once. So the resources of nodes and the requests of pods stand in arrays, with a row
per node and a column per resource. The values of a label stand as a code per row. Beside them the table keeps what
questions need of the demands between pods: pods by their labels (policy.nodes.pod_index), pods by host port, and the
pods that keep others away (policy.nodes.pod_demands).
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policy.nodes.node_attributes import Mask, NodeAttributes
from policy.nodes.pod_demands import Demanding
from policy.nodes.pod_index import PodIndex
from policy.nodes.tolerations import Tolerating, forbidding
from policy.objects.constraints import Taint
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.quantity import LARGEST
from policy.objects.resources import Resources, add, count_names, is_extended, subtract, total

Shared = tuple[frozenset[str], Resources]
"""Devices that count for one pod, and UIDs of the other pods that hold them."""
_NOBODY: Mapping[str, Pod] = {}
_FIRST_ROWS, _FIRST_COLUMNS = 64, 8


@dataclass(slots=True)
class AlikeNodes:
    """Nodes with the same taints that keep pods off, or, for None, nodes that take no new pods: names and resources.

    ``standing`` is the sum of the requests of the pods that stand there. It is not kept for nodes without taints.
    """

    taints: tuple[Taint, ...] | None
    names: set[str] = field(default_factory=set)
    allocatable: dict[str, int] = field(default_factory=dict)
    standing: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Site:
    """A node as far as it is known, and the pods that stand on it or are expected there."""

    name: str
    node: Node | None = None
    alike: AlikeNodes | None = None
    row: int = -1
    pods: dict[str, Pod] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Placed:
    """A pod on a site. ``stands``: it is there; otherwise it is expected, and nobody may rely on it yet."""

    pod: Pod
    site: Site
    stands: bool


class NodeTable:
    """All nodes, and the pods that stand on them or are expected there. Each change is applied as a difference."""

    def __init__(self) -> None:
        """Creates an empty table."""
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.columns: dict[str, int] = {}
        self.expected: dict[str, Placed] = {}
        self.overdue: Collection[str] = ()
        """UIDs of pods that take room where they are, but count for nobody (see policy.cluster.overdue)."""
        self.memo: dict[Hashable, Any] = {}
        """Results computed from the table as it stands. Every change that could matter to one of them empties it."""
        self.attributes = NodeAttributes(self.names, self.nodes)
        self._allocatable = np.zeros((_FIRST_ROWS, _FIRST_COLUMNS), np.int64, order="F")
        self._used = np.zeros((_FIRST_ROWS, _FIRST_COLUMNS), np.int64, order="F")
        self.moved = False
        """Whether a pod came to, or left, a node that may count only with its pods' requests. The reader resets it."""
        self.names_of_resources: dict[str, int] = {}
        """The number of nodes that name each resource, even with an amount of zero."""
        self.undecidable: frozenset[str] = frozenset()
        """Devices of which it is not known how many each node has left, though nodes list some."""
        self.sharing: dict[str, tuple[Shared, ...]] = {}
        """By UID, what a pod's leaving does not free while others hold it too. Set it by ``see_sharing``."""
        self._listing: dict[str, int] = {}
        self._alike: dict[tuple[Taint, ...] | None, AlikeNodes] = {}
        self._sites: dict[str, Site] = {}
        self._placed: dict[str, Placed] = {}
        self._watched: set[str] = set()
        self._followed: AbstractSet[str] = frozenset()
        self.changes_of_followed = 0
        """Counts changes of what is used on the nodes to ``follow``, of what nodes have, and of which there are."""
        self._hosts: dict[str, int] = {}
        self._by_namespace: dict[str, dict[str, Placed]] = {}
        self._by_port: dict[tuple[str, int], dict[str, Placed]] = {}
        self.index = PodIndex()
        """The pods by their labels, read only."""
        self.demanding = Demanding()
        """The pods that demand something of other pods, read only."""

    def upsert_node(self, node: Node) -> None:
        """Adds or replaces a node. Pods that were put on it before it was known count from now on."""
        site = self._site(node.name)
        old = site.node
        self._count(site, node)
        site.node = node
        if old is None:
            self._append(site)
            self.index.put_on(site.pods, site.row)
        if old is None or _may_stand(old) != _may_stand(node):
            self._forget(nodes=True)
        if old is None or old.allocatable != node.allocatable:
            columns = [self._column(resource) for resource in node.allocatable]
            self._allocatable[site.row] = 0
            self._allocatable[site.row, columns] = [min(amount, LARGEST) for amount in node.allocatable.values()]
            self.changes_of_followed += 1
            self._forget()

    def delete_node(self, name: str) -> None:
        """Removes a node. Keeps the pods that are still put on it; they count again when it comes back."""
        site = self._sites.get(name)
        if site is None or site.node is None:
            return
        self._count(site, None)
        last = self._sites[self.names[-1]]
        for array in (self._allocatable, self._used):
            array[site.row] = array[last.row]
            array[last.row] = 0
        self.names[site.row] = last.name
        self.rows[last.name] = last.row = site.row
        self.index.put_on(last.pods, last.row)
        self.index.put_on(site.pods, -1)
        self.names.pop()
        del self.rows[name]
        site.node, site.row = None, -1
        self._forget(nodes=True)
        self._drop_if_empty(site)

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Puts a pod on its node as standing, or, if it has no node yet, on ``node_name`` as expected.

        Replaces what was known of the pod before. Removes a pod that has finished or has no node at all.
        """
        name, stands = pod.node or node_name or "", bool(pod.node)
        known = self._placed.get(pod.uid)
        if known is not None and known.site.name == name and known.stands == stands and _takes_as(pod, known.pod):
            if not _counts_as(pod, known.pod):
                self.index.change(pod)
                self._forget()
            known.pod = known.site.pods[pod.uid] = pod
            return
        if known is not None:
            self.remove(pod.uid)
        if not name or pod.finished:
            return
        placed = Placed(pod, self._site(name), stands)
        placed.site.pods[pod.uid] = pod
        if pod.namespace in self._watched:
            add(self._hosts, {placed.site.name: 1})
        self._use(placed.site, pod.request, add)
        if stands:
            self.moved |= _stand(placed.site, pod.request, add)
        self._placed[pod.uid] = placed
        if not stands:
            self.expected[pod.uid] = placed
        for registry, key in self._registries(pod):
            registry.setdefault(key, {})[pod.uid] = placed
        self.index.add(pod, placed.site.row, stands=stands)
        self.demanding.place(pod)
        self._forget()

    def remove(self, uid: str) -> None:
        """Removes a pod that stands or is expected somewhere. Does nothing for an unknown pod."""
        placed = self._placed.pop(uid, None)
        if placed is None:
            return
        pod, site = placed.pod, placed.site
        del site.pods[uid]
        if pod.namespace in self._watched:
            subtract(self._hosts, {site.name: 1})
        self._use(site, pod.request, subtract)
        if placed.stands:
            self.moved |= _stand(site, pod.request, subtract)
        self.expected.pop(uid, None)
        for registry, key in self._registries(pod):
            registry[key].pop(uid, None)
            if not registry[key]:
                del registry[key]
        self.index.remove(uid)
        self.demanding.remove(uid)
        self._forget()
        self._drop_if_empty(site)

    def wait(self, pod: Pod) -> None:
        """Notes that a pod waits for a node: its demands on other pods count against its namespace's budget."""
        if self.demanding.wait(pod):
            self._forget()

    def wait_no_more(self, uid: str) -> None:
        """Notes that a pod no longer waits for a node. Does nothing if it did not wait."""
        if self.demanding.wait_no_more(uid):
            self._forget()

    def place(self, uid: str) -> tuple[Pod, str] | None:
        """Returns a pod and the name of its node, to ``restore`` later; None if it stands nowhere."""
        placed = self._placed.get(uid)
        return (placed.pod, placed.site.name) if placed else None

    def restore(self, uid: str, before: tuple[Pod, str] | None) -> None:
        """Puts a pod back where it stood before."""
        if before is None:
            self.remove(uid)
        else:
            self.add(*before)

    def node(self, name: str) -> Node | None:
        """Returns the node of this name, if it is known."""
        site = self._sites.get(name)
        return site.node if site else None

    def site(self, name: str) -> Site | None:
        """Returns a node and its pods; None where neither is known."""
        return self._sites.get(name)

    def placed(self, uid: str) -> Placed | None:
        """Returns where a pod stands or is expected."""
        return self._placed.get(uid)

    def pods_on(self, name: str) -> Mapping[str, Pod]:
        """Returns the pods that stand on a node or are expected there, by UID. A view: do not change or keep it."""
        site = self._sites.get(name)
        return site.pods if site else _NOBODY

    def hosts_of(self, namespaces: AbstractSet[str]) -> AbstractSet[str]:
        """Returns the nodes where a pod of one of these namespaces stands or is expected. A view: do not keep it.

        The count per node is kept from one question to the next. Only namespaces that were added or dropped since then
        are gone through.
        """
        for namespace in namespaces ^ self._watched if namespaces != self._watched else ():
            change = subtract if namespace in self._watched else add
            for placed in self._by_namespace.get(namespace, {}).values():
                change(self._hosts, {placed.site.name: 1})
            self._watched ^= {namespace}
        return self._hosts.keys()

    def follow(self, names: AbstractSet[str]) -> None:
        """Counts in ``changes_of_followed`` from now on what changes on these nodes."""
        self._followed = names
        self.changes_of_followed += 1

    @property
    def allocatable(self) -> NDArray[np.int64]:
        """The allocatable resources, a row per node and a column per resource. A view, like ``used``."""
        return self._allocatable[: len(self.names), : len(self.columns)]

    @property
    def used(self) -> NDArray[np.int64]:
        """The sum of the requests of each node's pods, including expected ones."""
        return self._used[: len(self.names), : len(self.columns)]

    @property
    def free(self) -> NDArray[np.int64]:
        """The resources that each node has left; negative where the pods request more than there is."""
        return self.allocatable - self.used

    def room(self, whose: Tolerating) -> dict[str, int]:
        """Returns the free resources of all nodes that take new pods and whose taints are tolerated, in sum."""
        closed = [each for each in self._alike.values() if each.taints is None or not whose.tolerates(each.taints)]
        key = "room", frozenset(map(id, closed))
        known: dict[str, int] | None = self.memo.get(key)
        if known is None:
            left = np.maximum(self.free, 0)
            left[self.mask_of(chain.from_iterable(each.names for each in closed))] = 0
            sums = left.sum(axis=0).tolist()
            known = self.memo[key] = {resource: sums[column] for resource, column in self.columns.items()}
        return known

    @property
    def listed(self) -> frozenset[str]:
        """The resources of which some node has something, even a node that takes no new pods."""
        return frozenset(self._listing.keys() - self.undecidable)

    def lists(self, resource: str) -> bool:
        """Whether the nodes tell which of them serve a resource.

        An extended resource that no node lists is not judged here, nor is one whose devices cannot be counted.
        Kubernetes' Dynamic Resource Allocation may serve it, or another extender accounts for it. kube-scheduler asks
        ``filter`` only about nodes that pass its own filters, so something does serve it there.
        """
        return (resource in self._listing and resource not in self.undecidable) or not is_extended(resource)

    def see_undecidable(self, resources: frozenset[str]) -> None:
        """Sees of which devices it is not known how many each node has left."""
        self.undecidable = resources
        self.changes_of_followed += 1
        self._forget()

    def see_sharing(self, uid: str, shared: tuple[Shared, ...]) -> None:
        """Sees what a pod shares with others."""
        if self.sharing.get(uid, ()) != shared:
            self.sharing[uid] = shared
            if not shared:
                del self.sharing[uid]
            self._forget()

    def is_short_of(self, resource: str) -> bool:
        """Whether some node has nothing left of a resource."""
        column = self.columns.get(resource)
        return column is not None and bool((self.used[:, column] >= self.allocatable[:, column]).any())

    def first_by_name(self, rows: NDArray[np.intp]) -> str:
        """Returns the name that comes first of these rows' nodes. There is one."""
        return self.names[int(rows[self.attributes.ranks()[rows].argmin()])]

    def mask_of(self, names: Iterable[str]) -> Mask:
        """Returns a mask of the rows of these nodes; unknown names are left out."""
        mask = np.zeros(len(self.names), np.bool_)
        mask[[self.rows[name] for name in names if name in self.rows]] = True
        return mask

    def capacity(self, whose: Tolerating) -> Resources:
        """Returns the capacity of all nodes together for pods with these tolerations.

        A node that takes no new pods, or whose taints are not tolerated, counts only with what the pods there use.
        Overdue pods do not count there.
        """
        key = "capacity", id(whose), whose.version
        known: Resources | None = self.memo.get(key)
        if known is None:
            counts = [
                each.allocatable if each.taints is not None and whose.tolerates(each.taints) else each.standing
                for each in self._alike.values()
            ]
            known = self.memo[key] = total(counts)
        if not self.overdue:
            return known
        left = dict(known)
        for placed in filter(None, map(self._placed.get, self.overdue)):
            alike = placed.site.alike
            if placed.stands and alike is not None and (alike.taints is None or not whose.tolerates(alike.taints)):
                subtract(left, placed.pod.request)
        return left

    def totals(self) -> dict[str, tuple[int, int]]:
        """Returns allocatable and requested by resource, over all nodes; of large sums only nearly exact."""
        allocatable = self.allocatable.sum(axis=0, dtype=np.float64)
        used = self.used.sum(axis=0, dtype=np.float64)
        return {resource: (int(allocatable[column]), int(used[column])) for resource, column in self.columns.items()}

    def in_namespaces(self, namespaces: Iterable[str] | None) -> Iterable[Placed]:
        """Returns the pods of these namespaces; of all, for None."""
        if namespaces is None:
            return self._placed.values()
        return chain.from_iterable(self._by_namespace.get(namespace, {}).values() for namespace in namespaces)

    def takers_of(self, protocol: str, port: int) -> Iterable[Placed]:
        """Returns the pods that take this port of their node, at whatever address."""
        return self._by_port.get((protocol, port), {}).values()

    def nodes(self) -> Iterator[Node]:
        """Yields the nodes in the order of rows."""
        return (site.node for name in self.names if (site := self._sites[name]).node)

    def _registries(self, pod: Pod) -> Iterator[tuple[dict[Any, dict[str, Placed]], Hashable]]:
        """Yields each registry in which a pod stands besides its node, with the key there."""
        yield self._by_namespace, pod.namespace
        if pod.constraints.host_ports:
            for key in {(port.protocol, port.port) for port in pod.constraints.host_ports}:
                yield self._by_port, key

    def _count(self, site: Site, new: Node | None) -> None:
        """Updates the sums of nodes that are alike. The site must still be as it was."""
        old, before = site.node, site.alike
        count_names(self.names_of_resources, old.allocatable if old else (), new.allocatable if new else ())
        for node, change in ((old, subtract), (new, add)):
            if node is not None:
                change(self._listing, {resource: 1 for resource, amount in node.allocatable.items() if amount})
                self.attributes.count(node, change)
        taints = forbidding(new.taints) if new is not None and new.usable else None
        if before is not None and old is not None:
            subtract(before.allocatable, old.allocatable)
            if new is not None and before.taints == taints:
                add(before.allocatable, new.allocatable)
                return
            before.names.discard(site.name)
            _stand(site, _standing_on(site), subtract)
            if not before.names:
                del self._alike[before.taints]
        site.alike = None
        if new is not None:
            after = site.alike = self._alike.setdefault(taints, AlikeNodes(taints))
            after.names.add(site.name)
            add(after.allocatable, new.allocatable)
            _stand(site, _standing_on(site), add)

    def _site(self, name: str) -> Site:
        site = self._sites.get(name)
        if site is None:
            site = self._sites[name] = Site(name)
        return site

    def _drop_if_empty(self, site: Site) -> None:
        if site.node is None and not site.pods:
            del self._sites[site.name]

    def _append(self, site: Site) -> None:
        site.row = self.rows[site.name] = len(self.names)
        self.names.append(site.name)
        if site.row >= len(self._used):
            self._grow(rows=len(self._used))
        used, site.used = site.used, {}
        self._use(site, used, add)

    def _use(self, site: Site, resources: Resources, change: Callable[[dict[str, int], Resources], None]) -> None:
        """Adds or subtracts the request of a pod. Sums are exact; the row shows them up to ``LARGEST``."""
        change(site.used, resources)
        self.changes_of_followed += site.name in self._followed
        if site.row >= 0:
            row, used = site.row, self._used
            for resource in resources:
                if (column := self.columns.get(resource)) is not None:
                    used[row, column] = min(LARGEST, site.used.get(resource, 0))

    def _column(self, resource: str) -> int:
        """Returns the column of a resource that some node has. Resources that only pods name get no column."""
        column = self.columns.get(resource)
        if column is None:
            column = self.columns[resource] = len(self.columns)
            if column >= self._used.shape[1]:
                self._grow(columns=self._used.shape[1])
            for name, row in self.rows.items():
                self._used[row, column] = min(LARGEST, self._sites[name].used.get(resource, 0))
        return column

    def _grow(self, rows: int = 0, columns: int = 0) -> None:
        size = self._used.shape[0] + rows, self._used.shape[1] + columns
        for name in ("_allocatable", "_used"):
            old, new = getattr(self, name), np.zeros(size, np.int64, order="F")
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, name, new)

    def _forget(self, *, nodes: bool = False) -> None:
        self.memo.clear()
        if nodes:
            self.attributes.memo.clear()
            self.changes_of_followed += 1


def _stand(site: Site, request: Resources, change: Callable[[dict[str, int], Resources], None]) -> bool:
    """Adds or subtracts what stands on a node, if its taints make that matter; returns whether they do."""
    if site.alike is None or site.alike.taints == ():
        return False
    change(site.alike.standing, request)
    return True


def _standing_on(site: Site) -> Resources:
    return total(pod.request for pod in site.pods.values() if pod.node)


def _may_stand(node: Node) -> tuple[object, ...]:
    """Returns what decides which pods may stand on a node, apart from room."""
    return node.labels, node.taints, node.unschedulable, node.ready


def _takes_as(new: Pod, old: Pod) -> bool:
    """Whether a pod takes the same of its node as before, and keeps the same pods away."""
    return not new.finished and (new.request, new.constraints) == (old.request, old.constraints)


def _counts_as(new: Pod, old: Pod) -> bool:
    """Whether nothing else has changed in a pod that could matter to the place of any pod."""
    return (new.labels, new.priority, new.terminating) == (old.labels, old.priority, old.terminating)
