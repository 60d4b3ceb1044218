"""Quotaward may do no more than it does: with any one rule of its role taken away, the API server forbids something."""

import asyncio
import contextlib
from datetime import UTC, datetime

import pytest

from app.actuators.events import Event, Series, Subject
from app.actuators.kubernetes import KubernetesActuator
from app.actuators.protocol import ActionFailed
from app.kube.client import KubeClient
from app.store.kinds import KINDS, QUOTA_KINDS
from policy.cluster.quota_manager import Limit
from policy.objects.pod import Pod
from policy.objects.reservation import PodName, Reservation
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import install_rights

NOBODY = PodName("default", "nobody", "none")
PLAN = Reservation("tests-rights", NOBODY, "nowhere", (), since=0)
SEEN = Limit("none", {}, ours=True)
EVENT = Event(Subject("v1", "Pod", "default", "nobody", "none"), "Tried", "tried")
GOES_ON = Event(EVENT.subject, "Tried", "tried", series=Series("nobody.tried", datetime.now(UTC), 2))


class Recording:
    """A client that notes how each write was answered."""

    def __init__(self, client: KubeClient, answers: set[int]) -> None:
        self._client, self._answers = client, answers

    async def send(self, *arguments, **more):
        status, body = await self._client.send(*arguments, **more)
        self._answers.add(status)
        return status, body


async def everything(client: KubeClient) -> set[int]:
    """What the API server answers to all that Quotaward asks of it, with objects that do not exist."""
    answers: set[int] = set()
    for kind in KINDS:
        async with client.get(kind.path, {"limit": "1"}, read_timeout=10) as response:
            answers.add(response.status)
        watch = {"watch": "true", "timeoutSeconds": "1"}
        async with client.get(kind.path, watch, read_timeout=10) as response:
            answers.add(response.status)
    async with client.get("/api/v1/events", {"limit": "1"}, read_timeout=10) as response:
        answers.add(response.status)
    actuator = KubernetesActuator(Recording(client, answers))
    pod = Pod(namespace=NOBODY.namespace, name=NOBODY.name, uid=NOBODY.uid, request={})
    for action in (
        *(actuator.wake(pod), actuator.count_in(pod, "q"), actuator.nominate(pod, "nowhere"), actuator.evict(NOBODY)),
        *(actuator.reserve(PLAN), actuator.note_progress(PLAN), actuator.unreserve(PLAN.name)),
        *(actuator.write_quota_status("default", "none", {}, kind) for kind in QUOTA_KINDS),
        actuator.write_queue_status("none", {"used": {}}),
        *(actuator.write_limit("none", {}, {}, None), actuator.write_limit("none", {}, {}, SEEN)),
        actuator.remove_limit("none", SEEN),
    ):
        with contextlib.suppress(ActionFailed):  # what is asked for does not exist; whether it may be is what counts
            await action
    for event in (EVENT, GOES_ON):
        actuator.report(event)
    await actuator.finish()
    return answers


@pytest.fixture
def forbidden(cluster, tmp_path):
    """Whether something is forbidden to Quotaward's service account."""
    install_rights(cluster.api)
    file = tmp_path / "kubeconfig"
    file.write_text(cluster.api.kubeconfig(cluster.api.service_account_token("quotaward", "quotaward-system")))

    async def asked():
        client = await KubeClient.connect(file)
        try:
            return 403 in await everything(client)
        finally:
            await client.close()

    return lambda: asyncio.run(asked())


def test_each_rule_is_needed_and_all_are_enough(cluster, forbidden):
    wait_until(lambda: not forbidden(), "nothing is forbidden", every=0.2)
    rules = cluster.api.get("clusterroles", "quotaward")["rules"]
    try:
        for rule in rules:
            for resource in rule["resources"]:
                others = [each for each in rule["resources"] if each != resource]
                kept = [each for each in rules if each is not rule] + ([rule | {"resources": others}] if others else [])
                cluster.api.patch("clusterroles", "quotaward", {"rules": kept})
                wait_until(forbidden, f"without {rule['verbs']} of {resource} something is forbidden", 20, every=0.2)
    finally:
        cluster.api.patch("clusterroles", "quotaward", {"rules": rules})
    wait_until(lambda: not forbidden(), "nothing is forbidden", every=0.2)
