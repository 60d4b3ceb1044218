"""The gate controller: opens in order, a few at a time, and loses nobody when the API server does not do its part."""

import asyncio
from itertools import pairwise

import msgspec
import pytest

from app.actuators.protocol import ActionFailed, Rejected, TimedOut
from app.actuators.recording import RecordingActuator
from app.api.admission import patch_of
from app.controllers import write_seats
from app.controllers.gates import AGAIN, REJECTED, SOON, Gates
from app.kube.scheduling_gates import removal
from app.settings import GateSettings, JobSettings, Settings
from app.store.pods import PODS
from tests.unit.app.given import Clock, client_of, namespace, node, pod, quota, see, store_with
from tests.unit.app.test_gang_answers import GROUP
from tests.unit.app.test_page import Parsed

GATE = {"name": "quotaward.dev/quota"}
MINE = {"metadata": {"name": "a", "labels": {"quotaward.dev/gated": "true"}}}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace"} | MINE


class Doors(RecordingActuator):
    """Opens gates in the store itself; fails in the way, and as often, as it is told."""

    def __init__(self, store):
        super().__init__(store)
        self.opened, self.failures, self.tried, self.hanging = [], [], [], {}
        self.asked, self.busy, self.hangs = [], False, True
        self.under_way = self.most_under_way = 0

    def give_up(self):
        """Those that hang have been waited for long enough."""
        for each in self.hanging.values():
            each.set_exception(TimedOut("not within 10 s"))
        self.hanging.clear()

    def answer(self):
        """Those that hang are answered after all, and no other hangs."""
        self.hangs = False
        for each in self.hanging.values():
            each.set_result(None)
        self.hanging.clear()

    async def be_answered(self):
        self.asked.append(list(self.opened))
        if self.busy:
            await asyncio.Event().wait()

    async def open_gate(self, pod):
        if pod.namespace == "hanging":
            self.tried.append(pod.name)
            if self.hangs:
                self.hanging[pod.name] = asyncio.get_running_loop().create_future()
                await self.hanging[pod.name]
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for _ in range(20):
            await asyncio.sleep(0)
        self.under_way -= 1
        if self.failures:
            raise self.failures.pop(0)
        self.opened.append(pod.name)
        await super().open_gate(pod)


class Ungating:
    """A gated namespace whose gates are looked after whenever the test says so."""

    def __init__(self, *items, concurrency=4):
        self.loop = asyncio.Runner()
        self.clock = Clock()
        big = node(cpu="100", memory="1Ti", pods="500")
        self.store = store_with(NAMESPACE, big, *items, clock=self.clock)
        self.doors = Doors(self.store)
        self.gates = Gates(self.store, self.doors, GateSettings(concurrency=concurrency), JobSettings())

    def look(self, until=None):
        """Who is let out now, or until this holds; after that those that hang are given up."""
        self.doors.opened.clear()
        for _ in self.store.cluster.divide_steps():
            pass

        async def look():
            async with asyncio.TaskGroup() as group:
                looking = group.create_task(self.gates.look(group))
                async with asyncio.timeout(5):
                    while not (until or looking.done)():
                        await asyncio.sleep(0)
                        if until and looking.done():
                            looking = group.create_task(self.gates.look(group))
                self.doors.give_up()

        self.loop.run(look())
        return self.doors.opened


def gated(number, **spec):
    time = f"2026-11-27T20:55:{number:02}Z"
    return pod(f"p{number}", metadata={"creationTimestamp": time}, schedulingGates=[GATE], **spec)


def most(cpu):
    return quota("a", max={"cpu": cpu})


def test_gates_are_opened_in_order_a_few_at_a_time_as_many_as_fit():
    ungating = Ungating(*(gated(number) for number in range(30)), most(20))
    assert ungating.look() == [f"p{number}" for number in range(20)]
    assert ungating.doors.most_under_way == 4
    assert ungating.look() == []


def test_nothing_is_opened_while_the_picture_is_not_fresh():
    ungating = Ungating(gated(1))
    ungating.store.feeds["pods"].synced = False
    assert ungating.look() == []


def test_room_that_becomes_free_is_given_to_the_next():
    ungating = Ungating(pod("running", nodeName="n1"), gated(1), gated(2), most(1))
    assert ungating.look() == []
    ungating.store.delete(PODS, "a/running")
    assert ungating.look() == ["p1"]


