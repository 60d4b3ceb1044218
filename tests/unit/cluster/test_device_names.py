"""One name for each class, whatever its devices are called."""

from dataclasses import replace

import pytest

from policy.objects.device import DeviceClass, as_in_pods
from policy.objects.queue import Queue
from policy.quota.elastic_quota import elastic_quota
from policy.stepwise import at_once
from tests.unit.given import quota
from tests.unit.given_devices import (
    FULL,
    GPU,
    IMPLICIT_GPU,
    PLAIN,
    answer,
    claim,
    pod,
    used,
    with_devices,
)


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


def test_nothing_is_kept_of_quotas_and_queues_that_are_gone():
    cluster = with_devices(quota(most={IMPLICIT_GPU: 1}))
    cluster.upsert_queue(Queue("q", capability={IMPLICIT_GPU: 1}))
    cluster.delete_queue("q")
    cluster.delete_quota("a", "quota")
    assert (cluster.device_names.of_quotas, cluster.device_names.of_queues) == ({}, {})


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
