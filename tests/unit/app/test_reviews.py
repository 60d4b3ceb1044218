"""Something in front of the API server answers a review with what is none: nobody is let in, and that is said."""

import asyncio
import json

import pytest

from app.access.gate import CannotReview, User
from app.access.reviews import Reviews
from app.kube.client import KubeClient
from tests.unit.app.given import kubeconfig

SOMEBODY = User(b"", {"username": "somebody"})


@pytest.fixture
def reviewed(tmp_path):
    """What a token or a right comes to, where this is the answer to its review."""

    def run(answer, ask):
        async def reply(reader, writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            await reader.readexactly(int(head.partition("Content-Length: ")[2].partition("\r\n")[0]))
            writer.write(b"HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n" + answer)
            await writer.drain()
            writer.close()

        async def scenario():
            server = await asyncio.start_server(reply, "127.0.0.1", 0)
            file = tmp_path / "kubeconfig"
            file.write_text(kubeconfig(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
            client = await KubeClient.connect(file)
            try:
                return await ask(Reviews(client))
            finally:
                await client.close()
                server.close()

        return asyncio.run(scenario())

    return run


@pytest.mark.parametrize(
    "answer",
    [
        *([], {}, "no", {"status": None}, {"status": []}, {"status": "allowed"}, {"status": {"authenticated": "yes"}}),
        *({"status": {"authenticated": True, "user": ["a"]}}, {"status": {"allowed": 1, "user": "a"}}),
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize(
    "ask",
    [lambda reviews: reviews.user("token"), lambda reviews: reviews.may(SOMEBODY, {})],
    ids=["a token", "a right"],
)
def test_what_is_no_review_is_none(reviewed, answer, ask):
    with pytest.raises(CannotReview):
        reviewed(json.dumps(answer).encode(), ask)


def test_a_review_says_who_somebody_is_and_what_they_may(reviewed):
    known = json.dumps({"kind": "TokenReview", "status": {"authenticated": True, "user": {"username": "a"}}})
    assert reviewed(known.encode(), lambda reviews: reviews.user("token")).name == "a"
    for said, may in [({"allowed": True}, True), ({"allowed": True, "denied": True}, False), ({}, False)]:
        assert reviewed(json.dumps({"status": said}).encode(), lambda reviews: reviews.may(SOMEBODY, {})) is may
