"""On which way the API server is asked, and what of the environment matters for that."""

import asyncio

import pytest

from app.kube.client import KubeClient
from tests.unit.app.given import kubeconfig

LIST, WRITE = "/api/v1/pods?limit=1", "/api/v1/namespaces/a/pods/p/status"
BEHIND_A_PROXY = "http://cluster.example"


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What a server, or a proxy, is asked for by a list and a write, and with which credentials.

    Of the cluster in the kubeconfig, and of the environment, ``{}`` is where it listens.
    """
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    def run(cluster, **environment):
        requests = []

        async def answer(reader, writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in head[1:] if line)
            await reader.readexactly(int(headers.get("Content-Length", 0)))
            requests.append((head[0].split(" ")[1], headers["Authorization"]))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            await writer.drain()
            writer.close()

        async def scenario():
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            for name, value in environment.items():
                monkeypatch.setenv(name, value.format(address))
            said = {key: value.format(address) for key, value in cluster.items()}
            file = tmp_path / "kubeconfig"
            file.write_text(kubeconfig(**said, token="secret"))
            client = await KubeClient.connect(file)
            try:
                async with client.get("/api/v1/pods", {"limit": "1"}, read_timeout=10) as response:
                    await response.read()
                await client.send("PATCH", WRITE, {}, "application/merge-patch+json", timeout=10)
            finally:
                await client.close()
                server.close()

        asyncio.run(scenario())
        assert {credentials for _, credentials in requests} == {"Bearer secret"}
        return [target for target, _ in requests]

    return run


def test_what_a_netrc_says_of_the_host_is_not_in_the_way(asked, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password else\n")
    assert asked({"server": "{}"}, NETRC=str(netrc)) == [LIST, WRITE]


@pytest.mark.parametrize(
    ("cluster", "environment"),
    [({"proxy-url": "{}"}, {}), ({}, {"HTTP_PROXY": "{}"}), ({"proxy-url": "{}"}, {"HTTP_PROXY": "http://unused"})],
    ids=["of the kubeconfig", "of the environment", "of both"],
)
def test_lists_and_writes_go_through_the_proxy(asked, cluster, environment):
    through = [BEHIND_A_PROXY + path for path in (LIST, WRITE)]
    assert asked({"server": BEHIND_A_PROXY} | cluster, **environment) == through


def test_what_the_environment_excepts_does_not_go_through_the_proxy(asked):
    assert asked({"server": "{}"}, HTTP_PROXY="http://127.0.0.1:1", NO_PROXY="127.0.0.1") == [LIST, WRITE]
