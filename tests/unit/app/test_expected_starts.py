"""Expected starts as REST and explanations show them, and how often they are computed."""

import asyncio

import pytest

from app.api.expected import model, sentence
from app.observability import metrics
from app.settings import Settings
from app.store.resource_claims import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from app.whatif import expected_starts
from app.whatif.expected_starts import ExpectedStarts
from app.whatif.missing_claims import missing_claim
from app.whatif.trial import Scene
from policy.simulate.expected_start import ExpectedStart
from tests.unit.app.given import Clock, client_of, made, node, pod, quota, refused, see, store_with
from tests.unit.app.situations import NO_ROOM, cpus

STARTED = "2099-01-01T00:00:00Z"
RUNS = {"phase": "Running", "startTime": STARTED}


def world(**said):
    run = pod("run", "a", {"cpu": 1}, nodeName="n1", **said) | {"status": RUNS}
    return node("n1", **cpus(1)), run, refused(pod("p", "b"), NO_ROOM)


def test_rest_and_an_explanation_say_when_a_pod_is_expected_to_start():
    client = client_of(store_with(*world(activeDeadlineSeconds=90)))
    [row] = client.get("/api/v1/waiting").json()["items"]
    assert row["expectedStart"] == {
        "at": "2099-01-01T00:01:30Z",
        "earliest": "2099-01-01T00:01:30Z",
        "basis": "declared",
        "after": ["a/run"],
        "assuming": "nobody of higher rank comes",
    }
    told = client.get("/api/v1/pods/b/p").json()
    assert told["expectedStart"] == row["expectedStart"]
    said = "Expected start: 2099-01-01T00:01:30Z, once a/run has ended, if nobody of higher rank comes."
    assert told["summary"].endswith(said)


def test_a_start_after_the_last_time_that_can_be_written_is_told_as_that():
    last, run, p = world(activeDeadlineSeconds=2**63 - 1)
    run["status"] = RUNS | {"startTime": "9990-01-01T00:00:00Z"}
    [row] = client_of(store_with(last, run, p)).get("/api/v1/waiting").json()["items"]
    assert row["expectedStart"]["at"] == "9999-12-31T23:59:59Z"


def test_without_a_run_time_there_is_no_expected_start():
    client = client_of(store_with(*world()))
    [row] = client.get("/api/v1/waiting").json()["items"]
    assert (row["expectedStart"]["at"], row["expectedStart"]["basis"]) == ("", "none")
    assert row["expectedStart"]["earliest"] is None
    summary = client.get("/api/v1/pods/b/p").json()["summary"]
    assert "Expected start" not in summary
    assert "Nodes have room" not in summary


def test_whoever_is_behind_an_extender_that_gives_no_answer_has_no_expected_start():
    dead = 'Post "http://127.0.0.1:9/extender/filter": dial tcp 127.0.0.1:9: connect: connection refused'
    bounds = [quota("a", max={"cpu": 1}), quota("b", min={"cpu": 1}, max={"cpu": 1})]
    free = [*world(activeDeadlineSeconds=90)[:2], node("n2", **cpus(1))]
    client = client_of(store_with(*bounds, *free, refused(pod("p", "b"), dead)))
    told = client.get("/api/v1/pods/b/p").json()
    assert (told["expectedStart"]["at"], told["expectedStart"]["basis"]) == ("", "none")
    assert told["summary"].endswith("Expected start: not known, since its scheduler got no answer from an extender.")
    assert "nothing has to be changed" not in told["summary"]
    [row] = client.get("/api/v1/waiting").json()["items"]
    assert row["expectedStart"]["at"] == ""


def test_behind_others_a_job_is_told_when_it_could_start_without_them():
    last = refused(pod("q", "b", activeDeadlineSeconds=30, priority=-1), NO_ROOM)
    first = refused(pod("p", "b", activeDeadlineSeconds=30), NO_ROOM)
    client = client_of(store_with(*world(activeDeadlineSeconds=90)[:2], first, last))
    told = client.get("/api/v1/pods/b/q").json()
    assert told["expectedStart"]["at"] == "2099-01-01T00:02:00Z"
    assert told["expectedStart"]["earliest"] == "2099-01-01T00:01:30Z"
    assert told["summary"].endswith(" Nodes have room for it from 2099-01-01T00:01:30Z on, if nobody else waited.")
    endless = refused(pod("p", "b"), NO_ROOM)
    told = client_of(store_with(*world(activeDeadlineSeconds=90)[:2], endless, last)).get("/api/v1/pods/b/q").json()
    assert (told["expectedStart"]["at"], told["expectedStart"]["basis"]) == ("", "none")
    assert told["expectedStart"]["earliest"] == "2099-01-01T00:01:30Z"
    assert "Nodes have room" not in told["summary"]


