"""What kustomize and helm make of the manifests: the same, both."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.job_kinds import BUILT_IN
from tests.reading import document, documents

pytestmark = pytest.mark.slow

MANIFESTS = Path(__file__).parents[2] / "manifests"
Objects = list[dict[str, Any]]


def _run(*command: str) -> Objects:
    return documents(_printed(*command))


@cache
def _printed(*command: str) -> str:
    """What a command prints, which is run once: of the same files both tools make the same, and some take a second."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def kustomize(install_tools) -> Callable[[str], Objects]:
    """The objects of a kustomization."""
    return lambda directory: _run(str(install_tools["kustomize"]), "build", str(MANIFESTS / directory))


@pytest.fixture(scope="module")
def helm(install_tools) -> Callable[..., Objects]:
    """The objects of the chart with these flags, as a release in Quotaward's usual namespace."""

    def template(*flags: str, namespace: str = "quotaward-system") -> Objects:
        chart = ("template", "quotaward", str(MANIFESTS / "chart"), "--include-crds", "--namespace", namespace)
        return _run(str(install_tools["helm"]), *chart, *flags)

    return template


# Kustomize


def test_the_base_gives_quotawards_rights_to_the_account_of_the_pod(kustomize):
    objects = kustomize("base")
    [deployment] = [o for o in objects if o["kind"] == "Deployment"]
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    assert [o["metadata"]["name"] for o in objects if o["kind"] == "ServiceAccount"] == [account]
    for binding in (o for o in objects if o["kind"] in ("RoleBinding", "ClusterRoleBinding")):
        subject = {"kind": "ServiceAccount", "name": account, "namespace": "quotaward-system"}
        assert binding["subjects"] == [subject], binding["metadata"]["name"]
    bound = {o["roleRef"]["name"] for o in objects if "roleRef" in o}
    assert "quotaward" in bound
    assert "quotaward-bind" not in bound


def test_the_base_renames_the_configuration_and_nothing_else(kustomize):
    objects = kustomize("base")
    [configuration] = [o for o in objects if o["kind"] == "ConfigMap"]
    assert configuration["data"]["config.yaml"] == (MANIFESTS / "scheduler/config.yaml").read_text()
    [deployment] = [o for o in objects if o["kind"] == "Deployment"]
    [volume] = deployment["spec"]["template"]["spec"]["volumes"]
    assert volume["configMap"]["name"] == configuration["metadata"]["name"]
    [role] = [o for o in objects if o["kind"] == "Role" and "scheduler" in o["metadata"]["name"]]
    assert role["rules"][0]["resourceNames"] == [
        "quotaward-scheduler"
    ]  # the lease's, which looked like a reference once


def test_the_overlay_for_the_default_scheduler_gives_rights_to_a_certificates_user(kustomize):
    objects = kustomize("overlays/default-scheduler")
    assert not [o for o in objects if o["kind"] == "ServiceAccount"]
    for binding in (o for o in objects if o["kind"] == "ClusterRoleBinding"):
        [subject] = binding["subjects"]
        assert (subject["kind"], subject["name"]) == ("User", "quotaward")
    assert sum(o["kind"] == "ClusterRoleBinding" for o in objects) == 1


def test_the_right_to_bind_is_built_for_the_account_and_for_the_certificates_user(kustomize):
    for directory, subject in (("bind", "ServiceAccount"), ("overlays/default-scheduler/bind", "User")):
        [binding] = [o for o in kustomize(directory) if o["kind"] == "ClusterRoleBinding"]
        assert binding["roleRef"]["name"] == "quotaward-bind"
        [given] = binding["subjects"]
        assert (given["kind"], given["name"]) == (subject, "quotaward")


def test_the_right_to_delete_is_built_for_the_account_and_for_the_certificates_user(kustomize):
    for directory, subject in (("patience", "ServiceAccount"), ("overlays/default-scheduler/patience", "User")):
        [binding] = [o for o in kustomize(directory) if o["kind"] == "ClusterRoleBinding"]
        assert binding["roleRef"]["name"] == "quotaward-patience"
        [given] = binding["subjects"]
        assert (given["kind"], given["name"]) == (subject, "quotaward")


