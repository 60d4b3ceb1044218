"""A run that was asked for does not pass by skipping what it cannot run."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.controlplane import build, schedulers
from tests.missing import missing

ROOT = Path(__file__).parents[2]
FAILED, SKIPPED = pytest.fail.Exception, pytest.skip.Exception


@pytest.mark.parametrize(
    ("environment", "outcome"),
    [
        ({}, SKIPPED),
        ({"QUOTAWARD_KUBERNETES": ""}, SKIPPED),  # as the Makefile gives it where no version is named
        ({"QUOTAWARD_KUBERNETES": "1.36"}, FAILED),
        ({"CI": "true"}, FAILED),
    ],
)
def test_what_is_missing_fails_where_all_tests_have_to_run(monkeypatch, environment, outcome):
    for name in ("CI", "QUOTAWARD_KUBERNETES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises((FAILED, SKIPPED)) as raised:
        missing("there is no scheduler")
    assert type(raised.value) is outcome


def test_no_test_is_skipped_for_what_is_missing_in_another_way():
    allowed = {"knows other versions"}
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__)
        for line in path.read_text().splitlines()
        if ("pytest.skip(" in line or "importorskip(" in line) and not any(words in line for words in allowed)
    ]
    assert found == []


def test_a_scheduler_whose_module_cannot_be_had_cannot_be_built(monkeypatch, tmp_path):
    def download(*_command, **_options):
        raise subprocess.CalledProcessError(1, "go", stderr="go.mod requires go >= 99")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(build, "go_toolchain", lambda: "go")
    monkeypatch.setattr(schedulers.subprocess, "run", download)
    with pytest.raises(build.CannotBuild, match="requires go >= 99"):
        build._scheduler("v1.36.3")


@pytest.fixture
def ci(tmp_path):
    """Runs what CI runs, as root, on a machine that has nothing but a make that says what it was given."""
    programs = {
        "id": "echo 0",
        "make": 'echo "CI=$CI make $*"',
        "bash": f'exec {shutil.which("bash")} "$@"',
        "dirname": f'exec {shutil.which("dirname")} "$@"',
    }

    def run(**more):
        for name, script in (programs | more).items():
            (tmp_path / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
            (tmp_path / name).chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if name != "CI"} | {"PATH": str(tmp_path)}
        command = [str(tmp_path / "bash"), str(ROOT / ".ci" / "run")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_run_in_ci_fails_where_what_tests_need_cannot_be_installed(ci):
    done = ci(**{"apt-get": "exit 100"})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "could not install chromium prometheus, which tests need\n"


def test_a_run_in_ci_tells_the_tests_that_it_is_one(ci):
    done = ci(**{"apt-get": "exit 0"})
    assert (done.returncode, done.stdout) == (0, "CI=true make test\n")
