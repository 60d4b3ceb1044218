"""Until the store is in sync nobody is told anything about a pod."""

import socket

import pytest
import yaml

from tests.cases.serving import serving
from tests.wire.recordings import recording


def kubeconfig(port):
    """Of an API server that does not answer."""
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "none"}}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [cluster],
        "contexts": [context],
        "users": [user],
    }


@pytest.fixture(scope="module")
def unsynced(tmp_path_factory):
    directory = tmp_path_factory.mktemp("unsynced")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but nobody listens: connections are refused
        file = directory / "kubeconfig"
        file.write_text(yaml.safe_dump(kubeconfig(closed.getsockname()[1])))
        flags = ("--kubeconfig", str(file))
        with serving(*flags, log=directory / "serve.log", path_when_up="/healthz") as server:
            yield server


def test_it_is_alive_but_not_ready(unsynced):
    assert unsynced.get("/healthz").status == 200
    assert unsynced.get("/readyz").status == 503


@pytest.mark.parametrize(
    "name",
    [
        *("filter.node-names", "filter.full-nodes", "prioritize.node-names", "prioritize.full-nodes"),
        *("preempt.meta-victims", "preempt.full-victims", "bind"),
    ],
)
def test_every_verb_is_unavailable(unsynced, name):
    answer = recording(name).send(unsynced)
    assert answer.status == 503
    assert answer.headers.get_content_type() == "application/problem+json"
    assert answer.json["status"] == 503
    assert answer.json["detail"]


def test_what_is_malformed_or_too_large_is_told_so_or_to_wait(unsynced):
    answer = unsynced.call("POST", "/extender/filter", b"{")
    assert answer.status in (400, 422, 503)
    assert answer.headers.get_content_type() == "application/problem+json"
