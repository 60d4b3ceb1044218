"""Beyond loopback a scheduler shows a certificate; each way of not having the right one is refused."""

import contextlib
import http.client
import socket
import ssl
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest

from app.access.certificates import Certificates
from app.observability import metrics
from app.settings import TlsFiles
from tests.access.certificates import Authority, Files, ask, client
from tests.cases.serving import Server, serving
from tests.controlplane.processes import free_port, wait_until
from tests.unit.app.given import node, quota
from tests.unit.app.manifest_folder import Folder
from tests.wire.recordings import recording

QUESTION = recording("filter.node-names").request


@dataclass
class Served:
    url: str
    files: Files
    ours: Authority
    schedulers: Authority
    server: Server

    def client(self, leaf=None, **headers):
        return client(self.url, self.ours, leaf, **headers)

    def handed_out(self):
        """The certificate that a new connection gets."""
        port = int(self.url.rpartition(":")[2])
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=5)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("served")
    folder = Folder(tmp_path / "manifests")
    folder.path.mkdir()
    folder.write("all.yaml", node("n1"), quota("a", max={"cpu": 1}))
    files = Files(tmp_path)
    ours, schedulers = Authority(), Authority()
    files.present(ours.issue("quotaward"))
    files.ask_for(schedulers)
    address = f"127.0.0.1:{free_port()}"
    flags = ["--manifests", str(folder.path), "--secure-listen", address, "--log.level", "debug", *files.flags]
    with serving(*flags, log=tmp_path / "serve.log") as server:
        yield Served(f"https://{address}", files, ours, schedulers, server)


def test_only_who_has_a_certificate_of_the_client_ca_may_ask_as_a_scheduler(served):
    with served.client(served.schedulers.issue("scheduler")) as asking:
        assert ask(asking, QUESTION).status_code == 200
        assert asking.get("/api/v1/elasticquotas").status_code == 401, "a certificate opens the extender and no more"
    with served.client() as asking:
        refused = ask(asking, QUESTION)
        assert (refused.status_code, refused.json()["detail"]) == (
            401,
            "kube-scheduler's verbs take a client certificate",
        )
        assert asking.get("/healthz").status_code == asking.get("/readyz").status_code == 200
        assert asking.post("/admission/gate").status_code == 422, "the API server shows nothing when it calls a webhook"
        for path in ("/metrics", "/docs", "/openapi.json", "/api/v1/elasticquotas", "/healthz/", "/extender", "/none"):
            refused = asking.get(path, headers={"Authorization": "Bearer abc"})
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer"), path
    for why, leaf in (
        ("wrong CA", Authority().issue("scheduler")),
        ("the server's CA", served.ours.issue("scheduler")),
        ("expired", served.schedulers.issue("scheduler", ends_in=timedelta(hours=-1))),
    ):
        with served.client(leaf) as asking, pytest.raises(httpx.TransportError):
            print(why, ask(asking, QUESTION).text)
    with served.client(served.schedulers.issue("scheduler")) as asking:
        assert ask(asking, QUESTION).status_code == 200
    assert "Traceback" not in served.server.log_tail()


def test_a_certificate_that_ends_while_its_connection_lasts_is_good_no_longer(served):
    with served.client(served.schedulers.issue("scheduler", ends_in=timedelta(seconds=3))) as asking:
        assert ask(asking, QUESTION).status_code == 200
        wait_until(lambda: ask(asking, QUESTION).status_code == 401, "it has expired", every=0.2)


def test_certificates_are_taken_from_their_files_again_when_these_change(served):
    first = served.handed_out()
    scheduler = served.schedulers.issue("scheduler")
    lasting = http.client.HTTPSConnection(served.url.removeprefix("https://"), context=context(served, scheduler))
    with contextlib.closing(lasting):
        assert health(lasting) == 200
        before = lasting.sock

        served.files.present(served.ours.issue("quotaward"))
        wait_until(lambda: served.handed_out() != first, "the new certificate is handed out")

        newer = Authority()
        served.files.ask_for(newer)
        with served.client(newer.issue("scheduler")) as asking:
            wait_until(lambda: answers(asking), "the new CA is trusted")
        with served.client(scheduler) as asking:
            assert not answers(asking), "the old CA is trusted no more"

        second = served.handed_out()
        (served.files.directory / "tls.crt").write_bytes(b"half a file")
        wait_until(lambda: "certificates cannot be loaded" in served.server.log_tail(), "that is said")
        assert served.handed_out() == second
        served.files.present(served.ours.issue("quotaward"))
        wait_until(lambda: served.handed_out() != second, "it goes on with files that are good again")

        served.files.ask_for(served.schedulers)
        with served.client(scheduler) as asking:
            wait_until(lambda: answers(asking), "the old CA is trusted again")
        assert health(lasting) == 200
        assert lasting.sock is before, "a connection outlives all that"


def test_files_that_become_what_they_were_can_be_loaded_again(tmp_path):
    files, ours = Files(tmp_path), Authority()
    files.present(ours.issue("quotaward"))
    files.ask_for(ours)
    key = tmp_path / "tls.key"
    certificates, good = Certificates(TlsFiles(tmp_path / "tls.crt", key, tmp_path / "ca.crt")), key.read_bytes()
    key.unlink()
    certificates.look()
    assert metrics.CERTIFICATES_USABLE.collect()[0].samples[0].value == 0
    key.write_bytes(good)
    certificates.look()
    assert metrics.CERTIFICATES_USABLE.collect()[0].samples[0].value == 1


def test_handshakes_that_nobody_goes_on_with_hinder_nobody_and_are_given_up(served):
    address = ("127.0.0.1", int(served.url.rpartition(":")[2]))
    scheduler = served.schedulers.issue("scheduler")
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(address)) for _ in range(200)]
        with served.client(scheduler) as asking:
            assert ask(asking, QUESTION).status_code == 200
        for connection in silent:
            connection.settimeout(30)
            with contextlib.suppress(ConnectionError):
                assert connection.recv(1) == b"", "the server ends it"


def answers(asking):
    try:
        return ask(asking, QUESTION).status_code == 200
    except httpx.TransportError:
        return False


def context(served, leaf):
    made = ssl.create_default_context(cadata=served.ours.pem.decode())
    leaf.configure_cert(made)
    return made


def health(connection):
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    answer.read()
    return answer.status
