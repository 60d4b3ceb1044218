"""REST for people and scripts: quotas and explanations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from app.api.models import (
    ConditionModel,
    ElasticQuotaList,
    ElasticQuotaModel,
    ExplanationModel,
    explanation,
    quantities,
    used_of,
)
from app.problems import Problem
from app.store.store import Store
from policy import elastic_quota
from policy.elastic_quota import ElasticQuota
from policy.ledger import Account

router = APIRouter(prefix="/api/v1")


def store_of(request: Request) -> Store:
    """The store of this process. Raises Problem (503) while its picture is not complete."""
    store: Store = request.app.state.store
    if not store.synced:
        raise Problem(503, store.unready(), retry_after=1)
    return store


SyncedStore = Annotated[Store, Depends(store_of)]


@router.get("/elasticquotas")
async def list_elastic_quotas(store: SyncedStore) -> ElasticQuotaList:
    """Every elastic quota with what its namespace uses."""
    namespaces = sorted(store.cluster.quotas)
    return ElasticQuotaList(items=[quota for namespace in namespaces for quota in _quotas_in(store, namespace)])


@router.get("/elasticquotas/{namespace}")
async def list_elastic_quotas_of_namespace(namespace: str, store: SyncedStore) -> ElasticQuotaList:
    """The elastic quotas of one namespace; more than one means that all but one count for nothing."""
    return ElasticQuotaList(items=_quotas_in(store, namespace))


@router.get("/pods/{namespace}/{name}")
async def explain_pod(namespace: str, name: str, store: SyncedStore) -> ExplanationModel:
    """Why a pod is or is not admitted. A pod that is not known is answered with the verdict ``unknown``."""
    return explanation(namespace, name, store.cluster.verdict(namespace, name))


def _quotas_in(store: Store, namespace: str) -> list[ElasticQuotaModel]:
    quotas = store.cluster.quotas.get(namespace, {})
    governing = elastic_quota.in_force(quotas.values())
    account = store.cluster.ledger.account(namespace) if governing else Account()
    return [_quota(quota, governing or quota, account) for _, quota in sorted(quotas.items())]


def _quota(quota: ElasticQuota, governing: ElasticQuota, account: Account) -> ElasticQuotaModel:
    counted = account if quota is governing else Account()
    used = counted.used
    return ElasticQuotaModel(
        namespace=quota.namespace,
        name=quota.name,
        min=quantities(quota.min),
        max=quantities(quota.max),
        used=quantities(used_of(counted, {**quota.max, **quota.min})),
        borrowed=quantities({resource: max(0, used.get(resource, 0) - least) for resource, least in quota.min.items()}),
        available=quantities({resource: max(0, most - used.get(resource, 0)) for resource, most in quota.max.items()}),
        conditions=[
            ConditionModel(type=condition.type, reason=condition.reason, message=condition.message)
            for condition in elastic_quota.conditions(quota, governing)
        ],
    )
