"""What holds of every answer, whatever the cluster looks like."""

from dataclasses import replace

from hypothesis import given, settings

from policy.cluster.cluster import Cluster
from policy.cluster.pod_admission import Unsettled
from policy.explain.verdicts import verdict_on
from policy.objects.pod import Pod
from policy.objects.quantity import amount_of_milli, to_milli
from policy.quota.admission import Rules
from policy.quota.elastic_quota import BORROWING, INVALID, MAX, ElasticQuota, elastic_quota
from tests.properties.world import PENDING, a_pod, clusters, seeds
from tests.worlds.walk import by_dice


def arrives(seed: int) -> Pod:
    """A pod that has just been created."""
    pick = by_dice(seed)
    namespace = pick("aabbc")
    return a_pod(pick, f"new-{namespace}", namespace, f"new-{namespace}", states=[PENDING], conditions=[None])


arriving = seeds.map(arrives)
OFTEN = settings(max_examples=4 * settings().max_examples)


def answer(cluster: Cluster, pod: Pod) -> str:
    try:
        refused = cluster.admit(pod, now=1)
    except Unsettled:
        return "unsettled"
    return refused.message if refused else ""


@OFTEN
@given(clusters(), arriving)
def test_who_asks_for_less_is_not_refused_where_more_passes(cluster, larger):
    """But for who asks for none any more of what its min names: nothing is guaranteed to it then."""
    quota = cluster.ledger.account(larger.namespace).quota
    if cluster.check(larger) is None:
        for resource, asked in larger.request.items():
            for less in range(quota is not None and resource in quota.min, asked):
                assert cluster.check(replace(larger, request={**larger.request, resource: less})) is None


@given(clusters(), arriving)
def test_who_holds_a_grant_is_answered_the_same_again(cluster, pod):
    if answer(cluster, pod) == "":
        cluster.upsert_pod(pod, now=1)
        assert answer(cluster, pod) == ""
        assert pod.uid in cluster.grants


@given(clusters(), arriving)
def test_who_is_refused_is_answered_the_same_again(cluster, pod):
    assert answer(cluster, pod) == answer(cluster, pod)


@given(clusters(), arriving)
def test_within_its_own_min_nobody_is_refused_for_borrowing(cluster, pod):
    cluster.rules = Rules(strict_borrowing=False)
    if refused := cluster.check(pod):
        account = cluster.ledger.account(pod.namespace)
        ahead, _ = cluster.ledger.ahead_of(pod, account)
        within = [
            resource
            for resource, asked in pod.request.items()
            if account.used.get(resource, 0) + ahead.get(resource, 0) + asked <= account.quota.min.get(resource, 0)
        ]
        assert refused.rule != BORROWING.name or not set(within) & set(refused.resources)


@given(clusters(), arriving)
def test_what_is_guaranteed_is_never_refused_for_borrowing(cluster, pod):
    """Within its min in all that its min names, a pod that may be evicted needs nothing that is lent."""
    cluster.rules = Rules(strict_borrowing=False)
    account = cluster.ledger.account(pod.namespace)
    if account.quota is not None:
        ahead, _ = cluster.ledger.ahead_of(pod, account)
        named = {resource: asked for resource, asked in pod.request.items() if asked and resource in account.quota.min}
        least = account.quota.min
        if named and all(account.used.get(r, 0) + ahead.get(r, 0) + asked <= least[r] for r, asked in named.items()):
            refused = cluster.check(replace(pod, preemptible=True))
            assert refused is None or refused.rule != BORROWING.name


@given(clusters(), arriving)
def test_to_the_letter_the_sum_of_min_bounds_every_pod(cluster, pod):
    cluster.rules = Rules(strict_borrowing=True)
    if cluster.check(pod) is None and cluster.ledger.account(pod.namespace).quota:
        pool = cluster.ledger.pool
        for resource, asked in pod.request.items():
            assert resource not in pool.min or pool.used.get(resource, 0) + asked <= pool.min[resource]


