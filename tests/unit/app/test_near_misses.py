"""What is nearly heeded, a row each: ``quotaward check`` says so, and a good one beside it is not spoken of."""

import re
from pathlib import Path

import pytest

from app import checks
from app.checks.near import distance, nearest
from app.store.heeded import CONFUSED, KEYS, OTHERS
from app.store.kinds import KINDS
from policy.objects.quantity import LARGEST
from tests.unit.app.given import node, pod, pod_group, queue, quota
from tests.unit.app.test_simulate import run

ROOT = Path(__file__).parents[3]
ANNOTATION, LABEL = "annotations", "labels"


def found_of(folder, *items):
    folder.write("all.yaml", *items)
    report = checks.manifests(folder.path)
    assert {finding.severity for finding in report.findings} <= {"warning"}
    return [finding.text.replace(f"{folder.path}/", "") for finding in report.findings]


def namespace(**metadata):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", **metadata}}


def template(metadata):
    """A Deployment whose pods have this."""
    spec = {"template": {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nvidia.com/gpus", "did you mean nvidia.com/gpu?"),
        ("nvidia.com/GPU", "did you mean nvidia.com/gpu?"),
        ("nvdia.com/gpu", "did you mean nvidia.com/gpu?"),
        ("amd.com/gpus", "did you mean amd.com/gpu?"),
        ("gpu", "did you mean nvidia.com/gpu?"),
        ("CPU", "did you mean cpu?"),
        ("cpus", "did you mean cpu?"),
        ("Memory", "did you mean memory?"),
        ("mem", "did you mean memory?"),
        ("pod", "did you mean pods?"),
        ("storage", "did you mean ephemeral-storage?"),
        ("requests.cpu", "requests of pods are counted as cpu"),
        ("limits.cpu", "limits are not counted"),
        ("count/jobs.batch", "only pods are counted"),
        ("services", "no pod can request"),
    ],
)
def test_a_resource_that_bounds_nothing_is_named_with_the_one_that_is_meant(folder, name, said):
    [text] = found_of(folder, quota("a", max={name: 1}))
    assert text.startswith(f"all.yaml: ElasticQuota a/quota: spec.max.{name} bounds nothing")
    assert said in text
    [text] = found_of(folder, quota("a", min={name: 1}))
    assert text.startswith(f"all.yaml: ElasticQuota a/quota: spec.min.{name} bounds nothing")
    for part, spec in (("capability", {name: 1}), ("guarantee.resource", {"resource": {name: 1}})):
        [text] = found_of(folder, queue("q", **{part.partition(".")[0]: spec}))
        assert text.startswith(f"all.yaml: Queue q: spec.{part}.{name} bounds nothing")


