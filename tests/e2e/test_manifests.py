"""What operators install, as the real API server and the real scheduler see it."""

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.controlplane.api import Api, path, read_manifests
from tests.controlplane.objects import condition, elastic_quota, is_bound, pod
from tests.controlplane.processes import free_port, wait_until
from tests.controlplane.quotaward import install_rights, right_to_bind
from tests.controlplane.scheduler import Scheduler
from tests.reading import documents

MANIFESTS = Path(__file__).parents[2] / "manifests"
SYSTEM, SCHEDULER = "quotaward-system", "quotaward-scheduler"
OTHERS = "kustomize.config.k8s.io/", "kubescheduler.config.k8s.io/", "monitoring.coreos.com/"
"""What is not for this API server: files for programs, and what needs an operator."""
FILES = sorted(
    file
    for file in MANIFESTS.rglob("*.yaml")
    if "chart" not in file.parts
    and not any(document["apiVersion"].startswith(OTHERS) for document in documents(file.read_text()))
)
SAMPLE = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: test
  namespace: default
spec:
  max:
    cpu: 20
    memory: 40Gi
    nvidia.com/gpu: 2
  min:
    cpu: 10
    memory: 20Gi
    nvidia.com/gpu: 1
"""


@pytest.fixture
def api(cluster) -> Api:
    return cluster.api


@pytest.fixture
def system(api) -> str:
    """Quotaward's namespace."""
    [namespace] = read_manifests(MANIFESTS / "rbac/namespace.yaml")
    api.apply(namespace)
    return SYSTEM


# Everything


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(MANIFESTS)))
def test_the_api_server_accepts(api, system, file):
    for item in read_manifests(file):
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        accepted = api.apply(item, **query)
        assert accepted["metadata"]["name"] == item["metadata"]["name"]


@pytest.mark.parametrize(
    "values",
    [
        "admission=true,resize=true,bind=true,gates=true,queuedJobs=true",
        "run=standalone,patience=true",
        "run=none,patience=true,admission=true,queuedJobs=true",
    ],
)
def test_the_api_server_accepts_what_the_chart_renders(api, system, install_tools, values):
    flags = ("--namespace", system, "--include-crds", "--set", values)
    command = [str(install_tools["helm"]), "template", "quotaward", str(MANIFESTS / "chart"), *flags]
    rendered = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for item in yaml.safe_load_all(rendered):
        accepted = api.apply(item, dryRun="All", fieldValidation="Strict")
        assert accepted["metadata"]["name"] == item["metadata"]["name"]


@pytest.mark.parametrize("file", ["base/deployment.yaml", "overlays/standalone/deployment.yaml"])
def test_the_namespace_admits_the_pods_of_the_deployment(api, system, file):
    [deployment] = read_manifests(MANIFESTS / file)
    template = deployment["spec"]["template"]
    metadata = template["metadata"] | {"name": "replica", "namespace": system}
    replica = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    api.apply(replica, dryRun="All")
    ours = template["spec"].get("initContainers", template["spec"]["containers"])[0]
    ours["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(httpx.HTTPStatusError, match="violates PodSecurity"):
        api.apply(replica, dryRun="All")


# ElasticQuotas


def quota(**spec: Any) -> dict[str, Any]:
    return {**elastic_quota("default"), "spec": spec}  # as it stands, with numbers that stay numbers


def test_the_sample_of_the_specification_is_accepted_unchanged(api):
    sample = yaml.safe_load(SAMPLE)
    assert api.apply(sample, dryRun="All", fieldValidation="Strict")["spec"] == sample["spec"]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"max": {"cpu": 2}},
        {"min": {"cpu": 10}, "max": {"cpu": 2}},  # Quotaward says so in a condition
        {"min": {"cpu": "500m", "memory": "1.5Gi", "example.com/a": "1e3"}, "max": {"memory": "12E"}},
        {"min": {"cpu": 0}, "max": {"cpu": "0"}},
    ],
    ids=str,
)
def test_a_quota_is_accepted_with(api, spec):
    assert api.apply(quota(**spec), dryRun="All", fieldValidation="Strict")["spec"] == spec


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"max": {"cpu": -2}}, "must be a quantity of zero or more"),
        ({"min": {"cpu": "-500m"}}, "must be a quantity of zero or more"),
        ({"min": {"cpu": "1e1.5"}}, "must be a quantity of zero or more"),  # which the pattern lets through
        ({"min": {"cpu": "lots"}}, "should match"),
        ({"min": {"cpu": 0.5}}, "must be of type integer,string"),
        ({"max": 3}, "must be of type object"),
    ],
    ids=str,
)
def test_a_quota_is_refused_with(api, spec, why):
    with pytest.raises(httpx.HTTPStatusError, match=why):
        api.create(quota(**spec))


