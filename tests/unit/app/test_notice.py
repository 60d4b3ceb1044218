"""With ``reclaim.notice`` victims are told before they are evicted. See docs/time.md."""

import asyncio
import re
from dataclasses import replace

import msgspec
import pytest

from app.actuators.protocol import ActionFailed
from app.extender.endpoints import Extender
from app.settings import Settings
from policy.explain.next_steps import Times, next_steps, notice_on
from policy.preemption import reclaim
from policy.reserve.starving import Terms
from policy.stepwise import at_once
from tests.unit.app.given import client_of, pod, quota, see
from tests.unit.app.reclaim_world import EPOCH, ApiServer, World
from tests.unit.app.test_batch_jobs import QUEUED
from tests.unit.app.test_batch_jobs import World as JobWorld

NOTICE = 100.0


class Noting(ApiServer):
    """Notes the notices on pods."""

    def __init__(self, store):
        super().__init__(store)
        self.notices, self.deaf = {}, False

    async def give_notice(self, victim, at):
        if self.deaf:
            raise ActionFailed("the API server answered 500")
        self.notices.setdefault(victim.name, []).append(at)


class Warned(World):
    """The same world; victims get a notice of a hundred seconds."""

    def __init__(self, notice=NOTICE):
        super().__init__(notice=notice)
        self.api = Noting(self.store)
        self.take_lead()

    @property
    def noted(self):
        """What was written on the victim last, and how often something was."""
        [(name, written)] = self.api.notices.items()
        return name, written[-1], len(written)


@pytest.fixture
def warned():
    world = Warned()
    world.passes(1)
    assert world.held
    assert world.api.evicted == []
    return world


def test_a_victim_is_told_once_and_goes_when_the_time_is_over(warned):
    at = EPOCH + warned.clock.now + NOTICE
    [victim] = [name for name, reason in warned.api.told if reason == "EvictionNotice"]
    assert warned.noted == (victim, at, 1)
    assert "to make room for b/owner" in warned.api.told[victim, "EvictionNotice"]
    for _ in range(9):
        warned.passes(NOTICE / 10)
        assert warned.api.evicted == []
    warned.passes(NOTICE / 10)
    assert warned.api.evicted == [victim]
    assert warned.noted == (victim, at, 1)


def test_without_a_notice_nobody_is_told():
    world = World()
    world.api = Noting(world.store)
    world.take_lead()
    world.passes(1)
    assert len(world.api.evicted) == 1
    assert world.api.notices == {}


def test_another_leader_keeps_the_time(warned):
    victim, at, _ = warned.noted
    warned.passes(NOTICE - 5)
    warned.take_lead()
    warned.passes(1)
    assert warned.api.evicted == []
    assert warned.noted == (victim, at, 2)
    warned.passes(5)
    assert warned.api.evicted == [victim]


def test_a_long_notice_is_no_plan_that_lingers():
    warned = Warned(notice=36_000.0)
    warned.passes(1)
    for _ in range(10):
        warned.passes(3000)
    assert warned.held
    assert warned.api.evicted == []


def test_a_victim_goes_in_time_though_others_become_cheaper_again_and_again(warned):
    victim, _, _ = warned.noted
    cluster = warned.store.cluster
    for _ in range(5):
        for other in [each for each in cluster.pods.values() if each.node and each.name != victim]:
            cluster.upsert_pod(replace(other, checkpointed=EPOCH + warned.clock.now), warned.clock.now)
        warned.passes(NOTICE / 5)
    assert warned.api.evicted == [victim]
    assert list(warned.api.notices) == [victim]


def test_while_a_notice_runs_its_plan_is_checked_only_after_changes(warned, monkeypatch):
    checks, check = [], reclaim.still_planned_steps
    monkeypatch.setattr(reclaim, "still_planned_steps", lambda *known: checks.append(known) or check(*known))
    warned.passes(3)
    warned.passes(3)
    assert len(checks) == 1
    see(warned.store, quota("c", min={"cpu": 1}, max={"cpu": 9}))
    warned.passes(3)
    assert len(checks) == 2
    warned.passes(NOTICE)
    assert (len(checks), len(warned.api.evicted)) == (3, 1)


def test_nothing_that_a_tenant_writes_on_a_victim_prolongs_it(warned):
    victim, _, _ = warned.noted
    item = pod(victim, nodeName="n1", metadata={"annotations": {"quotaward.dev/evict-at": "2099-01-01T00:00:00Z"}})
    see(warned.store, item)
    warned.passes(NOTICE + 1)
    assert warned.api.evicted == [victim]


def test_if_the_pod_that_waits_is_deleted_the_notice_is_lifted(warned):
    victim, _, _ = warned.noted
    warned.store.cluster.delete_pod(warned.store.cluster.pod("b", "owner").uid)
    warned.passes(1)
    assert not warned.held
    assert warned.noted == (victim, None, 2)
    warned.passes(NOTICE)
    assert warned.api.evicted == []


def test_if_the_room_is_needed_no_more_the_notice_is_lifted(warned):
    victim, _, _ = warned.noted
    other = next(each for each in warned.store.cluster.pods.values() if each.node and each.name != victim)
    warned.store.cluster.delete_pod(other.uid)
    for _ in range(3):
        warned.passes(3)
    assert warned.noted == (victim, None, 2)
    assert warned.api.evicted == []