@pytest.mark.parametrize(
    "name",
    [
        *("cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "example.com/fpga"),
        *("requests.nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu", "deviceclass/gpu"),
        "gpu.deviceclass.resource.k8s.io/devices",
    ],
)
def test_a_resource_that_pods_request_is_not_spoken_of(folder, name):
    assert found_of(folder, quota("a", max={name: 1})) == []
    assert found_of(folder, node(**{name: 4}), quota("a", max={name: 1})) == []


@pytest.mark.parametrize("value", ["1e400", "-1e400", "8Ei", 10**30, "9" * 300])
def test_an_amount_beyond_what_kubernetes_counts_is_an_error(folder, value):
    specs = {
        "max": quota("a", max={"cpu": value}),
        "min": quota("a", min={"cpu": value}),
        "capability": queue("q", capability={"cpu": value}),
        "guarantee.resource": queue("q", guarantee={"resource": {"cpu": value}}),
    }
    for field, item in specs.items():
        folder.write("all.yaml", item)
        errors = [each.text for each in checks.manifests(folder.path).findings if each.severity == "error"]
        said = f"spec.{field}.cpu: {str(value)[:40]} is more than the largest amount in Kubernetes, {LARGEST}"
        assert [said in text for text in errors].count(True) == 1


def test_the_largest_amount_that_kubernetes_counts_is_none(folder):
    assert found_of(folder, quota("a", max={"cpu": str(LARGEST), "memory": LARGEST, "pods": "7Ei"})) == []


def test_a_resource_that_no_node_lists_may_come_from_elsewhere(folder):
    [text] = found_of(folder, node(cpu=4), quota("a", max={"nvidia.com/gpu": 1, "cpu": 1}))
    where = "all.yaml: ElasticQuota a/quota: spec.max.nvidia.com/gpu is on no node"
    assert text == f"{where}: it bounds nothing, unless another extender or a driver of resource claims provides it"
    assert found_of(folder, node(cpu=4), quota("a", max={"nvidia.com/gpu": 0})) == []


def test_a_resource_is_near_what_the_nodes_of_the_folder_list(folder):
    [text] = found_of(folder, node(**{"example.com/fpga": 1}), quota("a", max={"example.com/fgpa": 1}))
    assert "did you mean example.com/fpga?" in text


@pytest.mark.parametrize(
    ("part", "key", "value", "said"),
    [
        (ANNOTATION, "quotaward.dev/preemptable", "false", 'needs the annotation quotaward.dev/preemptible: "false"'),
        (ANNOTATION, "quotaward.io/preemptible", "false", "did you mean quotaward.dev/preemptible?"),
        (ANNOTATION, "quotaward.dev/premptible", "false", "did you mean quotaward.dev/preemptible?"),
        (ANNOTATION, "volcano.sh/preemptable", "false", 'needs the annotation quotaward.dev/preemptible: "false"'),
        (LABEL, "quotaward.dev/preemptible", "false", "it must be an annotation"),
        (ANNOTATION, "quotaward.dev/preemptible", "no", '\'no\' has no meaning: it must be "false" or "true", as text'),
        (ANNOTATION, "quotaward.dev/preemptible", False, "False has no meaning"),
        (ANNOTATION, "scheduling.volcano.sh/queue", "q", "in the annotation scheduling.volcano.sh/queue-name"),
        (ANNOTATION, "volcano.sh/queue-name", "q", "in the annotation scheduling.volcano.sh/queue-name"),
        (LABEL, "kueue.x-k8s.io/queue-name", "q", "in the annotation scheduling.volcano.sh/queue-name"),
        (LABEL, "scheduling.volcano.sh/queue-name", "q", "it must be an annotation"),
        (ANNOTATION, "scheduling.volcano.sh/queue-names", "q", "did you mean scheduling.volcano.sh/queue-name?"),
        (ANNOTATION, "scheduling.x-k8s.io/pod-group", "g", "it must be a label"),
        (LABEL, "scheduling.x-k8s.io/podgroup", "g", "did you mean scheduling.x-k8s.io/pod-group?"),
        (LABEL, "scheduling.k8s.io/group-name", "g", "it must be an annotation"),
        (LABEL, "pod-group.scheduling.sigs.k8s.io/name", "g", "in the label scheduling.x-k8s.io/pod-group"),
        (LABEL, "pod-group.scheduling.sigs.k8s.io/min-available", "3", "and the PodGroup its spec.minMember"),
        (ANNOTATION, "simulation.quotaward.dev/from", "1h", "is not read"),
        (ANNOTATION, "quotaward.dev/nonsense", "x", "there is no such key"),
        (LABEL, "quotaward.dev/gated", "true", "is only read on Namespaces"),
        (LABEL, "quotaward.dev/ignore-disruptions", "true", "is only read on Namespaces"),
        (ANNOTATION, "quotaward.dev/allowed-queues", "q", "is only read on Namespaces"),
    ],
)
def test_a_key_of_a_pod_that_is_not_heeded_is_named(folder, part, key, value, said):
    for item in (pod("p", metadata={part: {key: value}}), template({part: {key: value}})):
        [text] = found_of(folder, quota("z"), item)
        assert f"{part.removesuffix('s')} {key}" in text
        assert said in text


@pytest.mark.parametrize(
    ("part", "key", "value", "said"),
    [
        (LABEL, "quotaward.dev/gated", "yes", "'yes' has no meaning"),
        (LABEL, "quotaward.dev/gate", "true", "did you mean quotaward.dev/gated?"),
        (ANNOTATION, "quotaward.dev/gated", "true", "it must be a label"),
        (LABEL, "quotaward.dev/ignore-disruptions", "yes", "'yes' has no meaning"),
        (LABEL, "quotaward.dev/growth", "true", "'true' has no meaning"),
        (LABEL, "quotaward.dev/ignore-disruption", "true", "did you mean quotaward.dev/ignore-disruptions?"),
        (LABEL, "scheduling.volcano.sh/queue-name", "q", "it must be an annotation"),
        (ANNOTATION, "scheduling.volcano.sh/default-queue", "q", "scheduling.volcano.sh/queue-name"),
        (ANNOTATION, "quotaward.dev/allowed-queue", "q", "did you mean quotaward.dev/allowed-queues?"),
        (ANNOTATION, "quotaward.dev/preemptible", "false", "is only read on Pods"),
    ],
)
def test_a_key_of_a_namespace_that_is_not_heeded_is_named(folder, part, key, value, said):
    [text] = found_of(folder, namespace(**{part: {key: value}}))
    assert text.startswith(f"all.yaml, document 1: Namespace a: {part.removesuffix('s')} {key}")
    assert said in text


def test_keys_that_are_heeded_and_those_of_others_are_not_spoken_of(folder):
    in_queue = {"scheduling.volcano.sh/queue-name": "q", "kubectl.kubernetes.io/restartedAt": "now"}
    labels = {"app": "x", "pod-template-hash": "1", "app.kubernetes.io/name": "x", "queue.example.com/name": "y"}
    gates = [{"name": "quotaward.dev/quota"}, {"name": "example.com/other"}]
    annotations = {**in_queue, "quotaward.dev/preemptible": "false"}
    items = [
        namespace(annotations=in_queue, labels={"quotaward.dev/gated": "true"}),
        pod("p", metadata={"annotations": annotations, "labels": labels}, schedulingGates=gates),
        template({"annotations": annotations, "labels": labels}),
        queue("q"),
    ]
    assert found_of(folder, *items) == []


def test_a_gate_that_nobody_opens_is_named(folder):
    [text] = found_of(folder, pod("p", schedulingGates=[{"name": "quotaward.dev/quotas"}]))
    assert text.endswith(
        "scheduling gate quotaward.dev/quotas is not known, and nothing opens it: did you mean quotaward.dev/quota?"
    )


@pytest.mark.parametrize("other", OTHERS, ids=[f"{other.kind} of {other.group}" for other in OTHERS])
def test_a_kind_that_looks_like_ours_is_told_from_it(folder, other):
    item = {"apiVersion": f"{other.group}/v1", "kind": other.kind, "metadata": {"name": "x", "namespace": "a"}}
    texts = found_of(folder, quota("a"), item)
    assert texts == [f"all.yaml, document 2: {other.kind} a/x of {other.group} is not read: {other.instead}"]


@pytest.mark.parametrize("key", ["volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"])
def test_a_hierarchy_of_queues_is_not_heeded(folder, key):
    item = queue("q")
    item["metadata"]["annotations"] = {key: "root/x/a"}
    [text] = found_of(folder, item)
    told = "spec.parent of a Queue names the queue that it stands below; quotaward check --convert DIR writes it"
    assert text.endswith(f"annotation {key} is not read: {told}")


def in_group(name, of):
    return pod(name, metadata={"labels": {"scheduling.x-k8s.io/pod-group": of}})


def test_a_group_that_does_not_exist_is_named_once(folder):
    texts = found_of(folder, in_group("p", "g"), in_group("q", "g"))
    assert texts == ["PodGroup a/g does not exist, and 2 pods name it: each starts on its own"]
    [text] = found_of(folder, in_group("p", "trian"), pod_group("train", minimum=1))
    assert text == "PodGroup a/trian does not exist, and 1 pod names it: each starts on its own; train exists"
    volcano = pod("p", metadata={"annotations": {"scheduling.k8s.io/group-name": "g"}})
    [text] = found_of(folder, volcano, pod_group("g", minimum=1))
    assert text.endswith("the group of that name is of another kind than podgroups.scheduling.volcano.sh")


def test_a_group_of_fewer_pods_than_it_needs_is_named(folder):
    texts = found_of(folder, pod_group("g", minimum=3), in_group("p", "g"), in_group("q", "g"))
    assert texts == ["PodGroup a/g needs 3 pods, but only 2 name it: none starts"]
    assert found_of(folder, pod_group("g", minimum=2), in_group("p", "g"), in_group("q", "g")) == []
    assert found_of(folder, pod_group("g", minimum=3)) == []


def test_a_group_whose_pods_a_controller_makes_may_have_more(folder):
    more = template({"labels": {"scheduling.x-k8s.io/pod-group": "g"}})
    assert found_of(folder, pod_group("g", minimum=3), in_group("p", "g"), more) == []


@pytest.mark.parametrize("name", ["quota.yaml.txt", "quota.YAML", "quota.yml.bak", "quota", "quota.jsonl"])
def test_a_file_that_holds_manifests_under_another_name_is_named(folder, name):
    file = folder.write("quota.yaml", quota("a"))
    folder.write("other.yaml", quota("b"))
    file.rename(folder.path / name)
    [finding] = checks.manifests(folder.path).findings
    assert finding.text == f"{folder.path / name}: is not read: its name must end in .yaml, .yml or .json"


@pytest.mark.parametrize(
    ("name", "content"),
    [("README.md", "apiVersion: v1\nkind: x"), ("notes.txt", "all are quotas"), ("picture", b"\xff\x00apiVersion: 1")],
)
def test_other_files_are_not_spoken_of(folder, name, content):
    folder.write("quota.yaml", quota("a"))
    (folder.path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert checks.manifests(folder.path).findings == []


def test_the_last_line_counts_what_was_read_and_what_was_not(folder):
    folder.write("all.yaml", quota("a"), quota("b"), node(), template({}), namespace())
    status, text = run("check", folder.path)
    last = "0 errors, 0 warnings; read 2 ElasticQuota, 1 Namespace, 1 Node; skipped 1 Deployment"
    assert (status, text.splitlines()[-1]) == (0, last)


def test_warnings_are_a_failure_where_that_is_asked_for(folder):
    folder.write("all.yaml", quota("a", mx={}))
    assert (run("check", folder.path)[0], run("check", folder.path, "--strict")[0]) == (0, 1)
    folder.write("all.yaml", quota("a"))
    assert run("check", folder.path, "--strict")[0] == 0


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("gpus", "gpu", 1), ("kitten", "sitting", 3), ("abcd", "abcd", 0)],
)
def test_how_far_names_are_apart(one, other, apart):
    assert distance(one, other) == distance(other, one) == apart


