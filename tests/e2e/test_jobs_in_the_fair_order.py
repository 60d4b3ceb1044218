"""Jobs that wait as a whole are started in the fair order at every prefix, by the tables of the pods at gates."""

import random

import pytest

from tests.chaos.recorder import Recorder
from tests.controlplane.objects import job
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.short_jobs import Turns, kept
from tests.e2e.test_gates import TABLES, is_fair
from tests.e2e.test_queued_jobs_policy import controllers, in_force, installed, labelled  # noqa: F401 - fixtures


@pytest.fixture
def quotaward(cluster):
    """Starts one Job after the other, so that the order is exact."""
    with Quotaward(cluster.control_plane, "--jobs.concurrency", "1") as started:
        yield started


@pytest.fixture
def scheduler(cluster, quotaward):
    """Asks this Quotaward."""
    with Scheduler(cluster.control_plane, extender(quotaward.url)) as started:
        yield started


@pytest.fixture
def several(cluster, installed):  # noqa: F811
    """Makes namespaces whose Jobs wait as a whole."""
    made = []

    def make(queue):
        made.append(cluster.namespace(queue, queue=queue))
        return in_force(cluster, made[-1])

    yield make
    for namespace in made:
        labelled(cluster, namespace, None)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("table", TABLES)
def test_jobs_are_started_in_the_fair_order_at_every_prefix(cluster, several, quotaward, scheduler, watch, table):
    tenants, jobs = {}, []  # namespace: queue, what that deserves, weight, to be started
    for queue, (weight, deserved, namespaces) in TABLES[table].items():
        cluster.queue(queue, weight=weight)
        for its_weight, created, to_be_started in namespaces:
            namespace = several(queue)
            cluster.weigh(namespace, its_weight)
            tenants[namespace] = queue, deserved, its_weight, to_be_started
            jobs += [job(f"job-{number:02}", namespace) for number in range(created)]
    random.Random(table).shuffle(jobs)
    watches = {namespace: watch(namespace) for namespace in tenants}
    expected = {namespace: tenant[-1] for namespace, tenant in tenants.items()}
    with Recorder(cluster.api, ("jobs",), kept) as recorder:
        for each in jobs:
            cluster.api.create(each)
        wait_until(lambda: quotaward.metric("quotaward_pending_jobs") == len(jobs), "all wait")
        cluster.node(cpu=16)
        wait_until(
            lambda: {namespace: each.bound for namespace, each in watches.items()} == expected,
            "what is bound is what the table says",
            detail=lambda: str({namespace: each.bound for namespace, each in watches.items()}),
        )
    sequence = [each.object["metadata"]["namespace"] for each in Turns(recorder).starts()]
    assert is_fair(sequence, tenants), sequence
