"""Holders of what a refused pod lacks: by the rule that refuses it, and by resource.

For an admitted pod: pods that might be taken to hold its quota and do not, as they are nominated to a lost node.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.objects.verdict import Refusal, told
from policy.preemption.ranking import importance
from policy.quota import elastic_quota
from policy.quota.rule import Use
from policy.quota.rules import BY_NAME

MOST = 10
"""The most holders of one resource that are named: those furthest over their bound."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A user of a resource: ``kind`` and ``name`` of the ElasticQuota, Queue or Namespace.

    ``bound`` is what protects its use (min, deserved, entitled) or limits it (max, realCapability), whichever the rule
    compares. ``bound_name`` is the name of that figure, and ``over`` how far the use exceeds it. ``pods`` make up what
    is over, or are all of its pods; least important first. ``ahead`` is kept, beyond what is used, for ``first``: pods
    that wait for a node that they are expected on. ``late`` are its pods that should be gone, but their node is lost or
    they do not end. ``in_vain`` are pods that count for nothing, as the node that they are nominated to cannot take
    them.
    """

    kind: str
    name: str
    resource: str
    used: int
    bound: int
    over: int
    pods: tuple[Pod, ...]
    bound_name: str
    ahead: int = 0
    first: tuple[Pod, ...] = ()
    late: tuple[Pod, ...] = ()
    in_vain: tuple[Pod, ...] = ()


def holders(cluster: Cluster, pod: Pod, refused: Refusal) -> list[Holder]:
    """Returns the holders, furthest over their bound first. Returns none for rules that compare no amounts."""
    found = []
    if not refused.rule:
        return _in_vain(cluster, pod)
    rule = BY_NAME[refused.rule]
    for resource in refused.resources:
        uses = [use for use in rule.users(cluster.ledger, pod, resource) if use.used or use.ahead]
        uses.sort(key=lambda use: (-use.over, -use.used, use.name))
        found += [_holder(cluster, use, pod, resource, rule.bound) for use in uses[:MOST]]
    return found


def _holder(cluster: Cluster, use: Use, pod: Pod, resource: str, bound: str) -> Holder:
    there = (placed.pod for placed in cluster.table.in_namespaces(use.namespaces) if placed.pod.assigned)
    counted = (pod for pod in there if pod.uid not in cluster.leaving.overdue)
    pods = [pod for pod in counted if pod.request.get(resource) and use.queue in ("", cluster.queue_of(pod))]
    chosen, together = list[Pod](), 0
    for each in sorted(pods, key=importance, reverse=True):
        if use.over and together >= use.over:
            break
        chosen.append(each)
        together += each.request[resource]
    return Holder(
        kind=use.kind,
        name=use.name,
        resource=resource,
        used=use.used,
        bound=use.bound,
        over=use.over,
        pods=tuple(chosen),
        bound_name=bound,
        ahead=use.ahead,
        first=tuple(_going_first(cluster, use, pod, resource)) if use.ahead else (),
        late=tuple(each for each in pods if cluster.leaving.is_late(each)),
    )


def _in_vain(cluster: Cluster, pod: Pod) -> list[Holder]:
    """Returns the quota of an admitted pod for each resource that pods nominated in vain ask for."""
    others = [other for other in cluster.pending_in(pod.namespace) if other.uid != pod.uid and other.nominated_node]
    in_vain = [other for other in others if not cluster.destinations.may_come(other, other.nominated_node)]
    found = []
    for resource in told(pod.request, ()):
        asking = tuple(other for other in in_vain if other.request.get(resource))
        if asking:
            rule = elastic_quota.MAX
            uses = (use for use in rule.users(cluster.ledger, pod, resource) if use.bound)
            found += [replace(_holder(cluster, use, pod, resource, rule.bound), in_vain=asking) for use in uses]
    return found


def _going_first(cluster: Cluster, use: Use, pod: Pod, resource: str) -> Iterator[Pod]:
    """Yields the pods expected on a node that they wait for; of the pod's own quota only those not less important."""
    for namespace in use.namespaces:
        for other in cluster.pending_in(namespace):
            entry = cluster.ledger.entries.get(other.uid)
            expected = entry is not None and entry.kind in ("nominated", "held") and other.uid != pod.uid
            if (
                expected
                and other.request.get(resource)
                and not (namespace == pod.namespace and other.priority < pod.priority)
            ):
                yield other
