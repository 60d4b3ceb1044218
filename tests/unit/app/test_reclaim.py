"""Reclaim over time, and from one leader to the next: nothing that it waits for begins anew with whoever leads."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from app.actuators.protocol import ActionFailed, Blocked
from app.actuators.recording import RecordingActuator
from app.controllers.reclaim import AGAIN, LONGEST_REASON, Question, Reclaim
from app.observability import metrics
from app.settings import ReclaimSettings
from policy.explain.next_steps import Times, next_steps
from policy.objects.reservation import PodName, Reservation
from policy.preemption import joint_plans, plan_text, reclaim, victims
from policy.reserve.starving import Terms
from policy.stepwise import at_once
from tests.unit.app.given import Clock, cancel_at_the_write, node, pod, quota, refused, see, store_with

SETTINGS = ReclaimSettings(delay=1, bind_timeout=60, backoff=10)
EPOCH = 1_800_000_000.0


class ApiServer(RecordingActuator):
    """Acts on the store; evictions may be blocked, or leave the victims there, and writes may fail."""

    def __init__(self, store):
        super().__init__(store)
        self.evicted, self.suspended, self.reserved, self.told = [], [], [], {}
        self.lowered = []
        self.blocked = self.lingering = self.failing = False
        self.due = 0.0

    async def evict(self, victim, grace=None):
        if self.blocked:
            raise Blocked("a disruption budget does not allow it now")
        self.evicted.append(victim.name)
        if not self.lingering:
            await super().evict(victim)
        elif victim.uid in self._store.cluster.pods:
            self._store.cluster.upsert_pod(going(self._store, victim.uid, self.due), 0)

    async def suspend_job(self, job):
        self.suspended.append(job.name)
        await super().suspend_job(job)

    async def lower_job(self, job, to):
        self.lowered.append((job.name, to))
        await super().lower_job(job, to)

    async def reserve(self, reservation):
        self.reserved.append(reservation.name)
        await super().reserve(reservation)

    def report(self, event):
        self.told[event.subject.name, event.reason] = event.message

    async def note_progress(self, reservation):
        if self.failing:
            raise ActionFailed("the API server answered 500")
        await super().note_progress(reservation)


def going(store, uid, due):
    return replace(store.cluster.pods[uid], terminating=True, deletion_time=due)


class World:
    """Namespace a uses all of a node, one core of it borrowed from b, whose pod waits for it."""

    def __init__(self):
        self.clock = Clock()
        bounds = [quota("a", min={"cpu": 3}, max={"cpu": 9}), quota("b", min={"cpu": 1}, max={"cpu": 9})]
        running = [pod(f"r{number}", nodeName="n1") for number in range(4)]
        self.store = store_with(node("n1"), *bounds, *running, clock=self.clock)
        self.owner_waits()
        self.api = ApiServer(self.store)
        self.take_lead()

    def take_lead(self):
        """Another replica leads, and remembers nothing."""
        self.reclaim = Reclaim(self.store, self.api, SETTINGS, epoch=lambda: EPOCH + self.clock.now)

    def owner_waits(self):
        see(self.store, refused(pod("owner", "b"), "0/1 nodes are available: 1 Insufficient cpu."))

    def loses_contact(self):
        """Nothing has been heard of pods for longer than is believed."""
        feed = self.store.feeds["pods"]
        feed.connected_at, feed.contact_at = None, self.clock.now - 3600

    def refill(self):
        """The room is taken again by one more that borrows."""
        see(self.store, pod(f"again{self.clock.now:g}", nodeName="n1"))

    def passes(self, seconds):
        """That much time passes, and what is to be done is done."""
        self.clock.now += seconds

        async def look():
            for _ in range(3):
                async with asyncio.TaskGroup() as group:
                    await self.reclaim.look(group)

        asyncio.run(look())

    @property
    def held(self):
        return list(self.store.cluster.reservations.plans)

    @property
    def remembered(self):
        return list(self.store.cluster.reservations.given_up)


@pytest.fixture
def world():
    return World()


@pytest.fixture
def failed(world):
    """Somebody went, the pod was not bound in time, and the room is taken again."""
    world.passes(1)
    assert len(world.api.evicted) == 1
    world.passes(61)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])
    world.refill()
    return world


either = pytest.mark.parametrize("another_leads", [False, True], ids=["the same leads", "another leads"])


def test_nothing_is_begun_for_a_pod_that_was_bound_while_a_plan_was_looked_for(world, monkeypatch):
    search = victims.search_steps

    def is_overtaken(cluster, waiting):
        found = at_once(search(cluster, waiting))
        see(world.store, pod("owner", "b", nodeName="n1"))
        yield
        return found

    monkeypatch.setattr(victims, "search_steps", is_overtaken)
    world.passes(1)
    assert (world.api.evicted, world.held, world.remembered) == ([], [], [])
    assert world.api.reserved == []


def test_both_are_told_who_goes_for_whom_and_by_which_rule(world):
    world.passes(1)
    (victim,) = world.api.evicted
    assert world.api.told == {
        (victim, "Reclaimed"): "evicted to make room for b/owner: ElasticQuota a/quota borrows",
        ("owner", "ReclaimStarted"): f"to make room on node n1 these go: a/{victim} (ElasticQuota a/quota borrows)",
    }


def test_who_goes_for_whom_is_said_before_anybody_goes(world):
    told_before, evict = [], world.api.evict

    async def is_asked(victim, grace=None):
        told_before.append(set(world.api.told))
        await evict(victim)

    world.api.evict = is_asked
    world.passes(1)
    assert told_before == [{("owner", "ReclaimStarted")}]


def test_who_goes_for_whom_is_said_once_however_often_and_by_whom_it_is_tried(world):
    world.api.blocked = True
    world.passes(1)
    assert ("owner", "ReclaimStarted") in world.api.told
    world.api.told.clear()
    world.passes(3)
    world.take_lead()
    world.passes(3)
    assert ("owner", "ReclaimStarted") not in world.api.told


def overtaken(search, by):
    """The search, as it is when something happens in its last pause."""

    def searched(*question):
        found = yield from search(*question)
        by()
        yield
        return found

    return searched


def test_nothing_is_begun_on_a_picture_that_grew_stale_while_a_plan_was_looked_for(world, monkeypatch):
    monkeypatch.setattr(victims, "search_steps", overtaken(victims.search_steps, world.loses_contact))
    world.passes(1)
    assert (world.api.evicted, world.held, world.api.reserved) == ([], [], [])


@pytest.mark.parametrize("end", ["stale", "lifted"])
def test_nobody_is_evicted_for_a_plan_that_grew_stale_or_was_dropped_meanwhile(world, monkeypatch, end):
    world.api.blocked = True
    world.passes(1)
    world.api.blocked = False

    def is_lifted():
        world.store.cluster.delete_reservation("reclaim-b.owner")
        see(world.store, quota("a", min={"cpu": 4}, max={"cpu": 9}))  # and there will be no other

    happens = world.loses_contact if end == "stale" else is_lifted
    monkeypatch.setattr(reclaim, "still_planned_steps", overtaken(reclaim.still_planned_steps, happens))
    world.passes(5)
    assert (world.api.evicted, world.held) == ([], ["reclaim-b.owner"] if end == "stale" else [])


def test_who_loses_the_lead_while_a_plan_is_written_down_holds_no_room(world):
    world.clock.now += 1
    cancel_at_the_write(world.api, world.reclaim.run)
    assert (world.api.evicted, world.held) == ([], [])


def test_somebody_goes_and_the_room_is_held_until_the_pod_is_bound(world):
    world.passes(1)
    assert (len(world.api.evicted), world.held) == (1, ["reclaim-b.owner"])
    see(world.store, pod("owner", "b", nodeName="n1"))
    world.passes(1)
    assert (world.held, world.remembered) == ([], [])


@either
def test_the_pod_has_as_long_to_be_bound_whoever_leads(world, another_leads):
    world.passes(1)
    world.passes(40)
    assert world.store.cluster.reservations.plans["reclaim-b.owner"].freed_at == EPOCH + 1001
    if another_leads:
        world.take_lead()
    world.passes(19)
    assert world.held
    world.passes(2)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


def test_where_others_have_taken_the_room_it_is_given_up_at_once(world):
    world.passes(1)
    world.refill()
    world.passes(0.5)
    assert world.held  # they may be on their way out
    world.passes(1)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


@either
def test_a_budget_has_as_long_to_yield_whoever_leads(world, another_leads):
    world.api.blocked = True
    world.passes(1)
    world.passes(40)
    if another_leads:
        world.take_lead()
    world.passes(18)
    assert world.held
    world.passes(4)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


def test_evictions_that_fail_are_told_with_the_reason_of_the_api_server(world):
    async def refuses(_victim, _grace=None):
        raise ActionFailed('the API server answered 500: failed calling webhook "audit.example.com"' + "." * 1000)

    world.api.evict = refuses
    world.passes(1)
    told = world.api.told["owner", "ReclaimBlocked"]
    assert 'failed, and is tried again: the API server answered 500: failed calling webhook "audit' in told
    assert len(told) < LONGEST_REASON + 100
    cluster = world.store.cluster
    [step] = at_once(next_steps(cluster, cluster.pods["b/owner"], Terms(3600, 100), Times(0, 0, 1.0)))
    assert step.step == "evictions-failing"
    assert "evictions fail" in step.text


def test_when_a_budget_has_yielded_the_time_that_it_took_is_forgotten(world):
    world.api.blocked = True
    world.passes(1)
    assert world.store.cluster.reservations.plans["reclaim-b.owner"].blocked_since
    world.api.blocked, world.api.lingering = False, True
    world.passes(40)
    assert not world.store.cluster.reservations.plans["reclaim-b.owner"].blocked_since
    world.take_lead()
    world.passes(40)
    assert world.held


@either
def test_victims_that_stay_have_as_long_to_go_whoever_leads(world, another_leads):
    world.api.lingering = True
    world.passes(1)
    world.passes(590)
    if another_leads:
        world.take_lead()
    world.passes(9)
    assert world.held
    world.passes(2)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


def test_what_is_given_up_is_held_no_longer(failed):
    assert failed.store.cluster.reservations.nodes_held_from(failed.store.cluster.pod("a", "r1")) == set()
    assert not failed.store.cluster.reservations.is_held_for("b/owner")
    assert failed.store.cluster.ledger.account("b").held == {}


CORDON = {"spec": {"unschedulable": True}}
TAINT = {"spec": {"taints": [{"key": "broken", "effect": "NoSchedule"}]}}


def two_nodes(world):
    """A second node that is as full of borrowers; the plan is for the first, as the second is too small at first."""
    see(world.store, node("n2", cpu="0", pods="110"))
    see(world.store, *[pod(f"s{number}", nodeName="n2") for number in range(4)])


@pytest.mark.parametrize("lost", [CORDON, TAINT, None], ids=["cordoned", "tainted", "deleted"])
@pytest.mark.parametrize("lingering", [True, False], ids=["while victims go", "once they have gone"])
@either
def test_a_plan_for_a_node_that_is_lost_is_replaced_at_once_and_is_no_failure(world, lost, lingering, another_leads):
    two_nodes(world)
    world.api.lingering = lingering
    world.passes(1)
    assert [each.node for each in world.store.cluster.reservations.plans.values()] == ["n1"]
    see(world.store, node("n2"))
    if lost:
        see(world.store, node("n1") | lost)
    else:
        world.store.cluster.delete_node("n1")
    if another_leads:
        world.take_lead()
    world.passes(1)
    assert [(each.name, each.node) for each in world.store.cluster.reservations.plans.values()] == [
        ("reclaim-b.owner", "n2")
    ]
    assert world.remembered == []
    assert len(world.api.evicted) == 2


def test_nobody_more_goes_for_a_node_that_is_lost_while_one_is_asked_to_go(world):
    see(world.store, refused(pod("owner", "b", {"cpu": "2"}), "0/1 nodes are available: 1 Insufficient cpu."))
    see(world.store, quota("a", min={"cpu": 2}, max={"cpu": 9}), quota("b", min={"cpu": 2}, max={"cpu": 9}))
    evict = world.api.evict

    async def is_asked(victim, grace=None):
        await evict(victim)
        see(world.store, node("n1") | CORDON)

    world.api.evict = is_asked
    world.passes(1)
    assert len(world.api.evicted) == 1
    assert world.held == []


def test_a_plan_for_a_lost_node_does_not_ask_the_scheduler_to_bind_the_pod_there(world):
    world.api.lingering = True
    world.passes(1)
    see(world.store, node("n1") | CORDON)
    said = at_once(plan_text.for_pod_steps(world.store.cluster, world.store.cluster.pod("b", "owner")))
    assert said == "room was being made on node n1, which cannot take it any more; another place is sought"


@either
def test_room_is_made_elsewhere_once_a_victim_has_not_ended_in_its_time(world, another_leads):
    two_nodes(world)
    world.api.lingering, world.api.due = True, EPOCH + 30
    world.passes(1)
    see(world.store, node("n2"))
    [stuck] = world.api.evicted
    world.store.cluster.leaving.pass_time(EPOCH + 89)
    if another_leads:
        world.take_lead()
    world.passes(700)  # as long as it was given time, that is waited for
    assert [each.node for each in world.store.cluster.reservations.plans.values()] == ["n1"]
    world.store.cluster.leaving.pass_time(EPOCH + 90)
    world.passes(1)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])
    owner = world.store.cluster.pod("b", "owner")
    said = at_once(plan_text.for_pod_steps(world.store.cluster, owner))
    assert said.startswith(f"room was being made on node n1, but these do not end: a/{stuck}; to be evicted for it on")
    world.api.due = EPOCH + 1000
    world.passes(11)
    assert world.held == ["reclaim-b.owner-2"]
    assert len(world.api.evicted) == 2


@either
def test_after_a_failure_the_next_plan_is_made_when_its_time_has_come_whoever_leads(failed, another_leads):
    if another_leads:
        failed.take_lead()
    failed.passes(9)
    assert (failed.held, len(failed.api.evicted)) == ([], 1)
    failed.passes(2)
    assert (failed.held, len(failed.api.evicted)) == (["reclaim-b.owner-2"], 2)
    assert failed.store.cluster.reservations.plans["reclaim-b.owner-2"].failures == 1


@either
def test_after_two_failures_it_takes_a_change_whoever_leads(failed, another_leads):
    failed.passes(11)
    failed.passes(61)
    assert failed.remembered == ["reclaim-b.owner-2"]  # which says it all
    failed.refill()
    if another_leads:
        failed.take_lead()
    failed.passes(1000)
    assert (failed.held, len(failed.api.evicted)) == ([], 2)
    see(failed.store, quota("c", min={"cpu": 1}), node("n2", cpu="0"))
    failed.passes(1)
    assert (failed.held, len(failed.api.evicted)) == ([], 2), "that could not help it"
    see(failed.store, quota("b", min={"cpu": 9}))
    failed.passes(1)
    assert (failed.held, len(failed.api.evicted)) == (["reclaim-b.owner-3"], 3)


@pytest.mark.parametrize("end", ["bound", "gone"])
def test_failures_are_remembered_until_the_pod_is_bound_or_gone(failed, end):
    if end == "bound":
        see(failed.store, pod("owner", "b", nodeName="n1"))
    else:
        failed.store.cluster.delete_pod("b/owner")
    failed.passes(1)
    assert (failed.held, failed.remembered) == ([], [])


def test_what_cannot_be_written_down_is_not_given_up_yet(world):
    world.passes(1)
    world.api.failing = True
    world.passes(61)
    assert (world.held, world.remembered) == (["reclaim-b.owner"], [])
    world.api.failing = False
    world.passes(1)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])


def test_an_older_picture_of_one_that_was_given_up_is_not_believed(failed):
    owner = PodName("b", "owner", "b/owner")
    failed.store.cluster.upsert_reservation(Reservation("reclaim-b.owner", owner, "n1", (), 0.0))
    assert (failed.held, failed.remembered) == ([], ["reclaim-b.owner"])


# Budgets that never let anybody go, and long grace periods


def budget_over(namespace, name="budget", **spec):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {}} | spec,
        "status": {"disruptionsAllowed": 0, "currentHealthy": 4, "expectedPods": 4, "desiredHealthy": 3},
    }


NOTHING = {"maxUnavailable": 0}


class Patient(World):
    """The same, with a bound on what budgets keep; evictions are blocked."""

    def __init__(self, *budgets, patience=300):
        self.patience = patience
        super().__init__()
        see(self.store, *budgets)
        self.api.blocked, self.deleted = True, []
        delete = self.api.delete

        async def deletes(victim, grace=None):
            self.deleted.append((victim.name, grace))
            await delete(victim, grace)

        self.api.delete = deletes

    def take_lead(self):
        settings = SETTINGS.model_copy(update={"budget_patience": self.patience, "max_grace": 20})
        self.reclaim = Reclaim(self.store, self.api, settings, epoch=lambda: EPOCH + self.clock.now)

    def waits(self, seconds):
        for _ in range(seconds // 10):
            self.passes(10)


@either
@pytest.mark.parametrize(
    "budgets",
    [
        [budget_over("a", **NOTHING)],
        [budget_over("a", maxUnavailable="0%")],
        [budget_over("a", minAvailable="100%")],
        [budget_over("a") | {"status": {"expectedPods": 4, "desiredHealthy": 4}}],
        [budget_over("a", "one", maxUnavailable=1), budget_over("a", "two", maxUnavailable=1)],
    ],
    ids=["maxUnavailable 0", "0%", "minAvailable 100%", "minAvailable of all", "two budgets"],
)
def test_budgets_that_allow_nothing_keep_what_is_lent_only_for_the_time_set(budgets, another_leads):
    world = Patient(*budgets)
    world.passes(1)
    world.waits(290)
    assert world.deleted == []
    if another_leads:
        world.take_lead()
    world.waits(900)
    assert len(world.deleted) == 1
    assert world.deleted[0][1] == 20, "as it may have 30 seconds"


@pytest.mark.parametrize(
    ("budgets", "patience"),
    [
        ([budget_over("a", maxUnavailable=1)], 300),
        ([budget_over("b", **NOTHING)], 300),
        ([budget_over("a", **NOTHING)], None),
        ([], 300),
    ],
    ids=["allows some", "of others", "for ever", "no budget"],
)
def test_nobody_is_deleted_for_any_other_reason(budgets, patience):
    world = Patient(*budgets, patience=patience)
    world.passes(1)
    assert world.held
    world.waits(1200)
    assert world.deleted == []


def test_a_less_important_pod_of_ones_own_is_not_deleted_past_its_budget():
    world = Patient(budget_over("b", **NOTHING))
    see(world.store, node("n1", cpu="5", pods="9"), quota("a", min={"cpu": 9}), quota("b", max={"cpu": 1}))
    see(world.store, pod("own", "b", nodeName="n1"))
    waits = pod("owner", "b", priority=5)
    see(world.store, refused(waits, "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu."))
    world.passes(1)
    assert [each.name for each in world.store.cluster.reservations.plans["reclaim-b.owner"].victims] == ["own"]
    world.waits(1200)
    assert world.deleted == []


def test_budgets_that_never_let_anybody_go_are_named():
    world = Patient(budget_over("a", **NOTHING))
    world.passes(1)
    said = at_once(plan_text.for_pod_steps(world.store.cluster, world.store.cluster.pod("b", "owner")))
    assert said.endswith("; as they are, these will never let them go: a/budget")
    see(world.store, budget_over("a", maxUnavailable=1))
    said = at_once(plan_text.for_pod_steps(world.store.cluster, world.store.cluster.pod("b", "owner")))
    assert "a disruption budget does not let go now" in said
    assert "never" not in said


@pytest.mark.parametrize(("asked", "given"), [(3600, 20), (20, None), (5, None), (None, 20)])
def test_a_victim_gets_no_more_grace_than_is_given(asked, given):
    world, graces = Patient(), []
    period = {} if asked is None else {"terminationGracePeriodSeconds": asked}
    see(world.store, *[pod(f"r{number}", nodeName="n1", **period) for number in range(4)])

    async def evict(_victim, grace=None):
        graces.append(grace)

    world.api.evict = evict
    world.passes(1)
    assert set(graces) == {given}


# Evicted in vain


class Attack(World):
    """Somebody who may use three cores waits until pods of others have gone for his, deletes them, and begins again.

    The others' controller makes their pods anew. ``passes`` of half a second.
    """

    def __init__(self):
        super().__init__()
        self.store.cluster.delete_pod("b/owner")
        see(self.store, quota("a", min={"cpu": 1}, max={"cpu": 9}), quota("b", min={"cpu": 3}, max={"cpu": 9}))
        self.rounds, self.asking = 0, []

    def asks(self, **requests):
        self.asking = [pod(f"p{self.rounds}-{number}", "b", requests or {"cpu": "1"}) for number in range(3)]
        see(self.store, *[refused(each, "0/1 nodes are available: 1 Insufficient cpu.") for each in self.asking])
        self.rounds += 1

    def gets_nothing(self):
        for each in self.asking:
            self.store.cluster.delete_pod(each["metadata"]["uid"])
        there = len(self.store.cluster.table.pods_on("n1"))
        see(self.store, *[pod(f"r{self.clock.now}-{number}", nodeName="n1") for number in range(4 - there)])
        self.asking = []

    def goes_on(self, seconds, request=lambda _: "1"):
        """How many of the others' pods go meanwhile."""
        before = len(self.api.evicted)
        for _ in range(2 * seconds):
            asked = len(self.api.evicted)
            if not self.asking:
                self.asks(cpu=request(self.rounds))
            self.passes(0.5)
            self.passes(0.5)
            if len(self.api.evicted) > asked:
                self.gets_nothing()
        return len(self.api.evicted) - before


