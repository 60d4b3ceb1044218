"""The base of REST's models: keys are camelCase, amounts are Kubernetes quantities as text."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import shown
from policy.objects.quantity import render
from policy.objects.resources import Resources
from policy.quota.elastic_quota import ElasticQuota

Quantities = dict[str, str]


class Model(BaseModel):
    """A model with camelCase keys."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


def quantities(resources: Resources) -> Quantities:
    """Returns amounts as text, by resource name."""
    return {resource: render(resource, value) for resource, value in sorted(resources.items())}


def used_of(cluster: Cluster, quota: ElasticQuota, used: Resources) -> Resources:
    """Returns what is shown as used under a quota: the resources that it names, and others that its pods use.

    Of the others, only those that operators name are shown (policy.cluster.shown_resources).
    """
    return {**dict.fromkeys((*quota.max, *quota.min), 0), **shown(cluster, used)}
