"""A new user who types what docs/getting-started.md says, on a real control plane, and sees what it says.

No containers run here. So what stands for a kubelet starts the programs of Quotaward's deployment by itself, as the
manifests have them; what builds images and forwards ports is passed over.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from tests.conftest import own_control_plane
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import node
from tests.controlplane.processes import Process, free_port, wait_until
from tests.controlplane.scheduler import Scheduler

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/getting-started.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_HERE = ("make setup", "docker build", "kind load", "kubectl -n quotaward-system port-forward")
"""What begins the lines that need a container runtime, or a kubelet, or were done for the tests already."""
ONLY_SHOWS = re.compile(r"(kubectl (-n \S+ )?(get|describe)|\.venv/bin/quotaward) ")
SYSTEM, NAME = "quotaward-system", "quotaward-scheduler"


@pytest.fixture(scope="module")
def control_plane(request, tmp_path_factory) -> Iterator[ControlPlane]:
    """One that knows nothing of Quotaward yet, with what a cluster has by itself: controllers, a scheduler, nodes."""
    with own_control_plane(request, tmp_path_factory) as running:
        controllers = ("deployment-controller", "replicaset-controller", "namespace-controller")
        with ControllerManager(running, *controllers, "garbage-collector-controller"), Scheduler(running):
            running.api.create_all(node(name, cpu=4) for name in ("worker-1", "worker-2"))
            yield running


class Newcomer:
    """Somebody at a shell, in a checkout, who passes over lines that begin so."""

    passed_over: ClassVar[tuple[str, ...]] = NOT_HERE

    def __init__(self, control_plane: ControlPlane, kubectl: Path, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        for name in ("manifests", "examples"):
            (directory / name).symlink_to(ROOT / name)
        (directory / ".venv").symlink_to(Path(sys.executable).parents[1])
        self.env = {
            "PATH": f"{kubectl.parent}:{os.environ['PATH']}",
            "HOME": str(directory),
            "KUBECONFIG": str(control_plane.kubeconfig),
            "QUOTAWARD_SERVER": f"http://127.0.0.1:{self.port}",  # where a port would be forwarded to
            "PYTHONPATH": str(ROOT),
        }

    def types(self, commands: str) -> str:
        """What the commands print; fails if one of them does."""
        typed = "\n".join(line for line in commands.splitlines() if not line.startswith(self.passed_over))
        done = subprocess.run(
            ["bash", "-euc", typed],
            cwd=self.directory,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{typed}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def sees(self, commands: str, expected: str) -> None:
        """Types the commands; those that only show something again, until they show what is expected."""
        again = all(ONLY_SHOWS.match(line) for line in commands.splitlines())
        printed = ""

        def done() -> bool:
            nonlocal printed
            printed = self.types(commands)
            return not again or matches(expected, printed)

        wait_until(done, expected, timeout=30, every=0.3, detail=lambda: printed)
        assert matches(expected, printed), printed


def matches(expected: str, printed: str) -> bool:
    """Whether something was printed as the page has it, apart from spaces and line breaks; ... stands for anything."""
    return OutputChecker().check_output(expected, printed, ELLIPSIS | NORMALIZE_WHITESPACE)


@pytest.mark.timeout(900)
def test_what_the_page_says_can_be_typed_and_is_seen(control_plane, install_tools, tmp_path):
    newcomer = Newcomer(control_plane, install_tools["kubectl"], tmp_path)
    blocks = BLOCK.findall(PAGE.read_text())
    with ExitStack() as stack:
        for (kind, text), (following, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
            if kind == "sh" and following == "text":
                newcomer.sees(text, expected)
            elif kind == "sh":
                newcomer.types(text)
            if "rollout status" in text:
                start_as_the_kubelet_would(stack, control_plane, newcomer.port)
    assert control_plane.api.items("pods") == []


def start_as_the_kubelet_would(stack: ExitStack, control_plane: ControlPlane, port: int) -> None:
    """Starts what a pod of the deployment says, with its rights; only addresses and files are this machine's."""
    api, directory = control_plane.api, control_plane.directory
    spec = api.get("deployments", NAME, SYSTEM)["spec"]["template"]["spec"]
    [sidecar], [scheduler] = spec["initContainers"], spec["containers"]
    assert scheduler["image"].endswith("/kube-scheduler:v1.37.2")
    kubeconfig = directory / "sidecar.kubeconfig"
    kubeconfig.write_text(api.kubeconfig(api.service_account_token(spec["serviceAccountName"], SYSTEM)))
    flags = [flag for flag in sidecar["args"] if not flag.startswith(("--listen", "--probe-listen"))]
    listen = ["--listen", f"127.0.0.1:{port}", "--kubeconfig", kubeconfig]
    program = Path(sys.executable).parent / "quotaward"
    command = [sys.executable, program, *flags, *listen]  # a start of its own, as a container has
    quotaward = Process(command, directory / "sidecar.log", {"PYTHONPATH": str(ROOT)})
    stack.callback(quotaward.stop)
    quotaward.start()
    data = api.get("configmaps", spec["volumes"][0]["configMap"]["name"], SYSTEM)["data"]
    configuration = yaml.safe_load(data["config.yaml"])
    configuration["clientConnection"]["kubeconfig"] = str(kubeconfig)
    configuration["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{port}/extender"
    stack.enter_context(Scheduler(control_plane, **configuration))
