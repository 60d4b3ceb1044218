"""Devices of Dynamic Resource Allocation count whatever way pods take them. No driver is needed to hand them out."""

import json
import time

import pytest

from tests.controlplane import schedulers
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.devices import (
    ADMIN_ACCESS,
    CLASS,
    DRIVER,
    IMPLICIT,
    PLAIN,
    TWO_OR_ONE,
    asking,
    claiming,
    claims,
    device_class,
    devices,
    made,
    of_template,
    requesting,
)
from tests.controlplane.objects import GPU, job, pods
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.test_queued_jobs import queued, suspended  # noqa: F401 - a fixture
from tests.e2e.test_queued_jobs_policy import controllers, installed  # noqa: F401 - fixtures
from tests.e2e.waiting import bound, ensure_for, evicted, evicts, wait_for

CAPABILITY = f"Queue capability exceeded: {GPU}"
MAX = f"ElasticQuota max exceeded: {GPU}"


@pytest.fixture
def with_devices(cluster):
    """A node with four devices that it does not list, served by two device classes, and controllers of claims."""
    if version := schedulers.chosen():
        pytest.skip(f"kube-scheduler {version} knows other versions of devices, or none")
    node = cluster.node(cpu=16)
    given = [device_class(CLASS, extendedResourceName=GPU), device_class(PLAIN), devices(4, node)]
    for each in given:
        cluster.api.create(each)
    with ControllerManager(cluster.control_plane, "resourceclaim-controller"):
        yield
        cluster.wipe()


def used(quotaward, namespace):
    items = quotaward.get("/api/v1/elasticquotas")["items"]
    found = next((item for item in items if item["namespace"] == namespace), {})
    return found.get("used", {}).get(GPU, "0")


def test_unlisted_devices_go_to_pods_of_queues_within_a_capability_that_names_them(
    cluster, with_devices, scheduler, watch
):
    free, bounded = cluster.queue("free"), cluster.queue("bounded", capability={GPU: 1})
    first, second = cluster.namespace("a", free), cluster.namespace("b", bounded)
    cluster.api.create_all(pods(2, first, gpus=1))
    wait_for(watch(first), bound=2)
    cluster.api.create_all(pods(2, second, gpus=1))
    wait_for(watch(second), bound=1, refused=1, why=CAPABILITY)


@pytest.mark.parametrize("named", [GPU, f"{IMPLICIT}{CLASS}", f"deviceclass/{CLASS}", f"requests.{GPU}"])
def test_a_quota_of_any_name_bounds_requests_of_each_name_and_claims(
    cluster, with_devices, quotaward, scheduler, watch, named
):
    namespace = cluster.namespace("a")
    cluster.quota(namespace, max={named: 3})
    cluster.api.create(of_template("one", namespace, asking()))
    watching = watch(namespace)
    cluster.api.create(requesting("extended", namespace, GPU))
    cluster.api.create(requesting("implicit", namespace, f"{IMPLICIT}{CLASS}"))
    cluster.api.create(claiming("claim", namespace, resourceClaimTemplateName="one"))
    wait_for(watching, bound=3)
    assert used(quotaward, namespace) == "3"
    cluster.api.create(requesting("extended-2", namespace, GPU))
    cluster.api.create(requesting("implicit-2", namespace, f"{IMPLICIT}{CLASS}"))
    cluster.api.create(claiming("claim-2", namespace, resourceClaimTemplateName="one"))
    wait_for(watching, bound=3, refused=3, why=MAX)
    cluster.api.delete("pods", "claim", namespace)
    wait_for(watching, bound=3, refused=2, why=MAX)


@pytest.mark.parametrize("spec", [asking(count=2), TWO_OR_ONE], ids=["ExactCount", "firstAvailable"])
def test_a_claim_counts_before_it_has_devices(cluster, with_devices, quotaward, scheduler, watch, spec):
    namespace = cluster.namespace("a")
    cluster.quota(namespace, max={GPU: 1})
    cluster.api.create(of_template("t", namespace, spec))
    watching = watch(namespace)
    cluster.api.create(claiming("p", namespace, resourceClaimTemplateName="t"))
    wait_for(watching, bound=0, refused=1, why=MAX)
    cluster.change_quota(namespace, max={GPU: 2})
    wait_for(watching, bound=1)
    assert used(quotaward, namespace) == "2"


