"""What ``quotaward check`` finds in manifests and in a scheduler's configuration, before it goes wrong."""

from pathlib import Path

import pytest
import yaml

from app import checks
from tests.unit.app.given import node, pod, quota

GOOD = {
    "urlPrefix": "http://127.0.0.1:8080/extender",
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "preemptVerb": "preempt",
    "weight": 1,
    "nodeCacheCapable": True,
    "ignorable": False,
}
ROOT = Path(__file__).parents[3]


def found_in(directory):
    return [(finding.severity, finding.text) for finding in checks.manifests(directory).findings]


def found_of(folder, *items):
    folder.write("all.yaml", *items)
    return found_in(folder.path)


def test_a_good_folder_has_nothing_to_be_found(folder):
    bounds = {"min": {"cpu": 2}, "max": {"cpu": 4}}
    assert found_of(folder, node(cpu=4), quota("a", **bounds), quota("b", **bounds), pod("p")) == []


def test_what_the_server_would_report_is_an_error(folder):
    folder.write("broken.yaml", "a: [")
    found = found_of(folder, quota("a", max={"cpu": "x"}), pod("p", requests={"cpu": -1}))
    assert [severity for severity, _ in found] == ["error"] * 3
    texts = "\n".join(text for _, text in found)
    for said in (
        "broken.yaml: cannot be read",
        "all.yaml, document 1: ElasticQuota a/quota: spec.max.cpu",
        "document 2",
    ):
        assert said in texts


def test_a_quota_that_cannot_be_read_is_found_once(folder):
    assert len(found_of(folder, quota("a", min={"cpu": "x"}))) == 1


def test_a_directory_that_is_not_there_is_an_error(tmp_path):
    assert found_in(tmp_path / "missing") == [("error", f"{tmp_path / 'missing'}: is not a directory")]
    file = tmp_path / "file.yaml"
    file.write_text("")
    assert found_in(file) == [("error", f"{file}: is not a directory")]


def test_a_folder_without_manifests_is_a_warning(folder):
    assert found_in(folder.path) == [("warning", f"{folder.path}: no manifests of a kind that is read")]
    [(severity, _)] = found_of(folder, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}})
    assert severity == "warning"


def test_a_mistyped_bound_is_a_warning(folder):
    [(severity, text)] = found_of(folder, quota("a", mx={"cpu": 1}))
    assert severity == "warning"
    assert "ElasticQuota a/quota: spec.mx bounds nothing" in text


@pytest.mark.parametrize(
    ("version", "kind", "known"),
    [
        ("scheduling.x-k8s.io/v1alpha1", "ElasticQuotta", "ElasticQuota, PodGroup"),
        ("scheduling.volcano.sh/v1beta1", "ElasticQuota", "PodGroup, Queue"),
        ("quotaward.dev/v1alpha1", "Reserve", "Reservation"),
    ],
)
def test_a_kind_that_is_none_of_a_group_of_ours_is_a_warning(folder, version, kind, known):
    mistyped = {"apiVersion": version, "kind": kind, "metadata": {"name": "quota", "namespace": "a"}, "spec": {}}
    [(severity, text)] = found_of(folder, quota("b"), mistyped)
    assert severity == "warning"
    where, group = f"{folder.path / 'all.yaml'}, document 2: {kind} a/quota", version.split("/")[0]
    assert text == f"{where}: is not read: the kinds of {group} are {known}"


def test_kinds_of_others_are_left_out_without_a_word(folder):
    others = [
        ("storage.k8s.io/v1", "StorageClass"),
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("apps/v1", "Deployment"),
    ]
    objects = [{"apiVersion": version, "kind": kind, "metadata": {"name": "x"}} for version, kind in others]
    assert found_of(folder, quota("a"), *objects) == []


def test_a_second_quota_in_a_namespace_is_a_warning(folder):
    [(severity, text)] = found_of(folder, quota("a", "x"), quota("a", "y"))
    assert (severity, text.split(":")[0]) == ("warning", "ElasticQuota a/y")
    assert "Conflict" in text


def test_a_min_beyond_max_is_a_warning(folder):
    [(severity, text)] = found_of(folder, quota("a", min={"cpu": 2}, max={"cpu": 1}))
    assert (severity, text.split(":")[0]) == ("warning", "ElasticQuota a/quota")
    assert "min exceeds max: cpu" in text


def test_a_min_that_leaves_out_what_another_names_is_a_warning(folder):
    a, b = quota("a", min={"cpu": 2, "memory": "1Gi", "pods": 2}), quota("b", min={"cpu": 2})
    (found,) = found_of(folder, a, b, quota("c", max={"cpu": 2}))
    assert found[0] == "warning"
    assert found[1].startswith("ElasticQuota b/quota: min does not name memory, pods, but the min of a/quota does:")


