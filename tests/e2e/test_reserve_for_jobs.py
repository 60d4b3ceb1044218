"""A large Job that waits as a whole has nodes reserved, on a stock scheduler and kube-controller-manager."""

from datetime import UTC, datetime

import pytest

from tests.controlplane.objects import job, pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.short_jobs import ENDS_AFTER
from tests.e2e.test_backfill import is_refused, left, promised
from tests.e2e.test_jobs import events
from tests.e2e.test_queued_jobs_policy import (
    controllers,  # noqa: F401 - a fixture
    in_force,
    installed,  # noqa: F401 - a fixture
    labelled,
)
from tests.e2e.waiting import bound, wait_for

FLAGS = ("--reserve.starving-after", "4", "--reserve.max-nodes-percent", "100", "--reserve.backfill-margin", "2")
LATE = 15  # seconds that a scheduler and a controller may take at most on a busy machine


@pytest.fixture
def quotaward(cluster):
    with Quotaward(cluster.control_plane, *FLAGS, "--leader.lease-duration", "3") as quotaward:
        yield quotaward


@pytest.fixture
def scheduler(cluster, quotaward):
    with Scheduler(cluster.control_plane, extender(quotaward.url)) as scheduler:
        yield scheduler


@pytest.fixture
def queued(cluster, quotaward, scheduler, installed):  # noqa: F811
    """A namespace whose Jobs wait as a whole."""
    namespace = in_force(cluster, cluster.namespace("queued"))
    yield namespace
    labelled(cluster, namespace, None)


def ending(name, namespace, cpu, seconds):
    """A pod with a deadline, which a kubelet of these tests keeps to."""
    item = pod(name, namespace, cpu, activeDeadlineSeconds=seconds, terminationGracePeriodSeconds=1)
    item["metadata"]["annotations"] = {ENDS_AFTER: f"{seconds}s"}
    return item


def test_a_large_job_starts_as_promised_and_short_pods_run_meanwhile(cluster, quotaward, queued, watch):
    others = cluster.namespace("others")
    mine, theirs = watch(queued), watch(others)
    for name in ("n1", "n2"):
        cluster.node(name, cpu=4)
    cluster.api.create_all([ending("r1", others, 3, 75), ending("r2", others, 3, 40)])
    wait_for(theirs, bound=2)
    cluster.api.create(job("big", queued, 2, cpu=4))
    wait_until(lambda: promised(quotaward), "its start is promised", 30)
    start, reserved = promised(quotaward), quotaward.get("/api/v1/reservations")["items"]
    assert [(each["pod"], each["node"]) for each in reserved] == [(f"{queued}/big-0", "n1"), (f"{queued}/big-1", "n2")]
    assert events(cluster, queued, "StartPromised"), "the Job is told"

    cluster.api.create(pod("endless", others))
    cluster.api.create(job("small", queued, 1))
    wait_until(lambda: is_refused(cluster, others, "endless"), "it would take of what is reserved")
    cluster.api.create(ending("short", others, 1, int(left(quotaward)) - 20))
    wait_until(lambda: "short" in bound(theirs), "it is gone before")
    assert not mine.pods, "no Job starts into what is reserved"

    wait_until(lambda: len(bound(mine)) == 2, "the large Job runs", 120)
    wait_until(lambda: "startTime" in cluster.api.get("jobs", "big", queued)["status"], "its controller tells")
    began = datetime.fromisoformat(cluster.api.get("jobs", "big", queued)["status"]["startTime"])
    assert -2 < (began - start).total_seconds() < LATE, f"it began at {began}, and {start} was promised"
    assert (datetime.now(UTC) - start).total_seconds() < LATE
    assert {each["spec"]["nodeName"] for each in mine.pods} == {"n1", "n2"}
    assert {each["metadata"]["labels"]["job-name"] for each in mine.pods} == {"big"}
    wait_until(lambda: not quotaward.get("/api/v1/reservations")["items"], "nothing is reserved any more")
    wait_until(lambda: quotaward.metric("quotaward_promises_total", outcome="kept") == 1, "it is counted")
    assert not quotaward.metric("quotaward_promises_total", outcome="moved")
    assert "endless" not in bound(theirs)
