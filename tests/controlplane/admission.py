"""What others may put between Quotaward and a pod that it wants to change: policies and webhooks of one namespace."""

from contextlib import contextmanager

import httpx

from tests.controlplane.objects import pod
from tests.controlplane.processes import free_port, wait_until

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICY, BINDING = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
CHANGES_OF_PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}


def a_policy_that_forbids_it(namespace):
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    yield (
        "validatingadmissionpolicies",
        {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [CHANGES_OF_PODS]},
            "validations": [{"expression": "false", "message": "no", "reason": "Forbidden"}],
        },
    )
    binding = {"policyName": "somebody-elses", "validationActions": ["Deny"], "matchResources": here}
    yield "validatingadmissionpolicybindings", binding


def a_webhook_that_nobody_answers(namespace, port=None, **rest):
    webhook = {
        "name": "nobody.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": f"https://127.0.0.1:{port or free_port()}"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [CHANGES_OF_PODS],
    } | rest
    yield "validatingwebhookconfigurations", [webhook]


@contextmanager
def in_force(cluster, namespace, *rules):
    """These rules of admission are in force in a namespace while this is open."""
    kinds = {
        "validatingadmissionpolicies": "ValidatingAdmissionPolicy",
        "validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding",
        "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    }
    try:
        for plural, rule in rules:
            item = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kinds[plural]}
            item |= {"metadata": {"name": "somebody-elses"}, "webhooks" if isinstance(rule, list) else "spec": rule}
            cluster.api.request("POST", f"{_ADMISSION}/{plural}", json=item)
        wait_until(lambda: may_not_be_changed(cluster, namespace), "pods may not be changed any more")
        yield
    finally:
        for plural, _ in rules:
            cluster.api.request("DELETE", f"{_ADMISSION}/{plural}/somebody-elses")


@contextmanager
def installed(cluster, items):
    """These policies and their bindings are in force while this is open."""
    for item in items:
        cluster.api.apply(item)
    try:
        canary = cluster.namespace("canary")
        cluster.api.create(pod("p", canary))
        last = a_policy_that_forbids_it(canary)  # the API server takes them over in their order
        with in_force(cluster, canary, *last):
            yield
    finally:
        for item in reversed(items):
            plural = POLICY if item["kind"] == "ValidatingAdmissionPolicy" else BINDING
            cluster.api.delete(plural, item["metadata"]["name"])


def may_not_be_changed(cluster, namespace):
    try:
        cluster.api.patch("pods", "p?dryRun=All", {"metadata": {"annotations": {"tried": "yes"}}}, namespace)
    except httpx.HTTPStatusError:
        return True
    return False
