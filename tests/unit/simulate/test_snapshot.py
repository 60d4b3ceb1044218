"""Copies of clusters are made in steps, whatever there is very much of: tenants choose that."""

import pytest

from policy.cluster import pod_states
from policy.cluster.budgets import Budget
from policy.cluster.quota_manager import Limit
from policy.objects.batch_job import BatchJob
from policy.objects.device import DeviceClaim, DeviceClass, DeviceRequests
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.pod_template import PriorityClass
from policy.objects.queue import Queue
from policy.objects.reservation import PodName, Reservation
from policy.simulate import simulation
from policy.simulate.simulation import AT_A_TIME, Simulation
from policy.simulate.snapshot import SLICE, copy_steps, snapshot
from policy.stepwise import at_once
from tests.unit.given import pod
from tests.unit.given_jobs import TERMS, gang, seen, sized, waiting
from tests.unit.given_queues import divided, pods, queue, world

MANY = 10 * SLICE


def claims(cluster, name):
    cluster.devices.upsert_claim(DeviceClaim("a", name, DeviceRequests()))


def granted(cluster, name):
    cluster.upsert_pod(pod(name, request={"cpu": 1}), 0)
    cluster.grant(cluster.pods[name], 0)


def reservations(cluster, name):
    cluster.upsert_pod(pod(name, unschedulable=None), 0)
    cluster.upsert_reservation(Reservation(name, PodName("a", name, name), "n1", (), 0.0))


KINDS = {
    "batch jobs": lambda cluster, name: cluster.upsert_batch_job(BatchJob("a", name, name)),
    "budgets": lambda cluster, name: cluster.upsert_budget(Budget("a", name, None, 1)),
    "claims": claims,
    "claim templates": lambda cluster, name: cluster.devices.upsert_template("a", name, DeviceRequests()),
    "device classes": lambda cluster, name: cluster.devices.upsert_class(name, DeviceClass()),
    "granted": granted,
    "groups": lambda cluster, name: cluster.upsert_group(Group("a", f"podgroups.scheduling.x-k8s.io/{name}", 1)),
    "limits": lambda cluster, name: cluster.upsert_limit(name, Limit("uid", {}, ours=True)),
    "limit ranges": lambda cluster, name: cluster.pod_defaults.upsert_limit_range("a", name, {"cpu": 1}),
    "other jobs": lambda cluster, name: cluster.batch_jobs.others.upsert(BatchJob("a", name, name)),
    "priority classes": lambda cluster, name: cluster.pod_defaults.upsert_priority_class(name, PriorityClass(1)),
    "queues": lambda cluster, name: cluster.upsert_queue(Queue(name)),
    "reservations": reservations,
    "runtime classes": lambda cluster, name: cluster.pod_defaults.upsert_runtime_class(name, {"cpu": 1}),
    "weights": lambda cluster, name: cluster.upsert_weight("a", name, 2),
}


def steps_of(cluster):
    """How many steps a copy takes."""
    return sum(1 for _ in copy_steps(snapshot(cluster, 1.0)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_pauses_however_many_objects_there_are_of_a_kind(kind):
    cluster = seen(sized())
    few = steps_of(cluster)
    for number in range(MANY):
        KINDS[kind](cluster, f"x{number}")
    assert steps_of(cluster) >= few + MANY // SLICE


def test_pods_that_are_terminating_leave_a_copy_in_steps():
    there = (pod(f"p{number}", node="n1", terminating=True) for number in range(MANY))
    copy = at_once(copy_steps(snapshot(seen(sized(cpu=2 * MANY), *there), 1.0)))
    before, longest = len(copy.pods), 0
    for _ in Simulation(copy, TERMS, 1.0).come_to_rest_steps():
        longest, before = max(longest, before - len(copy.pods)), len(copy.pods)
    assert (longest, before) == (1, 0)


def test_very_many_pods_count_where_they_did_in_steps():
    running = pods("a", MANY, node="n1")
    cluster = world(queue("from"), queue("to", most={"cpu": 0}), "a:from", *running, cpu=2 * MANY)
    cluster.begin()
    divided(cluster).upsert_namespace(Namespace("a", "to"))
    assert len(cluster.queue_changes.moving.counted) == MANY
    copies, most, before = [], 0, 0
    for _ in copy_steps(snapshot(cluster, 1.0), copies):
        now = len(copies[0].queue_changes.moving.counted)
        most, before = max(most, now - before), now
    assert (most, copies[0].queue_changes.moving.counted) == (1, cluster.queue_changes.moving.counted)
    there = copies[0].ledger.queues.accounts["from"].taken
    assert there["cpu"] == cluster.ledger.queues.accounts["from"].taken["cpu"] == MANY * 1000


def test_very_many_that_a_copy_enters_later_are_entered_in_steps(monkeypatch):
    monkeypatch.setattr(pod_states, "AT_ONCE", 0)
    assert steps_of(seen(sized(), *gang(*(f"w{number}" for number in range(MANY))))) > MANY


def test_a_simulation_pauses_while_it_looks_in_which_order_very_many_wait(monkeypatch):
    there = (waiting(f"w{number}", cpu=9) for number in range(3 * AT_A_TIME))
    copy, looked_at = at_once(copy_steps(snapshot(seen(sized()), 1.0))), []
    for each in there:
        copy.upsert_pod(each, 0)
    turn = simulation.turn
    monkeypatch.setattr(simulation, "turn", lambda each: looked_at.append(each) or turn(each))
    longest, before = 0, 0
    for _ in Simulation(copy, TERMS, 1.0).settle_steps():
        longest, before = max(longest, len(looked_at) - before), len(looked_at)
    assert 0 < longest <= 2 * AT_A_TIME < len(looked_at)
