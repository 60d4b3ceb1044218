"""Which replica leads, by a Lease on the real API server."""

import signal

from tests.cases.serving import serving
from tests.controlplane.processes import wait_until
from tests.wire.load import GOOD, load


def test_where_there_is_no_lease_yet_the_first_replica_creates_it(cluster, namespace, kubeconfig, tmp_path):
    flags = ("--kubeconfig", str(kubeconfig), "--leader.name", "quotaward", "--leader.namespace", namespace)
    with serving(*flags, log=tmp_path / "serve.log") as server:
        wait_until(lambda: not server.lives() or b"quotaward_leader 1.0" in server.get("/metrics").content, "it leads")
        assert server.lives()
        [lease] = cluster.api.items("leases", namespace)
        assert lease["spec"]["holderIdentity"]


def test_of_replicas_behind_a_service_only_the_leader_is_ready_and_hands_over_without_losing_a_call(
    cluster, namespace, kubeconfig, tmp_path
):
    flags = ("--kubeconfig", str(kubeconfig), "--leader.namespace", namespace, "--leader.only-leader-answers")
    flags += ("--controllers", "none")
    cluster.node()
    with (
        serving(*flags, log=tmp_path / "first.log") as first,
        serving(*flags, log=tmp_path / "second.log", path_when_up="/healthz") as second,
    ):
        wait_until(lambda: second.get("/readyz").json["detail"] == "another replica leads", "the second stands by")
        refused = GOOD.send(second)
        assert (refused.status, refused.headers["connection"]) == (503, "close")
        with load(first) as calls:
            wait_until(lambda: calls.answered >= 100, "the leader answers")
            assert second.get("/readyz").status == 503
            first.process.send_signal(signal.SIGTERM)
            assert first.process.wait(10) == 0
            wait_until(lambda: second.get("/readyz").status == 200, "the second takes over, before a lease ends", 10)
        assert calls.lost == []
        wait_until(lambda: GOOD.send(second).status == 200, "the second answers", 10)
        [lease] = cluster.api.items("leases", namespace)
        assert lease["spec"]["leaseTransitions"] == 2
