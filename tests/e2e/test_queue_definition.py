"""The definition of queues as the real API server applies it: Volcano's manifests are accepted unchanged."""

import httpx
import pytest
import yaml

from tests.controlplane.api import path
from tests.controlplane.objects import queue

AS_FOR_VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: research
spec:
  weight: 2
  reclaimable: false
  priority: 100
  parent: root
  type: Normal
  dequeueStrategy: traverse
  capability: {cpu: 20, memory: 40Gi, nvidia.com/gpu: "2"}
  deserved: {cpu: "10"}
  guarantee:
    resource: {cpu: "2.4", memory: 4G}
  affinity:
    nodeGroupAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [groupname1]
    nodeGroupAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: [groupname2]
  extendClusters:
    - {name: elsewhere, weight: 1, capacity: {cpu: 1}}
"""


def test_a_queue_of_volcano_is_accepted_unchanged(cluster):
    sample = yaml.safe_load(AS_FOR_VOLCANO)
    assert cluster.api.apply(sample, dryRun="All", fieldValidation="Strict")["spec"] == sample["spec"]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"weight": 0},  # what counts is said in a condition
        {"weight": -1},
        {"weight": 2**31 - 1},
        {"capability": {"cpu": 1}, "guarantee": {"resource": {"cpu": 2}}},
        {"capability": {"cpu": -1}},
        {"guarantee": {}},
        {"priority": -5},
    ],
    ids=str,
)
def test_what_volcanos_definition_admits_is_admitted(cluster, spec):
    assert cluster.api.apply(queue("q", **spec), dryRun="All", fieldValidation="Strict")["spec"] == spec


def test_no_spec_at_all_is_admitted(cluster):
    item = queue("q")
    del item["spec"]
    assert cluster.api.apply(item, dryRun="All", fieldValidation="Strict")["metadata"]["name"] == "q"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"weight": "2"}, "must be of type integer"),
        ({"weight": 2**31}, "must be of type integer with format int32"),
        ({"reclaimable": "yes"}, "must be of type boolean"),
        ({"capability": {"cpu": "lots"}}, "should match"),
        ({"guarantee": {"resource": {"memory": "4GB"}}}, "should match"),
    ],
    ids=str,
)
def test_what_volcanos_definition_refuses_is_refused(cluster, spec, why):
    with pytest.raises(httpx.HTTPStatusError, match=why):
        cluster.api.create(queue("q", **spec))


def test_only_the_status_subresource_changes_the_status_and_keeps_what_others_write(cluster):
    status = {"state": "Open", "allocated": {"cpu": "1"}, "running": 3, "reservation": {"nodes": ["n1"]}}
    assert "status" not in cluster.api.create(queue("q") | {"status": status})
    cluster.api.patch("queues", "q/status", {"status": status})
    assert cluster.api.get("queues", "q")["status"] == status


def test_a_listing_answers_what_a_queue_has_and_deserves(cluster):
    cluster.queue("q", weight=3, capability={"cpu": 4}, guarantee={"resource": {"cpu": 1}}, parent="all")
    problem = {"type": "NotEnforced", "status": "True", "reason": "FieldNotUsed", "message": "spec.parent"}
    problem["lastTransitionTime"] = "2025-01-01T00:00:00Z"
    status = {"state": "Open", "allocated": {"cpu": "1"}, "deserved": {"cpu": "2"}, "conditions": [problem]}
    cluster.api.patch("queues", "q/status", {"status": status})
    as_table = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    table = cluster.api.request("GET", path("queues"), headers=as_table)
    columns = [column["name"] for column in table["columnDefinitions"]]
    row = dict(zip(columns, table["rows"][0]["cells"], strict=True))
    del row["Age"]
    assert row == {
        "Name": "q",
        "Weight": 3,
        "State": "Open",
        "Allocated": '{"cpu":"1"}',
        "Deserved": '{"cpu":"2"}',
        "Guarantee": '{"cpu":1}',
        "Capability": '{"cpu":4}',
        "Parent": "all",
        "Problem": "NotEnforced",
    }