def in_vain(namespace="b"):
    return metrics.IN_VAIN.labels(namespace)._value.get()


@pytest.mark.parametrize(
    ("request_", "most"),
    [(lambda _: "1", 21), (lambda at: f"{900 + at}m", 27)],
    ids=["of one size", "of another size each time"],
)
def test_whoever_lets_others_go_in_vain_again_and_again_gets_few_to_go(request_, most):
    world, before = Attack(), in_vain()
    gone = world.goes_on(300, request_)
    assert 9 <= gone <= most
    assert in_vain() - before == gone
    assert sum(each.startswith("r") for each in world.api.evicted) == gone


def test_others_are_not_held_up_by_those_for_whom_pods_went_in_vain():
    world = Attack()
    world.goes_on(60)
    world.gets_nothing()
    see(world.store, quota("c", min={"cpu": 1}, max={"cpu": 9}))
    see(world.store, refused(pod("other", "c"), "0/1 nodes are available: 1 Insufficient cpu."))
    before = len(world.api.evicted)
    world.passes(1)
    assert len(world.api.evicted) == before + 1


def test_whose_pod_was_deleted_once_at_the_wrong_moment_waits_for_ten_seconds(world):
    world.passes(1)
    world.store.cluster.delete_pod("b/owner")
    world.passes(1)
    world.refill()
    see(world.store, refused(pod("again", "b"), "0/1 nodes are available: 1 Insufficient cpu."))
    world.passes(8)
    assert (world.held, len(world.api.evicted)) == ([], 1)
    world.passes(2)
    assert (world.held, len(world.api.evicted)) == (["reclaim-b.again"], 2)


