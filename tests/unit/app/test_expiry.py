"""When the certificates and the token that Quotaward shows end is a metric."""

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from prometheus_client import REGISTRY

from app.access.certificates import Certificates
from app.kube.client import KubeClient
from app.observability import expiry
from app.settings import TlsFiles
from tests.access.certificates import Authority, Files
from tests.unit.app.given import kubeconfig

METRIC = "quotaward_certificate_expiry_timestamp_seconds"


def exported(use):
    return REGISTRY.get_sample_value(METRIC, {"use": use})


def pem_of(leaf):
    return leaf.cert_chain_pems[0].bytes()


def token(**claims):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}.c2lnbmF0dXJl"


@pytest.mark.parametrize("days", [-1, 1, 400, 365 * 60], ids=["past", "tomorrow", "next year", "after 2050"])
def test_the_end_of_a_certificate_is_read(days):
    end = datetime.now(UTC) + timedelta(days=days)
    found = expiry.end_of_certificate(b"some text\n" + pem_of(Authority().issue("a", ends_in=timedelta(days=days))))
    assert found == pytest.approx(end.timestamp(), abs=60)


def test_what_is_no_certificate_has_no_end():
    pem = pem_of(Authority().issue("a"))
    cut = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    for wrong in (b"", b"nonsense", pem[:200], cut, pem.replace(b"\n", b"\xff")):
        assert expiry.end_of_certificate(wrong) is None


@pytest.mark.parametrize(
    "opaque", ["", "secret", "a.b.c", token(), token(exp="soon"), token(exp=None), "a.bnVsbA.c", "a.\xe9.c"]
)
def test_a_token_that_does_not_say_when_it_ends_has_no_end(opaque):
    assert expiry.end_of_token(opaque) is None


def test_the_serving_certificate_is_watched_through_its_renewals(tmp_path):
    files, ours = Files(tmp_path), Authority()
    files.ask_for(ours)
    for days in (1, 90):
        leaf = ours.issue("quotaward", ends_in=timedelta(days=days))
        files.present(leaf)
        if days == 1:
            certificates = Certificates(TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt"))
        certificates.look()
        assert exported("serving") == expiry.end_of_certificate(pem_of(leaf)) is not None


def test_the_certificate_and_the_token_for_the_api_server_are_watched(tmp_path):
    ours = Authority()
    leaf = ours.issue("quotaward")
    Files(tmp_path).present(leaf)
    (tmp_path / "ca.crt").write_bytes(ours.pem)

    def connect(**user):
        document = yaml.safe_load(kubeconfig("https://127.0.0.1:1", **{"certificate-authority": "ca.crt"}))
        document["users"][0]["user"] = user
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))

        async def scenario():
            client = await KubeClient.connect(tmp_path / "kubeconfig")
            await client.authorization()
            await client.close()

        asyncio.run(scenario())
        return exported("client"), exported("token")

    end = expiry.end_of_certificate(pem_of(leaf))
    assert connect(**{"client-certificate": "tls.crt", "client-key": "tls.key"}) == (end, None)
    assert connect(token=token(exp=2000000000)) == (None, 2000000000.0)
    assert connect(token="opaque") == (None, None)
