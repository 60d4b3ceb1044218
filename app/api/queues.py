"""Queues as REST shows them."""

from app.api.models import ConditionModel, QueueModel, TenantModel
from app.api.run_times import run_times_of
from app.shapes import quantities
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import allocated, shown
from policy.explain.terminating import conditions_of_queue
from policy.objects.queue import ROOT
from policy.objects.resources import Resources
from policy.quota import fair_share, queue_rules
from policy.quota.queue_account import Tenant


def model(cluster: Cluster, name: str) -> QueueModel:
    """Shows a queue that exists."""
    queues, queue, account = cluster.ledger.queues, cluster.queues[name], cluster.ledger.queues.account(name)
    used, request = allocated(cluster, name), shown(cluster, queues.requested(name))
    node = queues.node(name)
    division = node.division
    named: Resources = {**division.deserved, **used, **queue.capability, **queue.guarantee, **request}
    bounds = {resource: queue_rules.bound(queues, node, resource) for resource in named}
    most = dict(division.real_capability) | {resource: most for resource, most in bounds.items() if most is not None}
    return QueueModel(
        name=name,
        parent="" if name == ROOT else queue.parent,
        children=queues.tree.children_of(name),
        state=queue.state,
        weight=queue.weight,
        priority=queue.priority,
        reclaimable=queue.reclaimable,
        capability=quantities(queue.capability),
        guarantee=quantities(queue.guarantee),
        effective_guarantee=quantities(division.guarantee),
        real_capability=quantities(most if division.known else {}),
        request=quantities(request),
        deserved=quantities(dict.fromkeys(named, 0) | dict(division.deserved)),
        allocated=quantities(dict.fromkeys(named, 0) | used),
        run_times=run_times_of(cluster, queue, ("", name)),
        namespaces=[_tenant(cluster, namespace, account.tenants[namespace]) for namespace in sorted(account.tenants)],
        conditions=[
            ConditionModel(type=condition.type, reason=condition.reason, message=condition.message)
            for condition in conditions_of_queue(cluster, name)
        ],
    )


def _tenant(cluster: Cluster, namespace: str, tenant: Tenant) -> TenantModel:
    return TenantModel(
        namespace=namespace,
        weight=tenant.weight,
        request=quantities(shown(cluster, tenant.request)),
        entitled=quantities(tenant.entitled),
        allocated=quantities(shown(cluster, tenant.taken)),
        share=round(fair_share.share(tenant.taken, cluster.ledger.queues.available), 6),
    )
