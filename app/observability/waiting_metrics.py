"""The number of pods that wait, by queue and namespace, also as text for Prometheus."""

from collections import Counter

from app.observability.queue_metrics import label_of
from app.observability.quota_metrics import escaped
from app.pause import at_leisure
from policy.cluster.cluster import Cluster
from policy.explain.reasons import is_waiting
from policy.stepwise import Steps

SLICE = 100
NAME = "quotaward_waiting_pods"
HELP = "Pods that wait for a rule, room or their turn, by queue and namespace; a Job that waits counts with its pods."


def waiting_steps(cluster: Cluster) -> Steps[Counter[tuple[str, str]]]:
    """Counts waiting pods by queue and namespace. A Job that waits as a whole counts with its pods."""
    found = Counter[tuple[str, str]]()
    for index, pod in enumerate(list(cluster.pending.values()), start=1):
        if is_waiting(cluster, pod):
            found[label_of(cluster, pod), pod.namespace] += pod.counts_for
        if index % SLICE == 0:
            yield
    return found


async def waiting_lines(cluster: Cluster) -> bytes:
    """Returns exposition text: a series for each pair of a queue and a namespace of which pods wait."""
    return await at_leisure(_lines_steps(cluster))


def _lines_steps(cluster: Cluster) -> Steps[bytes]:
    found = yield from waiting_steps(cluster)
    lines = [f"# HELP {NAME} {HELP}\n# TYPE {NAME} gauge\n"]
    for index, ((queue, namespace), number) in enumerate(sorted(found.items()), start=1):
        lines.append(f'{NAME}{{queue="{escaped(queue)}",namespace="{escaped(namespace)}"}} {number}\n')
        if index % SLICE == 0:
            yield
    return "".join(lines).encode()
