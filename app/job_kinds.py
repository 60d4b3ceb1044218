"""The table of kinds of jobs that may wait as a whole beside the Job of Kubernetes.

The settings ``jobs.kinds`` and ``jobs.ownKinds`` choose its rows.
A row says where an object of a kind has its suspend field, its pod templates with their counts, and its end. Paths are
names of fields with dots between them; ``[*]`` stands for each item of a list or each value of a map.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

EACH = "[*]"
CONDITIONS = "status.conditions"
_FIELD = r"[A-Za-z_][A-Za-z0-9_]*"
_PATH = re.compile(rf"{_FIELD}(\.{_FIELD})*")
_PATH_INTO_ITEMS = re.compile(rf"{_FIELD}(\.{_FIELD})*(\[\*\](\.{_FIELD})+)?")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_VERSION = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_PLURAL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")


def _matching(value: str, pattern: re.Pattern[str], example: str) -> str:
    if not pattern.fullmatch(value):
        raise ValueError(f"{value!r} must be like {example}")
    return value


def _like(pattern: re.Pattern[str], example: str) -> AfterValidator:
    """Returns the validator of a field that has to match a pattern."""
    return AfterValidator(lambda value: _matching(value, pattern, example))


OptionalPath = Annotated[str, AfterValidator(lambda path: path and _matching(path, _PATH, "spec.mayBeSuspended"))]
"""The path of a field, or nothing."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True)


class Template(_Row):
    """A pod template, or one in each item of a list or a map. There are as many pods as the product of the counts.

    A count that an object lacks is 1.
    """

    path: Annotated[str, _like(_PATH_INTO_ITEMS, "spec.template, or spec.parts[*].template")]
    counts: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _counts_are_beside(self) -> Self:
        items, each, _ = self.path.partition(EACH)
        for count in self.counts:
            _matching(count, _PATH_INTO_ITEMS, "spec.replicas, or spec.parts[*].replicas")
            if EACH in count and not (each and count.startswith(f"{items}{EACH}.")):
                raise ValueError(f"the count {count} is not in the items of {self.path}")
        return self


class End(_Row):
    """How a job is seen to have ended: by a condition in ``status.conditions`` that is true, or by a field's value."""

    conditions: tuple[str, ...] = ()
    field: str = ""
    values: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.field:
            _matching(self.field, _PATH, "status.state")
        if bool(self.field) != bool(self.values):
            raise ValueError("field and values need each other")
        return self


class Manager(_Row):
    """The field that names the controller of a job, and its value if that is the project's own."""

    field: Annotated[str, _like(_PATH, "spec.managedBy")]
    own: str


class Row(_Row):
    """A kind of jobs. ``only_if`` is the path of a boolean: unless it is true, a job does not bear to be suspended.

    ``unless_set`` is the path of a field of any type: a job that has it does not bear to be suspended either.
    """

    group: Annotated[str, _like(_GROUP, "jobset.x-k8s.io")]
    version: Annotated[str, _like(_VERSION, "v1alpha2")]
    plural: Annotated[str, _like(_PLURAL, "jobsets")]
    kind: Annotated[str, _like(_KIND, "JobSet")]
    suspend: Annotated[str, _like(_PATH, "spec.suspend")]
    templates: tuple[Template, ...] = Field(min_length=1)
    end: End = End()
    managed_by: Manager | None = None
    only_if: OptionalPath = ""
    unless_set: OptionalPath = ""
    pod_label: str = ""

    @model_validator(mode="after")
    def _paths_agree(self) -> Self:
        """Refuses fields that would have to be two things: a value and a part with fields, or with items as well."""
        named = {self.suspend: "suspend", **({CONDITIONS: "conditions"} if self.end.conditions else {})}
        found = [(self.suspend, "suspend"), *((each.path, "templates") for each in self.templates)]
        found += [(count, "counts") for each in self.templates for count in each.counts]
        found += [(self.end.field, "end")] if self.end.field else []
        found += [(self.managed_by.field, "managedBy")] if self.managed_by else []
        found += [(self.only_if, "onlyIf")] if self.only_if else []
        found += [(self.unless_set, "unlessSet")] if self.unless_set else []
        for path, use in found:
            if named.setdefault(path, use) != use:
                raise ValueError(f"{path} is named twice, for {named[path]} and {use}")
        for path in named:
            for other in named:
                inside = other.startswith((f"{path}.", f"{path}{EACH}"))
                items, each, _ = path.partition(EACH)
                if inside or (each and other.startswith(f"{items}.")):
                    raise ValueError(f"{path} and {other} cannot both be there")
        return self

    @property
    def paths(self) -> Iterator[str]:
        """The paths of all fields that are read of an object, beside its metadata."""
        yield self.suspend
        for template in self.templates:
            yield template.path
            yield from template.counts
        of_manager = self.managed_by.field if self.managed_by else ""
        yield from filter(None, (self.end.field, of_manager, self.only_if, self.unless_set))


