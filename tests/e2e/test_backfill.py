"""Short pods use a reserved node until the promised start, on a stock scheduler. The example of docs/time.md."""

from datetime import UTC, datetime

import pytest

from tests.controlplane.objects import pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import bound, wait_for

RESERVED = "node(s) resource was(were) reserved"
SOON = ("--reserve.starving-after", "4", "--leader.lease-duration", "3")
AHEAD = ("--reserve.ahead", "1", "--leader.lease-duration", "3")
MARGIN, HOUR = 30, 3600


@pytest.fixture(params=[SOON])
def serving(cluster, request):
    """A Quotaward, and a scheduler that asks it."""
    with (
        Quotaward(cluster.control_plane, *request.param) as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):
        yield quotaward


def promised(quotaward):
    """When the job that starves starts at the latest; None if nothing is promised."""
    starts = {each["promisedStart"] for each in quotaward.get("/api/v1/reservations")["items"]} - {""}
    return datetime.fromisoformat(starts.pop()) if starts else None


def left(quotaward):
    """Seconds until then."""
    return (promised(quotaward) - datetime.now(UTC)).total_seconds()


def is_refused(cluster, namespace, name):
    conditions = cluster.api.get("pods", name, namespace)["status"].get("conditions", [])
    return any(RESERVED in each.get("message", "") for each in conditions)


def with_a_promise(cluster, serving, watch):
    """The namespace, and its watch, of a large pod whose start is promised for when two others have ended."""
    namespace = cluster.namespace()
    watching = watch(namespace)
    cluster.node(cpu=8)
    running = [("r1", 4, HOUR), ("r2", 2, HOUR // 2)]
    cluster.api.create_all([pod(name, namespace, cpu, activeDeadlineSeconds=time) for name, cpu, time in running])
    wait_for(watching, bound=2)
    cluster.api.create(pod("big", namespace, cpu=8))
    wait_until(lambda: promised(serving), "the start is promised", 30)
    assert HOUR - 60 < left(serving) <= HOUR
    return namespace, watching


def test_who_is_surely_gone_before_the_promised_start_uses_the_node_meanwhile(cluster, serving, watch):
    namespace, watching = with_a_promise(cluster, serving, watch)

    def asks(name, seconds):
        cluster.api.create(pod(name, namespace, 2, **({"activeDeadlineSeconds": int(seconds)} if seconds else {})))

    asks("s1", left(serving) - 600)
    wait_until(lambda: "s1" in bound(watching), "s1 runs")
    cluster.api.delete("pods", "r2", namespace)
    asks("s3", left(serving) - MARGIN + 5)
    asks("s4", 0)
    for name in ("s3", "s4"):
        wait_until(lambda name=name: is_refused(cluster, namespace, name), "it is refused")
    before = promised(serving)
    asks("s2", left(serving) - MARGIN - 30)
    wait_until(lambda: "s2" in bound(watching), "s2 runs")

    serving.crash()
    serving.start()
    wait_until(lambda: serving.metric("quotaward_leader"), "it leads again")
    assert promised(serving) == before, "the promise is kept"
    cluster.api.delete("pods", "r1", namespace)
    wait_until(lambda: promised(serving) < before, "it moves to what s1 and s2 leave")
    assert 50 < (before - promised(serving)).total_seconds() < 75, "until s2 ends"
    for name in ("s1", "s2"):
        cluster.api.delete("pods", name, namespace)
    wait_until(lambda: "big" in bound(watching), "the large one starts")
    wait_until(lambda: serving.metric("quotaward_promises_total", outcome="kept") == 1, "it is counted")
    assert not serving.metric("quotaward_promises_total", outcome="moved")


@pytest.mark.parametrize("serving", [AHEAD], indirect=True)
def test_the_first_in_line_has_its_promise_before_it_starves(cluster, serving, watch):
    namespace, watching = with_a_promise(cluster, serving, watch)
    cluster.api.create(pod("second", namespace, cpu=8))
    cluster.api.create(pod("endless", namespace, cpu=2))
    wait_until(lambda: is_refused(cluster, namespace, "endless"), "it is refused")
    cluster.api.create(pod("short", namespace, cpu=2, activeDeadlineSeconds=int(left(serving) - 600)))
    wait_until(lambda: "short" in bound(watching), "it uses the room meanwhile")
    reserved = serving.get("/api/v1/reservations")["items"]
    assert [each["pod"] for each in reserved] == [f"{namespace}/big"]
    for name in ("r1", "r2", "short"):
        cluster.api.delete("pods", name, namespace)
    wait_until(lambda: "big" in bound(watching), "the large one starts")
    assert "endless" not in bound(watching)


def test_a_pod_that_ignores_its_end_does_not_make_the_job_late(cluster, serving, watch):
    namespace = cluster.namespace()
    watching = watch(namespace)
    cluster.node(cpu=4)
    cluster.api.create(pod("liar", namespace, cpu=3, activeDeadlineSeconds=15))  # nobody ends it here
    wait_for(watching, bound=1)
    cluster.api.create(pod("big", namespace, cpu=4))
    wait_until(lambda: promised(serving), "the start is promised", 30)
    wait_until(lambda: "big" in bound(watching), "the large one starts", 60)
    assert serving.metric("quotaward_evictions_total", reason="promised-start", outcome="evicted") == 1
    wait_until(lambda: serving.metric("quotaward_promises_total", outcome="kept") == 1, "it is counted as kept")
    assert "PromisedStart" in {each["reason"] for each in cluster.api.items("events", namespace)}
