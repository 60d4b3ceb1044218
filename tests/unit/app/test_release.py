"""All that waits is released through the API server alone: gates are opened, and Jobs are started."""

import asyncio
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from app import release as releasing
from app.cli import app
from app.kube.client import KubeClient
from app.kube.definitions import Served
from app.release import GATES, JOBS_OF_ALL_KINDS, QUEUED_JOBS, CannotList
from tests.unit.app.given import pod
from tests.unit.app.test_custom_jobs import job_set
from tests.unit.app.test_queued_jobs import GATE, job


class Server:
    """An API server with pods and Jobs. ``suspends``: its policy undoes every start. ``errs``: names that fail."""

    def __init__(self, *items, suspends=False, errs=()):
        self.items = {item["metadata"]["uid"]: item for item in items}
        self.suspends, self.errs = suspends, set(errs)
        self.asked, self.patched = [], []

    @asynccontextmanager
    async def get(self, path, query, read_timeout):
        self.asked.append((path, dict(query)))
        namespace = path.split("/")[-2] if "/namespaces/" in path else None
        there = [item for item in self.items.values() if self._is_meant(item, path, query, namespace)]
        start, limit = int(query.get("continue", 0)), int(query.get("limit", 1))
        meta = {"continue": str(start + limit)} if start + limit < len(there) else {}
        body, status = {"metadata": meta, "items": there[start : start + limit]}, 200
        if path == "/api/v1/namespaces/typo":
            body, status = {}, 404
        yield SimpleNamespace(status=status, read=lambda: _done(json.dumps(body).encode()))

    def _is_meant(self, item, path, query, namespace):
        marked = (item["metadata"].get("labels") or {}).get("quotaward.dev/queued") == "true"
        of_kind = path.endswith(f"/{item['kind'].lower()}s")
        return (
            of_kind and namespace in (None, item["metadata"]["namespace"]) and (marked or "labelSelector" not in query)
        )

    async def send(self, _method, path, patch, _content_type, **_):
        name = path.rpartition("/")[2].partition("?")[0]
        self.patched += [name] if any(each["op"] != "test" for each in patch) else []
        item = next(item for item in self.items.values() if item["metadata"]["name"] == name)
        spec = item["spec"]
        if name in self.errs or item["metadata"]["uid"] != patch[0]["value"]:
            return 422, b'{"message": "it is not as it was"}'
        if item["kind"] == "Pod":
            spec["schedulingGates"].remove(GATE)
        elif item["kind"] != "Job":
            spec["suspend"] = patch[2]["value"]
        elif [each["value"] for each in patch[1:3]] == [spec["suspend"], spec["parallelism"]]:
            spec["suspend"] = self.suspends
            spec["parallelism"] = next((e["value"] for e in patch[3:] if "parallel" in e["path"]), spec["parallelism"])
        return 200, b""

    async def close(self):
        self.closed = True


async def _done(value):
    return value


@pytest.fixture
def released(monkeypatch):
    """Releases what waits on a server; the number and the failures."""

    def release(work, server, namespace=""):
        monkeypatch.setattr(KubeClient, "connect", lambda _: _done(server))
        found = asyncio.run(releasing.release(work, None, namespace))
        assert server.closed
        return found

    return release


def of(item, **metadata):
    return item | {"metadata": item["metadata"] | metadata}


def still_suspended(server):
    return sorted(each["metadata"]["name"] for each in server.items.values() if each["spec"].get("suspend"))


def test_all_jobs_that_were_suspended_for_us_are_started_however_many_pages(released, monkeypatch):
    monkeypatch.setattr(releasing, "PAGE", 3)
    server = Server(*(job(f"j{number}", number) for number in range(10)))
    assert released(QUEUED_JOBS, server) == (10, [])
    assert still_suspended(server) == []