@pytest.mark.parametrize("directory", ["admission", "resize"])
def test_the_admission_policies_are_kustomize(kustomize, directory):
    kinds = {o["kind"] for o in kustomize(directory)}
    assert kinds == {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


def test_admission_asks_for_the_scheduler_that_asks_quotaward(kustomize):
    overlay = "overlays/default-scheduler"
    for directory, file in (
        ("admission", "scheduler/config.yaml"),
        (f"{overlay}/admission", f"{overlay}/kube-scheduler-config.yaml"),
    ):
        [policy] = [
            each["spec"]
            for each in kustomize(directory)
            if (each["kind"], each["metadata"]["name"]) == ("ValidatingAdmissionPolicy", "quotaward-scheduler-name")
        ]
        [named] = [each["expression"] for each in policy["variables"] if each["name"] == "scheduler"]
        configuration = document((MANIFESTS / file).read_text())
        [profile] = configuration.get("profiles", [{"schedulerName": "default-scheduler"}])
        assert named == f"'{profile['schedulerName']}'"


@pytest.mark.parametrize(
    ("directory", "accounts"),
    [
        (
            "jobs/queued",
            [f"system:serviceaccount:quotaward-system:{name}" for name in ("quotaward", "quotaward-scheduler")],
        ),
        ("overlays/default-scheduler/jobs/queued", ["quotaward"]),
    ],
)
def test_policies_for_waiting_jobs_know_whom_the_right_is_given_to(kustomize, directory, accounts):
    objects = {(each["kind"], each["metadata"]["name"]): each for each in kustomize(directory)}
    given = {subject["name"] for subject in objects["ClusterRoleBinding", "quotaward-jobs"]["subjects"]}
    assert given == {account.rpartition(":")[2] for account in accounts}
    for kind, name in (
        ("MutatingAdmissionPolicy", "quotaward-jobs-stay-suspended"),
        ("MutatingAdmissionPolicy", "quotaward-jobs-keep-granted"),
        ("ValidatingAdmissionPolicy", "quotaward-jobs-own-changes"),
    ):
        condition = objects[kind, name]["spec"]["matchConditions"][0]["expression"]
        assert f"request.userInfo.username in {accounts}" in condition


@pytest.mark.parametrize("directory", ["base", "overlays/standalone", "overlays/default-scheduler"])
def test_an_overlay_may_leave_definitions_alone_and_nothing_else(kustomize, tmp_path, directory):
    def relative(path: str) -> str:
        return os.path.relpath((MANIFESTS / path).resolve(), tmp_path.resolve())

    overlay = {"resources": [relative(directory)], "components": [relative("keep-definitions")]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    without, whole = kustomize(str(tmp_path)), kustomize(directory)
    assert without == [each for each in whole if each["kind"] != "CustomResourceDefinition"]
    assert len(without) < len(whole)


# Helm


def compared(objects: Objects) -> dict[tuple[str, str], dict[str, Any]]:
    """The objects by kind and name, without what each of the two does to roll the pods with their configuration."""
    text = json.dumps(objects)
    objects = json.loads(re.sub(r"(quotaward-scheduler-config)-[0-9a-z]{10}\b", r"\1", text))
    for each in objects:
        annotations = each.get("spec", {}).get("template", {}).get("metadata", {}).get("annotations", {})
        annotations.pop("checksum/config", None)
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


@pytest.mark.parametrize(
    ("flags", "directories"),
    [
        ((), ["base"]),
        (("--set", "run=standalone"), ["overlays/standalone"]),
        (("--set", "run=none"), ["overlays/default-scheduler"]),
        (("--set", "run=standalone,bind=true"), ["overlays/standalone", "bind"]),
        (("--set", "run=none,bind=true"), ["overlays/default-scheduler", "overlays/default-scheduler/bind"]),
        (("--set", "run=standalone,patience=true"), ["overlays/standalone", "patience"]),
        (("--set", "run=none,patience=true"), ["overlays/default-scheduler", "overlays/default-scheduler/patience"]),
        (("--set", "admission=true"), ["base", "admission"]),
        (("--set", "run=none,admission=true"), ["overlays/default-scheduler", "overlays/default-scheduler/admission"]),
        (("--set", "resize=true"), ["base", "resize"]),
        (("--set", "ignoreDisruptions=true"), ["base", "jobs/ignore-disruptions"]),
        (("--set", "queuedJobs=true"), ["base", "jobs/queued"]),
        (("--set", "run=standalone,queuedJobs=true"), ["overlays/standalone", "jobs/queued"]),
        (
            ("--set", "run=none,queuedJobs=true"),
            ["overlays/default-scheduler", "overlays/default-scheduler/jobs/queued"],
        ),
        (("--set", "jobKinds={JobSet}"), ["base", "jobs/kinds/jobset"]),
        (
            ("--set", f"run=standalone,jobKinds={{{','.join(BUILT_IN)}}}"),
            ["overlays/standalone", *(f"jobs/kinds/{kind.lower()}" for kind in BUILT_IN)],
        ),
        (
            ("--set", f"run=none,jobKinds={{{','.join(BUILT_IN)}}}"),
            ["overlays/default-scheduler", *(f"overlays/default-scheduler/jobs/kinds/{k.lower()}" for k in BUILT_IN)],
        ),
        (("--set", "run=standalone,serviceMonitor=true"), ["overlays/standalone", "servicemonitor"]),
        (("--set", "gates=true"), ["base", "gates"]),
        (("--set", "run=standalone,gates=true"), ["overlays/standalone", "gates"]),
        (("--set", "run=none,gates=true"), ["overlays/default-scheduler", "overlays/default-scheduler/gates"]),
    ],
    ids=[
        *("sidecar", "standalone", "rights", "standalone that binds", "rights to bind"),
        *("standalone that deletes", "rights to delete", "admission", "admission for the cluster's own scheduler"),
        *("resize", "jobs that ignore disruptions"),
        *("jobs that wait", "standalone with jobs that wait", "rights to start jobs"),
        *("jobs of another kind", "standalone with all kinds", "rights to start all kinds"),
        "standalone that Prometheus reads",
        *("gates", "standalone with gates", "rights to open gates"),
    ],
)
def test_the_chart_gives_the_objects_that_kustomize_gives(kustomize, helm, flags, directories):
    charted = compared(helm("--set", "createNamespace=true", *flags))
    built = compared([each for directory in directories for each in kustomize(directory)])
    assert charted.keys() == built.keys()
    for key, item in built.items():
        assert charted[key] == item, key


def test_the_overlay_of_the_webhook_has_the_right_and_no_policy_that_changes_jobs(kustomize):
    policies, webhook = compared(kustomize("jobs/queued")), compared(kustomize("jobs/webhook"))
    changing = {key for key in policies if key[0].startswith("MutatingAdmissionPolicy")}
    assert {kind for kind, _ in changing} == {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    configuration = webhook.pop(("MutatingWebhookConfiguration", "quotaward-jobs"))
    assert webhook == {key: item for key, item in policies.items() if key not in changing}
    assert len(configuration["webhooks"]) == 2


@pytest.mark.parametrize(("value", "directory"), [("queuedJobs", "jobs/webhook"), ("gates", "gates/webhook")])
def test_the_chart_has_the_webhooks_with_the_ca_that_its_values_say(kustomize, helm, value, directory):
    kind = "MutatingWebhookConfiguration"
    flags = f"run=standalone,{value}=webhook,webhook.caBundle=QQ==,webhook.failurePolicy=Fail"
    charted, policies = compared(helm("--set", flags)), compared(helm("--set", f"run=standalone,{value}=true"))
    for (of, name), item in compared(kustomize(directory)).items():
        for each in item["webhooks"] if of == kind else ():
            each["failurePolicy"] = "Fail"
            each["clientConfig"]["caBundle"] = "QQ=="
        assert charted[of, name] == item
    assert {of for of, _ in charted.keys() - policies.keys()} == {kind}
    assert all(of.startswith("MutatingAdmissionPolicy") for of, _ in policies.keys() - charted.keys())


def test_an_injector_may_fill_in_the_ca_of_the_webhooks(helm):
    flags = "run=standalone,queuedJobs=webhook,webhook.annotations.cert-manager\\.io/inject-ca-from=a/b"
    [webhook] = [o for o in helm("--set", flags) if o["kind"] == "MutatingWebhookConfiguration"]
    assert webhook["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "a/b"}
    assert all("caBundle" not in each["clientConfig"] for each in webhook["webhooks"])


@pytest.mark.parametrize(
    ("flags", "missing"),
    [("webhook.caBundle=QQ==", "needs run=standalone"), ("run=standalone", "needs webhook.caBundle")],
)
def test_the_chart_has_no_webhook_that_nobody_could_ask(helm, flags, missing):
    with pytest.raises(AssertionError, match=missing):
        helm("--set", f"queuedJobs=webhook,{flags}")


def test_the_values_of_the_chart_are_put_in(helm):
    values = "image.repository=here/quotaward,image.tag=v9,replicas=3,nodeSelector.a=b,extraArgs={--log.format=json}"
    objects = helm("--set", f"run=standalone,gates=true,queuedJobs=true,{values}", namespace="elsewhere")
    assert "quotaward-system" not in json.dumps(objects)
    assert {o["metadata"].get("namespace", "elsewhere") for o in objects} == {"elsewhere"}
    [deployment] = [o for o in objects if o["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["replicas"] == 3
    assert pod["nodeSelector"] == {"a": "b"}
    [container] = pod["containers"]
    assert container["image"] == "here/quotaward:v9"
    assert container["args"][-1] == "--log.format=json"


PLACEMENT = {
    "affinity": {"podAntiAffinity": {}},
    "imagePullSecrets": [{"name": "registry"}],
    "priorityClassName": "mine",
    "topologySpreadConstraints": [{"topologyKey": "zone"}],
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"key": "system"}],
}


@pytest.mark.parametrize("run", ["sidecar", "standalone"])
def test_pods_of_the_chart_are_placed_as_its_values_say(helm, tmp_path, run):
    values = tmp_path / "values.yaml"
    added = {"podAnnotations": {"a": "b"}, "podLabels": {"team": "platform", "app.kubernetes.io/name": "other"}}
    values.write_text(json.dumps(PLACEMENT | added))
    pods = [
        next(o["spec"]["template"] for o in helm("--set", f"run={run}", *flags) if o["kind"] == "Deployment")
        for flags in ([], ["--values", str(values)])
    ]
    before, after = (pod["spec"] for pod in pods)
    assert {name: after[name] for name in PLACEMENT} == PLACEMENT
    assert before | PLACEMENT == after
    assert pods[1]["metadata"]["annotations"] == pods[0]["metadata"].get("annotations", {}) | {"a": "b"}
    assert pods[1]["metadata"]["labels"] == pods[0]["metadata"]["labels"] | {"team": "platform"}


def test_every_value_of_the_chart_stands_in_its_readme():
    values = document((MANIFESTS / "chart/values.yaml").read_text())
    table = (MANIFESTS / "chart/README.md").read_text()
    named = set(re.findall(r"`([a-zA-Z.]+)`", " ".join(row.split("|")[1] for row in table.splitlines() if "|" in row)))
    assert {name.partition(".")[0] for name in named} == set(values)


def test_in_another_namespace_quotaward_looks_for_its_lease_there(helm):
    for flags in ((), ("--set", "run=standalone")):
        objects = helm(*flags, namespace="elsewhere")
        [deployment] = [o for o in objects if o["kind"] == "Deployment"]
        pod = deployment["spec"]["template"]["spec"]
        [container] = [c for c in (*pod.get("initContainers", []), *pod["containers"]) if c["name"] == "quotaward"]
        assert "--leader.namespace=elsewhere" in container["args"]


def test_the_chart_is_well_formed(install_tools):
    lint = [str(install_tools["helm"]), "lint", "--strict", str(MANIFESTS / "chart")]
    done = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "flags",
    [
        ("--set", "run=everything"),
        ("--set", "replicas=-1"),
        ("--set", "replicas=1.5"),
        ("--set", "replicas=two"),
        ("--set", "image.tag=137"),  # would be the tag %!s(int64=137)
        ("--set", "gates=1"),
        ("--set-string", "gates=no"),
        ("--set", "queuedJobs=webhooks"),
        ("--set", "webhook.caBundle=-----BEGIN"),
        ("--set", "extraArgs=--log.format=json"),
        ("--set", "gate=true"),
        ("--set", "image.repo=x"),
    ],
    ids=" ".join,
)
def test_the_chart_refuses_values_that_mean_nothing(helm, flags):
    value = flags[1].partition("=")[0].replace(".", "/").replace("/repo", "")
    with pytest.raises(AssertionError, match=f"at '/{value}'|'{value}' not allowed"):
        helm(*flags)


@pytest.mark.parametrize(
    "value",
    ["gates", "admission", "resize", "ignoreDisruptions", "queuedJobs", "bind", "patience", "createNamespace"],
)
def test_a_switch_of_the_chart_is_off_also_as_text(helm, value):
    assert helm("--set-string", f"{value}=false") == helm()
    assert helm("--set-string", f"{value}=true") == helm("--set", f"{value}=true") != helm()


def test_the_chart_reads_no_metrics_where_nobody_can(helm):
    assert helm("--set-string", "serviceMonitor=false") == helm()
    for flags in ("serviceMonitor=true", "serviceMonitor=true,run=none"):
        with pytest.raises(AssertionError, match="serviceMonitor needs run=standalone"):
            helm("--set", flags)


def test_the_service_monitor_names_the_service_in_whatever_namespace(helm):
    objects = helm("--set", "run=standalone,serviceMonitor=true", namespace="elsewhere")
    [monitor] = [o for o in objects if o["kind"] == "ServiceMonitor"]
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["tlsConfig"]["serverName"] == "quotaward.elsewhere.svc"


def test_numbers_of_the_chart_may_be_text(helm):
    assert helm("--set-string", "replicas=3") == helm("--set", "replicas=3")


def test_every_value_of_the_chart_stands_in_its_schema():
    values = document((MANIFESTS / "chart/values.yaml").read_text())
    schema = json.loads((MANIFESTS / "chart/values.schema.json").read_text())
    assert schema["properties"].keys() - {"global"} == values.keys()
