"""Finds webhooks that are asked about new pods, or what Quotaward and schedulers write: they can refuse it."""

from collections.abc import Iterator
from typing import Any

from app.checks.finding import Finding, info

PATH = "/apis/admissionregistration.k8s.io/v1/"
LISTS = {
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
}
"""The kind of configurations in each list."""
WRITTEN = {"pods": "CREATE", "pods/eviction": "CREATE", "pods/binding": "CREATE", "pods/status": "UPDATE"}
"""The resources that are written to create, evict, place and wake pods, each with the operation that does it."""
DEFAULT_TIMEOUT = 10


def webhook_findings(kind: str, configurations: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yields each webhook of these configurations of a kind that refuses such writes while it gives no answer."""
    for configuration in configurations:
        for webhook in configuration.get("webhooks") or ():
            rules = webhook.get("rules") or ()
            asked = [_name(each) for each in WRITTEN if any(_matches(rule, each) for rule in rules)]
            if asked and webhook.get("failurePolicy", "Fail") == "Fail":
                within = webhook.get("timeoutSeconds", DEFAULT_TIMEOUT)
                name = configuration["metadata"]["name"]
                yield info(
                    f"webhook {webhook.get('name')} of {kind} {name} is asked about {', '.join(asked)}: these are"
                    f" refused if it does not answer within {within} s (kubectl get {kind.lower()} {name} -o yaml)"
                )


def _matches(rule: dict[str, Any], resource: str) -> bool:
    """Whether a rule of a webhook names pods or a subresource of theirs, and how that is written."""
    whole, _, part = resource.partition("/")
    groups, named, operations = (rule.get(key) or () for key in ("apiGroups", "resources", "operations"))
    every = {f"{whole}/*", f"*/{part}"} if part else {"*"}
    return (
        bool({"", "*"} & {*groups})
        and bool({WRITTEN[resource], "*"} & {*operations})
        and bool(({resource, "*/*"} | every) & {*named})
    )


def _name(resource: str) -> str:
    return resource if "/" in resource else f"new {resource}"
