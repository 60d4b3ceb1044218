"""What is read of a folder of manifests: what is good is served, what is bad is reported with its place."""

import asyncio
import json

import pytest
import yaml

from app.sources import manifests
from app.sources.manifests import read
from policy.explain.verdicts import verdict_on
from tests.unit.app.given import node, pod, quota
from tests.unit.app.manifest_folder import GOOD, bad_quota


def bad_pod(**changes):
    return yaml.safe_dump(pod("bad", **changes))


def aliases(levels):
    """A file of which each line stands for nine times what the one before it does."""
    lines = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, levels)]
    return "apiVersion: v1\nkind: Node\nmetadata: {name: x}\na0: &a0 [" + ", ".join("1" * 9) + "]\n" + "".join(lines)


REQUEST = "spec.containers[0].resources.requests"
# what stands in the file, the document at fault (0: the whole file), and what is said of it
BAD = {
    "YAML error": ("a: [", 0, "cannot be read: while parsing"),
    "tab": ("a:\n\t- b", 0, "cannot be read: while scanning"),
    "deep nesting": ("[" * 100_000, 0, "nesting"),
    "binary": (bytes(range(256)), 0, "cannot be read: 'utf-8' codec"),
    "control characters": (b"\x00\x01\x02", 0, "control characters"),
    "UTF-16": ("kind: Pod".encode("utf-16"), 0, "cannot be read: 'utf-8' codec"),
    "tag": ("!!python/object:os.system {}", 0, "could not determine a constructor"),
    "text": ("nothing but text", 1, "is not a Kubernetes object"),
    "list": ("- apiVersion: v1\n- kind: Pod\n", 1, "is not a Kubernetes object"),
    "no kind": ("apiVersion: v1\nmetadata: {name: x}", 1, "apiVersion and kind are missing"),
    "no metadata": ("apiVersion: v1\nkind: Pod", 1, "metadata"),
    "metadata is a list": ("{apiVersion: v1, kind: Node, metadata: [x]}", 1, "$.metadata"),
    "no name": ("{apiVersion: v1, kind: Node, metadata: {}}", 1, "Node : metadata.name: missing"),
    "name is a number": ("{apiVersion: v1, kind: Node, metadata: {name: 5}}", 1, "$.metadata.name"),
    "time": ('{apiVersion: v1, kind: Node, metadata: {name: x, creationTimestamp: "noon"}}', 1, "creationTimestamp"),
    "quantity of a pod": (bad_pod(requests={"cpu": "much"}), 1, f"Pod a/bad: {REQUEST}.cpu: 'much' is not"),
    "negative request": (bad_pod(requests={"memory": "-1Gi"}), 1, f"Pod a/bad: {REQUEST}.memory: is negative"),
    "request is a list": (bad_pod(requests=["cpu"]), 1, "$.spec.containers[0].resources.requests"),
    "overhead": (bad_pod(overhead={"cpu": "x"}), 1, "Pod a/bad: spec.overhead.cpu: 'x' is not"),
    "priority is text": (bad_pod(priority="high"), 1, "$.spec.priority"),
    "quantity of a node": (yaml.safe_dump(node("bad", cpu="x")), 1, "Node bad: status.allocatable.cpu: 'x' is not"),
    "negative quota": (bad_quota("{max: {cpu: -1}}"), 1, "ElasticQuota b/bad: spec.max.cpu: is negative"),
    "quantity of a quota": (bad_quota("{min: {cpu: 1 core}}"), 1, "ElasticQuota b/bad: spec.min.cpu: '1 core' is not"),
    "min is a list": (bad_quota("{min: [cpu]}"), 1, "ElasticQuota b/bad: spec.min: must be a map"),
    "max is text": (bad_quota("{max: cpu}"), 1, "ElasticQuota b/bad: spec.max: must be a map"),
    "boolean quota": (bad_quota("{max: {cpu: yes}}"), 1, "ElasticQuota b/bad: spec.max.cpu: is not a quantity"),
    "spec is a list": (
        bad_quota("[max]"),
        1,
        "ElasticQuota b/bad: spec: must be a map with min and max",
    ),
    "a map that holds itself": (bad_quota("&s {max: *s}"), 1, "recursion"),
    "aliases of aliases": (aliases(40), 0, "cannot be read: its aliases expand to too much"),
    "aliases of a long text": ("a: &a " + "x" * 99_999 + f"\nb: [{'*a, ' * 99}]", 0, "aliases expand to too much"),
    "second document": (yaml.safe_dump(pod("extra", "b")) + "---\nkind: Pod\n", 2, "is not a Kubernetes object"),
    "duplicate": (yaml.safe_dump(GOOD["a/p"]), 1, "Pod a/p: is already in"),
    "item of a list": (yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [5]}), 1, "is not a Kubernetes"),
}


