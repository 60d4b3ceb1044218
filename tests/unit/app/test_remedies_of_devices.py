"""Nobody is advised to add nodes for a resource that no node lists: nobody knows which nodes would serve it."""

import pytest

from tests.unit.app.given import client_of, node, pod, quota, refused, store_with

GPU, KEY = "nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu"
FULL = "0/1 nodes are available: 1 Insufficient cpu."
MAX = f"0/1 nodes are available: 1 ElasticQuota max exceeded: {GPU}."
API = {"apiVersion": "resource.k8s.io/v1"}
POOL = {"name": "n1", "generation": 1, "resourceSliceCount": 1}


def slices(**device):
    spec = {"driver": "d", "nodeName": "n1", "pool": POOL, "devices": [{"name": "g"} | device]}
    of_class = {"extendedResourceName": GPU, "selectors": [{"cel": {"expression": "device.driver == 'd'"}}]}
    return [
        API | {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": of_class},
        API | {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec},
    ]


def advised(*objects, waits, **bounds):
    """Whether nodes are advised for a pod that waits, which asks for more CPU than there is."""
    store = store_with(node("n1", cpu=1), quota("b", max={"cpu": 99} | bounds), *objects, waits)
    told = client_of(store).get("/api/v1/pods/b/p").json()
    return any("add a node" in each["text"] for each in told["remedies"])


@pytest.mark.parametrize(("most", "why"), [(9, FULL), (0, MAX)], ids=["no room", "above max"])
@pytest.mark.parametrize(
    ("there", "advises"),
    [
        ([], False),
        (slices(), True),
        (slices(allowMultipleAllocations=True), False),
        ([*slices()[:1], node("n2", cpu=1, **{GPU: 1})], True),
    ],
    ids=["unlisted", "by slices", "by slices of which it is not known what is left", "by a plugin"],
)
@pytest.mark.parametrize("name", [GPU, KEY])
def test_nodes_are_only_advised_for_resources_that_some_node_has(there, advises, most, why, name):
    asked = {"cpu": 4, name: 1}
    assert advised(*there, waits=refused(pod("p", "b", asked), why), **{GPU: most}) is advises
