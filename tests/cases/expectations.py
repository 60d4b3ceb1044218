"""Compares an answer with the ``then`` of a case; every function says what is wrong, or None."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from tests.cases.quantity import same

RESOURCES = r"(?P<resources>[^\s,]+(?:, [^\s,]+)*)"
RULES = {
    "elastic-quota-max": rf"ElasticQuota max exceeded: {RESOURCES}",
    "elastic-quota-borrowing": rf"ElasticQuota borrowing exhausted: {RESOURCES}",
    "elastic-quota-invalid": "ElasticQuota is invalid",
    "queue-capability": rf"Queue capability exceeded: {RESOURCES}",
    "queue-deserved": rf"Queue deserved exceeded: {RESOURCES}",
    "queue-closed": "Queue is closed",
    "namespace-fair-share": rf"Namespace fair share exceeded: {RESOURCES}",
    "gang-minimum": "Gang minimum cannot be placed yet",
    "node-reserved": re.escape("node(s) resource was(were) reserved"),
    "node-protected": re.escape("node(s) whose pods may not be evicted for this pod group"),
    "node-held": re.escape("node(s) held for a pod that is being given room"),
}
NOT_SYNCED = "not-synced"
SHARE_TOLERANCE = 5e-4  # of a fraction that a case writes with three or four digits


@dataclass(frozen=True)
class Answer:
    """What came back for one question."""

    kind: str
    status: int
    body: Any
    nodes: Sequence[str] = ()  # that were sent along
    names: Mapping[str, str] = field(default_factory=dict)  # NAMESPACE/NAME by UID


def rule_of(text: str) -> str | None:
    """The rule whose message this is, word for word."""
    for rule, pattern in RULES.items():
        if shape := re.fullmatch(pattern, text):
            resources = shape.groupdict().get("resources", "").split(", ")
            return rule if resources == sorted(set(resources)) else None
    return None


def must_not_happen(then: Mapping[str, Any]) -> bool:
    evictions = then.get("evictions")
    return evictions == [] or (isinstance(evictions, Mapping) and evictions.get("count") == 0)


def mismatch(then: Mapping[str, Any], answer: Answer) -> str | None:
    if then.get("refused") == NOT_SYNCED:
        return None if answer.status == HTTPStatus.SERVICE_UNAVAILABLE else f"HTTP {answer.status}, not 503"
    if answer.status != HTTPStatus.OK and answer.kind != "get":
        return f"HTTP {answer.status}"
    if answer.kind == "filter" and (wrong := _breaks_filter_protocol(answer)):
        return wrong
    for word, wanted in then.items():
        check = _CHECKS.get((answer.kind, word))
        wrong = check(wanted, answer) if check else difference({word: wanted}, answer.body)
        if wrong:
            return wrong
    return None


def difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """What of ``expected`` is not in ``actual``: mappings as subsets, quantities by value, lists of objects by name."""
    if isinstance(expected, Mapping):
        return _lacks_keys(expected, actual, path)
    if isinstance(expected, list):
        return _lacks_elements(expected, actual, path)
    return None if _equal(expected, actual) else f"{path} is {actual!r}, wanted {expected!r}"


def _lacks_keys(expected: Mapping[str, Any], actual: Any, path: str) -> str | None:
    if not isinstance(actual, Mapping | list):
        return f"{path or 'the body'} is {actual!r}, wanted {expected!r}"
    for key, wanted in expected.items():
        found = actual.get(key) if isinstance(actual, Mapping) else _named(actual, key)
        where = f"{path}.{key}".lstrip(".")
        if found is None and wanted is not None:
            if not _is_nothing(wanted):
                return f"{where} is absent, wanted {wanted!r}"
        elif wrong := difference(wanted, found, where):
            return wrong
    return None


def _lacks_elements(expected: list[Any], actual: Any, path: str) -> str | None:
    if not isinstance(actual, list) or (actual and not expected):
        return f"{path} is {actual!r}, wanted {expected!r}"
    missing = [wanted for wanted in expected if all(difference(wanted, there) for there in actual)]
    return f"{path} lacks {missing!r}: {actual!r}" if missing else None


def _is_nothing(wanted: Any) -> bool:
    """A resource that is not listed is none of it."""
    return not isinstance(wanted, bool) and same(wanted, 0)


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(actual, float) and isinstance(expected, int | float):
        return math.isclose(expected, actual, abs_tol=SHARE_TOLERANCE)
    return expected == actual or same(expected, actual)


def _named(objects: list[Any], name: str) -> Any:
    for key_of in (_name, _full_name, _namespace):
        found = [each for each in objects if isinstance(each, Mapping) and key_of(each) == name]
        if len(found) == 1:
            return found[0]
    return None


def _name(thing: Mapping[str, Any]) -> Any:
    return thing.get("name")


def _full_name(thing: Mapping[str, Any]) -> str:
    return f"{thing.get('namespace')}/{thing.get('name')}"


def _namespace(thing: Mapping[str, Any]) -> Any:
    return thing.get("namespace")


def _passed(answer: Answer) -> list[str]:
    return answer.body.get("NodeNames") or []


def _failed(answer: Answer) -> dict[str, str]:
    return {**(answer.body.get("FailedNodes") or {}), **_unresolvable(answer)}


def _unresolvable(answer: Answer) -> dict[str, str]:
    return answer.body.get("FailedAndUnresolvableNodes") or {}


def _breaks_filter_protocol(answer: Answer) -> str | None:
    if error := answer.body.get("Error"):
        return f"Error: {error}"
    passed, failed = _passed(answer), _failed(answer)
    if sorted([*passed, *failed]) != sorted(answer.nodes):
        return f"of the nodes {list(answer.nodes)}, {passed} passed and {sorted(failed)} failed"
    if passed != [node for node in answer.nodes if node in passed]:
        return f"NodeNames {passed} are not in the order of the request"
    return None


def _check_passes(wanted: list[str], answer: Answer) -> str | None:
    if sorted(_passed(answer)) == sorted(wanted):
        return None
    return f"{_passed(answer)} passed, wanted {wanted}; failed: {_failed(answer)}"


def _check_refused(rule: str, answer: Answer) -> str | None:
    texts = _unresolvable(answer)
    if set(texts) != set(answer.nodes):
        return f"passed: {_passed(answer)}, FailedAndUnresolvableNodes: {texts}; wanted every node refused by {rule}"
    if len(set(texts.values())) != 1:
        return f"more than one text for a refusal: {texts}"
    text = next(iter(texts.values()))
    return None if rule_of(text) == rule else f"refused by {text!r}, wanted {rule}"


def _check_failed(wanted: Mapping[str, str], answer: Answer) -> str | None:
    failed = {node: rule_of(text) for node, text in _failed(answer).items()}
    return None if failed == wanted else f"failed: {_failed(answer)}, wanted {wanted}"


def _check_scores(wanted: Mapping[str, int], answer: Answer) -> str | None:
    if not isinstance(answer.body, list):
        return "the scores are not a list"
    scores = {score["Host"]: score["Score"] for score in answer.body if score["Score"]}
    return None if scores == {node: score for node, score in wanted.items() if score} else f"scores are {scores}"


def _check_victims(wanted: Mapping[str, Any], answer: Answer) -> str | None:
    victims = {
        node: [answer.names.get(pod["UID"], pod["UID"]) for pod in told.get("Pods") or []]
        for node, told in (answer.body.get("NodeNameToMetaVictims") or {}).items()
    }
    chosen = [pod for pods in victims.values() for pod in pods]
    if len(chosen) != len(set(chosen)):
        return f"somebody is a victim twice: {victims}"
    if set(victims) != set(wanted):
        return f"victims are {victims}, wanted {wanted}"
    wrong = [node for node in wanted if not _are_chosen(wanted[node], victims[node])]
    return f"victims are {victims}, wanted {wanted}" if wrong else None


def _check_evictions(wanted: Any, answer: Answer) -> str | None:
    evicted = [eviction["pod"] for eviction in answer.body.get("evictions") or []]
    return None if _are_chosen(wanted, evicted) else f"evictions are {evicted}, wanted {wanted}"


def _are_chosen(wanted: Any, chosen: list[str]) -> bool:
    """Exactly those of a list; or so many, all from a choice where there is one."""
    if not isinstance(wanted, Mapping):
        return sorted(chosen) == sorted(wanted)
    choice = wanted.get("oneOf", wanted.get("from", chosen))
    return len(chosen) == len(set(chosen)) == wanted.get("count", 1) and set(chosen) <= set(choice)


_CHECKS: dict[tuple[str, str], Callable[[Any, Answer], str | None]] = {
    ("filter", "passes"): _check_passes,
    ("filter", "refused"): _check_refused,
    ("filter", "failed"): _check_failed,
    ("prioritize", "scores"): _check_scores,
    ("preempt", "victims"): _check_victims,
    ("plan", "evictions"): _check_evictions,
}