def test_more_min_than_the_nodes_have_is_a_warning(folder):
    quotas = [quota(namespace, min={"cpu": 3, "memory": "1Gi"}) for namespace in "ab"]
    found = found_of(folder, node("n1", cpu=2, memory="8Gi"), node("n2", cpu=2), *quotas)
    assert found == [("warning", "min of all elastic quotas is 6 of cpu, but the nodes have 4")]


def test_a_min_of_what_no_node_has_is_a_warning(folder):
    [(severity, text)] = found_of(folder, node(cpu=2), quota("a", min={"nvidia.com/gpu": 1}))
    assert severity == "warning"
    assert text.endswith("is 1 of nvidia.com/gpu, but the nodes have 0")


def test_without_nodes_nothing_is_said_about_them(folder):
    assert found_of(folder, quota("a", min={"cpu": 1000})) == []


@pytest.fixture
def scheduler(tmp_path):
    """What is found in a scheduler's configuration with these extenders."""

    def check(*extenders, **rest):
        document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"} | rest
        file = tmp_path / "scheduler.yaml"
        file.write_text(yaml.safe_dump(document | ({"extenders": list(extenders)} if extenders else {})))
        return [(finding.severity, finding.text) for finding in checks.scheduler_configuration(file)]

    return check


def test_a_good_configuration_has_nothing_to_be_found(scheduler):
    assert scheduler(GOOD) == []
    assert scheduler(GOOD | {"urlPrefix": "https://quotaward.example:8443/extender/"}) == []


def test_the_configuration_among_the_manifests_is_good():
    [file] = [path for path in (ROOT / "manifests" / "scheduler").glob("*.yaml") if path.name != "kustomization.yaml"]
    assert [str(finding) for finding in checks.scheduler_configuration(file)] == []


@pytest.mark.parametrize(
    ("change", "severity", "key"),
    [
        ({"urlPrefix": "http://127.0.0.1:8080"}, "error", "urlPrefix"),
        ({"urlPrefix": "http://127.0.0.1:8080/scheduler"}, "error", "urlPrefix"),
        ({"urlPrefix": None}, "error", "urlPrefix"),
        ({"preemptVerb": None}, "error", "preemptVerb"),
        ({"preemptVerb": "preemption"}, "error", "preemptVerb"),
        ({"ignorable": True}, "warning", "ignorable"),
        ({"nodeCacheCapable": False}, "warning", "nodeCacheCapable"),
        ({"nodeCacheCapable": None}, "warning", "nodeCacheCapable"),
        ({"managedResources": [{"name": "nvidia.com/gpu"}]}, "warning", "managedResources"),
    ],
)
def test_what_is_wrong_with_an_extender_is_named_by_its_key(scheduler, change, severity, key):
    [(found, text)] = scheduler({name: value for name, value in (GOOD | change).items() if value is not None})
    assert found == severity
    assert f"extenders.{key}: " in text


def test_all_that_is_wrong_is_found_at_once(scheduler):
    assert len(scheduler({"filterVerb": "filter", "ignorable": True})) == 4


def test_a_scheduler_that_does_not_ask_is_an_error(scheduler):
    for extenders in ((), ({"urlPrefix": "http://elsewhere", "prioritizeVerb": "score", "weight": 1},), ("text",)):
        [(severity, _)] = scheduler(*extenders)
        assert severity == "error"


def test_the_extender_of_somebody_else_is_left_alone(scheduler):
    assert scheduler({"urlPrefix": "http://elsewhere", "filterVerb": "predicates"}, GOOD) == []


def test_the_extender_of_somebody_else_may_have_the_same_verb(scheduler):
    assert scheduler({"urlPrefix": "http://elsewhere/gpu", "filterVerb": "filter"}, GOOD) == []


@pytest.mark.parametrize(
    "content",
    [
        b"a: [",
        b"\xff",
        b"",
        b"text",
        b"- a",
        b"extenders: {}",
        b"--- {}\n--- {}",
        pytest.param(b"x: 2026-13-45"),
        b'x: !!int ""',
    ],
)
def test_what_is_no_configuration_is_an_error(tmp_path, content):
    file = tmp_path / "scheduler.yaml"
    file.write_bytes(content)
    [finding] = checks.scheduler_configuration(file)
    assert finding.severity == "error"
    assert finding.text.startswith(str(file))


def test_a_configuration_that_is_not_there_is_an_error(tmp_path):
    [finding] = checks.scheduler_configuration(tmp_path / "missing.yaml")
    assert (finding.severity, "cannot be read" in finding.text) == ("error", True)


