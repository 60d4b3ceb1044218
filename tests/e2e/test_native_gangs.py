"""Native pod groups, which are beta and off by default: the scheduler places their members, and we only account."""

import pytest

from tests.conftest import own_control_plane
from tests.controlplane import schedulers
from tests.controlplane.objects import Object, pods
from tests.controlplane.pod_groups import NATIVE, NATIVE_GATE, NATIVE_SERVED
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import install_definitions
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import OVER_MAX, ensure_for, is_refused


@pytest.fixture(scope="module")
def control_plane(request, tmp_path_factory):
    """A control plane of its own, with the feature on."""
    if version := schedulers.chosen():
        pytest.skip(f"kube-scheduler {version} knows other versions of these groups, or none")
    with own_control_plane(request, tmp_path_factory, NATIVE_GATE, NATIVE_SERVED) as running:
        yield running


@pytest.fixture(scope="module")
def definitions(control_plane):
    install_definitions(control_plane.api)


@pytest.fixture
def scheduler(cluster, quotaward):
    with Scheduler(cluster.control_plane, extender(quotaward.url), flags=[NATIVE_GATE]) as running:
        yield running


def native_group(name: str, namespace: str, minimum: int) -> Object:
    return {
        "apiVersion": NATIVE,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}},
    }


@pytest.mark.parametrize(("most", "bound"), [(10, 10), (9, 0)])
def test_of_a_group_of_ten_all_are_bound_or_none_and_the_ledger_is_right_afterwards(
    cluster, quotaward, scheduler, watch, most, bound
):
    cluster.node(cpu=16)
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": most})
    watching = watch(namespace)
    cluster.api.create(native_group("ten", namespace, 10))
    cluster.api.create_all(pods(10, namespace, schedulingGroup={"podGroupName": "ten"}))
    if bound:
        wait_until(lambda: watching.bound == bound, "all are bound")
    else:
        wait_until(lambda: any(is_refused(pod, OVER_MAX) for pod in watching.pods), "the quota refuses one of them")
        ensure_for(3, lambda: watching.bound == 0, "none is bound")

    def used() -> str:
        return quotaward.get(f"/api/v1/elasticquotas/{namespace}")["items"][0]["used"].get("cpu", "0")

    wait_until(lambda: used() == str(bound), "what was granted in vain has gone back", timeout=45, detail=used)
