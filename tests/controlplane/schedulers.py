"""Modules in which other kube-schedulers are built: of older versions, and with scheduler-plugins.

So that the end-to-end tests can be run against each version, and CapacityScheduling be measured beside Quotaward.
``QUOTAWARD_KUBERNETES=1.36`` (``make e2e KUBERNETES=1.36``) makes the tests use one, in the place of the newest.
"""

import json
import os
import re
import subprocess
from pathlib import Path

VERSIONS = {"1.34": "v1.34.4", "1.35": "v1.35.4", "1.36": "v1.36.3"}
PACKAGE = "k8s.io/kubernetes/cmd/kube-scheduler"
PLUGINS = "sigs.k8s.io/scheduler-plugins"
PLUGINS_VERSION = "v0.33.5"
"""The newest that the module proxy has. It is made for Kubernetes 1.33."""


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
    theirs = _module_file(go, f"k8s.io/kubernetes@{version}", directory)
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


def write_module_with_plugins(go: str, directory: Path) -> None:
    """A Go module in which a scheduler with scheduler-plugins can be built.

    What its own module puts in the place of other modules, Go heeds only in the main one, so it is repeated here.
    """
    theirs = _module_file(go, f"{PLUGINS}@{PLUGINS_VERSION}", directory)
    lines = [
        "module quotaward.dev/testing/plugins",
        re.search(r"^go \S+", theirs, re.MULTILINE)[0],
        f"require {PLUGINS} {PLUGINS_VERSION}",
        *(f"replace {each}" for each in re.findall(r"^(?:\s+|replace )(\S+ => \S+ v\S+)", theirs, re.MULTILINE)),
    ]
    (directory / "go.mod").write_text("\n".join(lines) + "\n")


def _module_file(go: str, module: str, directory: Path) -> str:
    """The go.mod of a published module."""
    directory.mkdir(parents=True, exist_ok=True)
    command = [go, "mod", "download", "-json", module]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=directory)
    return Path(json.loads(done.stdout)["GoMod"]).read_text()