def test_what_starts_by_evictions_could_start_then_at_the_latest():
    bounds = [quota("a", max={"cpu": 1}), quota("b", min={"cpu": 1}, max={"cpu": 1})]
    found = ExpectedStarts(store := store_with(*bounds, *world(activeDeadlineSeconds=90), clock=Clock(0.0)), Settings())
    store.cluster.epoch = EPOCH
    asyncio.run(found.renew())
    p = [store.cluster.pod("b", "p")]
    assert found.of(p).at < EPOCH + 90
    assert found.earliest(p) == found.of(p).at


@pytest.fixture
def computed(monkeypatch):
    """How often starts were computed."""
    times, real = [], Scene.copy_steps

    def counted(scene):
        times.append(scene.taken.now)
        return real(scene)

    monkeypatch.setattr(Scene, "copy_steps", counted)
    return times


def test_starts_are_computed_if_somebody_asks_and_the_interval_is_over(computed):
    clock = Clock()
    starts = ExpectedStarts(store_with(*world(), clock=clock), Settings())
    assert len(computed) == 0
    for later, number in ((0, 1), (9, 1), (2, 2)):
        clock.now += later
        asyncio.run(starts.renew())
        assert len(computed) == number


def test_the_time_between_two_computations_is_four_times_that_of_the_work(computed, monkeypatch):
    monkeypatch.setattr(expected_starts.Pause, "worked", lambda _: 10.0)
    clock = Clock()
    starts = ExpectedStarts(store_with(*world(), clock=clock), Settings())
    for later, number in ((0, 1), (49, 1), (2, 2)):
        clock.now += later
        asyncio.run(starts.renew())
        assert len(computed) == number


@pytest.mark.parametrize(("worked", "waits"), [(expected_starts.PATIENCE + 1, False), (0.1, True)])
def test_whoever_asks_again_does_not_wait_for_what_takes_longer_than_that(computed, monkeypatch, worked, waits):
    monkeypatch.setattr(expected_starts.Pause, "worked", lambda _: worked)
    clock = Clock()
    starts = ExpectedStarts(store := store_with(*world(), clock=clock), Settings())
    pods = store.cluster.pods.values()

    async def asked():
        await starts.renew()
        assert starts.was_sought(pods), "at first there is nothing else to tell"
        clock.now += 16
        computing = len(computed)
        await starts.renew()
        assert starts.was_sought(pods)
        assert (len(computed) > computing) == waits
        if starts._work is not None:
            await starts._work

    asyncio.run(asked())
    assert len(computed) == 2


def test_starts_that_cannot_be_computed_keep_nothing_else_from_the_asker(monkeypatch):
    monkeypatch.setattr(Scene, "copy_steps", lambda _: 1 / 0)
    [row] = client_of(store_with(*world())).get("/api/v1/waiting").json()["items"]
    assert row["expectedStart"] is None


def test_of_what_was_not_computed_to_the_end_nothing_is_said():
    starts = ExpectedStarts(store := store_with(*world()), Settings(whatif={"time_limit": 1e-9}))
    asyncio.run(starts.renew())
    assert not starts.was_sought(store.cluster.pods.values())


@pytest.mark.parametrize("seconds", [1e-9, 10.0], ids=["while it is made", "complete"])
def test_a_copy_is_taken_apart_whether_or_not_it_was_completed(monkeypatch, seconds):
    made, real = [], Scene.discard_steps
    monkeypatch.setattr(Scene, "discard_steps", lambda scene: made.extend(scene.copies) or real(scene))
    starts = ExpectedStarts(store_with(*world()), Settings(whatif={"time_limit": seconds}))
    asyncio.run(starts.renew())
    [copy] = made
    assert not copy.pods
    assert not copy.membership.namespaces


def test_starts_that_were_computed_long_ago_are_not_told(monkeypatch):
    clock = Clock()
    starts = ExpectedStarts(store := store_with(*world(activeDeadlineSeconds=90), clock=clock), Settings())
    pods = list(store.cluster.pods.values())
    asyncio.run(starts.renew())
    assert starts.of(pods) is not None
    monkeypatch.setattr(Scene, "copy_steps", lambda _: 1 / 0)
    for later, is_told in ((11, True), (3600, False)):
        clock.now += later
        asyncio.run(starts.renew())
        assert (starts.of(pods) is not None) == is_told


def done(number):
    ran = {"startTime": "2098-12-31T00:00:00Z", "containerStatuses": [{"name": "main", "state": {"terminated": ENDED}}]}
    return pod(f"done-{number}", "a", {"cpu": 1}, nodeName="n1") | {"status": {"phase": "Succeeded"} | ran}


ENDED = {"finishedAt": "2098-12-31T00:01:30Z", "exitCode": 0}
EPOCH = 4_070_908_800.0
"""When the pods of these tests start: at the beginning of 2099."""


