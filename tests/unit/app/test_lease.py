"""Something between us and the API server that answers in its place: the lead is lost by it, and nothing else."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from kubernetes.aio.client import Configuration
from structlog.testing import capture_logs

from app.kube.client import KubeClient
from app.kube.lease import Lease
from app.settings import LeaderSettings

NAMESPACE_MISSING = 'namespaces "nowhere" not found'
LEASE_MISSING = 'leases.coordination.k8s.io "quotaward" not found'
FORBIDDEN = (
    'leases.coordination.k8s.io "quotaward" is forbidden: User "system:serviceaccount:x:y" cannot get resource '
    '"leases" in API group "coordination.k8s.io" in the namespace "nowhere"'
)
ENDING = (
    'leases.coordination.k8s.io "quotaward" is forbidden: unable to create new content in namespace nowhere because it '
    "is being terminated"
)
NO_RIGHT = (
    "no right to Lease nowhere/quotaward; apply the Role quotaward and its binding in namespace nowhere: 403 "
    + FORBIDDEN
)


class Refusing:
    """An API server that answers a GET so, and what follows it so: each a status and its message."""

    def __init__(self, *answers):
        self.answers = answers

    async def answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        status, message = self.answers[0] if head.startswith(b"GET") else self.answers[-1]
        body = json.dumps({"kind": "Status", "code": status, "message": message, "details": {"name": "x" * 5000}})
        writer.write(f"HTTP/1.1 {status} No\r\nAudit-Id: 1\r\nConnection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()


class Proxy:
    """Answers with ``nonsense``; where there is none, keeps a Lease as an API server does."""

    def __init__(self):
        self.nonsense = None
        self._lease = b'{"metadata": {"name": "quotaward"}}'

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        _, has_body, rest = head.partition("content-length: ")
        if has_body:
            body = await reader.readexactly(int(rest.split("\r\n")[0]))
            assert json.loads(body)
            self._lease = body
        body = self._lease if self.nonsense is None else self.nonsense
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()


@pytest.mark.parametrize("nonsense", [b"<html>", b"", b"null", b"[]", b"\xff", b'{"spec": 5}'], ids=repr)
def test_an_answer_that_is_no_lease_does_not_end_the_process(nonsense):
    async def scenario():
        proxy, configuration = Proxy(), Configuration()
        server = await asyncio.start_server(proxy.answer, "127.0.0.1", 0)
        configuration.host = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = KubeClient(configuration)
        lease = Lease(client, LeaderSettings.model_construct(lease_duration=0.3))
        leading = asyncio.create_task(lease.lead(asyncio.Event().wait))

        async def until(leads):
            async with asyncio.timeout(5):
                while lease.leads is not leads:
                    assert not leading.done(), leading.exception()
                    await asyncio.sleep(0.01)

        await until(leads=True)
        proxy.nonsense = nonsense
        await until(leads=False)
        proxy.nonsense = None
        await until(leads=True)
        leading.cancel()
        await asyncio.wait([leading])
        await client.close()
        server.close()

    asyncio.run(scenario())


@asynccontextmanager
async def asking(server, **settings):
    """A Lease that is kept on this server."""
    configuration = Configuration()
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    configuration.host = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    client = KubeClient(configuration)
    try:
        yield Lease(client, LeaderSettings(namespace="nowhere", **settings))
    finally:
        await client.close()
        listening.close()


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        (
            [(404, LEASE_MISSING), (404, NAMESPACE_MISSING)],
            "namespace nowhere does not exist; create it or set leader.namespace",
        ),
        ([(403, FORBIDDEN)], NO_RIGHT),
        (
            [(404, LEASE_MISSING), (403, ENDING)],
            "namespace nowhere is being deleted; create it again or set leader.namespace",
        ),
        (
            [(401, "Unauthorized")],
            "the API server does not take our credentials: look at the token or kubeconfig: 401 Unauthorized",
        ),
    ],
    ids=["no namespace", "no right", "namespace is ending", "no credentials"],
)
def test_what_is_missing_for_the_lease_is_said_once_and_tried_ever_more_seldom(answers, complaint):
    async def scenario():
        pauses = []
        async with asking(Refusing(*answers), lease_duration=16) as lease:
            with capture_logs() as logged:
                for _ in range(7):
                    assert not await lease.hold()
                    pauses.append(lease.pause)
        return pauses, logged

    pauses, logged = asyncio.run(scenario())
    assert pauses == [4, 8, 16, 30, 30, 30, 30]
    assert [(line["event"], line["error"]) for line in logged] == [("lease cannot be kept", complaint)]


def test_what_passes_by_itself_is_tried_again_soon_and_said_once():
    async def scenario():
        async with asking(Refusing((500, "etcdserver: leader changed")), lease_duration=16) as lease:
            with capture_logs() as logged:
                for _ in range(3):
                    assert not await lease.hold()
                    assert lease.pause == 2
        return logged

    [line] = asyncio.run(scenario())
    assert line["error"] == "the API server answered 500: etcdserver: leader changed"


def test_a_lease_that_can_be_kept_again_is_tried_at_the_usual_pace():
    async def scenario():
        missing = Refusing((404, LEASE_MISSING), (404, NAMESPACE_MISSING))
        async with asking(missing, lease_duration=16) as lease, asking(Proxy(), lease_duration=16) as other:
            assert not await lease.hold()
            lease._api = other._api
            with capture_logs() as logged:
                assert await lease.hold()
        return lease.pause, [line["event"] for line in logged]

    assert asyncio.run(scenario()) == (2, ["lease can be kept again"])
