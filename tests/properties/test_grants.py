"""A pod whose grants come to nothing holds room for less and less time."""

from hypothesis import given
from hypothesis import strategies as st

from policy.cluster.cluster import Cluster
from policy.cluster.grants import SHORTEST
from tests.unit.given import pod

LIFETIME = 30.0


def lasts(cluster: Cluster, now: float) -> float:
    """How long a grant that is given now keeps its room, at most an eighth of a second more."""
    assert cluster.admit(pod("p"), now) is None
    waited = 0.0
    while "p" in cluster.grants:
        waited += 0.125
        cluster.tick(now + waited)
    return waited


@given(st.lists(st.floats(0, 100), max_size=12))
def test_the_grants_of_a_pod_that_always_fails_become_shorter(pauses):
    cluster, now, before = Cluster(grant_lifetime=LIFETIME), 0.0, 2 * LIFETIME
    cluster.upsert_pod(pod("p"), now)
    for pause in pauses:
        now += pause
        lasting = lasts(cluster, now)
        now += lasting
        assert SHORTEST <= lasting <= max(before / 2, SHORTEST) + 0.125
        before = lasting
    cluster.upsert_pod(pod("p", node="n1"), now)
    cluster.delete_pod("p")
    cluster.upsert_pod(pod("p"), now)
    assert lasts(cluster, now) >= LIFETIME


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from((0.0, 0.5, 2.0, 20.0))), max_size=40), st.booleans()
)
def test_when_all_time_has_passed_nothing_is_granted_and_nothing_in_flight(asked, starting):
    cluster, now = Cluster(grant_lifetime=LIFETIME), 0.0
    for uid in "abc":
        cluster.upsert_pod(pod(uid), now)
    if starting:
        cluster.in_flight.suspect(now)
    for uid, pause in asked:
        cluster.admit(pod(uid), now)
        now += pause
        cluster.tick(now)
        assert len(cluster.grants) == len([e for e in cluster.ledger.entries.values() if e.kind == "granted"])
    cluster.tick(now + LIFETIME)
    assert len(cluster.grants) == 0
    assert not cluster.unsettled
    assert cluster.ledger.entries == {}
