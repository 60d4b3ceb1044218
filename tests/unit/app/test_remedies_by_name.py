"""Remedies name a device class as the object does that they change: under another name they would not help."""

import json
import shlex

import pytest

from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.heeded import QUEUE
from app.store.queues import QUEUES
from app.whatif.changes import merged
from policy.stepwise import at_once
from tests.unit.app.given import client_of, node, pod, queue, quota, refused, store_with

GPU = "nvidia.com/gpu"
OTHERS = (
    f"requests.{GPU}",
    "deviceclass/gpu",
    "gpu.deviceclass.resource.k8s.io/devices",
    "deviceclass.resource.kubernetes.io/gpu",
)
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"extendedResourceName": GPU},
}
NODE = node("n1", cpu=9, pods=110, **{GPU: 4})
MAX = f"0/1 nodes are available: 1 ElasticQuota max exceeded: {GPU}."
DESERVED = f"0/1 nodes are available: 1 Queue deserved exceeded: {GPU}."
IN_Q = {"annotations": {QUEUE: "q"}}
CAPABILITY = f"0/1 nodes are available: 1 Queue capability exceeded: {GPU}."


def patch_of(store, sort):
    """The patch of the first remedy whose text begins so, which was tried with all other pods."""
    told = client_of(store).get("/api/v1/pods/b/p").json()
    [found] = [each for each in told["remedies"] if each["text"].startswith(sort)]
    assert found["tried"] == "with-all"
    [command] = found["commands"]
    return json.loads(shlex.split(command)[-1])


def is_admitted(store):
    at_once(store.cluster.divide_steps())
    return store.cluster.check(store.cluster.pod("b", "p")) is None


def apply(store, kind, document, patch):
    store.upsert(kind, kind.decoder.decode(json.dumps(merged(document, patch)).encode()))


@pytest.mark.parametrize("name", [*OTHERS, GPU])
def test_the_command_that_raises_max_names_the_class_as_the_quota_does(name):
    document = quota("b", max={name: 1})
    store = store_with(NODE, CLASS, document, refused(pod("p", "b", {GPU: 2}), MAX))
    patch = patch_of(store, "raise max")
    assert patch == {"spec": {"max": {name: "2"}}}
    apply(store, ELASTIC_QUOTAS, document, patch)
    assert is_admitted(store)


def test_all_names_that_a_quota_has_for_the_class_are_raised():
    document = quota("b", max={GPU: 1, OTHERS[0]: 1, OTHERS[1]: 1})
    store = store_with(NODE, CLASS, document, refused(pod("p", "b", {GPU: 2}), MAX))
    patch = patch_of(store, "raise max")
    assert patch == {"spec": {"max": {GPU: "2", OTHERS[0]: "2", OTHERS[1]: "2"}}}
    apply(store, ELASTIC_QUOTAS, document, patch)
    assert is_admitted(store)


@pytest.mark.parametrize(("least", "most"), [(OTHERS[0], OTHERS[1]), (OTHERS[2], GPU), (GPU, OTHERS[3])])
def test_min_and_max_may_have_different_names_for_the_class(least, most):
    document = quota("b", min={least: 1}, max={most: 1})
    borrowing = f"0/1 nodes are available: 1 ElasticQuota min exceeded, nothing to borrow: {GPU}."
    store = store_with(NODE, CLASS, document, refused(pod("p", "b", {GPU: 2}), borrowing))
    patch = patch_of(store, "raise max")
    apply(store, ELASTIC_QUOTAS, document, patch)
    assert is_admitted(store)
    assert {name for bounds in patch["spec"].values() for name in bounds} == {least, most}


@pytest.mark.parametrize("name", [*OTHERS, GPU])
def test_the_command_that_raises_capability_names_the_class_as_the_queue_does(name):
    document = queue("q", capability={name: 1})
    store = store_with(NODE, CLASS, document, refused(pod("p", "b", {GPU: 2}, IN_Q), CAPABILITY))
    patch = patch_of(store, "raise capability")
    assert patch == {"spec": {"capability": {name: "2"}}}
    apply(store, QUEUES, document, patch)
    assert is_admitted(store)


@pytest.mark.parametrize("name", [*OTHERS, GPU])
def test_the_command_that_guarantees_devices_names_the_class_as_the_queue_does(name):
    document = queue("q", guarantee={"resource": {name: 1}})
    others = [queue("o"), pod("o", "a", {GPU: 1}, {"annotations": {QUEUE: "o"}}, nodeName="n1")]
    others += [refused(pod("w", "a", {GPU: 1}, {"annotations": {QUEUE: "o"}}), DESERVED)]
    own = pod("q", "b", {GPU: 2}, IN_Q, nodeName="n1")
    waits = refused(pod("p", "b", {GPU: 1}, IN_Q), DESERVED)
    store = store_with(NODE, CLASS, document, *others, own, waits)
    patch = patch_of(store, "guarantee")
    assert patch == {"spec": {"guarantee": {"resource": {name: "3"}}}}
    apply(store, QUEUES, document, patch)
    assert is_admitted(store)
