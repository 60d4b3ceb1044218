"""Jobs that wait as a whole, on a stock scheduler and kube-controller-manager: no pods until there is room."""

import pytest

from tests.controlplane.objects import budget_of_none, job, pod
from tests.controlplane.processes import wait_until
from tests.e2e.test_jobs import KILLED, events, failed
from tests.e2e.test_queued_jobs_policy import controllers, in_force, installed, labelled  # noqa: F401 - fixtures
from tests.e2e.waiting import bound, ensure_for, wait_for


@pytest.fixture
def queued(cluster, quotaward, scheduler, installed):  # noqa: F811
    """A namespace whose Jobs wait as a whole, for a Quotaward with the right to start them and no more."""
    namespace = in_force(cluster, cluster.namespace("queued"))
    yield namespace
    labelled(cluster, namespace, None)


def status(cluster, namespace, name):
    return cluster.api.get("jobs", name, namespace).get("status", {})


def suspended(cluster, namespace, *names):
    return [name for name in names if cluster.api.get("jobs", name, namespace)["spec"]["suspend"]]


def test_jobs_start_one_after_the_other_as_there_is_room_for_all_pods_of_each(cluster, queued, watch):
    cluster.quota(queued, min={"cpu": 4}, max={"cpu": 4})
    watching = watch(queued)
    for name in ("first", "second"):
        cluster.api.create(job(name, queued, 3))
    cluster.node(cpu=8)
    wait_for(watching, bound=3)
    ensure_for(2, lambda: len(watching.pods) == 3, "the other has no pods")
    assert suspended(cluster, queued, "first", "second") == ["second"]
    cluster.api.delete("jobs", "first", queued)
    for name in bound(watching):
        cluster.api.delete("pods", name, queued, grace=0)
    wait_until(lambda: not suspended(cluster, queued, "second"), "the second starts")
    wait_until(lambda: {name.split("-")[0] for name in bound(watching)} == {"second"}, "its pods run")
    wait_for(watching, bound=3)


def test_room_of_a_started_job_is_kept_for_its_pods(cluster, queued, watch):
    cluster.node(cpu=4)
    other = cluster.namespace("other")
    cluster.quota(queued, min={"cpu": 4}, max={"cpu": 4})
    cluster.quota(other, min={"cpu": 0}, max={"cpu": 4})
    mine = watch(queued)
    cluster.api.create(job("train", queued, 4))
    wait_until(lambda: not suspended(cluster, queued, "train"), "it starts")
    cluster.api.create(pod("late", other))
    wait_for(mine, bound=4)


@pytest.mark.parametrize(
    "spec",
    [{"backoffLimit": 0}, {"podFailurePolicy": {"rules": [KILLED]}}, {}, {"completionMode": "Indexed"}],
    ids=["backoffLimit 0", "FailJob on 137", "the default", "Indexed"],
)
def test_a_job_that_borrows_is_suspended_for_the_owner_and_resumes_where_it_stood(cluster, queued, watch, spec):
    cluster.node(cpu=4)
    owner = cluster.namespace("owner")
    cluster.quota(queued, min={"cpu": 1}, max={"cpu": 4})
    cluster.quota(owner, min={"cpu": 3}, max={"cpu": 4})
    mine, theirs = watch(queued), watch(owner)
    cluster.api.create(job("train", queued, 4, **spec))
    wait_for(mine, bound=4)
    cluster.api.create(pod("owner", owner))
    wait_for(theirs, bound=1)
    assert suspended(cluster, queued, "train") == ["train"]
    ensure_for(2, lambda: not mine.pods, "no part of it runs: there is no room for all of it")
    assert (failed(cluster, queued, "train"), status(cluster, queued, "train").get("failed")) == ("", None)
    assert events(cluster, queued, "TakenBack")
    cluster.api.delete("pods", "owner", owner, grace=0)
    wait_for(mine, bound=4)
    assert (failed(cluster, queued, "train"), status(cluster, queued, "train").get("failed")) == ("", None)


def test_a_budget_keeps_a_job_from_being_suspended(cluster, queued, watch):
    cluster.node(cpu=4)
    owner = cluster.namespace("owner")
    cluster.quota(queued, min={"cpu": 1}, max={"cpu": 4})
    cluster.quota(owner, min={"cpu": 3}, max={"cpu": 4})
    mine, theirs = watch(queued), watch(owner)
    item = job("train", queued, 4)
    item["spec"]["template"]["metadata"]["labels"] = {"app": "train"}
    cluster.api.create(budget_of_none("none", queued, app="train"))
    cluster.api.create(item)
    wait_for(mine, bound=4)
    cluster.api.create(pod("owner", owner))
    ensure_for(4, lambda: len(bound(mine)) == 4 and not bound(theirs), "all of it stays")
    cluster.api.delete("poddisruptionbudgets", "none", queued)
    wait_for(theirs, bound=1)
    assert suspended(cluster, queued, "train") == ["train"]
