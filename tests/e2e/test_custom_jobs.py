"""Jobs of other kinds on a real API server, with the definitions of their projects as far as Quotaward reads them.

No controller of these projects runs here: the tests make and suspend the Jobs of a JobSet in its place, and the real
controller of Jobs makes and deletes their pods.
"""

import json
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from app.kube.job_patches import suspension
from policy.objects.batch_job import BatchJob
from policy.objects.job_kind import JobKind
from tests.controlplane.api import read_manifests
from tests.controlplane.gates import delete
from tests.controlplane.objects import job, pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward, install_rights
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.test_jobs import events
from tests.e2e.test_manifests import MANIFESTS
from tests.e2e.test_queued_jobs_policy import INVALID, MARK, controllers, labelled, status, who  # noqa: F401 - a fixture
from tests.e2e.waiting import bound, ensure_for, wait_for

SCHEMAS = Path(__file__).parents[1] / "schemas"
VERSIONS = {"JobSet": "jobset.x-k8s.io/v1alpha2", "MPIJob": "kubeflow.org/v2beta1"}


def template(**spec):
    """The template of a pod of one core."""
    return {"spec": job("x", "y")["spec"]["template"]["spec"] | spec}


def custom(kind, name, namespace, **spec):
    return {
        "apiVersion": VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def job_set(name, namespace, workers=3, **spec):
    """A JobSet of a leader and some workers."""
    jobs = [
        {"name": part, "replicas": 1, "template": {"spec": {"parallelism": number, "template": template()}}}
        for part, number in (("leader", 1), ("workers", workers))
    ]
    return custom("JobSet", name, namespace, replicatedJobs=jobs, **spec)


def url_of(item, *parts):
    plural = f"{item['kind'].lower()}s"
    namespace, name = item["metadata"]["namespace"], item["metadata"]["name"]
    return "/".join((f"/apis/{item['apiVersion']}/namespaces/{namespace}/{plural}", name, *parts))


def seen(cluster, item):
    return cluster.api.request("GET", url_of(item))


def suspended(cluster, item):
    return seen(cluster, item)["spec"]["suspend"]


def install(cluster, kind):
    """Installs the definition of a kind, and waits until it is served."""
    definition = yaml.safe_load((SCHEMAS / f"{kind.lower()}s.yaml").read_text())
    cluster.api.apply(definition)
    url = f"/apis/{VERSIONS[kind]}/{kind.lower()}s"
    wait_until(lambda: cluster.api.is_ready_for(url), f"{kind} is served")


def remove(cluster, kind):
    url, plural = f"/apis/{VERSIONS[kind]}/{kind.lower()}s", f"{kind.lower()}s"
    if cluster.api.serves(url):
        cluster.api.delete("customresourcedefinitions", f"{plural}.{VERSIONS[kind].partition('/')[0]}")
    wait_until(lambda: not cluster.api.serves(url), f"{kind} is not served any more")


@contextmanager
def policies(cluster, kind):
    """The policies and the rights for a kind are there while this is open."""
    install_rights(cluster.api)
    items = read_manifests(MANIFESTS / "jobs/kinds" / kind.lower())
    for item in items:
        cluster.api.apply(item)
    try:
        yield
    finally:
        for item in reversed(items):
            delete(cluster, item)


@pytest.fixture
def kinds(cluster):
    """Installs kinds with their policies, which are gone again after the test."""
    with ExitStack() as stack:

        def these(*names):
            for name in names:
                stack.callback(remove, cluster, name)
                install(cluster, name)
                stack.enter_context(policies(cluster, name))

        yield these


def queued_namespace(cluster, tried):
    """A namespace in which such jobs wait: the API server learns of the policies a little later.

    Until it knows the schema of a definition that is new, it answers 503 where a policy would change an object.
    """
    namespace = labelled(cluster, cluster.namespace("queued"))
    item = tried(namespace)

    def waits():
        try:
            return is_marked(cluster.api.apply(item, dryRun="All"))
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                raise
        return False

    wait_until(waits, "new ones wait")
    return namespace


def is_marked(item):
    return item["metadata"].get("labels", {}).get(MARK) == "true"


class InItsPlace:
    """What the controller of JobSets does, as far as it matters here: a Job for each part, suspended with it."""

    def __init__(self, cluster, item):
        self._cluster = cluster
        self._item = seen(cluster, item)

    def _name(self, part):
        return f"{self._item['metadata']['name']}-{part['name']}-0"

    def start(self):
        metadata = self._item["metadata"]
        owner = {key: self._item[key] for key in ("apiVersion", "kind")}
        owner |= {"name": metadata["name"], "uid": metadata["uid"], "controller": True}
        for part in self._item["spec"]["replicatedJobs"]:
            item = job(self._name(part), metadata["namespace"], part["template"]["spec"]["parallelism"])
            item["metadata"]["ownerReferences"] = [owner]
            self._cluster.api.create(item)

    def suspend(self):
        for part in self._item["spec"]["replicatedJobs"]:
            namespace = self._item["metadata"]["namespace"]
            self._cluster.api.patch("jobs", self._name(part), {"spec": {"suspend": True}}, namespace)


def waiting(quotaward):
    return {each["name"]: (each["kind"], each["pods"]) for each in quotaward.get("/api/v1/jobs")["items"]}


def test_a_job_set_waits_starts_and_is_taken_back_and_its_kind_comes_and_goes(cluster, controllers, kinds, watch):  # noqa: F811
    owner = cluster.namespace("owner")
    with (
        Quotaward(cluster.control_plane, "--jobs.kinds=JobSet,RayJob") as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):
        kinds("JobSet")
        namespace = queued_namespace(cluster, lambda namespace: job_set("tried", namespace))
        mine, theirs = watch(namespace), watch(owner)
        cluster.quota(namespace, min={"cpu": 1}, max={"cpu": 4})
        cluster.quota(owner, min={"cpu": 3}, max={"cpu": 4})
        item = job_set("set", namespace)
        assert cluster.api.create(item)["spec"]["suspend"]
        wait_until(lambda: waiting(quotaward) == {"set": ("JobSet", 4)}, "it waits")
        ensure_for(1, lambda: suspended(cluster, item), "there is no room for all of its pods")

        cluster.node(cpu=4)
        wait_until(lambda: not suspended(cluster, item), "it is started")
        in_its_place = InItsPlace(cluster, item)
        in_its_place.start()
        wait_for(mine, bound=4)
        wait_until(lambda: not waiting(quotaward), "its pods have taken over all that was kept")

        cluster.api.create(pod("owner", owner))
        wait_until(lambda: suspended(cluster, item), "it is taken back for the owner")
        in_its_place.suspend()
        wait_for(theirs, bound=1)
        wait_until(lambda: not bound(mine), "all of its pods have gone")
        wait_until(lambda: events(cluster, namespace, "TakenBack"), "it is told")
        wait_until(lambda: waiting(quotaward) == {"set": ("JobSet", 4)}, "it waits again")

        remove(cluster, "JobSet")
        wait_until(lambda: not waiting(quotaward), "without its definition it is gone")
        assert quotaward.is_ready()
        install(cluster, "JobSet")
        cluster.api.delete("pods", "owner", owner, grace=0)
        cluster.api.create(job_set("again", namespace, workers=1))
        wait_until(lambda: not suspended(cluster, job_set("again", namespace)), "one of the new definition is started")


def json_patch(api, item, *steps):
    headers = {"Content-Type": "application/json-patch+json"}
    return api.request("PATCH", url_of(item), content=json.dumps(steps), headers=headers, params={"dryRun": "All"})


def replaced(path, value):
    return {"op": "add", "path": path, "value": value}


PARTS = {"Worker": {"replicas": 2, "template": template()}}
NEW = {
    "JobSet": (lambda namespace: job_set("j", namespace), "/spec/suspend"),
    "MPIJob": (lambda namespace: custom("MPIJob", "j", namespace, mpiReplicaSpecs=PARTS), "/spec/runPolicy/suspend"),
}


@pytest.mark.parametrize("kind", NEW)
def test_nobody_else_starts_such_a_job_and_quotaward_changes_nothing_else(cluster, kinds, kind):
    made, path = NEW[kind]
    kinds(kind)
    namespace = queued_namespace(cluster, made)
    item, api = cluster.api.create(made(namespace)), cluster.api
    ours = who(cluster, "quotaward", "quotaward-system")

    def says(answer):
        value = answer["spec"]
        for part in path.split("/")[2:]:
            value = value[part]
        return value

    assert says(item) is True
    start = replaced(path, value=False)
    assert says(json_patch(api, item, start)) is True, "the start is undone"
    assert says(json_patch(api, item, start, replaced("/metadata/annotations", {"a": "b"}))) is True
    assert says(json_patch(ours, item, start)) is False
    forbidden = {
        "its labels": replaced("/metadata/labels/x", "y"),
        "its annotations": replaced("/metadata/annotations", {"a": "b"}),
        "another field of the spec": replaced("/spec/other", 1),
        "another field beside it": replaced(f"{path.rpartition('/')[0]}/other", 1),
    }
    for what, step in forbidden.items():
        assert status(json_patch, ours, item, start, step) == INVALID, what
        assert status(json_patch, api, item, start, step) == httpx.codes.OK, what
    assert status(ours.request, "DELETE", url_of(item)) == httpx.codes.FORBIDDEN


def test_a_job_set_that_says_nothing_of_suspension_is_suspended_once(cluster, kinds):
    kinds("JobSet")
    item = cluster.api.create(job_set("j", cluster.namespace("free")))
    assert "suspend" not in item["spec"]
    kind = JobKind("JobSet", VERSIONS["JobSet"], "jobsets", ("spec", "suspend"))
    patch = suspension(BatchJob("free", "j", item["metadata"]["uid"], kind=kind, suspend_unset=True))
    assert json_patch(cluster.api, item, *patch)["spec"]["suspend"] is True
    running = cluster.api.merge(url_of(item), {"spec": {"suspend": False}})
    assert status(json_patch, cluster.api, running, *patch) == INVALID, "it is not as it was seen"


LEFT_ALONE = {
    "run by another controller": {"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}},
    "owned by another job": {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "example.com/v1", "kind": "Train", "name": "t", "uid": "1-2", "controller": True}
            ]
        }
    },
}


def test_job_sets_that_others_run_are_left_as_they_are(cluster, kinds):
    kinds("JobSet")
    namespace = queued_namespace(cluster, lambda namespace: job_set("tried", namespace))

    def tried(change):
        item = job_set("j", namespace)
        item["spec"] |= change.get("spec", {})
        item["metadata"] |= change.get("metadata", {})
        return is_marked(cluster.api.apply(item, dryRun="All"))

    assert tried({})
    assert not any(tried(change) for change in LEFT_ALONE.values())
    assert not is_marked(cluster.api.apply(job_set("j", cluster.namespace("free")), dryRun="All"))
