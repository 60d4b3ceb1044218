"""Devices by DRA: one key for each class whatever it is called, and each claim counts once."""

from dataclasses import replace

import pytest

from policy.objects.device import MOST_CLAIMS, DeviceClass, as_in_pods
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.queue import Queue
from policy.objects.queued_job import PodSet, QueuedJob
from policy.quota.elastic_quota import MAX, elastic_quota
from policy.stepwise import at_once
from tests.unit.app.lines import lines_once
from tests.unit.cluster.test_queued_jobs import its_pod, started
from tests.unit.given import quota
from tests.unit.given_devices import (
    GPU,
    IMPLICIT_GPU,
    PLAIN,
    asking,
    claim,
    of_template,
    pod,
    see,
    used,
    with_devices,
)

FULL = f"{MAX.text}: {GPU}"


def answer(cluster, asked):
    refused = cluster.admit(asked, now=0)
    return refused.message if refused else ""


# What things are called


@pytest.mark.parametrize(
    ("written", "in_pods"),
    [
        ("requests.nvidia.com/gpu", GPU),
        (GPU, GPU),
        ("gpu.deviceclass.resource.k8s.io/devices", IMPLICIT_GPU),
        ("requests.deviceclass.resource.kubernetes.io/gpu", IMPLICIT_GPU),
        ("deviceclass/gpu", IMPLICIT_GPU),
        ("cpu", "cpu"),
        ("requests.cpu", "requests.cpu"),
    ],
)
def test_names_of_resource_quotas_and_of_peers_are_those_of_pods(written, in_pods):
    assert as_in_pods(written) == in_pods


@pytest.mark.parametrize("name", [GPU, IMPLICIT_GPU, f"requests.{GPU}", "deviceclass/gpu"])
@pytest.mark.parametrize("asked", [GPU, IMPLICIT_GPU])
def test_a_quota_by_any_name_bounds_pods_that_use_any_other(name, asked):
    cluster = with_devices(quota(most={name: 2}), pod("p", request={GPU: 1}, node="n"))
    assert answer(cluster, pod("q", request={asked: 2})) == FULL
    assert answer(cluster, pod("q", request={asked: 1})) == ""


def test_of_two_names_of_one_class_the_smaller_amount_bounds():
    cluster = with_devices(quota(least={GPU: 2, IMPLICIT_GPU: 1}, most={GPU: 2, IMPLICIT_GPU: 3}))
    found = cluster.ledger.account("a").quota
    assert (found.min, found.max) == ({GPU: 1}, {GPU: 2})


def test_both_names_in_one_pod_add_up():
    cluster = with_devices(pod("p", request={GPU: 1, IMPLICIT_GPU: 2}, node="n"))
    assert used(cluster) == 3


def test_a_class_without_an_extended_name_counts_by_its_implicit_name():
    cluster = with_devices(claim("c", plain=2), pod("p", "a", "c", request={PLAIN: 1}, node="n"))
    assert used(cluster, PLAIN) == 3


def test_a_queue_is_bounded_by_any_name():
    cluster = with_devices()
    cluster.upsert_queue(Queue("q", capability={"deviceclass/gpu": 1}))
    at_once(cluster.divide_steps())
    assert cluster.ledger.queues.account("q").queue.capability == {GPU: 1}
    refused = [cluster.check(pod(f"p{n}", request={IMPLICIT_GPU: n}, queue="q")) for n in (1, 2)]
    assert [GPU in each.resources for each in refused] == [False, True]


def test_what_a_class_is_called_may_change_under_pods_quotas_and_queues():
    cluster = with_devices(quota(most={IMPLICIT_GPU: 2}), pod("p", request={IMPLICIT_GPU: 1}, node="n"))
    cluster.upsert_queue(Queue("q", capability={IMPLICIT_GPU: 1}))
    for name, key in (("example.com/gpu", "example.com/gpu"), ("", IMPLICIT_GPU)):
        cluster.devices.upsert_class("gpu", DeviceClass(name))
        at_once(cluster.devices.renew_steps())
        assert used(cluster, key) == 1
        assert cluster.ledger.account("a").quota.max == {key: 2}
        assert cluster.ledger.queues.account("q").queue.capability == {key: 1}
    cluster.devices.delete_class("gpu")
    assert used(cluster, IMPLICIT_GPU) == 1


# Claims


