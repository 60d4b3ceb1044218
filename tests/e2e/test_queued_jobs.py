"""Jobs that wait as a whole, on a stock scheduler and kube-controller-manager: no pods until there is room."""

import pytest

from app.store.heeded import PARALLELISM
from tests.controlplane.objects import budget_of_none, job, pod
from tests.controlplane.processes import wait_until
from tests.e2e.test_ignore_disruptions import kubectl  # noqa: F401 - a fixture
from tests.e2e.test_jobs import KILLED, events, failed
from tests.e2e.test_queued_jobs_policy import (
    controllers,  # noqa: F401 - a fixture
    elastic,
    in_force,
    installed,  # noqa: F401 - a fixture
    labelled,
    numbers,
)
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


def lent(cluster, queued, watch, cpu):
    """A node of which a queued namespace may borrow all, but for one core of its own, and the owner of the rest.

    The owner's namespace, and the watches of pods of both.
    """
    cluster.node(cpu=cpu)
    owner = cluster.namespace("owner")
    cluster.quota(queued, min={"cpu": 1}, max={"cpu": cpu})
    cluster.quota(owner, min={"cpu": cpu - 1}, max={"cpu": cpu})
    return owner, watch(queued), watch(owner)


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
    owner, mine, theirs = lent(cluster, queued, watch, cpu=4)
    cluster.api.create(job("train", queued, 4, **spec))
    wait_for(mine, bound=4)
    cluster.api.create(pod("owner", owner))
    wait_for(theirs, bound=1)
    assert suspended(cluster, queued, "train") == ["train"]
    ensure_for(2, lambda: not mine.pods, "no part of it runs: there is no room for all of it")
    assert (failed(cluster, queued, "train"), status(cluster, queued, "train").get("failed")) == ("", None)
    wait_until(lambda: events(cluster, queued, "TakenBack"), "its Job is told")
    cluster.api.delete("pods", "owner", owner, grace=0)
    wait_for(mine, bound=4)
    assert (failed(cluster, queued, "train"), status(cluster, queued, "train").get("failed")) == ("", None)


def test_a_budget_keeps_a_job_from_being_suspended(cluster, queued, watch):
    owner, mine, theirs = lent(cluster, queued, watch, cpu=4)
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


def borrows(cluster, namespace):
    """Lets a namespace run only what there is free room for: nobody owes it anything."""
    cluster.quota(namespace, min={"cpu": 0}, max={"cpu": 6})
    cluster.quota(cluster.namespace("lender"), min={"cpu": 9}, max={"cpu": 9})


def stored(cluster, namespace, name="j"):
    return numbers(cluster.api.get("jobs", name, namespace))


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
def test_an_elastic_job_starts_with_what_there_is_room_for_and_grows(cluster, queued, watch, mode):
    completions = {"completions": 4, "completionMode": mode} if mode == "Indexed" else {}
    borrows(cluster, queued)
    cluster.node("n1", cpu=1)
    watching = watch(queued)
    item = elastic(queued, 4)
    item["spec"] |= completions
    cluster.api.create(item)
    ensure_for(1, lambda: not watching.pods, "one pod is fewer than its minimum")
    cluster.node("n2", cpu=2)
    wait_for(watching, bound=3)
    assert stored(cluster, queued) == (3, 4)
    wait_until(
        lambda: any("starts with 3 of 4 pods" in each for each in events(cluster, queued, "Started")), "it is said"
    )
    cluster.node("n3", cpu=9)
    wait_for(watching, bound=4)
    assert stored(cluster, queued) == (4, 4)
    wait_until(lambda: events(cluster, queued, "Grown"), "that is said, too")
    ensure_for(1, lambda: len(watching.pods) == 4, "it never has more pods than are asked for")


def test_its_manifest_is_applied_each_second_while_it_waits_and_grows(cluster, queued, watch, kubectl):  # noqa: F811
    """As a GitOps tool does it that applies on the server's side."""
    borrows(cluster, queued)
    cluster.node("n1", cpu=1)
    watching, item, seen = watch(queued), elastic(queued, 4), []

    def applied():
        done, said = kubectl(item, "apply", "--server-side")
        assert done == 0, said
        seen.append((stored(cluster, queued)[0], len(watching.pods)))
        return seen[-1]

    assert applied() == (4, 0)
    cluster.node("n0", cpu=1)
    wait_until(lambda: applied() == (2, 2), "it starts with two pods")
    ensure_for(2, lambda: applied() == (2, 2), "and keeps to them")
    cluster.node("n2", cpu=1)
    wait_until(lambda: applied() == (3, 3), "it grows by one")
    item["spec"]["parallelism"] = 5
    ensure_for(1, lambda: applied() == (3, 3), "what is asked for is not what is granted")
    assert stored(cluster, queued) == (3, 5)
    cluster.node("n3", cpu=5)
    wait_until(lambda: applied() == (5, 5), "it has all that its user asks for")
    item["spec"]["parallelism"] = 2
    wait_until(lambda: applied()[0] == 2 and len(bound(watching)) == 2, "and less as soon as he asks for less")