@pytest.mark.parametrize(("runs", "waited"), [(True, 10), (False, 20)])
def test_a_pod_that_runs_makes_up_for_one_that_went_away(world, runs, waited):
    def asks_and_goes(name, *, bound=False):
        item = pod(name, "b")
        see(world.store, refused(item, "0/1 nodes are available: 1 Insufficient cpu."))
        world.passes(11)
        if bound:
            see(world.store, item | {"spec": item["spec"] | {"nodeName": "n1"}})
            world.passes(1)
        world.store.cluster.delete_pod(f"b/{name}")
        world.passes(0)
        world.refill()

    asked = world.store.cluster.pod("b", "owner")
    asks_and_goes("owner")
    if runs:
        asks_and_goes("again", bound=True)
    asks_and_goes("last")
    assert len(world.api.evicted) == 2 + runs
    assert world.store.cluster.in_vain.waits_until(asked) == world.clock.now + waited


def test_a_pod_that_nobody_went_for_may_go_away_at_no_cost(world):
    world.api.blocked = True
    world.passes(1)
    assert world.held
    world.store.cluster.delete_pod("b/owner")
    before = in_vain()
    world.passes(1)
    assert (world.held, in_vain()) == ([], before)
    world.api.blocked = False
    world.owner_waits()
    world.passes(1)
    assert len(world.api.evicted) == 1


