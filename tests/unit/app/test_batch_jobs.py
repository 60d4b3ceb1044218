"""Jobs of Kubernetes: how they are read, what is told when an eviction fails one, and when one ends at a gate."""

import asyncio
import json
from datetime import UTC, datetime
from functools import partial

import msgspec
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from typer.testing import CliRunner

from app import checks
from app.actuators.protocol import Rejected
from app.cli import app
from app.controllers.deadlines import Deadlines
from app.controllers.reclaim.reclaim import Reclaim
from app.ending import ending
from app.kube import reflector
from app.kube.client import KubeClient
from app.kube.job_patches import lowering, suspension
from app.kube.reflector import FORBIDDEN_RETRY, Reflector
from app.settings import ReclaimSettings
from app.store.jobs import JOBS, batch_job_of, queued_job_of
from app.store.pods import PODS, pod_of
from app.store.queues import QUEUES
from app.whatif.rendering import job_manifest, pod_manifest
from policy.objects.batch_job import COUNT, FAIL_JOB, IGNORE, UNLIMITED
from policy.objects.pod import JobMember
from tests.unit.app.forwarding import Forwarding
from tests.unit.app.given import Clock, client_of, empty_store, kubeconfig, node, pod, quota, refused, see, store_with
from tests.unit.app.reclaim_world import ApiServer
from tests.unit.app.situations import cpus
from tests.unit.app.test_refusals import Recorder, events_of
from tests.unit.app.test_whatif import ask

IGNORES = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
KILLED = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [137]}}
SHORT = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
NOT_42 = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42]}}
GATE = [{"name": "quotaward.dev/quota"}]
STARTED = "2026-01-01T00:00:00Z"
GATED = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"quotaward.dev/gated": "true"}}}


def job(name="train", namespace="a", status=None, **spec):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": status or {}}


