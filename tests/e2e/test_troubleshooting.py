"""What breaks, and what docs/troubleshooting.md says to type then: on a real control plane it names the cause.

The commands are those of the page. The remedies are typed, too, where they are commands; else the test undoes what it
has done.
"""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.access.certificates import Authority, Files
from tests.controlplane.cluster import Cluster
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import elastic_quota, labelled, pod, replica_set
from tests.controlplane.pod_groups import install_pod_groups, members, pod_group
from tests.controlplane.processes import free_port, wait_until
from tests.controlplane.quotaward import Quotaward, right_to_review
from tests.controlplane.scheduler import Scheduler, extender

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/troubleshooting.md").read_text()
PAGE = TEXT.partition("\n## When something is broken\n")[2]
SECTION = re.compile(r"^### ([^\n]+)\n(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"(?:^ {4,}\S.*\n)+", re.MULTILINE)
FORWARD, *FIRST = BLOCK.findall(TEXT)[0].split("\n")
"""What the page says to type first, whatever is wrong: forwarding a port takes a kubelet, so here it is not typed."""
SECTIONS = {
    title: [re.sub(r"\\\n *", "", block).split("\n") for block in BLOCK.findall(text)]
    for title, text in SECTION.findall(PAGE)
}


class Operator:
    """Types what a section says, with names in place of those in capitals."""

    def __init__(self, cluster: Cluster, kubectl: Path, server: str) -> None:
        self.cluster, self.api, self.names = cluster, cluster.api, dict[str, str]()
        self.env = {
            "PATH": f"{kubectl.parent}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(cluster.control_plane.directory),
            "KUBECONFIG": str(cluster.control_plane.kubeconfig),
            "QUOTAWARD_SERVER": server,
            "PYTHONPATH": str(ROOT),
        }

    def sees(self, section: str, *expected: str) -> None:
        """Types what the page begins with, and then the first commands of a section, until they show all of this."""
        self.sees_at_once(*expected)
        self._shows(self._commands(section)[0], expected)

    def sees_at_once(self, *expected: str) -> None:
        """Types what the page begins with, until it shows all of this."""
        self._shows(self._named(FIRST), expected, enough=expected)

    def _shows(self, commands: list[str], expected: tuple[str, ...], enough: tuple[str, ...] = ()) -> None:
        """Types commands, two at most, until they show all of this."""
        assert len(commands) < 3
        wait_until(
            lambda: _has_all(self._typed(commands, enough), expected),
            f"{commands} show {expected}",
            timeout=40,
            every=1,
            detail=lambda: self._typed(commands),
        )

    def cures(self, section: str) -> None:
        """Types the remedy of a section."""
        self._typed(self._commands(section)[1])

    def _commands(self, section: str) -> list[list[str]]:
        return [self._named(block) for block in SECTIONS[section]]

    def _named(self, block: list[str]) -> list[str]:
        named = [line.strip() for line in block if line]
        for name, value in self.names.items():
            named = [re.sub(rf"\b{name}\b", value, line) for line in named]
        return named

    def _typed(self, commands: list[str], enough: tuple[str, ...] = ()) -> str:
        """What commands print; no further one is typed once they have printed what is enough, if anything is."""
        printed = ""
        for command in commands:
            if enough and _has_all(printed, enough):
                break
            done = subprocess.run(
                command, shell=True, cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=60, check=False
            )
            printed += done.stdout + done.stderr
        return printed


def _has_all(printed: str, expected: tuple[str, ...]) -> bool:
    return all(each in printed for each in expected)


@pytest.fixture(scope="module")
def groups(control_plane, definitions):
    install_pod_groups(control_plane.api)


@pytest.fixture
def operator(groups, cluster, scheduler, quotaward, install_tools):
    cluster.nodes(2, cpu=4)
    return Operator(cluster, install_tools["kubectl"], quotaward.url)


def place(operator: Operator, namespace: str, name: str = "p", **more) -> None:
    operator.api.create(pod(name, namespace, **more))
    operator.names |= {"NAMESPACE": namespace, "POD": name}


def starts(operator: Operator) -> None:
    """The pod has got a node."""
    where = operator.names["POD"], operator.names["NAMESPACE"]
    wait_until(lambda: operator.api.get("pods", *where)["spec"].get("nodeName"), f"{where} is bound")


AUDIT = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/audit"


@contextmanager
def webhook_that_hangs(operator: Operator, asked: str) -> Iterator[None]:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        webhook = {
            "name": "audit.example.com",
            "failurePolicy": "Fail",
            "timeoutSeconds": 1,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"https://127.0.0.1:{silent.getsockname()[1]}/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [asked]}],
        }
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
        operator.api.create({**kind, "metadata": {"name": "audit"}, "webhooks": [webhook]})
        try:
            yield
        finally:
            operator.api.request("DELETE", AUDIT)


def test_a_wrong_port(operator):
    nobody = f"http://127.0.0.1:{free_port()}"
    with Scheduler(operator.cluster.control_plane, extender(nobody), profile={"schedulerName": "astray"}):
        place(operator, operator.cluster.namespace(), schedulerName="astray")
        section = "Nothing is placed, as the scheduler asks at a wrong address"
        operator.sees(
            section, f"the scheduler astray got no answer from {nobody}/extender/filter", "connection refused"
        )


def test_a_queue_that_is_mistyped(operator):
    operator.cluster.queue("research", weight=1)
    place(operator, operator.cluster.namespace(queue="reserch"))
    operator.names["QUEUE"] = "research"
    section = "Pods name a queue that does not exist"
    operator.sees(section, "there is no Queue reserch", f"Namespace {operator.names['NAMESPACE']} names", "is research")
    operator.cures(section)
    starts(operator)


def test_nodes_that_are_tainted(operator):
    taint = [{"key": "maintenance", "effect": "NoSchedule"}]
    for node in operator.api.items("nodes"):
        operator.api.patch("nodes", node["metadata"]["name"], {"spec": {"taints": taint}})
    place(operator, operator.cluster.namespace())
    operator.names |= {"NODE": "node-0", "KEY": "maintenance"}
    section = "Pods wait although nodes are free, as these are tainted"
    operator.sees(section, "does not tolerate the taints of nodes with room for it (node-0, node-1): maintenance")
    operator.cures(section)
    starts(operator)


def test_a_quota_with_a_typo(operator):
    team = operator.cluster.namespace()
    operator.cluster.quota(team, min={"cpu": 2}, max={"cpu": 4, "nvida.com/gpu": 2})
    section = "A quota does not bind, as a name in it is mistyped"
    operator.sees(section, f"ElasticQuota {team}/quota: spec.max.nvida.com/gpu", "did you mean nvidia.com/gpu?")


def test_a_quota_with_a_mistyped_amount(operator):
    team = operator.cluster.namespace()
    operator.cluster.quota(team, max={"cpu": "10m"})
    wait_until(lambda: team in operator._typed(["quotaward quotas"]), "the quota is known")  # before the pod is
    place(operator, team)
    section = "A quota refuses all, as an amount in it is mistyped"
    operator.sees(section, "cpu: request 1, used 0, max 10m", f"ElasticQuota {team}/quota from 10m to at least 1")
    operator.cluster.change_quota(team, max={"cpu": 10})
    starts(operator)


def test_a_gang_that_is_too_large(operator):
    team = operator.cluster.namespace()
    operator.api.create(pod_group("huge", team, 3))
    operator.api.create_all(members("huge", team, 3, cpu=3))
    operator.names |= {"NAMESPACE": team, "POD": "huge-0"}
    section = "A pod group is larger than the cluster"
    rule = "3 pods wait for the rule gang-minimum (Gang minimum cannot be placed yet), such as "
    operator.sees_at_once(f"{rule}{team}/huge-0: quotaward explain {team}/huge-0")
    never = "it cannot start: it lacks 3 members, and the nodes have room for 2 of them even if they were empty"
    operator.sees(
        section, "minimum 3, ready 0, pending 3", never, f"lower the minimum of PodGroup {team}/huge from 3 to"
    )


def test_a_webhook_that_hangs(operator):
    owner, borrower = operator.cluster.namespace(), operator.cluster.namespace()
    operator.cluster.quota(owner, min={"cpu": 4}, max={"cpu": 8})
    operator.cluster.quota(borrower, min={"cpu": 4}, max={"cpu": 8})
    for name in ("one", "two"):
        place(operator, borrower, name, cpu=4)
        starts(operator)
    with webhook_that_hangs(operator, "pods/eviction"):
        place(operator, owner, cpu=4)
        asked = "audit.example.com of ValidatingWebhookConfiguration audit is asked about pods/eviction"
        said = ('failed calling webhook "audit.example.com"', asked)
        operator.sees("A webhook hangs", *said)
    starts(operator)


def test_a_webhook_that_keeps_pods_from_being_made(operator, tmp_path):
    team = operator.cluster.namespace()
    operator.names |= {"NAMESPACE": team, "NAME": "audit", "FILE": str(tmp_path / "audit.yaml")}
    plane = operator.cluster.control_plane
    with ControllerManager(plane, "replicaset-controller"), webhook_that_hangs(operator, "pods"):
        operator.api.create(replica_set("train", team, 1))
        made = f"no pod could be created for ReplicaSet {team}/train: Error creating: "
        asked = "audit.example.com of ValidatingWebhookConfiguration audit is asked about new pods"
        operator.sees("A webhook hangs", made, 'failed calling webhook "audit.example.com"', asked)
        operator.cures("A webhook hangs")
        wait_until(lambda: operator.api.items("pods", team), "the pod is made")
        operator.sees_at_once(made, "A pod was created for it since, so this is over")
        operator._typed(["kubectl replace --force -f " + operator.names["FILE"]])
        assert operator.api.request("GET", AUDIT)["webhooks"][0]["failurePolicy"] == "Fail"


def test_rights_that_are_gone(operator):
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/quotaward"
    binding = operator.api.request("GET", path)
    operator.api.request("DELETE", path)
    try:
        item = pod("quotaward", "quotaward-system", serviceAccountName="quotaward")
        operator.api.create(labelled(item, **{"app.kubernetes.io/name": "quotaward"}))
        account = "system:serviceaccount:quotaward-system:quotaward"
        lost = f"{account} may do nothing that only Quotaward needs: ClusterRoleBinding quotaward is missing"
        operator.sees("Quotaward's rights are gone", lost)
    finally:
        binding["metadata"] = {"name": "quotaward"}
        operator.api.create(binding)


def test_a_leader_that_hangs(cluster, install_tools):
    with Quotaward(cluster.control_plane, "--leader.lease-duration", "3") as leader:
        wait_until(lambda: leader.metric("quotaward_leader") == 1, "it leads")
        operator = Operator(cluster, install_tools["kubectl"], leader.url)
        leader.process._popen.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: is_silent(cluster, 6.5), "the Lease is older than twice its duration")
            said = ("has not renewed it for", "no controllers act", "kubectl -n quotaward-system delete pod")
            operator.sees("The leader hangs", *said)
        finally:
            leader.process._popen.send_signal(signal.SIGCONT)


