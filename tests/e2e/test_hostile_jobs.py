"""A hostile tenant whose Jobs wait as a whole: whatever it does to them, it gets no more, and nothing is kept."""

import random
import threading
import time
from collections import Counter

import httpx
import pytest

from app.store.heeded import MIN_PARALLELISM, PARALLELISM, QUEUED
from tests.chaos.workload import IN_THE_BACKGROUND
from tests.controlplane.api import path
from tests.controlplane.objects import job, pod
from tests.controlplane.processes import wait_until
from tests.e2e.test_queued_jobs_policy import controllers, in_force, installed, labelled  # noqa: F401 - fixtures
from tests.e2e.waiting import wait_for

SECONDS, PAUSE, MOST = 20, 0.05, 4
LONGEST = "j" * 63
NAMES = (LONGEST, *(f"job-{number}" for number in range(5)))
MADE_UP = ("0", "1", "-1", "2147483648", "9" * 5000, "1.5", "", "2147483647", None)


@pytest.fixture
def queued(cluster, quotaward, scheduler, installed):  # noqa: F811
    """Two namespaces whose Jobs wait as a whole: that of the tenant, and one of somebody else."""
    namespaces = [in_force(cluster, cluster.namespace(name)) for name in ("hostile", "honest")]
    yield namespaces
    for namespace in namespaces:
        labelled(cluster, namespace, None)


class Tenant:
    """Changes its Jobs and makes up pods of theirs, and of those of somebody else, while this is open."""

    def __init__(self, cluster, namespace, victim):
        self._api, self._namespace, self._victim = cluster.api, namespace, victim
        self._chance, self._over = random.Random(1), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.deeds, self.failure = Counter(), None

    def __enter__(self):
        for name in NAMES:
            self._api.create(job(name, self._namespace, self._chance.randint(1, 3), cpu="500m"))
        self._api.create(job("huge", self._namespace, 2**31 - 1, cpu="1m"))
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(60)

    def _run(self):
        deeds = (*[self._flaps] * 4, self._resizes, self._lies, self._owns, self._goes_and_comes)
        while not self._over.wait(PAUSE):
            deed = self._chance.choice(deeds)
            try:
                deed(self._chance.choice(NAMES))
                self.deeds[deed.__name__] += 1
            except httpx.HTTPStatusError as refused:
                self.deeds[f"{deed.__name__}: {refused.response.status_code}"] += 1
            except BaseException as failure:  # noqa: BLE001 - told in the test
                self.failure = failure
                return

    def _flaps(self, name):
        self._api.patch("jobs", name, {"spec": {"suspend": self._chance.random() < 0.7}}, self._namespace)

    def _resizes(self, name):
        self._api.patch("jobs", name, {"spec": {"parallelism": self._chance.choice((0, 1, 5, 1000))}}, self._namespace)

    def _lies(self, name):
        annotations = {key: self._chance.choice(MADE_UP) for key in (MIN_PARALLELISM, PARALLELISM)}
        labels = {QUEUED: self._chance.choice(("true", "false", None))}
        change = {"metadata": {"annotations": annotations, "labels": labels}}
        self._api.patch("jobs", name, change, self._namespace)

    def _owns(self, name):
        """A pod that names a Job as its owner which never made it."""
        of = self._chance.choice((self._namespace, self._victim))
        jobs = self._api.items("jobs", of)
        if jobs:
            meta = self._chance.choice(jobs)["metadata"]
            item = pod(f"made-up-{sum(self.deeds.values())}", self._namespace, cpu=self._chance.choice(("1m", 1, 3)))
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"]}
            item["metadata"]["ownerReferences"] = [owner | {"controller": True}]
            self._api.create(item)

    def _goes_and_comes(self, name):
        self._api.request("DELETE", path("jobs", self._namespace, name), json=IN_THE_BACKGROUND)
        self._api.create(job(name, self._namespace, self._chance.randint(1, 3), cpu="500m"))


@pytest.mark.timeout(300)
def test_whatever_a_tenant_does_to_its_jobs_it_gets_no_more_and_nothing_is_kept(cluster, queued, quotaward, watch):
    hostile, honest = queued
    cluster.node(cpu=8, pods=200)
    cluster.quota(hostile, min={"cpu": 0}, max={"cpu": MOST})
    cluster.quota(honest, min={"cpu": 8}, max={"cpu": 8})
    theirs, mine = watch(hostile), watch(honest)
    before = quotaward.metric("quotaward_jobs_started_total")
    with Tenant(cluster, hostile, honest) as tenant:
        since = time.monotonic()
        for number in range(4):
            cluster.api.create(job(f"fair-{number}", honest))
            wait_for(mine, bound=number + 1)
        served = time.monotonic() - since
        time.sleep(max(0, SECONDS - served))
    print(f"{dict(tenant.deeds)}, four Jobs of somebody else within {served:.1f} s")
    assert tenant.failure is None
    assert theirs.most_requested("cpu") <= MOST
    tried = sum(tenant.deeds.values()) + len(NAMES) + 5
    assert quotaward.metric("quotaward_jobs_started_total") - before <= 2 * tried, "it asks for as much as is done"
    for resource in ("jobs", "pods"):
        for namespace in queued:
            cluster.api.delete_all(resource, namespace)
    wait_until(lambda: not any(of.pods for of in (theirs, mine)), "all pods are gone", every=0.2)

    def used():
        return cluster.api.get("elasticquotas", "quota", hostile).get("status", {}).get("used", {}).get("cpu", "0")

    wait_until(lambda: used() == "0", "nothing is counted for the tenant", detail=used)
    cluster.api.create(job("whole", honest, 8))
    wait_for(mine, bound=8)
