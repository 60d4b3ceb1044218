"""Credentials for the API server that are rotated are read again, against a real TLS server."""

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml
from kubernetes.aio.config import incluster_config
from structlog.testing import capture_logs

from app.kube import client as kube_client
from app.kube.client import CannotConnect, KubeClient
from app.settings import GroupSettings
from app.sources import kubernetes
from tests.access.certificates import Authority, Files
from tests.unit.app.given import kubeconfig
from tests.unit.app.test_flaky_api_server import empty_store, until


class TlsServer:
    """Answers every request; notes who asked, and with which token."""

    def __init__(self, ca: Authority, clients: Authority) -> None:
        self.ca, self.clients, self.port = ca, clients, 0
        self.asked: list[tuple[str, str]] = []
        self.held: asyncio.Event | None = None  # answers end when it is set

    @asynccontextmanager
    async def running(self, directory: Path):
        """Listens with a new certificate of its CA, always on the same port."""
        files = Files(directory)
        files.present(self.ca.issue("server"))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.clients.pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
        server = await asyncio.start_server(self._answer, "127.0.0.1", self.port, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        await reader.readexactly(int(headers.get("Content-Length", 0)))
        shown = dict(field for [field] in (writer.get_extra_info("peercert") or {}).get("subject", ()))
        self.asked.append((shown.get("commonName", ""), headers.get("Authorization", "")))
        body = b"{}"
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
        if self.held:
            await self.held.wait()
        writer.write(body)
        await writer.drain()
        writer.close()


class Rotated:
    """A kubeconfig with its files, and the client that reads them."""

    def __init__(self, directory: Path) -> None:
        self.file, self.user = directory / "kubeconfig", Files(directory)
        self.clients = Authority()
        self.server = TlsServer(Authority(), self.clients)
        self.serving = directory / "server"
        self.serving.mkdir()

    def write(self, **user: str) -> None:
        (self.file.parent / "ca.crt").write_bytes(self.server.ca.pem)
        address = f"https://127.0.0.1:{self.server.port}"
        document = yaml.safe_load(kubeconfig(address, **{"certificate-authority": "ca.crt"}))
        document["users"][0]["user"] = user
        self.file.write_text(yaml.safe_dump(document))

    async def ask(self, client: KubeClient) -> set[tuple[str, str]]:
        """Asks in each way in which the client asks; returns what was shown."""
        self.server.asked.clear()
        async with client.get("/api/v1/pods", {}, read_timeout=5) as response:
            await response.read()
        await client.send("PATCH", "/api/v1/namespaces/a/pods/p", {}, "application/merge-patch+json", timeout=5)
        assert len(self.server.asked) == 2
        return set(self.server.asked)


@pytest.fixture
def run(tmp_path):
    def whole(scenario, **user):
        async def running():
            rotated = Rotated(tmp_path)
            rotated.user.present(rotated.clients.issue("first"))
            (tmp_path / "token").write_text("first")
            async with rotated.server.running(rotated.serving):
                rotated.write(**user)
                client = await KubeClient.connect(rotated.file)
            try:
                return await scenario(rotated, client)
            finally:
                await client.close()

        with capture_logs() as logged:
            asyncio.run(running())
        return [(line["event"], line["log_level"]) for line in logged]

    return whole


CERTIFICATE = {"client-certificate": "tls.crt", "client-key": "tls.key"}


def test_a_new_ca_is_trusted_and_the_old_one_no_more(run):
    async def scenario(rotated, client):
        old = rotated.server.ca
        rotated.server.ca = Authority()
        async with rotated.server.running(rotated.serving):
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await rotated.ask(client)
            rotated.write(**CERTIFICATE)
            await client.look()
            assert await rotated.ask(client) == {("first", "")}
        rotated.server.ca = old
        async with rotated.server.running(rotated.serving):
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await rotated.ask(client)

    assert run(scenario, **CERTIFICATE) == [("credentials loaded", "info")]


def test_a_new_client_certificate_is_shown_and_half_of_it_changes_nothing(run):
    async def scenario(rotated, client):
        async with rotated.server.running(rotated.serving):
            assert await rotated.ask(client) == {("first", "")}
            key = rotated.user.directory / "tls.key"
            before = key.read_bytes()
            rotated.user.present(rotated.clients.issue("second"))
            after = key.read_bytes()
            key.write_bytes(before)
            for _ in range(2):
                await client.look()
            assert await rotated.ask(client) == {("first", "")}
            key.write_bytes(after)
            for _ in range(2):
                await client.look()
            assert await rotated.ask(client) == {("second", "")}
            rotated.user.present(rotated.clients.issue("third"))
            await client.look()
            assert await rotated.ask(client) == {("third", "")}

    loaded = ("credentials loaded", "info")
    assert run(scenario, **CERTIFICATE) == [("credentials cannot be loaded", "error"), loaded, loaded]


def test_a_new_token_is_sent(run):
    async def scenario(rotated, client):
        async with rotated.server.running(rotated.serving):
            assert await rotated.ask(client) == {("", "Bearer first")}
            (rotated.file.parent / "token").write_text("second")
            await client.look()
            assert await rotated.ask(client) == {("", "Bearer second")}
            rotated.write(token="third")
            await client.look()
            assert await rotated.ask(client) == {("", "Bearer third")}

    run(scenario, tokenFile="token")


@pytest.mark.parametrize("text", ["", "nonsense", "a: [", "\x00", kubeconfig("https://127.0.0.2:1", token="x")])
def test_a_kubeconfig_that_cannot_be_used_or_names_another_server_changes_nothing(run, text):
    async def scenario(rotated, client):
        async with rotated.server.running(rotated.serving):
            good = rotated.file.read_text()
            rotated.file.write_text(text)
            await client.look()
            await client.look()
            assert await rotated.ask(client) == {("", "Bearer first")}
            rotated.file.unlink()
            await client.look()
            rotated.file.write_text(good)
            await client.look()
            assert await rotated.ask(client) == {("", "Bearer first")}

    assert [event for event, _ in run(scenario, token="first")] == ["credentials cannot be loaded"] * 2


def test_requests_under_way_go_on_while_credentials_are_replaced(run):
    async def scenario(rotated, client):
        held = rotated.server.held = asyncio.Event()
        async with (
            rotated.server.running(rotated.serving),
            client.get("/api/v1/pods", {}, read_timeout=5) as response,
        ):
            rotated.write(token="second")
            await client.look()
            held.set()
            assert json.loads(await response.read()) == {}

    run(scenario, token="first")


def test_whoever_follows_a_cluster_follows_the_files_too(run, monkeypatch):
    monkeypatch.setattr(kube_client, "LOOK_AGAIN", 0.02)

    async def scenario(rotated, client):
        async with rotated.server.running(rotated.serving):
            following = asyncio.create_task(kubernetes.follow(client, empty_store(), GroupSettings()))
            await until(lambda: ("", "Bearer first") in rotated.server.asked)
            (rotated.file.parent / "token").write_text("second")
            await until(lambda: ("", "Bearer second") in rotated.server.asked)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    run(scenario, tokenFile="token")


def test_a_new_ca_of_the_service_account_is_trusted_as_the_kubelet_swaps_it(tmp_path, monkeypatch):
    """The files are links through ..data, which the kubelet turns to a new folder in one step."""
    mount, server = tmp_path / "mount", TlsServer(Authority(), Authority())
    (tmp_path / "server").mkdir()
    mount.mkdir()

    def swap(name: str, *trusted: Authority) -> None:
        (mount / name).mkdir()
        (mount / name / "ca.crt").write_bytes(b"".join(each.pem for each in trusted))
        (mount / name / "token").write_text("a-token")
        (mount / "..next").symlink_to(name)
        (mount / "..next").replace(mount / "..data")

    for name, constant in (("token", "SERVICE_TOKEN_FILENAME"), ("ca.crt", "SERVICE_CERT_FILENAME")):
        (mount / name).symlink_to(f"..data/{name}")
        monkeypatch.setattr(incluster_config, constant, str(mount / name))
    old, new = server.ca, Authority()

    async def ask(client: KubeClient) -> None:
        async with client.get("/api/v1/pods", {}, read_timeout=5) as response:
            await response.read()
        await client.send("PATCH", "/api/v1/namespaces/a/pods/p", {}, "application/merge-patch+json", timeout=5)

    async def scenario() -> None:
        swap("..1", old)
        async with server.running(tmp_path / "server"):
            monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
            client = await KubeClient.connect(None)
            await ask(client)
        try:
            swap("..2", old, new)  # as long as both are in use
            await client.look()
            for ca in (old, new):
                server.ca = ca
                async with server.running(tmp_path / "server"):
                    await ask(client)
            swap("..3", new)
            await client.look()
            async with server.running(tmp_path / "server"):
                await ask(client)
            server.ca = old
            async with server.running(tmp_path / "server"):
                with pytest.raises(aiohttp.ClientConnectorCertificateError):
                    await ask(client)
        finally:
            await client.close()

    monkeypatch.delenv("KUBECONFIG", raising=False)
    asyncio.run(scenario())
    assert {token.lower() for _, token in server.asked} == {"bearer a-token"}


def test_certificates_that_do_not_belong_together_are_said_at_the_start(tmp_path):
    rotated = Rotated(tmp_path)
    rotated.user.present(rotated.clients.issue("first"))
    (tmp_path / "tls.key").write_bytes(rotated.clients.issue("other").private_key_pem.bytes())
    rotated.write(**CERTIFICATE)
    with pytest.raises(CannotConnect, match=r"kubeconfig: .*MISMATCH"):
        asyncio.run(KubeClient.connect(rotated.file))
