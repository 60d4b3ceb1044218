"""What is wrong with the files of the service account is said, and a token that cannot be renewed is kept."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from kubernetes.aio.config import incluster_config
from structlog.testing import capture_logs

from app.kube.client import CannotConnect, KubeClient
from tests.access.certificates import Authority


@pytest.fixture
def account(tmp_path, monkeypatch):
    """The files of a pod's service account, and a clock by which they are read again."""
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first")
    ca.write_bytes(Authority().pem)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(ca))
    clock = SimpleNamespace(now=datetime.now(UTC))
    now = SimpleNamespace(now=lambda: clock.now)
    monkeypatch.setattr(incluster_config, "datetime", SimpleNamespace(datetime=now, timedelta=timedelta))
    return SimpleNamespace(token=token, ca=ca, clock=clock)


def fault():
    """What keeps it from connecting; ``quotaward serve`` says that and ends."""
    with pytest.raises(CannotConnect) as caught:
        asyncio.run(KubeClient.connect(None))
    return str(caught.value)


def remove(file):
    file.unlink()


def as_folder(file):
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("which", ["token", "ca"])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.write_text(""), "is empty"),
        (lambda file: file.write_text("\n"), "is empty"),
        (remove, "cannot be read: No such file or directory"),
        (as_folder, "cannot be read: Is a directory"),
        (lambda file: file.write_bytes(b"\xff"), "cannot be read: 'utf-8' codec"),
    ],
    ids=["empty", "an empty line", "missing", "a folder", "no text"],
)
def test_it_is_said_which_file_of_a_service_account_is_wrong(account, which, spoil, said):
    file = getattr(account, which)
    spoil(file)
    assert fault().startswith(f"service account of this pod: {file} {said}")


def test_it_is_said_that_the_certificate_of_a_service_account_is_none(account):
    account.ca.write_text("nonsense")
    assert f"{account.ca} contains no usable certificate" in fault()


def test_a_token_that_no_header_can_hold_is_none(account):
    account.token.write_text("to\nken")
    assert fault().endswith("the token is empty or invalid")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_text(""),
        lambda file: file.write_text("\n"),
        remove,
        lambda file: file.write_bytes(b"\0"),
    ],
    ids=["empty", "an empty line", "missing", "no token"],
)
def test_a_token_that_cannot_be_renewed_is_kept_until_it_can(account, spoil):
    account.token.write_text("first\n")

    async def scenario():
        client = await KubeClient.connect(None)
        try:
            assert await client.authorization() == {"Authorization": "bearer first"}
            spoil(account.token)
            account.clock.now += timedelta(minutes=2)
            with capture_logs() as said:
                for _ in range(3):
                    assert await client.authorization() == {"Authorization": "bearer first"}
                    headers = {}
                    await client.api.update_params_for_auth(
                        headers, [], ["BearerToken"], "", "GET", None
                    )  # as for the Lease
                    assert headers["authorization"] == "bearer first"
            assert len(said) == 1
            account.token.write_text("second")
            account.clock.now += timedelta(minutes=2)
            assert await client.authorization() == {"Authorization": "bearer second"}
        finally:
            await client.close()

    asyncio.run(scenario())


def test_outside_of_a_pod_that_is_what_is_said(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert "not in a cluster" in fault()