def test_who_gives_up_as_others_do_not_go_waits_with_nobody_else(world):
    world.api.lingering = True
    world.passes(1)
    world.passes(601)
    assert world.remembered == ["reclaim-b.owner"]
    other = replace(world.store.cluster.pod("b", "owner"), uid="b/other", name="other")
    assert world.store.cluster.in_vain.waits_until(other) < world.clock.now


def test_the_explanation_says_that_others_went_in_vain():
    world = Attack()
    world.goes_on(5)
    world.asks()
    cluster = world.store.cluster
    times = Times(world.clock.now, EPOCH, 0)
    found = at_once(next_steps(cluster, cluster.pod("b", f"p{world.rounds - 1}-0"), Terms(), times))
    told = {each.step: each for each in found}
    assert "others went in vain for pods of its namespace" in told["reclaim-planned"].text
    assert 0 < told["reclaim-planned"].after <= 10


# Gangs


GANG_MINIMUM = "0/1 nodes are available: 1 Gang minimum cannot be placed yet."


class GangWorld(World):
    """The same, but b is to have more of it, and a gang waits instead of one pod."""

    def __init__(self, guaranteed, minimum=2, count=2):
        super().__init__()
        self.store.cluster.delete_pod("b/owner")
        see(self.store, quota("a", min={"cpu": 1}, max={"cpu": 9}), quota("b", min={"cpu": guaranteed}, max={"cpu": 9}))
        see(self.store, pod_group("g", "b", minimum))
        self.member_names = [f"m{number}" for number in range(count)]
        for name in self.member_names:
            self.is_refused(name)

    def member(self, name):
        return pod(name, "b", metadata={"labels": {"scheduling.x-k8s.io/pod-group": "g"}})

    def is_refused(self, name):
        see(self.store, refused(self.member(name), GANG_MINIMUM))


