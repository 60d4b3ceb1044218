"""Renders the rules' objects as manifests into which changes are merged, as the original manifests are not kept.

Decoded again, a manifest means the same to the rules as the object did; it names only what they use.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from app.store.heeded import (
    ALLOWED_QUEUES,
    CHECKPOINTED_AT,
    COUNTS_IN,
    GATED,
    GROUP,
    INDEX_FAILURES,
    JOBS_WAIT,
    LEGACY_GROUP,
    MAX_RUN_TIME,
    MIN_PARALLELISM,
    MIN_RUN_TIME,
    MIRROR,
    PARALLELISM,
    PREEMPTIBLE,
    QUEUE,
    QUEUED,
    RUN_TIME,
    VOLCANO_GROUP,
    WEIGHT,
)
from app.store.pod_groups import GROUPS, LEGACY_GROUPS, NATIVE_GROUPS
from app.store.pods import JOB_VERSION, TRACKED
from policy.cluster.budgets import Budget
from policy.objects.batch_job import BatchJob, FailureRule
from policy.objects.constraints import (
    BY_LABEL,
    CLAIM,
    Constraints,
    HostPort,
    NodeTerm,
    PodTerm,
    Requirement,
    Selector,
    Spread,
)
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Container, MilliResources, Pod
from policy.objects.pod_template import PodTemplate
from policy.objects.quantity import render
from policy.objects.queue import Queue
from policy.objects.queued_job import QueuedJob
from policy.objects.resources import Resources
from policy.quota.elastic_quota import ElasticQuota

Json = dict[str, Any]

ELSEWHERE = "example.com/another-controller"
"""Rendered as ``managedBy`` of a Job that some other controller runs, whichever it is."""


def pod_manifest(pod: Pod) -> Json:
    """Renders a pod, with one container that requests all."""
    annotations = {
        PREEMPTIBLE: None if pod.preemptible else "false",
        QUEUE: pod.queue or None,
        RUN_TIME: _run_time(pod.run_time),
        MIN_RUN_TIME: _run_time(pod.min_run_time),
        CHECKPOINTED_AT: _time(pod.checkpointed),
        VOLCANO_GROUP: None,
        MIRROR: "mirror" if pod.owner == "Node" else None,
        INDEX_FAILURES: str(pod.job.failures) if pod.job is not None and pod.job.failures else None,
    }
    kind, _, group = pod.group.partition("/")
    labels, spec = dict(pod.labels), _pod_spec(pod)
    if kind == NATIVE_GROUPS:
        spec["schedulingGroup"] = {"podGroupName": group}
    elif kind == GROUPS:
        labels[GROUP] = group
    elif kind == LEGACY_GROUPS:
        labels[LEGACY_GROUP] = group
    elif group:
        annotations[VOLCANO_GROUP] = group
    metadata = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "labels": labels,
        "annotations": _given(annotations),
        "creationTimestamp": _time(pod.created),
        "deletionTimestamp": _time(pod.deletion_time or 1.0) if pod.terminating else None,
        "ownerReferences": [_owner(pod)] if pod.owner else None,
        "finalizers": [TRACKED] if pod.job is not None and pod.job.tracked else None,
        "resourceVersion": str(pod.version) if pod.version else None,
    }
    return {"metadata": _given(metadata), "spec": spec, "status": _pod_status(pod)}


def _owner(pod: Pod) -> Json:
    if pod.job is None:
        version = {"apiVersion": "example.com/v1"} if pod.controller and not pod.group else {}  # a custom resource
        return version | {"kind": pod.owner, "uid": pod.controller, "controller": True}
    return {"apiVersion": JOB_VERSION, "kind": "Job", "name": pod.job.name, "uid": pod.job.uid, "controller": True}


def job_manifest(job: BatchJob, queued: QueuedJob | None = None) -> Json:
    """Renders a Job (``batch/v1``). ``queued``: what is known of it as one that waits as a whole."""
    spec: Json = {
        "managedBy": None if job.ours else ELSEWHERE,
        "activeDeadlineSeconds": job.deadline or None,
        "backoffLimit": job.backoff_limit,
        "backoffLimitPerIndex": job.limit_per_index,
        "podFailurePolicy": {"rules": list(map(_failure_rule, job.rules))} if job.rules else None,
    }
    status: Json = {
        "startTime": _time(job.started),
        "failed": job.failed or None,
        "uncountedTerminatedPods": {"failed": sorted(job.uncounted)} if job.uncounted else None,
        "conditions": [{"type": "Failed", "status": "True"}] if job.ended else None,
    }
    metadata: Json = {"name": job.name, "namespace": job.namespace, "uid": job.uid}
    annotations: Json = {RUN_TIME: _run_time(job.run_time)}
    if queued is not None:
        [pod_set] = queued.pod_sets
        one = pod_manifest(pod_set.pod)
        labels = {key: one["metadata"].get(key) for key in ("labels", "annotations")}
        spec |= {
            "suspend": queued.suspended,
            "parallelism": queued.parallelism,
            "completions": _completions(queued),
            "template": {"metadata": _given(labels), "spec": _template_spec(one["spec"], pod_set.template)},
        }
        if queued.least:
            annotations |= {MIN_PARALLELISM: str(queued.least), PARALLELISM: str(queued.asked)}
        metadata |= {"creationTimestamp": _time(queued.created), "labels": {QUEUED: "true"} if queued.marked else {}}
        if queued.since != queued.created:
            again = {"type": "Suspended", "status": "True", "lastTransitionTime": _time(queued.since)}
            status["conditions"] = [*(status["conditions"] or ()), again]
    metadata["annotations"] = _given(annotations)
    return {"metadata": _given(metadata), "spec": _given(spec), "status": _given(status)}


def _completions(job: QueuedJob) -> int | None:
    """Returns how many pods of a Job are missing to its completions, if it asks for more at a time."""
    asked = job.asked if job.least else job.parallelism
    could_run = job.pods if job.suspended or not job.least else job.parallelism + job.lacking
    return could_run if could_run < asked else None


def _template_spec(of_pod: Json, template: PodTemplate | None) -> Json:
    """Renders the spec of a template, from that of one of its pods. ``template``: what defaults may be added to."""
    if template is None:
        return of_pod
    asked = template.requests
    containers = [_container(each, f"main-{number}") for number, each in enumerate(asked.containers)]
    if containers:
        containers[0] |= {"ports": of_pod["containers"][0].get("ports")}
    added = {
        "containers": containers,
        "initContainers": [_container(each, f"init-{number}") for number, each in enumerate(asked.init_containers)],
        "overhead": _of_milli(asked.overhead),
        "resources": {"requests": _of_milli(asked.pod_level), "limits": _of_milli(template.limits)},
        "priorityClassName": template.priority_class or None,
        "runtimeClassName": template.runtime_class or None,
        "priority": None,
        "preemptionPolicy": None,
    }
    return _given(of_pod | added)


def _container(container: Container, name: str) -> Json:
    policy = "Always" if container.restartable else None
    return {"name": name, "resources": {"requests": _of_milli(container.requests)}, "restartPolicy": policy}


def _of_milli(amounts: MilliResources) -> Json:
    return {resource: f"{milli}m" for resource, milli in amounts.items()}


def _failure_rule(rule: FailureRule) -> Json:
    codes = {"operator": "NotIn" if rule.negated else "In", "values": sorted(rule.codes)} if rule.codes else None
    conditions = [{"type": kind, "status": status} for kind, status in sorted(rule.conditions)]
    return _given({"action": rule.action, "onExitCodes": codes, "onPodConditions": conditions or None})


def node_manifest(node: Node) -> Json:
    """Renders a node, without the devices that it has by slices."""
    own = node.allocatable if node.own is None else node.own
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints]
    status = "True" if node.ready else "False" if node.reachable else "Unknown"
    conditions = [{"type": "Ready", "status": status}]
    return {
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "spec": {"unschedulable": node.unschedulable, "taints": taints},
        "status": {"allocatable": _quantities(own), "conditions": conditions},
    }


def quota_manifest(quota: ElasticQuota) -> Json:
    """Renders an elastic quota as it is in force, by the names of resources that the object has."""
    least, most = quota.written or (quota.min, quota.max)
    metadata: Json = {"name": quota.name, "namespace": quota.namespace, "creationTimestamp": _time(quota.created)}
    metadata["annotations"] = _said(quota.run_time, quota.min_run_time, quota.max_run_time)
    return {"metadata": _given(metadata), "spec": {"min": _quantities(least), "max": _quantities(most)}}


def queue_manifest(queue: Queue) -> Json:
    """Renders a queue as it is in force, by the names of resources that the object has."""
    most, kept = queue.written or (queue.capability, queue.guarantee)
    spec = {
        "weight": queue.weight,
        "capability": _quantities(most),
        "guarantee": {"resource": _quantities(kept)},
        "reclaimable": queue.reclaimable,
        "priority": queue.priority,
        "parent": queue.parent,
    }
    metadata: Json = {"name": queue.name, "uid": queue.uid or None}
    metadata |= {"annotations": _said(queue.run_time, queue.min_run_time, queue.max_run_time)}
    return {"metadata": _given(metadata), "spec": spec, "status": {"state": queue.state}}


def group_manifest(group: Group) -> Json:
    """Renders a pod group of the kind that its name contains."""
    kind, _, name = group.name.partition("/")
    metadata: Json = _given({"name": name, "namespace": group.namespace, "creationTimestamp": _time(group.created)})
    metadata |= {"annotations": _said(group.run_time)}
    if kind == NATIVE_GROUPS:
        return {"metadata": metadata, "spec": {"schedulingPolicy": {"gang": {"minCount": group.minimum}}}}
    return {"metadata": metadata, "spec": _given({"minMember": group.minimum, "queue": group.queue or None})}


def namespace_manifest(namespace: Namespace) -> Json:
    """Renders what a namespace says of queues, and of what waits in it."""
    annotations = {QUEUE: namespace.queue or None, ALLOWED_QUEUES: ",".join(sorted(namespace.allowed)) or None}
    labels = {GATED: "true" if namespace.gated else None, JOBS_WAIT: "queued" if namespace.queues_jobs else None}
    metadata = {"name": namespace.name, "annotations": _given(annotations), "labels": _given(labels)}
    return {"metadata": metadata}


def weight_manifest(namespace: str, name: str, weight: int) -> Json:
    """Renders the part of a resource quota that gives its namespace a weight."""
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"hard": {WEIGHT: str(weight)}}}


def budget_manifest(budget: Budget) -> Json:
    """Renders a disruption budget."""
    status = {"disruptionsAllowed": budget.allowed, "disruptedPods": dict.fromkeys(sorted(budget.disrupted), "")}
    return {
        "metadata": {"name": budget.name, "namespace": budget.namespace},
        "spec": _given({"selector": _selector(budget.selector), "maxUnavailable": 0 if budget.never else None}),
        "status": status,
    }


def _pod_spec(pod: Pod) -> Json:
    asked = pod.request if pod.needs is None else pod.needs.request
    requests = {resource: amount for resource, amount in asked.items() if resource != "pods"}
    constraints = pod.constraints if pod.needs is None else pod.needs.constraints
    container: Json = {"name": "main", "resources": {"requests": _quantities(requests)}}
    if constraints.host_ports:
        container["ports"] = [_port(port) for port in constraints.host_ports]
    spec = {
        "nodeName": pod.node or None,
        "schedulerName": pod.scheduler or None,
        "containers": [container],
        "priority": pod.priority,
        "preemptionPolicy": None if pod.may_preempt else "Never",
        "activeDeadlineSeconds": pod.deadline or None,
        "nodeSelector": dict(constraints.node_selector) or None,
        "affinity": _affinity(constraints) or None,
        "tolerations": [
            {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
            for each in constraints.tolerations
        ]
        or None,
        "topologySpreadConstraints": [_spread(each) for each in constraints.spread] or None,
        "schedulingGates": [{"name": "example.com/gate"}] if pod.gated else None,
        "resourceClaims": _claims(pod) or ([{"name": "claim"}] if CLAIM in constraints.undecidable else None),
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        if set(constraints.undecidable) - {CLAIM, BY_LABEL}
        else None,
    }
    return _given(spec)


def _claims(pod: Pod) -> list[Json]:
    return [
        _given(
            {
                "name": f"claim-{number}",
                "resourceClaimName": None if each.template else each.name,
                "resourceClaimTemplateName": each.template or None,
            }
        )
        for number, each in enumerate(pod.needs.claims if pod.needs is not None else ())
    ]


def _claims_made(pod: Pod) -> list[Json]:
    return [
        {"name": f"claim-{number}", "resourceClaimName": each.name}
        for number, each in enumerate(pod.needs.claims if pod.needs is not None else ())
        if each.name and each.template
    ]


def _pod_status(pod: Pod) -> Json:
    finished = "Succeeded" if pod.succeeded else "Failed"
    said = pod.unschedulable
    conditions = [
        said and {"type": "PodScheduled", "status": "False", "reason": said.reason, "message": said.message},
        pod.counts_in is not None and {"type": COUNTS_IN, "status": "True", "message": pod.counts_in},
    ]
    ended = {"name": "main", "state": {"terminated": {"finishedAt": _time(pod.finished_at)}}}
    status = {
        "phase": finished if pod.finished else "Running" if pod.node else "Pending",
        "nominatedNodeName": pod.nominated_node or None,
        "startTime": _time(pod.started),
        "conditions": list(filter(None, conditions)) or None,
        "containerStatuses": [ended] if pod.finished_at else None,
        "resourceClaimStatuses": _claims_made(pod) or None,
    }
    return _given(status)


def _affinity(constraints: Constraints) -> Json:
    required, by_label = "requiredDuringSchedulingIgnoredDuringExecution", BY_LABEL in constraints.undecidable
    affinity: Json = {}
    if constraints.node_terms is not None:
        terms = [_node_term(term) for term in constraints.node_terms]
        affinity["nodeAffinity"] = {required: {"nodeSelectorTerms": terms}}
    if constraints.affinity:
        affinity["podAffinity"] = {required: [_pod_term(each, by_label=by_label) for each in constraints.affinity]}
    if constraints.anti_affinity:
        terms = [_pod_term(each, by_label=by_label) for each in constraints.anti_affinity]
        affinity["podAntiAffinity"] = {required: terms}
    return affinity


def _node_term(term: NodeTerm) -> Json:
    return {"matchExpressions": _expressions(term.labels), "matchFields": _expressions(term.fields)}


def _pod_term(term: PodTerm, *, by_label: bool) -> Json:
    """Renders a term. The namespaces that a selector selects are not known, only whether it is none or all."""
    whose: Json = {} if not by_label else {"matchExpressions": [{"key": "example.com/any", "operator": "Exists"}]}
    return _given(
        {
            "topologyKey": term.topology_key,
            "labelSelector": _selector(term.selector),
            "namespaces": sorted(term.namespaces) if term.namespaces is not None else None,
            "namespaceSelector": whose if term.namespaces is None else None,
        }
    )


def _spread(spread: Spread) -> Json:
    return _given(
        {
            "topologyKey": spread.topology_key,
            "maxSkew": spread.max_skew,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": _selector(spread.selector),
            "minDomains": spread.min_domains,
            "nodeAffinityPolicy": "Honor" if spread.honor_node_affinity else "Ignore",
            "nodeTaintsPolicy": "Honor" if spread.honor_taints else "Ignore",
        }
    )


def _port(port: HostPort) -> Json:
    return {"containerPort": port.port, "hostPort": port.port, "protocol": port.protocol, "hostIP": port.address}


def _selector(selector: Selector | None) -> Json | None:
    return None if selector is None else {"matchExpressions": _expressions(selector.requirements)}


def _expressions(requirements: Iterable[Requirement]) -> list[Json]:
    return [{"key": each.key, "operator": each.operator, "values": list(each.values)} for each in requirements]


def _quantities(resources: Resources) -> dict[str, str]:
    return {resource: render(resource, amount) for resource, amount in resources.items()}


def _said(run_time: int, least: int = 0, most: int = 0) -> Json:
    times = {RUN_TIME: run_time, MIN_RUN_TIME: least, MAX_RUN_TIME: most}
    return _given({key: _run_time(seconds) for key, seconds in times.items()})


def _run_time(seconds: int) -> str | None:
    """Renders a run time; one that cannot be read as a text that nobody can read, either."""
    return None if not seconds else f"{seconds}s" if seconds > 0 else "unreadable"


def _time(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else None


def _given(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None}