def test_a_job_with_a_minimum_that_cannot_be_read_starts_with_all_of_its_pods(cluster, queued, watch):
    borrows(cluster, queued)
    cluster.node("n1", cpu=2)
    watching = watch(queued)
    cluster.api.create(elastic(queued, 3, least="two"))
    ensure_for(1, lambda: not watching.pods, "there is no room for all of it")
    cluster.node("n2", cpu=1)
    wait_for(watching, bound=3)
    assert PARALLELISM not in cluster.api.get("jobs", "j", queued)["metadata"]["annotations"]
    [event] = wait_until(lambda: events(cluster, queued, "NotElastic"), "its user is told")
    assert "quotaward.dev/min-parallelism" in event


@pytest.mark.parametrize(
    "spec",
    [{"backoffLimit": 0}, {"podFailurePolicy": {"rules": [KILLED]}}, {"completions": 4, "completionMode": "Indexed"}],
    ids=["backoffLimit 0", "FailJob on 137", "Indexed"],
)
def test_an_elastic_job_is_lowered_to_its_minimum_and_only_then_suspended(cluster, queued, watch, spec):
    owner, mine, theirs = lent(cluster, queued, watch, cpu=4)
    item = elastic(queued, 4)
    item["spec"] |= spec
    cluster.api.create(item)
    wait_for(mine, bound=4)
    for name, left in ("o1", 3), ("o2", 2):
        cluster.api.create(pod(name, owner))
        wait_until(lambda name=name: name in bound(theirs), f"{name} has its room")
        assert (stored(cluster, queued), suspended(cluster, queued, "j")) == ((left, 4), [])
        ensure_for(1, lambda left=left: len(mine.pods) == left, "no more go, and none comes back")
    lowered = "parallelism lowered from 3 to 2"
    wait_until(lambda: any(lowered in each for each in events(cluster, queued, "TakenBack")), "its Job is told")
    cluster.api.create(pod("o3", owner))
    wait_until(lambda: "o3" in bound(theirs), "the last one has its room")
    assert (stored(cluster, queued), suspended(cluster, queued, "j")) == ((4, 4), ["j"])
    assert (failed(cluster, queued, "j"), status(cluster, queued, "j").get("failed")) == ("", None)
    for name in ("o1", "o2"):
        cluster.api.delete("pods", name, owner, grace=0)
    wait_for(mine, bound=3)
    assert stored(cluster, queued) == (3, 4)
    cluster.api.delete("pods", "o3", owner, grace=0)
    wait_for(mine, bound=4)
    assert (failed(cluster, queued, "j"), status(cluster, queued, "j").get("failed")) == ("", None)


def test_a_budget_keeps_an_elastic_job_from_being_lowered(cluster, queued, watch):
    owner, mine, theirs = lent(cluster, queued, watch, cpu=3)
    item = elastic(queued, 3, 1)
    item["spec"]["template"]["metadata"]["labels"] = {"app": "train"}
    cluster.api.create(budget_of_none("none", queued, app="train"))
    cluster.api.create(item)
    wait_for(mine, bound=3)
    cluster.api.create(pod("owner", owner))
    ensure_for(3, lambda: len(bound(mine)) == 3 and not bound(theirs), "all of it stays")
    assert stored(cluster, queued) == (3, 3)
    cluster.api.delete("poddisruptionbudgets", "none", queued)
    wait_for(theirs, bound=1)
    assert stored(cluster, queued) == (2, 3)


def test_it_is_lowered_again_until_the_owner_has_room_where_it_needs_it(cluster, queued, watch):
    """Each pod has a node of its own, and the owner can use only one of these."""
    owner = cluster.namespace("owner")
    cluster.quota(queued, min={"cpu": 0}, max={"cpu": 4})
    cluster.quota(owner, min={"cpu": 4}, max={"cpu": 4})
    for number in range(4):
        cluster.node(f"n{number}", cpu=1)
    mine, theirs = watch(queued), watch(owner)
    cluster.api.create(elastic(queued, 4, 1))
    wait_for(mine, bound=4)
    choosy = pod("owner", owner)
    choosy["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n2"}
    cluster.api.create(choosy)
    wait_for(theirs, bound=1)
    ensure_for(3, lambda: bound(theirs), "and keeps it")
    assert failed(cluster, queued, "j") == ""
