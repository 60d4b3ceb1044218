"""The policies of manifests/jobs/queued on a real API server: which Jobs wait, who starts them, what we may change."""

import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from app.kube.job_patches import MANAGER, disowning, start, suspension
from app.store.heeded import MIN_PARALLELISM, PARALLELISM
from policy.objects.batch_job import BatchJob
from policy.objects.pod import StandsFor
from tests.controlplane.api import Api, path, read_manifests
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.gates import delete
from tests.controlplane.launch import run_quotaward
from tests.controlplane.objects import condition, job
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import install_rights
from tests.e2e.test_ignore_disruptions import kubectl, tried  # noqa: F401 - a fixture
from tests.e2e.test_manifests import MANIFESTS, SYSTEM
from tests.e2e.waiting import ensure_for

WAIT, MARK = "quotaward.dev/jobs", "quotaward.dev/queued"
INVALID = 422
CRON_JOBS = "/apis/batch/v1/namespaces/{}/cronjobs"
TENANT = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "create", "update", "patch"]}]
FALSE = {"spec": {"suspend": False}}
WAITING, LEFT_ALONE = (True, True), (False, False)


def waits(item):
    """Whether a Job is suspended, and whether it is marked as suspended for us."""
    return item["spec"]["suspend"], item["metadata"].get("labels", {}).get(MARK) == "true"


def owned(item, kind, *, controller=True):
    owner = {"apiVersion": "example.com/v1", "kind": kind, "name": "owner", "uid": "1-2", "controller": controller}
    item["metadata"]["ownerReferences"] = [owner]
    return item


def labelled(cluster, namespace, value="queued"):
    cluster.api.patch("namespaces", namespace, {"metadata": {"labels": {WAIT: value}}})
    return namespace


def in_force(cluster, namespace):
    """The namespace, once new Jobs in it wait: the API server learns of a label a little later."""
    labelled(cluster, namespace)
    wait_until(lambda: waits(tried(cluster, job("tried", namespace))) == WAITING, "new Jobs wait")
    return namespace


def account(name, namespace):
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def who(cluster, name, namespace):
    """The API server as this service account sees it."""
    api = cluster.api
    return Api(api.url, api.ca_file, api.service_account_token(name, namespace))


