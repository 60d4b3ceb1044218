"""Each command in the documentation is typed, or parsed by the program that it is for; none is left out in silence.

Some pages are typed line by line elsewhere, on a real control plane, and so are the commands of most other pages that
need a cluster (tests/e2e/test_typed_pages.py). Of these pages, what a server or a folder answers is typed here against
the examples, and everything is parsed: by our own parser of commands, by kubectl's and helm's help, by the Makefile.
What only begins a line that no program here knows is listed, with the reason.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.cli import app
from tests.unit.app.forwarding import Forwarding
from tests.unit.app.test_examples import served

ROOT = Path(__file__).parents[2]
COMMAND = typer.main.get_command(app)
TYPED_ELSEWHERE = {
    "getting-started.md": "tests/e2e/test_getting_started.py",
    "migrating.md": "tests/e2e/test_migrating.py",
}
"""Pages of which each block is typed on a real control plane."""
COMPARED_ELSEWHERE = {
    "quotaward whatif --apply quota.yaml --remove Pod/team-b/serve-1": "tests/unit/app/test_examples.py",
}
"""Commands of which a page shows what they print, and that need more than a server of an example."""
NOT_COMPARED = {
    "replay.md": "the log of the cluster is others', and is not in this repository",
}
"""Pages with text that looks like output and is compared with nothing, and why."""
PROGRAMS = ("quotaward", "kubectl", "helm", "make")
NOT_HERE = {
    "docker": "builds and loads images, which takes a container runtime",
    "kind": "makes clusters of containers",
    "kubeadm": "writes a kubeconfig on a control plane node",
    "install": "puts that kubeconfig where the static pod reads it",
    "cat": "writes that kubeconfig anew",
    "openssl": "the tests of TLS have certificates of their own (tests/access)",
    "curl": "the same address is asked by tests of REST",
    "export": "sets what the next line reads",
    "leader": "sets what the next line reads",
    "grep": "reads a kubeconfig of a control plane node",
    "python": "plays recorded workloads, which are others' and have to be fetched first",
    "pipx": "installs from the package index; tests/unit/test_release.py installs the wheel",
}
"""Programs that are neither typed nor parsed, and why."""
HARMLESS = {"mkdir", "containers", "spec", "metadata"}
"""What else begins a line of a block: a program of each shell, or a key of a manifest."""
NEEDS_A_CLUSTER = ("serve", "gates release", "jobs release", "check")
NEEDS_FILES = {"replay", "whatif", "simulate"}
LASTS = {"-w", "--watch", "--server", "--install-completion"}
"""Options of commands that go on, or that ask a server elsewhere."""
NAMES = {"NAMESPACE/POD": "team-a/train-3", "NAMESPACE": "team-a", "NS": "team-a", "DIR": "examples/two-teams"}
START = re.compile(rf"(?:\$ )?(?:\.venv/bin/)?({'|'.join((*PROGRAMS, *NOT_HERE))})(?:[= ]|$)")
INLINE = re.compile(r"`((?:quotaward|kubectl|helm|make) [^`]+)`")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Typed:
    """A command of a page; ``printed`` is what the page says that it prints, where it does."""

    page: str
    program: str
    line: str
    printed: str = ""
    in_sentence: bool = False

    def __str__(self) -> str:
        return f"{self.page}: {self.line[:60]}"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(page: Path) -> Iterator[Typed]:
    """The commands of a page: in blocks, indented, and in a sentence."""
    text = page.read_text()
    for _, block in FENCE.findall(text):
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
        for shown in parts[1:]:
            line, _, printed = shown.partition("\n")
            if found := START.match(line):
                yield Typed(page.name, found[1], line, printed)
        if len(parts) == 1:
            yield from lines(page, block)
    prose = FENCE.sub("", text)
    yield from lines(page, "\n".join(re.findall(r"^ {4,8}(\S.*)$", prose.replace("\\\n", " "), re.MULTILINE)))
    for line in INLINE.findall(re.sub(r"^ {4,8}\S.*$", "", prose, flags=re.MULTILINE)):
        yield Typed(page.name, line.partition(" ")[0], " ".join(line.split()), in_sentence=True)


def lines(page: Path, block: str) -> Iterator[Typed]:
    for line in block.replace("\\\n", " ").splitlines():
        if found := START.match(line.strip()):
            yield Typed(page.name, found[1], line.strip())


ALL = sorted({each for page in pages() if page.name not in TYPED_ELSEWHERE for each in commands(page)}, key=str)


def words(line: str) -> list[str]:
    """The words of a command, without what follows it in a pipe, brackets of options, and comments."""
    line = re.sub(r"<\(.*|\s&$", "", line.removeprefix("$ ").removeprefix(".venv/bin/"))
    line = re.sub(r"\[([^\]]*)\]", r"\1", line) if line.startswith("quotaward") else line
    found = shlex.split(re.split(r" \\?\| | > | && | <<", line)[0], comments=True)
    return [NAMES.get(word, word) for word in found]


def parsed(line: str, *, in_sentence: bool = False) -> list[str]:
    """Parses a command of ours without running it; returns the names of its commands. Raises UsageError.

    A sentence need not name the arguments, or the value of an option.
    """
    command, names, rest = COMMAND, [], words(line)[1:]
    while rest and rest[0] in getattr(command, "commands", ()):
        names.append(rest[0])
        command, rest = command.commands[rest[0]], rest[1:]
    if names and names != ["serve"]:  # that one reads its settings by itself
        try:
            command.make_context(names[-1], rest)
        except Exception as error:
            if not (in_sentence and type(error).__name__ in ("MissingParameter", "BadOptionUsage")):
                raise
    assert names or rest in ([], ["--version"], ["--install-completion"], ["--help"]), line
    return names


def elided(printed: str) -> str:
    """What a page shows, with its sign for what it leaves out as doctest writes it."""
    return printed.replace("[…]", "...")


def of(program: str) -> list[Typed]:
    return [each for each in ALL if each.program == program]


@pytest.mark.parametrize("typed", of("quotaward"), ids=str)
def test_a_command_of_ours_can_be_parsed(typed):
    parsed(typed.line, in_sentence=typed.in_sentence)


def is_answered_here(typed: Typed) -> bool:
    """Whether a server answers a command as it stands, or a folder that is there."""
    name = " ".join(parsed(typed.line, in_sentence=typed.in_sentence))
    if (
        typed.in_sentence
        or not name
        or name.startswith(NEEDS_A_CLUSTER)
        or (name in NEEDS_FILES and "examples" not in typed.line)
    ):
        return False
    return not LASTS & {*words(typed.line)} and not re.search(r"[A-Z]{3}", " ".join(words(typed.line)))


@pytest.fixture(scope="module")
def server():
    with Forwarding(served("two-teams")) as running:
        yield running


@pytest.mark.parametrize("typed", [each for each in of("quotaward") if is_answered_here(each)], ids=str)
def test_a_command_that_can_be_answered_here_is_typed(typed, server, monkeypatch):
    monkeypatch.chdir(ROOT)
    arguments = words(typed.line)[1:]
    done = CliRunner().invoke(app, arguments, env={"QUOTAWARD_SERVER": server.url, "COLUMNS": "100"})
    unknown = re.search(r"is unknown|no |404", done.output)  # an object that this example does not have
    assert done.exit_code == 0 or (done.exit_code == 1 and unknown), done.output
    if typed.printed:
        shown = OutputChecker().check_output(elided(typed.printed), done.output, ELLIPSIS | NORMALIZE_WHITESPACE)
        assert shown, done.output


@cache
def told(tool: Path, *arguments: str) -> str:
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=False, timeout=60).stdout


@pytest.mark.slow
def test_kubectl_knows_each_of_its_commands_and_options(install_tools):
    kubectl = install_tools["kubectl"]
    general = told(kubectl, "options")
    for typed in of("kubectl"):
        given = words(re.sub(r" -n \S+| -- .*", "", typed.line))[1:]
        if given[:1] == ["quotaward"]:
            parsed(" ".join(given), in_sentence=typed.in_sentence)
            continue
        options = {word.partition("=")[0] for word in given if re.match(r"--?[a-z]", word)}
        helped, unknown = general, options
        for count in (1, 2, 3):  # create secret tls
            if unknown or count == 1:
                helped += told(kubectl, *given[:count], "--help")
                unknown = {each for each in options if not re.search(rf"(?<!\w){each}\b", helped)}
        assert helped != general, typed
        assert unknown == set(), typed


def test_each_folder_and_file_that_is_applied_is_there():
    missing = [
        f"{typed.page}: {path}"
        for typed in ALL
        for path in re.findall(r"(?<![\w/])(?:manifests|examples)/[\w./-]+", typed.line)
        if not (ROOT / path.rstrip(".")).exists()
    ]
    assert missing == []


def test_folders_are_applied_in_one_way():
    applied = [each for each in ALL if each.line.startswith("kubectl") and re.search(r" apply .*-k\b", each.line)]
    assert [f"{each.page}: {each.line}" for each in applied if "--server-side" not in each.line] == []
    assert applied


@pytest.mark.slow
def test_what_helm_is_told_builds_a_chart(install_tools):
    for typed in of("helm"):
        if typed.in_sentence or "install" not in (given := words(typed.line)[1:]):
            continue
        given = [word for word in given if word not in ("install", "--create-namespace")]
        built = told(install_tools["helm"], "template", *(str(ROOT / w) if "/chart" in w else w for w in given))
        assert "kind: Deployment" in built, typed


@pytest.mark.parametrize("typed", of("make"), ids=str)
def test_make_has_each_target(typed):
    target = words(typed.line)[1]
    assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_each_output_that_a_page_shows_is_compared():
    shown = [each for each in ALL if each.printed and each.program in PROGRAMS]
    assert {each.line for each in shown if not is_answered_here(each)} == set(COMPARED_ELSEWHERE)
    assert all((ROOT / test).exists() for test in COMPARED_ELSEWHERE.values())
    for page in pages():
        blocks = [block for kind, block in FENCE.findall(page.read_text()) if kind in ("", "text", "console")]
        assert page.name in TYPED_ELSEWHERE or all(block.startswith("$ ") for block in blocks), page.name
    tables = {
        page.name
        for page in pages()
        if re.search(r"^ {4,8}\S+(?: \S+)*(?: {2,}\S+(?: \S+)*){3,}$", FENCE.sub("", page.read_text()), re.MULTILINE)
    }
    assert tables == set(NOT_COMPARED)


def test_each_program_is_typed_or_named_with_a_reason():
    shells = [block for page in pages() for kind, block in FENCE.findall(page.read_text()) if kind == "sh"]
    indented = [line for page in pages() for line in re.findall(r"^ {4,8}(\S.*)$", page.read_text(), re.MULTILINE)]
    first = {word for block in shells for word in re.findall(r"^(?:\.venv/bin/)?([a-z]\w*) ", block, re.MULTILINE)}
    first |= {found[1] for line in indented if (found := re.match(r"(?:\$ )?([a-z]\w*) -", line))}
    assert first <= {*PROGRAMS, *NOT_HERE, *HARMLESS}
    assert all((ROOT / test).exists() for test in TYPED_ELSEWHERE.values())
