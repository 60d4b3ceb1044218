"""An operator types what the pages say about a cluster, page by page, on a real control plane with Quotaward on it.

Pages and sections that have a test of their own are left out here. What cannot be typed without kubelets or without
other projects' definitions is listed with the reason. It is typed all the same and has to fail, so that the list is no
longer than it must be.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import own_control_plane
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import elastic_quota, node, pod, queue
from tests.controlplane.processes import wait_until
from tests.controlplane.scheduler import Scheduler
from tests.e2e.test_getting_started import ROOT, Newcomer, start_as_the_kubelet_would

TYPED_ELSEWHERE = {
    "install.md": "\n## Removing it\n",
    "troubleshooting.md": "\n## When something is broken\n",
    "getting-started.md": "",
    "migrating.md": "",
}
"""What the last part of a page begins with that has a test of its own; nothing for a whole page."""
NOT_HERE = {
    r" logs ": "takes a kubelet, which keeps what containers have written",
    r" exec ": "takes a kubelet, which starts it in the container",
    r"/proxy/": "takes a kubelet, which runs the pod that is asked",
    r" top pods": "takes the metrics server",
    r"port-forward": "takes a kubelet, which forwards the port",
    r"-k manifests/servicemonitor": "takes the definitions of the Prometheus operator",
}
"""Commands that fail here, and why."""
MAY_FAIL = "check --cluster --strict"
"""It fails where there is something to warn of: whether that is so here depends on what was typed before."""
PROGRAMS = re.compile(r"(kubectl|openssl|quotaward (gates|jobs) release|quotaward check .*--cluster)\b")
BLOCK = re.compile(r"(?:^ {4,}\S.*\n)+", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
SYSTEM, NAME = "quotaward-system", "quotaward-scheduler"
OTHER_SETUP = "-k manifests/overlays/"
AS_SECOND = f"--as system:serviceaccount:{SYSTEM}:{NAME}"
HAS_RIGHTS = (
    f"kubectl auth can-i list elasticquotas.scheduling.x-k8s.io -A {AS_SECOND}\n"
    f"kubectl auth can-i update leases/quotaward -n {SYSTEM} {AS_SECOND}"
)
KUSTOMIZATION = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../manifests/base]
"""
QUOTA = "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: quota, namespace: team-a}}"


def commands(page: str) -> list[str]:
    """The commands of a page about a cluster, whole: with here documents and further lines."""
    text = (ROOT / "docs" / page).read_text()
    if apart := TYPED_ELSEWHERE.get(page):
        text = text.partition(apart)[0]
    found = []
    for block in BLOCK.findall(FENCE.sub("", text)):
        lines = iter(re.sub(r"\\\n *", "", block).splitlines())
        for line in lines:
            command = line.strip()
            if "<<EOF" in command:
                indent = len(line) - len(command)
                while not command.endswith("\nEOF"):
                    command += "\n" + next(lines)[indent:]
            if PROGRAMS.match(command):
                found.append(command)
    return found


PAGES = sorted(
    file.name for file in (ROOT / "docs").glob("*.md") if TYPED_ELSEWHERE.get(file.name) != "" and commands(file.name)
)


@pytest.fixture(scope="module")
def control_plane(request, tmp_path_factory) -> Iterator[ControlPlane]:
    with own_control_plane(request, tmp_path_factory) as running:
        controllers = ("deployment-controller", "replicaset-controller", "namespace-controller")
        with ControllerManager(running, *controllers, "garbage-collector-controller"), Scheduler(running):
            running.api.create_all(node(name, cpu=8) for name in ("worker-1", "worker-2"))
            yield running


class Operator(Newcomer):
    """Types the commands of pages with the names of this cluster in place of those in capitals."""

    passed_over = ()

    def __init__(self, control_plane: ControlPlane, kubectl: Path, directory: Path) -> None:
        super().__init__(control_plane, kubectl, directory)
        (directory / "quotaward").mkdir()
        (directory / "quotaward/kustomization.yaml").write_text(KUSTOMIZATION)
        (directory / "quotas").mkdir()
        (directory / "quotas/quota.yaml").write_text(QUOTA)
        self.env["PATH"] = f"{Path(sys.executable).parent}:{self.env['PATH']}"
        self.api, self.read = control_plane.api, set[str]()
        self.names = {
            "FILE": str(control_plane.kubeconfig),
            "NAMESPACE": "team-a",
            "NS": "team-a",
            "DIR": "examples/two-teams",
            "YOUR-QUOTAS/": "quotas/",
            "NODE": "worker-1",
        }

    def named(self, command: str) -> str:
        """A command as it is typed: without brackets of options, and without a search in what it prints."""
        command = re.sub(r" \[([^\]]*)\]", r" \1", command) if command.startswith("quotaward") else command
        names = self.names | {"POD": self.api.items("pods", SYSTEM)[0]["metadata"]["name"]}
        for name, value in names.items():
            command = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", value, command)
        return re.sub(r" \| grep .*", "", command)

    def follows(self, page: str) -> None:
        """Types what a page says, once. What another set-up takes of rights the second scheduler gets back."""
        if page in self.read:
            return
        for command in commands(page):
            if MAY_FAIL in command:
                self.fails(command)
            elif reason := why_not(command):
                assert self.fails(command), f"{command}: it works here, so it is not true that it {reason}"
            else:
                self.sees(*self.typed_and_shown(command))
            if OTHER_SETUP in command:
                self.types("kubectl apply --server-side -k quotaward")
                wait_until(lambda: not self.fails(HAS_RIGHTS), "the rights are those of the second scheduler")
        self.read.add(page)

    def typed_and_shown(self, command: str) -> tuple[str, str]:
        """A command as it is typed, and what its comment says that it shows, if that begins with dots."""
        _, dots, expected = command.partition("   # ...")
        return self.named(command), f"...{expected.strip()}..." if dots else "..."

    def fails(self, command: str) -> bool:
        """Whether a command fails."""
        try:
            self.types(self.named(command).removesuffix(" &"))
        except AssertionError:
            return True
        return False


@pytest.fixture(scope="module")
def operator(control_plane, install_tools, tmp_path_factory) -> Iterator[Operator]:
    api = control_plane.api
    operator = Operator(control_plane, install_tools["kubectl"], tmp_path_factory.mktemp("operator"))
    with ExitStack() as stack:
        operator.types("kubectl apply --server-side -k quotaward\nkubectl create namespace team-a")
        start_as_the_kubelet_would(stack, control_plane, operator.port)
        api.create_all(
            [elastic_quota("team-a", max={"cpu": 4}), queue("research", weight=1), pod("train", "team-a", cpu=1)]
        )
        api.apply_files(ROOT / "tests/schemas/jobsets.yaml")
        wait_until(lambda: api.items("pods", SYSTEM), "the deployment has pods")
        yield operator


def why_not(command: str) -> str:
    """Why a command fails here; empty if it must not."""
    return next((why for pattern, why in NOT_HERE.items() if re.search(pattern, command)), "")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.timeout(600)
def test_what_a_page_says_about_a_cluster_can_be_typed(operator, page):
    if page != "install.md":
        operator.follows("install.md")  # it has certificates, which others read
    operator.follows(page)


def test_the_list_of_what_cannot_be_typed_is_no_longer_than_it_must_be():
    everything = [command for page in PAGES for command in commands(page)]
    assert [pattern for pattern in NOT_HERE if not any(re.search(pattern, each) for each in everything)] == []
    assert len(everything) > 60