def test_a_claim_of_a_template_counts_with_its_pod_before_and_after_it_is_made():
    cluster = with_devices(quota(most={GPU: 3}))
    cluster.devices.upsert_template("a", "two", asking(gpu=2))
    assert answer(cluster, pod("p", "a", of_template("two"))) == ""
    assert used(cluster) == 2
    see(cluster, claim("p-gpu", gpu=2), pod("p", "a", of_template("two", "p-gpu"), node="n"))
    assert used(cluster) == 2
    see(cluster, claim("q-gpu", gpu=2))
    assert answer(cluster, pod("q", "a", of_template("two", "q-gpu"))) == FULL
    cluster.delete_pod("p")
    assert used(cluster) == 0
    assert answer(cluster, pod("q", "a", of_template("two", "q-gpu"))) == ""


def test_a_template_that_comes_late_counts_for_pods_that_wait_for_it():
    cluster = with_devices(pod("p", "a", of_template("two"), node="n"))
    assert used(cluster) == 0
    cluster.devices.upsert_template("a", "two", asking(gpu=2))
    at_once(cluster.devices.renew_steps())
    assert used(cluster) == 2


def test_a_shared_claim_counts_once_and_until_the_last_pod_has_gone():
    cluster = with_devices(quota(most={GPU: 2}), claim("shared", gpu=2))
    for uid in "pqr":
        assert answer(cluster, pod(uid, "a", "shared")) == ""
    see(cluster, *(pod(uid, "a", "shared", node="n") for uid in "pqr"))
    for uid in "pqr":
        assert used(cluster) == 2
        cluster.delete_pod(uid)
    assert used(cluster) == 0


def test_a_claim_that_nobody_holds_counts_for_each_pod_that_asks():
    cluster = with_devices(quota(most={GPU: 1}), claim("shared", gpu=2))
    see(cluster, pod("p", "a", "shared"), pod("q", "a", "shared"))
    assert [answer(cluster, pod(uid, "a", "shared")) for uid in "pq"] == [FULL, FULL]
    assert cluster.check(cluster.pods["q"]).message == FULL


def test_of_two_pods_that_wait_with_a_claim_only_one_demands_it():
    cluster = with_devices(claim("shared", gpu=2), pod("p", "a", "shared"), pod("q", "a", "shared"))
    assert sorted(cluster.pods[uid].request.get(GPU, 0) for uid in "pq") == [0, 2]


def test_what_is_allocated_counts_instead_of_what_was_asked():
    cluster = with_devices(claim("c", gpu=4), pod("p", "a", "c", node="n"))
    see(cluster, claim("c", gpu=4, has={"gpu": 1, "plain": 2}))
    assert (used(cluster), used(cluster, PLAIN)) == (1, 2)
    see(cluster, claim("c", gpu=4))
    assert (used(cluster), used(cluster, PLAIN)) == (4, 0)


def two_queues(big=8, small=0):
    """Queues with so many devices, and a pod in ``big`` that holds a claim for eight of them."""
    cluster = with_devices(claim("c", gpu=8))
    cluster.upsert_node(Node("n", {"cpu": 9000, "pods": 9}))
    for name, capability in (("big", big), ("small", small)):
        cluster.upsert_queue(Queue(name, capability={GPU: capability}))
    at_once(cluster.divide_steps())
    see(cluster, pod("h", "a", "c", queue="big", node="n"))
    return cluster


def used_in(cluster, *queues):
    return [cluster.ledger.queues.account(queue).taken.get(GPU, 0) for queue in queues]


@pytest.mark.parametrize("uid", ["a", "z"])
def test_a_claim_that_another_queue_holds_needs_room_in_the_queue_of_who_asks(uid):
    cluster = two_queues()
    assert GPU in cluster.admit(pod(uid, "a", "c", queue="small"), now=0).resources
    assert answer(cluster, pod(uid, "a", "c", queue="big")) == ""
    assert used_in(cluster, "big", "small") == [8, 0]


@pytest.mark.parametrize("uid", ["a", "z"])
def test_a_claim_counts_in_the_queue_of_its_first_holder_until_that_has_gone(uid):
    cluster = two_queues(small=8)
    see(cluster, pod(uid, "a", "c", queue="small"))
    for _ in range(2):
        assert answer(cluster, pod(uid, "a", "c", queue="small")) == ""
        assert used_in(cluster, "big", "small") == [8, 0]
    see(cluster, pod(uid, "a", "c", of_template("t"), queue="small", node="n"), claim("c", has={"gpu": 8}))
    see(cluster, pod("h", "a", "c", of_template("t"), queue="big", node="n"))
    assert used_in(cluster, "big", "small") == [8, 0]
    cluster.delete_pod("h")
    assert used_in(cluster, "big", "small") == [0, 8]


