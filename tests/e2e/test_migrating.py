"""An operator who types docs/migrating.md on a real control plane, from the real scheduler of scheduler-plugins on."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.conftest import own_control_plane
from tests.controlplane.build import scheduler_with_plugins
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import elastic_quota, node, queue
from tests.controlplane.pod_groups import VOLCANO, install_pod_groups, members, pod_group
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import MANIFESTS
from tests.controlplane.scheduler import Scheduler
from tests.e2e.test_getting_started import BLOCK, ROOT, Newcomer, start_as_the_kubelet_would

PAGE = (ROOT / "docs/migrating.md").read_text()
PLUGINS, VOLCANOS = PAGE.split("\n## From Volcano\n")
OLD = "scheduler-plugins-scheduler"
CONTROLLERS = ("deployment-controller", "replicaset-controller", "garbage-collector-controller", "job-controller")


@pytest.fixture
def control_plane(request, tmp_path_factory) -> Iterator[ControlPlane]:
    """One that knows nothing of Quotaward yet, with the cluster's own scheduler."""
    with (
        own_control_plane(request, tmp_path_factory) as running,
        ControllerManager(running, *CONTROLLERS),
        Scheduler(running),
    ):
        running.api.create_all(node(name, cpu=8) for name in ("worker-1", "worker-2"))
        yield running


def typed(text: str, control_plane: ControlPlane, newcomer: Newcomer) -> None:
    """Types all commands of a text, and compares what they print with what it says."""
    blocks = BLOCK.findall(text)
    with ExitStack() as stack:
        for (kind, commands), (following, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
            if kind == "sh" and following == "text":
                newcomer.sees(commands, expected)
            elif kind == "sh":
                newcomer.types(commands)
            if kind == "sh" and "-n quotaward-system rollout status" in commands:
                start_as_the_kubelet_would(stack, control_plane, newcomer.port)


def namespace(name: str) -> dict:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@contextmanager
def with_plugins(control_plane: ControlPlane) -> Iterator[None]:
    """Runs the scheduler of scheduler-plugins, with capacity and gangs."""
    capacity, gangs, all_others = [{"name": "CapacityScheduling"}], [{"name": "Coscheduling"}], [{"name": "*"}]
    plugins = {
        "queueSort": {"enabled": gangs, "disabled": all_others},
        "preFilter": {"enabled": capacity + gangs},
        "postFilter": {"enabled": capacity, "disabled": all_others},
        "permit": {"enabled": gangs},
        "reserve": {"enabled": capacity + gangs},
    }
    stock = control_plane.binaries["kube-scheduler"]
    control_plane.binaries["kube-scheduler"] = scheduler_with_plugins()
    scheduler = Scheduler(control_plane, profile={"schedulerName": OLD, "plugins": plugins})
    control_plane.binaries["kube-scheduler"] = stock
    with scheduler:
        yield


@pytest.mark.timeout(900)
def test_from_scheduler_plugins(control_plane, install_tools, tmp_path):
    api = control_plane.api
    api.apply_files(MANIFESTS / "crds/elasticquotas.yaml")  # of another field manager, as theirs is
    install_pod_groups(api)
    wait_until(lambda: api.is_ready_for("/apis/scheduling.x-k8s.io/v1alpha1/elasticquotas"), "quotas are served")
    api.create_all(map(namespace, ("team-a", "team-b")))
    api.create_all([elastic_quota("team-a", min={"cpu": 4}, max={"cpu": 6}), elastic_quota("team-b", min={"cpu": 4})])
    with with_plugins(control_plane):
        api.create(pod_group("ring", "team-a", 2))
        api.create_all(members("ring", "team-a", 2, cpu=1, schedulerName=OLD))
        labels, requests = {"app": "train"}, {"requests": {"cpu": "1"}}
        spec = {"schedulerName": OLD, "containers": [{"name": "main", "image": "none", "resources": requests}]}
        template = {"metadata": {"labels": labels}, "spec": spec | {"terminationGracePeriodSeconds": 0}}
        deployment = {"selector": {"matchLabels": labels}, "replicas": 2, "template": template}
        metadata = {"name": "train", "namespace": "team-a"}
        api.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment})
        wait_until(lambda: sum(bool(pod["spec"].get("nodeName")) for pod in api.items("pods")) == 4, "four run")
        typed(PLUGINS, control_plane, Newcomer(control_plane, install_tools["kubectl"], tmp_path))
    names = {pod["spec"]["schedulerName"] for pod in api.items("pods") if pod["metadata"]["name"].startswith("train")}
    assert names == {"quotaward-scheduler"}


@pytest.mark.timeout(900)
def test_from_volcano(control_plane, install_tools, tmp_path):
    api = control_plane.api
    api.apply_files(MANIFESTS / "crds/queues.yaml")
    install_pod_groups(api, VOLCANO)
    wait_until(lambda: api.is_ready_for(f"/apis/{VOLCANO}/queues"), "queues are served")
    api.create(namespace("lab"))
    api.create_all([queue("default", weight=1), queue("research", weight=2)])
    api.create(queue("old", weight=1, deserved={"cpu": 2}))
    typed(VOLCANOS, control_plane, Newcomer(control_plane, install_tools["kubectl"], tmp_path))
