"""Pages of a large cluster cost little after a change. They are made in slices, between which others are answered."""

import asyncio
import gc
import os
import time

import httpx
import pytest

from policy.stepwise import at_once
from tests.unit.app.given import client_of, namespace, node, pod, queue, quota, refused, see, store_with
from tests.unit.app.test_queued_jobs import job

pytestmark = pytest.mark.skipif(not os.environ.get("QUOTAWARD_LONG"), reason="it measures time: QUOTAWARD_LONG=1")

QUOTAS, JOBS, NODES, QUEUES = 1000, 10_000, 200, 50
MOST = 0.3
"""Seconds of processor time that a page may take after a change."""
SLICE = 0.02
"""Seconds of processor time without a pause. It is less than a third of that where nothing else runs."""
PAGES = (
    *("/", "/waiting", "/queues", "/queues/q1", "/quotas/t1/quota", "/namespaces/t1", "/nodes/n1", "/pods/t1/w1"),
    *("/waiting?q=t1", "/?q=t1", "/api/v1/waiting?limit=100", "/api/v1/history?queue=q1"),
)


OF_JOBS = ("/queues/q1", "/waiting", "/api/v1/waiting?limit=100")


class Large:
    """A cluster in which each of a thousand quotas has pods that run and wait, or Jobs that wait as a whole."""

    def __init__(self, *, whole=False):
        self.whole = whole
        items = [node(f"n{number}", cpu="64", memory="256Gi", pods="110") for number in range(NODES)]
        items += [quota(f"t{number}", min={"cpu": 4}, max={"cpu": 8}) for number in range(QUOTAS)]
        items += [queue(f"q{number}") for number in range(QUEUES)]
        names = {"scheduling.volcano.sh/queue-name": ""}
        teams = [namespace(f"t{n}", **dict.fromkeys(names, f"q{self.queue_of(n)}")) for n in range(QUOTAS)]
        for each in teams if whole else ():
            each["metadata"]["labels"] = {"quotaward.dev/jobs": "queued"}
        items += teams
        items += [self.running(number, 1) for number in range(5 * QUOTAS)]
        items += [self.waiting(number, 4) for number in range(JOBS)]
        self.store = store_with(*items)
        at_once(self.store.cluster.divide_steps())
        self.app = client_of(self.store).app
        self.number = 0

    def running(self, number, cpu):
        return pod(f"r{number}", f"t{number % QUOTAS}", {"cpu": cpu}, nodeName=f"n{number % NODES}")

    def queue_of(self, team):
        """Jobs wait in one queue, which shows all of them."""
        return 1 if self.whole else team % QUEUES

    def waiting(self, number, cpu):
        if self.whole:
            waits = job(f"w{number}", namespace=f"t{number % QUOTAS}", requests={"cpu": str(cpu)})
            minute, second = divmod(number, 60)
            waits["metadata"]["creationTimestamp"] = f"2026-11-27T{minute // 60:02}:{minute % 60:02}:{second:02}Z"
            return waits
        return refused(pod(f"w{number}", f"t{number % QUOTAS}", {"cpu": cpu}))

    def changes(self):
        """A pod that runs and one that waits want more."""
        self.number += 1
        see(self.store, self.running(self.number, 2), self.waiting(self.number, 5))
        at_once(self.store.cluster.divide_steps())

    async def get(self, path):
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://quotaward") as client:
            return await client.get(path)


@pytest.fixture(scope="module")
def large():
    cluster = Large()
    gc.collect()
    gc.freeze()  # as the server does
    yield cluster
    gc.unfreeze()


@pytest.fixture(scope="module")
def of_jobs():
    cluster = Large(whole=True)
    gc.collect()
    gc.freeze()
    yield cluster
    gc.unfreeze()


async def longest_slice(work):
    """The answer, and the longest processor time between two turns of another task."""
    longest, done = 0.0, False

    async def others():
        nonlocal longest
        before = time.thread_time()
        while not done:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, before = max(longest, now - before), now

    beside = asyncio.create_task(others())
    await asyncio.sleep(0)
    answer = await work
    done = True
    await beside
    return answer, longest


@pytest.mark.parametrize("path", PAGES)
def test_a_change_shows_within_300_ms_of_processor_time(large, path):
    assert time_of(large, path) <= MOST


@pytest.mark.parametrize("path", OF_JOBS)
def test_so_does_a_change_where_jobs_wait_as_a_whole(of_jobs, path):
    assert time_of(of_jobs, path) <= MOST


def time_of(large, path):
    """The processor time of a page after a change, of three the least, each beside a forecast that has just begun."""

    async def measured():
        await large.get(path)
        starts = large.app.state.expected_starts
        while starts._work is not None:
            await starts._work
        taken = []
        for _ in range(3):
            large.changes()
            starts._next_at = 0.0
            before = time.thread_time()
            answer = await large.get(path)
            taken.append(time.thread_time() - before)
            assert answer.status_code == 200
        return min(taken)

    return asyncio.run(measured())


@pytest.mark.parametrize("path", [path for path in PAGES if not path.startswith("/pods/")])
def test_pages_are_made_in_slices(large, path):
    assert slice_of(large, path) <= SLICE


@pytest.mark.parametrize("path", OF_JOBS)
def test_pages_of_whole_jobs_are_made_in_slices(of_jobs, path):
    assert slice_of(of_jobs, path) <= SLICE


def slice_of(large, path):
    """The longest slice of a page after a change, of three pages the least."""

    async def measured():
        await large.get(path)
        slices = []
        for _ in range(3):
            large.changes()
            slices.append((await longest_slice(large.get(path)))[1])
        return min(slices)

    return asyncio.run(measured())


def test_the_overview_sends_what_has_changed_and_no_more(large):
    board = large.app.state.web.board

    async def changed():
        await board.refresh()
        large.changes()
        board._again_at = 0.0
        version, before = board.version, time.thread_time()
        await board.refresh()
        return time.thread_time() - before, board.changes(version).changed

    taken, parts = asyncio.run(changed())
    assert taken <= MOST
    assert 0 < len(parts) <= 6
