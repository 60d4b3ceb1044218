"""For tests of reclaim over time: a namespace that has borrowed from another, whose pod waits; also with a gang."""

import asyncio
from dataclasses import replace

import pytest

from app.actuators.protocol import ActionFailed, Blocked
from app.actuators.recording import RecordingActuator
from app.controllers.reclaim.reclaim import Reclaim
from app.settings import ReclaimSettings
from tests.unit.app.given import Clock, node, pod, pod_group, quota, refused, run_in_the_same_loop, see, store_with

SETTINGS = ReclaimSettings(delay=1, bind_timeout=60, backoff=10)
EPOCH = 1_800_000_000.0


class ApiServer(RecordingActuator):
    """Acts on the store; evictions may be blocked, or leave the victims there, and writes may fail."""

    def __init__(self, store):
        super().__init__(store)
        self.evicted, self.suspended, self.reserved, self.told = [], [], [], {}
        self.lowered, self.handed_on = [], []
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
        self.handed_on += event.evicted

    async def note_progress(self, reservation):
        if self.failing:
            raise ActionFailed("the API server answered 500")
        await super().note_progress(reservation)


def going(store, uid, due):
    return replace(store.cluster.pods[uid], terminating=True, deletion_time=due)


class World:
    """Namespace a uses all of a node, one core of it borrowed from b, whose pod waits for it."""

    def __init__(self, **settings):
        self.settings = SETTINGS.model_copy(update=settings)
        self.clock = Clock()
        bounds = [quota("a", min={"cpu": 3}, max={"cpu": 9}), quota("b", min={"cpu": 1}, max={"cpu": 9})]
        running = [pod(f"r{number}", nodeName="n1") for number in range(4)]
        self.store = store_with(node("n1"), *bounds, *running, clock=self.clock)
        self.owner_waits()
        self.api = ApiServer(self.store)
        self.take_lead()

    def take_lead(self):
        """Another replica leads, and remembers nothing."""
        self.reclaim = Reclaim(self.store, self.api, self.settings, epoch=lambda: EPOCH + self.clock.now)

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

        run_in_the_same_loop(look())

    @property
    def held(self):
        return list(self.store.cluster.reservations.plans)

    @property
    def remembered(self):
        return list(self.store.cluster.reservations.given_up)


either = pytest.mark.parametrize("another_leads", [False, True], ids=["the same leads", "another leads"])


def overtaken(search, by):
    """The search, as it is when something happens in its last pause."""

    def searched(*question):
        found = yield from search(*question)
        by()
        yield
        return found

    return searched


class LendingGang(World):
    """What b lacks is lent to a gang in a, of which all go or none."""

    def __init__(self, **settings):
        super().__init__(**settings)
        see(self.store, pod_group("g", "a", 3))
        for number in range(3):
            see(self.store, self.running(f"r{number}"))

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


def with_a_failure(world):
    """A world in which somebody went, the pod was not bound in time, and the room is taken again."""
    world.passes(1)
    assert len(world.api.evicted) == 1
    world.passes(61)
    assert (world.held, world.remembered) == ([], ["reclaim-b.owner"])
    world.refill()
    return world
