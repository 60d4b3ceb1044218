"""Native groups over HTTP: filter is asked in the dry run before kube-scheduler evicts for them, and says who stays."""

import pytest

from tests.unit.app.given import client_of, node, pod, quota, store_with

NATIVE = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
PROTECTED = "node(s) whose pods may not be evicted for this pod group"


def member(name):
    return pod(name, requests={"cpu": 3}, priority=10, schedulingGroup={"podGroupName": "g"})


@pytest.fixture
def store():
    """Two full nodes: the pod on n1 is within its min, that on n2 borrows."""
    group = NATIVE | {
        "metadata": {"name": "g", "namespace": "a"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }
    return store_with(
        *(node("n1", cpu=4), node("n2", cpu=4), quota("a", min={"cpu": 6}), quota("own", min={"cpu": 4})),
        *(quota("lent", max={"cpu": 9}), group, member("g")),
        *(pod("o1", "own", {"cpu": 4}, nodeName="n1"), pod("o2", "lent", {"cpu": 4}, nodeName="n2")),
    )


def asked(client):
    return client.ask("filter", {"Pod": member("g"), "NodeNames": ["n1", "n2"]})


def test_filter_refuses_the_nodes_of_those_who_may_not_be_evicted(store):
    assert asked(client_of(store)) == {"NodeNames": ["n2"], "FailedAndUnresolvableNodes": {"n1": PROTECTED}}


def test_observe_mode_refuses_no_node(store):
    assert asked(client_of(store, observe=True)) == {"NodeNames": ["n1", "n2"]}