def test_only_the_status_subresource_changes_the_status(cluster):
    namespace = cluster.namespace()
    status = {"used": {"cpu": "1"}}
    assert "status" not in cluster.api.create(elastic_quota(namespace, max={"cpu": 2}) | {"status": status})
    cluster.api.patch("elasticquotas", "quota/status", {"status": status}, namespace)
    assert cluster.api.get("elasticquotas", "quota", namespace)["status"] == status


def test_a_listing_shows_what_is_used_of_what(cluster):
    namespace = cluster.namespace()
    cluster.quota(namespace, min={"cpu": 1}, max={"cpu": 2, "memory": "1Gi"})
    conflict = {"type": "Conflict", "status": "True", "reason": "Older", "message": "an older quota is in force"}
    conflict["lastTransitionTime"] = "2025-01-01T00:00:00Z"
    invalid = conflict | {"type": "Invalid", "status": "False"}
    status = {"used": {"cpu": "1"}, "conditions": [invalid, conflict]}
    cluster.api.patch("elasticquotas", "quota/status", {"status": status}, namespace)
    as_table = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    table = cluster.api.request("GET", path("elasticquotas", namespace), headers=as_table)
    columns = [column["name"] for column in table["columnDefinitions"]]
    row = dict(zip(columns, table["rows"][0]["cells"], strict=True))
    del row["Age"]
    assert row == {
        "Name": "quota",
        "Used": '{"cpu":"1"}',
        "Min": '{"cpu":"1"}',
        "Max": '{"cpu":"2","memory":"1Gi"}',
        "Problem": "Conflict",
    }


def test_a_listing_shows_what_is_reserved_for_whom_and_what_holds_it_up(cluster):
    victims = [{"namespace": "b", "name": name, "uid": name} for name in ("v1", "v2")]
    spec = {
        "reason": "Reclaim",
        "pod": {"namespace": "a", "name": "p", "uid": "u"},
        "nodeName": "n1",
        "victims": victims,
    }
    kind = {"apiVersion": "quotaward.dev/v1alpha1", "kind": "Reservation"}
    cluster.api.create(kind | {"metadata": {"name": "listed"}, "spec": spec})
    status = {"blockedSince": (datetime.now(UTC) - timedelta(minutes=7)).strftime("%Y-%m-%dT%H:%M:%SZ")}
    cluster.api.patch("reservations", "listed/status", {"status": status})
    as_table = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    table = cluster.api.request("GET", path("reservations", name="listed"), headers=as_table)
    cluster.api.delete("reservations", "listed")
    columns = [column["name"] for column in table["columnDefinitions"]]
    row = dict(zip(columns, table["rows"][0]["cells"], strict=True))
    assert row["Blocked"] == "7m"
    shown = {name: row[name] for name in ("Reason", "Namespace", "Pod", "Node", "Freed", "Failed", "Victims")}
    assert shown == {
        "Reason": "Reclaim",
        "Namespace": "a",
        "Pod": "p",
        "Node": "n1",
        "Freed": None,
        "Failed": None,
        "Victims": "v1",
    }