@given(clusters(), arriving)
def test_strictness_only_ever_refuses_more(cluster, pod):
    cluster.rules = Rules(strict_borrowing=True)
    if cluster.check(pod) is None:
        cluster.rules = Rules(strict_borrowing=False)
        assert cluster.check(pod) is None


@given(clusters(), arriving)
def test_opting_out_of_eviction_only_ever_refuses_more(cluster, pod):
    if cluster.check(replace(pod, preemptible=False)) is None:
        assert cluster.check(replace(pod, preemptible=True)) is None


@given(clusters(), arriving)
def test_higher_priority_is_never_refused_where_lower_passes(cluster, pod):
    if cluster.check(pod) is None:
        assert cluster.check(replace(pod, priority=pod.priority + 1)) is None


@given(clusters(), arriving)
def test_only_what_is_asked_for_and_limited_is_refused(cluster, pod):
    refused = cluster.check(pod)
    quota = cluster.ledger.account(pod.namespace).quota
    if refused is None:
        return
    assert quota is not None
    assert refused.rule in (MAX.name, BORROWING.name, INVALID.name)
    assert set(refused.resources) <= set(pod.request)
    limited = quota.max if refused.rule == MAX.name else cluster.ledger.pool.min
    assert set(refused.resources) <= set(limited)
    assert list(refused.resources) == sorted(set(refused.resources))


@given(clusters(), arriving)
def test_a_quota_without_bounds_refuses_only_for_what_others_guarantee(cluster, pod):
    for quotas in list(cluster.quotas.get(pod.namespace, {})):
        cluster.delete_quota(pod.namespace, quotas)
    assert cluster.check(pod) is None
    cluster.upsert_quota(ElasticQuota(pod.namespace, "unbounded"))
    refused = cluster.check(pod)
    assert refused is None or refused.rule == BORROWING.name


@given(clusters(), arriving)
def test_being_over_max_elsewhere_refuses_nobody(cluster, pod):
    """A max of zero for what the pod does not ask for changes no answer."""
    before = cluster.check(pod)
    quota = cluster.ledger.account(pod.namespace).quota
    if quota is not None and quota.readable:
        most = {**quota.max, "example.com/other": 0}
        running = Pod("over", pod.namespace, "over", {"example.com/other": 5}, node="n1")
        cluster.upsert_pod(running, now=1)
        cluster.upsert_quota(elastic_quota(quota.namespace, quota.name, quota.created, quota.min, most))
        assert cluster.check(pod) == before


@given(clusters(), arriving)
def test_asking_leaves_all_others_where_they_stood(cluster, pod):
    before = dict(cluster.ledger.entries)
    answer(cluster, pod)
    after = dict(cluster.ledger.entries)
    before.pop(pod.uid, None)
    after.pop(pod.uid, None)
    assert {uid: entry for uid, entry in after.items() if entry.kind != "in_flight"} == {
        uid: entry for uid, entry in before.items() if after[uid].kind != "in_flight"
    }


@given(clusters(), arriving)
def test_the_remedies_help(cluster, pod):
    """Raised as far as they say, max and then min let the pod in."""
    cluster.rules = Rules(strict_borrowing=False)
    cluster.upsert_pod(pod, now=1)
    for _ in range(2):
        verdict = verdict_on(cluster, pod.namespace, pod.name)
        if verdict.outcome != "refused":
            break
        quota = cluster.ledger.account(pod.namespace).quota
        bounds = {"min": dict(quota.min), "max": dict(quota.max)}
        raising = verdict.hints[0]
        if raising.path:
            _, bound, resource = raising.path.split(".")
            assert verdict.resources == (resource,)
            bounds[bound][resource] = amount_of_milli(resource, to_milli(raising.value))
        for resource in verdict.resources if not raising.path else ():  # it names several, with what they are raised to
            row = verdict.numbers[resource]
            assert f" of {resource} in " in raising.text
            bounds["max" if verdict.rule == MAX.name else "min"][resource] = row["used"] + row["ahead"] + row["request"]
        changed = elastic_quota(quota.namespace, quota.name, quota.created, bounds["min"], bounds["max"])
        cluster.upsert_quota(changed)
    assert verdict_on(cluster, pod.namespace, pod.name).outcome == "admissible"