def test_gates_the_server_did_not_open_count_for_nothing_and_are_retried_in_order():
    ungating = Ungating(*(gated(number) for number in range(3)), most(3), concurrency=1)
    ungating.doors.failures = [ActionFailed("503")]
    ungating.look()
    assert not ungating.store.cluster.gates.ungated
    assert ungating.look() == []
    ungating.clock.now += SOON[0]
    assert ungating.look() == ["p0", "p1", "p2"]


def test_a_pod_that_the_server_would_not_change_backs_off_and_is_tried_again():
    ungating = Ungating(gated(1), gated(2), gated(3), most(1), concurrency=1)
    ungating.doors.failures = [Rejected("422")]
    assert ungating.look() == ["p2"]
    see(ungating.store, most(2))
    ungating.clock.now += REJECTED[0]
    assert ungating.look() == ["p1"]


def test_a_pod_that_the_server_never_changes_is_tried_ever_more_seldom():
    ungating = Ungating(gated(1), most(1))
    tried = []
    for _ in range(20):
        ungating.doors.failures = [Rejected("422")]
        ungating.look()
        if not ungating.doors.failures:
            tried.append(ungating.clock.now)
        ungating.clock.now += REJECTED[0]
    assert [int(after - before) for before, after in pairwise(tried)] == [5, 10, 20, 40]
    ungating.doors.failures = []
    ungating.clock.now += REJECTED[1]
    assert ungating.look() == ["p1"]


HANGING = NAMESPACE | {"metadata": {"name": "hanging", "labels": {"quotaward.dev/gated": "true"}}}


def behind(name, namespace, **metadata):
    return pod(name, namespace, metadata=metadata, schedulingGates=[GATE])


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_namespace_in_which_patches_hang_keeps_no_other_waiting(monkeypatch, concurrency):
    monkeypatch.setattr(write_seats, "SLOW", 0.01)
    stuck = [behind(f"h{number}", "hanging") for number in range(10)]
    ungating = Ungating(HANGING, *stuck, *(behind(f"p{number}", "a") for number in range(10)), concurrency=concurrency)
    ungating.look(until=lambda: len(ungating.doors.opened) == 10)
    tried = list(ungating.doors.tried)
    assert 1 <= len(tried) <= concurrency
    assert len(ungating.store.cluster.gates) == 10 - len(tried)  # the others wait there, and count for nothing
    assert not ungating.store.cluster.gates.ungated.keys() & {f"hanging/h{number}" for number in range(10)}
    ungating.clock.now += write_seats.AGAIN[0] - 1
    ungating.look()
    assert ungating.doors.tried == tried


def test_on_a_busy_machine_nobody_loses_his_turn_by_a_slow_patch(monkeypatch):
    monkeypatch.setattr(write_seats, "SLOW", 0.01)
    each_two = (behind(f"{namespace[0]}{number}", namespace) for number in range(2) for namespace in ("a", "hanging"))
    ungating = Ungating(HANGING, *each_two, concurrency=1)
    ungating.doors.busy = True

    def all_are_open():
        if ungating.doors.asked and ungating.doors.hanging:
            ungating.doors.answer()
        return len(ungating.doors.opened) == 4

    ungating.look(until=all_are_open)
    assert (ungating.doors.asked, ungating.doors.opened) == ([["a0"]], ["a0", "h0", "a1", "h1"])


def test_after_hanging_patches_one_is_tried_and_the_others_once_it_is_answered(monkeypatch):
    monkeypatch.setattr(write_seats, "SLOW", 0.01)
    stuck = [behind(f"h{number}", "hanging") for number in range(9)]
    ungating = Ungating(HANGING, *stuck, *(behind(f"p{number}", "a") for number in range(5)), concurrency=3)
    ungating.look(until=lambda: len(ungating.doors.opened) == 5)
    monkeypatch.setattr(write_seats, "SLOW", 60)
    ungating.clock.now += write_seats.AGAIN[0]
    tried = []

    def answered():
        if ungating.doors.hanging:
            tried.append(len(ungating.doors.hanging))
            ungating.doors.answer()
        return ungating.doors.opened

    ungating.look(until=answered)
    assert tried == [1]
    opened = set(ungating.doors.opened)
    ungating.clock.now += REJECTED[0]
    assert len(opened | set(ungating.look())) == 9


def test_the_next_leader_looks_again_at_pods_that_backed_off():
    ungating = Ungating(gated(1), most(1))
    ungating.doors.failures = [Rejected("422")]
    assert ungating.look() == []
    ungating.gates = Gates(ungating.store, ungating.doors, GateSettings(), JobSettings())
    assert ungating.look() == ["p1"]


