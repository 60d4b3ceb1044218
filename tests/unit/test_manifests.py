"""What operators install, checked without a server. The real API server checks it in tests/e2e/test_manifests.py."""

import re
from pathlib import Path
from typing import Any

import pytest

from app import checks
from app.settings import load
from app.store.heeded import GROWTH, IGNORE_DISRUPTIONS, JOBS_WAIT, PARALLELISM, QUEUED
from app.store.jobs import CRON_JOB, ENDED, JOB_CONTROLLER
from app.store.kinds import KINDS
from tests import job_kind_manifests, reading

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
FILES = sorted(file for file in MANIFESTS.rglob("*.yaml") if "chart" not in file.parts)
KUSTOMIZATIONS = [file for file in FILES if file.name == "kustomization.yaml"]
CONFIGURATIONS = [
    MANIFESTS / "scheduler/config.yaml",
    MANIFESTS / "overlays/default-scheduler/kube-scheduler-config.yaml",
]


def name(file: Path) -> str:
    return str(file.relative_to(MANIFESTS))


def documents(file: Path) -> list[dict[str, Any]]:
    return reading.documents(file.read_text())


def the(kind: str, file: str, called: str | None = None) -> dict[str, Any]:
    """The one object of this kind (and name) in a file."""
    found = [d for d in documents(MANIFESTS / file) if d["kind"] == kind]
    [only] = [d for d in found if called is None or d["metadata"]["name"] == called]
    return only


def deployment_pod() -> dict[str, Any]:
    return the("Deployment", "base/deployment.yaml")["spec"]["template"]["spec"]


