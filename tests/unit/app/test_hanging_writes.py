"""A webhook of one namespace hangs: nothing written elsewhere waits, and nothing is done on what was so before."""

import asyncio
from contextlib import suppress

import pytest

from app.actuators.protocol import ActionFailed, Blocked, TimedOut
from app.actuators.recording import RecordingActuator
from app.controllers import resource_quota, write_seats
from app.controllers.queue_status import QueueStatus
from app.controllers.reclaim import broken_gangs
from app.controllers.reclaim.broken_gangs import BrokenGangs
from app.controllers.resource_quota import ResourceQuotas
from app.controllers.status import Status
from app.controllers.write_seats import WriteSeats
from app.settings import ReclaimSettings
from policy.cluster.cluster import Cluster
from policy.quota.admission import Rules
from tests.unit.app.given import Clock, complete, empty_store, namespace, node, pod, pod_group, queue, quota, see

QUEUE = "scheduling.volcano.sh/queue-name"
GROUP = "scheduling.x-k8s.io/pod-group"


class ApiServer(RecordingActuator):
    """Acts on the store, and notes what is asked for; in the namespace ``hangs`` nothing is done until it ends.

    Then it was done after all, or not if it ``fails``. What goes is still seen while the watch ``lags``, and whoever is
    ``protected`` or ``refused`` does not go.
    """

    def __init__(self, store):
        super().__init__(store)
        self.asked = []
        self.ended = asyncio.Event()
        self.fails = self.lags = False
        self.protected, self.refused = set(), set()

    async def _asked(self, what, where):
        self.asked.append((what, where))
        if where == "hangs":
            await self.ended.wait()
            if self.fails:
                raise TimedOut("the API server has not answered within 10 s")

    async def write_quota_status(self, namespace, name, status, _kind):
        await self._asked("status", namespace)

    async def write_queue_status(self, name, status):
        await self._asked("status", name)

    async def write_limit(self, namespace, hard, owners, seen):
        await self._asked("limit", namespace)
        await super().write_limit(namespace, hard, owners, seen)

    async def remove_limit(self, namespace, seen):
        await self._asked("remove", namespace)
        if not self.lags:
            await super().remove_limit(namespace, seen)

    async def evict(self, victim, grace=None):
        await self._asked("evict", victim.namespace)
        if victim.uid in self.refused:
            raise ActionFailed("the API server answered 500")
        if victim.uid in self.protected:
            raise Blocked("a disruption budget does not allow it now")
        if not self.lags:
            await super().evict(victim)


@pytest.fixture(autouse=True)
def any_time_is_long(monkeypatch):
    """A seat goes back at the next turn of the loop, and what has waited for that has taken long."""
    monkeypatch.setattr(write_seats, "SLOW", 0)


@pytest.fixture
def one_hand(monkeypatch):
    """What hangs keeps the only seat there is."""
    monkeypatch.setattr(resource_quota, "AT_ONCE", 1)
    monkeypatch.setattr(broken_gangs, "AT_ONCE", 1)
    monkeypatch.setattr(write_seats, "SLOW", 1000)


@pytest.fixture
def store():
    found = empty_store(Clock())
    found.cluster = Cluster(Rules(quota_manager=True), settle_time=0)
    return complete(found)


@pytest.fixture
def api(store):
    return ApiServer(store)


def unseen(store):
    """Nothing has been heard of pods for longer than is believed."""
    store.feeds["pods"].connected_at, store.clock.now = None, store.clock.now + 3600


def later(store, seconds=resource_quota.FRESH + 1):
    store.clock.now += seconds


def grows(store):
    """There is room enough for all, after some time."""
    later(store)
    see(store, node(cpu=8))


async def turns(number=50):
    """All that is ready goes on."""
    for _ in range(number):
        await asyncio.sleep(0)


def looks(controller, api, *between):
    """A look before and after each of these, and time for it; what hangs ends then, and there is one look more."""

    async def run():
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for happens in (None, *between):
                if happens:
                    happens()
                await controller.look(group)
                await turns()
            api.ended.set()
            await turns()
            await controller.look(group)

    asyncio.run(run())


def test_the_status_of_quotas_is_written_while_one_hangs(store, api):
    see(store, quota("hangs"), quota("a"))
    looks(Status(store, api), api, lambda: see(store, pod("p", nodeName="n1"), pod("p", "hangs", nodeName="n1")))
    assert api.asked == [("status", "hangs"), ("status", "a"), ("status", "a"), ("status", "hangs")]


def test_where_a_status_has_hung_and_failed_none_is_written_for_a_while(store, api):
    api.fails = True
    see(store, quota("hangs", "first"), quota("a"))
    looks(Status(store, api), api, lambda: see(store, quota("hangs", "second")))
    assert sorted(api.asked) == [("status", "a"), ("status", "hangs")]


def test_the_status_of_queues_is_written_while_one_hangs(store, api):
    see(store, node(), queue("hangs"), queue("q"))
    looks(QueueStatus(store, api), api, lambda: see(store, queue("q", weight=0), queue("hangs", weight=0)))
    assert api.asked == [("status", "hangs"), ("status", "q"), ("status", "q"), ("status", "hangs")]


