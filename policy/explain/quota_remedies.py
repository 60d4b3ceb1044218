"""Remedies for a pod that is refused by an elastic quota. Seed: capacity scheduling."""

from collections.abc import Iterator

from policy.explain.remedy import Need, ObjectChange, Remedy, corrected, end, listed, pods_to_end, raised
from policy.objects.quantity import render
from policy.objects.resources import Resources, largest
from policy.quota.elastic_quota import ElasticQuota

PREEMPTIBLE = "quotaward.dev/preemptible"


def for_max(need: Need) -> Iterator[Remedy]:
    """Suggests a higher max, or the end of pods of the namespace."""
    cluster, pod, asked = need.cluster, need.pod, need.asked
    account = cluster.ledger.accounts[pod.namespace]
    quota, (own, _) = account.quota, cluster.ledger.ahead_of(pod, account)
    if quota is None:
        return
    needed = {r: account.used.get(r, 0) + own.get(r, 0) + asked[r] for r in need.resources}
    said = [_from_to(quota, r, quota.max[r], amount) for r, amount in needed.items()]
    _, most = _written(quota)
    yield _changed("max", quota, f"raise max {listed(said)}", raised(cluster, ("spec", "max"), needed, most))
    pods = pods_to_end(cluster, lambda each: each.namespace == pod.namespace)
    yield from end(pods, {r: amount - quota.max[r] for r, amount in needed.items()}, f"in namespace {pod.namespace}")


def for_borrowing(need: Need) -> Iterator[Remedy]:
    """Suggests a higher min, the end of pods that borrow, or making the pod evictable."""
    cluster, pod, asked = need.cluster, need.pod, need.asked
    ledger, pool = cluster.ledger, cluster.ledger.pool
    account = ledger.accounts[pod.namespace]
    quota, (own, pooled) = account.quota, ledger.ahead_of(pod, account)
    if quota is None:
        return
    used = account.used if pod.preemptible else largest(account.used, account.pinned)
    lacking = {r: pool.used.get(r, 0) + pooled.get(r, 0) + asked[r] - pool.min[r] for r in need.resources}
    needed = {r: used.get(r, 0) + own.get(r, 0) + asked[r] for r in need.resources}
    if cluster.rules.strict_borrowing:
        needed = {r: max(amount, quota.min.get(r, 0) + lacking[r]) for r, amount in needed.items()}
    said = [_from_to(quota, r, quota.min.get(r, 0), amount) for r, amount in needed.items()]
    too_low = {r: amount for r, amount in needed.items() if quota.max.get(r, amount) < amount}
    if too_low:
        said.append(f"max of {', '.join(too_low)} to the same")
    least, most = _written(quota)
    fields = raised(cluster, ("spec", "min"), needed, least) + raised(cluster, ("spec", "max"), too_low, most)
    yield _changed("min", quota, f"raise min {listed(said)}", fields)
    if not any(asked[r] > pool.min[r] for r in need.resources):
        borrowing = {name for name, _, each in ledger.quotas() if each.over_min}
        pods = pods_to_end(cluster, lambda each: each.namespace in cluster.quotas)
        pods.sort(key=lambda each: (each.namespace == pod.namespace, each.namespace not in borrowing))
        yield from end(pods, lacking, "under any elastic quota")
    if not pod.preemptible:
        text = f"let {pod.namespace}/{pod.name} be evicted if need be (without {PREEMPTIBLE}), so that it may borrow"
        fields = ((("metadata", "annotations", PREEMPTIBLE), None),)
        yield Remedy("unpin", text, (ObjectChange("Pod", pod.namespace, pod.name, fields),))


def corrected_quota(need: Need) -> Iterator[Remedy]:
    """Suggests correcting the quota."""
    quota = need.cluster.ledger.accounts[need.pod.namespace].quota
    if quota is not None:
        text = f"correct {_title(quota)}: {'; '.join(quota.errors)}"
        yield Remedy(
            "correct", text, (ObjectChange("ElasticQuota", quota.namespace, quota.name, corrected(quota.errors)),)
        )


def _changed(sort: str, quota: ElasticQuota, text: str, fields: tuple[tuple[tuple[str, ...], str], ...]) -> Remedy:
    return Remedy(sort, text, (ObjectChange("ElasticQuota", quota.namespace, quota.name, fields),))


def _written(quota: ElasticQuota) -> tuple[Resources, Resources]:
    """Returns min and max by the names of resources that the object has."""
    return quota.written or (quota.min, quota.max)


def _from_to(quota: ElasticQuota, resource: str, before: int, after: int) -> str:
    return f"of {resource} in {_title(quota)} from {render(resource, before)} to at least {render(resource, after)}"


def _title(quota: ElasticQuota) -> str:
    return f"ElasticQuota {quota.namespace}/{quota.name}"
