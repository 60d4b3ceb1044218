"""The number of pods that wait, by queue and namespace."""

from collections import Counter

from app.observability.queue_metrics import label_of
from policy.cluster.cluster import Cluster
from policy.explain.reasons import is_waiting
from policy.stepwise import Steps

SLICE = 100


def waiting_steps(cluster: Cluster) -> Steps[Counter[tuple[str, str]]]:
    """Counts waiting pods by queue and namespace. A Job that waits as a whole counts with its pods."""
    found = Counter[tuple[str, str]]()
    for index, pod in enumerate(list(cluster.pending.values()), start=1):
        if is_waiting(cluster, pod):
            found[label_of(cluster, pod), pod.namespace] += 1 if pod.stands_for is None else pod.stands_for.pods
        if index % SLICE == 0:
            yield
    return found
