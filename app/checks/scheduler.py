"""Checks how a KubeSchedulerConfiguration calls Quotaward, and whether kube-scheduler would accept it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from app.checks.finding import Finding, error, warning
from app.checks.near import nearest
from app.settings import NO_YAML

KIND, VERSION = "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/v1"
OLD_GROUPS = ("kubescheduler.config.k8s.io", "componentconfig")
VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "bindVerb": "bind"}
FIELDS = (
    *("urlPrefix", *VERBS, "weight", "enableHTTPS", "tlsConfig", "httpTimeout", "nodeCacheCapable"),
    *("managedResources", "ignorable"),
)
"""The fields of an extender. kube-scheduler reads its configuration strictly, and refuses others."""
_DURATION = re.compile(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
"""Durations that Go accepts."""


def scheduler_configuration(file: Path) -> list[Finding]:
    """Checks the configuration in a file, or in the ConfigMaps in it."""
    try:
        documents = [each for each in yaml.safe_load_all(file.read_text()) if each is not None]
    except (OSError, *NO_YAML) as reason:
        return [error(f"{file} cannot be read: {reason}")]
    try:
        found = list(_configurations(str(file), documents))
    except NO_YAML as reason:
        return [error(f"{file} cannot be read: {reason}")]
    if not found:
        return [error(f"{file}: no extenders: kube-scheduler does not call Quotaward at all")]
    return [finding for where, document in found for finding in _findings(where, document)]


def _configurations(where: str, documents: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every configuration in these documents with its place."""
    for number, document in enumerate(documents, start=1):
        at = f"{where}, document {number}" if len(documents) > 1 else where
        if not isinstance(document, dict):
            continue
        if document.get("kind") == "ConfigMap":
            data = document.get("data")
            for key, text in data.items() if isinstance(data, dict) else ():
                inner = [each for each in yaml.safe_load_all(str(text)) if _is_configuration(each)]
                yield from ((f"{at}, {key}", each) for each in inner)
        elif _is_configuration(document) or len(documents) == 1:
            yield at, document


def _is_configuration(document: Any) -> bool:
    return isinstance(document, dict) and document.get("kind") in (KIND, "Policy")


def _findings(where: str, document: dict[str, Any]) -> list[Finding]:
    if document.get("kind") == "Policy":
        return [error(f"{where}: a Policy is refused by kube-scheduler since 1.23: write a {KIND} of {VERSION}")]
    findings = [*_version(where, document), *_place(where)]
    extenders = document.get("extenders")
    if not isinstance(extenders, list):
        return [*findings, error(f"{where}: no extenders: kube-scheduler does not call Quotaward at all")]
    extenders = [extender for extender in extenders if isinstance(extender, dict)]
    findings += _what_is_refused(where, extenders)
    ours = [extender for extender in extenders if extender.get("filterVerb") == "filter"]
    if not ours:
        return [*findings, error(f"{where}: no extender has filterVerb: filter, so Quotaward is not called")]
    ours = [extender for extender in ours if _has_our_path(extender)] or ours
    return findings + [finding for each in ours for finding in _extender_findings(f"{where}: extenders", each)]


def _version(where: str, document: dict[str, Any]) -> Iterator[Finding]:
    version = document.get("apiVersion")
    if version is not None and version != VERSION:
        yield error(f"{where}: apiVersion: kube-scheduler refuses {version}: it must be {VERSION}")


def _place(where: str) -> Iterator[Finding]:
    number = re.search(r", document (\d+)$", where)
    if number and number[1] != "1":
        yield error(f"{where}: kube-scheduler reads only the first document of a file")


def _what_is_refused(where: str, extenders: list[dict[str, Any]]) -> Iterator[Finding]:
    """Finds what keeps kube-scheduler from starting, in any of the extenders."""
    binders = sum(bool(extender.get("bindVerb")) for extender in extenders)
    if binders > 1:
        yield error(f"{where}: extenders: {binders} have a bindVerb, but kube-scheduler accepts only one")
    managed: set[str] = set()
    for number, extender in enumerate(extenders):
        at = f"{where}: extenders[{number}]"
        for name in sorted(extender.keys() - set(FIELDS), key=str):
            close = nearest(str(name), FIELDS)
            yield error(
                f"{at}.{name}: kube-scheduler refuses unknown fields{f': did you mean {close}?' if close else ''}"
            )
        weight = extender.get("weight")
        if extender.get("prioritizeVerb") and not (isinstance(weight, int) and weight > 0):
            yield error(f"{at}.weight: must be a number above 0 if there is a prioritizeVerb")
        timeout = extender.get("httpTimeout")
        if timeout is not None and not (isinstance(timeout, str) and _DURATION.fullmatch(timeout)):
            yield error(f"{at}.httpTimeout: {timeout!r} must have a unit, like 2s")
        yield from _managed(at, extender, managed)


def _managed(at: str, extender: dict[str, Any], seen: set[str]) -> Iterator[Finding]:
    given = extender.get("managedResources")
    for resource in given if isinstance(given, list) else ():
        if not isinstance(resource, dict):
            continue
        name = str(resource.get("name"))
        if name in seen:
            yield error(f"{at}.managedResources: kube-scheduler accepts {name} only once")
        seen.add(name)
        if resource.get("ignoredByScheduler"):
            text = "kube-scheduler does not check whether a node has it; quotas still count the requests of pods"
            yield warning(f"{at}.managedResources: {name} has ignoredByScheduler: {text}")


def _extender_findings(where: str, extender: dict[str, Any]) -> list[Finding]:
    findings = []
    if not _has_our_path(extender):
        findings.append(Finding("error", f"{where}.urlPrefix: {extender.get('urlPrefix')!r} must end in /extender"))
    if extender.get("preemptVerb") != "preempt":
        text = "must be preempt: without it the scheduler evicts pods for a pod that its own quota refuses"
        findings.append(Finding("error", f"{where}.preemptVerb: {text}"))
    for field in ("prioritizeVerb", "bindVerb"):
        verb = extender.get(field)
        if verb and verb != VERBS[field]:
            findings.append(Finding("error", f"{where}.{field}: {verb!r} must be {VERBS[field]}, or be left out"))
    if extender.get("ignorable"):
        text = "while Quotaward is down every pod passes its quota, and proposed victims are evicted"
        findings.append(Finding("warning", f"{where}.ignorable: {text}"))
    if not extender.get("nodeCacheCapable"):
        text = "false sends all nodes as whole objects with each pod; true sends only names, and is many times faster"
        findings.append(Finding("warning", f"{where}.nodeCacheCapable: {text}"))
    if extender.get("managedResources"):
        text = "pods that request none of these resources are not checked at all"
        findings.append(Finding("warning", f"{where}.managedResources: {text}"))
    return findings


def _has_our_path(extender: dict[str, Any]) -> bool:
    return str(extender.get("urlPrefix", "")).rstrip("/").endswith("/extender")