def test_kubectl_shows_all_three_in_one_table_each(cluster, install_tools):
    namespace = cluster.namespace()
    cluster.quota(namespace, min={"cpu": 1}, max={"cpu": 2})
    cluster.queue("q", weight=3)
    cluster.api.patch("elasticquotas", "quota/status", {"status": {"used": {"cpu": "1"}}}, namespace)
    status = {"state": "Open", "allocated": {"cpu": "1"}, "deserved": {"cpu": "2"}}
    cluster.api.patch("queues", "q/status", {"status": status})
    spec = {"reason": "Starving", "pod": {"namespace": "a", "name": "p", "uid": "u"}, "nodeName": "n1", "job": "pods/p"}
    kind = {"apiVersion": "quotaward.dev/v1alpha1", "kind": "Reservation"}
    cluster.api.create(kind | {"metadata": {"name": "kept"}, "spec": spec})
    command = [install_tools["kubectl"], "--kubeconfig", cluster.control_plane.kubeconfig, "get", "-A"]
    printed = subprocess.run([*command, "eq,queue,reservations"], check=True, capture_output=True, text=True).stdout
    tables = [[line.split() for line in table.splitlines()] for table in printed.split("\n\n")]
    ages = [row.pop() for table in tables for row in table[1:]]
    assert all(re.fullmatch(r"\d+s", age) for age in ages), printed
    kinds = "elasticquota.scheduling.x-k8s.io", "queue.scheduling.volcano.sh", "reservation.quotaward.dev"
    assert tables == [
        [
            ["NAMESPACE", "NAME", "USED", "MIN", "MAX", "PROBLEM", "AGE"],
            [namespace, f"{kinds[0]}/quota", '{"cpu":"1"}', '{"cpu":"1"}', '{"cpu":"2"}'],
        ],
        [
            ["NAMESPACE", "NAME", "WEIGHT", "STATE", "ALLOCATED", "DESERVED", "PARENT", "PROBLEM", "AGE"],
            [f"{kinds[1]}/q", "3", "Open", '{"cpu":"1"}', '{"cpu":"2"}'],
        ],
        [
            [
                "NAMESPACE",
                "NAME",
                "REASON",
                "NAMESPACE",
                "JOB",
                "POD",
                "NODE",
                "PROMISED",
                "FREED",
                "BLOCKED",
                "FAILED",
                "AGE",
            ],
            [f"{kinds[2]}/kept", "Starving", "a", "pods/p", "p", "n1"],
        ],
    ]


# Rights


def may(api: Api, account: str, verb: str, resource: str, system: str = SYSTEM, **attributes: str) -> bool:
    """Whether the service account may do that, in every namespace unless one is named."""
    group, _, resource = resource.rpartition(":")
    resource, _, subresource = resource.partition("/")
    attributes |= {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": f"system:serviceaccount:{system}:{account}", "resourceAttributes": attributes},
    }
    return api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", json=review)["status"]["allowed"]


@pytest.mark.parametrize("resource", ["pods", "nodes", "scheduling.x-k8s.io:elasticquotas"])
def test_quotaward_may_watch(api, resource):
    install_rights(api)
    wait_until(lambda: may(api, "quotaward", "list", resource), f"it may list {resource}")
    wait_until(lambda: may(api, "quotaward", "watch", resource), f"it may watch {resource}")
    for verb in ("create", "update", "patch", "delete"):
        assert not may(api, "quotaward", verb, resource)


def test_quotaward_may_write_only_what_it_must(api):
    install_rights(api)
    wait_until(lambda: may(api, "quotaward", "patch", "pods/status"), "it may wake pods")
    for verb, resource in (
        ("update", "pods/status"),
        ("patch", "pods"),
        ("delete", "pods"),
        ("list", "secrets"),
        ("list", "configmaps"),
        ("patch", "scheduling.x-k8s.io:elasticquotas"),
        ("patch", "quotaward.dev:reservations"),
        ("watch", "events"),
    ):
        assert not may(api, "quotaward", verb, resource), (verb, resource)