def test_an_end_while_gates_are_being_opened_leaves_no_gated_pod_counted():
    ungating = Ungating(*(gated(number) for number in range(5)), most(5), concurrency=2)

    async def never(_):
        await asyncio.Event().wait()

    ungating.doors.open_gate = never
    for _ in ungating.store.cluster.divide_steps():
        pass

    async def look():
        async with asyncio.timeout(0.05), asyncio.TaskGroup() as group:
            await ungating.gates.look(group)

    with pytest.raises(TimeoutError):
        ungating.loop.run(look())
    assert not ungating.store.cluster.gates.ungated
    assert len(ungating.store.cluster.gates) == 5
    assert not ungating.store.cluster.ledger.account("a").used


def test_a_fault_at_one_gate_leaves_no_gated_pod_counted_that_was_chosen_next():
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    members = [pod(f"p{number}", metadata={"labels": labels}, schedulingGates=[GATE]) for number in range(3)]
    ungating = Ungating(GROUP, *members, most(5), concurrency=1)
    ungating.doors.failures = [RuntimeError("a fault")]
    with pytest.raises(ExceptionGroup):
        ungating.look()
    assert not ungating.doors.opened
    assert not ungating.store.cluster.gates.ungated
    assert not ungating.store.cluster.ledger.account("a").used


def test_where_nothing_changes_it_is_looked_again_only_now_and_then():
    ungating = Ungating(gated(1), most(0))
    ungating.look()
    ungating.look()
    looked = ungating.gates._looked
    ungating.clock.now += AGAIN / 2
    ungating.look()
    assert ungating.gates._looked == looked
    ungating.clock.now += AGAIN
    ungating.look()
    assert ungating.gates._looked > looked


def test_who_waits_for_room_is_ungated_when_a_node_gets_more():
    ungating = Ungating(*(gated(number) for number in range(1, 5)), node(cpu="1", pods="500"))
    assert ungating.look() == ["p1"]
    see(ungating.store, node(cpu="2", pods="500"))
    assert ungating.look() == ["p2"]


def test_a_pod_of_a_namespace_no_longer_gated_is_ungated_though_its_quota_is_full():
    ungating = Ungating(gated(1), most(0))
    assert ungating.look() == []
    see(ungating.store, NAMESPACE | {"metadata": {"name": "a"}})
    assert ungating.look() == ["p1"]


# What REST tells


def test_the_explanation_of_a_gated_pod_says_where_in_line_it_stands_and_what_for():
    ungating = Ungating(*(gated(number) for number in range(1, 4)), most(0))
    told = client_of(ungating.store).get("/api/v1/pods/a/p2").json()
    assert (told["verdict"], told["rule"]) == ("refused", "elastic-quota-max")
    assert told["gate"] == {"queue": "", "namespace": "a", "place": 2, "of": 3}
    assert "2 of 3 in the line of namespace a; the first there, p1, waits for: ElasticQuota max" in told["outlook"]
    assert client_of(ungating.store).get("/api/v1/pods/a/p1").json()["gate"]["place"] == 1


def test_the_summary_and_the_page_say_where_in_line_a_pod_stands_and_what_for():
    client = client_of(Ungating(*(gated(number) for number in range(1, 4)), most(0)).store)
    line = "it waits at its gate, {} of 3 in the line of namespace a"
    behind = f"{line.format(2)}; the first there, p1, waits for: ElasticQuota max exceeded: cpu"
    told = client.get("/api/v1/pods/a/p2").json()
    assert (told["next"][0]["step"], told["next"][0]["text"]) == ("at-gate", behind)
    assert f"Next: {behind}." in told["summary"]
    assert f"Next: {line.format(1)}." in client.get("/api/v1/pods/a/p1").json()["summary"]
    words = Parsed(client.get("/").text).words
    assert "at its gate 3 pods" in words
    assert f"a/p2 ElasticQuota max exceeded: cpu; {behind}" in words


def test_the_first_in_line_if_not_refused_is_told_that_it_is_ungated_with_room():
    waiting = [gated(number, requests={"cpu": "60"}) for number in (1, 2)]
    client = client_of(Ungating(*waiting).store)
    told = [client.get(f"/api/v1/pods/a/{name}").json()["next"][0]["text"] for name in ("p1", "p2")]
    assert told[0].endswith("1 of 2 in the line of namespace a; it is ungated as soon as there is room for it")
    assert told[1].endswith("the first there, p1, is ungated as soon as there is room for it")