def pod_group(name, namespace, minimum):
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": minimum},
    }


def test_for_a_gang_as_many_go_as_all_of_it_needs_and_room_is_held_for_each():
    world = GangWorld(guaranteed=2)
    world.passes(1)
    assert len(world.api.evicted) == 2
    assert sorted(world.held) == ["reclaim-b.m0", "reclaim-b.m1"]
    cluster = world.store.cluster
    assert [cluster.admit(cluster.pods[f"b/{name}"], world.clock.now, ("n1",)) for name in world.member_names] == [
        None
    ] * 2


def test_nobody_is_evicted_for_plans_that_are_outdated_when_the_last_is_found(monkeypatch):
    world = GangWorld(guaranteed=2)
    nothing_is_lent = partial(see, world.store, quota("a", min={"cpu": 4}, max={"cpu": 9}))
    monkeypatch.setattr(joint_plans, "plans_for_all_steps", overtaken(joint_plans.plans_for_all_steps, nothing_is_lent))
    world.passes(1)
    assert world.api.reserved
    assert (world.api.evicted, world.held) == ([], [])


def test_nobody_goes_for_a_gang_that_could_not_start_even_so():
    world = GangWorld(guaranteed=1)
    world.passes(1)
    world.passes(30)
    assert (world.api.evicted, world.held) == ([], [])