def status(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except httpx.HTTPStatusError as error:
        return error.response.status_code
    return httpx.codes.OK


def url_of(item):
    return path("jobs", item["metadata"]["namespace"], item["metadata"]["name"])


def json_patch(api, item, patch, **query):
    headers = {"Content-Type": "application/json-patch+json"}
    return api.request("PATCH", url_of(item), content=json.dumps(patch), headers=headers, params=query)


def put(api, item):
    item["metadata"].pop("resourceVersion")  # the controller of Jobs may have written its status since
    return api.request("PUT", url_of(item), json=item)


def started(api, item):
    """Starts a Job as Quotaward does."""
    metadata, parallelism = item["metadata"], item["spec"]["parallelism"]
    return json_patch(api, item, start(StandsFor(metadata["name"], metadata["uid"], parallelism, parallelism)))


def pods_of(cluster, namespace, *names):
    pods = cluster.api.items("pods", namespace)
    return sum(pod["metadata"]["labels"].get("job-name") in names for pod in pods)


@pytest.fixture(scope="module")
def controllers(control_plane):
    """What makes the pods of Jobs, and the Jobs of CronJobs."""
    with ControllerManager(control_plane, "job-controller", "cronjob-controller") as running:
        yield running


@pytest.fixture(scope="module")
def installed(control_plane, controllers):
    """The policies and the right, in a cluster where Quotaward itself does not run."""
    install_rights(control_plane.api)
    control_plane.api.apply(account("quotaward-scheduler", SYSTEM))
    items = read_manifests(MANIFESTS / "jobs/queued")
    for item in items:
        control_plane.api.apply(item)
    yield
    for item in reversed(items):
        delete(control_plane, item)


@pytest.fixture
def queued(cluster, installed):
    """A namespace whose Jobs wait."""
    return in_force(cluster, cluster.namespace("queued"))


@pytest.fixture
def tenant(cluster, queued):
    """A user who may write the Jobs of that namespace."""
    cluster.api.create(account("tenant", queued))
    group, metadata = "rbac.authorization.k8s.io", {"name": "tenant", "namespace": queued}
    kinds = {
        "Role": {"rules": TENANT},
        "RoleBinding": {
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "tenant"},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": queued}],
        },
    }
    for kind, rest in kinds.items():
        cluster.api.create({"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, **rest})
    api = who(cluster, "tenant", queued)
    wait_until(lambda: status(api.get, "jobs", "none", queued) == httpx.codes.NOT_FOUND, "the tenant may read Jobs")
    yield api
    api.close()


@pytest.fixture
def held(cluster, queued):
    """The API server as this account of Quotaward's sees it, with the policy about its changes in force."""
    opened = []

    def by(name):
        api = who(cluster, name, SYSTEM)
        opened.append(api)
        asked = api.patch, "jobs", "probe?dryRun=All", {"metadata": {"labels": {"a": "b"}}}, queued
        wait_until(lambda: status(*asked) == INVALID, "Quotaward may not change labels")
        return api

    cluster.api.create(job("probe", queued))
    yield by
    for api in opened:
        api.close()


@pytest.fixture
def ours(held):
    """The API server as a Quotaward with an account of its own sees it."""
    return held("quotaward")


EVEN, ODD = "*/2 * * * *", "1-59/2 * * * *"
"""Two schedules: for each of them the time of a run has just passed, and never for both at the same minute."""


@pytest.fixture
def cron_job(cluster, queued):
    """Makes a CronJob, or changes its schedule, and lets it find that it has missed a run."""
    url = CRON_JOBS.format(queued)
    spec = {"concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job("nightly", queued)["spec"]}}
    item = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": queued}}

    def due(schedule):
        cluster.api.apply(item | {"spec": spec | {"schedule": schedule}})
        before = (datetime.now(UTC) - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
        cluster.api.merge(f"{url}/nightly/status", {"status": {"lastScheduleTime": before}})

    yield due
    cluster.api.request("DELETE", f"{url}/nightly")


def jobs_of_cron(cluster, namespace):
    return [item for item in cluster.api.items("jobs", namespace) if item["metadata"]["name"].startswith("nightly-")]


def test_new_jobs_wait_without_pods_however_they_are_created(cluster, queued, tenant, kubectl):  # noqa: F811
    names = ["plain", "false", "own", "managed", "applied", "by-kubectl", "runs-once"]
    plain, false, own, managed, applied, by_kubectl, once = (job(name, queued, 2) for name in names)
    false["spec"]["suspend"] = by_kubectl["spec"]["suspend"] = False
    own["spec"]["suspend"] = True
    managed["spec"]["managedBy"] = "kubernetes.io/job-controller"
    once["spec"]["activeDeadlineSeconds"] = 1
    for item in (plain, false, own, managed, once):
        tenant.create(item)
    tenant.apply(applied)
    assert kubectl(by_kubectl, "apply")[0] == 0

    def is_seen(item):
        return condition(item, "Suspended").get("status") == "True"

    wait_until(lambda: all(map(is_seen, cluster.api.items("jobs", queued))), "the controller has seen all of them")
    jobs = cluster.api.items("jobs", queued)
    assert {each["metadata"]["name"]: waits(each) for each in jobs} == dict.fromkeys(names, WAITING)
    ensure_for(2.5, lambda: not cluster.api.items("pods", queued), "none of them makes pods")
    assert "startTime" not in cluster.api.get("jobs", "runs-once", queued)["status"], "and no deadline runs"
    assert not condition(cluster.api.get("jobs", "runs-once", queued), "Failed")


def test_a_cron_job_that_forbids_a_second_run_skips_runs_while_its_job_waits(cluster, queued, cron_job):
    cron_job(EVEN)
    [made] = wait_until(lambda: jobs_of_cron(cluster, queued), "it makes a Job")
    assert waits(made) == WAITING
    url = f"{CRON_JOBS.format(queued)}/nightly"
    wait_until(lambda: cluster.api.request("GET", url)["status"].get("active"), "it has counted that Job")
    cron_job(ODD)
    skipped = "JobAlreadyActive"
    wait_until(lambda: any(each["reason"] == skipped for each in cluster.api.items("events", queued)), "it skips a run")
    assert len(jobs_of_cron(cluster, queued)) == 1


def patched(api, item, suspend):
    metadata = item["metadata"]
    return api.patch("jobs", metadata["name"], {"spec": {"suspend": suspend}}, metadata["namespace"])


def replaced(api, item, **rest):
    return put(api, item | {"spec": item["spec"] | {"suspend": False}} | rest)


ENDED = {"conditions": [{"type": "Failed", "status": "True"}]}
STARTS = {
    "false": lambda api, item: patched(api, item, suspend=False),
    "null": lambda api, item: patched(api, item, suspend=None),
    "removed": lambda api, item: json_patch(api, item, [{"op": "remove", "path": "/spec/suspend"}]),
    "replaced": replaced,
    "applied": lambda api, item: api.apply(job(item["metadata"]["name"], item["metadata"]["namespace"], suspend=False)),
    "with an owner of the moment": lambda api, item: replaced(api, owned(item, "JobSet")),
    "as one that has ended": lambda api, item: replaced(api, item, status=ENDED),
}


@pytest.mark.parametrize("starts", STARTS.values(), ids=STARTS)
def test_nobody_else_starts_a_job_that_waits_and_no_change_is_refused(cluster, queued, tenant, starts):
    for name, api in ("by-a-tenant", tenant), ("by-an-operator", cluster.api):
        assert waits(starts(api, tenant.create(job(name, queued)))) == WAITING
        assert waits(cluster.api.get("jobs", name, queued)) == WAITING


def test_the_rest_of_a_change_that_would_start_a_job_is_made(queued, tenant):
    tenant.create(job("j", queued, 2))
    changed = tenant.patch("jobs", "j", {"spec": {"suspend": False, "parallelism": 1}}, queued)
    assert (waits(changed), changed["spec"]["parallelism"]) == (WAITING, 1)


@pytest.mark.parametrize("says", [{}, {"suspend": False}], ids=["nothing", "suspend: false"])
@pytest.mark.parametrize("side", ["client-side", "server-side"])
def test_a_manifest_is_applied_again_and_again(cluster, queued, ours, kubectl, side, says):  # noqa: F811
    """Before the Job is started, and after it."""
    flags = ["--server-side"] if side == "server-side" else []
    item = job("j", queued, 1, **says)

    def again():
        item["spec"]["backoffLimit"] = item["spec"].get("backoffLimit", 6) + 1
        assert kubectl(item, "apply", *flags)[0] == 0
        found = cluster.api.get("jobs", "j", queued)
        assert found["spec"]["backoffLimit"] == item["spec"]["backoffLimit"]
        assert kubectl(item, "diff", *flags) == (0, "")
        return found

    again()
    assert waits(again()) == WAITING
    started(ours, cluster.api.get("jobs", "j", queued))
    assert not again()["spec"]["suspend"]
    wait_until(lambda: pods_of(cluster, queued, "j") == 1, "it runs")


def test_a_manifest_that_suspends_its_job_does_so_again_when_it_is_applied_again(
    cluster,
    queued,
    ours,
    kubectl,  # noqa: F811
):
    """What the documentation warns of."""
    item = job("j", queued, 1, suspend=True)
    assert kubectl(item, "apply")[0] == 0
    started(ours, cluster.api.get("jobs", "j", queued))
    assert kubectl(item, "apply")[0] == 0
    assert cluster.api.get("jobs", "j", queued)["spec"]["suspend"]


def test_quotaward_starts_a_job_and_its_author_may_stop_it_but_not_start_it_again(cluster, queued, tenant, ours):
    item = tenant.create(job("j", queued, 2))
    assert not started(ours, item)["spec"]["suspend"]
    wait_until(lambda: pods_of(cluster, queued, "j") == 2, "its pods are made")
    assert waits(tenant.patch("jobs", "j", {"spec": {"suspend": True}}, queued)) == WAITING
    assert waits(tenant.patch("jobs", "j", FALSE, queued)) == WAITING
    assert not started(ours, item)["spec"]["suspend"]


def test_a_job_from_before_is_marked_when_its_author_would_start_it(cluster, queued):
    late = cluster.namespace("late")
    cluster.api.create(job("j", late, suspend=True))
    cluster.api.create(job("runs", late))
    in_force(cluster, late)
    assert waits(cluster.api.get("jobs", "j", late)) == (True, False)
    assert waits(cluster.api.patch("jobs", "j", FALSE, late)) == WAITING
    assert waits(cluster.api.patch("jobs", "runs", {"spec": {"parallelism": 2}}, late)) == LEFT_ALONE
    labelled(cluster, late, None)
    wait_until(lambda: waits(tried(cluster, job("n", late))) == LEFT_ALONE, "new Jobs do not wait any more")
    assert not cluster.api.patch("jobs", "j", FALSE, late)["spec"]["suspend"], "it may be started by anybody"


def test_without_quotaward_an_operator_starts_all_that_wait(cluster, queued):
    for name in ("a", "b"):
        cluster.api.create(job(name, queued))
    own = labelled(cluster, cluster.namespace("own"), None)
    cluster.api.create(job("own", own, suspend=True))
    command = ("jobs", "release", "--kubeconfig", str(cluster.control_plane.kubeconfig))
    done = run_quotaward(*command)
    assert (done.returncode, done.stdout) == (1, "0 Jobs started\n")
    assert f"{queued}/a: it is suspended again at once: first take the label" in done.stderr
    labelled(cluster, queued, None)
    wait_until(lambda: waits(tried(cluster, job("n", queued))) == LEFT_ALONE, "new Jobs do not wait any more")
    done = run_quotaward(*command)
    assert (done.returncode, done.stdout) == (0, "2 Jobs started\n")
    assert not any(each["spec"]["suspend"] for each in cluster.api.items("jobs", queued))
    assert cluster.api.get("jobs", "own", own)["spec"]["suspend"], "what somebody else has suspended stays so"
    wait_until(lambda: pods_of(cluster, queued, "a", "b") == 2, "they run")


def test_other_jobs_are_left_alone(cluster, queued):
    elsewhere, other = cluster.namespace("elsewhere"), labelled(cluster, cluster.namespace("other"), "true")
    foreign = job("foreign", queued, managedBy="example.com/queue")
    of_a_set = owned(job("of-a-set", queued), "JobSet")
    for item in (foreign, of_a_set, job("j", elsewhere), job("j", other)):
        assert waits(cluster.api.create(item)) == LEFT_ALONE
    for name in ("foreign", "of-a-set"):  # whose controllers decide when they run
        cluster.api.patch("jobs", name, {"spec": {"suspend": True}}, queued)
        assert waits(cluster.api.patch("jobs", name, FALSE, queued)) == LEFT_ALONE
    assert waits(tried(cluster, owned(job("j", queued), "CronJob"))) == WAITING
    assert waits(tried(cluster, owned(job("j", queued), "JobSet", controller=False))) == WAITING


@pytest.mark.parametrize("home", ["kube-system", "kube-public", SYSTEM])
def test_jobs_that_the_cluster_needs_never_wait(cluster, queued, home):
    labelled(cluster, home)
    try:
        in_force(cluster, cluster.namespace("later"))
        assert waits(tried(cluster, job("j", home))) == LEFT_ALONE
        cluster.api.create(job("j", home, suspend=True, parallelism=0))
        assert waits(cluster.api.patch("jobs", "j", FALSE, home)) == LEFT_ALONE
    finally:
        labelled(cluster, home, None)
        if any(each["metadata"]["name"] == "j" for each in cluster.api.items("jobs", home)):
            cluster.api.delete("jobs", "j", home)


def test_a_job_that_has_not_ended_yet_is_not(cluster, queued):
    item = cluster.api.create(job("j", queued))
    said = {"type": "Failed", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    cluster.api.patch("jobs", "j/status", {"status": {"conditions": [said]}}, queued)
    assert waits(patched(cluster.api, item, suspend=False)) == WAITING


def test_a_job_that_has_ended_is_left_alone(cluster, queued, ours):
    item = cluster.api.create(job("j", queued, 1, activeDeadlineSeconds=1))
    started(ours, item)
    wait_until(lambda: condition(cluster.api.get("jobs", "j", queued), "Failed"), "its time is over")
    cluster.api.patch("jobs", "j", {"spec": {"suspend": True}}, queued)
    assert not cluster.api.patch("jobs", "j", FALSE, queued)["spec"]["suspend"]


def elastic(namespace, asked, least=2, name="j", **spec):
    item = job(name, namespace, asked, completions=None, **spec)
    item["metadata"]["annotations"] = {MIN_PARALLELISM: str(least)}
    return item


def started_with(api, item, granted):
    """Starts an elastic Job as Quotaward does, with fewer pods than its user asks for."""
    metadata, asked = item["metadata"], item["spec"]["parallelism"]
    stands_for = StandsFor(metadata["name"], metadata["uid"], asked, granted, least=2, asked=asked, granted=granted)
    done = json_patch(api, item, start(stands_for), fieldManager=MANAGER)
    json_patch(api, item, disowning(done["metadata"]["managedFields"]))
    return done


def numbers(item):
    """How many pods a Job may run, and how many its user asks for."""
    return item["spec"]["parallelism"], int(item["metadata"]["annotations"].get(PARALLELISM, 0))


@pytest.mark.parametrize("side", ["client-side", "server-side"])
def test_a_manifest_is_applied_again_and_again_while_less_is_granted(cluster, queued, ours, kubectl, side):  # noqa: F811
    flags = ["--server-side"] if side == "server-side" else []
    item = elastic(queued, 4)
    assert kubectl(item, "apply", *flags)[0] == 0
    started_with(ours, cluster.api.get("jobs", "j", queued), 2)
    for limit in (1, 2, 3):
        item["spec"]["backoffLimit"] = limit
        assert kubectl(item, "apply", *flags) == (0, f"job.batch/j {'serverside-applied' if flags else 'configured'}\n")
        found = cluster.api.get("jobs", "j", queued)
        assert (numbers(found), found["spec"]["backoffLimit"]) == ((2, 4), limit)
    assert kubectl(item, "diff", *flags) == (0, "")
    wait_until(lambda: pods_of(cluster, queued, "j") == 2, "it runs with what was granted")
    ensure_for(1, lambda: pods_of(cluster, queued, "j") == 2, "and with no more")
    item["spec"]["parallelism"] = 6
    assert kubectl(item, "apply", *flags)[0] == 0
    assert numbers(cluster.api.get("jobs", "j", queued)) == (2, 6), "more is asked for from now on"
    item["spec"]["parallelism"] = 1
    assert kubectl(item, "apply", *flags)[0] == 0
    assert numbers(cluster.api.get("jobs", "j", queued)) == (1, 1), "and less at once"


TEMPLATE = "/spec/template"
CONTAINER = f"{TEMPLATE}/spec/containers/0"
ALLOWED = {
    "suspend": [{"op": "replace", "path": "/spec/suspend", "value": False}],
    "parallelism": [{"op": "replace", "path": "/spec/parallelism", "value": 1}],
    "a node selector": [{"op": "add", "path": f"{TEMPLATE}/spec/nodeSelector", "value": {"rack": "1"}}],
    "another node selector": [{"op": "add", "path": f"{TEMPLATE}/spec/nodeSelector/zone", "value": "2"}],
    "all at once": [
        {"op": "replace", "path": "/spec/suspend", "value": False},
        {"op": "replace", "path": "/spec/parallelism", "value": 1},
        {"op": "replace", "path": f"{TEMPLATE}/spec/nodeSelector", "value": {"rack": "1"}},
        {"op": "add", "path": "/metadata/annotations/quotaward.dev~1parallelism", "value": "2"},
    ],
    "an annotation of ours": [{"op": "add", "path": "/metadata/annotations/quotaward.dev~1parallelism", "value": "2"}],
    "an annotation of ours less": [{"op": "remove", "path": "/metadata/annotations/quotaward.dev~1old"}],
}
FORBIDDEN = {
    "requests": [{"op": "replace", "path": f"{CONTAINER}/resources/requests/cpu", "value": "2"}],
    "no requests": [{"op": "remove", "path": f"{CONTAINER}/resources"}],
    "tolerations": [{"op": "add", "path": f"{TEMPLATE}/spec/tolerations", "value": [{"operator": "Exists"}]}],
    "no tolerations": [{"op": "remove", "path": f"{TEMPLATE}/spec/tolerations"}],
    "gates": [{"op": "add", "path": f"{TEMPLATE}/spec/schedulingGates", "value": [{"name": "a/b"}]}],
    "labels of pods": [{"op": "add", "path": f"{TEMPLATE}/metadata/labels/a", "value": "b"}],
    "annotations of pods": [{"op": "add", "path": f"{TEMPLATE}/metadata/annotations", "value": {"a": "b"}}],
    "a deadline": [{"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 1}],
    "no deadline": [{"op": "remove", "path": "/spec/ttlSecondsAfterFinished"}],
    "backoffLimit": [{"op": "replace", "path": "/spec/backoffLimit", "value": 0}],
    "labels": [{"op": "add", "path": "/metadata/labels/a", "value": "b"}],
    "no label of ours": [{"op": "remove", "path": "/metadata/labels/quotaward.dev~1queued"}],
    "an annotation": [{"op": "add", "path": "/metadata/annotations/a", "value": "b"}],
    "an annotation of a similar name": [{"op": "add", "path": "/metadata/annotations/quotaward.device", "value": "b"}],
    "another annotation": [{"op": "replace", "path": "/metadata/annotations/own", "value": "b"}],
    "no annotation": [{"op": "remove", "path": "/metadata/annotations/own"}],
    "finalizers": [{"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]}],
    "an owner": [
        {
            "op": "add",
            "path": "/metadata/ownerReferences",
            "value": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"}],
        }
    ],
}


def test_of_a_job_quotaward_changes_only_what_starting_and_stopping_takes(cluster, queued, ours):
    item = job("j", queued, 2, ttlSecondsAfterFinished=60)
    item["metadata"]["annotations"] = {"own": "a", "quotaward.dev/old": "1"}
    tolerations = [{"key": "a", "operator": "Exists"}]
    item["spec"]["template"]["spec"] |= {"nodeSelector": {"zone": "1"}, "tolerations": tolerations}
    cluster.api.create(item)
    wait_until(lambda: condition(cluster.api.get("jobs", "j", queued), "Suspended"), "the controller has seen it")
    answers = {
        name: status(json_patch, ours, item, patch, dryRun="All") for name, patch in (ALLOWED | FORBIDDEN).items()
    }
    assert answers == dict.fromkeys(ALLOWED, httpx.codes.OK) | dict.fromkeys(FORBIDDEN, INVALID)
    for name, patch in FORBIDDEN.items():  # it is the policy that refuses
        assert status(json_patch, cluster.api, item, patch, dryRun="All") == httpx.codes.OK, name
    uid = cluster.api.get("jobs", "j", queued)["metadata"]["uid"]
    for patch in (ALLOWED["all at once"], suspension(BatchJob(queued, "j", uid))):
        assert status(json_patch, ours, item, patch) == httpx.codes.OK


def test_beside_a_second_scheduler_quotaward_may_do_the_same(queued, tenant, held):
    item = tenant.create(job("j", queued))
    assert not started(held("quotaward-scheduler"), item)["spec"]["suspend"]


def test_quotaward_is_kept_to_that_in_every_namespace(cluster, ours):
    elsewhere = cluster.namespace("elsewhere")
    cluster.api.create(job("j", elsewhere))
    for name, wanted in ({"backoffLimit": 0}, INVALID), ({"parallelism": 2}, httpx.codes.OK):
        assert status(ours.patch, "jobs", "j?dryRun=All", {"spec": name}, elsewhere) == wanted
    assert status(ours.get, "jobs", "j", elsewhere) == httpx.codes.FORBIDDEN
    assert status(ours.create, job("k", elsewhere)) == httpx.codes.FORBIDDEN
