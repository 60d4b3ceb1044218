"""The policy of manifests/jobs/ignore-disruptions: which Jobs get the rule, what it saves, and what it does not."""

import os
import subprocess

import pytest
import yaml

from tests.controlplane.api import read_manifests
from tests.controlplane.gates import delete
from tests.controlplane.objects import budget_of_none, job, pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward, right_to_delete
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.test_jobs import IGNORE, KILLED, controllers, failed  # noqa: F401 - a fixture
from tests.e2e.test_manifests import MANIFESTS
from tests.e2e.waiting import bound, ensure_for, evicted, wait_for

LABEL = "quotaward.dev/ignore-disruptions"
GIVEN = {"rules": [IGNORE]}, "Failed"


def rules(item):
    """What a Job says of failed pods, and of when they are replaced."""
    return item["spec"].get("podFailurePolicy"), item["spec"]["podReplacementPolicy"]


def tried(cluster, item):
    """A Job as the API server would store it."""
    return cluster.api.apply(item, dryRun="All")


def labelled(cluster, namespace, value="true"):
    cluster.api.patch("namespaces", namespace, {"metadata": {"labels": {LABEL: value}}})
    return namespace


@pytest.fixture
def asking(cluster):
    """A namespace that asks for the rule, with the policy in force."""
    items = read_manifests(MANIFESTS / "jobs/ignore-disruptions")
    for item in items:
        cluster.api.apply(item)
    try:
        namespace = labelled(cluster, cluster.namespace("asking"))
        wait_until(lambda: rules(tried(cluster, job("j", namespace))) == GIVEN, "new Jobs get the rule")
        yield namespace
    finally:
        for item in reversed(items):
            delete(cluster, item)


@pytest.mark.parametrize("asks", [True, False], ids=["a namespace that asks for it", "another"])
def test_an_owner_gets_its_room_and_the_borrowers_job_fails_only_elsewhere(
    cluster,
    scheduler,
    controllers,  # noqa: F811
    asking,
    watch,
    asks,
):
    cluster.node(cpu=4)
    borrower, owner = asking if asks else cluster.namespace("borrower"), cluster.namespace("owner")
    cluster.quota(borrower, min={"cpu": 1}, max={"cpu": 4})
    cluster.quota(owner, min={"cpu": 3}, max={"cpu": 4})
    borrowing, owning = watch(borrower), watch(owner)
    cluster.api.create(job("train", borrower, 4, backoffLimit=0))
    wait_for(borrowing, bound=4)
    cluster.api.create(pod("owner", owner))
    wait_for(owning, bound=1)
    if asks:
        ensure_for(3, lambda: len(evicted(borrowing)) == 1 and len(bound(borrowing)) == 3, "three go on")
        assert not failed(cluster, borrower, "train")
        assert not cluster.api.get("jobs", "train", borrower)["status"].get("failed")
    else:
        wait_until(lambda: failed(cluster, borrower, "train") == "BackoffLimitExceeded", "the Job has failed")
        wait_for(borrowing, bound=0)


def test_a_pod_deleted_past_a_budget_fails_no_job_that_ignores_disruptions(
    cluster,
    controllers,  # noqa: F811
    watch,
):
    cluster.node(cpu=2)
    lending, owner = cluster.namespace("lending"), cluster.namespace("owner")
    cluster.quota(lending, min={"cpu": 1}, max={"cpu": 2})
    cluster.quota(owner, min={"cpu": 1}, max={"cpu": 2})
    lent, owning = watch(lending), watch(owner)
    cluster.api.create(budget_of_none("never", lending, app="lent"))
    item = job("train", lending, 2, backoffLimit=0, podFailurePolicy={"rules": [IGNORE]})
    item["spec"]["template"]["metadata"] = {"labels": {"app": "lent"}}
    with (
        right_to_delete(cluster.api),
        Quotaward(cluster.control_plane, "--reclaim.budget-patience=1") as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):
        cluster.api.create(item)
        wait_for(lent, bound=2)
        cluster.api.create(pod("owner", owner))
        wait_for(owning, bound=1)
        ensure_for(3, lambda: len(bound(lent)) == 1, "the other goes on")
    assert not failed(cluster, lending, "train")
    assert not cluster.api.get("jobs", "train", lending)["status"].get("failed")


