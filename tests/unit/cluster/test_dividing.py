"""An answer that depends on what queues deserve waits for it to be known: what becomes free is divided, then given."""

import pytest

from policy.cluster import dividing
from policy.quota import shares
from policy.quota.queue_rules import DESERVED
from tests.unit.given import pod
from tests.unit.given_queues import divided, pods, queue, world


def three(*more, **rest):
    """Of 9 cores three queues of equal weight want 4, 9 and 1 and have 3, 5 and 1, so that the second borrows 2."""
    waiting = [*pods("a", 1, start=9), *pods("b", 4, start=5)]
    running = [*pods("a", 3, node="n1"), *pods("b", 5, node="n1"), *pods("c", 1, node="n1")]
    names = ("q1", "q2", "q3", *more)
    return world(*map(queue, names), "a:q1", "b:q2", "c:q3", *running, *waiting, cpu=9, **rest)


@pytest.fixture(params=["few queues", "many"])
def many(request, monkeypatch):
    if request.param == "many":
        monkeypatch.setattr(dividing, "FEW", 0)
    return request.param == "many"


def test_what_a_pod_leaves_is_divided_before_a_borrower_gets_it(many):
    cluster = three()
    cluster.delete_pod("c-0")
    assert cluster.to_be_divided
    assert cluster.admit(cluster.pods["b-5"], now=0).rule == DESERVED.name
    assert cluster.to_be_divided == many
    assert divided(cluster).admit(cluster.pods["b-5"], now=0).rule == DESERVED.name
    assert cluster.admit(cluster.pods["a-9"], now=0) is None


def test_who_was_turned_away_until_it_is_known_is_looked_at_again(many):
    cluster = three()
    cluster.delete_pod("c-0")
    cluster.delete_pod("a-9")
    first = cluster.admit(cluster.pods["b-5"], now=0)
    assert (first is not None) == many
    generation = cluster.generations.admission
    divided(cluster)
    assert cluster.admit(cluster.pods["b-5"], now=0) is None
    assert cluster.generations.admission > generation or not many


def test_where_there_is_enough_for_all_nothing_has_to_be_known(monkeypatch):
    monkeypatch.setattr(dividing, "FEW", 0)
    cluster = world(queue("q1"), queue("q2"), "a:q1", "b:q2", *pods("a", 3), cpu=9)
    cluster.upsert_pod(pod("b-1", "b"), now=0)
    assert cluster.to_be_divided
    assert cluster.admit(pod("b-1", "b"), now=0) is None
    assert cluster.to_be_divided


def test_while_it_is_computed_it_is_not_known(many):
    cluster = three()
    cluster.delete_pod("c-0")
    steps = cluster.divide_steps()
    next(steps)
    assert not cluster.to_be_divided
    assert cluster.admit(cluster.pods["b-5"], now=0).rule == DESERVED.name
    for _ in steps:
        pass
    assert cluster.admit(cluster.pods["b-5"], now=0).rule == DESERVED.name
    assert cluster.admit(cluster.pods["a-9"], now=0) is None


def test_very_many_namespaces_of_a_queue_are_read_in_steps(monkeypatch):
    names = [f"a{each}" for each in range(4 * shares.FEW)]
    waiting = [pod(f"{name}-w", name, request={"cpu": 1}) for name in names]
    cluster = world(queue("q"), *(f"{name}:q" for name in names), *waiting, cpu=1000)
    account, read, longest, before = cluster.ledger.queues.account("q"), [], 0, 0
    account.unread.update(names)
    account.stale = True
    reads = shares.Rows.read
    monkeypatch.setattr(shares.Rows, "read", lambda *row: read.append(row[1]) or reads(*row))
    for _ in cluster.divide_steps():
        longest, before = max(longest, len(read) - before), len(read)
        if before == shares.FEW:  # one that was read already, or will be, changes in a pause
            cluster.upsert_pod(pod("a0-w", "a0", request={"cpu": 7}), 0)
    assert (longest, len(set(read))) == (shares.FEW, len(names))
    assert account.tenants["a0"].entitled["cpu"] > 1000, "it was read again"
