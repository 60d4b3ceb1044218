"""What is written into the status of a queue on the real API server, and what of it is left alone."""

import asyncio

import pytest

from app.actuators.kubernetes import KubernetesActuator
from app.actuators.protocol import ActionFailed
from app.kube.client import KubeClient

FIRST = {
    "deserved": {"cpu": "4", "nvidia.com/gpu": "1"},
    "allocated": {"cpu": "2", "nvidia.com/gpu": "1"},
    "used": {"cpu": "1"},
    "preempting": {"cpu": "1"},
    "conditions": [
        {
            "type": "NotEnforced",
            "status": "True",
            "reason": "FieldNotUsed",
            "message": "spec.parent",
            "lastTransitionTime": "2025-01-01T00:00:00Z",
        }
    ],
}
THEN = {"deserved": {"cpu": "4"}, "allocated": {"cpu": "2"}, "used": {"cpu": "2"}, "preempting": {}, "conditions": []}


@pytest.fixture
def write(kubeconfig):
    """Writes a status, and waits for it."""

    def run(name, status):
        async def scenario():
            client = await KubeClient.connect(kubeconfig)
            try:
                await KubernetesActuator(client).write_queue_status(name, status)
            finally:
                await client.close()

        asyncio.run(scenario())

    return run


def test_a_status_is_written_where_there_was_none(cluster, write):
    cluster.queue("q")
    write("q", FIRST)
    assert cluster.api.get("queues", "q")["status"] == FIRST


def test_what_others_write_stays_and_what_is_no_longer_used_goes(cluster, write):
    cluster.queue("q")
    others = {"state": "Closed", "running": 3}
    cluster.api.patch("queues", "q/status", {"status": others | {"allocated": {"example.com/theirs": "1"}}})
    write("q", FIRST)
    assert cluster.api.get("queues", "q")["status"] == others | FIRST
    write("q", THEN)
    assert cluster.api.get("queues", "q")["status"] == others | THEN


def test_a_queue_that_is_gone_is_no_error(cluster, write):
    write("nobody", FIRST)


def test_without_the_api_server_the_failure_is_said(cluster, write, proxy):
    proxy.cut()
    with pytest.raises(ActionFailed, match="cannot be reached"):
        write("q", FIRST)