@pytest.mark.parametrize(("controller", "made"), [(Status, quota), (QueueStatus, queue)])
def test_a_status_is_never_written_twice_at_a_time_where_several_writes_may_be(
    store, api, controller, made, monkeypatch
):
    monkeypatch.setattr(f"{controller.__module__}.AT_ONCE", 2)  # none may be lost
    works = controller(store, api)
    api.ended.set()  # slow, but done: from now on two may be written there at a time
    see(store, made("hangs"))
    looks(works, api)
    api.ended.clear()
    changes = [{"max": {"cpu": 1}}, {"max": {"memory": 1}}] if made is quota else [{"weight": 0}, {"weight": 1}]
    see(store, made("hangs", **changes[0]))
    api.asked.clear()
    asked = []
    looks(works, api, lambda: see(store, made("hangs", **changes[1])), lambda: asked.append(len(api.asked)))
    assert (*asked, len(api.asked)) == (1, 2)


@pytest.fixture
def limited(store):
    """Two namespaces of a queue each, all of a node in use."""
    see(store, node(cpu=4))
    for where in ("hangs", "other"):
        see(store, queue(where), namespace(where, **{QUEUE: where}))
        see(store, *(pod(f"p{number}", where, nodeName="n1") for number in range(2)))
    return store


def with_its_limits_written(controller, store, api):
    """All limits are there, and nobody has gone for them yet."""
    api.ended.set()
    store.cluster.pods, pods = {}, store.cluster.pods
    looks(controller, api)
    store.cluster.pods = pods
    api.ended.clear()


def test_limits_are_written_while_one_hangs(limited, api):
    looks(ResourceQuotas(limited, api, enabled=True), api, lambda: limited.cluster.delete_limit("other"))
    assert api.asked == [("limit", "hangs"), ("limit", "other"), ("limit", "other")]


def test_a_limit_is_never_written_twice_at_a_time_where_several_writes_may_be(limited, api):
    controller = ResourceQuotas(limited, api, enabled=True)
    api.ended.set()  # slow, but done: from now on two may be written there at a time
    looks(controller, api)
    api.ended.clear()
    see(limited, node(cpu=5))
    api.asked.clear()
    asked = []
    looks(controller, api, lambda: see(limited, node(cpu=6)), lambda: asked.append(api.asked.count(("limit", "hangs"))))
    assert (*asked, api.asked.count(("limit", "hangs"))) == (1, 2)


@pytest.mark.parametrize("refused", ["other/p0", "other/p1"])
def test_others_go_for_a_limit_where_a_webhook_refuses_one_after_long(limited, api, refused):
    see(limited, node(cpu=0))
    api.refused.add(refused)
    looks(ResourceQuotas(limited, api, enabled=True), api, lambda: later(limited, write_seats.AGAIN[0]))
    assert [uid for uid, each in limited.cluster.pods.items() if each.namespace == "other"] == [refused]


def test_nobody_goes_for_a_limit_that_was_written_after_long_and_is_outdated(limited, api):
    controller = ResourceQuotas(limited, api, enabled=True)
    see(limited, node(cpu=2))
    looks(controller, api, lambda: grows(limited))
    assert ("evict", "hangs") not in api.asked
    assert api.asked.count(("limit", "hangs")) == 2


def test_who_is_above_a_limit_that_took_long_goes_at_the_next_look(limited, api):
    see(limited, node(cpu=2))
    looks(ResourceQuotas(limited, api, enabled=True), api, lambda: later(limited))
    assert api.asked.count(("evict", "hangs")) == 1


def test_who_was_evicted_after_long_is_not_asked_again_before_that_is_seen(limited, api):
    api.lags = True
    see(limited, node(cpu=2))
    controller = ResourceQuotas(limited, api, enabled=True)
    with_its_limits_written(controller, limited, api)
    looks(controller, api, lambda: later(limited, resource_quota.AGAIN + 1))
    assert api.asked.count(("evict", "hangs")) == 1


def test_nobody_is_evicted_for_a_limit_that_a_slow_eviction_has_outdated(limited, api):
    controller = ResourceQuotas(limited, api, enabled=True)
    see(limited, node(cpu=0))
    with_its_limits_written(controller, limited, api)
    looks(controller, api, lambda: grows(limited))
    assert api.asked.count(("evict", "hangs")) == 1


@pytest.mark.usefixtures("one_hand")
def test_a_hand_that_is_not_needed_goes_back(limited, api):
    controller = ResourceQuotas(limited, api, enabled=True)
    see(limited, node(cpu=0))
    with_its_limits_written(controller, limited, api)
    gone = {uid for uid in limited.cluster.pods if uid.startswith("hangs/")}
    looks(controller, api, lambda: [limited.cluster.delete_pod(uid) for uid in gone])
    assert api.asked.count(("evict", "hangs")) == 1
    assert api.asked.count(("evict", "other")) == 2


