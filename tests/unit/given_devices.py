"""Devices in the words of the tests: the class ``gpu`` is ``nvidia.com/gpu``, the class ``plain`` has no such name."""

from dataclasses import replace

from policy.cluster.cluster import Cluster
from policy.objects.device import IMPLICIT, DeviceClaim, DeviceClass, DeviceNeeds, DeviceRequests, PodClaim
from policy.objects.pod import Pod
from policy.quota.elastic_quota import MAX
from policy.stepwise import at_once
from tests.unit.given import cluster_of
from tests.unit.given import pod as plain_pod

GPU = "nvidia.com/gpu"
IMPLICIT_GPU, PLAIN = f"{IMPLICIT}gpu", f"{IMPLICIT}plain"
FULL = f"{MAX.text}: {GPU}"


def asking(**counts: int) -> DeviceRequests:
    """Devices of classes."""
    return DeviceRequests(counts)


def claim(name: str, namespace: str = "a", *, has: dict | None = None, whole=(), **counts: int) -> DeviceClaim:
    """A claim that asks for these, and has the others if it is allocated."""
    return DeviceClaim(namespace, name, DeviceRequests(counts, frozenset(whole), plain=not whole), has)


def of_template(template: str, made: str = "") -> PodClaim:
    return PodClaim(made, template)


def pod(uid: str, namespace: str = "a", *claims: PodClaim | str, request: dict | None = None, **rest) -> Pod:
    """A pod with these claims, those that are only named being shared, and this request beside them."""
    made = plain_pod(uid, namespace, request=request or {"cpu": 1}, **rest)
    used = tuple(PodClaim(each) if isinstance(each, str) else each for each in claims)
    return replace(made, needs=DeviceNeeds(made.request, used))


def with_devices(*objects, **options) -> Cluster:
    """A cluster that knows both classes."""
    cluster = cluster_of(**options)
    cluster.devices.upsert_class("gpu", DeviceClass(GPU))
    cluster.devices.upsert_class("plain", DeviceClass())
    see(cluster, *objects)
    return cluster


def see(cluster: Cluster, *objects) -> None:
    for each in objects:
        if isinstance(each, DeviceClaim):
            cluster.devices.upsert_claim(each)
        elif isinstance(each, Pod):
            cluster.upsert_pod(each, now=0)
        else:
            cluster.upsert_quota(each)
    at_once(cluster.devices.renew_steps())


def used(cluster: Cluster, resource: str = GPU, namespace: str = "a") -> int:
    return cluster.ledger.account(namespace).used.get(resource, 0)


def answer(cluster: Cluster, asked: Pod) -> str:
    """What filter would tell the scheduler; empty: the pod is admitted."""
    refused = cluster.admit(asked, now=0)
    return refused.message if refused else ""
