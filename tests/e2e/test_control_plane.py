"""The control plane by itself: what the other tests rely on, without Quotaward."""

from tests.controlplane.objects import condition, pod, pods
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.processes import wait_until
from tests.controlplane.scheduler import Scheduler


def test_a_stock_scheduler_binds_a_pod_and_the_fake_kubelet_runs_and_removes_it(cluster):
    namespace, node = cluster.namespace(), cluster.node()
    with Scheduler(cluster.control_plane), PodWatch(cluster.api, namespace) as watch:
        cluster.api.create(pod("one", namespace))
        wait_until(lambda: [p for p in watch.pods if p["status"]["phase"] == "Running"], "the pod runs")
        assert watch.pods[0]["spec"]["nodeName"] == node
        cluster.api.delete("pods", "one", namespace, grace=30)
        wait_until(lambda: not watch.pods, "the pod is gone")
    assert (watch.most_bound(), watch.most_requested("cpu"), watch.gaps) == (1, 1, 0)


def test_a_watch_goes_on_after_the_api_server_was_killed(cluster):
    namespace = cluster.namespace()
    with PodWatch(cluster.api, namespace) as watch:
        cluster.api.create_all(pods(3, namespace))
        wait_until(lambda: len(watch.pods) == 3, "the pods are seen")
        cluster.api.delete("pods", "pod-0", namespace)
        cluster.control_plane.crash_api_server()
        cluster.control_plane.start_api_server()
        cluster.api.create(pod("late", namespace))
        names = {"pod-1", "pod-2", "late"}
        wait_until(lambda: {p["metadata"]["name"] for p in watch.pods} == names, "the watch has caught up")


def test_a_pod_that_fits_nowhere_is_reported_unschedulable(cluster):
    namespace = cluster.namespace()
    cluster.node(cpu=1)
    with Scheduler(cluster.control_plane), PodWatch(cluster.api, namespace) as watch:
        cluster.api.create(pod("big", namespace, cpu=2))
        scheduled = wait_until(lambda: watch.pods and condition(watch.pods[0], "PodScheduled"), "it was tried")
    assert scheduled["reason"] == "Unschedulable"
    assert "Insufficient cpu" in scheduled["message"]
