"""``quotaward check``: what would go wrong, found before it does."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from app.sources import manifests as source
from policy import elastic_quota, resources
from policy.cluster import Cluster
from policy.quantity import render


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found: an ``error`` makes an object useless, a ``warning`` is allowed and rarely meant."""

    severity: str
    text: str


def manifests(directory: Path) -> list[Finding]:
    """What is wrong with a folder of manifests."""
    folder = source.read(directory)
    findings = [Finding("error", str(problem)) for problem in folder.problems]
    cluster = Cluster()
    for manifest in folder.manifests:
        manifest.kind.upsert(cluster, manifest.obj, 0.0)
    return findings + _quota_warnings(cluster)


def scheduler_configuration(file: Path) -> list[Finding]:
    """What is wrong with how a KubeSchedulerConfiguration calls Quotaward."""
    try:
        document = yaml.safe_load(file.read_text())
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        return [Finding("error", f"{file} cannot be read: {error}")]
    extenders = document.get("extenders") if isinstance(document, dict) else None
    if not isinstance(extenders, list):
        return [Finding("error", f"{file}: no extenders: kube-scheduler does not call Quotaward at all")]
    ours = [extender for extender in extenders if isinstance(extender, dict) and extender.get("filterVerb") == "filter"]
    if not ours:
        return [Finding("error", f"{file}: no extender has filterVerb: filter; Quotaward is not asked")]
    ours = [extender for extender in ours if _has_our_path(extender)] or ours
    return [finding for extender in ours for finding in _extender_findings(f"{file}: extenders", extender)]


def _extender_findings(where: str, extender: dict[str, Any]) -> list[Finding]:
    findings = []
    if not _has_our_path(extender):
        findings.append(Finding("error", f"{where}.urlPrefix: {extender.get('urlPrefix')!r} must end in /extender"))
    if extender.get("preemptVerb") != "preempt":
        text = "must be preempt: without it the scheduler evicts pods for one that its own quota refuses"
        findings.append(Finding("error", f"{where}.preemptVerb: {text}"))
    if extender.get("ignorable"):
        text = "while Quotaward is down every pod passes its quota, and proposed victims are evicted"
        findings.append(Finding("warning", f"{where}.ignorable: {text}"))
    if not extender.get("nodeCacheCapable"):
        text = "false sends every node whole with each pod; true sends names, many times faster"
        findings.append(Finding("warning", f"{where}.nodeCacheCapable: {text}"))
    if extender.get("managedResources"):
        text = "pods that request none of these resources are not checked at all"
        findings.append(Finding("warning", f"{where}.managedResources: {text}"))
    return findings


def _has_our_path(extender: dict[str, Any]) -> bool:
    return str(extender.get("urlPrefix", "")).rstrip("/").endswith("/extender")


def _quota_warnings(cluster: Cluster) -> list[Finding]:
    findings = []
    for quotas in cluster.quotas.values():
        governing = elastic_quota.in_force(quotas.values())
        for quota in quotas.values():
            if quota.errors or governing is None:
                continue  # reported with its manifest
            for condition in elastic_quota.conditions(quota, governing):
                name = f"ElasticQuota {quota.namespace}/{quota.name}"
                findings.append(Finding("warning", f"{name}: {condition.type}: {condition.message}"))
    if cluster.table.rows:
        capacity = resources.total(node.allocatable for node in cluster.table.nodes())
        for resource, least in sorted(cluster.ledger.pool.min.items()):
            if least > capacity.get(resource, 0):
                text = f"min of all elastic quotas is {render(resource, least)} of {resource}, but the nodes have"
                findings.append(Finding("warning", f"{text} {render(resource, capacity.get(resource, 0))}"))
    return findings