def containers(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {container["name"]: container for container in pod.get("initContainers", []) + pod["containers"]}


def flags(container: dict[str, Any]) -> dict[str, str]:
    words = container.get("command", []) + container.get("args", [])
    return dict(word.removeprefix("--").split("=", 1) for word in words if word.startswith("--"))


def standalone_pod() -> dict[str, Any]:
    return the("Deployment", "overlays/standalone/deployment.yaml")["spec"]["template"]["spec"]


def static_pod() -> dict[str, Any]:
    return the("Pod", "overlays/default-scheduler/static-pod.yaml")["spec"]


# Every file


@pytest.mark.parametrize("file", FILES, ids=name)
def test_every_document_is_yaml_that_names_its_kind(file):
    for document in documents(file):
        assert document["apiVersion"]
        assert document["kind"]


@pytest.mark.parametrize("file", KUSTOMIZATIONS, ids=name)
def test_a_kustomization_lists_only_what_exists(file):
    kustomization = reading.document(file.read_text())
    for resource in kustomization.get("resources", []):
        path = file.parent / resource
        assert path.is_file() or (path / "kustomization.yaml").is_file(), resource
    for generator in kustomization.get("configMapGenerator", []):
        for source in generator["files"]:
            assert (file.parent / source).is_file(), source


@pytest.mark.parametrize("file", KUSTOMIZATIONS, ids=name)
def test_a_kustomization_leaves_out_no_file_beside_it(file):
    kustomization = reading.document(file.read_text())
    listed = set(kustomization.get("resources", []))
    listed |= {source for generator in kustomization.get("configMapGenerator", []) for source in generator["files"]}
    for_nodes = {"kube-scheduler-config.yaml", "static-pod.yaml"}  # these go onto disks, not to the API server
    beside = {other.name for other in file.parent.glob("*.yaml")} - {"kustomization.yaml"}
    assert beside - for_nodes == {entry for entry in listed if entry.endswith(".yaml")}


@pytest.mark.parametrize("file", [file for file in FILES if file.name != "kustomization.yaml"], ids=name)
def test_every_object_for_the_api_server_carries_the_same_labels(file):
    for document in documents(file):
        if "metadata" in document:
            labels = document["metadata"].get("labels", {})
            assert labels.get("app.kubernetes.io/part-of") == "quotaward", document["metadata"]["name"]


# The definition of ElasticQuota


@pytest.fixture
def definition():
    return the("CustomResourceDefinition", "crds/elasticquotas.yaml")


TYPES = {"object": dict, "array": list, "string": str, "integer": int}


def problems(schema: dict[str, Any], value: Any, where: str = "") -> list[str]:
    """What a structural schema, as far as this one goes, has against a value (its CEL rules are left to the server)."""
    types = (int, str) if schema.get("x-kubernetes-int-or-string") else TYPES[schema["type"]]
    if not isinstance(value, types) or isinstance(value, bool):
        return [f"{where}: {value!r} has the wrong type"]
    if isinstance(value, str):
        fits = re.search(schema.get("pattern", ""), value) and value in schema.get("enum", [value])
        return [] if fits else [f"{where}: {value!r} is not allowed"]
    if isinstance(value, list):
        return [text for n, inner in enumerate(value) for text in problems(schema["items"], inner, f"{where}[{n}]")]
    if isinstance(value, dict) and where != ".metadata":
        return _problems_of_a_map(schema, value, where)
    return []


def _problems_of_a_map(schema: dict[str, Any], value: dict[str, Any], where: str) -> list[str]:
    found = [f"{where}: {key} is missing" for key in schema.get("required", []) if key not in value]
    for key, inner in value.items():
        below = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
        found += problems(below, inner, f"{where}.{key}") if below else [f"{where}: {key} is unknown"]
    return found


def quota(**rest: Any) -> dict[str, Any]:
    metadata = {"name": "test", "namespace": "test"}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": metadata} | rest


CONDITION = {
    "type": "Invalid",
    "status": "True",
    "observedGeneration": 2,
    "lastTransitionTime": "2025-01-01T00:00:00Z",
    "reason": "MinAboveMax",
    "message": "min is above max: cpu",
}
ACCEPTED = {
    "numbers and strings": quota(spec={"min": {"cpu": 10, "memory": "20Gi"}, "max": {"nvidia.com/gpu": 2}}),
    "min above max": quota(spec={"min": {"cpu": 3}, "max": {"cpu": 2}}),
    "only a max": quota(spec={"max": {"cpu": 2}}),
    "no bounds": quota(spec={}),
    "no spec": quota(),
    "every notation": quota(
        spec={"max": dict.fromkeys("abcdef", "1") | {"a": "1.5", "b": ".5", "c": "500m", "d": "1E"}}
    ),
    "an exponent": quota(spec={"max": {"memory": "12e6"}}),
    "a status": quota(status={"used": {"cpu": "4", "memory": 0}, "conditions": [CONDITION]}),
}
REFUSED = {
    "a word": quota(spec={"min": {"cpu": "lots"}}),
    "a unit that is none": quota(spec={"min": {"memory": "20GB"}}),
    "an empty quantity": quota(spec={"min": {"memory": ""}}),
    "a fraction that is no string": quota(spec={"min": {"cpu": 0.5}}),
    "a number in place of a map": quota(spec={"max": 3}),
    "a truth value": quota(spec={"max": {"cpu": True}}),
    "a bound that there is not": quota(spec={"minimum": {"cpu": 1}}),
    "a condition without a reason": quota(status={"conditions": [{"type": "Invalid", "status": "True"}]}),
    "a status that is none": quota(status={"conditions": [CONDITION | {"status": "Maybe"}]}),
}


@pytest.mark.parametrize("example", ACCEPTED.values(), ids=ACCEPTED)
def test_the_definition_accepts(definition, example):
    [version] = definition["spec"]["versions"]
    assert problems(version["schema"]["openAPIV3Schema"], example) == []


@pytest.mark.parametrize("example", REFUSED.values(), ids=REFUSED)
def test_the_definition_refuses(definition, example):
    [version] = definition["spec"]["versions"]
    assert problems(version["schema"]["openAPIV3Schema"], example)


def test_the_definition_is_the_one_that_other_schedulers_know(definition):
    spec = definition["spec"]
    assert (spec["group"], spec["scope"]) == ("scheduling.x-k8s.io", "Namespaced")
    assert (spec["names"]["kind"], spec["names"]["plural"]) == ("ElasticQuota", "elasticquotas")
    assert definition["metadata"]["name"] == "elasticquotas.scheduling.x-k8s.io"
    [version] = spec["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}


def test_the_definition_says_that_its_group_is_not_approved(definition):
    assert definition["metadata"]["annotations"]["api-approved.kubernetes.io"].startswith("unapproved, ")


# The scheduler's configuration


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=name)
def test_the_scheduler_asks_quotaward_for_what_protects_quotas(file):
    [configuration] = documents(file)
    assert configuration["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    [extender] = configuration["extenders"]
    assert (extender["filterVerb"], extender["preemptVerb"]) == ("filter", "preempt")
    assert "bindVerb" not in extender
    assert extender["nodeCacheCapable"] is True
    assert extender["ignorable"] is False
    assert extender["httpTimeout"].endswith("s")


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=name)
def test_the_check_of_scheduler_configurations_has_nothing_against_it(file):
    assert checks.scheduler_configuration(file) == []


def test_both_configurations_ask_in_the_same_way():
    second, default = (documents(file)[0]["extenders"] for file in CONFIGURATIONS)
    assert second == default


def test_the_configured_address_is_the_one_that_quotaward_listens_on():
    for file, pod in zip(CONFIGURATIONS, (deployment_pod(), static_pod()), strict=True):
        [extender] = documents(file)[0]["extenders"]
        listen = flags(containers(pod)["quotaward"])["listen"]
        assert extender["urlPrefix"] == f"http://{listen}/extender"
        assert listen.startswith("127.0.0.1:")


def test_the_second_scheduler_has_a_name_and_a_lease_of_its_own():
    [configuration] = documents(CONFIGURATIONS[0])
    assert [profile["schedulerName"] for profile in configuration["profiles"]] == ["quotaward-scheduler"]
    election = configuration["leaderElection"]
    assert election["leaderElect"] is True
    role = the("Role", "base/scheduler-rbac.yaml", "quotaward-scheduler:lease")
    [rule] = role["rules"]
    assert rule["resourceNames"] == [election["resourceName"]]
    assert role["metadata"]["namespace"] == election["resourceNamespace"]


# The pods


def test_quotaward_is_a_sidecar_that_is_in_sync_before_the_scheduler_starts():
    pod = deployment_pod()
    [sidecar] = pod["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == ("quotaward", "Always")
    assert sidecar["startupProbe"]["httpGet"]["path"] == "/readyz"


def test_the_kubelet_probes_an_address_that_it_can_reach():
    sidecar = containers(deployment_pod())["quotaward"]
    [port] = sidecar["ports"]
    assert flags(sidecar)["probe-listen"] == f"0.0.0.0:{port['containerPort']}"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert sidecar[probe]["httpGet"]["port"] == port["name"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        get = containers(static_pod())["quotaward"][probe]["httpGet"]
        assert f"{get['host']}:{get['port']}" == flags(containers(static_pod())["quotaward"])["listen"]


@pytest.mark.parametrize(
    "pod", [deployment_pod(), standalone_pod(), static_pod()], ids=["sidecar", "standalone", "static pod"]
)
def test_every_container_is_restricted(pod):
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(pod).values():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_the_scheduler_reads_the_configuration_that_is_mounted():
    pod = deployment_pod()
    scheduler = containers(pod)["kube-scheduler"]
    [mount] = scheduler["volumeMounts"]
    [volume] = pod["volumes"]
    [generator] = reading.document((MANIFESTS / "scheduler/kustomization.yaml").read_text())["configMapGenerator"]
    assert flags(scheduler)["config"] == f"{mount['mountPath']}/{generator['files'][0]}"
    assert mount["name"] == volume["name"]
    assert volume["configMap"]["name"] == generator["name"]


def test_every_selector_finds_both_replicas():
    deployment = the("Deployment", "base/deployment.yaml")["spec"]
    budget = the("PodDisruptionBudget", "base/poddisruptionbudget.yaml")["spec"]
    assert deployment["replicas"] == 2
    selectors = [deployment["selector"], budget["selector"]]
    selectors += [c["labelSelector"] for c in deployment["template"]["spec"]["topologySpreadConstraints"]]
    for selector in selectors:
        assert selector["matchLabels"].items() <= deployment["template"]["metadata"]["labels"].items()


def test_services_of_the_namespace_do_not_become_settings_of_quotaward():
    for pod in (deployment_pod(), standalone_pod(), static_pod()):
        assert pod["enableServiceLinks"] is False


def test_the_pods_do_not_wait_for_the_scheduler_that_they_are():
    assert deployment_pod()["schedulerName"] == standalone_pod()["schedulerName"] == "default-scheduler"


# The service of its own


def test_behind_the_service_is_who_leads_by_tls():
    deployment = the("Deployment", "overlays/standalone/deployment.yaml")["spec"]
    [container] = standalone_pod()["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    settings = load(container["args"][1:])
    assert settings.leader.only_leader_answers
    assert settings.tls_listen == f"0.0.0.0:{ports['https']}"
    assert settings.plain_listen == "127.0.0.1:8080"
    assert settings.probe_listen == f"0.0.0.0:{ports['probes']}"
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(path.parent) for path in (settings.tls_cert, settings.tls_key, settings.client_ca)} == mounts
    service = the("Service", "overlays/standalone/service.yaml")["spec"]
    assert service["selector"].items() <= deployment["template"]["metadata"]["labels"].items()
    assert service["selector"] == deployment["selector"]["matchLabels"]
    assert [port["targetPort"] for port in service["ports"]] == ["https"]
    assert container["startupProbe"]["httpGet"]["path"] == "/healthz", "one that stands by is never ready"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert (
        container["lifecycle"]["preStop"]["sleep"]["seconds"] + 20 < standalone_pod()["terminationGracePeriodSeconds"]
    )


def test_an_update_of_the_service_does_not_wait_for_a_second_replica_to_be_ready():
    strategy = the("Deployment", "overlays/standalone/deployment.yaml")["spec"]["strategy"]
    assert strategy == {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "100%"}}


def test_a_scheduler_asks_the_service_as_it_asks_its_neighbour_but_for_the_way():
    file = MANIFESTS / "overlays/standalone/kube-scheduler-config.yaml"
    assert checks.scheduler_configuration(file) == []
    [over_tls] = documents(file)[0]["extenders"]
    [beside] = documents(CONFIGURATIONS[0])[0]["extenders"]
    assert over_tls.pop("enableHTTPS") is True
    tls = over_tls.pop("tlsConfig")
    assert tls.keys() == {"serverName", "caFile", "certFile", "keyFile"}
    assert over_tls.pop("urlPrefix") == f"https://{tls['serverName']}:443/extender"
    del beside["urlPrefix"]
    assert over_tls == beside


# Rights


def test_quotaward_may_do_no_more_than_it_does():
    rules = the("ClusterRole", "rbac/quotaward.yaml")["rules"]
    allowed = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    kinds = {kind.plural for kind in KINDS}
    reads = {(resource, verb) for resource in kinds for verb in ("list", "watch")}
    writes = {
        ("pods/status", "patch"),
        ("elasticquotas/status", "patch"),
        ("queues/status", "patch"),
        ("resourcequotas", "create"),
        ("resourcequotas", "patch"),
        ("resourcequotas", "delete"),
        ("pods/eviction", "create"),
        ("reservations", "create"),
        ("reservations", "delete"),
        ("reservations/status", "patch"),
        ("events", "create"),
        ("events", "patch"),
        ("events", "list"),
    }
    assert allowed == reads | writes


def test_only_the_lease_of_quotaward_itself_may_be_changed():
    rules = the("Role", "rbac/quotaward.yaml")["rules"]
    assert all(rule["resources"] == ["leases"] for rule in rules)
    assert all(rule["verbs"] == ["create"] or rule.get("resourceNames") == ["quotaward"] for rule in rules)


def test_opening_gates_is_a_right_of_its_own():
    [rule] = the("ClusterRole", "gates/quotaward-gates.yaml")["rules"]
    assert rule == {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}


@pytest.mark.parametrize("file", KUSTOMIZATIONS, ids=name)
def test_nothing_takes_in_the_right_to_open_gates_unasked(file):
    resources = reading.document(file.read_text()).get("resources", [])
    takes_it_in = any("gates" in resource for resource in resources)
    assert takes_it_in == (file.parent.name == "gates")


def test_the_webhook_is_asked_for_the_pods_that_the_policy_is_for():
    policy = the("MutatingAdmissionPolicy", "gates/quotaward-gate.yaml")["spec"]
    [webhook] = the("MutatingWebhookConfiguration", "gates/webhook/quotaward-gate-webhook.yaml")["webhooks"]
    assert webhook["namespaceSelector"] == policy["matchConstraints"]["namespaceSelector"]
    [rule], [asked] = policy["matchConstraints"]["resourceRules"], webhook["rules"]
    assert rule.items() <= asked.items()
    assert (policy["failurePolicy"], webhook["failurePolicy"]) == ("Ignore", "Ignore")


def test_neither_gates_pods_of_the_namespaces_that_the_cluster_lives_on():
    policy = the("MutatingAdmissionPolicy", "gates/quotaward-gate.yaml")["spec"]
    [without] = policy["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert without["operator"] == "NotIn"
    assert {"kube-system", "quotaward-system"} <= set(without["values"])


def test_binding_is_a_right_of_its_own():
    [rule] = the("ClusterRole", "bind/quotaward-bind.yaml")["rules"]
    assert rule == {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}


def test_deleting_pods_is_a_right_of_its_own():
    [rule] = the("ClusterRole", "patience/quotaward-patience.yaml")["rules"]
    assert rule == {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}


def test_a_namespace_is_left_out_of_the_rule_of_growth_by_a_label_of_its_operators():
    expressions = the("ValidatingAdmissionPolicy", "admission/growth.yaml")["spec"]["matchConstraints"]
    left_out = expressions["namespaceSelector"]["matchExpressions"][1:]
    assert left_out == [{"key": GROWTH, "operator": "NotIn", "values": ["allowed"]}]
    [rule] = the("ValidatingAdmissionPolicy", "admission/namespaces.yaml")["spec"]["validations"]
    assert all(f"'{label}'" in rule["expression"] for label in (GROWTH, JOBS_WAIT))


def test_growth_is_forbidden_to_everybody_in_the_same_words_as_to_tenants():
    tenants = the("ValidatingAdmissionPolicy", "admission/growth.yaml")["spec"]
    everybody = the("ValidatingAdmissionPolicy", "resize/no-growth.yaml")["spec"]
    for part in ("failurePolicy", "paramKind", "matchConstraints", "variables"):
        assert tenants[part] == everybody[part]
    [of_tenants], [of_everybody] = tenants["validations"], everybody["validations"]
    assert of_tenants["messageExpression"] == of_everybody["messageExpression"]
    for words in of_everybody["expression"].split(" || "):
        assert words in of_tenants["expression"].split(" || ")


def test_new_jobs_are_changed_only_where_that_is_asked_for_or_not_created_at_all():
    policy = the("MutatingAdmissionPolicy", "jobs/ignore-disruptions/ignore-disruptions.yaml")["spec"]
    assert policy["failurePolicy"] == "Fail"
    [rule] = policy["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["CREATE"], ["jobs"])
    selector = policy["matchConstraints"]["namespaceSelector"]
    assert selector["matchLabels"] == {IGNORE_DISRUPTIONS: "true"}
    gates = the("MutatingAdmissionPolicy", "gates/quotaward-gate.yaml")["spec"]["matchConstraints"]
    assert selector["matchExpressions"] == gates["namespaceSelector"]["matchExpressions"]


WAITING_JOBS = {"suspend": "CREATE", "stay-suspended": "UPDATE", "keep-granted": "UPDATE"}


@pytest.mark.parametrize(("file", "operation"), WAITING_JOBS.items(), ids=WAITING_JOBS)
def test_jobs_are_suspended_only_where_that_is_asked_for(file, operation):
    policy = the("MutatingAdmissionPolicy", f"jobs/queued/{file}.yaml")["spec"]
    [rule] = policy["matchConstraints"]["resourceRules"]
    assert (policy["failurePolicy"], rule["operations"], rule["resources"]) == ("Fail", [operation], ["jobs"])
    selector = policy["matchConstraints"]["namespaceSelector"]
    assert selector["matchLabels"] == {JOBS_WAIT: "queued"}
    gates = the("MutatingAdmissionPolicy", "gates/quotaward-gate.yaml")["spec"]["matchConstraints"]
    assert selector["matchExpressions"] == gates["namespaceSelector"]["matchExpressions"]
    [mutation] = policy["mutations"]
    set_by_it = f'"{PARALLELISM}": string(' if file == "keep-granted" else f'"{QUEUED}": "true"'
    assert set_by_it in mutation["applyConfiguration"]["expression"]


@pytest.mark.parametrize("file", WAITING_JOBS)
def test_the_jobs_that_are_suspended_are_those_that_quotaward_starts(file):
    policy = the("MutatingAdmissionPolicy", f"jobs/queued/{file}.yaml")["spec"]
    conditions = {each["name"]: each["expression"] for each in policy["matchConditions"]}
    assert f"managedBy == '{JOB_CONTROLLER}'" in conditions["is-run-by-the-controller-of-jobs"]
    assert f"o.kind == '{CRON_JOB}'" in conditions["has-no-owner-that-starts-it"]
    if file != "suspend":
        _, _, types = conditions["has-not-ended"].partition(" c.type in ")
        assert {word.strip(" '[])") for word in types.split(",")} == ENDED


def test_the_webhook_is_asked_for_the_jobs_that_the_policies_are_for():
    policies = [the("MutatingAdmissionPolicy", f"jobs/queued/{file}.yaml")["spec"] for file in WAITING_JOBS]
    webhooks = the("MutatingWebhookConfiguration", "jobs/webhook/quotaward-jobs-webhook.yaml")["webhooks"]
    assert [each["rules"][0]["operations"] for each in webhooks] == [["CREATE"], ["UPDATE"]]
    [as_gates] = the("MutatingWebhookConfiguration", "gates/webhook/quotaward-gate-webhook.yaml")["webhooks"]
    for webhook in webhooks:
        [asked], wanted = webhook["rules"], policies[0]["matchConstraints"]
        [rule] = wanted["resourceRules"]
        assert asked == rule | {"operations": asked["operations"], "scope": "Namespaced"}
        assert webhook["namespaceSelector"] == wanted["namespaceSelector"]
        same = ("clientConfig", "failurePolicy", "timeoutSeconds", "sideEffects", "admissionReviewVersions")
        assert {field: webhook[field] for field in same} == {field: as_gates[field] for field in same}
    starts, changes = ({each["name"]: each["expression"] for each in of["matchConditions"]} for of in policies[1:])
    not_ours, either = webhooks[1]["matchConditions"]
    assert not_ours["expression"] == starts["is-not-by-quotaward"] == changes["is-not-by-quotaward"]
    assert either["expression"] == f"({starts['starts-it']}) || {changes['changes-its-parallelism']}"


def test_starting_jobs_is_a_right_of_its_own_and_a_policy_narrows_it():
    [rule] = the("ClusterRole", "jobs/queued/quotaward-jobs.yaml")["rules"]
    assert rule == {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["patch"]}
    policy = the("ValidatingAdmissionPolicy", "jobs/queued/own-changes.yaml")["spec"]
    assert policy["failurePolicy"] == "Fail"
    assert "namespaceSelector" not in policy["matchConstraints"], "the right holds in every namespace"


def test_the_manifests_of_each_kind_of_jobs_are_made_from_its_row():
    there = {str(file.relative_to(MANIFESTS)) for file in MANIFESTS.rglob("jobs/kinds/*/*.yaml")}
    made = job_kind_manifests.files()
    assert {path for path in there if not path.startswith("chart/")} == made.keys()
    for path, text in made.items():
        assert (MANIFESTS / path).read_text() == text, path


@pytest.mark.parametrize(("file", "subject"), [("suspend", "object"), ("stay-suspended", "oldObject")])
def test_a_ray_job_that_names_a_cluster_is_neither_suspended_nor_started(file, subject):
    policy = the("MutatingAdmissionPolicy", f"jobs/kinds/rayjob/{file}.yaml")["spec"]
    expressions = [each["expression"] for each in policy["matchConditions"]]
    assert f"!{subject}.?spec.?clusterSelector.hasValue()" in expressions


def test_asking_who_bears_a_token_is_a_right_of_its_own():
    rules = the("ClusterRole", "access/quotaward-access.yaml")["rules"]
    reviews = {"authentication.k8s.io": "tokenreviews", "authorization.k8s.io": "subjectaccessreviews"}
    assert rules == [
        {"apiGroups": [group], "resources": [plural], "verbs": ["create"]} for group, plural in reviews.items()
    ]


def test_prometheus_reads_metrics_of_the_service_and_gets_no_other_right():
    assert the("ClusterRole", "servicemonitor/quotaward-metrics.yaml")["rules"] == [
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    ]
    monitor = the("ServiceMonitor", "servicemonitor/servicemonitor.yaml")["spec"]
    service = the("Service", "overlays/standalone/service.yaml")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [endpoint] = monitor["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    secret = the("Secret", "servicemonitor/quotaward-metrics.yaml")
    assert endpoint["authorization"]["credentials"]["name"] == secret["metadata"]["name"]
    account = the("ServiceAccount", "servicemonitor/quotaward-metrics.yaml")["metadata"]["name"]
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": account}


def test_who_views_everything_gets_no_right_over_objects():
    for rule in the("ClusterRole", "access/quotaward-viewer.yaml")["rules"]:
        assert rule.keys() == {"nonResourceURLs", "verbs"}


@pytest.mark.parametrize(
    "folder",
    [
        "servicemonitor",
        "bind",
        "patience",
        "admission",
        "resize",
        "jobs/ignore-disruptions",
        "jobs/queued",
        "jobs/kinds/jobset",
    ],
)
@pytest.mark.parametrize("file", KUSTOMIZATIONS, ids=name)
def test_nothing_takes_in_what_is_for_the_operator_to_choose(file, folder):
    taken_in = reading.document(file.read_text()).get("resources", [])
    there = (MANIFESTS / folder).resolve()
    takes_it_in = any((file.parent / each).resolve().is_relative_to(there) for each in taken_in)
    in_its_place = folder == "jobs/queued" and file.parent == MANIFESTS / "jobs/webhook"  # it is chosen instead
    assert takes_it_in == (file.parent.name == there.name or in_its_place)


@pytest.mark.parametrize("file", FILES, ids=name)
def test_no_role_has_wildcards(file):
    for document in documents(file):
        if document["kind"] in ("Role", "ClusterRole"):
            for rule in document["rules"]:
                assert "*" not in rule.get("apiGroups", []) + rule.get("resources", []) + rule["verbs"]


# The image


def test_the_image_runs_as_the_user_of_the_manifests_and_holds_no_unpinned_package():
    text = (ROOT / "Dockerfile").read_text()
    user = deployment_pod()["securityContext"]["runAsUser"]
    assert f"\nUSER {user}:{user}\n" in text
    for line in text.splitlines():
        if " install " in line:
            assert "--require-hashes -r requirements" in line or "--no-deps /wheel/" in line, line
    assert "HEALTHCHECK" not in text
    assert static_pod()["securityContext"]["runAsUser"] == user


def test_what_the_image_is_built_from_is_not_ignored():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = set()
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            copied |= set(line.split()[1:-1])
    assert copied == kept
    assert all((ROOT / source).exists() for source in copied)
