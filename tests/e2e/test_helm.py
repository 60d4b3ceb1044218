"""The chart as an operator uses it: installed, upgraded and uninstalled by the real helm, on the real API server."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from app.store.heeded import JOBS_WAIT
from tests.access.certificates import Authority
from tests.cases.serving import serving
from tests.controlplane.api import Api, path
from tests.controlplane.gates import is_gated
from tests.controlplane.objects import Object, job, pod
from tests.controlplane.processes import wait_until
from tests.e2e.test_manifests import MANIFESTS, may

NAMESPACE = "quotaward-release"
PLURALS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
}


class Release:
    """What helm does with the chart."""

    def __init__(self, helm: str, control_plane: Any) -> None:
        self._helm = helm
        self._flags = ("--kubeconfig", str(control_plane.kubeconfig), "--namespace", NAMESPACE)
        self.api: Api = control_plane.api

    def run(self, *command: str) -> str:
        done = subprocess.run([self._helm, *command, *self._flags], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, values: str) -> None:
        self.run("install", "quotaward", str(MANIFESTS / "chart"), "--create-namespace", "--set", values)

    def upgrade(self, values: str) -> None:
        self.run("upgrade", "quotaward", str(MANIFESTS / "chart"), "--set", values)

    def objects(self) -> set[str]:
        """The URLs of what it says it consists of."""
        return {url_of(item) for item in yaml.safe_load_all(self.run("get", "manifest", "quotaward")) if item}

    def there(self, objects: set[str]) -> set[str]:
        """Those of them that the API server has."""
        return {each for each in objects if self.api.serves(each)}

    def may(self, verb: str, resource: str) -> bool:
        """Whether the account that the release's pods have may do that."""
        account = self.deployment()["spec"]["template"]["spec"]["serviceAccountName"]
        return may(self.api, account, verb, resource, system=NAMESPACE)

    def deployment(self) -> Any:
        """The one deployment of the release, as the API server has it."""
        [found] = [each for each in self.objects() if "/deployments/" in each]
        return self.api.request("GET", found)


def url_of(item: Object) -> str:
    version, kind, metadata = item["apiVersion"], item["kind"], item["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    where = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{where}/{PLURALS.get(kind, f'{kind.lower()}s')}/{metadata['name']}"


@pytest.fixture
def release(cluster, install_tools):
    api = cluster.api
    for resource in ("clusterroles", "clusterrolebindings"):  # those that other tests have applied are not helm's
        api.request("DELETE", path(resource), params={"labelSelector": "app.kubernetes.io/part-of=quotaward"})
    for resource in ("roles", "rolebindings"):
        for each in api.items(resource, "kube-system"):
            if each["metadata"]["name"].startswith("quotaward"):
                api.delete(resource, each["metadata"]["name"], "kube-system")
    release = Release(str(install_tools["helm"]), cluster.control_plane)
    yield release
    if json.loads(release.run("list", "--output", "json")):  # the test has failed
        release.run("uninstall", "quotaward")


def serves(release: Release, directory: Path) -> bool:
    """Whether Quotaward becomes ready as who, and with the Lease, that the release's deployment says."""
    template = release.deployment()["spec"]["template"]["spec"]
    containers = template.get("initContainers", []) + template["containers"]
    [quotaward] = [each for each in containers if each["name"] == "quotaward"]
    kubeconfig = directory / "kubeconfig"
    token = release.api.service_account_token(template["serviceAccountName"], NAMESPACE)
    kubeconfig.write_text(release.api.kubeconfig(token))
    flags = ("--kubeconfig", str(kubeconfig), *(each for each in quotaward["args"] if each.startswith("--leader")))
    with serving(*flags, log=directory / "serve.log") as server:
        wait_until(
            lambda: b"\nquotaward_leader 1.0" in server.get("/metrics").content, "it leads", detail=server.log_tail
        )
    return True


def test_a_release_is_installed_upgraded_and_leaves_nothing_but_the_definitions(cluster, release, tmp_path):
    release.install(
        "gates=true,admission=true,resize=true,ignoreDisruptions=true,queuedJobs=true,bind=true,patience=true"
    )
    installed = release.objects()
    assert release.there(installed) == installed
    for verb, resource in (("patch", "pods"), ("create", "pods/binding"), ("list", "nodes")):
        wait_until(lambda verb=verb, resource=resource: release.may(verb, resource), f"it may {verb} {resource}")
    assert serves(release, tmp_path)
    namespace = cluster.namespace()
    cluster.label(namespace, gated=True)
    wait_until(lambda: is_gated(cluster.api.apply(pod("p", namespace), dryRun="All")), "new pods are gated")

    release.upgrade("run=standalone,replicas=3,image.tag=v2")
    upgraded = release.objects()
    assert release.there(installed | upgraded) == upgraded
    deployment = release.deployment()
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert (deployment["spec"]["replicas"], container["image"]) == (3, "quotaward:v2")
    wait_until(lambda: not release.may("patch", "pods"), "it may not open gates any more")
    wait_until(lambda: not is_gated(cluster.api.apply(pod("p", namespace), dryRun="All")), "new pods are not gated")
    assert serves(release, tmp_path)

    release.run("uninstall", "quotaward")
    assert release.there(installed | upgraded) == set()
    assert cluster.api.items("elasticquotas") == []  # of a kind that is still there


def test_a_release_with_the_webhook_lets_the_api_server_ask_its_service(cluster, release):
    trusted = base64.b64encode(Authority().pem).decode()
    asks = f"run=standalone,queuedJobs=webhook,webhook.caBundle={trusted},webhook.failurePolicy=Fail"
    release.install(asks)
    installed = release.objects()
    assert release.there(installed) == installed
    wait_until(lambda: release.may("patch", "batch:jobs"), "it may start Jobs")
    namespace = cluster.namespace()
    cluster.api.patch("namespaces", namespace, {"metadata": {"labels": {JOBS_WAIT: "queued"}}})

    def refused() -> str:
        try:
            cluster.api.apply(job("tried", namespace), dryRun="All")
        except httpx.HTTPStatusError as error:
            return error.response.text
        return ""

    of_release = f"https://quotaward.{NAMESPACE}.svc:443/admission/gate"
    wait_until(lambda: of_release in refused(), "the API server asks the Service of the release", detail=refused)

    release.upgrade("queuedJobs=true")
    wait_until(lambda: cluster.api.apply(job("tried", namespace), dryRun="All")["spec"]["suspend"], "policies do it")
    assert not [each for each in release.there(installed) if "webhook" in each]
    release.run("uninstall", "quotaward")
