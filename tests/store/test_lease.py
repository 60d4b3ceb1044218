"""Which replica leads, by a Lease on the real API server."""

from tests.cases.serving import serving
from tests.controlplane.processes import wait_until


def test_where_there_is_no_lease_yet_the_first_replica_creates_it(cluster, namespace, kubeconfig, tmp_path):
    flags = ("--kubeconfig", str(kubeconfig), "--leader.name", "quotaward", "--leader.namespace", namespace)
    with serving(*flags, log=tmp_path / "serve.log") as server:
        wait_until(lambda: not server.lives() or b"quotaward_leader 1.0" in server.get("/metrics").content, "it leads")
        assert server.lives()
        [lease] = cluster.api.items("leases", namespace)
        assert lease["spec"]["holderIdentity"]
