"""Told to stop under load, it answers what was asked, sends everybody away, and ends."""

import contextlib
import signal

from tests.controlplane.processes import wait_until
from tests.wire.cluster import NODES, pending
from tests.wire.load import load


def test_no_call_is_lost_when_it_is_told_to_stop(serve):
    server = serve({"nodes": NODES, "pods": [pending("filter.node-names")]})
    with load(server) as calls:
        wait_until(lambda: calls.answered >= 200, "calls are answered")
        server.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(OSError):
            not_ready = {"detail": "shutting down"}.items()
            wait_until(lambda: not_ready <= server.get("/readyz").json.items(), "it is not ready", every=0.01)
        assert server.process.wait(10) == 0
    assert calls.lost == []
    assert calls.ended == 8, "each connection was ended by an answer, not under a call"
