"""Beyond loopback people show a token, and see what the real API server says that they may see."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.access.certificates import Authority, Files, ask, client
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import is_bound, pod
from tests.controlplane.processes import free_port, wait_until
from tests.controlplane.quotaward import Quotaward, install_definitions, right_to_review
from tests.controlplane.scheduler import Scheduler, extender

ROOT = Path(__file__).parents[2]
RBAC = "rbac.authorization.k8s.io"
BY_URL = (
    *("/", "/docs", "/openapi.json", "/metrics", "/none"),
    *("/api/v1/elasticquotas", "/api/v1/queues", "/api/v1/plan", "/api/v1/reservations", "/api/v1/podgroups"),
)


@dataclass
class Secured:
    quotaward: Quotaward
    url: str
    files: Files
    ours: Authority
    schedulers: Authority

    def as_bearer_of(self, token):
        return client(self.url, self.ours, Authorization=f"Bearer {token}")


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane, tmp_path_factory):
    install_definitions(control_plane.api)
    directory = tmp_path_factory.mktemp("secured")
    files, ours, schedulers = Files(directory), Authority(), Authority()
    files.present(ours.issue("quotaward"))
    files.ask_for(schedulers)
    address = f"127.0.0.1:{free_port()}"
    flags = ("--secure-listen", address, "--log.level", "debug", *files.flags)
    with right_to_review(control_plane.api), Quotaward(control_plane, *flags) as quotaward:
        yield Secured(quotaward, f"https://{address}", files, ours, schedulers)


def account(api, name, namespace):
    """A new service account; its token."""
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
    return api.service_account_token(name, namespace)


def allow(api, name, user, rule, namespace=None):
    """Gives rights to a service account, NAMESPACE/NAME: in a namespace, or everywhere."""
    home, account_name = user.split("/")
    prefix = "" if namespace else "Cluster"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    role = {"apiVersion": f"{RBAC}/v1", "kind": f"{prefix}Role", "metadata": metadata, "rules": [rule]}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{prefix}RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": f"{prefix}Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account_name, "namespace": home}],
    }
    api.apply(role)
    api.apply(binding)


def test_a_token_shows_what_its_user_may_see(cluster, server):
    api = cluster.api
    mine, other = cluster.namespace(), cluster.namespace()
    cluster.quota(mine, max={"cpu": 1})
    tenant, viewer = account(api, "tenant", mine), account(api, "viewer", mine)
    rule = {"apiGroups": ["scheduling.x-k8s.io"], "resources": ["elasticquotas"], "verbs": ["get"]}
    allow(api, "tenant", f"{mine}/tenant", rule, namespace=mine)
    [role] = api.apply_files(ROOT / "manifests/access/quotaward-viewer.yaml")
    allow(api, "tests-viewer", f"{mine}/viewer", role["rules"][0])
    allow(api, "tests-metrics", f"{mine}/viewer", role["rules"][1])

    with server.as_bearer_of(tenant) as asking:
        wait_until(lambda: asking.get(f"/api/v1/elasticquotas/{mine}").status_code == 200, "own quotas are shown")
        for kind in ("pods", "jobs"):
            assert asking.get(f"/api/v1/{kind}/{mine}/p").json()["verdict"] == "unknown"
        foreign = (f"/api/v1/elasticquotas/{other}", f"/api/v1/pods/{other}/p", f"/api/v1/pods/{mine}/p/q")
        for path in (
            *foreign,
            f"/api/v1/jobs/{other}/p",
            f"/api/v1/elasticquotas/{mine}/",
            f"//api/v1/elasticquotas/{mine}",
            *BY_URL,
        ):
            assert asking.get(path).status_code == 403, path
        assert f"system:serviceaccount:{mine}:tenant may not" in asking.get("/metrics").json()["detail"]
        assert ask(asking, {}).status_code == 401, "a token opens everything but the extender"
    with server.as_bearer_of(viewer) as asking:
        wait_until(lambda: asking.get("/metrics").status_code == 200, "metrics are shown")
        for path in (f"/api/v1/elasticquotas/{other}", *BY_URL):
            assert asking.get(path).status_code in {200, 404}, path
    with server.as_bearer_of(tenant[:-8] + "AAAAAAAA") as asking:
        assert asking.get(f"/api/v1/elasticquotas/{mine}").json()["detail"] == "the token is not valid"
        for header in (f"Basic {viewer}", "Bearer", viewer):
            assert asking.get("/metrics", headers={"Authorization": header}).status_code == 401

    api.delete("serviceaccounts", "tenant", mine)
    with server.as_bearer_of(tenant) as asking:
        wait_until(lambda: asking.get(f"/api/v1/elasticquotas/{mine}").status_code == 401, "the token is revoked")
    reviews = server.quotaward.metric("quotaward_access_reviews_total")
    with server.as_bearer_of(viewer) as asking:
        for _ in range(50):
            assert asking.get("/api/v1/queues").status_code == 200
    assert server.quotaward.metric("quotaward_access_reviews_total") - reviews <= 4, "answers are remembered"

    log = server.quotaward.process.log.read_text()
    for secret in (tenant, viewer, "AAAAAAAA", api.service_account_token("quotaward", "quotaward-system")[:40]):
        assert secret not in log


def test_without_a_right_to_review_nobody_is_let_in_and_that_is_said(cluster, server):
    api = cluster.api
    namespace = cluster.namespace()
    token = account(api, "viewer", namespace)
    allow(api, "tests-viewer", f"{namespace}/viewer", {"nonResourceURLs": ["/quotaward/*"], "verbs": ["get"]})
    with server.as_bearer_of(token) as asking:

        def answer(status):
            return lambda: asking.get("/api/v1/queues").status_code == status

        wait_until(answer(200), "the viewer is let in")
        role = api.get("clusterroles", "quotaward-access")
        for missing, kind in enumerate(("TokenReview", "SubjectAccessReview")):
            kept = [rule for number, rule in enumerate(role["rules"]) if number != missing]
            api.patch("clusterroles", "quotaward-access", {"rules": kept})
            wait_until(answer(503), f"without {kind}s it is not known", every=0.5)
            assert kind in asking.get("/api/v1/queues").json()["detail"]
            api.patch("clusterroles", "quotaward-access", {"rules": role["rules"]})
            wait_until(answer(200), "the viewer is let in again", every=0.5)


def test_a_real_scheduler_asks_by_its_certificate(cluster, server, tmp_path):
    namespace = cluster.namespace()
    cluster.node()
    cluster.quota(namespace, max={"cpu": 1})
    leaf = server.schedulers.issue("scheduler")
    (tmp_path / "client.key").write_bytes(leaf.private_key_pem.bytes())
    (tmp_path / "client.crt").write_bytes(leaf.cert_chain_pems[0].bytes())
    (tmp_path / "server-ca.crt").write_bytes(server.ours.pem)
    tls = {"certFile": "client.crt", "keyFile": "client.key", "caFile": "server-ca.crt"}
    tls = {name: str(tmp_path / file) for name, file in tls.items()}
    for item in (pod("fits", namespace), pod("exceeds", namespace)):
        cluster.api.create(item)
    with Scheduler(cluster.control_plane, extender(server.url, enableHTTPS=True, tlsConfig=tls)):
        wait_until(
            lambda: sum(is_bound(item) for item in cluster.api.items("pods", namespace)) == 1, "one pod is bound"
        )
        wait_until(lambda: server.quotaward.requests("filter", result="refused"), "the other is refused")
