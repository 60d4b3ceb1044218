"""Jobs of ``batch/v1``: the fields that are read, and the translation to the batch job of the rules."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from app.store.heeded import MIN_PARALLELISM, QUEUED
from app.store.kind import Key, Kind
from app.store.metadata import Metadata, as_text, controller_ref, is_custom, run_time_of, seconds
from app.store.placement import NULL
from app.store.pod_object import PodSpec
from app.store.pod_templates import pod_and_template
from app.store.pods import JOB_VERSION
from app.store.remembered import remembered
from policy.cluster.cluster import Cluster
from policy.objects.batch_job import DEFAULT_BACKOFF_LIMIT, UNLIMITED, BatchJob, FailureRule, response
from policy.objects.queued_job import PodSet, QueuedJob
from policy.objects.run_time import LONGEST

DecodedRule = tuple[str, tuple[str, tuple[int, ...]] | None, tuple[tuple[str, str], ...]]
"""A rule of a podFailurePolicy: its action, the operator and values of its exit codes, and its conditions."""

JOB_CONTROLLER = "kubernetes.io/job-controller"
"""The value of ``managedBy`` of a Job that kube-controller-manager runs, as it does without any."""
CRON_JOB = "CronJob"
"""The only owner of Jobs that does not decide itself when these run."""
ENDED = frozenset({"Failed", "FailureTarget", "Complete", "SuccessCriteriaMet"})
"""The conditions of a Job that has ended or is about to end."""
LARGEST = 2**31 - 1
"""The largest parallelism of a Job."""
NOT_A_MINIMUM = "is not a whole number from 1 to the parallelism that is asked for: the Job starts with all of its pods"


class OnExitCodes(Struct, gc=False):
    """The condition on exit codes in a rule of a podFailurePolicy."""

    operator: str = ""
    values: list[int] | None = None


class OnPodCondition(Struct, gc=False):
    """A pod condition that a rule of a podFailurePolicy matches."""

    type: str = ""
    status: str | None = None


class PodFailurePolicyRule(Struct, rename="camel", gc=False):
    """A rule of a podFailurePolicy."""

    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: list[OnPodCondition] | None = None


class PodFailurePolicy(Struct, gc=False):
    """A Job's podFailurePolicy."""

    rules: list[PodFailurePolicyRule] | None = None


class JobSpec(Struct, rename="camel", gc=False):
    """The fields that are read of a Job's spec."""

    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    suspend: bool | None = None
    parallelism: int | None = None
    completions: int | None = None
    managed_by: str | None = None
    template: Raw = NULL


class PodTemplate(Struct, gc=False):
    """The pods that a Job makes."""

    metadata: Metadata | None = None
    spec: PodSpec | None = None


class UncountedTerminatedPods(Struct, gc=False):
    """Pods that have ended and are not counted yet."""

    failed: list[str] | None = None


class JobCondition(Struct, rename="camel", gc=False):
    """The fields that are read of a condition of a Job."""

    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class JobStatus(Struct, rename="camel", gc=False):
    """The fields that are read of a Job's status."""

    start_time: datetime | None = None
    failed: int | None = None
    succeeded: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    conditions: list[JobCondition] | None = None


class JobObject(Struct, gc=False):
    """A Job."""

    metadata: Metadata
    spec: JobSpec | None = None
    status: JobStatus | None = None


