"""The rules for prose find what they are for, and leave alone what looks like it."""

import json
import subprocess

import pytest

from tests import prose
from tests.controlplane.build import CannotBuild
from tests.missing import missing

pytestmark = pytest.mark.slow

TABLE = [
    ("Words", "text.md", "A hopeless pod claims nothing.", True),
    ("Words", "code.py", "# A hopeless pod claims nothing.", True),
    ("Words", "code.py", 'PODS = 1\n"""Hopeless pods."""', True),
    ("Words", "code.py", 'PODS = Field(description="hopeless pods")', True),
    ("Words", "code.py", 'hopeless = "hopeless"', False),
    ("Words", "text.md", "The field `hopeless` lists UIDs.", False),
    ("Words", "text.md", "Its chances are gone.", True),
    ("Words", "text.md", "Among equals it chooses by chance.", False),
    ("Names", "text.md", "Then Kube-scheduler asks again.", True),
    ("Names", "text.md", "It is read from scheduling.x-k8s.io/v1alpha1.", False),
    ("Passive", "code.py", '"""Yields nodes. To be used up."""', True),
    ("Same", "code.py", '"""The same, but for a gang."""', True),
    ("Same", "text.md", "The same holds for gangs.", False),
    ("Length", "text.md", "A pod waits" + ", and waits" * 20 + ".", True),
    ("Length", "text.md", "A pod waits" + ", and waits" * 10 + ".", False),
    ("Length", "code.py", '"""A pod waits.' + "\n\nIt waits" + ", and\nwaits" * 20 + '.\n"""', True),
    ("Subject", "text.md", "Who has to go is decided here.", True),
    ("Subject", "text.md", "- What a queue deserves is computed.", True),
    ("Subject", "code.py", '"""Whether a pod waits."""', False),
    ("Subject", "text.md", "Who has to go?", False),
    ("Subject", "text.md", "What if works on a copy.", False),
    ("Passive", "text.md", "A pod has to be asked about.", False),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The lines of the table in which a rule finds something, by number, with the rules' names."""
    directory = tmp_path_factory.mktemp("prose")
    for number, (_, name, text, _) in enumerate(TABLE):
        (directory / f"{number}-{name}").write_text(text + "\n")
    try:
        lint = prose.command("--output=JSON", str(directory))
    except CannotBuild as reason:
        missing(f"there is no Vale: {reason}")
    done = subprocess.run(lint, check=False, capture_output=True, text=True, cwd=prose.ROOT)
    return {
        int(file.rsplit("/", 1)[1].split("-")[0]): {alert["Check"] for alert in alerts}
        for file, alerts in json.loads(done.stdout).items()
    }


@pytest.mark.timeout(1200)  # Vale may have to be built first
@pytest.mark.parametrize("number", range(len(TABLE)), ids=[f"{rule}: {text}" for rule, _, text, _ in TABLE])
def test_a_rule_finds_what_it_is_for_and_nothing_else(found, number):
    rule, _, _, bad = TABLE[number]
    assert found.get(number, set()) == ({f"Quotaward.{rule}"} if bad else set())


def test_each_rule_has_an_example_of_what_it_finds():
    rules = {path.stem for path in (prose.ROOT / ".vale" / "Quotaward").glob("*.yml")}
    assert {rule for rule, _, _, bad in TABLE if bad} == rules


@pytest.mark.parametrize(("environment", "code"), [({}, 0), ({"CI": "true"}, 1)])
def test_prose_that_cannot_be_checked_fails_in_ci_alone(monkeypatch, capsys, environment, code):
    def no_vale():
        raise CannotBuild("no Go on this machine")

    monkeypatch.delenv("CI", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(prose, "vale", no_vale)
    assert prose.main([]) == code
    assert capsys.readouterr().err == "prose is not checked: no Go on this machine\n"


@pytest.mark.usefixtures("found")  # else Vale may be missing
def test_a_bad_sentence_fails(tmp_path):
    (tmp_path / "bad.md").write_text("A hopeless pod.\n")
    (tmp_path / "good.md").write_text("An unschedulable pod.\n")
    assert [prose.main([str(tmp_path / name)]) for name in ("bad.md", "good.md")] == [1, 0]
