"""Native pod groups, which are beta and off by default: the scheduler places their members, and evicts for them."""

import pytest

from tests.conftest import own_control_plane
from tests.controlplane import schedulers
from tests.controlplane.objects import Object, pod, pods
from tests.controlplane.pod_groups import NATIVE, NATIVE_GATE, NATIVE_SERVED
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import install_definitions
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import OVER_MAX, bound, ensure_for, evicted, evicts, is_refused, wait_for


@pytest.fixture(scope="module")
def control_plane(request, tmp_path_factory, standing):
    """A control plane of its own, with the feature on, and with a Quotaward of its own."""
    if version := schedulers.chosen():
        pytest.skip(f"kube-scheduler {version} knows other versions of these groups, or none")
    standing.keep(())
    with own_control_plane(request, tmp_path_factory, NATIVE_GATE, NATIVE_SERVED) as running:
        yield running
        standing.keep(())


@pytest.fixture(scope="module")
def definitions(control_plane):
    install_definitions(control_plane.api)


@pytest.fixture
def scheduler(cluster, quotaward):
    with Scheduler(cluster.control_plane, extender(quotaward.url), flags=[NATIVE_GATE]) as running:
        yield running


def native_group(name: str, namespace: str, minimum: int, **spec: str) -> Object:
    return {
        "apiVersion": NATIVE,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}} | spec,
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


@pytest.fixture
def high(cluster):
    return cluster.priority("high", 1000)


def two_together(namespace: str, high: str, cpu: int = 3) -> list[Object]:
    """A group of two members."""
    both = pods(2, namespace, prefix="g", cpu=cpu, priorityClassName=high, schedulingGroup={"podGroupName": "two"})
    return [native_group("two", namespace, 2, priorityClassName=high), *both]


def standing(cluster, watch, on: dict[str, str], cpu: int = 4):
    """Pods by the namespace that each is in, one on each of the nodes, and their watches."""
    for name, namespace in on.items():
        cluster.api.create(pod(f"o-{name}", namespace, cpu=cpu, nodeName=name))
    watching = {namespace: watch(namespace) for namespace in sorted(set(on.values()))}
    for namespace, each in watching.items():
        wait_for(each, bound=list(on.values()).count(namespace))
    return watching


@pytest.mark.parametrize(
    ("protected", "free"),
    [(("n1",), ()), (("n1", "n2", "n3"), ()), (("n1", "n2"), ("n3",))],
    ids=["one of three", "all", "all but a free one"],
)
def test_a_group_evicts_borrowers_of_other_quotas_and_nobody_within_min(
    cluster, quotaward, scheduler, watch, high, protected, free
):
    for name in ("n1", "n2", "n3"):
        cluster.node(name, cpu=4)
    mine, own, lent = (cluster.namespace(name) for name in ("mine", "own", "lent"))
    cluster.quota(mine, min={"cpu": 6}, max={"cpu": 12})
    cluster.quota(own, min={"cpu": 12}, max={"cpu": 12})
    cluster.quota(lent, min={"cpu": 0}, max={"cpu": 12})
    full = [name for name in ("n1", "n2", "n3") if name not in free]
    watching = standing(cluster, watch, {name: own if name in protected else lent for name in full})
    of_group = watch(mine)
    cluster.api.create_all(two_together(mine, high))
    if len(protected) == 1:
        wait_for(of_group, bound=2)
        evicts(2, watching[lent])
    ensure_for(4, lambda: not evicted(watching[own]), "who is within min stays")
    assert len(bound(of_group)) == (2 if len(protected) == 1 else 0)


def test_a_group_takes_what_is_free_beside_a_protected_pod_and_no_more(cluster, quotaward, scheduler, watch, high):
    cluster.node("n1", cpu=4)
    mine, own = cluster.namespace("mine"), cluster.namespace("own")
    cluster.quota(mine, min={"cpu": 6}, max={"cpu": 12})
    cluster.quota(own, min={"cpu": 12}, max={"cpu": 12})
    watching = standing(cluster, watch, {"n1": own}, cpu=1)
    of_group = watch(mine)
    cluster.api.create_all(two_together(mine, high, cpu=2))
    ensure_for(5, lambda: not evicted(watching[own]) and not bound(of_group), "one place is free, not two")
    cluster.node("n2", cpu=2)
    wait_for(of_group, bound=2)
    assert not evicted(watching[own])