def batch_job_of(obj: JobObject) -> BatchJob:
    """Returns the Job as the rules see it."""
    meta, spec, status = obj.metadata, obj.spec or JobSpec(), obj.status or JobStatus()
    rules = _failure_rules(spec.pod_failure_policy)
    per_index, limit = spec.backoff_limit_per_index, spec.backoff_limit
    uncounted = status.uncounted_terminated_pods
    return BatchJob(
        meta.namespace or "",
        meta.name,
        meta.uid or "",
        backoff_limit=limit if limit is not None else DEFAULT_BACKOFF_LIMIT if per_index is None else UNLIMITED,
        limit_per_index=per_index,
        rules=rules,
        response=response(rules),
        failed=status.failed or 0,
        uncounted=frozenset(uncounted.failed or ()) if uncounted is not None else frozenset(),
        ended=has_ended(obj),
        ours=is_ours(obj),
        controller=owner.uid if (owner := controller_ref(meta)) is not None and is_custom(owner) else "",
        deadline=min(spec.active_deadline_seconds or 0, LONGEST),
        started=0.0 if suspended_since(status.conditions) else seconds(status.start_time),  # reset when it goes on
        run_time=run_time_of(meta.annotations),
        **_size(obj),
    )


def _size(obj: JobObject) -> dict[str, Any]:
    """Returns the fields of a batch job that say how many pods it may run."""
    parallelism, asked, least, problem = elasticity(obj)
    spec, status = obj.spec or JobSpec(), obj.status or JobStatus()
    missing = _missing(spec, status)
    runs = 0 if spec.suspend is True else min(parallelism, missing)
    least = max(1, min(least, missing)) if least else 0
    return {"parallelism": parallelism, "runs": runs, "least": least, "asked": asked, "problem": problem}


def _missing(spec: JobSpec, status: JobStatus) -> int:
    """Returns how many pods are missing to the completions of a Job; more than any Job has if it has none."""
    return LARGEST if spec.completions is None else max(0, spec.completions - (status.succeeded or 0))


def _failure_rules(policy: PodFailurePolicy | None) -> tuple[FailureRule, ...]:
    given = (policy.rules if policy else None) or ()
    return _shared_rules(
        tuple(
            (
                rule.action,
                (rule.on_exit_codes.operator, tuple(rule.on_exit_codes.values or ())) if rule.on_exit_codes else None,
                tuple((each.type, each.status or "True") for each in rule.on_pod_conditions or ()),
            )
            for rule in given
        )
    )


@remembered(1024)
def _shared_rules(given: tuple[DecodedRule, ...]) -> tuple[FailureRule, ...]:
    """Returns one tuple for all Jobs with the same rules."""
    return tuple(
        FailureRule(action, codes[1] if codes else None, bool(codes and codes[0] == "NotIn"), on)
        for action, codes, on in given
    )


def is_ours(obj: JobObject) -> bool:
    """Whether no other controller decides when a Job runs."""
    meta, spec = obj.metadata, obj.spec or JobSpec()
    owner = controller_ref(meta)
    return spec.managed_by in (None, JOB_CONTROLLER) and (owner is None or owner.kind == CRON_JOB)


def has_ended(obj: JobObject) -> bool:
    """Whether a Job has failed or succeeded, or is about to."""
    status = obj.status or JobStatus()
    return any(each.type in ENDED and each.status == "True" for each in status.conditions or ())


def may_be_started(obj: JobObject) -> bool:
    """Whether a suspended Job is one that we may start: nobody else decides that, and it goes on."""
    return is_ours(obj) and not has_ended(obj) and obj.metadata.deletion_timestamp is None


def is_marked(obj: JobObject) -> bool:
    """Whether a Job was suspended for us when it was created."""
    return (obj.metadata.labels or {}).get(QUEUED) == "true"


def awaits_pods(obj: JobObject) -> bool:
    """Whether a Job that was suspended for us is not any more, and its controller has not begun to make its pods.

    It sets the time of the start when it makes the first ones, and takes it away when it suspends the Job.
    """
    started = obj.status is not None and obj.status.start_time is not None
    return is_marked(obj) and not started and not (obj.spec is not None and obj.spec.suspend is True)