def test_quotaward_may_bind_only_with_the_rights_for_that(api):
    install_rights(api)
    wait_until(lambda: not may(api, "quotaward", "create", "pods/binding"), "it may not bind pods")
    with right_to_bind(api):
        wait_until(lambda: may(api, "quotaward", "create", "pods/binding"), "it may bind pods")


# The second scheduler


@pytest.fixture
def second_scheduler(cluster, system):
    """Makes the scheduler of the manifests, with its own rights; only addresses and files are this machine's."""
    control_plane, api = cluster.control_plane, cluster.api
    api.apply_files(MANIFESTS / "base/scheduler-rbac.yaml")
    wait_until(
        lambda: (
            may(api, SCHEDULER, "get", "coordination.k8s.io:leases", namespace=system, name=SCHEDULER)
            and may(api, SCHEDULER, "list", "persistentvolumeclaims")
        ),
        "the scheduler has its rights",
    )
    kubeconfig = control_plane.directory / "second-scheduler.kubeconfig"
    kubeconfig.write_text(api.kubeconfig(api.service_account_token(SCHEDULER, system)))

    def make(url: str) -> Scheduler:
        [configuration] = yaml.safe_load_all((MANIFESTS / "scheduler/config.yaml").read_text())
        configuration["clientConnection"]["kubeconfig"] = str(kubeconfig)
        configuration["extenders"][0]["urlPrefix"] = f"{url}/extender"
        return Scheduler(control_plane, **configuration)

    yield make
    for lease in api.items("leases", system):  # so that the next scheduler need not wait until it has expired
        api.delete("leases", lease["metadata"]["name"], system)


def leases_held(api: Api, namespace: str) -> set[str]:
    """The names of the leases that somebody holds."""
    return {
        lease["metadata"]["name"]
        for lease in api.items("leases", namespace)
        if lease.get("spec", {}).get("holderIdentity")
    }


def test_the_second_scheduler_starts_and_takes_its_own_lease(cluster, second_scheduler):
    with second_scheduler(f"http://127.0.0.1:{free_port()}") as running:
        wait_until(
            lambda: SCHEDULER in leases_held(cluster.api, SYSTEM), "it holds its lease", detail=running.process.tail
        )


def test_the_second_scheduler_places_nothing_while_quotaward_does_not_answer(cluster, second_scheduler):
    namespace = cluster.namespace()
    cluster.node()
    with second_scheduler(f"http://127.0.0.1:{free_port()}") as running:
        cluster.api.create(pod("waits", namespace, schedulerName=SCHEDULER))
        scheduled = wait_until(
            lambda: condition(cluster.api.get("pods", "waits", namespace), "PodScheduled"),
            "it was tried",
            detail=running.process.tail,
        )
    assert (scheduled["status"], scheduled["reason"]) == ("False", "SchedulerError")
    assert "connection refused" in scheduled["message"]


def test_the_second_scheduler_enforces_quotas_for_the_pods_that_name_it(cluster, quotaward, second_scheduler):
    namespace = cluster.namespace()
    cluster.node()
    cluster.quota(namespace, max={"cpu": 1})
    for name, cpu in (("fits", 1), ("exceeds", 2)):
        cluster.api.create(pod(name, namespace, cpu=cpu, schedulerName=SCHEDULER))
    cluster.api.create(pod("elsewhere", namespace))  # nobody here schedules for the default scheduler
    with second_scheduler(quotaward.url) as running:
        wait_until(
            lambda: (
                is_bound(cluster.api.get("pods", "fits", namespace))
                and condition(cluster.api.get("pods", "exceeds", namespace), "PodScheduled")
            ),
            "one is bound and one is tried",
            detail=running.process.tail,
        )
    refused = condition(cluster.api.get("pods", "exceeds", namespace), "PodScheduled")
    assert "ElasticQuota max exceeded: cpu" in refused["message"]
    assert not condition(cluster.api.get("pods", "elsewhere", namespace), "PodScheduled")


