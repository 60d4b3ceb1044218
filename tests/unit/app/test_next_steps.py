"""What is foretold of a pod that waits is what the code would do that decides it, as things stand."""

import re
import time
from datetime import UTC, datetime

import pytest

from app.settings import Settings
from policy.explain.next_steps import Times, next_steps
from policy.objects.reservation import PodName, Reservation
from policy.reserve.starving import Terms
from policy.stepwise import at_once
from tests.unit.app.given import client_of, namespace, node, pod, queue, quota, refused, store_with
from tests.unit.app.situations import NO_ROOM, QUEUE, cpus, group, member, running, tainted

NOW = {"creationTimestamp": datetime.now(UTC).isoformat()}
LONG_AGO = {"creationTimestamp": "2020-01-01T00:00:00Z"}


def steps(*items, terms=None, settings=None, name="p"):
    """Name and text of what comes next for b/p, from now on; nobody starves before an hour is over."""
    store = store_with(*items)
    times = Times(store.clock(), time.time() - store.clock(), 1.0)
    why_idle = (settings or Settings()).why_idle
    cluster = store.cluster
    for _ in cluster.divide_steps():
        pass
    found = at_once(next_steps(cluster, cluster.pod("b", name), terms or Terms(3600, 100), times, why_idle))
    return {each.step: each.text for each in found}


def waits(cpu=2, message=NO_ROOM, metadata=NOW, **spec):
    return refused(pod("p", "b", {"cpu": cpu}, metadata, **spec), message)


FULL = [node("n1", **cpus(2)), *running("a", 2)]
MAX = "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu."


def test_nodes_are_said_to_be_reserved_for_a_pod_that_has_to_wait_for_room_alone():
    assert "reservation-planned" in steps(*FULL, waits())
    assert "reservation-planned" not in steps(*FULL, waits(), settings=Settings(controllers="reclaim"))
    assert "reservation-planned" not in steps(*FULL, waits(), terms=Terms(3600, 0))


@pytest.mark.parametrize(
    "items",
    [
        [*FULL, quota("b", max={"cpu": 1}), waits(message=MAX)],
        [*FULL, waits(cpu=9)],
        [*FULL, queue("q"), namespace("b", **{QUEUE: "typo"}), waits(message="1 Queue is closed.")],
        [*FULL, waits(nodeSelector={"disk": "ssd"})],
        [*FULL, group("b", 3), refused(member("p"), "1 Gang minimum cannot be placed yet."), member("mate")],
    ],
    ids=["beyond its max", "too large", "queue missing", "no such node", "too few members"],
)
def test_of_whom_nodes_would_never_be_reserved_for_that_is_not_said(items):
    assert "reservation-planned" not in steps(*items)


def test_who_starves_is_told_why_no_node_is_reserved():
    told = steps(*FULL, quota("b", max={"cpu": 1}), waits(message=MAX, metadata=LONG_AGO))
    assert told["nothing-reserved"] == "no node is reserved for it: it would be refused: ElasticQuota max exceeded: cpu"


LENT = [node("n1", **cpus(3)), quota("a", min={"cpu": 1}), quota("b", min={"cpu": 2}), *running("a", 3)]


def test_where_nobody_takes_back_nobody_is_said_to_go():
    assert steps(*LENT, waits(1))["reclaim-planned"] == "a/r-2 on node n1 will be evicted for it"
    for settings, why in (
        (Settings(mode="observe"), "observe mode changes nothing"),
        (Settings(controllers="status"), "controllers: status"),
    ):
        told = steps(*LENT, waits(1), settings=settings)
        assert told["nobody-to-evict"] == f"nobody is evicted for it: {why}; else it would be a/r-2 on node n1"
        assert "reclaim-planned" not in told


def test_who_goes_is_told_with_how_many_have_their_turn_before():
    first = refused(pod("first", "b", {"cpu": 1}, NOW, priority=5), NO_ROOM)
    told = steps(*LENT, first, waits(1))
    assert told["reclaim-planned"] == "a/r-2 on node n1 would be evicted for it; 1 pod has its turn before it"
    assert steps(*LENT, first, waits(1), name="first")["reclaim-planned"].endswith("will be evicted for it")


