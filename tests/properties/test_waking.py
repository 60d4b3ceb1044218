"""Those who are woken all fit, and looking for them changes nothing."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from policy.cluster.cluster import Cluster
from policy.queueing.waking import to_wake
from policy.quota.account import Account
from policy.quota.elastic_quota import BORROWING, MAX
from tests.properties.world import PENDING, a_quota, clusters, seeds
from tests.unit.given import refused_for
from tests.worlds.walk import by_dice

changed_quotas = seeds.map(lambda seed: a_quota(by_dice(seed)))
REFUSED = (None, refused_for(MAX), refused_for(MAX), refused_for(BORROWING))
PENDING_OR_NOMINATED = (PENDING, PENDING, {"nominated_node": "n2"}, {"node": "n1"}, {"terminating": True})
PENDING_OR_RUNNING = (PENDING, PENDING, {"node": "n1"}, {"terminating": True})


def picture(cluster: Cluster) -> tuple:
    """All that could change."""
    ledger = cluster.ledger
    accounts = {namespace: account for namespace, account in ledger.accounts.items() if account != Account()}
    return deepcopy(
        (
            ledger.entries,
            accounts,
            ledger.pool,
            cluster.generations.admission,
            len(cluster.grants),
            cluster.attempts.refused,
        )
    )


@given(clusters(PENDING_OR_NOMINATED, REFUSED), st.booleans())
def test_looking_for_whom_to_wake_changes_nothing(cluster, starting):
    if starting:
        cluster.in_flight.suspect(now=1)
    before = picture(cluster)
    chosen = to_wake(cluster)
    assert picture(cluster) == before
    assert to_wake(cluster) == chosen


@given(clusters(PENDING_OR_NOMINATED, REFUSED), st.booleans(), changed_quotas)
def test_all_who_are_woken_pass_one_after_the_other(cluster, starting, changed):
    if starting:
        cluster.in_flight.suspect(now=1)
    cluster.upsert_quota(changed)
    for pod in to_wake(cluster):
        assert pod.uid in cluster.attempts.refused
        assert pod.uid not in cluster.grants
        assert cluster.admit(pod, now=1) is None


@given(clusters(PENDING_OR_RUNNING, REFUSED), changed_quotas)
def test_nobody_who_fits_beside_them_is_left_out(cluster, changed):
    cluster.upsert_quota(changed)
    chosen = to_wake(cluster)
    for pod in chosen:
        cluster.admit(pod, now=1)
    for pod in cluster.attempts.refused.values():
        assert pod.uid in cluster.grants or pod.terminating or cluster.check(pod) is not None


@given(clusters(PENDING_OR_RUNNING, REFUSED))
def test_the_more_important_are_woken_first(cluster):
    chosen = to_wake(cluster)
    assert chosen == sorted(chosen, key=lambda pod: (-pod.priority, pod.created))
    assert all(not pod.terminating for pod in chosen)