# The admission policies. All of manifests/admission: test_who_can_do_what.py


@pytest.fixture
def policy(cluster):
    """The policy in force, in the namespaces that have a quota or a queue."""
    yield from _in_force(cluster, "admission/scheduler-name.yaml")


@pytest.fixture
def no_growth(cluster):
    """The same of the one that forbids growth to everybody."""
    yield from _in_force(cluster, "resize/no-growth.yaml")


@pytest.fixture(params=["an ElasticQuota", "a queue"])
def bounded(request, cluster):
    """A namespace whose pods are bounded, and by what."""
    if request.param == "a queue":
        return cluster.namespace(queue="q"), request.param
    namespace = cluster.namespace()
    cluster.quota(namespace, max={"cpu": 9})
    return namespace, request.param


def _in_force(cluster, name):
    items = read_manifests(MANIFESTS / name)
    for item in items:
        cluster.api.apply(item)
    yield
    for item in reversed(items):
        plural = {"ValidatingAdmissionPolicy": "validatingadmissionpolicies"}.get(
            item["kind"], f"{item['kind'].lower()}s"
        )
        cluster.api.request("DELETE", f"/apis/{item['apiVersion']}/{plural}/{item['metadata']['name']}")


def test_a_namespace_with_bounds_admits_only_pods_that_its_scheduler_places(cluster, policy, bounded):
    (namespace, has), free = bounded, cluster.namespace()

    def objection(item: dict[str, Any]) -> str:
        try:
            cluster.api.apply(item, dryRun="All")
        except httpx.HTTPStatusError as error:
            return str(error)
        return ""

    by_default, by_ours = pod("p", namespace), pod("p", namespace, schedulerName=SCHEDULER)
    told = f"this namespace has {has}: set spec.schedulerName to quotaward-scheduler"
    wait_until(lambda: told in objection(by_default), "it is in force")
    assert objection(by_ours) == ""
    assert objection(pod("p", free)) == ""
    by_ours["spec"]["nodeName"] = "node"
    assert f"this namespace has {has}: leave spec.nodeName to the scheduler" in objection(by_ours)


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_a_pod_with_bounds_may_shrink_in_place_and_not_grow(cluster, no_growth, bounded, where):
    (namespace, has), free = bounded, cluster.namespace()
    sidecar = {"name": "sidecar", "image": "none", "restartPolicy": "Always"}
    sidecar["resources"] = {"requests": {"cpu": "2"}}
    for home in (namespace, free):
        cluster.api.create(pod("p", home, cpu=2, schedulerName=SCHEDULER, initContainers=[sidecar]))
    name = "main" if where == "containers" else "sidecar"

    def objection(home: str, **requests: str) -> str:
        body = {"spec": {where: [{"name": name, "resources": {"requests": requests}}]}}
        try:
            cluster.api.request(
                "PATCH",
                f"/api/v1/namespaces/{home}/pods/p/resize?dryRun=All",
                json=body,
                headers={"Content-Type": "application/strategic-merge-patch+json"},
            )
        except httpx.HTTPStatusError as error:
            return str(error)
        return ""

    refused = f"this namespace has {has}: its pods may not grow in place"
    wait_until(lambda: refused in objection(namespace, cpu="2100m"), "it is in force")
    assert objection(namespace, cpu="1900m") == ""
    assert objection(free, cpu="3") == ""
    assert refused in objection(namespace, cpu="1", memory="1Gi"), "it had none"
    cluster.api.patch("namespaces", namespace, {"metadata": {"labels": {"quotaward.dev/growth": "allowed"}}})
    wait_until(lambda: objection(namespace, cpu="2100m") == "", "operators may leave a namespace out")
