"""The figures of elastic quotas for Prometheus.

There are as many series as quotas times resources. So the text is written here, in slices between which the loop
answers the scheduler.
"""

import asyncio

from policy.quota.ledger import Ledger

SLICE = 50
FIGURES = (("used", "in use"), ("min", "guaranteed"), ("max", "allowed at most"))


async def quota_lines(ledger: Ledger) -> bytes:
    """Returns exposition text: used, min and max by namespace and resource; cpu in cores."""
    lines: dict[str, list[str]] = {figure: [] for figure, _ in FIGURES}
    for index, (namespace, quota, account) in enumerate(list(ledger.quotas())):
        bounded = sorted({**quota.min, **quota.max})
        for figure, amounts in (("used", account.used), ("min", quota.min), ("max", quota.max)):
            for resource in bounded:
                if figure == "used" or resource in amounts:
                    labels = f'namespace="{escaped(namespace)}",resource="{escaped(resource)}"'
                    value = base_unit(resource, amounts.get(resource, 0))
                    lines[figure].append(f"quotaward_elastic_quota_{figure}{{{labels}}} {value}\n")
        if index % SLICE == SLICE - 1:
            await asyncio.sleep(0)
    text = ""
    for figure, meaning in FIGURES:
        name = f"quotaward_elastic_quota_{figure}"
        text += f"# HELP {name} Amount {meaning} under an elastic quota.\n# TYPE {name} gauge\n" + "".join(
            lines[figure]
        )
    return text.encode()


def escaped(label: str) -> str:
    """Escapes a label's value for the text format: a quota may name resources freely."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def base_unit(resource: str, amount: int) -> float | int:
    """Converts an amount to Prometheus' unit: cores, bytes, pieces."""
    return amount / 1000 if resource == "cpu" else amount