def test_the_time_holds_where_the_notice_cannot_be_written():
    world = Warned()
    world.api.deaf = True
    world.passes(1)
    world.passes(NOTICE - 1)
    assert world.api.evicted == []
    world.passes(2)
    assert len(world.api.evicted) == 1


def test_who_waits_is_told_of_the_notice(warned):
    owner, now = warned.store.cluster.pod("b", "owner"), warned.clock.now
    [step] = at_once(next_steps(warned.store.cluster, owner, Terms(), Times(now, EPOCH, 1.0, NOTICE)))
    assert (step.step, step.after) == ("notice-given", NOTICE)
    later = at_once(next_steps(warned.store.cluster, owner, Terms(), Times(now + NOTICE, EPOCH, 1.0, NOTICE)))
    assert later[0].step == "victims-leaving"


def told_of(world, name, notice=NOTICE, later=0.0):
    cluster = world.store.cluster
    pod = next(each for each in cluster.pods.values() if each.name == name)
    return notice_on(cluster, pod, Times(world.clock.now + later, EPOCH, 1.0, notice))


def test_a_victim_is_said_to_be_evicted_at_its_time(warned):
    victim = warned.noted[0]
    [step] = told_of(warned, victim)
    assert (step.step, step.after) == ("to-be-evicted", NOTICE)
    assert re.fullmatch(r"it will be evicted at \d\d:\d\d UTC for b/owner", step.text)
    others = {each.name for each in warned.store.cluster.pods.values()} - {victim}
    assert not any(told_of(warned, other) for other in others)
    assert told_of(warned, victim, notice=0.0) == told_of(warned, victim, later=NOTICE) == []
    cluster = warned.store.cluster
    cluster.delete_pod(cluster.pod("b", "owner").uid)
    assert told_of(warned, victim) == []


def test_an_explanation_of_a_victim_has_its_time(warned, monkeypatch):
    monkeypatch.setattr("time.time", lambda: EPOCH + warned.clock.now)
    client = client_of(warned.store)
    client.app.state.settings = Settings(reclaim={"notice": NOTICE})
    of_a = next(each.namespace for each in warned.store.cluster.pods.values() if each.name == warned.noted[0])
    shown = client.get(f"/api/v1/pods/{of_a}/{warned.noted[0]}").json()
    assert [each["step"] for each in shown["next"]] == ["to-be-evicted"]
    assert "Next: it will be evicted at" in shown["summary"]


@pytest.mark.parametrize("gives_notice", [True, False])
def test_preempt_names_nobody_of_another_namespace(gives_notice):
    world = World()
    extender = Extender(world.store, world.api, gives_notice=gives_notice)
    asking = pod("owner", "b")
    body = {"Pod": asking, "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "a/r0"}], "NumPDBViolations": 0}}}
    outcome, _ = extender.preempt(msgspec.json.encode(body))
    assert outcome == ("refused" if gives_notice else "victims")


@pytest.fixture
def job_is_warned():
    """One pod of a Job that is taken back as a whole is the victim of a plan."""
    world = Warned()
    jobs = JobWorld(QUEUED)
    world.store, world.clock, world.api = jobs.store, jobs.clock, Noting(jobs.store)
    world.take_lead()
    world.passes(1)
    return world


def test_all_pods_of_a_job_that_goes_as_a_whole_are_told(job_is_warned):
    at = EPOCH + job_is_warned.clock.now + NOTICE
    assert job_is_warned.api.notices == {f"r{number}": [at] for number in range(4)}
    assert all(told_of(job_is_warned, f"r{number}") for number in range(4))
    told = {name for name, reason in job_is_warned.api.told if reason == "EvictionNotice"}
    assert told == {f"r{number}" for number in range(4)}
    job_is_warned.passes(3)
    assert job_is_warned.api.notices == {f"r{number}": [at] for number in range(4)}


@pytest.mark.parametrize("another_leads", [False, True])
def test_the_notice_of_all_pods_of_a_job_is_lifted(job_is_warned, another_leads):
    if another_leads:
        job_is_warned.take_lead()
    cluster = job_is_warned.store.cluster
    cluster.delete_pod(cluster.pod("b", "owner").uid)
    job_is_warned.passes(1)
    assert [written[-1] for written in job_is_warned.api.notices.values()] == [None] * 4


def test_no_plan_waits_until_a_notice_is_written(monkeypatch):
    world, begun = Warned(), []

    async def play():
        written = asyncio.Event()

        async def give_notice(victim, at):
            begun.append((victim.name, at))
            await written.wait()

        monkeypatch.setattr(world.api, "give_notice", give_notice)
        async with asyncio.TaskGroup() as group:
            for seconds in (1, 1, 1, NOTICE, 1, 1):
                world.clock.now += seconds
                await world.reclaim.look(group)
                for _ in range(20):
                    await asyncio.sleep(0)
            gone = list(world.api.evicted)
            written.set()
        return gone

    gone = asyncio.run(play())
    assert gone == [begun[0][0]]