def queued_job_of(obj: JobObject) -> QueuedJob:
    """Returns a Job as one that waits as a whole. Raises InvalidObject, msgspec.MsgspecError."""
    meta, spec, status = obj.metadata, obj.spec or JobSpec(), obj.status or JobStatus()
    parallelism, asked, least, _ = elasticity(obj)
    missing = _missing(spec, status)
    created = seconds(meta.creation_timestamp)
    return QueuedJob(
        namespace=meta.namespace or "",
        name=meta.name,
        uid=meta.uid or "",
        pod_sets=(pod_set_of(meta, spec.template, min(asked, missing)),),
        parallelism=parallelism,
        suspended=spec.suspend is True,
        marked=is_marked(obj),
        awaits_pods=awaits_pods(obj),
        created=created,
        since=suspended_since(status.conditions) or created,
        least=least,
        asked=asked,
        lacking=max(0, min(asked, missing) - parallelism),
    )


def pod_set_of(meta: Metadata, raw: Raw, count: int) -> PodSet:
    """Returns so many pods of a template of the job with this metadata. Raises InvalidObject, msgspec.MsgspecError."""
    template = _template_decoder.decode(raw) or PodTemplate()
    of_template = template.metadata or Metadata()
    of_pod = Metadata(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        creation_timestamp=meta.creation_timestamp,
        labels=of_template.labels,
        annotations=of_template.annotations,
    )
    pod, filled_in = pod_and_template(of_pod, template.spec, raw)
    return PodSet(pod, count, filled_in)


def suspended_since(conditions: Iterable[JobCondition] | None) -> float:
    """Returns since when a job is suspended, by its conditions, in seconds since the epoch; 0 if none says so."""
    suspended = (each for each in conditions or () if each.type == "Suspended" and each.status == "True")
    return next((seconds(each.last_transition_time) for each in suspended), 0.0)


class Elasticity(NamedTuple):
    """The parallelism of a Job, the one that its user asks for, with how few pods it may start (0: it is not elastic).

    ``problem``: what is wrong with its annotation, for people.
    """

    parallelism: int
    asked: int
    least: int = 0
    problem: str = ""


def elasticity(obj: JobObject) -> Elasticity:
    """Returns with how many pods a Job may run."""
    spec, annotations = obj.spec or JobSpec(), obj.metadata.annotations
    parallelism = 1 if spec.parallelism is None else max(0, spec.parallelism)
    if annotations is None or annotations.min_parallelism is None:
        return Elasticity(parallelism, parallelism)
    asked, least = max(parallelism, _number(annotations.parallelism)), _number(annotations.min_parallelism)
    if 1 <= least <= asked:
        return Elasticity(parallelism, asked, least)
    return Elasticity(parallelism, parallelism, 0, f"annotation {MIN_PARALLELISM} {NOT_A_MINIMUM}")


def _number(given: Any) -> int:
    """Returns a number of pods; 0 if the value of an annotation is none."""
    text = as_text(given)
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST)) else 0
    return number if number <= LARGEST else 0


def _upsert(cluster: Cluster, obj: JobObject, now: float) -> None:
    cluster.upsert_batch_job(job := batch_job_of(obj))
    cluster.queued_jobs.owner_seen(job, now)
    key = obj.metadata.namespace or "", obj.metadata.name
    suspended = obj.spec is not None and obj.spec.suspend is True
    elastic = obj.metadata.annotations is not None and obj.metadata.annotations.min_parallelism is not None
    if not (suspended or elastic or awaits_pods(obj) or key in cluster.queued_jobs):
        return  # most Jobs: their templates are not even decoded
    if may_be_started(obj):
        cluster.queued_jobs.upsert(queued_job_of(obj), now)
    else:
        cluster.queued_jobs.delete(key)


def _delete(cluster: Cluster, key: Key) -> None:
    cluster.delete_batch_job((key[0], key[1]))
    cluster.queued_jobs.gone((key[0], key[1]))


_template_decoder = msgspec.json.Decoder(PodTemplate | None)

JOBS = Kind(
    plural="jobs",
    api_version=JOB_VERSION,
    name="Job",
    decoder=msgspec.json.Decoder(JobObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=_upsert,
    delete=_delete,
    known=lambda cluster: cluster.batch_jobs.keys(),
    optional=True,
    advisory=True,
)
