"""Who waits: the first of all, found in small steps, and of what schedulers say no more is kept than need be."""

import pytest

from app.web import waiting
from app.web.waiting import FEW, SHOWN, SLICE, Crowds
from policy.cluster.pod_admission import PodAdmission
from policy.explain import reasons
from policy.objects.pod import turn
from tests.unit.app.given import pod, quota, refused, store_with


def crowded(namespaces, each, order=1):
    """So many pods wait in each of so many namespaces; the later ones first, if order is -1."""
    pods = []
    for number in range(namespaces):
        for index in range(each):
            minute, second = divmod((index * namespaces + number) * order % 3600, 60)
            created = {"creationTimestamp": f"2026-11-27T20:{minute:02}:{second:02}Z"}
            pods.append(refused(pod(f"p{index}", f"n{number}", metadata=created)))
    return store_with(*pods, *(quota(f"n{number}", max={"cpu": 0}) for number in range(namespaces))).cluster


@pytest.fixture
def looked_at(monkeypatch):
    """How often the turn of a pod, or what a rule says of it, was asked for since the list was cleared."""
    asked = []

    def counted(item):
        asked.append(item)
        return turn(item)

    monkeypatch.setattr(waiting, "turn", counted)
    return asked


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("namespaces", "each"), [(600, 2), (2, 600)])
def test_the_first_in_turn_of_many_are_found_in_small_steps(looked_at, namespaces, each, order):
    cluster, crowds, most = crowded(namespaces, each, order), Crowds(), 0
    for number in range(namespaces):
        looked_at.clear()
        for _ in crowds.count_steps(cluster, f"n{number}"):
            most = max(most, len(looked_at))
            looked_at.clear()
        most = max(most, len(looked_at))
    shown = None
    looked_at.clear()
    for result in crowds.waiting(cluster):
        shown = result
        most = max(most, len(looked_at))
        looked_at.clear()
    first = sorted(cluster.pending.values(), key=turn)[:SHOWN]
    assert [(each.namespace, each.name) for each in shown.pods] == [(pod.namespace, pod.name) for pod in first]
    assert shown.total == namespaces * each
    assert most <= SLICE * 11  # to be put among a hundred takes some comparisons


def test_the_rules_are_asked_about_a_few_pods_at_a_time(monkeypatch):
    cluster, crowds, asked = crowded(1, 300), Crowds(), []
    check = PodAdmission.check
    monkeypatch.setattr(PodAdmission, "check", lambda *arguments: asked.append(1) or check(*arguments))
    list(crowds.count_steps(cluster, "n0"))
    for _ in crowds.waiting(cluster):
        assert len(asked) <= FEW
        asked.clear()


def test_what_a_scheduler_says_at_great_length_is_read_and_not_kept():
    said = "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu." + " more" * 10_000
    before = reasons._cached_reason_in.cache_info().currsize
    assert reasons.reason_in(said) == "elastic-quota-max"
    assert reasons._cached_reason_in.cache_info().currsize == before
    assert reasons.reason_in(said[:1000]) == "elastic-quota-max"
    assert reasons._cached_reason_in.cache_info().currsize == before + 1


def test_a_lack_of_devices_is_another_reason_than_room():
    """kube-scheduler calls preemption not helpful then, and Quotaward evicts all the same."""
    said = "0/3 nodes are available: 3 cannot allocate all claims. preemption: 0/3 nodes are available: "
    assert reasons.reason_in(f"{said}3 Preemption is not helpful for scheduling.") == reasons.OTHER