def test_jobs_that_do_not_wait_for_us_stay_as_they_are(released):
    controller = {"apiVersion": "x/v1", "kind": "JobSet", "name": "set", "uid": "s", "controller": True}
    theirs = [
        of(job("unmarked"), labels={}),
        job("foreign", managedBy="example.com/theirs"),
        of(job("member"), ownerReferences=[controller]),
        of(job("deleted"), deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["orphan"]),
        job("ended") | {"status": {"conditions": [{"type": "Failed", "status": "True"}]}},
    ]
    server = Server(*theirs, job("runs", suspend=False), job("mine"))
    assert released(QUEUED_JOBS, server) == (1, [])
    assert server.patched == ["mine"]


@pytest.mark.parametrize("suspend", [True, False])
def test_an_elastic_job_gets_all_the_pods_that_its_user_asks_for(released, suspend):
    asked = {"quotaward.dev/min-parallelism": "1", "quotaward.dev/parallelism": "8"}
    server = Server(of(job("small", 2, suspend=suspend), annotations=asked))
    assert released(QUEUED_JOBS, server) == (1, [])
    spec = server.items["uid-small"]["spec"]
    assert (spec["suspend"], spec["parallelism"], server.patched) == (False, 8, ["small"])


def test_jobs_of_one_namespace_are_started_alone(released):
    server = Server(job("mine"), job("other", namespace="b"))
    assert released(QUEUED_JOBS, server, "a") == (1, [])
    assert still_suspended(server) == ["other"]


def test_a_job_that_the_server_does_not_start_is_tried_again_and_told(released):
    server = Server(job("good"), job("bad"), errs={"bad"})
    number, failures = released(QUEUED_JOBS, server)
    assert (number, failures) == (1, ["a/bad: the API server answered 422: it is not as it was"])
    assert server.patched.count("bad") == releasing.PASSES


def test_while_the_policy_suspends_jobs_again_it_is_said_what_to_do(released):
    server = Server(job("train"), suspends=True)
    number, failures = released(QUEUED_JOBS, server)
    assert (number, server.patched) == (0, ["train"])
    assert failures == [f"a/train: {releasing.AGAIN}"]


def test_our_gates_are_opened_and_no_others(released):
    theirs = {"name": "example.com/theirs"}
    server = Server(pod("mine", schedulingGates=[theirs, GATE]), pod("other", schedulingGates=[theirs]))
    assert released(GATES, server) == (1, [])
    assert server.items["a/mine"]["spec"]["schedulingGates"] == [theirs]
    assert server.asked[0][1]["fieldSelector"] == "spec.nodeName="


@pytest.mark.parametrize("installed", [True, False])
def test_job_sets_are_started_too_where_that_kind_is_installed(released, monkeypatch, installed):
    async def served(_, kind):
        return Served.YES if installed and kind.plural == "jobsets" else Served.NO

    monkeypatch.setattr(releasing, "served", served)
    ours = {"uid": "uid-set", "labels": {"quotaward.dev/queued": "true"}}
    server = Server(job("train"), job_set(metadata=ours), job_set("theirs", metadata=ours | {"uid": "u", "labels": {}}))
    assert [released(work, server) for work in JOBS_OF_ALL_KINDS[:3]] == [(1, []), (int(installed), []), (0, [])]
    assert still_suspended(server) == (["theirs"] if installed else ["set", "theirs"])


@pytest.mark.parametrize("work", [GATES, QUEUED_JOBS])
def test_an_unknown_namespace_is_told_from_one_where_nothing_waits(released, work):
    assert released(work, Server(), "a") == (0, [])
    with pytest.raises(CannotList, match="there is no namespace typo"):
        released(work, Server(), "typo")


@pytest.mark.parametrize(
    ("errs", "status", "said"),
    [
        ((), 0, "2 Jobs started\n"),
        (
            ("bad",),
            1,
            "1 Jobs started\n1 could not be started:\na/bad: the API server answered 422: it is not as it was\n",
        ),
    ],
)
def test_the_command_says_how_many_jobs_were_started(monkeypatch, errs, status, said):
    server = Server(job("good"), job("bad"), errs=errs)
    monkeypatch.setattr(KubeClient, "connect", lambda _: _done(server))
    done = CliRunner().invoke(app, ["jobs", "release", "--kubeconfig", "somewhere"])
    assert (done.exit_code, done.output) == (status, said)
