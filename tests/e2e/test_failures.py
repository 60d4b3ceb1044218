"""Quotas hold, and pods go on binding, while parts of the cluster fail and come back."""

from concurrent.futures import ThreadPoolExecutor

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import is_bound, pod, pods
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward, install_definitions
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import wait_for


def test_a_quota_holds_while_quotaward_is_killed_in_the_middle_of_a_burst(cluster, quotaward, scheduler):
    cluster.nodes(4, cpu=64)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 50})
    with PodWatch(cluster.api, namespace) as watch, ThreadPoolExecutor(1) as background:
        burst = background.submit(cluster.api.create_all, pods(200, namespace))
        for so_many in (1, 15, 30):
            wait_until(lambda so_many=so_many: watch.bound >= so_many, f"{so_many} pods are bound", every=0.005)
            quotaward.crash()
            quotaward.start()
        burst.result()
        wait_for(watch, bound=50, refused=150, timeout=120)
        assert watch.most_bound() == 50
        assert watch.gaps == 0


def test_pods_admitted_before_a_kill_count_while_their_bindings_are_under_way(cluster, quotaward):
    cluster.node(cpu=64)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 30})
    slow = {"kubeconfig": str(cluster.control_plane.kubeconfig), "qps": 6, "burst": 3}
    scheduler = Scheduler(cluster.control_plane, extender(quotaward.url), clientConnection=slow)
    before = quotaward.requests("filter", result="admitted")
    with scheduler, PodWatch(cluster.api, namespace) as watch:
        cluster.api.create_all(pods(30, namespace))
        wait_until(
            lambda: quotaward.requests("filter", result="admitted") == before + 30, "all are admitted", every=0.005
        )
        quotaward.crash()
        quotaward.start()
        cluster.api.create_all(pods(10, namespace, prefix="later"))
        wait_for(watch, bound=30, refused=10)
        assert watch.most_bound() == 30


def test_quotaward_goes_on_by_itself_after_the_api_server_was_killed(cluster, quotaward, scheduler):
    cluster.nodes(2)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 10})
    with PodWatch(cluster.api, namespace) as watch:
        cluster.api.create_all(pods(15, namespace))
        wait_for(watch, bound=10, refused=5)
        process = quotaward.process.pid
        cluster.control_plane.crash_api_server()
        assert quotaward.is_alive()
        cluster.control_plane.start_api_server()
        wait_until(quotaward.is_ready, "Quotaward is ready again")

        cluster.change_quota(namespace, max={"cpu": 12})  # seen by a watch of quotas
        wait_for(watch, bound=12, refused=3)
        for gone in [pod for pod in watch.pods if is_bound(pod)][:2]:  # seen by a watch of pods
            cluster.api.delete("pods", gone["metadata"]["name"], namespace)
        cluster.api.create_all(pods(5, namespace, prefix="later"))
        wait_for(watch, bound=12, refused=6)
        assert watch.most_bound() == 12
        assert quotaward.process.pid == process
        assert quotaward.is_alive()


def test_quotas_count_from_when_their_definition_is_installed_also_if_it_is_deleted(control_plane, tmp_path):
    with ControlPlane(tmp_path) as fresh, Quotaward(fresh) as quotaward, Scheduler(fresh, extender(quotaward.url)):
        cluster = Cluster(fresh)
        cluster.node()
        namespace = cluster.namespace()
        with PodWatch(fresh.api, namespace) as watch:
            cluster.api.create_all(pods(3, namespace))
            wait_for(watch, bound=3)
            install_definitions(fresh.api)
            cluster.quota(namespace, max={"cpu": 3})
            wait_until(lambda: quotaward.get(f"/api/v1/elasticquotas/{namespace}")["items"], "the quota is known")
            cluster.api.create(pod("one-too-many", namespace))
            wait_for(watch, bound=3, refused=1)
            cluster.api.delete("customresourcedefinitions", "elasticquotas.scheduling.x-k8s.io")
            wait_until(lambda: quotaward.get("/readyz?verbose")["warnings"], "it is known to be gone")
            cluster.api.create(pod("another", namespace))
            wait_for(watch, bound=3, refused=2)
