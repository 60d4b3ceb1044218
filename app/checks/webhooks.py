"""Finds webhooks that are asked about what Quotaward and schedulers write, since they can delay or refuse it."""

from collections.abc import Iterator
from typing import Any

from app.checks.finding import Finding, info

PATH = "/apis/admissionregistration.k8s.io/v1/"
LISTS = {
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
}
"""The kind of configurations in each list."""
WRITTEN = ("pods/eviction", "pods/binding", "pods/status")
"""Subresources that Quotaward and schedulers write, to evict, to place and to wake pods."""
DEFAULT_TIMEOUT = 10


def webhook_findings(kind: str, configurations: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yields each webhook of these configurations of a kind that refuses such writes while it gives no answer."""
    for configuration in configurations:
        for webhook in configuration.get("webhooks") or ():
            asked = [each for each in WRITTEN if any(_matches(rule, each) for rule in webhook.get("rules") or ())]
            if asked and webhook.get("failurePolicy", "Fail") == "Fail":
                within = webhook.get("timeoutSeconds", DEFAULT_TIMEOUT)
                name = configuration["metadata"]["name"]
                yield info(
                    f"webhook {webhook.get('name')} of {kind} {name} is asked about {', '.join(asked)}: these are"
                    f" refused if it does not answer within {within} s (kubectl get {kind.lower()} {name} -o yaml)"
                )


def _matches(rule: dict[str, Any], resource: str) -> bool:
    """Whether a rule of a webhook names a subresource of pods."""
    whole, _, part = resource.partition("/")
    groups, named = rule.get("apiGroups") or (), rule.get("resources") or ()
    return bool({"", "*"} & {*groups}) and bool({resource, f"{whole}/*", f"*/{part}", "*/*"} & {*named})
