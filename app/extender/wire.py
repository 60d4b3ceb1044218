"""kube-scheduler's extender protocol: typed requests, and replies as bytes.

All keys are PascalCase (k8s.io/kube-scheduler/extender/v1). Only the needed fields of a request are decoded. The
candidate nodes stay bytes, since most replies return them unchanged.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import filterfalse
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from app.problems import Problem
from app.store.metadata import Metadata
from app.store.pod_object import PodObject
from app.store.pods import pod_of
from app.store.quantities import InvalidObject
from policy.cluster.pod_admission import FEW
from policy.objects.pod import Pod
from policy.preemption.plans import Plan

T = TypeVar("T")

_MISSING = re.compile("missing required field `([^`]+)`")

NULL = Raw(b"null")


class ExtenderArgs(Struct, rename="pascal", gc=False):
    """The request of filter and prioritize: NodeNames under ``nodeCacheCapable: true``, else Nodes (a NodeList)."""

    pod: PodObject
    nodes: Raw = NULL
    node_names: Raw = NULL


class MetaPod(Struct, gc=False):
    """A victim, named by its UID."""

    UID: str


class MetaVictims(Struct, rename={"pods": "Pods"}, gc=False):
    """The proposed victims on a node, under ``nodeCacheCapable: true``."""

    pods: list[MetaPod] | None = None
    NumPDBViolations: int = 0


class _VictimPod(Struct, gc=False):
    metadata: Metadata


class Victims(Struct, rename={"pods": "Pods"}, gc=False):
    """The proposed victims on a node, as whole pods."""

    pods: list[_VictimPod] | None = None
    NumPDBViolations: int = 0


class PreemptionArgs(Struct, rename="pascal", gc=False):
    """The request of preempt."""

    pod: PodObject
    node_name_to_victims: dict[str, Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None

    def candidates(self) -> dict[str, MetaVictims]:
        """Returns the proposed victims by node, named by UID in both modes."""
        whole = {
            node: MetaVictims([MetaPod(pod.metadata.uid or "") for pod in victims.pods or ()], victims.NumPDBViolations)
            for node, victims in (self.node_name_to_victims or {}).items()
        }
        return whole | (self.node_name_to_meta_victims or {})


class BindingArgs(Struct, gc=False):
    """The request of bind."""

    PodName: str
    PodNamespace: str
    PodUID: str
    Node: str


class _NodeItem(Struct, gc=False):
    metadata: Metadata


class _NodeList(Struct, gc=False):
    items: list[_NodeItem] | None = None


class _RawNodeList(Struct, gc=False):
    items: list[Raw] | None = None


class _PreemptionResult(Struct, rename="pascal", gc=False):
    node_name_to_meta_victims: dict[str, MetaVictims]


NO_SCORES = b"[]"
NO_CANDIDATES = b"{}"
BOUND = b"{}"

_args = msgspec.json.Decoder(ExtenderArgs)
_preemption_args = msgspec.json.Decoder(PreemptionArgs)
_binding_args = msgspec.json.Decoder(BindingArgs)
_names = msgspec.json.Decoder(list[str])
_node_list = msgspec.json.Decoder(_NodeList)
_raw_node_list = msgspec.json.Decoder(_RawNodeList)
_encoder = msgspec.json.Encoder()


def read_args(body: bytes) -> ExtenderArgs:
    """Decodes a request of filter or prioritize. Raises Problem (400) that names the field at fault."""
    if not body.isascii():
        _ensure_text(body)
    args = _decode(_args, body)
    if not _is_given(args.node_names, b"[", "NodeNames") and not _is_given(args.nodes, b"{", "Nodes"):
        raise Problem(400, "neither NodeNames nor Nodes is given", field="NodeNames")
    return args


def read_preemption(body: bytes) -> PreemptionArgs:
    """Decodes a request of preempt. Raises Problem (400)."""
    return _decode(_preemption_args, body)


def read_binding(body: bytes) -> BindingArgs:
    """Decodes a request of bind. Raises Problem (400)."""
    return _decode(_binding_args, body)


def read_pod(obj: PodObject) -> Pod:
    """Translates the pod of a request. Raises Problem (400)."""
    try:
        return pod_of(obj)
    except InvalidObject as error:
        raise Problem(400, error.problem, field=f"Pod.{error.field}") from error


def all_pass(args: ExtenderArgs) -> bytes:
    """Returns the reply of filter that passes every candidate node, in the order and the bytes of the request."""
    if args.node_names != NULL:
        return b'{"NodeNames":%b}' % bytes(args.node_names)
    return b'{"Nodes":%b}' % bytes(args.nodes)


def none_pass(args: ExtenderArgs, message: str) -> bytes:
    """Returns the reply of filter that refuses every candidate node. Names each, as only a named node has a reason.

    The nodes are unresolvable: no eviction there by the scheduler's own preemption would change the answer.
    Raises Problem (400).
    """
    passing = b'"NodeNames":[]' if args.node_names != NULL else b'"Nodes":{"items":[]}'
    return b'{%b,"FailedAndUnresolvableNodes":%b}' % (passing, _each_with(args, message))


def _each_with(args: ExtenderArgs, message: str) -> bytes:
    """Encodes a map of all candidate nodes to a text, without decoding the names if they are written as Go does."""
    names = bytes(args.node_names)
    between = names[2:-2]
    quotes, separators = between.count(b'"'), between.count(b'","')
    if names[:2] == b'["' and names[-2:] == b'"]' and b"\\" not in names and quotes == 2 * separators:
        text = _encoder.encode(message)  # nothing is escaped, so the counted separators stand between names only
        return b'{"%b":%b}' % (between.replace(b'","', b'":%b,"' % text), text)
    return _encoder.encode(dict.fromkeys(candidates(args), message))


def some_pass(args: ExtenderArgs, names: "Candidates", failed: dict[str, str]) -> bytes:
    """Returns the reply of filter that refuses these candidates, each with its text, and passes all others in order.

    Raises Problem (400).
    """
    if args.node_names != NULL:
        return b'{"NodeNames":%b,"FailedAndUnresolvableNodes":%b}' % (names.without(failed), _encoder.encode(failed))
    items = _decode(_raw_node_list, args.nodes, "Nodes").items or []
    kept = [item for item, name in zip(items, names, strict=True) if name not in failed]
    return _encoder.encode({"Nodes": {"items": kept}, "FailedAndUnresolvableNodes": failed})


def scores(hosts: Collection[str], score: int) -> bytes:
    """Returns the reply of prioritize that scores these hosts so, and all others 0."""
    names = _encoder.encode(list(hosts))
    if names == NO_SCORES or b"\\" in names:
        return _encoder.encode([{"Host": host, "Score": score} for host in hosts])
    between = b'","Score":%d},{"Host":"' % score  # nothing is escaped, so this separator stands between names only
    return b'[{"Host":%b,"Score":%d}]' % (names[1:-1].replace(b'","', between), score)


def preemption(plans: Iterable[Plan]) -> bytes:
    """Returns the reply of preempt: the victims by node, the most important of each node first."""
    victims = {
        plan.node: MetaVictims([MetaPod(victim.uid) for victim in plan.victims], plan.violations) for plan in plans
    }
    return _encoder.encode(_PreemptionResult(victims)) if victims else NO_CANDIDATES


def proposed(args: PreemptionArgs, *, respect_budgets: bool = False) -> bytes:
    """Returns the reply of preempt that agrees with the scheduler. Omits nodes without a victim, which are an error.

    ``respect_budgets``: also omits nodes where a disruption budget would be violated.
    """
    kept = {
        node: victims
        for node, victims in args.candidates().items()
        if victims.pods and not (respect_budgets and victims.NumPDBViolations)
    }
    return _encoder.encode(_PreemptionResult(kept)) if kept else NO_CANDIDATES


def binding_failed(message: str) -> bytes:
    """Returns the reply of bind for a pod that was not bound."""
    return _encoder.encode({"Error": message})


def _decode(decoder: msgspec.json.Decoder[T], body: bytes | Raw, within: str = "") -> T:
    """Decodes a body, or the field ``within`` of it. Raises Problem (400)."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        field = within + path.rstrip("`")
        if missing := _MISSING.search(problem):
            field = f"{field}.{missing[1]}"
        raise Problem(400, problem, field=field.lstrip(".") or None) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise Problem(400, "the body is nested too deeply") from error


def _ensure_text(body: bytes) -> None:
    """Raises Problem (400) unless the body is UTF-8: returned bytes need this check, decoded fields have their own."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Problem(400, f"the body is not JSON: {error}") from error


def _is_given(raw: Raw, opening: bytes, field: str) -> bool:
    if raw == NULL:
        return False
    if bytes(memoryview(raw)[:1]) != opening:
        raise Problem(400, f"must be {'a list' if opening == b'[' else 'an object'}", field=field)
    return True


class Candidates(Collection[str]):
    """The names of the candidate nodes. Whether one is among them is seen in the bytes; else they are decoded once.

    All but ``in`` raises Problem (400) for what cannot be decoded.
    """

    __slots__ = ("_args", "_known_plain", "_names")
    _names: list[str] | None
    _known_plain: bytes | None

    def __init__(self, args: ExtenderArgs) -> None:
        self._args, self._names, self._known_plain = args, None, None  # most questions need neither

    def __contains__(self, name: object) -> bool:
        return b'"%b"' % str(name).encode() in plain if (plain := self._plain) else name in self._read()

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read()) if self._names is not None or not self._plain else self._plain.count(b'"') // 2

    def without(self, names: Collection[str]) -> bytes:
        """Returns the list in JSON without these names, in the order of the request."""
        if self._names is None and len(names) <= FEW and self._plain:
            left = b"%b," % self._plain[1:-1]
            for name in names:
                left = left.replace(b'"%b",' % name.encode(), b"", 1)
            if len(left) == len(self._plain) - 1 - sum(len(name) + len('"",') for name in names):
                return b"[%b]" % left.rstrip(b", \t\r\n")
        return _encoder.encode(list(filterfalse(names.__contains__, self._read())))

    @property
    def _plain(self) -> bytes:
        """The list in JSON, if no name has an escape there: then a quote only begins or ends a name. Else empty."""
        if self._known_plain is None:
            names = bytes(self._args.node_names)
            self._known_plain = names if self._args.node_names != NULL and b"\\" not in names else b""
        return self._known_plain

    def _read(self) -> list[str]:
        if self._names is None:
            self._names = candidates(self._args)
        return self._names


def candidates(args: ExtenderArgs) -> list[str]:
    """Returns the names of the candidate nodes. Raises Problem (400)."""
    if args.node_names != NULL:
        return _decode(_names, args.node_names, "NodeNames")
    nodes = _decode(_node_list, args.nodes, "Nodes")
    return [item.metadata.name for item in nodes.items or ()]
