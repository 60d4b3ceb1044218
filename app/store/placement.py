"""Translates the parts of a pod's spec that exclude nodes to the constraints of the rules.

Pods of one template have the same bytes in these parts, so they share one translation.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from app.store.remembered import remembered
from policy.nodes.tolerations import EVERYTHING
from policy.objects.constraints import (
    BY_LABEL,
    MOST_STEPS,
    MOST_STEPS_ON_NODES,
    TOO_MANY,
    UNCONSTRAINED,
    ConstraintPart,
    Constraints,
    HostPort,
    NodeTerm,
    PodTerm,
    Requirement,
    Selector,
    Spread,
    Toleration,
    steps,
)

T = TypeVar("T", bound=ConstraintPart)

NULL = Raw(b"null")


class Volume(Struct, rename="camel", gc=False):
    """The sources of a volume that can bind it to nodes; volumes of all other sources fit every node."""

    persistent_volume_claim: Any = None
    ephemeral: Any = None
    gce_persistent_disk: Any = None
    aws_elastic_block_store: Any = None
    azure_disk: Any = None
    iscsi: Any = None
    rbd: Any = None

    @property
    def bound(self) -> bool:
        """Whether the volume may be usable on some nodes only."""
        return any(getattr(self, field) is not None for field in self.__struct_fields__)


class Expression(Struct, gc=False):
    """An expression of a label selector."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Struct, rename="camel", gc=False):
    """A label selector as Kubernetes writes it."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class _NodeTerm(Struct, rename="camel", gc=False):
    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class _NodeSelector(Struct, rename="camel", gc=False):
    node_selector_terms: list[_NodeTerm] | None = None


class _NodeAffinity(Struct, gc=False):
    required: _NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class _PodTerm(Struct, rename="camel", gc=False):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None


class _PodAffinity(Struct, gc=False):
    required: list[_PodTerm] | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class _Affinity(Struct, rename="camel", gc=False):
    node_affinity: _NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Toleration(Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class _Spread(Struct, rename="camel", gc=False):
    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


_affinity = msgspec.json.Decoder(_Affinity | None)
_tolerations = msgspec.json.Decoder(list[_Toleration] | None)
_spreads = msgspec.json.Decoder(list[_Spread] | None)


def constraints_of(
    namespace: str,
    labels: Mapping[str, str],
    node_selector: Mapping[str, str] | None,
    affinity: Raw,
    tolerations: Raw,
    spread: Raw,
    host_ports: Iterable[HostPort],
    undecidable: tuple[str, ...],
) -> Constraints:
    """Returns the constraints of a pod. Raises msgspec.MsgspecError if a part does not have the shape of Kubernetes."""
    spread_bytes = bytes(spread)
    return _translated(
        namespace if affinity != NULL else "",
        tuple(labels.items()) if b"matchLabelKeys" in spread_bytes else (),
        tuple((node_selector or {}).items()),
        bytes(affinity),
        bytes(tolerations),
        spread_bytes,
        tuple(host_ports),
        undecidable,
    )


@remembered(4096)
def _translated(
    namespace: str,
    labels: tuple[tuple[str, str], ...],
    node_selector: tuple[tuple[str, str], ...],
    affinity_bytes: bytes,
    toleration_bytes: bytes,
    spread_bytes: bytes,
    host_ports: tuple[HostPort, ...],
    undecidable: tuple[str, ...],
) -> Constraints:
    affinity = _affinity.decode(affinity_bytes) or _Affinity()
    near, apart = _terms(affinity.pod_affinity), _terms(affinity.pod_anti_affinity)
    required = affinity.node_affinity.required if affinity.node_affinity else None
    spreads = (
        _spread(given, dict(labels))
        for given in _spreads.decode(spread_bytes) or ()
        if given.when_unsatisfiable == "DoNotSchedule"
    )
    judged = _Judged()
    constraints = Constraints(
        node_selector=judged.of("node_selector", iter(node_selector), MOST_STEPS_ON_NODES) or (),
        node_terms=None
        if required is None
        else judged.of("node_terms", map(_node_term, required.node_selector_terms or ()), MOST_STEPS_ON_NODES),
        tolerations=judged.of("tolerations", map(_toleration, _tolerations.decode(toleration_bytes) or ()))
        or (EVERYTHING if TOO_MANY["tolerations"] in judged.too_many else ()),
        host_ports=judged.of("host_ports", iter(host_ports)) or (),
        affinity=judged.of("affinity", (_pod_term(term, namespace) for term in near)) or (),
        anti_affinity=judged.of("anti_affinity", (_pod_term(term, namespace) for term in apart)) or (),
        spread=judged.of("spread", spreads) or (),
    )
    kept = (near if constraints.affinity else []) + (apart if constraints.anti_affinity else [])
    if any(term.namespace_selector and _says_something(term.namespace_selector) for term in kept):
        undecidable += (BY_LABEL,)
    constraints = replace(constraints, undecidable=undecidable + tuple(judged.too_many))
    return UNCONSTRAINED if constraints == UNCONSTRAINED else constraints


class _Judged:
    """Translates the parts of a pod's constraints, kind by kind. A kind with too many parts is dropped as a whole.

    The rules then let the pod in by its numbers alone, as with any other constraint that they cannot judge. Nobody is
    evicted for such a pod, and constraints that were dropped keep no other pod away.
    """

    def __init__(self) -> None:
        self.too_many: list[str] = []

    def of(self, name: str, parts: Iterator[T], most: int = MOST_STEPS) -> tuple[T, ...] | None:
        """Returns all the parts, or None once they take more than ``most`` steps; the rest are not even translated."""
        kept, left = [], most
        for part in parts:
            left -= steps(part)
            if left < 0:
                self.too_many.append(TOO_MANY[name])
                return None
            kept.append(part)
        return tuple(kept)


def _terms(affinity: _PodAffinity | None) -> list[_PodTerm]:
    return affinity.required or [] if affinity else []


def _says_something(selector: LabelSelector) -> bool:
    return bool(selector.match_labels or selector.match_expressions)


def _toleration(given: _Toleration) -> Toleration:
    return Toleration(given.key or "", given.operator or "Equal", given.value or "", given.effect or "")


def _requirements(expressions: list[Expression] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(given.key, given.operator, tuple(given.values or ())) for given in expressions or ())


def selector_of(given: LabelSelector) -> Selector:
    """Returns a label selector as the rules see it."""
    labels = tuple(Requirement(key, "In", (value,)) for key, value in sorted((given.match_labels or {}).items()))
    return Selector(labels + _requirements(given.match_expressions))


def _node_term(given: _NodeTerm) -> NodeTerm:
    return NodeTerm(_requirements(given.match_expressions), _requirements(given.match_fields))


def _pod_term(given: _PodTerm, own_namespace: str) -> PodTerm:
    # A namespace selector cannot be evaluated here. For a pod that is on a node, all namespaces is the safe reading; a
    # pod that is still to be placed is undecidable.
    named = frozenset(given.namespaces or (own_namespace,)) if given.namespace_selector is None else None
    return PodTerm(selector_of(given.label_selector) if given.label_selector else None, given.topology_key, named)


def _spread(given: _Spread, labels: Mapping[str, str]) -> Spread:
    selector = selector_of(given.label_selector) if given.label_selector else None
    if selector is not None and given.match_label_keys:  # API servers since 1.34 merge them; twice is harmless
        own = tuple(Requirement(key, "In", (labels[key],)) for key in given.match_label_keys if key in labels)
        selector = Selector(selector.requirements + own)
    return Spread(
        topology_key=given.topology_key,
        max_skew=given.max_skew,
        selector=selector,
        min_domains=given.min_domains or 1,
        honor_node_affinity=given.node_affinity_policy != "Ignore",
        honor_taints=given.node_taints_policy == "Honor",
    )
