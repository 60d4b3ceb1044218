"""Tells people of a pod that is refused for how long it runs, and suggests what would let it in."""

from collections.abc import Iterator

from policy.cluster.cluster import Cluster
from policy.explain.remedy import Need, ObjectChange, Path, Remedy
from policy.objects.job import short
from policy.objects.job_kind import JOB
from policy.objects.pod import Pod
from policy.objects.run_time import MAX_RUN_TIME, RUN_TIME, text_of
from policy.quota.run_time_limit import Limit


def limit_of(cluster: Cluster, pod: Pod) -> Limit | None:
    """Returns the limit that refuses a pod; None if none does."""
    ledger = cluster.ledger
    limits, queue = ledger.run_time_limits, cluster.queue_of(pod)
    return limits.limit(ledger, pod.namespace, queue) if limits.refuses(ledger, pod, queue) else None


def why_too_long(cluster: Cluster, pod: Pod) -> str:
    """Returns what the pod says, and which limit that exceeds; empty if it exceeds none."""
    limit = limit_of(cluster, pod)
    if limit is None:
        return ""
    declared, bad = cluster.run_times.declared(pod), cluster.run_times.unreadable(pod)
    said = f"it says {text_of(declared)}" if declared is not None else "nothing says how long it runs"
    said = f"{bad} cannot be read" if declared is None and bad else said
    return f"{said}, and {limit.title} allows {text_of(limit.seconds)}"


def for_run_time(need: Need) -> Iterator[Remedy]:
    """Suggests a shorter run time of the pod, or a higher limit."""
    cluster, limit = need.cluster, next(filter(None, (limit_of(need.cluster, each) for each in need.members)), None)
    if limit is None:
        return
    too_long = [each for each in need.members if limit_of(cluster, each) is not None]
    changes = {each: None for member in too_long for each in _declaring(cluster, member, text_of(limit.seconds))}
    if changes:
        who = " and ".join(f"{short(each.kind)} {each.namespace}/{each.name}" for each in changes)
        text = f"let {who} say a run time of at most {text_of(limit.seconds)} (annotation {RUN_TIME})"
        yield Remedy("declare", text, tuple(changes))
    declared = [cluster.run_times.declared(each) for each in too_long]
    needed = None if None in declared else text_of(max(filter(None, declared)))
    kind = "ElasticQuota" if limit.namespace else "Queue"
    raising = f"raise {MAX_RUN_TIME} of {limit.title} from {text_of(limit.seconds)} to at least {needed}"
    text = raising if needed is not None else f"remove {MAX_RUN_TIME} from {limit.title}"
    yield Remedy("limit", text, (ObjectChange(kind, limit.namespace, limit.name, _annotated(MAX_RUN_TIME, needed)),))


def _declaring(cluster: Cluster, pod: Pod, time: str) -> Iterator[ObjectChange]:
    """Yields the change of the object that is to say how long a pod runs: its Job, its PodGroup, or the pod itself."""
    fields, job = _annotated(RUN_TIME, time), cluster.batch_jobs.of(pod)
    group = cluster.membership.groups.get((pod.namespace, pod.group))
    if pod.stands_for is not None:
        if pod.stands_for.kind is JOB:
            yield ObjectChange("Job", pod.namespace, pod.stands_for.name, fields)
    elif job is not None:
        yield ObjectChange("Job", pod.namespace, job.name, fields)
    elif group is not None:
        kind, _, name = group.name.partition("/")
        yield ObjectChange(kind, pod.namespace, name, fields)
    else:
        yield ObjectChange("Pod", pod.namespace, pod.name, fields)


def _annotated(key: str, value: str | None) -> tuple[tuple[Path, str | None], ...]:
    return ((("metadata", "annotations", key), value),)
