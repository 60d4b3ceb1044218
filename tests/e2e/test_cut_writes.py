"""The leader fails at every write of a start and of a take-back: no Job is started twice, and none is forgotten."""

import asyncio
import json
import os
import signal
from contextlib import suppress
from itertools import pairwise

import aiohttp
import pytest

from tests.chaos.gateway import Gateway
from tests.chaos.recorder import Recorder
from tests.controlplane.objects import job, pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.test_jobs import failed
from tests.e2e.test_queued_jobs import lent
from tests.e2e.test_queued_jobs_policy import controllers, elastic, in_force, installed, labelled  # noqa: F401 - fixtures
from tests.e2e.waiting import bound, wait_for

TAKE_BACK = {"plan", "suspend", "end of the plan"}
"""Writes of which each is cut once, beside the start."""
HANGS = 30
"""Seconds for which an answer does not come: for longer than anybody waits for it."""


def write_of(method, path, body):
    """What a request writes, if it is one of those that are cut."""
    match method, path.split("/")[3:]:
        case "PATCH", ["v1", "namespaces", _, "jobs", _]:
            return "suspend" if json.loads(body)[-1]["value"] else "start"
        case "POST", [_, "reservations"]:
            return "plan"
        case "DELETE", [_, "reservations", _]:
            return "end of the plan"
    return ""


class Cutting(Gateway):
    """A way to the API server on which each kind of write fails once, as ``how`` says."""

    def __init__(self, api, how):
        super().__init__(api.url, api.ca_file)
        self.how = how
        self.cut_at: list[str] = []
        self.pid = 0

    async def _pass_on(self, request):
        write = write_of(request.method, request.path, await request.read())
        if not write or write in self.cut_at:
            return await super()._pass_on(request)
        self.cut_at.append(write)
        print("cut:", write, flush=True)
        if self.how != "killed before it":
            await super()._pass_on(request)
        if self.how == "its answer hangs":
            await asyncio.sleep(HANGS)
        elif self.how != "its answer is lost":
            os.kill(self.pid, signal.SIGKILL)
        raise aiohttp.ClientConnectionError("cut by the test")


class LosingEach(Gateway):
    """A way to the API server on which the first answer to each change of a Job is lost."""

    def __init__(self, api):
        super().__init__(api.url, api.ca_file)
        self.lost: list[bytes] = []

    async def _pass_on(self, request):
        body = await request.read()
        of_a_job = request.method == "PATCH" and "/jobs/" in request.path
        if not of_a_job or body in self.lost or all(each["op"] == "test" for each in json.loads(body)):
            return await super()._pass_on(request)
        await super()._pass_on(request)
        self.lost.append(body)
        raise aiohttp.ClientConnectionError("lost by the test")


class Failing(Quotaward):
    """A Quotaward on such a way, which is started again whenever it was killed."""

    def __init__(self, control_plane, way):
        super().__init__(control_plane, "--leader.lease-duration", "3", server=way.url)
        self.way = way

    def start(self):
        super().start()
        self.way.pid = self.process.pid

    def wait_until(self, holds, what):
        def revived():
            if not self.process.alive:
                with suppress(AssertionError):  # it may be killed before it is ready
                    self.start()
            return holds()

        wait_until(revived, what, timeout=90, detail=lambda: self.way.cut_at)


def changes(records, name):
    """How often a Job was started and suspended since it was created."""
    seen = [record.object["spec"]["suspend"] for record in records if record.object["metadata"]["name"] == name]
    turns = [now for before, now in pairwise(seen) if before != now]
    return {"started": turns.count(False), "suspended": turns.count(True)}


@pytest.fixture
def queued(cluster, installed):  # noqa: F811
    namespace = in_force(cluster, cluster.namespace("queued"))
    yield namespace
    labelled(cluster, namespace, None)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("how", ["killed before it", "killed after it", "its answer is lost", "its answer hangs"])
def test_whatever_write_the_leader_fails_at_each_job_is_started_once_for_its_turn(cluster, queued, watch, how):
    owner, mine, theirs = lent(cluster, queued, watch, cpu=4)

    def runs(name):
        return {each.rpartition("-")[0] for each in bound(mine)} == {name} and len(bound(mine)) == 4

    with (
        Recorder(cluster.api, ("jobs",)) as recorder,
        Cutting(cluster.api, how) as way,
        Failing(cluster.control_plane, way) as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):
        for name in ("first", "second"):
            cluster.api.create(job(name, queued, 4, backoffLimit=0))
        quotaward.wait_until(lambda: runs("first"), "the first runs")
        cluster.api.create(pod("owner", owner, cpu=3))
        quotaward.wait_until(lambda: bound(theirs), "the owner has its room back")
        quotaward.wait_until(lambda: not mine.pods, "no pod of the Job is left")
        quotaward.wait_until(lambda: way.cut_at.count("end of the plan"), "the plan has ended")
        cluster.api.delete("pods", "owner", owner, grace=0)
        quotaward.wait_until(lambda: runs("first"), "the first runs again")
        cluster.api.delete("jobs", "first", queued)
        for name in bound(mine):  # no garbage collector runs
            cluster.api.delete("pods", name, queued, grace=0)
        quotaward.wait_until(lambda: runs("second"), "the second runs")
        assert not failed(cluster, queued, "second")
    assert {*way.cut_at} == {"start", *TAKE_BACK}
    assert changes(recorder.records, "first") == {"started": 2, "suspended": 1}
    assert changes(recorder.records, "second") == {"started": 1, "suspended": 0}
    conditions = [c for record in recorder.records for c in record.object.get("status", {}).get("conditions", ())]
    assert not any(each["type"] in ("Failed", "FailureTarget") for each in conditions)


@pytest.mark.timeout(600)
def test_each_change_of_an_elastic_job_is_made_once_though_all_answers_are_lost(cluster, queued, watch):
    owner, mine, theirs = lent(cluster, queued, watch, cpu=4)
    with (
        Recorder(cluster.api, ("jobs",)) as recorder,
        LosingEach(cluster.api) as way,
        Quotaward(cluster.control_plane, server=way.url) as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):
        cluster.api.create(elastic(queued, 4))
        wait_for(mine, bound=4)
        for name in ("o1", "o2", "o3"):
            cluster.api.create(pod(name, owner))
            wait_until(lambda name=name: name in bound(theirs), f"{name} has its room")
        for number, name in enumerate(("o1", "o2", "o3"), start=2):
            cluster.api.delete("pods", name, owner, grace=0)
            wait_for(mine, bound=number)
    specs = [record.object["spec"] for record in recorder.records if record.object["metadata"]["namespace"] == queued]
    seen = [("suspended" if spec["suspend"] else "runs", spec["parallelism"]) for spec in specs]
    changed = [now for before, now in pairwise([None, *seen]) if before != now]
    assert len(way.lost) >= len(changed) - 1
    assert changed == [
        *(("suspended", 4), ("runs", 4), ("runs", 3), ("runs", 2)),
        *(("suspended", 4), ("runs", 2), ("runs", 3), ("runs", 4)),
    ]
