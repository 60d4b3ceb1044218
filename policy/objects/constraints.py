"""Constraints on a pod's place, as its spec says: selectors, affinities, tolerations, ports, spreading.

Only constraints that can forbid a node are kept here; preferences are not. Sources: the in-tree filter plugins of
kube-scheduler (NodeName, NodeUnschedulable, NodeAffinity, TaintToleration, NodePorts, InterPodAffinity,
PodTopologySpread).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_DECIMAL = re.compile(r"[+-]?[0-9]{1,64}")

MOST_STEPS = 100
"""The most steps of each kind of constraint of a pod that are judged (see ``steps``).

Real pods have a dozen. While a pod is judged everybody else waits, and the API server takes thousands of them.
"""
MOST_STEPS_ON_NODES = 500
"""The most steps of constraints on nodes: programs list nodes by name there, and answers about nodes are looked up."""
MOST_RESOURCES = 500
"""The most resources of a pod that are judged. A node must list all of them to run it, and real nodes list some ten."""
CLAIM = "a resource claim"
BY_LABEL = "pod affinity that selects namespaces by label"
TOO_MANY = {
    "node_selector": "more node selectors than are judged",
    "node_terms": "more node affinity terms than are judged",
    "tolerations": "more tolerations than are judged",
    "host_ports": "more host ports than are judged",
    "affinity": "more affinity terms than are judged",
    "anti_affinity": "more anti-affinity terms than are judged",
    "spread": "more spreading constraints than are judged",
    "resources": "more resources than are judged",
}
"""Messages about a pod that has more of something than is judged."""
TOO_MANY_OF_NAMESPACE = "the pods of its namespace demand more of other pods than is judged"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on labels. ``operator`` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector: all requirements hold. Without requirements it selects everything."""

    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A term of required node affinity, on labels and on fields (``metadata.name``). An empty term matches no node."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """The taints that a pod tolerates. ``operator`` is Equal, Exists, Lt or Gt; an empty key or effect matches any."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a pod takes. An empty address, or 0.0.0.0, is every address."""

    port: int
    protocol: str = "TCP"
    address: str = ""


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A term of required pod affinity or anti-affinity.

    ``selector`` None selects no pod. ``namespaces`` None means all namespaces.
    """

    selector: Selector | None
    topology_key: str
    namespaces: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Spread:
    """A spread constraint with ``whenUnsatisfiable: DoNotSchedule``. ``selector`` None selects no pod."""

    topology_key: str
    max_skew: int
    selector: Selector | None
    min_domains: int = 1
    honor_node_affinity: bool = True
    honor_taints: bool = False


@dataclass(frozen=True, slots=True)
class Constraints:
    """All that can keep a pod off a node, besides room.

    ``node_terms`` None: no required node affinity; else one of its terms must match. ``undecidable`` names what the pod
    asks for that can't be judged from here (a volume that is bound to nodes, a resource claim).
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    node_terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    undecidable: tuple[str, ...] = ()


UNCONSTRAINED = Constraints()

ConstraintPart = tuple[str, str] | NodeTerm | Toleration | HostPort | PodTerm | Spread
"""One of the things that constraints consist of."""


def steps(part: ConstraintPart) -> int:
    """Returns the cost of judging a part of a pod's constraints: one step, and one for each requirement and name."""
    match part:
        case NodeTerm():
            return 1 + sum(1 + len(each.values) for each in part.labels + part.fields)
        case PodTerm():
            return _of_selector(part.selector) + len(part.namespaces or ())
        case Spread():
            return _of_selector(part.selector)
        case _:
            return 1


def _of_selector(selector: Selector | None) -> int:
    return 1 + (sum(1 + len(each.values) for each in selector.requirements) if selector is not None else 0)


def excess(constraints: Constraints) -> tuple[str, ...]:
    """Returns the messages about constraints of which a pod has more than is judged; those are not kept themselves."""
    return tuple(each for each in constraints.undecidable if each in _ALL_TOO_MANY)


_ALL_TOO_MANY = frozenset(TOO_MANY.values())


def matches(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels."""
    return selector is not None and all(holds(requirement, labels) for requirement in selector.requirements)


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether labels meet a requirement, as Kubernetes judges it: an absent label meets NotIn."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compare(requirement, value)
        case _:
            return False


def _compare(requirement: Requirement, value: str | None) -> bool:
    left, right = integer(value), integer(*requirement.values[:1])
    if left is None or right is None:
        return False
    return left > right if requirement.operator == "Gt" else left < right


def integer(text: str | None = None) -> int | None:
    """Returns a label's value as Kubernetes reads it: decimal digits, within 64 bits; None for any other."""
    if text is None or not _DECIMAL.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
