"""Jobs that wait as a whole, on a stock scheduler and kube-controller-manager: no pods until there is room."""

import pytest

from tests.controlplane.objects import job, pod
from tests.controlplane.processes import wait_until
from tests.e2e.test_jobs import controllers  # noqa: F401 - a fixture
from tests.e2e.waiting import bound, ensure_for, wait_for

LABEL = "quotaward.dev/jobs"
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "quotaward-jobs"},
    "rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["patch"]}],
}


@pytest.fixture
def queued(cluster, quotaward, scheduler, controllers):  # noqa: F811
    """A namespace whose Jobs wait as a whole."""
    binding = {
        "apiVersion": ROLE["apiVersion"],
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "quotaward-jobs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "quotaward-jobs"},
        "subjects": [{"kind": "ServiceAccount", "name": "quotaward", "namespace": "quotaward-system"}],
    }
    for item in (ROLE, binding):
        cluster.api.apply(item)
    namespace = cluster.namespace("queued")
    cluster.api.patch("namespaces", namespace, {"metadata": {"labels": {LABEL: "queued"}}})
    yield namespace
    cluster.api.patch("namespaces", namespace, {"metadata": {"labels": {LABEL: None}}})


def suspended(cluster, namespace, *names):
    return [name for name in names if cluster.api.get("jobs", name, namespace)["spec"]["suspend"]]


def test_jobs_start_one_after_the_other_as_there_is_room_for_all_pods_of_each(cluster, queued, watch):
    cluster.quota(queued, min={"cpu": 4}, max={"cpu": 4})
    watching = watch(queued)
    for name in ("first", "second"):
        cluster.api.create(job(name, queued, 3, suspend=True))
    cluster.node(cpu=8)
    wait_for(watching, bound=3)
    ensure_for(2, lambda: len(watching.pods) == 3, "the other has no pods")
    assert suspended(cluster, queued, "first", "second") == ["second"]
    cluster.api.delete("jobs", "first", queued)
    for name in bound(watching):
        cluster.api.delete("pods", name, queued, grace=0)
    wait_until(lambda: not suspended(cluster, queued, "second"), "the second starts")
    wait_until(lambda: {name.split("-")[0] for name in bound(watching)} == {"second"}, "its pods run")
    wait_for(watching, bound=3)


def test_room_of_a_started_job_is_kept_for_its_pods(cluster, queued, watch):
    cluster.node(cpu=4)
    other = cluster.namespace("other")
    cluster.quota(queued, min={"cpu": 4}, max={"cpu": 4})
    cluster.quota(other, min={"cpu": 0}, max={"cpu": 4})
    mine = watch(queued)
    cluster.api.create(job("train", queued, 4, suspend=True))
    wait_until(lambda: not suspended(cluster, queued, "train"), "it starts")
    cluster.api.create(pod("late", other))
    wait_for(mine, bound=4)