def test_a_shared_claim_counts_once_until_its_last_pod_has_gone(cluster, with_devices, quotaward, scheduler, watch):
    namespace = cluster.namespace("a")
    cluster.quota(namespace, max={GPU: 2})
    cluster.api.create(made("ResourceClaim", "shared", namespace, spec=asking(count=2)))
    watching = watch(namespace)
    cluster.api.create_all(claiming(name, namespace, resourceClaimName="shared") for name in ("p", "q", "r"))
    wait_for(watching, bound=3)
    assert used(quotaward, namespace) == "2"
    cluster.api.create(requesting("more", namespace, GPU))
    wait_for(watching, bound=3, refused=1, why=MAX)
    for name in ("p", "q"):
        cluster.api.delete("pods", name, namespace)
    ensure_for(2, lambda: bound(watching) <= {"p", "q", "r"}, "the last one still holds the claim")
    cluster.api.delete("pods", "r", namespace)
    wait_until(lambda: "more" in bound(watching), "the claim is free")


def test_a_claim_for_all_devices_counts_as_all_that_a_node_has(cluster, with_devices, quotaward, scheduler, watch):
    namespace = cluster.namespace("a")
    cluster.quota(namespace, max={GPU: 3})
    cluster.api.create(of_template("all", namespace, asking(allocationMode="All")))
    watching = watch(namespace)
    cluster.api.create(claiming("p", namespace, resourceClaimTemplateName="all"))
    wait_for(watching, bound=0, refused=1, why=MAX)
    cluster.change_quota(namespace, max={GPU: 4})
    wait_for(watching, bound=1)
    wait_until(lambda: used(quotaward, namespace) == "4", "all four count")


def test_access_for_administrators_counts_for_nothing(cluster, with_devices, quotaward, scheduler, watch):
    namespace = cluster.namespace("a")
    cluster.api.patch("namespaces", namespace, {"metadata": {"labels": {ADMIN_ACCESS: "true"}}})
    cluster.quota(namespace, max={GPU: 1})
    cluster.api.create(of_template("admin", namespace, asking(adminAccess=True, allocationMode="All")))
    watching = watch(namespace)
    cluster.api.create(claiming("admin", namespace, resourceClaimTemplateName="admin"))
    cluster.api.create(requesting("p", namespace, GPU))
    wait_for(watching, bound=2)
    assert used(quotaward, namespace) == "1"


@pytest.mark.parametrize("by", ["extended", "implicit", "template"])
def test_an_owner_takes_back_a_device_that_no_node_lists(cluster, with_devices, scheduler, watch, by):
    """kube-scheduler never preempts for such a device, and asks nobody once all are used up."""
    a, b = cluster.namespace("a"), cluster.namespace("b")
    cluster.quota(a, min={GPU: 1}, max={GPU: 4})
    cluster.quota(b, min={GPU: 3}, max={GPU: 4})
    borrowing, owning = watch(a), watch(b)
    for namespace in (a, b):
        cluster.api.create(of_template("one", namespace, asking()))

    def one(name, namespace):
        if by == "template":
            return claiming(name, namespace, resourceClaimTemplateName="one")
        return requesting(name, namespace, GPU if by == "extended" else f"{IMPLICIT}{CLASS}")

    cluster.api.create_all(one(f"p{number}", a) for number in range(4))
    wait_for(borrowing, bound=4)
    cluster.api.create(one("owner", b))
    wait_for(owning, bound=1)
    ensure_for(2, lambda: len(evicted(borrowing)) == 1 and not evicted(owning), "exactly one went")


def test_a_min_is_taken_back_within_three_seconds_where_no_node_lists_the_device(
    cluster, with_devices, scheduler, watch
):
    """From when the owner's pod is made until it is bound; the pods that go take no time to end."""
    a, b = cluster.namespace("a"), cluster.namespace("b")
    cluster.quota(a, min={GPU: 0}, max={GPU: 4})
    cluster.quota(b, min={GPU: 4}, max={GPU: 4})
    borrowing, owning = watch(a), watch(b)
    cluster.api.create_all(requesting(f"p{number}", a) for number in range(4))
    wait_for(borrowing, bound=4)
    times = []
    for number in range(3):
        began = time.monotonic()
        cluster.api.create(requesting(f"owner-{number}", b))
        wait_until(lambda number=number: len(bound(owning)) == number + 1, "the owner has its device", every=0.05)
        times.append(time.monotonic() - began)
    print("taken back after", *(f"{each:.2f} s" for each in times))
    assert sorted(times)[1] <= 3, times


