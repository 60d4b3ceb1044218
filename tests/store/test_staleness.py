"""A whole Quotaward whose way to the API server is cut: it decides nothing on a picture that is too old."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.store.kinds import KINDS, SUCCESSORS
from tests.cases.serving import serving
from tests.controlplane.objects import pod
from tests.controlplane.processes import wait_until


@pytest.fixture
def server(cluster, namespace, kubeconfig, tmp_path):
    cluster.quota(namespace, max={"cpu": 1})
    flags = ("--kubeconfig", str(kubeconfig), "--controllers", "none", "--store.max-staleness", "1")
    with serving(*flags, log=tmp_path / "serve.log") as running:
        yield running


def ready(server):
    return server.get("/readyz").status == 200


def metric(server, name, **labels):
    families = text_string_to_metric_families(server.get("/metrics").content.decode())
    return next(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_nothing_is_decided_without_contact_for_too_long_and_then_by_itself_again(server, cluster, namespace, proxy):
    waiting = cluster.api.create(pod("waiting", namespace, cpu=2))
    question = {"Pod": waiting, "NodeNames": ["n1"]}
    wait_until(lambda: server.ask("filter", question).json["NodeNames"] == [], "the pod is refused by its quota")
    proxy.cut()
    wait_until(lambda: not ready(server), "it is not ready any more")
    problem = server.get("/readyz").json
    assert problem["detail"].startswith("stale: no contact to the API server for ")
    for verb in ("filter", "preempt", "bind"):
        arguments = question | {"PodName": "waiting", "PodNamespace": namespace, "PodUID": "u", "Node": "n1"}
        answer = server.ask(verb, arguments)
        assert (answer.status, answer.headers["Content-Type"]) == (503, "application/problem+json")
        assert answer.json["detail"].startswith("stale: ")
    needed = [kind.label for kind in KINDS if not kind.advisory and kind.label not in SUCCESSORS]
    wait_until(
        lambda: set(needed) <= set(server.get("/readyz").json["detail"].rpartition(" for ")[2].split(", ")),
        "all are stale",
    )
    assert metric(server, "quotaward_store_synced") == 0
    assert metric(server, "quotaward_watch_lag_seconds", kind="pods") > 1
    assert server.get("/healthz").status == 200
    assert server.get(f"/api/v1/elasticquotas/{namespace}").json["items"][0]["max"] == {"cpu": "1"}

    cluster.change_quota(namespace, max={"cpu": 3})
    proxy.mend()
    wait_until(lambda: ready(server), "it is ready again")
    wait_until(lambda: server.ask("filter", question).json.get("NodeNames") == ["n1"], "it has seen the new quota")
    assert metric(server, "quotaward_store_synced") == 1
    assert metric(server, "quotaward_watch_lag_seconds", kind="pods") == 0


def test_a_start_waits_for_the_api_server(cluster, namespace, kubeconfig, proxy, tmp_path):
    cluster.api.create(pod("p", namespace))
    proxy.cut()
    with serving("--kubeconfig", str(kubeconfig), log=tmp_path / "serve.log", path_when_up="/healthz") as server:
        assert server.get("/readyz").json["detail"].startswith("not synced: ")
        assert server.get(f"/api/v1/pods/{namespace}/p").status == 503
        proxy.mend()
        wait_until(lambda: ready(server), "it is ready")
        assert server.get(f"/api/v1/pods/{namespace}/p").json["verdict"] == "admissible"
