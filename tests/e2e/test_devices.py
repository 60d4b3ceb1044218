"""Devices of dynamic resource allocation that pods ask for by an extended resource, which no node lists then."""

import pytest

from tests.controlplane import schedulers
from tests.controlplane.objects import GPU, pods
from tests.e2e.waiting import wait_for

DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"
CAPABILITY = f"Queue capability exceeded: {GPU}"


def device_class():
    by_driver = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    spec = {"selectors": [by_driver], "extendedResourceName": GPU}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": spec}


def devices(number, node):
    """So many devices of a node, as a driver would report them."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool}
    spec["devices"] = [{"name": f"gpu-{each}"} for each in range(number)]
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": spec}


@pytest.fixture
def with_devices(cluster):
    """A node with four devices that it does not list, served by a device class."""
    if version := schedulers.chosen():
        pytest.skip(f"kube-scheduler {version} knows other versions of devices, or none")
    made = cluster.api.create(device_class())
    node = cluster.node(cpu=16)
    slices = cluster.api.create(devices(4, node))
    yield
    for each in (slices, made):
        plural = {"ResourceSlice": "resourceslices", "DeviceClass": "deviceclasses"}[each["kind"]]
        cluster.api.request("DELETE", f"/apis/{API}/{plural}/{each['metadata']['name']}")


def test_unlisted_devices_go_to_pods_of_queues_within_a_capability_that_names_them(
    cluster, with_devices, scheduler, watch
):
    free, bounded = cluster.queue("free"), cluster.queue("bounded", capability={GPU: 1})
    first, second = cluster.namespace("a", free), cluster.namespace("b", bounded)
    cluster.api.create_all(pods(2, first, gpus=1))
    wait_for(watch(first), bound=2)
    cluster.api.create_all(pods(2, second, gpus=1))
    wait_for(watch(second), bound=1, refused=1, why=CAPABILITY)
