"""The shapes of REST. Amounts are Kubernetes quantities in text."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from policy.ledger import Account
from policy.quantity import render
from policy.resources import Resources
from policy.verdict import Verdict

Quantities = dict[str, str]


class Model(BaseModel):
    """Keys are camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ConditionModel(Model):
    """Something about an object that its owner should know."""

    type: str
    status: str = "True"
    reason: str
    message: str


class ElasticQuotaModel(Model):
    """An elastic quota and what its namespace uses.

    ``borrowed`` is what is used beyond min, ``available`` what is left below max, for resources that have one.
    """

    namespace: str
    name: str
    min: Quantities
    max: Quantities
    used: Quantities
    borrowed: Quantities
    available: Quantities
    conditions: list[ConditionModel]


class ElasticQuotaList(Model):
    """Elastic quotas, by namespace and name."""

    items: list[ElasticQuotaModel]


class RemedyModel(Model):
    """One change that would let the pod in; path and value, where given, name a field of target and its new value."""

    text: str
    target: str
    path: str
    value: str


class ExplanationModel(Model):
    """Why a pod is or is not admitted, with the numbers now and what would help."""

    namespace: str
    name: str
    verdict: str
    rule: str
    message: str
    numbers: dict[str, Quantities]
    remedies: list[RemedyModel]


class HealthModel(Model):
    """Whether this process can do its work, and what keeps it from it."""

    status: str
    reason: str = ""


def quantities(resources: Resources) -> Quantities:
    """Amounts as text, by resource name."""
    return {resource: render(resource, value) for resource, value in sorted(resources.items())}


def used_of(account: Account, bounded: Resources) -> Resources:
    """What a quota's status shows as used: the resources that the quota names, and what else its pods use."""
    return dict.fromkeys(bounded, 0) | account.used


def explanation(namespace: str, name: str, verdict: Verdict) -> ExplanationModel:
    """A verdict as REST shows it."""
    return ExplanationModel(
        namespace=namespace,
        name=name,
        verdict=verdict.outcome,
        rule=verdict.rule,
        message=verdict.message,
        numbers={
            resource: {figure: render(resource, value) for figure, value in row.items()}
            for resource, row in verdict.numbers.items()
        },
        remedies=[
            RemedyModel(text=remedy.text, target=remedy.target, path=remedy.path, value=remedy.value)
            for remedy in verdict.remedies
        ],
    )
