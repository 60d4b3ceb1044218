"""Builds kube-schedulers of other minor versions, so that the end-to-end tests can be run against each.

``QUOTAWARD_KUBERNETES=1.36`` (``make e2e KUBERNETES=1.36``) makes the tests use one, in the place of the newest.
"""

import json
import os
import re
import subprocess
from pathlib import Path

VERSIONS = {"1.34": "v1.34.4", "1.35": "v1.35.4", "1.36": "v1.36.3"}
PACKAGE = "k8s.io/kubernetes/cmd/kube-scheduler"


def chosen() -> str | None:
    """The tag of Kubernetes that is asked for; None for the one that the rest of the control plane has."""
    minor = os.environ.get("QUOTAWARD_KUBERNETES")
    if not minor or minor == "1.37":
        return None
    if minor not in VERSIONS:
        raise ValueError(f"QUOTAWARD_KUBERNETES is {minor}, and can be {', '.join(VERSIONS)} or 1.37")
    return VERSIONS[minor]


def write_module(go: str, version: str, directory: Path) -> None:
    """A Go module in which that scheduler can be built.

    Kubernetes names its parts by directories of its own repository, which only its main module finds; here each has
    the version that it was published as.
    """
    directory.mkdir(parents=True, exist_ok=True)
    command = [go, "mod", "download", "-json", f"k8s.io/kubernetes@{version}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=directory)
    theirs = Path(json.loads(done.stdout)["GoMod"]).read_text()
    parts = sorted(set(re.findall(r"^\s*(k8s\.io/\S+) => ", theirs, re.MULTILINE)))
    published = version.replace("v1.", "v0.", 1)
    lines = [
        "module quotaward.dev/testing/scheduler",
        re.search(r"^go \S+", theirs, re.MULTILINE)[0],
        *re.findall(r"^godebug \S+", theirs, re.MULTILINE),
        f"require k8s.io/kubernetes {version}",
        *(f"replace {part} => {part} {published}" for part in parts),
    ]
    (directory / "go.mod").write_text("\n".join(lines) + "\n")
