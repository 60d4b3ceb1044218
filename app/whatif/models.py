"""Models of what-if questions. Amounts are Kubernetes quantities as text, pods are namespace/name."""

from typing import Any

from pydantic import ConfigDict, Field

from app.shapes import Model, Quantities

EXAMPLES: list[dict[str, Any]] = [
    {
        "apply": [
            {
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "kind": "ElasticQuota",
                "metadata": {"name": "quota", "namespace": "team-a"},
                "spec": {"max": {"cpu": "8"}},
            }
        ],
        "remove": [{"kind": "Pod", "namespace": "team-b", "name": "train-1"}],
    }
]


def _with_examples(schema: dict[str, Any]) -> None:
    schema["examples"] = EXAMPLES


class WhatIfRequest(Model):
    """The changes to try: manifests that are merged into existing objects, and objects that are removed."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_with_examples)

    apply: list[dict[str, Any]] = Field(default_factory=list)
    remove: list[dict[str, Any]] = Field(default_factory=list)


class AdmittedModel(Model):
    """A pod that would be placed, and its node. ``anyway``: also without the change; null if that took too long."""

    pod: str
    node: str
    anyway: bool | None


class VictimModel(Model):
    """A pod that would be evicted, for which pod (empty: because its group would be broken), and why."""

    pod: str
    node: str
    for_: str = Field(alias="for")
    reason: str
    anyway: bool | None


class RefusedModel(Model):
    """A pod that would still wait, the rule that refuses it (empty: no node has room), and the message.

    Or a Job that would still wait as a whole: ``Job NAMESPACE/NAME (N pods)``.
    """

    pod: str
    rule: str
    message: str
    anyway: bool | None


class QuotaFigures(Model):
    """The figures of an elastic quota."""

    min: Quantities
    max: Quantities
    used: Quantities


class QuotaChange(Model):
    """An elastic quota whose figures would change; null if it would not exist."""

    namespace: str
    name: str
    before: QuotaFigures | None
    after: QuotaFigures | None


class QueueFigures(Model):
    """The figures of a queue, and the queue that it stands below; that is empty for the Queue named root."""

    parent: str
    weight: int
    capability: Quantities
    guarantee: Quantities
    deserved: Quantities
    allocated: Quantities


class QueueChange(Model):
    """A queue whose figures would change; null if it would not exist."""

    name: str
    before: QueueFigures | None
    after: QueueFigures | None


class WhatIfModel(Model):
    """The effect of the changes: pods that would run, be evicted and wait, and figures that would change.

    ``spared`` are pods that would be evicted without the change. ``waiting`` counts all pods that would wait;
    ``refused`` lists the first of them, beginning with those that wait because of the change.
    """

    admitted: list[AdmittedModel]
    evicted: list[VictimModel]
    spared: list[str]
    refused: list[RefusedModel]
    waiting: int
    quotas: list[QuotaChange]
    queues: list[QueueChange]