@pytest.mark.parametrize("estimate", ["median", "never"])
def test_where_nobody_says_it_a_start_is_estimated_unless_that_is_switched_off(estimate):
    clock = Clock(0.0)
    store = store_with(*world(), *(done(number) for number in range(5)), clock=clock)
    store.cluster.epoch = EPOCH
    starts = ExpectedStarts(store, Settings(run_time={"estimate": estimate}))
    asyncio.run(starts.renew())
    found = starts.of([store.cluster.pod("b", "p")])
    assert found == (ExpectedStart(EPOCH + 90, ("a/run",), "estimated") if estimate == "median" else None)
    told = sentence(model(starts, [store.cluster.pod("b", "p")]))
    assert ("(estimated), once a/run has ended" in told) is (estimate == "median")


def errors():
    found = (each for metric in metrics.EXPECTED_START_ERROR.collect() for each in metric.samples)
    return {
        (each.labels["basis"], each.name.rpartition("_")[2]): each.value
        for each in found
        if each.name.endswith(("_sum", "_count"))
    }


def test_the_first_expected_start_is_compared_with_the_real_one():
    clock = Clock(0.0)
    p = refused(pod("p", "b"), NO_ROOM)
    store = store_with(*world(activeDeadlineSeconds=90)[:2], p, clock=clock)
    store.cluster.epoch = EPOCH
    starts = ExpectedStarts(store, Settings())
    before = errors()

    def counted(started):
        see(store, p | {"spec": p["spec"] | {"nodeName": "n1"}, "status": {"startTime": started} if started else {}})
        asyncio.run(starts.errors.look())
        return {key: value - before.get(key, 0) for key, value in errors().items() if key[0] == "declared"}

    asyncio.run(starts.renew())
    clock.now += 20
    see(store, world(activeDeadlineSeconds=60)[1])
    asyncio.run(starts.renew())
    assert starts.of([store.cluster.pod("b", "p")]).at == EPOCH + 60
    assert not counted("").get(("declared", "count"))
    assert counted("2099-01-01T00:01:00Z") == {("declared", "count"): 1, ("declared", "sum"): 30}
    assert counted("2099-01-01T00:01:00Z") == {("declared", "count"): 1, ("declared", "sum"): 30}


def test_of_a_pod_that_is_gone_nothing_is_measured():
    store = store_with(*world(activeDeadlineSeconds=90), clock=Clock(0.0))
    store.cluster.epoch = EPOCH
    starts, before = ExpectedStarts(store, Settings()), errors()
    asyncio.run(starts.renew())
    store.cluster.delete_pod(store.cluster.pod("b", "p").uid)
    asyncio.run(starts.errors.look())
    assert errors() == before


NO_DEVICES = {"devices": {"requests": []}}


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize(
    ("kind", "by", "spec"),
    [
        (RESOURCE_CLAIMS, "resourceClaimName", NO_DEVICES),
        (RESOURCE_CLAIM_TEMPLATES, "resourceClaimTemplateName", {"spec": NO_DEVICES}),
    ],
    ids=["a claim", "a template"],
)
def test_a_pod_whose_claim_does_not_exist_is_told_so_and_has_no_expected_start(is_there, kind, by, spec):
    item = pod("p", "b", resourceClaims=[{"name": "gpu", by: "c"}])
    store = store_with(node("n1", **cpus(2)), item, *([made(kind, "c", "b", spec=spec)] if is_there else []))
    told = client_of(store).get("/api/v1/pods/b/p").json()
    steps = [each["text"] for each in told["next"]]
    assert bool(told["expectedStart"]["at"]) is is_there
    assert (f"{kind.name} c does not exist" in steps) is not is_there
    assert (f"Next: {kind.name} c does not exist." in told["summary"]) is not is_there
    assert ("the scheduler has not tried it yet" in steps) is is_there
    store.complete(kind, without=True)
    told = client_of(store).get("/api/v1/pods/b/p").json()
    assert told["expectedStart"]["at"]
    assert "the scheduler has not tried it yet" in [each["text"] for each in told["next"]]


def test_a_claim_that_was_made_from_a_template_is_not_missing_before_it_is_seen():
    item = pod("p", "b", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gone"}])
    item["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]}
    store = store_with(item)
    assert missing_claim(store, Settings(), store.cluster.pod("b", "p")) == ""


@pytest.mark.parametrize(("claims", "missing"), [((), ""), (("d",), "ResourceClaim c")])
def test_in_a_folder_without_claims_none_is_missing(claims, missing):
    item = pod("p", "b", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
    there = [made(RESOURCE_CLAIMS, name, "b", spec={"devices": {"requests": []}}) for name in claims]
    store = store_with(node("n1", **cpus(2)), item, *there)
    assert missing_claim(store, Settings(manifests="/tmp"), store.cluster.pod("b", "p")) == missing