def test_a_plan_that_was_given_up_is_not_promised_for_now():
    store = store_with(*LENT, waits(1))
    store.cluster.upsert_reservation(
        Reservation("reclaim-p", PodName("b", "p", "b/p"), "n1", (), 0.0, failed_at=time.time())
    )
    step = client_of(store).get("/api/v1/pods/b/p").json()["next"][0]
    assert "given up 1 time already" in step["text"]
    assert step["inSeconds"] is None


def test_a_gang_that_rules_would_refuse_is_not_told_to_wait_for_room():
    gang = [group("b", 2), refused(member("p"), "1 Gang minimum cannot be placed yet."), member("mate")]
    assert "gang-waiting" in steps(*FULL, *gang)
    told = steps(*FULL, quota("b", max={"cpu": 1}), *gang)
    assert "gang-waiting" not in told
    assert told["gang-refused"].endswith("all together they would be refused: ElasticQuota max exceeded: cpu")


def test_a_gang_that_no_empty_node_would_help_is_not_told_to_wait_for_room():
    gang = [group("b", 3), refused(member("p"), "1 Gang minimum cannot be placed yet."), member("m1"), member("m2")]
    told = steps(*FULL, *gang)
    assert "gang-waiting" not in told
    why = "it lacks 3 members, and the nodes have room for 2 of them even if they were empty"
    assert told["gang-too-large"].endswith(f"0 are ready, 3 wait; it cannot start: {why}")
    assert "gang-waiting" in steps(*FULL, node("n2", **cpus(1)), *gang)
    assert "gang-too-large" in steps(*FULL, tainted(node("n2", **cpus(1)), "key"), *gang)


def test_who_waits_for_the_min_run_time_of_others_is_told_until_when():
    lending = quota("a", min={"cpu": 1})
    lending["metadata"]["annotations"] = {"quotaward.dev/min-run-time": "2h"}
    told = steps(*LENT, lending, waits(1))["victims-protected"]
    assert re.fullmatch(
        r"from \d\d:\d\d UTC( tomorrow)? on a/r-2 on node n1 may be evicted for it; "
        "until then min-run-time protects what is needed",
        told,
    )
    told = steps(*LENT, lending, waits(1), settings=Settings(mode="observe"))["nobody-to-evict"]
    assert "observe mode changes nothing; else it would be a/r-2 on node n1, from" in told


REFUSED = 'Post "http://127.0.0.1:9/extender/filter": dial tcp 127.0.0.1:9: connect: connection refused'


def test_that_a_scheduler_got_no_answer_comes_before_all_that_would_follow_one():
    told = steps(*FULL, quota("b", min={"cpu": 2}), waits(message=REFUSED))
    assert next(iter(told)) == "no-answer"
    assert "got no answer from http://127.0.0.1:9/extender/filter" in told["no-answer"]
    assert told["no-answer"][-1].isalpha()  # a full stop follows
    assert "no-answer" not in steps(*FULL, quota("b", min={"cpu": 2}), waits())


def test_of_a_queue_that_takes_no_pods_nothing_is_said_of_evictions():
    items = [*FULL, queue("q"), namespace("b", **{QUEUE: "typo"}), waits(message="1 Queue is closed.")]
    assert set(steps(*items)) == {"to-be-tried"}
    told = client_of(store_with(*items)).get("/api/v1/pods/b/p").json()
    assert told["verdict"] == "refused"
    assert told["outlook"] == ""
    assert "nobody is evicted" not in told["summary"]


def test_taints_are_named_only_where_no_other_node_has_room_or_will_have():
    off = tainted(node("n2", **cpus(9)), "maintenance")
    assert "(n2): maintenance" in steps(*FULL, off, waits())["nodes-tainted"]
    assert "nodes-tainted" not in steps(off, node("n1", **cpus(9)), waits())
    lent = [quota("a", min={"cpu": 1}), quota("b", min={"cpu": 2})]
    assert "nodes-tainted" not in steps(*FULL, off, *lent, waits(cpu=1))
    assert "nodes-tainted" not in steps(*FULL, tainted(node("n2", **cpus(1)), "maintenance"), waits())
    tolerant = waits(tolerations=[{"key": "maintenance", "operator": "Exists"}])
    assert "nodes-tainted" not in steps(*FULL, off, tolerant)
