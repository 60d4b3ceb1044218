"""Whoever lets others be evicted, and then runs nothing, gets fewer and fewer of them to go."""

import pytest

from tests.controlplane.objects import is_bound, lingering, pods
from tests.controlplane.processes import wait_until
from tests.e2e.waiting import ensure_for, evicted, wait_for

SECOND, THIRD = 6, 14
"""Seconds for which nobody goes: of the ten that are waited after the first time, and the twenty after the second."""


@pytest.mark.parametrize("way", ["reclaim", "preemption"])
def test_pods_deleted_after_evictions_for_them_get_no_more_evictions_for_a_while(
    cluster, quotaward, scheduler, watch, way
):
    cluster.node(cpu=4)
    important = {"priorityClassName": cluster.priority("high", 1000)} if way == "preemption" else {}
    lending, asking = cluster.namespace("lending"), cluster.namespace("asking")
    cluster.quota(lending, min={"cpu": 0}, max={"cpu": 4})
    cluster.quota(asking, min={"cpu": 4}, max={"cpu": 4})
    lent, asked = watch(lending), watch(asking)

    def fill(count, prefix):
        cluster.api.create_all(map(lingering, pods(count, lending, prefix)))
        wait_for(lent, bound=4)

    def run_nothing():
        """Deletes what asked, when others are on their way out for it; their controller makes them anew."""
        for item in asked.pods:
            assert not is_bound(item)
            cluster.api.delete("pods", item["metadata"]["name"], asking)
        wait_until(lambda: not cluster.api.items("reservations"), "nothing is held any more")
        for item in lent.pods:
            if "deletionTimestamp" in item["metadata"]:
                cluster.api.delete("pods", item["metadata"]["name"], lending, grace=0)
        wait_until(lambda: len(lent.pods) == 2, "they have gone")

    fill(4, "lent")
    cluster.api.create_all(pods(2, asking, "first", **important))
    wait_until(lambda: len(evicted(lent)) == 2, "as many go as ask")
    run_nothing()
    for name, quiet, gone in (("second", SECOND, 4), ("third", THIRD, 6)):
        fill(2, name)
        cluster.api.create_all(pods(2, asking, name, **important))
        ensure_for(quiet, lambda: len(evicted(lent)) == gone - 2, "nobody goes for a while")  # noqa: B023
        wait_until(lambda: len(evicted(lent)) == gone, "then they go")  # noqa: B023
        if name != "third":
            run_nothing()
    assert quotaward.metric("quotaward_evictions_in_vain_total", namespace=asking) == 4
    for item in lent.pods:
        if "deletionTimestamp" in item["metadata"]:
            cluster.api.delete("pods", item["metadata"]["name"], lending, grace=0)
    wait_for(asked, bound=2)