OURS = {key: value for key, value in GOOD.items() if key != "prioritizeVerb"}
BINDS = {"urlPrefix": "http://10.0.0.1/other", "filterVerb": "predicates", "bindVerb": "bind"}


@pytest.mark.parametrize(
    ("extenders", "rest", "said"),
    [
        ([OURS], {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "apiVersion: kube-scheduler refuses"),
        ([OURS], {"apiVersion": "v1", "kind": "Policy"}, "a Policy is refused"),
        ([OURS | {"bindVerb": "bind"}, BINDS], {}, "extenders: 2 have a bindVerb"),
        ([GOOD | {"weight": 0}], {}, "extenders[0].weight: must be a number above 0"),
        ([OURS | {"httpTimeout": 2}], {}, "extenders[0].httpTimeout: 2 must have a unit"),
        ([OURS | {"httpTimeout": "2"}], {}, "extenders[0].httpTimeout: '2' must have a unit"),
        ([OURS | {"httpTimeout": 2_000_000_000}], {}, "extenders[0].httpTimeout"),
        (
            [OURS | {"filterverb": "x"}],
            {},
            "extenders[0].filterverb: kube-scheduler refuses unknown fields",
        ),
        ([OURS | {"ignoreable": True}], {}, "unknown fields: did you mean ignorable?"),
        ([GOOD | {"prioritizeVerb": "prioritise"}], {}, "extenders.prioritizeVerb: 'prioritise' must be prioritize"),
        ([OURS | {"bindVerb": "binding"}], {}, "extenders.bindVerb: 'binding' must be bind"),
        (
            [OURS, BINDS | {"managedResources": [{"name": "a.b/c"}, {"name": "a.b/c"}]}],
            {},
            "extenders[1].managedResources: kube-scheduler accepts a.b/c only once",
        ),
    ],
)
def test_what_kube_scheduler_refuses_is_an_error(scheduler, extenders, rest, said):
    [(severity, text)] = scheduler(*extenders, **rest)
    assert severity == "error"
    assert said in text


@pytest.mark.parametrize("timeout", ["2s", "1m30s", "0", "1.5h", "500ms"])
def test_a_timeout_with_a_unit_is_good(scheduler, timeout):
    assert scheduler(OURS | {"httpTimeout": timeout}) == []


def test_that_the_scheduler_does_not_look_at_a_resource_is_a_warning(scheduler):
    other = {"urlPrefix": "https://10.0.0.1", "filterVerb": "filter", "managedResources": [{"name": "nvidia.com/gpu"}]}
    assert scheduler(OURS, other) == []
    other["managedResources"][0]["ignoredByScheduler"] = True
    [(severity, text)] = scheduler(OURS, other)
    assert severity == "warning"
    assert "extenders[1].managedResources: nvidia.com/gpu has ignoredByScheduler" in text


@pytest.fixture
def written(tmp_path):
    """What is found in a file with these documents."""

    def check(*documents):
        file = tmp_path / "scheduler.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        return [(each.severity, each.text.replace(f"{file}", "it")) for each in checks.scheduler_configuration(file)]

    return check


def configuration(**extender):
    version = "kubescheduler.config.k8s.io/v1"
    return {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "extenders": [OURS | extender]}


def config_map(text):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1", "any.yaml": text}}


def test_a_configuration_is_found_in_a_config_map(written):
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}}
    assert written(account, config_map(yaml.safe_dump(configuration()))) == []
    bad = config_map(yaml.safe_dump(configuration(preemptVerb="")))
    [(_, text)] = written(account, bad)
    assert text.startswith("it, document 2, any.yaml: extenders.preemptVerb")
    [(severity, text)] = written(config_map("a: 1"))
    assert (severity, "no extenders" in text) == ("error", True)


def test_a_configuration_that_is_not_the_first_document_is_not_read(written):
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}}
    assert written(account, configuration()) == [
        ("error", "it, document 2: kube-scheduler reads only the first document of a file")
    ]


def test_a_config_map_that_is_no_yaml_is_an_error(written):
    [(severity, text)] = written(config_map("a: ["))
    assert (severity, text.split(":")[0]) == ("error", "it cannot be read")


def test_a_budget_that_never_allows_an_eviction_is_warned_of(folder):
    budgets = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "a"},
            "spec": {"selector": {}, "maxUnavailable": allowed},
        }
        for name, allowed in (("never", 0), ("some", 1))
    ]
    found = [text for _, text in found_of(folder, *budgets) if "PodDisruptionBudget" in text]
    assert len(found) == 1
    assert found[0].startswith("PodDisruptionBudget a/never never allows an eviction")
