"""Quotas and pod groups of the API group that scheduler-plugins had before, on the real API server."""

import pytest

from app.store.elastic_quotas import LEGACY_ELASTIC_QUOTAS
from app.store.kinds import SUCCESSORS
from app.store.pod_groups import LEGACY_POD_GROUPS
from tests.controlplane.objects import labelled, pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward, install_definitions

GROUP = "scheduling.sigs.k8s.io"
KINDS = {"ElasticQuota": LEGACY_ELASTIC_QUOTAS, "PodGroup": LEGACY_POD_GROUPS}


def definition(kind):
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.lower()}s.{GROUP}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": [version | {"subresources": {"status": {}}}],
        },
    }


@pytest.fixture
def old_definitions(cluster):
    """The definitions of the older group are installed, until the test ends."""
    for kind, of in KINDS.items():
        cluster.api.apply(definition(kind))
        wait_until(lambda of=of: cluster.api.is_ready_for(of.path), f"the API server serves {of.label}")
    yield
    for of in KINDS.values():
        cluster.api.delete("customresourcedefinitions", of.label)
        wait_until(lambda of=of: not cluster.api.serves(of.path), f"{of.label} are served no more")


@pytest.fixture
def without_newer_definitions(cluster):
    """Today's definitions are not installed, whoever installed them before, until the test ends."""
    for kind in SUCCESSORS.values():
        if cluster.api.serves(kind.path):
            cluster.api.delete("customresourcedefinitions", f"{kind.plural}.{kind.group}")
        wait_until(lambda kind=kind: not cluster.api.serves(kind.path), f"{kind.label} are served no more")
    yield
    install_definitions(cluster.api)


def old(kind, namespace, name, spec):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def asked(quotaward, item):
    answer = quotaward.post("/extender/filter", {"Pod": item, "NodeNames": ["n"]})
    return answer["NodeNames"] or list(answer["FailedAndUnresolvableNodes"].values())


def obeyed(cluster, quotaward, namespace):
    """A quota and a group of the older group hold, and the status of the quota says what it uses."""
    [item] = quotaward.get(f"/api/v1/elasticquotas/{namespace}")["items"]
    assert (item["name"], item["max"]) == ("quota", {"cpu": "1"})
    [large, alone] = [
        cluster.api.create(pod("large", namespace, cpu=2)),
        cluster.api.create(labelled(pod("alone", namespace, cpu=1), **{"pod-group.scheduling.sigs.k8s.io": "g"})),
    ]
    wait_until(
        lambda: asked(quotaward, large) == ["ElasticQuota max exceeded: cpu"], "the quota refuses what is beyond it"
    )
    wait_until(lambda: asked(quotaward, alone) == ["Gang minimum cannot be placed yet"], "the group refuses one alone")
    url = LEGACY_ELASTIC_QUOTAS.path_of(namespace, "quota")
    wait_until(lambda: "used" in cluster.api.request("GET", url).get("status", {}), "its status is written")


@pytest.mark.usefixtures("old_definitions", "without_newer_definitions")
def test_the_older_group_is_obeyed_where_it_alone_is_installed(cluster):
    namespace = cluster.namespace("store")
    cluster.api.apply(old("ElasticQuota", namespace, "quota", {"max": {"cpu": 1}}))
    cluster.api.apply(old("PodGroup", namespace, "g", {"minMember": 2}))
    with Quotaward(cluster.control_plane) as quotaward:
        obeyed(cluster, quotaward, namespace)


@pytest.mark.usefixtures("old_definitions")
def test_the_older_group_is_obeyed_if_that_is_set_and_else_only_named(cluster):
    namespace = cluster.namespace("store")
    cluster.api.apply(old("ElasticQuota", namespace, "quota", {"max": {"cpu": 1}}))
    cluster.api.apply(old("PodGroup", namespace, "g", {"minMember": 2}))
    with Quotaward(cluster.control_plane) as quotaward:
        wait_until(lambda: "groups.legacy: on" in quotaward._http.get("/").text, "the page names what is not read")
        assert quotaward.get(f"/api/v1/elasticquotas/{namespace}")["items"] == []
    with Quotaward(cluster.control_plane, "--groups.legacy", "on") as quotaward:
        obeyed(cluster, quotaward, namespace)
