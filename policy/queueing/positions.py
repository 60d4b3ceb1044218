"""Positions at the gates of a queue, and what pods there wait for: for people."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from policy.cluster.cluster import Cluster
from policy.cluster.gates import GatedJob
from policy.objects.pod import Pod
from policy.objects.resources import add
from policy.queueing.ungating import incomplete, taken_by, to_share
from policy.quota import fair_share
from policy.quota.closed_queues import shortened


def in_order(cluster: Cluster, queue: str) -> Iterator[GatedJob | None]:
    """Yields the jobs at a queue's gates in their order, as if nothing ended, nobody came and all were admitted.

    Before that it yields None once for each line, where the caller may pause. Gangs that have started and lack members
    come first. It goes by each line as it is when it is read: others may change it during the iteration.
    """
    whole, weights = dict(to_share(cluster, queue)), cluster.membership.weight_by_namespace()
    first = [(where[1], cluster.gates.lines[where].jobs[name]) for where, name in incomplete(cluster).get(queue, ())]
    come_first = {id(job) for _, job in first}
    lines, taken = dict[str, list[GatedJob]](), dict[str, dict[str, int]]()
    for where in [where for where in cluster.gates.lines if where[0] == queue]:
        if (line := cluster.gates.lines.get(where)) is not None:  # it may have gone in a pause
            lines[where[1]] = [job for job in line if id(job) not in come_first]
            taken[where[1]] = dict(taken_by(cluster, queue, where[1]))
        yield None
    for namespace, job in first:
        for pod in job.members.values():
            add(taken.setdefault(namespace, {}), pod.request)
        yield job
    keys = []
    for namespace, jobs in lines.items():
        weight = weights.get(namespace, 1)
        if jobs:
            keys.append((fair_share.share(taken[namespace], whole) / weight, -weight, namespace))
        jobs.reverse()
    heapify(keys)
    while keys:
        _, minus_weight, namespace = heappop(keys)
        job = lines[namespace].pop()
        if lines[namespace]:
            for pod in job.members.values():
                add(taken[namespace], pod.request)
            heappush(keys, (fair_share.share(taken[namespace], whole) / -minus_weight, minus_weight, namespace))
        yield job


def position_text(cluster: Cluster, pod: Pod) -> str:
    """Returns where a pod stands at the gates and what it waits for; empty if it waits at none."""
    stands = cluster.gates.line_of(pod.uid)
    if stands is None:
        return ""
    (queue, namespace), line, job = stands
    if text := let_go_text(cluster, pod):
        return text
    where = f"of namespace {namespace}" + (f" in queue {shortened(queue)}" if queue else "")
    at = line.position(job.name)
    text = f"{_how_it_waits(job.first())}, {at} of {len(line)} in the line {where}"
    if at > 1:
        first = line.first().first()
        refused = cluster.why_waits(first)
        when = f"waits for: {refused.message}" if refused else when_ungated(cluster, first)
        return f"{text}; the first there, {_title(first)}, {when}"
    others = sum(each[0] == queue for each in cluster.gates.lines) - 1
    beside = f", beside {others} other {'line' if others == 1 else 'lines'}" if others else ""
    return f"{text}{beside}" if cluster.why_waits(pod) else f"{text}{beside}; it {when_ungated(cluster, pod)}"


def let_go_text(cluster: Cluster, pod: Pod) -> str:
    """Returns why a pod at its gate, or a Job that it stands for, does not wait for its turn; empty if it does."""
    whole = pod.stands_for is not None
    let_go = ("enlarged" if pod.stands_for.grows else "started") if pod.stands_for is not None else "ungated"
    if not cluster.gate_admission.holds(pod):
        of = pod.namespace
        is_free = f"Jobs of namespace {of} are not queued" if whole else f"namespace {of} is not gated"
        return f"{is_free} any more: it is being {let_go}"
    return f"no rule applies to it: it is being {let_go}" if cluster.is_exempt(pod) else ""


def when_ungated(cluster: Cluster, pod: Pod) -> str:
    """Returns when a pod that no rule refuses is ungated."""
    job = pod.stands_for
    if job is not None and job.grows:
        return _when_it_grows(cluster, pod)
    if job is not None:
        return f"is started as soon as there is room for {job.least or 'all'} of its pods"
    whose = "all that its group takes to start" if cluster.gangs.is_waiting(pod) else "it"
    return f"is ungated as soon as there is room for {whose}"


def _when_it_grows(cluster: Cluster, pod: Pod) -> str:
    if cluster.attempts.lacks_place(pod):
        others = "all pods that it has"
    elif cluster.attempts.is_behind_others(pod):
        others = f"the pods of namespace {pod.namespace} that wait for one"
    else:
        return "grows as soon as there is room for one more pod"
    return f"grows as soon as a place is found for {others}, and there is room for one more"


def _how_it_waits(pod: Pod) -> str:
    if pod.stands_for is None:
        return "it waits at its gate"
    return f"it runs and waits for {pod.stands_for.number}" if pod.stands_for.grows else "it waits suspended"


def _title(pod: Pod) -> str:
    return pod.stands_for.text if pod.stands_for is not None else pod.name