def test_where_nobody_opens_gates_it_is_said():
    client = client_of(Ungating(gated(1), most(1)).store, observe=True)
    told = client.get("/api/v1/pods/a/p1").json()["next"][0]["text"]
    assert told.endswith("nobody is ungated: observe mode changes nothing")


def test_a_gated_pod_that_no_rule_refuses_waits_for_its_turn():
    told = client_of(Ungating(gated(1), most(1)).store).get("/api/v1/pods/a/p1").json()
    assert told["verdict"] == "admissible"
    assert "waits at its gate" in told["message"]


def test_the_list_of_gates_is_in_the_order_in_which_they_would_be_opened():
    ungating = Ungating(*(gated(number, priority=number % 2) for number in range(4)), most(0))
    client = client_of(ungating.store)
    told = client.get("/api/v1/gates").json()
    assert [each["job"] for each in told["items"]] == ["a/p1", "a/p3", "a/p0", "a/p2"]
    assert [each["place"] for each in told["items"]] == [1, 2, 3, 4]
    assert {each["rule"] for each in told["items"]} == {"elastic-quota-max"}
    assert told["total"] == 4
    assert len(client.get("/api/v1/gates?limit=1").json()["items"]) == 1


@pytest.mark.parametrize(
    "there", [namespace("b"), pod("p", "b", nodeName="n1"), quota("b")], ids=lambda each: each["kind"]
)
def test_a_namespace_without_gated_pods_is_told_from_an_unknown_one(there):
    client = client_of(Ungating(gated(1), there).store)
    assert client.get("/api/v1/gates?namespace=b").json() == {"total": 0, "items": []}
    told = client.get("/api/v1/gates?namespace=typo")
    assert (told.status_code, told.json()["field"]) == (404, "namespace")
    assert told.json()["detail"] == "there is no namespace typo"


# What is written, and what the webhook answers


def test_the_patch_that_opens_a_gate_touches_no_other():
    assert removal("uid", 1) == [
        {"op": "test", "path": "/metadata/uid", "value": "uid"},
        {"op": "test", "path": "/spec/schedulingGates/1/name", "value": "quotaward.dev/quota"},
        {"op": "remove", "path": "/spec/schedulingGates/1"},
    ]


@pytest.mark.parametrize(
    ("item", "gets"),
    [
        (pod("p"), [{"op": "add", "path": "/spec/schedulingGates", "value": [GATE]}]),
        (
            pod("p", schedulingGates=[{"name": "other"}]),
            [{"op": "add", "path": "/spec/schedulingGates/-", "value": GATE}],
        ),
        (pod("p", schedulingGates=[GATE]), []),
        (pod("p", nodeName="n1"), []),
        (pod("p", metadata={"ownerReferences": [{"kind": "DaemonSet", "uid": "u", "controller": True}]}), []),
        (pod("p", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}), []),
        (
            pod("p", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "DaemonSet", "controller": True}]}),
            [{"op": "add", "path": "/spec/schedulingGates", "value": [GATE]}],
        ),
        (
            pod("p", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "controller": True}]}),
            [{"op": "add", "path": "/spec/schedulingGates", "value": [GATE]}],
        ),
    ],
    ids=["a pod", "another gate", "its gate", "a node", "of a DaemonSet", "a mirror", "no DaemonSet", "no mirror"],
)
def test_the_webhook_gives_a_gate_to(item, gets):
    assert patch_of(PODS.decoder.decode(msgspec.json.encode(item))) == gets


def test_the_webhook_answers_a_review_and_refuses_what_is_none():
    client = client_of(store_with())
    review = {"request": {"uid": "u", "object": pod("p")}}
    response = client.request("POST", "/admission/gate", json=review).json()["response"]
    assert response["uid"] == "u"
    assert response["allowed"]
    assert response["patchType"] == "JSONPatch"
    assert client.request("POST", "/admission/gate", json={"request": {}}).status_code == 422


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{" + b" " * Settings().gates.body_limit, 413),
        (b'{"request": {"uid": "u", "object": {"spec": {"volumes": [' + b"[" * 100_000, 422),
        (b'{"request": {"uid": "\xff", "object": {}}}', 422),
    ],
    ids=["too large", "nested too deeply", "no text"],
)
def test_the_webhook_refuses_a_body_that_is_too_much_for_it(body, status):
    assert client_of(store_with()).request("POST", "/admission/gate", content=body).status_code == status
