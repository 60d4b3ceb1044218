"""Pods that are critical to the system: no rule applies to them, or a cluster could not recover by itself.

The author of a pod chooses its priority. So priority alone is not enough where a tenant is bound by something. The
pod's namespace must also be one that the operator names, or have neither an elastic quota nor a queue of its own. Such
pods count as used like all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from policy.objects.pod import Pod
    from policy.quota.ledger import Ledger

CRITICAL = 2_000_000_000
"""The lowest priority of pods that belong to the system (system-cluster-critical)."""
NAMESPACES = frozenset({"kube-system", "quotaward-system"})
"""The namespaces that are exempt unless the operator says otherwise."""


def is_critical(pod: Pod) -> bool:
    """Whether a pod has a priority of the system's. Such a pod is never a victim, whatever its namespace."""
    return pod.priority >= CRITICAL


def by_namespace(pod: Pod, namespaces: Collection[str]) -> bool:
    """Whether a pod is exempt because its namespace is one of these, whatever else is in the cluster."""
    return pod.priority >= CRITICAL and pod.namespace in namespaces


def why_exempt(ledger: Ledger, pod: Pod, namespaces: Collection[str]) -> str:
    """Returns for people why no rule applies to a pod; empty if rules do apply."""
    if pod.priority < CRITICAL:
        return ""
    if pod.namespace in namespaces:
        why = f"namespace {pod.namespace} is exempt"
    elif ledger.account(pod.namespace).quota is None and not ledger.own_queue_of(pod):
        why = f"namespace {pod.namespace} has neither an ElasticQuota nor a queue of its own"
    else:
        return ""
    return f"no rule applies to it, as it is critical to the system (priority {pod.priority}) and {why}"