_OF_RAY = Manager(field="spec.managedBy", own="ray.io/kuberay-operator")


def _of_ray(plural: str, kind: str, cluster: str, **more: Any) -> Row:
    workers = f"{cluster}.workerGroupSpecs[*]"
    return Row(
        group="ray.io",
        version="v1",
        plural=plural,
        kind=kind,
        suspend="spec.suspend",
        templates=(
            Template(path=f"{cluster}.headGroupSpec.template"),
            Template(path=f"{workers}.template", counts=(f"{workers}.replicas", f"{workers}.numOfHosts")),
        ),
        managed_by=_OF_RAY,
        **more,
    )


def _of_kubeflow(plural: str, kind: str, version: str, replicas: str, own: str) -> Row:
    return Row(
        group="kubeflow.org",
        version=version,
        plural=plural,
        kind=kind,
        suspend="spec.runPolicy.suspend",
        templates=(Template(path=f"spec.{replicas}[*].template", counts=(f"spec.{replicas}[*].replicas",)),),
        end=End(conditions=("Succeeded", "Failed")),
        managed_by=Manager(field="spec.runPolicy.managedBy", own=own),
    )


SHIPPED = (
    Row(
        group="jobset.x-k8s.io",
        version="v1alpha2",
        plural="jobsets",
        kind="JobSet",
        suspend="spec.suspend",
        templates=(
            Template(
                path="spec.replicatedJobs[*].template.spec.template",
                counts=("spec.replicatedJobs[*].replicas", "spec.replicatedJobs[*].template.spec.parallelism"),
            ),
        ),
        end=End(conditions=("Completed", "Failed")),
        managed_by=Manager(field="spec.managedBy", own="jobset.sigs.k8s.io/jobset-controller"),
        pod_label="jobset.sigs.k8s.io/jobset-name",
    ),
    _of_ray(
        *("rayjobs", "RayJob", "spec.rayClusterSpec"),
        end=End(field="status.jobDeploymentStatus", values=("Complete", "Failed", "ValidationFailed")),
        only_if="spec.shutdownAfterJobFinishes",
        unless_set="spec.clusterSelector",
    ),
    _of_ray("rayclusters", "RayCluster", "spec", pod_label="ray.io/cluster"),
    _of_kubeflow("mpijobs", "MPIJob", "v2beta1", "mpiReplicaSpecs", "kubeflow.org/mpi-operator"),
    _of_kubeflow("pytorchjobs", "PyTorchJob", "v1", "pytorchReplicaSpecs", "kubeflow.org/training-operator"),
)
"""The rows that need only be named."""
BUILT_IN = tuple(row.kind for row in SHIPPED)


def shipped(names: str) -> tuple[Row, ...]:
    """Returns the built-in rows of these kinds, separated by commas. Raises ValueError for an unknown kind."""
    rows = {row.kind: row for row in SHIPPED}
    unknown = [name for name in names.split(",") if names and name not in rows]
    if unknown:
        raise ValueError(f"no built-in kind {', '.join(unknown)}; there are {', '.join(sorted(rows))}")
    return tuple(row for row in SHIPPED if row.kind in names.split(","))
