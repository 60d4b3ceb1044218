"""The shapes of what would change. Amounts are Kubernetes quantities in text, pods are namespace/name."""

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
    """What is to be changed: manifests that are merged into what is there, and objects that are removed."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_with_examples)

    apply: list[dict[str, Any]] = Field(default_factory=list)
    remove: list[dict[str, Any]] = Field(default_factory=list)


class AdmittedModel(Model):
    """A pod that would be placed, and where. ``anyway``: also without the change; null if that took too long."""

    pod: str
    node: str
    anyway: bool | None


class EvictedModel(Model):
    """A pod that would be evicted, for whom (empty: its group would be broken), and why."""

    pod: str
    node: str
    for_: str = Field(alias="for")
    reason: str
    anyway: bool | None


class RefusedModel(Model):
    """A pod that would still wait, the rule that refuses it (empty: no node has room), and what it would be told."""

    pod: str
    rule: str
    message: str
    anyway: bool | None


class QuotaFigures(Model):
    """An elastic quota in numbers."""

    min: Quantities
    max: Quantities
    used: Quantities


class QuotaChange(Model):
    """An elastic quota whose numbers would change; null where there is none."""

    namespace: str
    name: str
    before: QuotaFigures | None
    after: QuotaFigures | None


class QueueFigures(Model):
    """A queue in numbers."""

    weight: int
    capability: Quantities
    guarantee: Quantities
    deserved: Quantities
    allocated: Quantities


class QueueChange(Model):
    """A queue whose numbers would change; null where there is none."""

    name: str
    before: QueueFigures | None
    after: QueueFigures | None


class WhatIfModel(Model):
    """What would become of the cluster: who would run, go and wait, and which numbers would be others.

    ``spared`` are those who would be evicted without the change. ``waiting`` counts all that would wait; ``refused``
    has the first of them, and before all others those that wait by the change.
    """

    admitted: list[AdmittedModel]
    evicted: list[EvictedModel]
    spared: list[str]
    refused: list[RefusedModel]
    waiting: int
    quotas: list[QuotaChange]
    queues: list[QueueChange]