def member(name, of="train", namespace="a", metadata=None, **spec):
    """A pod of a Job, as its controller makes it."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": of, "uid": f"uid-of-{of}", "controller": True}
    more = {"ownerReferences": [reference], "finalizers": ["batch.kubernetes.io/job-tracking"]}
    return pod(name, namespace, metadata=more | (metadata or {}), **spec)


def read(item):
    return batch_job_of(JOBS.decoder.decode(msgspec.json.encode(item)))


def read_pod(item):
    return pod_of(PODS.decoder.decode(msgspec.json.encode(item)))


# How they are read


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (6, None, COUNT)),
        ({"backoffLimit": 0}, (0, None, COUNT)),
        ({"backoffLimitPerIndex": 1}, (UNLIMITED, 1, COUNT)),
        ({"backoffLimitPerIndex": 1, "backoffLimit": 3}, (3, 1, COUNT)),
        ({"podFailurePolicy": {"rules": [IGNORES]}}, (6, None, IGNORE)),
        ({"podFailurePolicy": {"rules": [KILLED, IGNORES]}}, (6, None, FAIL_JOB)),
        ({"podFailurePolicy": {"rules": [IGNORES, KILLED]}}, (6, None, IGNORE)),
        ({"podFailurePolicy": {"rules": [SHORT]}}, (6, None, IGNORE)),
        ({"podFailurePolicy": {"rules": [NOT_42]}}, (6, None, FAIL_JOB)),
        ({"podFailurePolicy": {"rules": None}}, (6, None, COUNT)),
    ],
    ids=str,
)
def test_limits_and_rules_are_those_that_the_api_server_fills_in(spec, expected):
    found = read(job(**spec))
    assert (found.backoff_limit, found.limit_per_index, found.response) == expected


def test_what_has_failed_is_read_with_what_is_not_counted_yet():
    found = read(job(status={"failed": 2, "uncountedTerminatedPods": {"failed": ["u1"], "succeeded": ["u2"]}}))
    assert (found.failed, found.uncounted, found.ended) == (2, {"u1"}, False)


@pytest.mark.parametrize("condition", ["Failed", "FailureTarget", "Complete", "SuccessCriteriaMet"])
def test_a_job_has_ended_once_its_condition_says_so(condition):
    assert read(job(status={"conditions": [{"type": condition, "status": "True"}]})).ended
    assert not read(job(status={"conditions": [{"type": condition, "status": "False"}]})).ended


def test_the_time_of_a_job_runs_from_its_start():
    found = read(job(activeDeadlineSeconds=60, status={"startTime": STARTED}))
    assert found.ends_at == datetime(2026, 1, 1, 0, 1, tzinfo=UTC).timestamp()
    assert read(job(activeDeadlineSeconds=60)).ends_at == 0
    endless = read(job(activeDeadlineSeconds=2**63 - 1, status={"startTime": "9990-01-01T00:00:00Z"}))
    assert "9999-12-31T23:59:59Z" in ending(endless), "all can be written"


def test_the_start_before_a_job_was_suspended_does_not_count():
    status = {
        "startTime": STARTED,
        "conditions": [{"type": "Suspended", "status": "True", "lastTransitionTime": STARTED}],
    }
    assert read(job(status=status)).started == 0
    status["conditions"][0]["status"] = "False"
    assert read(job(status=status)).started > 0


def test_a_pod_belongs_to_the_job_that_is_its_controller():
    count = {"batch.kubernetes.io/job-index-failure-count": "3"}
    assert read_pod(member("p")).job == JobMember("uid-of-train", "train", 0, tracked=True)
    assert read_pod(member("p", metadata={"annotations": count, "finalizers": []})).job == JobMember(
        "uid-of-train", "train", 3, tracked=False
    )


@pytest.mark.parametrize(
    "reference",
    [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"},
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": False},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "u", "controller": True},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "train", "uid": "u", "controller": True},
    ],
    ids=str,
)
def test_a_reference_to_anything_else_is_none(reference):
    assert read_pod(pod("p", metadata={"ownerReferences": [reference]})).job is None


@pytest.mark.parametrize("count", ["x", "-1", "9" * 40, None, "²"])
def test_an_odd_count_of_failures_is_none(count):
    annotations = {"batch.kubernetes.io/job-index-failure-count": count}
    assert read_pod(member("p", metadata={"annotations": annotations})).job.failures == 0


@pytest.mark.parametrize(
    "item",
    [
        job(),
        job(backoffLimitPerIndex=0, activeDeadlineSeconds=5, podFailurePolicy={"rules": [KILLED, IGNORES]}),
        job(status={"failed": 1, "startTime": STARTED, "uncountedTerminatedPods": {"failed": ["u"]}}),
        job(status={"conditions": [{"type": "Complete", "status": "True"}]}),
    ],
    ids=str,
)
def test_a_job_that_is_written_out_is_read_as_the_same(item):
    assert read(job_manifest(read(item))) == read(item)


AGAIN = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-28T08:00:00Z"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"parallelism": 3, "completions": 2},
        {"managedBy": "example.com/x"},
        {"status": {"conditions": [AGAIN]}},
        {"status": {"conditions": [AGAIN, {"type": "Failed", "status": "True"}]}},
    ],
)
def test_a_job_that_waits_is_rendered_with_its_template(more):
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod("p", requests={"cpu": "2"})["spec"]}
    item = job(suspend=True, template=template, **more)
    item["metadata"]["labels"] = {"quotaward.dev/queued": "true"}
    obj = JOBS.decoder.decode(msgspec.json.encode(item))
    rendered = JOBS.decoder.decode(msgspec.json.encode(job_manifest(batch_job_of(obj), queued_job_of(obj))))
    assert (batch_job_of(rendered), queued_job_of(rendered)) == (batch_job_of(obj), queued_job_of(obj))


def test_a_pod_that_is_written_out_is_still_in_its_job():
    found = read_pod(member("p", metadata={"annotations": {"batch.kubernetes.io/job-index-failure-count": "2"}}))
    assert read_pod(pod_manifest(found)).job == found.job


# Without the right to read them


@pytest.fixture
def forbidden(tmp_path, monkeypatch):
    """What a reflector does that may not list its kind, and has waited for long enough: the wait, and the store."""
    monkeypatch.setattr(reflector, "GONE_AFTER", 0)

    def run(kind, attempts=2):
        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            status = {"kind": "Status", "code": 403, "message": "jobs.batch is forbidden"}
            body = json.dumps(status).encode()
            writer.write(
                b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body
            )
            await writer.drain()
            writer.close()

        async def scenario():
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            file = tmp_path / "kubeconfig"
            file.write_text(kubeconfig(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
            client = await KubeClient.connect(file)
            store = empty_store()
            see(store, job(backoffLimit=0))
            try:
                followed = Reflector(client, kind, store)
                return [await followed.follow() for _ in range(attempts)], store
            finally:
                await client.close()
                server.close()

        return asyncio.run(scenario())

    return run


def test_jobs_that_may_not_be_read_are_done_without_and_that_is_logged_once(forbidden):
    with capture_logs() as logged:
        waits, store = forbidden(JOBS)
    assert (store.feeds["jobs"].synced, store.feeds["jobs"].without) == (True, True)
    assert len(store.cluster.batch_jobs) == 0
    assert all(0 < wait <= FORBIDDEN_RETRY for wait in waits)
    [entry] = [each for each in logged if each["log_level"] == "warning"]
    assert (entry["kind"], "forbidden" in entry["error"]) == ("jobs", True)


def test_another_kind_that_may_not_be_read_is_not_done_without(forbidden):
    _, store = forbidden(QUEUES)
    assert not store.feeds["queues"].synced


def test_jobs_that_are_not_heard_of_any_more_hold_up_no_answer():
    clock = Clock()
    store = store_with(clock=clock, max_staleness=60)
    store.lost(JOBS)
    clock.now += 3600
    assert store.unready() == ""
    store.lost(PODS)
    clock.now += 3600
    assert "pods" in store.unready()


# What people are told


class World:
    """A node full of pods of a Job that one eviction fails; one core of it is lent, and its owner waits for it."""

    def __init__(self, *more):
        self.clock = Clock()
        bounds = [quota("a", min={"cpu": 3}, max={"cpu": 9}), quota("b", min={"cpu": 1}, max={"cpu": 9})]
        running = [member(f"r{number}", nodeName="n1") for number in range(4)]
        waiting = refused(pod("owner", "b"), "0/1 nodes are available: 1 Insufficient cpu.")
        items = [node("n1"), *bounds, job(backoffLimit=0), *running, waiting, *more]
        self.store = store_with(*items, clock=self.clock)
        self.clock.now += 60
        self.client = client_of(self.store)


def test_the_plan_names_the_job_that_an_eviction_fails():
    world = World()
    [eviction] = world.client.get("/api/v1/plan").json()["evictions"]
    assert eviction["failsJob"] == "a/train"
    with Forwarding(world.client) as server:
        printed = CliRunner().invoke(app, ["plan", "--server", server.url]).output
    assert f"evict {eviction['pod']} from n1 for b/owner (evicting it fails Job a/train)" in printed


def test_an_explanation_says_it_in_its_outlook_and_its_summary():
    told = World().client.get("/api/v1/pods/b/owner").json()
    assert "this fails Job a/train: all of its pods go" in told["outlook"]
    assert "this fails Job a/train: all of its pods go" in told["summary"]


def test_of_whom_no_job_fails_nothing_is_said():
    world = World(job(backoffLimit=1))
    assert "Job" not in json.dumps(world.client.get("/api/v1/plan").json()["evictions"][0]["failsJob"])
    assert "fails Job" not in world.client.get("/api/v1/pods/b/owner").text


def test_events_say_it_of_both_pods_and_it_is_counted():
    world, name = World(), "quotaward_jobs_failed_by_eviction_total"
    api, before = ApiServer(world.store), REGISTRY.get_sample_value(name)
    api.lingering = True
    reclaim = Reclaim(world.store, api, ReclaimSettings())

    async def look():
        async with asyncio.TaskGroup() as group:
            await reclaim.look(group)

    asyncio.run(look())
    [victim] = api.evicted
    assert "evicting it fails Job a/train" in api.told[victim, "Reclaimed"]
    assert "this fails Job a/train: all of its pods go" in api.told["owner", "ReclaimStarted"]
    assert REGISTRY.get_sample_value(name) == before + 1
    [eviction] = world.client.get("/api/v1/plan").json()["evictions"]
    assert eviction["failsJob"] == "a/train", "also of one that is on its way out"


# Jobs that are taken back as a whole


QUEUED = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "a", "labels": {"quotaward.dev/jobs": "queued"}},
}


def looked(world, api):
    reclaim = Reclaim(world.store, api, ReclaimSettings())

    async def look():
        async with asyncio.TaskGroup() as group:
            await reclaim.look(group)

    asyncio.run(look())


def test_a_job_that_waits_as_a_whole_is_suspended_once_and_fails_never():
    world, name = World(QUEUED), "quotaward_jobs_taken_back_total"
    api, before = ApiServer(world.store), REGISTRY.get_sample_value(name, {"means": "suspended"}) or 0
    see(world.store, quota("b", min={"cpu": 3}, max={"cpu": 9}))
    [eviction] = world.client.get("/api/v1/plan").json()["evictions"]
    assert (eviction["failsJob"], eviction["suspendsJob"]) == ("", "a/train")
    looked(world, api)
    assert (api.evicted, api.suspended) == ([], ["train"])
    assert "this suspends Job a/train: all of its pods go, and it waits again" in api.told["owner", "ReclaimStarted"]
    assert "suspended to make room for b/owner" in api.told["train", "TakenBack"]
    assert sorted(each.name for each in api.handed_on) == ["r0", "r1", "r2", "r3"], "to who starts later"
    assert REGISTRY.get_sample_value(name, {"means": "suspended"}) == before + 1


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_job_is_suspended_only_if_a_budget_lets_one_of_its_pods_go(allowed):
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x", "namespace": "a"}}
    world = World(QUEUED, budget | {"spec": {"selector": {}}, "status": {"disruptionsAllowed": allowed}})
    api = ApiServer(world.store)
    looked(world, api)
    assert (api.evicted, api.suspended) == ([], ["train"] if allowed else [])
    assert not any(world.store.cluster.leaving.has_been_asked(f"a/r{number}") for number in range(4))


# Elastic ones are lowered first


def elastic(parallelism=4, least="1", **spec):
    item = job(backoffLimit=0, parallelism=parallelism, **spec)
    item["metadata"]["annotations"] = {"quotaward.dev/min-parallelism": least, "quotaward.dev/parallelism": "5"}
    return item


def test_an_elastic_job_is_lowered_by_as_many_pods_as_are_needed():
    world, name = World(QUEUED, elastic()), "quotaward_jobs_taken_back_total"
    api, before = ApiServer(world.store), REGISTRY.get_sample_value(name, {"means": "lowered"}) or 0
    [eviction] = world.client.get("/api/v1/plan").json()["evictions"]
    assert (eviction["failsJob"], eviction["suspendsJob"], eviction["lowersJob"]) == ("", "", "a/train")
    with Forwarding(world.client) as server:
        printed = CliRunner().invoke(app, ["plan", "--server", server.url]).output
    assert "(Job a/train is lowered)" in printed
    looked(world, api)
    assert (api.evicted, api.suspended, api.lowered) == ([], [], [("train", 3)])
    assert "this lowers the parallelism of Job a/train" in api.told["owner", "ReclaimStarted"]
    assert "parallelism lowered from 4 to 3 to make room for b/owner" in api.told["train", "TakenBack"]
    assert api.handed_on == list(world.store.evictions), "to who starts later"
    assert len(api.handed_on) == 1
    assert REGISTRY.get_sample_value(name, {"means": "lowered"}) == before + 1


@pytest.mark.parametrize(
    ("least", "wanted", "lowered", "suspended"),
    [("2", 2, [("train", 2)], []), ("3", 2, [], ["train"]), ("4", 1, [], ["train"]), ("x", 1, [], ["train"])],
)
def test_an_elastic_job_is_suspended_if_its_minimum_would_not_stay(least, wanted, lowered, suspended):
    waiting = refused(pod("owner", "b", requests={"cpu": str(wanted)}), "0/1 nodes are available: 1 Insufficient cpu.")
    world = World(QUEUED, elastic(least=least), quota("b", min={"cpu": 3}, max={"cpu": 9}), waiting)
    see(world.store, quota("a", min={"cpu": 1}, max={"cpu": 9}))
    api = ApiServer(world.store)
    looked(world, api)
    assert (api.lowered, api.suspended) == (lowered, suspended)


def test_pods_that_are_on_no_node_go_first_so_it_is_lowered_by_as_many_more():
    world = World(QUEUED, elastic(6))
    api = ApiServer(world.store)
    looked(world, api)
    assert api.lowered == [("train", 3)], "of six four are on nodes"


@pytest.mark.parametrize("allowed", [0, 1])
def test_an_elastic_job_is_lowered_only_if_budgets_let_its_victims_go(allowed):
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x", "namespace": "a"}}
    of_all = {"spec": {"selector": {}}, "status": {"disruptionsAllowed": allowed}}
    world = World(QUEUED, budget | of_all, elastic())
    api = ApiServer(world.store)
    looked(world, api)
    assert (api.lowered, api.suspended) == ([("train", 3)] if allowed else [], [])
    found = world.store.cluster.batch_jobs.get(("a", "train"))
    assert (found.runs, found.parallelism) == ((3, 3) if allowed else (4, 4))
    assert not any(world.store.cluster.leaving.has_been_asked(f"a/r{number}") for number in range(4))


def test_a_job_that_could_not_be_lowered_is_tried_again_as_it_is():
    world = World(QUEUED, elastic())
    api = ApiServer(world.store)

    async def fails(_job, _to):
        raise Rejected("422: it has changed")

    api.lower_job = fails
    looked(world, api)
    found = world.store.cluster.batch_jobs.get(("a", "train"))
    assert (found.runs, api.told["owner", "ReclaimBlocked"].find("failed, and is tried again: ") > 0) == (4, True)
    assert not any(world.store.cluster.leaving.has_been_asked(f"a/r{number}") for number in range(4))


def test_the_suspension_of_an_elastic_job_gives_it_back_what_its_user_asks_for():
    patch = suspension(read(elastic(3)))
    assert patch[2:] == [
        {"op": "add", "path": "/spec/suspend", "value": True},
        {"op": "test", "path": "/spec/parallelism", "value": 3},
        {"op": "replace", "path": "/spec/parallelism", "value": 5},
        {"op": "add", "path": "/metadata/annotations/quotaward.dev~1parallelism", "value": "5"},
    ]


def test_a_job_is_lowered_only_as_it_was_seen():
    patch = lowering(read(elastic(3)), 2)
    assert [each["path"] for each in patch if each["op"] == "test"] == [
        *("/metadata/uid", "/spec/suspend", "/spec/parallelism")
    ]
    assert {"op": "replace", "path": "/spec/parallelism", "value": 2} in patch


@pytest.mark.parametrize(
    ("spec", "status", "found"),
    [
        ({}, {}, (4, 4, 2)),
        ({"suspend": True}, {}, (4, 0, 2)),
        ({"completions": 9}, {"succeeded": 6}, (4, 3, 2)),
        ({"completions": 9}, {"succeeded": 8}, (4, 1, 1)),
        ({"completions": 9}, {"succeeded": 9}, (4, 0, 1)),
    ],
)
def test_how_many_pods_a_job_runs_and_needs_is_read(spec, status, found):
    job = read(elastic(least="2", **spec) | {"status": status})
    assert (job.parallelism, job.runs, job.least) == found


def test_what_if_a_job_were_elastic_it_would_lose_one_pod_alone():
    world = World(QUEUED)
    assert len(_answered(world)) == 4
    see(world.store, elastic())
    assert len(_answered(world)) == 1


def _answered(world):
    return ask(world.client)["evicted"]


# In folders, and what if


def test_a_folder_is_read_with_its_jobs_whose_pods_need_not_name_a_uid(folder):
    of_job = member("p")
    del of_job["metadata"]["ownerReferences"][0]["uid"]
    item = job(backoffLimit=0)
    del item["metadata"]["uid"]
    folder.write("all.yaml", node(), of_job, item)
    folder.source()
    found = folder.cluster
    assert found.batch_jobs.of(found.pod("a", "p")).backoff_limit == 0


def test_what_if_a_job_bore_more_failures_it_would_not_fail():
    world = World()
    assert _reasons(ask(world.client))[1:] == ("JobFailed", 3)
    change = {"kind": "Job", "metadata": {"name": "train", "namespace": "a"}, "spec": {"backoffLimit": 1}}
    assert _reasons(ask(world.client, [change])) == ("Reclaim", "", 0)


def _reasons(answer):
    reasons = [each["reason"] for each in answer["evicted"]]
    others = reasons[1:]
    return reasons[0], others[0] if others else "", len(others)


def test_check_names_jobs_that_one_eviction_fails(folder):
    found = _checked(folder, quota("a"), job(backoffLimit=0), job("sound"), job("free", "c", backoffLimit=0))
    assert [text.partition(":")[0] for text in found] == ["Job a/train"]
    assert "one eviction fails it" in found[0]


def test_check_warns_of_deadlines_that_run_at_gates(folder):
    elsewhere = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}
    jobs = [job(activeDeadlineSeconds=60), job("other", "b", activeDeadlineSeconds=60), job("endless")]
    [text] = _checked(folder, GATED, elsewhere, *jobs)
    assert text.startswith("Job a/train: spec.activeDeadlineSeconds runs from the start of the Job")


def _checked(folder, *items):
    folder.write("all.yaml", *items)
    return [finding.text for finding in checks.manifests(folder.path).findings]


# Deadlines that run at gates


def at_gates(*jobs, **spec):
    waiting = [member(f"p{number}", schedulingGates=GATE, **spec) for number in range(3)]
    return store_with(GATED, *jobs, *waiting)


TIMED = job(activeDeadlineSeconds=60, status={"startTime": STARTED})
ENDS = "its Job a/train is ended at 2026-01-01T00:01:00Z by activeDeadlineSeconds, whether its pods run or not"


@pytest.mark.parametrize("gates", [GATE, [*GATE, {"name": "other"}], []], ids=str)
def test_an_explanation_says_when_the_job_of_a_waiting_pod_is_ended(gates):
    store = store_with(GATED, TIMED, member("p0", schedulingGates=gates))
    told = client_of(store).get("/api/v1/pods/a/p0").json()
    assert ENDS in told["summary"]
    assert told["next"][-1]["step"] == "job-ends"


def test_of_a_job_without_a_deadline_nothing_is_said():
    assert "Job" not in client_of(at_gates(job())).get("/api/v1/pods/a/p0").json()["summary"]


told_by = partial(events_of, Deadlines)


def test_a_job_whose_pods_wait_at_gates_is_told_once_that_its_time_runs():
    [event] = told_by(at_gates(TIMED), looks=2)
    assert str(event.subject) == "Job a/train"
    assert (event.reason, event.warning) == ("DeadlineRunsAtGate", True)
    assert ENDS in event.message


def test_nothing_is_said_of_jobs_without_gated_pods_or_without_a_deadline():
    assert told_by(at_gates(job())) == []
    assert told_by(at_gates(job(activeDeadlineSeconds=60))) == [], "not started"
    assert told_by(store_with(GATED, TIMED, member("p", nodeName="n1"))) == []
    assert told_by(store_with(TIMED, member("p", schedulingGates=GATE))) == [], "it is let out at once"


def test_a_job_is_told_of_anew_if_it_is_another_of_the_same_name():
    store = at_gates(TIMED)
    recorder = Recorder()
    deadlines = Deadlines(store, recorder)
    asyncio.run(deadlines.look())
    again = {**TIMED, "metadata": {**TIMED["metadata"], "uid": "another"}}
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "another", "controller": True}
    see(store, again, pod("q", metadata={"ownerReferences": [reference]}, schedulingGates=GATE))
    asyncio.run(deadlines.look())
    assert [event.subject.uid for event in recorder.events] == ["uid-of-train", "another"]


def test_an_event_is_written_for_some_jobs_at_a_time():
    jobs = [job(f"j{number}", activeDeadlineSeconds=60, status={"startTime": STARTED}) for number in range(25)]
    pods = [member(f"p{number}", f"j{number}", schedulingGates=GATE) for number in range(25)]
    store = store_with(GATED, node(**cpus(4)), *jobs, *pods)
    assert len(told_by(store)) == 20
    assert len(told_by(store, looks=2)) == 25