def test_a_pod_with_many_claims_charges_each_pod_that_shares_them_once(monkeypatch):
    names = [f"c{number}" for number in range(50)]
    cluster = with_devices(*(claim(name, gpu=1) for name in names), *(pod(uid, "a", *names) for uid in "qr"))
    charged = []
    charge = cluster.devices._charge_again
    monkeypatch.setattr(cluster.devices, "_charge_again", lambda uid: (charged.append(uid), charge(uid)))
    for uid in "pqr":
        assert answer(cluster, pod(uid, "a", *names)) == ""
    cluster.withdraw("p")
    cluster.delete_pod("q")
    assert used(cluster) == 50
    assert len(charged) < 30, "the work grows with the pods that share claims, not with their number of claims"


def test_a_pod_that_shares_as_many_claims_as_are_counted_costs_few_steps():
    names = [f"c{number}" for number in range(MOST_CLAIMS)]
    cluster = with_devices(*(claim(name, gpu=1) for name in names))
    for number, name in enumerate(names):
        others = (f"{name}-{each}" for each in range(MOST_CLAIMS - 1))
        see(cluster, pod(f"payer-{number}", "a", name, *others, node="n1"))
    for number in range(MOST_CLAIMS):  # these come to share everything
        sharing = pod(f"p{number}", "a", *names, node="n1")
        assert lines_once(cluster.upsert_pod, sharing, 0) < 9_000
    assert used(cluster) == MOST_CLAIMS
    assert lines_once(cluster.delete_pod, "p0") < 9_000


def test_a_grant_that_ends_gives_the_claim_to_another_holder():
    cluster = with_devices(claim("shared", gpu=2))
    see(cluster, pod("p", "a", "shared"), pod("q", "a", "shared"))
    cluster.admit(pod("p", "a", "shared"), now=0)
    cluster.admit(pod("q", "a", "shared"), now=0)
    cluster.withdraw("p")
    assert used(cluster) == 2
    cluster.withdraw("q")
    assert used(cluster) == 0


def test_a_pod_that_was_granted_before_it_was_seen_counts_with_its_claim():
    cluster = with_devices(claim("c", gpu=2))
    cluster.admit(pod("p", "a", "c"), now=0)
    assert used(cluster) == 2
    see(cluster, claim("c", gpu=3))
    assert used(cluster) == 3
    cluster.withdraw("p")
    assert (used(cluster), cluster.devices._users) == (0, {})


def test_a_pod_that_was_granted_before_its_claims_were_known_gives_them_back():
    cluster = with_devices(claim("c", gpu=2))
    cluster.admit(replace(pod("p"), needs=None), now=0)
    see(cluster, pod("p", "a", "c"))
    assert used(cluster) == 2
    cluster.withdraw("p")
    assert (used(cluster), cluster.devices._holders) == (0, {})


def test_a_pod_that_has_ended_holds_no_claim():
    cluster = with_devices(claim("c", gpu=2), pod("p", "a", "c", node="n"))
    see(cluster, pod("p", "a", "c", node="n", finished=True))
    assert used(cluster) == 0


def test_nothing_is_kept_of_pods_and_claims_that_are_gone():
    cluster = with_devices(claim("c", gpu=2), pod("p", "a", "c", of_template("t")), pod("q", "a", "c", node="n"))
    for uid in "pq":
        cluster.delete_pod(uid)
    cluster.devices.delete_claim("a", "c")
    devices = cluster.devices
    kept = (devices.claims, devices._of_pods, devices._users, devices._holders, devices._payers, devices._of_templates)
    assert not any(kept)


def test_nothing_is_kept_of_quotas_and_queues_that_are_gone():
    cluster = with_devices(quota(most={IMPLICIT_GPU: 1}))
    cluster.upsert_queue(Queue("q", capability={IMPLICIT_GPU: 1}))
    cluster.delete_queue("q")
    cluster.delete_quota("a", "quota")
    assert (cluster.devices._quotas, cluster.devices._queues) == ({}, {})


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        (("known",), ""),
        (("missing",), "its resource claims are not seen yet"),
        ((of_template("t"),), "its resource claims are not seen yet"),
    ],
)
def test_it_is_known_what_a_pod_takes_once_its_claims_are_seen(claims, why):
    cluster = with_devices(*[claim("known", gpu=1)] * (claims == ("known",)))
    asked = pod("p", "a", *claims)
    assert cluster.devices.unknown(asked) == why
    excess = replace(asked, needs=replace(asked.needs, excess=True))
    assert "more resource claims" in cluster.devices.unknown(excess)