@pytest.mark.parametrize("said", [True, False], ids=["said by the settings", "not said"])
def test_what_the_settings_say_of_a_class_is_enough_to_take_its_devices_back(cluster, with_devices, watch, said):
    selector = {"cel": {"expression": f"device.driver.startsWith('{DRIVER}')"}}
    cluster.api.create(made("DeviceClass", "odd", spec={"selectors": [selector]}))
    told = json.dumps([{"name": "odd", "selector": f"device.driver == '{DRIVER}'"}])
    a, b = cluster.namespace("a"), cluster.namespace("b")
    cluster.quota(a, min={"deviceclass/odd": 1}, max={"deviceclass/odd": 4})
    cluster.quota(b, min={"deviceclass/odd": 3}, max={"deviceclass/odd": 4})
    borrowing, owning = watch(a), watch(b)
    for namespace in (a, b):
        cluster.api.create(of_template("one", namespace, asking("odd")))
    flags = ("--devices.classes", told) if said else ()
    with Quotaward(cluster.control_plane, *flags) as ours, Scheduler(cluster.control_plane, extender(ours.url)):
        cluster.api.create_all(claiming(f"p{number}", a, resourceClaimTemplateName="one") for number in range(4))
        wait_for(borrowing, bound=4)
        cluster.api.create(claiming("owner", b, resourceClaimTemplateName="one"))
        if said:
            wait_for(owning, bound=1)
            evicts(1, borrowing)
        else:
            ensure_for(5, lambda: not evicted(borrowing), "nobody knows where they would help")


def test_a_queue_bounds_requests_and_claims_and_takes_back_what_another_borrows(
    cluster, with_devices, quotaward, scheduler, watch
):
    first = cluster.queue("first")
    second = cluster.queue("second", capability={f"requests.{GPU}": 3})
    a, b = cluster.namespace("a", first), cluster.namespace("b", second)
    of_a, of_b = watch(a), watch(b)
    for namespace in (a, b):
        cluster.api.create(of_template("one", namespace, asking()))
    cluster.api.create(requesting("extended", b, GPU))
    cluster.api.create(requesting("implicit", b, f"{IMPLICIT}{CLASS}"))
    cluster.api.create_all(claiming(f"claim-{n}", b, resourceClaimTemplateName="one") for n in range(3))
    wait_for(of_b, bound=3, refused=2, why=CAPABILITY)
    cluster.change_queue("first", guarantee={"resource": {f"deviceclass/{CLASS}": 2}})
    cluster.api.create_all(claiming(f"owner-{n}", a, resourceClaimTemplateName="one") for n in range(2))
    wait_for(of_a, bound=2)
    ensure_for(2, lambda: len(bound(of_b)) == 2, "the rest is its own")


def test_devices_of_a_plugin_and_of_slices_are_one_quota_and_are_both_taken_back(
    cluster, with_devices, scheduler, watch
):
    cluster.node("with-plugin", cpu=16, gpus=1)
    a, b = cluster.namespace("a"), cluster.namespace("b")
    cluster.quota(a, min={GPU: 0}, max={GPU: 5})
    cluster.quota(b, min={GPU: 5}, max={GPU: 5})
    borrowing, owning = watch(a), watch(b)
    cluster.api.create_all(pods(5, a, gpus=1))
    wait_for(borrowing, bound=5)
    cluster.api.create_all(pods(5, b, gpus=1))
    wait_for(owning, bound=5, timeout=120)


def test_nobody_is_evicted_for_devices_that_others_share(cluster, with_devices, scheduler, watch):
    a, b = cluster.namespace("a"), cluster.namespace("b")
    cluster.quota(a, min={GPU: 0, "cpu": 8}, max={GPU: 4})
    cluster.quota(b, min={GPU: 4, "cpu": 8}, max={GPU: 4})
    cluster.api.create(made("ResourceClaim", "shared", a, spec=asking(count=4)))
    borrowing, owning = watch(a), watch(b)
    cluster.api.create_all(claiming(name, a, resourceClaimName="shared") for name in ("exempt", "other"))
    wait_for(borrowing, bound=2)
    cluster.api.patch("pods", "exempt", {"metadata": {"annotations": {"quotaward.dev/preemptible": "false"}}}, a)
    cluster.api.create(requesting("owner", b, GPU))
    ensure_for(6, lambda: not evicted(borrowing) and not bound(owning), "one alone would free nothing")


def test_a_job_that_waits_as_a_whole_demands_the_devices_of_its_claims(cluster, with_devices, queued, watch):  # noqa: F811
    cluster.quota(queued, max={GPU: 2})
    cluster.api.create(of_template("one", queued, asking()))
    train = job("train", queued, 3)
    claims(train["spec"]["template"]["spec"], resourceClaimTemplateName="one")
    cluster.api.create(train)
    ensure_for(3, lambda: suspended(cluster, queued, "train"), "two devices are not enough for three pods")
    cluster.change_quota(queued, max={GPU: 3})
    wait_for(watch(queued), bound=3)
