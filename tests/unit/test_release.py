"""A release: the same bytes each time, and a wheel that works without development tools."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from app.version import API_SERVER_FROM, SCHEDULERS, describe
from tests.controlplane.build import CannotBuild
from tests.missing import missing
from tests.release import ROOT, notes

LONG = bool(os.environ.get("QUOTAWARD_LONG"))
"""The packages that the wheel needs are installed from the index, the newest that it allows."""
SUPPORT = (ROOT / "docs/support.md").read_text()


def _build(out: Path, umask: int, **environment: str) -> dict[str, bytes]:
    command = [sys.executable, "-m", "tests.release", "--out", str(out)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, umask=umask, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {file.name: file.read_bytes() for file in out.iterdir()}


def requires(site: Path) -> list[Requirement]:
    """What Quotaward needs, as it is installed there."""
    [installed] = metadata.distributions(name="quotaward", path=[str(site)])
    return [Requirement(each) for each in installed.requires or ()]


def needed(asked: list[Requirement]) -> dict[str, metadata.Distribution]:
    """The packages that these requirements lead to, as they are installed for tests, by name."""
    found: dict[str, metadata.Distribution] = {}
    told, todo = set(), [each for each in asked if each.marker is None or each.marker.evaluate({"extra": ""})]
    while todo:
        each = todo.pop()
        if str(each) in told:
            continue
        told.add(str(each))
        there = found[each.name] = metadata.distribution(each.name)
        for further in map(Requirement, there.requires or ()):
            marker = further.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *each.extras)):
                todo.append(further)
    return found


def _link(packages: dict[str, metadata.Distribution], site: Path) -> None:
    """Puts these packages there, and no others. To unpack them anew takes a quarter of a minute of processor time."""
    for package in packages.values():
        for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            if not (site / name).is_symlink():
                (site / name).symlink_to(package.locate_file(name))


@pytest.fixture(scope="module")
def release(install_tools, tmp_path_factory) -> Path:
    """The folder of a release of the last commit."""
    if subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, check=False).returncode:
        missing("there is no git repository here, whose commit could be released")
    out = tmp_path_factory.mktemp("release") / "dist"
    _build(out, 0o022, TZ="UTC")
    return out


@pytest.mark.slow
def test_a_release_has_the_same_bytes_when_built_again(release, tmp_path):
    again = _build(tmp_path / "again", 0o077, TZ="Asia/Tokyo", LC_ALL="C", SOURCE_DATE_EPOCH="1")
    assert {name: hashlib.sha256(content).hexdigest() for name, content in again.items()} == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in release.iterdir()
    }


@pytest.mark.slow
def test_a_release_is_complete_and_its_sums_are_right(release):
    version = describe()["version"]
    names = {file.name for file in release.iterdir()}
    assert names == {
        "NOTES.md",
        "SHA256SUMS",
        f"kubectl-quotaward-{version}.tar.gz",
        f"quotaward-{version}-image.tar.gz",
        f"quotaward-{version}-py3-none-any.whl",
        f"quotaward-{version}.tar.gz",
        f"quotaward-{version}.tgz",
        "quotaward.krew.yaml",
    }
    checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=release, check=False)
    assert checked.returncode == 0
    assert {line.split()[1] for line in (release / "SHA256SUMS").read_text().splitlines()} == names - {"SHA256SUMS"}


@pytest.mark.slow
def test_the_krew_manifest_names_the_plugin_as_it_is(release):
    [platform] = yaml.safe_load((release / "quotaward.krew.yaml").read_text())["spec"]["platforms"]
    archive = release / platform["uri"].rpartition("/")[2]
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as plugin:
        assert plugin.getmember(platform["bin"]).mode & 0o111
        assert [each["from"] for each in platform["files"]] == plugin.getnames()


@pytest.mark.slow
def test_kubectl_starts_the_plugin_as_krew_installs_it(release, install_tools, tmp_path):
    manifest = yaml.safe_load((release / "quotaward.krew.yaml").read_text())
    [platform], name = manifest["spec"]["platforms"], manifest["metadata"]["name"]
    unpacked, store, links, ours = (tmp_path / each for each in ("unpacked", "store", "bin", "ours"))
    with tarfile.open(release / platform["uri"].rpartition("/")[2]) as archive:
        archive.extractall(unpacked, filter="data")
    for each in platform["files"]:
        (store / each["to"]).mkdir(parents=True, exist_ok=True)
        (unpacked / each["from"]).rename(store / each["to"] / each["from"])
    for folder in (links, ours):
        folder.mkdir()
    (links / f"kubectl-{name}").symlink_to(store / platform["bin"])

    def kubectl(*command: str) -> subprocess.CompletedProcess[str]:
        path = ":".join(map(str, (links, ours, "/usr/bin", "/bin")))
        return subprocess.run(
            [install_tools["kubectl"], *command], env={"PATH": path}, capture_output=True, text=True, check=False
        )

    listed = kubectl("plugin", "list")
    assert f"{links}/kubectl-quotaward" in listed.stdout, listed.stderr
    without = kubectl("quotaward", "version")
    assert (without.returncode, "pipx install the wheel" in without.stderr) == (127, True)
    (ours / "quotaward").symlink_to(Path(sys.executable).parent / "quotaward")
    found = kubectl("quotaward", "version", "-o", "json")
    assert json.loads(found.stdout) == describe(), found.stderr
    assert kubectl("quotaward", "explain", "nobody").returncode == 2, "its exit status is ours"


@pytest.mark.slow
def test_the_packed_chart_renders_as_the_one_in_the_tree(release, install_tools):
    def rendered(chart: Path) -> str:
        command = [str(install_tools["helm"]), "template", "quotaward", str(chart), "--include-crds"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    [packed] = release.glob("*.tgz")
    assert rendered(packed) == rendered(ROOT / "manifests/chart")


@pytest.mark.slow
def test_the_image_is_built_from_what_is_packed(release):
    [packed] = release.glob("*-image.tar.gz")
    with tarfile.open(packed) as archive:
        names = set(archive.getnames())
        dockerfile = archive.extractfile("Dockerfile").read().decode()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
    assert {name for line in copied for name in line.split()} <= names


@pytest.mark.slow
def test_the_wheel_works_in_a_venv_of_its_own_and_knows_its_commit(release, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    [wheel] = release.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "bin/python")]  # to make another takes seconds
    if LONG:
        installed = subprocess.run(
            [*pip, "install", "--quiet", str(wheel)], capture_output=True, text=True, check=False
        )
        if installed.returncode:
            missing(f"the packages that the wheel needs cannot be installed: {installed.stderr[-1000:]}")
    else:
        subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel)], check=True)
        [site] = tmp_path.glob("lib/python*/site-packages")
        _link(needed(requires(site)), site)
        subprocess.run([*pip, "check"], check=True)

    def said(*command: str) -> str:
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    commit = said("git", "-C", str(ROOT), "rev-parse", "HEAD").strip()
    for name in ("quotaward", "kubectl-quotaward"):
        found = json.loads(said(str(tmp_path / "bin" / name), "version", "-o", "json"))
        assert found == describe() | {"commit": commit}
    installed_names = {each["name"] for each in json.loads(said(*pip, "list", "--format=json"))}
    assert not installed_names & {"pytest", "mypy", "ruff", "hatchling"}
    assert "0 errors" in said(str(tmp_path / "bin/quotaward"), "check", str(ROOT / "examples/two-teams"))


def test_notes_are_the_section_of_the_version():
    changelog = "# Changelog\n\n## 0.2.0\n\n- New.\n\n## 0.1.0 (unreleased)\n\n- Old.\n"
    assert notes(changelog, "0.2.0") == "- New.\n"
    assert notes(changelog, "0.1.0") == "- Old.\n"
    with pytest.raises(CannotBuild, match=r"has no section 0\.1"):
        notes(changelog, "0.1")


def test_the_supported_versions_are_those_of_the_docs():
    assert f"| kube-scheduler | {SCHEDULERS[0]} to {SCHEDULERS[-1]} [were tried]" in SUPPORT
    assert f"| API server | {API_SERVER_FROM} or newer" in SUPPORT
    minors = [int(each.removeprefix("1.")) for each in SCHEDULERS]
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_all_parts_of_a_release_have_one_version():
    version = describe()["version"]
    chart = yaml.safe_load((ROOT / "manifests/chart/Chart.yaml").read_text())
    assert {chart["version"], chart["appVersion"], version} == {version}
    assert f"ARG VERSION={version}" in (ROOT / "Dockerfile").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_release_workflow_pins_what_it_uses_and_compares_two_builds():
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    for used in (step["uses"] for step in steps if "uses" in step):
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", used), used
    commands = "\n".join(step.get("run", "") for step in steps)
    assert "make release" in commands
    assert "diff --recursive dist again" in commands