@pytest.mark.parametrize(("content", "document", "said"), BAD.values(), ids=BAD)
def test_one_bad_file_is_reported_and_the_good_ones_are_served(good, content, document, said):
    bad = good.path / "z.yaml"
    bad.write_bytes(content if isinstance(content, bytes) else content.encode())
    good.source()
    problems = read(good.path).problems
    assert [(problem.file, problem.document) for problem in problems] == [(bad, document)]
    assert said in problems[0].text
    assert "\n" not in str(problems[0])
    assert str(problems[0]).startswith(f"{bad}, document {document}: " if document else f"{bad}: ")
    assert good.known() >= set(GOOD)
    assert good.cluster.quotas["a"]["quota"].max == {"cpu": 2000}
    assert good.store.synced


@pytest.mark.parametrize(
    "value",
    ["2026-13-45", "0b_", "9" * 5000, "!!bool maybe", '!!int ""', '!!float ""', "!!timestamp noon"],
    ids=["a day that is none", "digits that are none", "too many digits", "bool", "int", "float", "timestamp"],
)
def test_a_scalar_that_yaml_cannot_make_a_value_of_is_reported_too(good, value):
    bad = good.write("z.yaml", bad_quota(f"{{max: {{cpu: {value}}}}}"))
    good.source()
    assert [problem.file for problem in read(good.path).problems] == [bad]
    assert good.known() >= set(GOOD)


@pytest.mark.parametrize("metadata", [{"name": 5}, {"name": "q", "labels": 7}], ids=["name", "labels"])
def test_a_quota_whose_metadata_cannot_be_read_refuses_everything_too(good, metadata):
    """Whoever has written it wants a bound, and what is there in its place has none."""
    bad = quota("c", max={"cpu": 1}) | {"metadata": {"namespace": "c"} | metadata}
    file = good.write("z.yaml", yaml.safe_dump(bad))
    good.source()
    assert [(problem.file, problem.document) for problem in read(good.path).problems] == [(file, 1)]
    assert good.known() >= set(GOOD)
    assert [each.readable for each in good.cluster.quotas["c"].values()] == [False]


def test_a_mounted_config_map_is_read_once(folder):
    folder.write("..2026_11_28/n1.yaml", node("n1"))
    (folder.path / "..data").symlink_to("..2026_11_28")
    (folder.path / "n1.yaml").symlink_to("..data/n1.yaml")
    folder.source()
    assert folder.known() == {"n1"}
    assert read(folder.path).problems == []


@pytest.mark.parametrize("content", ["", "# nothing yet\n", "---\n---\n", "null\n"])
def test_an_empty_file_is_no_problem(good, content):
    good.write("z.yaml", content)
    good.source()
    assert read(good.path).problems == []
    assert good.known() == set(GOOD)


def test_every_problem_of_a_quota_is_reported(folder):
    folder.write("quota.yaml", bad_quota("{min: [cpu], max: {cpu: x, memory: -1, pods: 5}}"))
    texts = [problem.text for problem in read(folder.path).problems]
    assert [text.split(": ")[1] for text in texts] == ["spec.min", "spec.max.cpu", "spec.max.memory"]


def test_objects_that_no_rule_reads_are_no_problem(folder):
    folder.write("other.yaml", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"x": [1]}})
    assert read(folder.path).problems == []


@pytest.mark.parametrize(
    "item",
    [
        quota("a", max={"cpu": 1}) | {"apiVersion": "scheduling.x-k8s.io/v1alpha2"},
        {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "List", "items": [quota("a")]}]},
    ],
    ids=["version", "list in a list"],
)
def test_a_quota_is_not_left_out_in_silence(folder, item):
    folder.write("quota.yaml", item)
    folder.source()
    assert folder.cluster.quotas or read(folder.path).problems


