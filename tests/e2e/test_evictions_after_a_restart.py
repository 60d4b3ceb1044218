"""What is known of evictions after a restart, without a Prometheus: as much as Events tell."""

from tests.controlplane.objects import GPU, pod, pods
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import bound, evicted, wait_for


def test_an_evicted_pod_is_explained_and_counted_after_a_restart(cluster, watch):
    cluster.node(gpus=5)
    a, b = cluster.namespace(), cluster.namespace()
    cluster.quota(a, min={GPU: 4}, max={GPU: 5})
    cluster.quota(b, min={GPU: 1}, max={GPU: 5})
    borrowing, owning = watch(a), watch(b)
    with Quotaward(cluster.control_plane) as quotaward, Scheduler(cluster.control_plane, extender(quotaward.url)):
        cluster.api.create_all(pods(5, a, gpus=1))
        wait_for(borrowing, bound=5)
        cluster.api.create(pod("owner", b, gpus=1))
        wait_for(owning, bound=1)
        wait_until(lambda: len(bound(borrowing)) == 4, "one has gone for it")
        [gone] = evicted(borrowing)
        told = {"labelSelector": "quotaward.dev/evicted=true"}
        wait_until(lambda: cluster.api.items("events", a, **told), "the Event is written")

        def known() -> tuple:
            explained = quotaward.get(f"/api/v1/pods/{a}/{gone}")["evicted"]
            history = quotaward.get(f"/api/v1/history?quota={a}/quota&since=1h&step=1h")
            evictions = quotaward.get(f"/api/v1/evictions?namespace={a}")["items"]
            return explained, history["items"][0]["evicted"][-1] if history["items"] else None, evictions

        wait_until(lambda: known()[1] == 1, "it is counted")
        before = known()
        assert before[0]["for"] == f"{b}/owner"
        quotaward.crash()
        quotaward.start()
        wait_until(lambda: known() == before, "it is known as before", detail=known)
        assert quotaward.metric("quotaward_queue_evictions_total") == 0, "metrics are this process's own"
