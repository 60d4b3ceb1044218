"""The scheduler obeys a limit on run times, and pods that outlive theirs are evicted where that is switched on."""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from tests.controlplane.objects import elastic_quota, job, pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import bound, ensure_for, evicted, wait_for

TOO_LONG = "Run time exceeds the limit"


def annotated(item, key, time):
    item["metadata"].setdefault("annotations", {})[f"quotaward.dev/{key}"] = time
    return item


@pytest.mark.parametrize("change", ["the Job says it", "the quota says a default", "the limit is removed"])
def test_a_pod_of_which_nobody_says_how_long_it_runs_waits_until_somebody_does(cluster, scheduler, watch, change):
    cluster.node(cpu=4)
    team = cluster.namespace("a")
    cluster.api.create(annotated(elastic_quota(team, max={"cpu": 4}), "max-run-time", "1h"))
    made = cluster.api.create(job("train", team))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": made["metadata"]["uid"]}
    waiting = pod("train-0", team)
    waiting["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    of_team = watch(team)
    cluster.api.create_all(
        [
            annotated(pod("short", team), "run-time", "30m"),
            annotated(pod("long", team), "run-time", "24h"),
            pod("deadline", team, activeDeadlineSeconds=3600),
            waiting,
        ]
    )
    wait_for(of_team, bound=2, refused=2, why=TOO_LONG)
    ensure_for(2, lambda: bound(of_team) == {"short", "deadline"}, "the others wait")
    if change == "the Job says it":
        cluster.api.patch("jobs", "train", annotated({"metadata": {}}, "run-time", "30m"), team)
    elif change == "the quota says a default":
        cluster.api.patch("elasticquotas", "quota", annotated({"metadata": {}}, "run-time", "30m"), team)
    else:
        cluster.api.patch("elasticquotas", "quota", annotated({"metadata": {}}, "max-run-time", None), team)
    others = {"long"} if change == "the limit is removed" else set()
    wait_for(of_team, bound=3 + len(others), refused=1 - len(others), why=TOO_LONG)
    assert bound(of_team) == {"short", "deadline", "train-0"} | others


def test_a_pod_that_outlives_its_run_time_is_evicted_if_that_is_switched_on(cluster, watch):
    cluster.node(cpu=4)
    team = cluster.namespace("a")
    with ExitStack() as stack:
        flags = "--run-time.evict", "--run-time.grace", "1"
        quotaward = stack.enter_context(Quotaward(cluster.control_plane, *flags))
        stack.enter_context(Scheduler(cluster.control_plane, extender(quotaward.url)))
        cluster.api.create(annotated(elastic_quota(team, max={"cpu": 4}), "max-run-time", "1h"))
        of_team = watch(team)
        cluster.api.create_all(
            [annotated(pod("short", team), "run-time", "10s"), annotated(pod("long", team), "run-time", "1h")]
        )
        wait_for(of_team, bound=2)
        wait_until(lambda: evicted(of_team) == {"short"}, "the one that has outlived its run time goes", timeout=60)
        goes_at = datetime.now(UTC)
        gone = next(each for _, each in reversed(of_team.events) if each["metadata"]["name"] == "short")
        started = datetime.fromisoformat(gone["status"]["startTime"])
        assert goes_at - started >= timedelta(seconds=11)
        ensure_for(6, lambda: bound(of_team) == {"long"}, "the other one stays")