# Jobs that wait as a whole


def train(*claims, pods=3):
    """A Job whose pods use these claims."""
    return QueuedJob("a", "train", "uid-train", (PodSet(pod("train", "a", *claims), pods),), pods, suspended=True)


def waiting(cluster, *jobs):
    cluster.upsert_namespace(Namespace("a", gated=True, queues_jobs=True))
    for each in jobs:
        cluster.queued_jobs.upsert(each, now=0)
    return cluster.pods["job/uid-train"].request.get(GPU, 0)


def test_a_job_demands_a_claim_of_each_template_for_each_pod_and_shared_ones_once():
    cluster = with_devices(claim("shared", gpu=4))
    cluster.devices.upsert_template("a", "two", asking(gpu=2))
    assert waiting(cluster, train(of_template("two"), "shared")) == 3 * 2 + 4
    cluster.devices.upsert_template("a", "two", asking(gpu=1))
    at_once(cluster.queued_jobs.renew_steps())
    assert cluster.pods["job/uid-train"].request[GPU] == 3 * 1 + 4


def test_a_job_demands_a_claim_that_comes_changes_and_goes_while_it_waits():
    cluster = with_devices()
    assert waiting(cluster, train("late")) == 0
    demanded = []
    for change in (claim("late", gpu=4), claim("late", gpu=5), None):
        if change is not None:
            cluster.devices.upsert_claim(change)
        else:
            cluster.devices.delete_claim("a", "late")
        assert cluster.queued_jobs.is_outdated(cluster.pods["job/uid-train"]), "it may not start yet"
        at_once(cluster.queued_jobs.renew_steps())
        demanded.append(cluster.pods["job/uid-train"].request.get(GPU, 0))
    assert demanded == [4, 5, 0]


def test_jobs_are_computed_anew_only_for_claims_that_they_name_now():
    cluster = with_devices()
    waiting(cluster, train("before"))
    cluster.queued_jobs.upsert(train("now"), now=0)
    cluster.devices.upsert_claim(claim("before", gpu=4))
    assert not cluster.queued_jobs.is_outdated(cluster.pods["job/uid-train"])
    cluster.queued_jobs.delete(train().key)
    assert not cluster.queued_jobs._naming


def test_pod_sets_of_one_job_share_a_claim():
    cluster = with_devices(claim("shared", gpu=4))
    first = train("shared")
    assert waiting(cluster, replace(first, pod_sets=first.pod_sets * 2)) == 4


def test_a_started_job_keeps_what_its_pods_share_until_the_first_of_them_has_come():
    cluster = with_devices(quota(most={GPU: 4}), claim("shared", gpu=4))
    cluster.upsert_node(Node("n", {"cpu": 9000, "pods": 9}))
    job = train("shared")
    waiting(cluster, job)
    assert started(cluster) == ["train"]
    assert used(cluster) == 4
    for number in range(3):
        see(cluster, replace(its_pod(job, number), needs=job.pod_sets[0].pod.needs))
        assert used(cluster) == 4


def test_a_quota_whose_resources_are_renamed_keeps_all_else():
    cluster = with_devices()
    quota = elastic_quota("a", "quota", 0.0, {}, {IMPLICIT_GPU: 2}, 60)
    cluster.upsert_quota(replace(quota, min_run_time=30, errors=("spec",)))
    kept = cluster.ledger.account("a").quota
    assert kept is not None
    assert kept.max == {GPU: 2}, "it is renamed"
    assert kept.written == ({}, {IMPLICIT_GPU: 2})
    assert replace(kept, written=None) == replace(quota, max={GPU: 2}, min_run_time=30, errors=("spec",))


def test_a_quota_that_is_put_back_has_the_names_of_its_object_and_follows_its_class():
    cluster = with_devices(quota(least={GPU: 1}, most={"deviceclass/gpu": 2}))
    cluster.upsert_queue(Queue("q", capability={"deviceclass/gpu": 3}))
    [put_back], of_queue = cluster.quotas["a"].values(), cluster.queues["q"]
    cluster.delete_quota("a", put_back.name)
    cluster.delete_queue("q")
    cluster.upsert_quota(put_back)
    cluster.upsert_queue(of_queue)
    cluster.devices.upsert_class("gpu", DeviceClass("example.com/gpu"))
    assert cluster.ledger.account("a").quota.max == {"example.com/gpu": 2}
    assert cluster.queues["q"].capability == {"example.com/gpu": 3}
