"""Many Jobs that wait as a whole are taken back at once: none fails, none is taken back twice, and each goes on."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.chaos.recorder import Recorder
from tests.controlplane.objects import is_bound, job, pods
from tests.controlplane.processes import wait_until
from tests.e2e.test_cut_writes import changes
from tests.e2e.test_queued_jobs_policy import controllers, in_force, installed, labelled  # noqa: F401 - fixtures
from tests.e2e.waiting import wait_for

INDEX = "batch.kubernetes.io/job-completion-index"
JOB = "batch.kubernetes.io/job-name"
LONG = bool(os.environ.get("QUOTAWARD_LONG"))
JOBS = 400 if LONG else 40


@pytest.fixture
def queued(cluster, installed):  # noqa: F811
    namespace = in_force(cluster, cluster.namespace("queued"))
    yield namespace
    labelled(cluster, namespace, None)


def end(cluster, namespace, watching, index):
    """The pods of this index end well."""
    of_index = [item for item in watching.pods if item["metadata"]["labels"][INDEX] == index and is_bound(item)]
    running = [item["metadata"]["name"] for item in of_index if item["status"]["phase"] == "Running"]
    change = {"status": {"phase": "Succeeded"}}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: cluster.api.patch("pods", f"{name}/status", change, namespace), running))


@pytest.mark.timeout(900 if LONG else 300)
def test_jobs_that_are_taken_back_at_once_do_not_fail_and_do_only_what_is_left(
    cluster, queued, quotaward, scheduler, watch
):
    cluster.node(cpu=2 * JOBS, pods=4 * JOBS)
    owner = cluster.namespace("owner")
    cluster.quota(queued, min={"cpu": 0}, max={"cpu": 2 * JOBS})
    cluster.quota(owner, min={"cpu": 2 * JOBS}, max={"cpu": 2 * JOBS})
    mine, theirs = watch(queued), watch(owner)
    names = [f"job-{number:03}" for number in range(JOBS)]
    before = quotaward.metric("quotaward_jobs_taken_back_total")

    def status(name):
        return cluster.api.get("jobs", name, queued)["status"]

    def running(index):
        return sum(
            item["metadata"]["labels"][INDEX] == index and item["status"]["phase"] == "Running" for item in mine.pods
        )

    with Recorder(cluster.api, ("jobs", "pods")) as recorder:
        indexed = {"completionMode": "Indexed", "backoffLimit": 0}
        cluster.api.create_all(job(name, queued, 2, **indexed) for name in names)
        wait_for(mine, bound=2 * JOBS, timeout=200)
        wait_until(lambda: running("0") == JOBS, "they run")
        end(cluster, queued, mine, "0")
        wait_until(lambda: all(status(name).get("completedIndexes") == "0" for name in names), "the first half is done")
        cluster.api.create_all(pods(2 * JOBS, owner))
        wait_for(theirs, bound=2 * JOBS, timeout=200)
        assert quotaward.metric("quotaward_jobs_taken_back_total") - before == JOBS
        cluster.api.delete_all("pods", owner)
        wait_until(lambda: running("1") == JOBS, "they go on", 200)
        end(cluster, queued, mine, "1")
        wait_until(lambda: all(status(name).get("succeeded") == 2 for name in names), "all are done", 200, every=1)
    jobs = [each for each in recorder.records if each.kind == "jobs" and each.object["metadata"]["namespace"] == queued]
    of_each = {name: changes(jobs, name) for name in names}
    assert {name: found for name, found in of_each.items() if found != {"started": 2, "suspended": 1}} == {}
    assert not [name for name in names if status(name).get("failed")]
    made = {
        record.object["metadata"]["uid"]: record.object["metadata"]["labels"]
        for record in recorder.records
        if record.kind == "pods" and record.object["metadata"]["namespace"] == queued
    }
    assert Counter((of[JOB], of[INDEX]) for of in made.values()) == {
        (name, index): times for name in names for index, times in (("0", 1), ("1", 2))
    }
