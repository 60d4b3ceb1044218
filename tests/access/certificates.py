"""Certificates in files, as they are mounted into a pod, and clients that show them."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import trustme

from tests.cases.serving import go_json


class Authority:
    """A CA, and what it has signed."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self.pem = self._ca.cert_pem.bytes()

    def issue(self, name: str, *, ends_in: timedelta = timedelta(days=1)) -> trustme.LeafCert:
        now = datetime.now(UTC)
        return self._ca.issue_cert(
            name, "127.0.0.1", common_name=name, not_before=now - timedelta(days=2), not_after=now + ends_in
        )


@dataclass
class Files:
    """The three files that a listener with TLS has."""

    directory: Path

    @property
    def flags(self) -> list[str]:
        names = {"--tls-cert": "tls.crt", "--tls-key": "tls.key", "--client-ca": "ca.crt"}
        return [word for flag, name in names.items() for word in (flag, str(self.directory / name))]

    def present(self, leaf: trustme.LeafCert) -> None:
        chain = b"".join(pem.bytes() for pem in leaf.cert_chain_pems)
        (self.directory / "tls.key").write_bytes(leaf.private_key_pem.bytes())
        (self.directory / "tls.crt").write_bytes(chain)

    def ask_for(self, *authorities: Authority) -> None:
        (self.directory / "ca.crt").write_bytes(b"".join(authority.pem for authority in authorities))


def client(url: str, server_ca: Authority, leaf: trustme.LeafCert | None = None, **headers: str) -> httpx.Client:
    """A client that shows a certificate, if it has one."""
    context = ssl.create_default_context(cadata=server_ca.pem.decode())
    if leaf is not None:
        leaf.configure_cert(context)
    return httpx.Client(base_url=url, verify=context, headers=headers, trust_env=False, timeout=20)


def ask(asking: httpx.Client, request: object) -> httpx.Response:
    """Asks whether a pod may pass, as kube-scheduler does."""
    return asking.post("/extender/filter", content=go_json(request), headers={"Content-Type": "application/json"})
