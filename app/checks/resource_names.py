"""Checks for resource names in quotas and queues that bound nothing, as no pod requests such a resource."""

from collections.abc import Collection, Iterable, Iterator

from app.checks.finding import Finding, warning
from app.checks.near import nearest
from policy.objects.device import as_in_pods, class_of

CORE = ("cpu", "memory", "pods", "ephemeral-storage")
HUGE_PAGES = "hugepages-"
WELL_KNOWN = (
    *CORE,
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "amd.com/gpu",
    "intel.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "google.com/tpu",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "vpc.amazonaws.com/efa",
    "huawei.com/Ascend910",
)
CONFUSED = {
    "gpu": "nvidia.com/gpu",
    "gpus": "nvidia.com/gpu",
    "nvidia.com": "nvidia.com/gpu",
    "alpha.kubernetes.io/nvidia-gpu": "nvidia.com/gpu",
    "mem": "memory",
    "storage": "ephemeral-storage",
    "cpus": "cpu",
    "cores": "cpu",
}
"""Names that are confused with another."""
OF_RESOURCE_QUOTAS = ("count/", "requests.", "limits.")
"""Prefixes of ResourceQuota names that count something other than pods' requests."""


def misspelled(where: str, names: Iterable[str], there: Collection[str]) -> Iterator[Finding]:
    """Finds resource names that no pod requests, or that nearly match another; ``there`` are those that nodes list."""
    for name in sorted(set(names) - set(there)):
        if text := _fault(name, there):
            yield warning(f"{where}.{name} {text}")


def on_no_node(where: str, names: Iterable[str], there: Collection[str]) -> Iterator[Finding]:
    """Finds valid resource names that no node lists; none if no nodes are known."""
    for name in sorted(set(names) - set(there)):
        listed = as_in_pods(name) in there or class_of(as_in_pods(name))
        if there and "/" in name and not listed and not _fault(name, there):
            text = (
                "is on no node: it bounds nothing, unless another extender or a driver of resource claims provides it"
            )
            yield warning(f"{where}.{name} {text}")


def _fault(name: str, there: Collection[str]) -> str:
    """Says what is wrong with a name that no node lists; empty if nothing is, as with all names of a device class."""
    name = as_in_pods(name)
    if name.startswith("limits."):
        return f"bounds nothing: limits are not counted, but requests are, as {name.removeprefix('limits.')}"
    if name.startswith("requests."):
        return f"bounds nothing: requests of pods are counted as {name.removeprefix('requests.')}"
    if name.startswith("count/"):
        return "bounds nothing: only pods are counted, under the name pods"
    if name in CORE or name in there or name.startswith(HUGE_PAGES) or class_of(name):
        return ""
    close = CONFUSED.get(name) or nearest(name, {*WELL_KNOWN, *there})
    if close:
        return f"bounds nothing, unless a pod requests a resource of this name: did you mean {close}?"
    return "" if "/" in name else "bounds nothing: no pod can request a resource of this name"
