"""Which replica leads, by a Lease on the real API server."""

import asyncio
import signal

from structlog.testing import capture_logs

from app.kube.client import KubeClient
from app.kube.lease import Lease
from app.settings import LeaderSettings
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


def test_only_the_leader_is_ready_and_it_hands_over_without_losing_a_call(cluster, namespace, kubeconfig, tmp_path):
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


def complaint_of(kubeconfig_text, tmp_path, namespace):
    """What is said of a Lease in this namespace that cannot be kept with these credentials."""
    file = tmp_path / "kubeconfig-of-lease"
    file.write_text(kubeconfig_text)

    async def scenario():
        client = await KubeClient.connect(file)
        try:
            with capture_logs() as logged:
                assert not await Lease(client, LeaderSettings(namespace=namespace)).hold()
        finally:
            await client.close()
        return logged

    [line] = asyncio.run(scenario())
    return line["error"]


def test_what_is_missing_for_the_lease_is_named(cluster, namespace, tmp_path):
    api = cluster.api
    assert complaint_of(api.kubeconfig(), tmp_path, "nowhere") == (
        "namespace nowhere does not exist; create it or set leader.namespace"
    )
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "powerless", "namespace": namespace}})
    powerless = api.kubeconfig(api.service_account_token("powerless", namespace))
    said = complaint_of(powerless, tmp_path, namespace)
    assert said.startswith(f"no right to Lease {namespace}/quotaward; apply the Role quotaward and its binding in ")
    assert f'User "system:serviceaccount:{namespace}:powerless" cannot get resource "leases"' in said
    said = complaint_of(api.kubeconfig("nonsense"), tmp_path, namespace)
    assert said == "the API server does not take our credentials: look at the token or kubeconfig: 401 Unauthorized"
