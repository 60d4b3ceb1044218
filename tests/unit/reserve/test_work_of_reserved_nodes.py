"""Questions about reserved nodes take no more work where a Job that waits as a whole has many of them."""

from dataclasses import replace

import pytest

from policy.queueing.ungating import has_room_for_all
from tests.unit.app.lines import lines_of
from tests.unit.given_jobs import NOW, sized, sized_pod
from tests.unit.reserve.test_node_reservation_for_jobs import job, queued
from tests.unit.reserve.test_promises import promise

AN_HOUR = 3600


def reserving(number, *more):
    """Of twice as many nodes, each with a core left, so many are reserved for a Job and its start is promised."""
    names = [f"n{each}" for each in range(2 * number)]
    pods = [replace(sized_pod(f"r-{name}", 3, node=name, deadline=AN_HOUR), started=NOW - 10) for name in names]
    cluster = queued(*(sized(name, cpu=4) for name in names), *pods, jobs=[job(pods=number), *more])
    promise(cluster)
    assert len(cluster.reservations.reserved) == number
    return cluster


@pytest.mark.parametrize("rest", [{}, {"deadline": 60}], ids=["endless", "gone in time"])
def test_room_beside_many_reserved_nodes_takes_as_few_lines_as_beside_few(rest):
    def steps(number):
        cluster = reserving(number, job("late", pods=1, cpu=1, age=5, **rest))
        return lines_of(lambda uid: has_room_for_all(cluster, cluster.pods[uid]), "job/uid-late")

    assert steps(60) == steps(6)
