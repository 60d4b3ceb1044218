"""An operator who removes Quotaward as docs/install.md says, on a real API server: quotas stay until the last step."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import own_control_plane
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import ControllerManager
from tests.unit.app.given import quota

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/install.md").read_text()
COMMAND = re.compile(r"^ {7}(\S.*)$", re.MULTILINE)
OPTIONS = ("admission", "resize", "jobs/ignore-disruptions", "jobs/queued", "gates", "patience")
INSTALLED = ("manifests/base", *(f"manifests/{each}" for each in OPTIONS))
OURS = "app.kubernetes.io/part-of=quotaward"


@pytest.fixture(scope="module")
def control_plane(request, tmp_path_factory) -> Iterator[ControlPlane]:
    """One of its own, since all of Quotaward goes, definitions and namespace included."""
    with own_control_plane(request, tmp_path_factory) as running, ControllerManager(running, "namespace-controller"):
        yield running


@pytest.fixture
def shell(control_plane, install_tools, tmp_path):
    """Runs a line as an operator with a kubeconfig would, in a checkout; what it prints."""
    programs = (install_tools["kubectl"].parent, Path(sys.executable).parent)
    env = os.environ | {
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "KUBECONFIG": str(control_plane.kubeconfig),
        "PYTHONPATH": str(ROOT),
    }

    def run(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


@pytest.mark.timeout(900)
def test_all_goes_but_the_quotas_and_then_these(control_plane, shell):
    for directory in (*INSTALLED, *INSTALLED):  # and once more, as an upgrade does
        shell(f"kubectl apply --server-side -k {directory}")
    shell("kubectl create namespace a")
    control_plane.api.create_all([quota("a")])
    section = PAGE[PAGE.index("## Removing it") :]
    lines = [line.replace("FILE", "$KUBECONFIG") for line in COMMAND.findall(section)]
    assert len(lines) == 11
    for line in lines:
        shell(line)
    left = shell(
        "kubectl get clusterroles,clusterrolebindings,roles,rolebindings,deployments,configmaps,serviceaccounts,"
        "namespaces,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings"
        f" -A -o name -l {OURS}"
    )
    assert left == ""
    assert len(control_plane.api.items("elasticquotas")) == 1
    shell("kubectl delete resourcequotas -A --field-selector metadata.name=quotaward")
    shell("kubectl delete -k manifests/crds")
    assert OURS not in shell("kubectl get crds -o yaml")