def test_nobody_goes_for_a_gang_whose_members_have_not_all_been_tried():
    world = GangWorld(guaranteed=2, minimum=2, count=1)
    world.passes(1)
    assert (world.api.evicted, world.held) == ([], [])
    world.is_refused("m1")
    world.passes(5)
    world.passes(5)
    assert len(world.api.evicted) == 2


def test_nobody_goes_for_members_beyond_the_minimum():
    world = GangWorld(guaranteed=3, minimum=2, count=3)
    world.passes(1)
    world.passes(30)
    assert len(world.api.evicted) == 2
    for name in ("m0", "m1"):
        see(world.store, world.member(name) | {"spec": {"nodeName": "n1", "containers": []}})
    world.passes(30)
    assert len(world.api.evicted) == 2


def test_nothing_is_held_for_a_gang_that_would_itself_borrow():
    world = GangWorld(guaranteed=2, minimum=3, count=3)
    world.passes(1)
    world.passes(30)
    assert (world.api.reserved, world.held, world.api.evicted) == ([], [], [])


def test_nobody_goes_for_a_gang_of_which_one_plan_cannot_be_written_down():
    world = GangWorld(guaranteed=2)

    async def reserve(reservation, first=world.api.reserve):
        if reservation.name == "reclaim-b.m1":
            raise ActionFailed("the API server answered 500")
        await first(reservation)

    world.api.reserve = reserve
    world.passes(1)
    assert (world.api.evicted, world.held) == ([], [])


