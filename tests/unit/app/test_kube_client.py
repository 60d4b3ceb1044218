"""On which way the API server is asked, and what of the environment matters for that."""

import asyncio

import pytest

from app.kube.client import CannotConnect, KubeClient
from tests.unit.app.given import kubeconfig

LIST, WRITE = "/api/v1/pods?limit=1", "/api/v1/namespaces/a/pods/p/status"
BEHIND_A_PROXY = "http://cluster.example"


@pytest.fixture
def _no_proxy_of_whoever_runs_this(monkeypatch):
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def asked(tmp_path, monkeypatch, _no_proxy_of_whoever_runs_this):
    """What a server, or a proxy, is asked for by a list and a write, and with which credentials.

    Of the cluster in the kubeconfig, and of the environment, ``{}`` is where it listens.
    """

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


@pytest.fixture
def proxy_of(tmp_path, monkeypatch, _no_proxy_of_whoever_runs_this):
    """By which proxy the server of a kubeconfig is reached, in this environment."""

    def proxy(server, environment, **cluster):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        file = tmp_path / "kubeconfig"
        file.write_text(kubeconfig(server, token="secret", **cluster))

        async def connect():
            client = await KubeClient.connect(file)
            await client.close()
            return client.api.configuration.proxy

        return asyncio.run(connect())

    return proxy


@pytest.mark.parametrize(
    ("server", "excepted", "direct"),
    [
        ("https://10.96.0.1:443", "", False),
        ("https://10.96.0.1:443", "10.0.0.0/8", True),
        ("https://10.96.0.1:443", "example.com, 10.96.0.1/16", True),
        ("https://10.96.0.1:443", "192.168.0.0/16,10.96.0.0/33", False),
        ("https://10.96.0.1:443", "10.96.0.1", True),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "10.0.0.0/8", False),
        ("https://api.example.com", "example.com", True),
        ("https://api.example.com", "10.0.0.0/8", False),
        ("https://api.example.com", "*", True),
        ("https://127.0.0.1:6443", "", True),
        ("https://localhost:6443", "", True),
    ],
)
def test_what_the_environment_excepts_does_not_go_through_its_proxy(proxy_of, server, excepted, direct):
    named = "http://proxy.example:3128"
    assert proxy_of(server, {"HTTPS_PROXY": named, "NO_PROXY": excepted}) == (None if direct else named)


def test_a_proxy_of_the_environment_needs_no_scheme(proxy_of):
    assert proxy_of("https://10.96.0.1", {"HTTPS_PROXY": "proxy.example:3128"}) == "http://proxy.example:3128"


@pytest.mark.parametrize(
    "url", ["socks5://u:secret@proxy:1080", "proxy.example:3128", "http://", "http://[::1", "http://p:x"]
)
def test_a_proxy_that_cannot_be_used_is_named_by_its_field(proxy_of, url):
    with pytest.raises(CannotConnect, match="kubeconfig: proxy-url has to be a URL like http://") as raised:
        proxy_of("https://10.96.0.1", {}, **{"proxy-url": url})
    assert "secret" not in str(raised.value)


def test_a_proxy_of_the_environment_that_cannot_be_used_is_named_by_its_variable(proxy_of):
    with pytest.raises(CannotConnect, match="kubeconfig: HTTPS_PROXY has to be a URL like http://"):
        proxy_of("https://10.96.0.1", {"HTTPS_PROXY": "socks5://proxy:1080"})