def test_what_is_neither_yaml_nor_json_by_name_is_not_read(good):
    for name in ("README.md", "quota.yaml.orig", ".n1.yaml.swp", "z.txt"):
        good.write(name, "a: [")
    assert read(good.path).problems == []


def test_a_file_holds_many_documents_and_lists_of_every_kind(folder):
    items = [quota("b", max={"cpu": 1}), pod("in-list", "b")]
    untyped = [{key: value for key, value in pod(name).items() if key in ("metadata", "spec")} for name in ("x", "y")]
    folder.write(
        "all.yaml",
        node("n1"),
        {"apiVersion": "v1", "kind": "List", "items": items},
        {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": untyped},
    )
    folder.source()
    assert read(folder.path).problems == []
    assert folder.known() == {"n1", "b/quota", "b/in-list", "a/x", "a/y"}


def test_json_is_read_and_so_are_directories_below_one_another(folder):
    folder.write("one/n1.json", json.dumps(node("n1"), indent="\t"))
    folder.write("one/two/three/n2.yml", node("n2"))
    folder.source()
    assert folder.known() == {"n1", "n2"}


@pytest.mark.parametrize("text", ["\N{GRINNING FACE}", "k" * 1100])
def test_all_that_json_can_say_is_understood(folder, text):
    folder.write("n1.json", json.dumps(node("n1") | {"metadata": {"name": "n1", "annotations": {text: text}}}))
    assert read(folder.path).problems == []


def test_what_the_api_server_would_fill_in_is_filled_in(folder):
    folder.write("pod.yaml", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})
    folder.source()
    found = folder.cluster.pod("default", "p")
    assert found.uid
    assert found.request == {"pods": 1}


def test_who_only_says_how_much_it_may_use_requests_that(folder):
    limits = {"cpu": 2, "nvidia.com/gpu": 1}
    resources = (
        {"limits": limits},
        {"limits": limits, "requests": {"cpu": 1}},
        {"limits": None},
        {"requests": {"cpu": 1}},
    )
    containers = [{"name": str(number), "resources": each} for number, each in enumerate(resources)]
    init = [{"name": "init", "resources": {"limits": {"memory": 7}}}]
    folder.write("pod.yaml", pod("p", containers=containers, initContainers=init))
    folder.source()
    assert folder.cluster.pod("a", "p").request == {"cpu": 4000, "nvidia.com/gpu": 2, "memory": 7, "pods": 1}


@pytest.mark.parametrize(
    ("as_a_pod", "containers", "requested"),
    [
        ({"limits": {"cpu": 4, "memory": 8}}, [{}, {}], {"cpu": 4000, "memory": 8}),
        ({"limits": {"cpu": 4}}, [{"requests": {"cpu": 1}}], {"cpu": 1000}),
        ({"limits": {"cpu": 4}}, [{"requests": {"cpu": 1}}, {"limits": {"cpu": 2}}], {"cpu": 3000}),
        ({"limits": {"cpu": 4, "memory": 8}}, [{"requests": {"cpu": 1}}], {"cpu": 1000, "memory": 8}),
        ({"limits": {"cpu": 4}, "requests": {"cpu": 3}}, [{"requests": {"cpu": 1}}], {"cpu": 3000}),
        ({"limits": {"cpu": 4}, "requests": {"memory": 8}}, [{}], {"cpu": 4000, "memory": 8}),
        ({"requests": {"cpu": 3}}, [{}], {"cpu": 3000}),
        ({"limits": {"hugepages-2Mi": 4}}, [{"requests": {"cpu": 1}}], {"cpu": 1000, "hugepages-2Mi": 4}),
        ({"limits": {"nvidia.com/gpu": 4}}, [{}], {}),  # which the API server refuses
        ({"limits": None}, [{"limits": {"cpu": 2}}], {"cpu": 2000}),
    ],
)
def test_a_pod_that_only_says_how_much_it_may_use_as_a_whole_requests_that(folder, as_a_pod, containers, requested):
    given = [{"name": str(number), "resources": each} for number, each in enumerate(containers)]
    folder.write("pod.yaml", pod("p", containers=given, resources=as_a_pod))
    folder.source()
    assert folder.cluster.pod("a", "p").request == {**requested, "pods": 1}


