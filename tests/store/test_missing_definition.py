"""A whole Quotaward whose quotas' definition somebody deletes: they stay in force, and that is said everywhere."""

import pytest

from tests.cases.serving import serving
from tests.controlplane.objects import pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import install_definitions

GONE = "the definition of elasticquotas.scheduling.x-k8s.io was deleted: "
METRIC = b'quotaward_store_definition_gone{kind="elasticquotas"} '


@pytest.fixture
def serve(cluster, namespace, kubeconfig, tmp_path):
    """Serves a cluster with one quota."""
    cluster.quota(namespace, max={"cpu": 1})
    flags = ("--kubeconfig", str(kubeconfig), "--leader.namespace", namespace)
    yield lambda *more: serving(*flags, *more, log=tmp_path / "serve.log")
    install_definitions(cluster.api)


def delete_definition(cluster):
    cluster.api.delete("customresourcedefinitions", "elasticquotas.scheduling.x-k8s.io")


def warnings(server):
    return server.get("/readyz?verbose").json["warnings"]


def test_quotas_refuse_without_their_definition_until_it_is_back(serve, cluster, namespace):
    question = {"Pod": cluster.api.create(pod("waiting", namespace, cpu=2)), "NodeNames": ["n1"]}
    with serve() as server:

        def passes():
            return server.ask("filter", question).json["NodeNames"]

        assert passes() == []
        assert warnings(server) == []
        delete_definition(cluster)
        wait_until(lambda: warnings(server), "it is said that the definition is gone")
        assert warnings(server) == [GONE + "1 object stays in force"]
        wait_until(lambda: not cluster.api.serves("/apis/scheduling.x-k8s.io/v1alpha1/elasticquotas"), "it is gone")
        assert passes() == []
        assert server.get("/readyz").json == {"status": "ok"}
        assert METRIC + b"1.0" in server.get("/metrics").content
        wait_until(lambda: GONE.encode() in server.get("/").content, "the page says so, too")
        assert b"definition is gone" in server.log.read_bytes()
        install_definitions(cluster.api)
        cluster.quota(namespace, max={"cpu": 2})
        wait_until(lambda: warnings(server) == [], "the definition is back")
        wait_until(lambda: passes() == ["n1"], "the new quota counts")
        assert METRIC + b"0.0" in server.get("/metrics").content


def test_quotas_are_let_go_with_their_definition_where_that_was_chosen(serve, cluster, namespace):
    question = {"Pod": cluster.api.create(pod("waiting", namespace, cpu=2)), "NodeNames": ["n1"]}
    with serve("--crds.missing", "release") as server:
        assert server.ask("filter", question).json["NodeNames"] == []
        delete_definition(cluster)
        wait_until(lambda: server.ask("filter", question).json["NodeNames"] == ["n1"], "nothing refuses any more")
        wait_until(lambda: warnings(server) == [GONE + "its objects are let go"], "it is said")
