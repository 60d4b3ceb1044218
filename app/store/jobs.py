"""Jobs of ``batch/v1``: the fields that are read, and the translation to the batch job of the rules."""

from datetime import datetime

import msgspec
from msgspec import Struct

from app.store.kind import Kind
from app.store.metadata import Metadata, seconds
from app.store.remembered import remembered
from policy.objects.batch_job import DEFAULT_BACKOFF_LIMIT, UNLIMITED, BatchJob, FailureRule, response

DecodedRule = tuple[str, tuple[str, tuple[int, ...]] | None, tuple[tuple[str, str], ...]]
"""A rule of a podFailurePolicy: its action, the operator and values of its exit codes, and its conditions."""

JOB_VERSION = "batch/v1"
TRACKED = "batch.kubernetes.io/job-tracking"
"""The finalizer that a pod of a Job has until the Job controller has counted its end."""
ENDED = frozenset({"Failed", "FailureTarget", "Complete", "SuccessCriteriaMet"})
"""The conditions of a Job that has ended or is about to end."""


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


class UncountedTerminatedPods(Struct, gc=False):
    """Pods that have ended and are not counted yet."""

    failed: list[str] | None = None


class JobCondition(Struct, gc=False):
    """The fields that are read of a condition of a Job."""

    type: str = ""
    status: str = ""


class JobStatus(Struct, rename="camel", gc=False):
    """The fields that are read of a Job's status."""

    start_time: datetime | None = None
    failed: int | None = None
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
        ended=any(each.type in ENDED and each.status == "True" for each in status.conditions or ()),
        deadline=spec.active_deadline_seconds or 0,
        started=seconds(status.start_time),
    )


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
        FailureRule(action, frozenset(codes[1]) if codes else None, bool(codes and codes[0] == "NotIn"), frozenset(on))
        for action, codes, on in given
    )


JOBS = Kind(
    plural="jobs",
    api_version=JOB_VERSION,
    name="Job",
    decoder=msgspec.json.Decoder(JobObject),
    key=lambda meta: (meta.namespace or "", meta.name),
    upsert=lambda cluster, obj, _: cluster.batch_jobs.upsert(batch_job_of(obj)),
    delete=lambda cluster, key: cluster.batch_jobs.delete((key[0], key[1])),
    known=lambda cluster: cluster.batch_jobs.keys(),
    optional=True,
    advisory=True,
)