def test_the_nearest_name_is_none_where_all_are_far_away_or_it_is_known():
    assert (nearest("gpu", ["memory"]), nearest("cpu", ["cpu", "cpus"]), nearest("x", [])) == ("", "", "")


# The documentation


def test_every_key_that_is_heeded_stands_in_the_documentation():
    text = (ROOT / "docs/reference.md").read_text()
    [table] = re.findall(r"## Annotations and labels\n(.*?)\n## ", text, re.DOTALL)
    told = {
        (name, part, tuple(kinds.split(", ")) if kinds != "any" else ())
        for name, part, kinds in re.findall(r"^\| `([^`]+)` \| ([a-z ]+) \| ([^|]+) \|", table, re.MULTILINE)
    }
    assert told == {(key.name, key.part, key.kinds) for key in KEYS}


def test_every_kind_that_is_told_from_ours_stands_in_the_documentation():
    text = (ROOT / "docs/coming-from.md").read_text()
    [table] = re.findall(r"## Kinds that are not read\n(.*?)(?:\n## |\Z)", text, re.DOTALL)
    told = set(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", table, re.MULTILINE))
    assert told == {(other.group, other.kind) for other in OTHERS}


def test_nothing_is_heeded_and_taken_for_something_else():
    assert not {key.name for key in KEYS} & CONFUSED.keys()
    assert not {(other.group, other.kind) for other in OTHERS} & {(kind.group, kind.name) for kind in KINDS}