@pytest.mark.parametrize("happens", [unseen, grows])
@pytest.mark.usefixtures("one_hand")
def test_nobody_goes_on_an_old_picture_after_all_hands_were_busy_for_long(limited, api, happens):
    see(limited, node(cpu=2))
    looks(ResourceQuotas(limited, api, enabled=True), api, lambda: happens(limited))
    assert ("evict", "other") not in api.asked


def test_limits_are_removed_while_one_hangs(limited, api):
    api.ended.set()
    looks(ResourceQuotas(limited, api, enabled=True), api)
    api.asked.clear()
    api.ended.clear()
    api.lags = True
    looks(ResourceQuotas(limited, api, enabled=False), api, limited.tick)
    assert api.asked == [("remove", "hangs"), ("remove", "other")]


class Cleaning:
    """The cleaning alone, as a controller."""

    def __init__(self, store, api):
        self.broken = BrokenGangs(store, api, ReclaimSettings(broken_gang_grace=0))

    async def look(self, group):
        self.broken.clean_up(group)


def member(name, namespace):
    return pod(name, namespace, metadata={"labels": {GROUP: "g"}}, nodeName="n1")


@pytest.fixture
def broken(store, api):
    """Gangs of three, of which reclaim has taken one."""
    cleaning = Cleaning(store, api)
    for where in ("hangs", "a"):
        see(store, pod_group("g", where, 3), *(member(f"m{number}", where) for number in range(2)))
        cleaning.broken.note([next(each for each in store.cluster.pods.values() if each.namespace == where)])
    return cleaning


def test_what_is_left_of_gangs_goes_while_one_hangs(broken, api):
    looks(broken, api)
    assert sorted(api.asked) == [("evict", "a")] * 2 + [("evict", "hangs")] * 2


def test_no_member_of_a_gang_is_evicted_twice_while_its_eviction_takes_long(broken, store, api):
    api.ended.set()  # slow, but done: from now on several may go there at a time
    looks(broken, api)
    see(store, *(member(f"m{number}", "hangs") for number in range(2)))
    broken.broken.note(store.cluster.pods.values())
    api.ended.clear()
    api.asked.clear()
    api.lags = True
    store.clock.now += broken_gangs.AGAIN
    looks(broken, api, *[lambda: later(store, broken_gangs.AGAIN)] * 2)
    assert api.asked == [("evict", "hangs")] * 2  # each of them once, also before that is seen


@pytest.mark.parametrize("protected", ["a/m0", "a/m1"])
def test_others_of_a_gang_go_where_a_budget_protects_one_and_evictions_take_long(broken, store, api, protected):
    api.protected.add(protected)
    looks(broken, api)
    assert [uid for uid, each in store.cluster.pods.items() if each.namespace == "a"] == [protected]


@pytest.mark.parametrize("refused", ["a/m0", "a/m1"])
def test_others_of_a_gang_go_where_a_webhook_refuses_one_after_long(broken, store, api, refused):
    api.refused.add(refused)
    looks(broken, api, lambda: later(store, write_seats.AGAIN[0]))
    assert [uid for uid, each in store.cluster.pods.items() if each.namespace == "a"] == [refused]


def whole_again(store):
    see(store, pod_group("g", "hangs", 1))


@pytest.mark.usefixtures("one_hand")
def test_a_hand_that_is_not_needed_for_a_gang_goes_back(broken, store, api):
    looks(broken, api, lambda: whole_again(store))
    assert api.asked.count(("evict", "a")) == 2


@pytest.mark.parametrize("happens", [whole_again, unseen])
def test_after_a_slow_eviction_no_member_goes_of_a_gang_that_need_not_any_more(broken, store, api, happens):
    looks(broken, api, lambda: happens(store))
    assert api.asked.count(("evict", "hangs")) == 1


def test_where_a_write_has_hung_none_is_begun_that_would_keep_its_hand(monkeypatch):
    monkeypatch.setattr(write_seats, "SLOW_AT_MOST", 1)
    clock = Clock()
    some = WriteSeats(2, clock)

    async def scenario():
        assert await some.take_for("hung")
        with suppress(ActionFailed), some.writing_in("hung"):
            raise ActionFailed("the API server answered 500")
        clock.now += write_seats.AGAIN[0]
        assert await some.take_for("hangs")
        with some.writing_in("hangs"):
            await turns(3)  # it has given its seat back
            assert not await some.take_for("hung")
            assert await some.take_for("other")
        assert await some.take_for("hung")

    asyncio.run(scenario())


def test_what_is_known_of_slow_namespaces_is_bounded(monkeypatch):
    monkeypatch.setattr(write_seats, "KNOWN", 10)
    some = WriteSeats(2, Clock())

    async def scenario():
        for number in range(25):
            assert await some.take_for(f"n{number}")
            with some.writing_in(f"n{number}"):
                await turns(3)

    asyncio.run(scenario())
    assert sum(some.is_slow_in(f"n{number}") for number in range(25)) == 5