def test_a_pod_in_the_network_of_its_host_takes_its_ports_there(folder):
    ports = [{"containerPort": 80}, {"containerPort": 8443, "hostPort": 443}]
    odd = [{"name": "odd", "ports": None}, {"name": "none"}]
    folder.write("pod.yaml", pod("p", hostNetwork=True, containers=[{"name": "main", "ports": ports}, *odd]))
    folder.source()
    assert [port.port for port in folder.cluster.pod("a", "p").constraints.host_ports] == [80, 443]


def test_all_that_a_node_has_is_allocatable_where_nothing_else_is_said(folder):
    folder.write("n1.yaml", node("n1") | {"status": {"capacity": {"cpu": 2}}})
    folder.write("n2.yaml", node("n2") | {"status": {"capacity": {"cpu": 2}, "allocatable": {"cpu": 1}}})
    folder.source()
    assert [node.allocatable for node in folder.cluster.table.nodes()] == [{"cpu": 2000}, {"cpu": 1000}]


def test_of_two_manifests_for_one_object_the_first_counts(folder):
    folder.write("1.yaml", quota("a", max={"cpu": 1}), quota("a", max={"cpu": 2}))
    folder.write("2.yaml", quota("a", max={"cpu": 3}))
    problems = read(folder.path).problems
    folder.source()
    assert [(problem.file.name, problem.document) for problem in problems] == [("1.yaml", 2), ("2.yaml", 1)]
    assert folder.cluster.quotas["a"]["quota"].max == {"cpu": 1000}


def test_two_pods_of_one_name_are_reported_whatever_their_uids(folder):
    folder.write("1.yaml", pod("p", metadata={"uid": "1"}), pod("p", metadata={"uid": "2"}))
    assert len(read(folder.path).problems) == 1


@pytest.mark.parametrize(
    "spec",
    [
        "{max: {cpu: x}}",
        "{min: [cpu]}",
        pytest.param("[max]"),
        pytest.param("max"),
        pytest.param("{max: {yes: 1}}"),
    ],
)
def test_a_quota_that_was_never_good_refuses_everything(folder, spec):
    folder.write("quota.yaml", bad_quota(spec))
    folder.write("pod.yaml", pod("p", "b"))
    folder.source()
    verdict = verdict_on(folder.cluster, "b", "p")
    assert (verdict.outcome, verdict.rule) == ("refused", "elastic-quota-invalid")


def test_a_directory_that_is_not_there_is_a_problem(tmp_path):
    assert str(read(tmp_path / "missing").problems[0]) == f"{tmp_path / 'missing'}: is not a directory"


def test_the_question_that_is_shown_is_about_a_pod_that_waits(good):
    good.write("bound.yaml", pod("bound", "0", nodeName="n1"))
    question = json.loads(good.source().example_question())
    assert question["Pod"]["metadata"]["name"] == "p"
    assert question["NodeNames"] == ["n1"]


def test_where_no_pod_waits_there_is_no_question(folder):
    folder.write("bound.yaml", pod("bound", nodeName="n1"))
    assert folder.source().example_question() == ""


def test_the_store_is_in_sync_as_soon_as_the_folder_was_read(good):
    good.source()
    assert good.store.unready() == ""


def followed(source, monkeypatch, *happens):
    """How often the folder is read when a watch stands and then tells of no change, after each of these."""
    read_anew = []

    def count(directory, *_):
        read_anew.append(directory)
        return read(directory)

    async def awatch(*_, **__):
        for change in happens:
            change()
            yield set()

    monkeypatch.setattr(manifests, "read", count)
    monkeypatch.setattr(manifests.watchfiles, "awatch", awatch)
    asyncio.run(source._watch())
    return len(read_anew)


def test_a_folder_that_has_not_changed_is_not_read_twice(good, monkeypatch):
    assert followed(good.source(), monkeypatch, lambda: None, lambda: None) == 0


def test_what_changes_before_the_watch_stands_is_read(good, monkeypatch):
    source = good.source()
    assert followed(source, monkeypatch, lambda: good.write("new.yaml", node("n2")), lambda: None) == 1
    assert "n2" in good.known()