@pytest.mark.parametrize(
    "ends",
    [
        lambda cluster, namespace, name: cluster.api.patch(
            "pods", f"{name}/status", {"status": {"phase": "Failed"}}, namespace
        ),
        lambda cluster, namespace, name: cluster.api.delete("pods", name, namespace),
    ],
    ids=["fails by itself", "is deleted, not evicted"],
)
def test_a_job_with_the_rule_still_fails_by_what_is_no_disruption(
    cluster,
    scheduler,
    controllers,  # noqa: F811
    asking,
    watch,
    ends,
):
    cluster.node(cpu=4)
    running = watch(asking)
    cluster.api.create(job("train", asking, 2, backoffLimit=0))
    wait_for(running, bound=2)
    ends(cluster, asking, min(bound(running)))
    wait_until(lambda: failed(cluster, asking, "train") == "BackoffLimitExceeded", "the Job has failed")


def test_jobs_that_say_something_else_are_left_as_they_are(cluster, asking):
    elsewhere, off = cluster.namespace("elsewhere"), labelled(cluster, cluster.namespace("off"), "false")

    def both(**spec):
        """What a Job with such a spec says of failed pods where it was asked for the rule, and elsewhere."""
        return tuple(rules(tried(cluster, job("j", each, **spec))) for each in (asking, elsewhere))

    plain = None, "TerminatingOrFailed"
    assert both() == (GIVEN, plain)
    assert both(podReplacementPolicy="Failed") == (GIVEN, (None, "Failed"))
    assert both(managedBy="kubernetes.io/job-controller") == (GIVEN, plain)
    assert both(managedBy="example.com/queue") == (plain, plain)
    for own in ([KILLED], [KILLED, IGNORE]):
        assert both(podFailurePolicy={"rules": own}) == (({"rules": own}, "Failed"),) * 2
    (none, _), _ = both(podFailurePolicy={"rules": []})
    assert not none["rules"]
    restarting = job("j", asking)
    restarting["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    assert rules(tried(cluster, restarting)) == plain
    assert rules(tried(cluster, job("j", off))) == plain


@pytest.fixture
def kubectl(cluster, install_tools, tmp_path):
    """Runs kubectl with a Job as its manifest: its exit status, and all that it says."""
    config = ("--kubeconfig", str(cluster.control_plane.kubeconfig))
    env = os.environ | {"HOME": str(tmp_path)}

    def run(item, *command):
        command = (str(install_tools["kubectl"]), *command, *config, "-f", "-")
        text = yaml.safe_dump(item)
        done = subprocess.run(command, check=False, input=text, capture_output=True, text=True, env=env, timeout=60)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize("side", ["client-side", "server-side"])
def test_a_job_with_the_rule_is_applied_again_as_any_other_job(cluster, asking, kubectl, side):
    flags = ["--server-side"] if side == "server-side" else []
    item = job("j", asking)

    def stored():
        found = cluster.api.get("jobs", "j", asking)
        return rules(found), found["spec"]["parallelism"]

    assert "+  podFailurePolicy:" in kubectl(item, "diff", *flags)[1], "the diff of a new Job shows the rule"
    assert kubectl(item, "apply", *flags)[0] == 0
    assert kubectl(item, "diff", *flags) == (0, ""), "that of an existing one does not"
    item["spec"] |= {"parallelism": 0}
    assert kubectl(item, "apply", *flags)[0] == 0
    assert stored() == (GIVEN, 0)
    written = item["spec"] | {"podFailurePolicy": {"rules": [IGNORE]}}
    assert kubectl(item | {"spec": written}, "apply", *flags)[0] == 0, "the rule may be written down afterwards"
    assert stored() == (GIVEN, 0)
    other = item["spec"] | {"podFailurePolicy": {"rules": [KILLED]}}
    assert "field is immutable" in kubectl(item | {"spec": other}, "apply", *flags)[1]


@pytest.mark.parametrize("side", ["client-side", "server-side"])
def test_a_manifest_that_replaces_pods_before_they_end_is_applied_only_once(asking, kubectl, side):
    flags = ["--server-side"] if side == "server-side" else []
    item = job("j", asking, podReplacementPolicy="TerminatingOrFailed")
    assert kubectl(item, "apply", *flags)[0] == 0
    assert 'Unsupported value: "TerminatingOrFailed"' in kubectl(item, "apply", *flags)[1]


def test_jobs_that_are_there_keep_what_they_have(cluster, asking):
    late = cluster.namespace("late")
    cluster.api.create(job("before", late))
    labelled(cluster, late)
    wait_until(lambda: rules(tried(cluster, job("j", late))) == GIVEN, "new Jobs get the rule")
    kept = cluster.api.patch("jobs", "before", {"spec": {"parallelism": 0}}, late)
    assert rules(kept) == (None, "TerminatingOrFailed")
    given = cluster.api.create(job("given", late))
    labelled(cluster, late, None)
    wait_until(lambda: rules(tried(cluster, job("j", late))) != GIVEN, "new Jobs do not get it any more")
    assert rules(cluster.api.patch("jobs", "given", {"spec": {"parallelism": 0}}, late)) == rules(given) == GIVEN
