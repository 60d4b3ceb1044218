"""The words of a case become the manifests that they mean."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
import yaml

from tests.cases.expectations import Answer, difference, mismatch, must_not_happen, rule_of
from tests.cases.folder import Folder
from tests.cases.manifests import UnknownWord, seconds, translate
from tests.cases.quantity import same, worth
from tests.cases.runner import created, extender_arguments, serve_flags, steps_of

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def only(kind, given, now=NOW):
    found = [manifest for manifest in translate(given, now) if manifest["kind"] == kind]
    assert len(found) == 1
    return found[0]


def test_a_node_is_ready_with_its_room_as_strings():
    words = {"cpu": 3, "memory": "3Gi", "nvidia.com/gpu": 0, "labels": {"zone": "z1"}, "unschedulable": True}
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    node = only("Node", {"nodes": {"n1": {**words, "taints": [taint]}}})
    assert node["apiVersion"] == "v1"
    assert node["status"]["allocatable"] == {"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "0", "pods": "110"}
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "n1", "zone": "z1"}
    assert node["spec"] == {"unschedulable": True, "taints": [taint]}
    assert [(each["type"], each["status"]) for each in node["status"]["conditions"]] == [("Ready", "True")]


def test_a_node_may_take_fewer_pods():
    assert only("Node", {"nodes": {"n1": {"pods": 5}}})["status"]["allocatable"] == {"pods": "5"}


def test_a_namespace_has_its_queue_and_its_weight():
    made = translate({"namespaces": {"a": {"queue": "q1", "weight": 3}}}, NOW)
    namespace, quota = made
    assert namespace["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "q1"}
    assert "namespace" not in namespace["metadata"]
    assert (quota["apiVersion"], quota["kind"], quota["metadata"]["namespace"]) == ("v1", "ResourceQuota", "a")
    assert quota["spec"] == {"hard": {"volcano.sh/namespace.weight": "3"}}


def test_a_namespace_that_is_only_mentioned_is_made():
    given = {"pods": [{"name": "p", "ns": "a"}], "elasticQuotas": {"b": {}}, "namespaces": {"c": {}}}
    made = [m["metadata"]["name"] for m in translate(given, NOW) if m["kind"] == "Namespace"]
    assert sorted(made) == ["a", "b", "c"]
    assert [m["kind"] for m in translate({"pods": [{"name": "p", "ns": "a"}]}, NOW, namespaces=["a"])] == ["Pod"]


def test_an_elastic_quota_names_only_the_bounds_that_are_given():
    quota = only("ElasticQuota", {"elasticQuotas": {"a": {"min": {"cpu": 1, "memory": "1Gi"}}}})
    assert quota["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert quota["metadata"]["namespace"] == "a"
    assert quota["spec"] == {"min": {"cpu": "1", "memory": "1Gi"}}


def test_a_queue_is_volcanos():
    words = {"weight": 2, "capability": {"cpu": 4}, "guarantee": {"cpu": 1}, "reclaimable": False}
    queue = only("Queue", {"queues": {"q1": words}})
    assert queue["apiVersion"] == "scheduling.volcano.sh/v1beta1"
    assert "namespace" not in queue["metadata"]
    assert queue["spec"] == {
        "weight": 2,
        "capability": {"cpu": "4"},
        "guarantee": {"resource": {"cpu": "1"}},
        "reclaimable": False,
    }
    assert only("Queue", {"queues": {"q1": {}}})["spec"] == {"weight": 1, "reclaimable": True}


def test_a_pod_group_has_a_minimum_and_an_age():
    group = only("PodGroup", {"podGroups": {"a/big": {"min": 3, "age": "3d"}}})
    assert group["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert (group["metadata"]["namespace"], group["metadata"]["name"]) == ("a", "big")
    assert group["metadata"]["creationTimestamp"] == "2026-02-26T12:00:00Z"
    assert group["spec"] == {"minMember": 3}


def test_a_budget_counts_the_pods_it_covers():
    given = {
        "pdbs": {"a/x": {"selector": {"app": "x"}, "disruptionsAllowed": 1}},
        "pods": [
            {"name": "p", "ns": "a", "node": "n1", "count": 3, "labels": {"app": "x"}},
            {"name": "p", "ns": "b", "node": "n1", "labels": {"app": "x"}},
            {"name": "q", "ns": "a", "node": "n1"},
        ],
    }
    budget = only("PodDisruptionBudget", given)
    assert budget["apiVersion"] == "policy/v1"
    assert budget["spec"] == {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}}
    assert budget["status"] == {
        "disruptionsAllowed": 1,
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "expectedPods": 3,
    }


def test_a_pending_pod_has_no_node_and_no_condition():
    pod = only("Pod", {"pods": [{"name": "p", "ns": "a", "cpu": 1, "memory": "1Gi", "priority": 7}]})
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1", "memory": "1Gi"}}
    assert "nodeName" not in pod["spec"]
    assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (7, "PreemptLowerPriority")
    assert pod["status"] == {"phase": "Pending", "qosClass": "Burstable"}


def test_a_pod_on_a_node_runs():
    pod = only("Pod", {"pods": [{"name": "p", "ns": "a", "node": "n1", "age": "5m"}]})
    assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("n1", "Running")
    assert pod["metadata"]["creationTimestamp"] == pod["status"]["startTime"] == "2026-03-01T11:55:00Z"
    assert pod["spec"]["containers"][0]["resources"] == {}
    assert pod["status"]["qosClass"] == "BestEffort"
    assert [(each["type"], each["status"]) for each in pod["status"]["conditions"]] == [("PodScheduled", "True")]


def test_count_makes_numbered_pods_with_uids_of_their_own():
    made = translate({"pods": [{"name": "p", "ns": "a", "count": 3, "uid": "u"}]}, NOW, namespaces=["a"])
    assert [(pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in made] == [
        ("p-1", "u-1"),
        ("p-2", "u-2"),
        ("p-3", "u-3"),
    ]
    made = translate({"pods": [{"name": "p", "ns": "a", "count": 2}]}, NOW, namespaces=["a"])
    assert len({pod["metadata"]["uid"] for pod in made}) == 2


def test_an_extended_resource_is_a_limit_too():
    pod = only("Pod", {"pods": [{"name": "p", "ns": "a", "cpu": 1, "nvidia.com/gpu": 2}]})
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "nvidia.com/gpu": "2"},
        "limits": {"nvidia.com/gpu": "2"},
    }


def test_the_other_words_for_pods():
    words = {"phase": "Pending", "nominated": "n2", "group": "g", "labels": {"app": "x"}, "preemptionPolicy": "Never"}
    more = {"terminating": True, "unschedulable": True, "annotations": {"k": "v"}, "uid": "u", "age": "1h"}
    pod = only("Pod", {"pods": [{"name": "p", "ns": "a", **words, **more}]})
    assert pod["metadata"]["labels"] == {"app": "x", "scheduling.x-k8s.io/pod-group": "g"}
    assert pod["metadata"]["annotations"] == {"k": "v"}
    assert pod["metadata"]["uid"] == "u"
    assert pod["metadata"]["deletionTimestamp"] == "2026-03-01T12:00:30Z"
    assert pod["spec"]["preemptionPolicy"] == "Never"
    assert pod["status"]["nominatedNodeName"] == "n2"
    condition = pod["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert condition["lastTransitionTime"] == "2026-03-01T11:00:00Z"


@pytest.mark.parametrize(
    "given",
    [
        {"pod": []},
        {"pods": [{"name": "p", "ns": "a", "cpus": 1}]},
        {"nodes": {"n1": {"taint": []}}},
        {"elasticQuotas": {"a": {"cpu": 1}}},
    ],
)
def test_a_word_that_the_format_does_not_have_is_an_error(given):
    with pytest.raises(UnknownWord):
        translate(given, NOW)


def test_durations():
    assert [seconds(text) for text in ("10s", "5m", "2h", "3d", "1h30m", 4, "0.5s")] == [
        *(10, 300, 7200, 259200, 5400, 4, 0.5),
    ]


def test_files_are_whole_manifests_and_go_with_their_objects(tmp_path):
    folder = Folder(tmp_path)
    folder.create({"pods": [{"name": "p", "ns": "a"}]})
    namespace, of_pod = sorted(tmp_path.rglob("*.yaml"))
    assert (namespace.name, of_pod.name) == ("namespace_a.yaml", "pod_a_p.yaml")
    assert yaml.safe_load(of_pod.read_text()) == folder.pod("a/p")
    folder.delete("Pod", "a/p")
    assert list(tmp_path.rglob("*.yaml")) == [namespace]
    folder.clear()
    assert not list(tmp_path.iterdir())


def test_an_edit_keeps_who_it_is_and_a_successor_is_somebody_else(tmp_path):
    folder = Folder(tmp_path)
    folder.put(translate({"pods": [{"name": "p", "ns": "a"}]}, NOW))
    first = folder.pod("a/p")["metadata"]
    folder.put(translate({"pods": [{"name": "p", "ns": "a", "node": "n1"}]}, NOW + timedelta(hours=1)))
    edited = folder.pod("a/p")["metadata"]
    assert (edited["uid"], edited["creationTimestamp"]) == (first["uid"], first["creationTimestamp"])
    folder.delete("Pod", "a/p")
    assert folder.uid("a/p") == first["uid"]
    folder.create({"pods": [{"name": "p", "ns": "a"}]})
    assert folder.uid("a/p") != first["uid"]
    assert folder.names_of_uids[first["uid"]] == "a/p"


def test_options_are_flags_or_settings(tmp_path):
    assert serve_flags({"controllers": "none"}, tmp_path, plans=False) == ["--controllers", "none"]
    assert serve_flags({}, tmp_path, plans=True) == ["--controllers", "none"]
    assert serve_flags({"controllers": ["wake", "status"]}, tmp_path, plans=False) == ["--controllers", "wake,status"]
    options = {"mode": "observe", "reserve.starvingAfter": 5, "gangs": {"enabled": False}}
    flags = serve_flags(options, tmp_path, plans=False)
    assert flags == ["--mode", "observe", "--config", str(tmp_path / "quotaward.yaml")]
    settings = yaml.safe_load((tmp_path / "quotaward.yaml").read_text())
    assert settings == {"reserve": {"starvingAfter": 5}, "gangs": {"enabled": False}}


def test_a_case_that_asks_once_is_a_timeline_of_one():
    assert steps_of({"when": {"plan": {}}, "then": {"evictions": []}}) == [{"plan": {}, "then": {"evictions": []}}]
    steps = [{"filter": {"pod": "a/p"}}, {"at": "1s", "delete": "a/p"}]
    assert steps_of({"when": {"steps": steps}, "then": {"passes": []}})[0]["then"] == {"passes": []}
    assert "then" not in steps[0]
    assert created({"name": "p", "ns": "a"}) == {"pods": [{"name": "p", "ns": "a"}]}
    assert created({"pods": [{"name": "p", "ns": "a"}]}) == {"pods": [{"name": "p", "ns": "a"}]}


def test_the_scheduler_sends_the_whole_pod_and_all_nodes(tmp_path):
    folder = Folder(tmp_path)
    folder.create({"nodes": {"n1": {}, "n2": {}}, "pods": [{"name": "p", "ns": "a", "cpu": 1}]})
    arguments, nodes = extender_arguments("filter", {"pod": "a/p"}, folder)
    assert list(arguments) == ["Pod", "Nodes", "NodeNames"]
    assert (arguments["Nodes"], arguments["NodeNames"], nodes) == (None, ["n1", "n2"], ["n1", "n2"])
    assert set(arguments["Pod"]) == {"metadata", "spec", "status"}
    assert arguments["Pod"]["spec"] == folder.pod("a/p")["spec"]
    assert extender_arguments("prioritize", {"pod": "a/p", "nodes": ["n2"]}, folder)[0]["NodeNames"] == ["n2"]


def test_the_scheduler_proposes_victims_by_uid_and_counts_violations(tmp_path):
    folder = Folder(tmp_path)
    folder.create(
        {
            "pdbs": {"a/x": {"selector": {"app": "x"}, "disruptionsAllowed": 1}},
            "pods": [
                {"name": "v", "ns": "a", "node": "n1", "count": 3, "uid": "u", "labels": {"app": "x"}},
                {"name": "p", "ns": "a"},
            ],
        }
    )
    candidates = {"n1": ["a/v-1", "a/v-2", "a/v-3"], "n2": []}
    arguments, _ = extender_arguments("preempt", {"pod": "a/p", "candidates": candidates}, folder)
    assert list(arguments) == ["Pod", "NodeNameToVictims", "NodeNameToMetaVictims"]
    assert arguments["NodeNameToMetaVictims"] == {
        "n1": {"Pods": [{"UID": "u-1"}, {"UID": "u-2"}, {"UID": "u-3"}], "NumPDBViolations": 2},
        "n2": {"Pods": [], "NumPDBViolations": 0},
    }


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        *((1, 1), ("500m", Fraction(1, 2)), ("1Gi", 2**30), ("1G", 10**9), ("1e3", 1000), ("1E", 10**18)),
        *(("1.5Ki", 1536), ("100u", Fraction(1, 10**4)), ("-1", -1), (".5", Fraction(1, 2)), (0.5, Fraction(1, 2))),
    ],
)
def test_quantities_are_worth(quantity, value):
    assert worth(quantity) == value


def test_what_is_no_quantity_is_worth_nothing():
    for text in ("", "abc", "1 Gi", "1gi", True, None, "1e", "Gi", "\u0661"):
        with pytest.raises(ValueError, match="not a quantity"):
            worth(text)
    assert not same("abc", "abc")


def test_rules_are_told_by_their_words():
    assert rule_of("ElasticQuota max exceeded: cpu, nvidia.com/gpu") == "elastic-quota-max"
    assert rule_of("ElasticQuota is invalid") == "elastic-quota-invalid"
    assert rule_of("node(s) resource was(were) reserved") == "node-reserved"
    assert rule_of("ElasticQuota max exceeded: memory, cpu") is None  # not sorted
    assert rule_of("ElasticQuota max exceeded: cpu (3 > 2)") is None
    assert rule_of("ElasticQuota max exceeded: ") is None


def filtered(passed, unresolvable=(), failed=(), *, status=200, error=""):
    body = {"NodeNames": passed, "FailedNodes": dict(failed), "FailedAndUnresolvableNodes": dict(unresolvable)}
    return Answer("filter", status, body | {"Error": error}, ("n1", "n2"))


def test_filter_answers_are_judged():
    over = "ElasticQuota max exceeded: cpu"
    refused = filtered([], {"n1": over, "n2": over})
    assert mismatch({"refused": "elastic-quota-max"}, refused) is None
    assert mismatch({"refused": "elastic-quota-borrowing"}, refused)
    assert mismatch({"passes": ["n1", "n2"]}, refused)
    assert mismatch({"refused": "elastic-quota-max"}, filtered([], {}, {"n1": over, "n2": over}))
    assert mismatch({"passes": ["n1", "n2"]}, filtered(["n1", "n2"])) is None
    assert mismatch({"passes": ["n1", "n2"]}, filtered(["n2", "n1"]))  # another order than it was asked in
    assert mismatch({"passes": ["n1"]}, filtered(["n1"]))  # nothing said of n2
    assert mismatch({}, filtered(["n1", "n2"], error="no"))
    assert mismatch({}, filtered(["n1", "n2"], status=500))
    assert mismatch({"refused": "not-synced"}, filtered([], status=503)) is None
    reserved = filtered(["n1"], {}, {"n2": "node(s) resource was(were) reserved"})
    assert mismatch({"failed": {"n2": "node-reserved"}}, reserved) is None
    assert mismatch({"failed": {"n2": "node-reserved"}, "passes": ["n1"]}, reserved) is None
    assert mismatch({"failed": {"n1": "node-reserved"}}, reserved)


def test_scores_that_are_not_named_are_zero():
    answer = Answer("prioritize", 200, [{"Host": "n1", "Score": 10}, {"Host": "n2", "Score": 0}])
    assert mismatch({"scores": {"n1": 10}}, answer) is None
    assert mismatch({"scores": {"n1": 10, "n3": 0}}, answer) is None
    assert mismatch({"scores": {}}, answer)


def test_victims_are_judged():
    names = {"u1": "a/v-1", "u2": "a/v-2"}

    def proposed(*uids):
        told = {"n1": {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}}
        return Answer("preempt", 200, {"NodeNameToMetaVictims": told}, ["n1"], names)

    assert mismatch({"victims": {}}, Answer("preempt", 200, {}, ["n1"], names)) is None
    assert mismatch({"victims": {"n1": ["a/v-2", "a/v-1"]}}, proposed("u1", "u2")) is None
    assert mismatch({"victims": {"n1": ["a/v-1"]}}, proposed("u1", "u2"))
    assert mismatch({"victims": {"n1": ["a/v-1"]}}, proposed("u1", "u1"))
    assert mismatch({"victims": {}}, proposed("u1"))
    assert mismatch({"victims": {}}, proposed())  # a node without victims is an error to the scheduler
    one_of = {"victims": {"n1": {"oneOf": ["a/v-1", "a/v-2"], "count": 1}}}
    assert mismatch(one_of, proposed("u2")) is None
    assert mismatch(one_of, proposed("u1", "u2"))
    assert mismatch(one_of, proposed("u3"))


def test_evictions_are_judged():
    plan = Answer("plan", 200, {"evictions": [{"pod": "a/p-2", "node": "n1"}], "nominations": []})
    assert mismatch({"evictions": ["a/p-2"]}, plan) is None
    assert mismatch({"evictions": ["a/p-1"]}, plan)
    assert mismatch({"evictions": {"count": 1, "from": ["a/p-1", "a/p-2"]}}, plan) is None
    assert mismatch({"evictions": {"count": 1}}, plan) is None
    assert mismatch({"evictions": {"count": 0}}, plan)
    assert mismatch({"evictions": {"count": 1, "from": ["a/p-1"]}}, plan)
    assert must_not_happen({"evictions": {"count": 0}})
    assert must_not_happen({"evictions": []})
    assert not must_not_happen({"evictions": ["a/p"]})


def test_items_are_found_by_name_and_compared_as_subsets_by_value():
    items = [
        {
            "name": "q1",
            "deserved": {"cpu": "4000m", "memory": "1Gi"},
            "namespaces": [{"namespace": "a", "share": 0.3333}],
        },
        {"namespace": "x", "name": "quota", "used": {"cpu": "2"}, "reclaimable": True},
    ]
    body = {"items": items}
    assert difference({"items": {"q1": {"deserved": {"cpu": 4, "nvidia.com/gpu": 0}}}}, body) is None
    assert difference({"items": {"q1": {"namespaces": {"a": {"share": 0.333}}}}}, body) is None
    assert difference({"items": {"x": {"used": {"cpu": 2}}, "x/quota": {"reclaimable": True}}}, body) is None
    assert difference({"items": {"q1": {"deserved": {"cpu": 5}}}}, body)
    assert difference({"items": {"q1": {"deserved": {"pods": 1}}}}, body)
    assert difference({"items": {"q2": {}}}, body)
    assert difference({"items": {"x": {"reclaimable": False}}}, body)
    assert difference({"items": []}, body)
    assert difference({"verdict": "refused"}, {"verdict": "refused", "rule": "x"}) is None
    assert difference({"verdict": "bound"}, {"verdict": "refused"})
    assert difference({"remedies": ["b"]}, {"remedies": ["a", "b"]}) is None
