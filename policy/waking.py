"""Which refused pods are worth waking: the scheduler does not notice that a quota was raised."""

from policy import admission
from policy.cluster import Cluster
from policy.ledger import Entry
from policy.pod import Pod, turn


def to_wake(cluster: Cluster) -> list[Pod]:
    """The refused pods that could run now, all of them together: by priority of queue, then of pod, then by creation.

    At most as many as would fit: each one chosen counts against the next, as if it had been granted.
    """
    ledger = cluster.ledger
    chosen: list[tuple[Pod, Entry | None]] = []
    hopeless: set[tuple[str, str, int, frozenset[tuple[str, int]], bool]] = set()
    for pod in sorted(cluster.refused.values(), key=lambda pod: (-cluster.priority_of_queue(pod), *turn(pod))):
        if pod.uid in cluster.grants or pod.terminating or cluster.is_kept_out(pod):
            continue
        shape = (pod.namespace, ledger.queue_of(pod), pod.priority, frozenset(pod.request.items()), pod.preemptible)
        if shape in hopeless:  # one like it was refused, and nothing was released since
            continue
        before = ledger.set_aside(pod.uid)
        if admission.refusal(ledger, pod, cluster.rules, with_in_flight=cluster.unsettled) is None:
            chosen.append((pod, before))
            ledger.put_back(pod.uid, ledger.entry("granted", pod))
        else:
            hopeless.add(shape)
            if before is not None:
                ledger.put_back(pod.uid, before)
    for pod, before in chosen:
        ledger.set_aside(pod.uid)
        if before is not None:
            ledger.put_back(pod.uid, before)
    return [pod for pod, _ in chosen]
