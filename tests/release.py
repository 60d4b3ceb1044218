"""Builds a release of a commit: ``python -m tests.release [--out DIR] [--url URL] [COMMIT]``.

The same commit gives the same bytes: all times are the commit's, and the working tree and the environment do not
matter. Wheel, sdist, chart, what the image is built from, krew manifest and plugin, notes, and checksums.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

import yaml

from tests.controlplane.build import CannotBuild, tools

ROOT = Path(__file__).parents[1]
URL = "https://quotaward.dev/releases"
"""Where releases are published: each below its tag."""
IMAGE = (
    *(".dockerignore", "Dockerfile", "LICENSE", "README.md", "app", "policy", "pyproject.toml"),
    *("requirements-dev.lock", "requirements.lock"),
)
"""What the Dockerfile needs: ``docker build - < FILE`` takes it as it is."""
PLUGIN = """\
#!/bin/sh
# The kubectl plugin: hands everything to the command of the Python package.
if ! command -v quotaward >/dev/null; then
  echo "quotaward is not installed: pipx install the wheel of this release first" >&2
  exit 127
fi
exec quotaward "$@"
"""
CAVEATS = """\
The plugin starts the command quotaward, which has to be on the PATH:
  pipx install quotaward-{version}-py3-none-any.whl
"""


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=True).stdout


def build(commit: str, out: Path, url: str = URL) -> list[Path]:
    """Builds all files of a release into an empty or new folder, and returns them. Raises CannotBuild."""
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise CannotBuild(f"{out} is not empty")
    epoch = int(_git("log", "-1", "--format=%ct", commit))
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit))) as archive:
            archive.extractall(tree, filter="data")
        version = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["version"]
        _python_packages(tree, out, epoch)
        _chart(tree, Path(scratch), out, epoch)
    _write(out / f"quotaward-{version}-image.tar.gz", _git("archive", "--format=tar", commit, "--", *IMAGE), epoch)
    _krew(out, version, f"{url}/v{version}", _git("show", f"{commit}:LICENSE"), epoch)
    (out / "NOTES.md").write_text(notes(_git("show", f"{commit}:CHANGELOG.md").decode(), version))
    files = sorted(out.iterdir())
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (out / "SHA256SUMS").write_text(sums)
    return [*files, out / "SHA256SUMS"]


def notes(changelog: str, version: str) -> str:
    """The section of a version in the changelog, without its heading. Raises CannotBuild if there is none."""
    found = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE)
    if found is None:
        raise CannotBuild(f"CHANGELOG.md has no section {version}")
    return found[1].strip() + "\n"


def _python_packages(tree: Path, out: Path, epoch: int) -> None:
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
    _run([sys.executable, "-m", "hatchling", "build", "--directory", str(out)], tree, environment)


def _chart(tree: Path, scratch: Path, out: Path, epoch: int) -> None:
    """Packs the chart by helm, and again in a fixed order with fixed times, which helm does not have."""
    packed = scratch / "chart"
    helm = [str(tools()["helm"]), "package", "manifests/chart", "--destination", str(packed)]
    _run(helm, tree, os.environ | {"HOME": str(scratch)})
    [chart] = packed.iterdir()
    with tarfile.open(chart) as archive:
        members = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    _write(out / chart.name, _tar({name: (members[name], 0o644) for name in sorted(members)}, epoch), epoch)


def _krew(out: Path, version: str, url: str, license_text: bytes, epoch: int) -> None:
    plugin = out / f"kubectl-quotaward-{version}.tar.gz"
    files = {"LICENSE": (license_text, 0o644), "kubectl-quotaward": (PLUGIN.encode(), 0o755)}
    _write(plugin, _tar(files, epoch), epoch)
    manifest = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "quotaward"},
        "spec": {
            "version": f"v{version}",
            "homepage": "https://quotaward.dev",
            "shortDescription": "Show and explain elastic quotas and queues",
            "description": "Shows which pods and jobs wait for which quota or queue, and what would change that.\n",
            "caveats": CAVEATS.format(version=version),
            "platforms": [
                {
                    "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["darwin", "linux"]}]},
                    "uri": f"{url}/{plugin.name}",
                    "sha256": hashlib.sha256(plugin.read_bytes()).hexdigest(),
                    "bin": "kubectl-quotaward",
                    "files": [{"from": name, "to": "."} for name in files],
                }
            ],
        },
    }
    (out / "quotaward.krew.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))


def _tar(files: dict[str, tuple[bytes, int]], epoch: int) -> bytes:
    """A tar of these contents and modes, which belong to nobody in particular."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, (content, mode) in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(content), mode, epoch
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _write(path: Path, content: bytes, epoch: int) -> None:
    path.write_bytes(gzip.compress(content, mtime=epoch))


def _run(command: list[str], directory: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{' '.join(command)}: {done.stderr.strip()}")


def main() -> None:
    """Builds what the command line asks for, and prints the checksums."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description="Builds a release.")
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--url", default=URL, help="where releases are published")
    asked = parser.parse_args()
    try:
        *_, sums = build(asked.commit, asked.out, asked.url)
    except CannotBuild as reason:
        sys.exit(str(reason))
    print(sums.read_text(), end="")


if __name__ == "__main__":
    main()