def test_room_is_held_for_the_rest_of_a_gang_no_longer_once_one_gets_none():
    world = GangWorld(guaranteed=2)
    world.api.blocked = True
    world.passes(1)
    assert len(world.held) == 2
    see(world.store, quota("b", min={"cpu": 1}, max={"cpu": 9}))
    world.passes(3)
    world.passes(3)
    assert (world.held, world.api.evicted) == ([], [])


def test_when_a_plan_for_one_of_a_gang_is_given_up_the_others_are():
    world = GangWorld(guaranteed=2)
    world.api.blocked = True
    world.passes(1)
    world.passes(61)
    assert (world.held, world.api.evicted) == ([], [])


def test_nobody_goes_for_a_gang_while_a_budget_protects_some_of_all_who_would():
    world = GangWorld(guaranteed=2)
    see(world.store, budget("a", allowed=1))
    world.passes(1)
    world.passes(3)
    assert (len(world.held), world.api.evicted) == (2, [])
    assert "waits for its disruption budget" in world.api.told["m0", "ReclaimBlocked"]
    see(world.store, budget("a", allowed=2))
    world.passes(3)
    assert len(world.api.evicted) == 2


def budget(namespace, allowed):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "pdb", "namespace": namespace},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": allowed},
    }


def test_room_that_is_there_is_kept_for_a_gang_until_there_is_room_for_all_of_it():
    world = GangWorld(guaranteed=2)
    world.store.cluster.delete_pod("a/r0")
    world.api.lingering = True
    world.passes(1)
    assert len(world.api.evicted) == 1
    assert world.held == ["reclaim-b.m0", "reclaim-b.m1"]
    assert not world.store.cluster.reservations.plans["reclaim-b.m0"].victims
    world.passes(100)
    assert len(world.held) == 2  # the victim of the other still takes its time
    world.store.cluster.delete_pod(f"a/{world.api.evicted[0]}")
    world.passes(1)
    world.passes(61)
    assert world.held == []


class LendingGang(World):
    """What b lacks is lent to a gang in a, of which all go or none."""

    def __init__(self, **settings):
        self.settings = ReclaimSettings(delay=1, bind_timeout=60, backoff=10, **settings)
        super().__init__()
        see(self.store, pod_group("g", "a", 3))
        for number in range(3):
            see(self.store, self.running(f"r{number}"))

    def take_lead(self):
        self.reclaim = Reclaim(self.store, self.api, self.settings, epoch=lambda: EPOCH + self.clock.now)

    def running(self, name, **metadata):
        labels = {"scheduling.x-k8s.io/pod-group": "g"}
        return pod(name, metadata={"labels": labels} | metadata, nodeName="n1")

    def blocks_all_but(self, number):
        """A budget lets so many go."""

        async def evict(victim, grace=None, first=self.api.evict):
            if len(self.api.evicted) >= number:
                raise Blocked("a disruption budget does not allow it now")
            await first(victim)

        self.api.evict = evict

    def left(self):
        return [name for name in ("a/r0", "a/r1", "a/r2") if name in self.store.cluster.pods]


def lending_gang(**settings):
    """r3 is in no group and would go first; it may not."""
    world = LendingGang(**settings)
    see(
        world.store, pod("r3", nodeName="n1", metadata={"ownerReferences": [{"kind": "DaemonSet", "controller": True}]})
    )
    return world


def test_all_of_a_gang_go_even_if_the_pod_is_bound_once_the_first_of_them_is_gone():
    world = lending_gang()

    async def evict(victim, grace=None, first=world.api.evict):
        await first(victim)
        see(world.store, pod("owner", "b", nodeName="n1"))

    world.api.evict = evict
    world.passes(1)
    assert sorted(world.api.evicted) == ["r0", "r1", "r2"]


def test_those_of_others_stay_once_the_pod_is_bound():
    world = World()
    see(world.store, quota("a", min={"cpu": 0}, max={"cpu": 9}), quota("b", min={"cpu": 4}, max={"cpu": 9}))
    see(world.store, refused(pod("owner", "b", requests={"cpu": 2}), "0/1 nodes are available: 1 Insufficient cpu."))

    async def evict(victim, grace=None, first=world.api.evict):
        await first(victim)
        see(world.store, pod("owner", "b", nodeName="n1"))

    world.api.evict = evict
    world.passes(1)
    assert len(world.api.evicted) == 1


def test_nobody_else_is_evicted_once_a_slow_eviction_has_made_the_picture_old():
    world = lending_gang()

    async def evict(victim, grace=None, first=world.api.evict):
        await first(victim)
        world.loses_contact()

    world.api.blocked = True
    world.passes(1)
    [reservation] = world.store.cluster.reservations.plans.values()
    assert reservation.blocked_since
    world.api.blocked, world.api.evict = False, evict
    world.passes(5)
    assert len(world.api.evicted) == 1
    [reservation] = world.store.cluster.reservations.plans.values()
    assert reservation.blocked_since  # that they may go now is not known