def is_silent(cluster: Cluster, seconds: float) -> bool:
    path = "/apis/coordination.k8s.io/v1/namespaces/quotaward-system/leases/quotaward"
    renewed = datetime.fromisoformat(cluster.api.request("GET", path)["spec"]["renewTime"])
    return (datetime.now(UTC) - renewed).total_seconds() > seconds


def test_a_certificate_that_has_ended(cluster, install_tools, tmp_path):
    files, authority, port = Files(tmp_path), Authority(), free_port()
    files.present(authority.issue("localhost", ends_in=timedelta(hours=-1)))
    files.ask_for(authority)
    mine = authority.issue("scheduler")
    (tmp_path / "my.crt").write_bytes(b"".join(pem.bytes() for pem in mine.cert_chain_pems))
    (tmp_path / "my.key").write_bytes(mine.private_key_pem.bytes())
    tls = {"caFile": "ca.crt", "certFile": "my.crt", "keyFile": "my.key"}
    asking = extender(
        f"https://localhost:{port}",
        enableHTTPS=True,
        tlsConfig={key: str(tmp_path / file) for key, file in tls.items()},
    )
    plane = cluster.control_plane
    with (
        right_to_review(cluster.api),
        Quotaward(plane, f"--secure-listen=127.0.0.1:{port}", *files.flags) as quotaward,
        Scheduler(plane, asking, profile={"schedulerName": "by-tls"}),
    ):
        operator = Operator(cluster, install_tools["kubectl"], f"https://localhost:{port}")
        operator.env["QUOTAWARD_CA"] = str(tmp_path / "ca.crt")
        cluster.nodes(1, cpu=4)
        place(operator, cluster.namespace(), schedulerName="by-tls")
        said = ("x509: certificate has expired", "its certificate is not accepted: certificate has expired")
        operator.sees("A certificate has ended", *said)
        files.present(authority.issue("localhost"))
        starts(operator)
        assert quotaward.requests("filter") > 0


def test_a_definition_that_is_gone(operator):
    team = operator.cluster.namespace()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/elasticquotas.scheduling.x-k8s.io"
    operator.api.request("DELETE", path)
    section = "A definition is gone"
    operator.sees(
        section, "ElasticQuota of scheduling.x-k8s.io is not installed: kubectl apply --server-side -k manifests/crds"
    )
    operator.cures(section)

    def written() -> bool:
        try:
            return bool(operator.api.apply(elastic_quota(team, max={"cpu": 1})))
        except Exception:  # noqa: BLE001 - it is served a moment later
            return False

    wait_until(written, "quotas can be written again")


def test_the_first_command_makes_quotaward_reachable():
    assert " port-forward " in FORWARD


def test_each_section_is_typed():
    source = Path(__file__).read_text()
    typed: Callable[[str], bool] = lambda title: f'"{title}"' in source  # noqa: E731
    assert [title for title in SECTIONS if not typed(title)] == []