def test_what_is_left_of_a_gang_that_a_budget_protects_in_part_goes_after_a_while():
    world = lending_gang(broken_gang_grace=30)
    world.blocks_all_but(1)
    world.passes(1)
    assert len(world.left()) == 2
    see(world.store, pod("owner", "b", nodeName="n1"))
    world.passes(29)
    assert len(world.left()) == 2
    world.passes(2)
    assert len(world.left()) == 2  # the budget still does not allow it
    world.api.evict = ApiServer.evict.__get__(world.api)
    world.passes(6)
    assert world.left() == []


def test_a_gang_that_is_whole_again_in_time_stays():
    world = lending_gang(broken_gang_grace=30)
    world.blocks_all_but(1)
    world.passes(1)
    see(world.store, pod("owner", "b", nodeName="n1"))
    see(world.store, world.running("again"))
    world.passes(40)
    assert len(world.left()) == 2


def test_of_what_is_left_of_a_gang_the_system_keeps_its_pods():
    world = lending_gang(broken_gang_grace=30)
    world.blocks_all_but(1)
    world.passes(1)
    see(world.store, pod("owner", "b", nodeName="n1"))
    critical, _ = world.left()
    item = world.running(critical.removeprefix("a/"))
    see(world.store, item | {"spec": item["spec"] | {"priority": 2_000_000_000}})
    world.api.evict = ApiServer.evict.__get__(world.api)
    world.passes(40)
    assert world.left() == [critical]


def test_of_what_is_left_of_a_gang_pods_stay_whose_eviction_would_fail_their_job():
    world = lending_gang(broken_gang_grace=30)
    world.blocks_all_but(1)
    world.passes(1)
    see(world.store, pod("owner", "b", nodeName="n1"))
    fragile, _ = world.left()
    name = fragile.removeprefix("a/")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name, "controller": True}
    job = {"metadata": {"name": name, "namespace": "a", "uid": name}, "spec": {"backoffLimit": 0}}
    see(world.store, {"apiVersion": "batch/v1", "kind": "Job"} | job, world.running(name, ownerReferences=[owner]))
    world.api.evict = ApiServer.evict.__get__(world.api)
    world.passes(40)
    assert world.left() == [fragile]


def test_what_is_left_of_a_gang_stays_where_that_is_wanted():
    world = lending_gang(clean_up_broken_gangs=False)
    world.blocks_all_but(1)
    world.passes(1)
    see(world.store, pod("owner", "b", nodeName="n1"))
    world.passes(100)
    assert len(world.left()) == 2


def test_a_plan_waits_for_an_earlier_one_that_it_would_make_take_from_min(world):
    """Namespace a uses 4.5 of min 3: a pod of one core and one of 1.5 may go in this order only."""
    world.store.cluster.delete_pod("a/r3")
    large = {"cpu": "1500m"}
    see(
        world.store, pod("large", requests=large, nodeName="n2"), node("n1", cpu=3, pods=9), node("n2", **large, pods=9)
    )
    world.api.blocked = True
    world.passes(2)
    assert len(world.held) == 1
    see(world.store, refused(pod("second", "b", large), "0/2 nodes are available: 2 Insufficient cpu."))
    see(world.store, quota("b", min={"cpu": 3}, max={"cpu": 9}))
    world.passes(2)
    assert len(world.held) == 1, "the second would leave the first victim within min"
    world.api.blocked = False
    world.passes(2)
    assert len(world.api.evicted) == 2


def test_pods_that_start_all_the_time_do_not_make_a_question_be_asked_more_often():
    question, asked = Question(), []
    for now in (tenths / 10 for tenths in range(600)):
        if now >= question.again_at:
            asked.append(now)
            question.again_at = now + AGAIN[1]
            question.ask_early(now + AGAIN[0])
    assert len(asked) <= 2 * 60 / AGAIN[1] + 2


def test_room_is_made_at_the_moment_at_which_a_min_run_time_is_over(world):
    lending = quota("a", min={"cpu": 3}, max={"cpu": 9})
    lending["metadata"]["annotations"] = {"quotaward.dev/min-run-time": "12s"}
    cluster = world.store.cluster
    see(world.store, lending)
    began = EPOCH + world.clock.now
    for running in [each for each in cluster.pods.values() if each.node]:
        cluster.upsert_pod(replace(running, started=began), 0)
    cluster.epoch = EPOCH
    for seconds in (1, 0.5, 1, 2, 4, 3.25, 0.25):
        assert not world.api.evicted
        world.clock.now += seconds
        cluster.protection.pass_time(EPOCH + world.clock.now)
        world.passes(0)
    assert len(world.api.evicted) == 1
