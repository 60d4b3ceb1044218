"""docs/design names only what there is, and all that the code cites."""

import ast
import importlib
import re
import tomllib
from functools import reduce
from pathlib import Path

import pytest

from tests import reading

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "docs" / "design"
RULES = (DESIGN / "rules.md").read_text()
ARCHITECTURE = (DESIGN / "architecture.md").read_text()
CONTRIBUTING = (ROOT / ".github" / "CONTRIBUTING.md").read_text()

TITLES = {
    "capacity scheduling": "Capacity scheduling",
    "queue api": "Queue API",
    "namespace fair share": "Namespace fair share",
    "queue guarantee": "Volcano Resource Reservation For Queue",
    "reserve action": "Reserve Action",
}
"""The heading of each document's table, by the name that docstrings give it."""
BEYOND = "Beyond the documents"
LONGEST_NAME = 80
CITED = re.compile(r"\b[Ss]eeds?: ")
CITES = re.compile(r"\b[Ss]eeds?:\s")  # in a file, where a line may end there
NAME = "|".join(TITLES)
SECTIONS = re.compile(rf"\b({NAME})(?: \(([^)]*)\)|, ([^.;)]*))?", re.IGNORECASE)


def rows_of(document):
    """The rows of a document's table: section, functions, tests."""
    table = RULES.partition(f"\n## {document}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if line[:2] == "| "]
    return [row for row in rows if row[0] not in {"section", "rule", "---"}]


ROWS = [(title, *row) for title in (*TITLES.values(), BEYOND) for row in rows_of(title)]


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


def citations():
    """What follows each ``Seed:`` in a docstring, by file."""
    for package in ("app", "policy"):
        for file in sorted((ROOT / package).rglob("*.py")):
            source = file.read_text()
            for node in ast.walk(ast.parse(source)) if CITES.search(source) else ():
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    text = " ".join((ast.get_docstring(node) or "").split())
                    yield from ((str(file.relative_to(ROOT)), cited) for cited in CITED.split(text)[1:])


def sections_cited(text):
    """The documents that a text begins with, and their sections: ``reserve action (Job starving), queue guarantee``."""
    while found := SECTIONS.match(text):
        yield found[1].lower(), [each.strip() for each in (found[2] or "").split(",") if each]
        text = text[found.end() :].lstrip(" ,")


def resolve(path):
    """What a dotted path names. Raises AttributeError, ImportError."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        if (ROOT.joinpath(*parts[:length])).with_suffix(".py").exists():
            return reduce(getattr, parts[length:], importlib.import_module(".".join(parts[:length])))
    raise ImportError(path)


def test_there_is_a_table_for_each_document():
    assert all(rows_of(title) for title in (*TITLES.values(), BEYOND))


@pytest.mark.parametrize(("title", "section", "functions", "tests"), ROWS)
def test_a_section_has_functions_that_exist_and_tests_or_a_reason_why_it_has_none(title, section, functions, tests):
    if functions.startswith("none: "):
        assert not quoted(tests)
        return
    paths = [path for path in quoted(functions) if "." in path]
    assert paths
    for path in paths:
        resolve(path)
    assert quoted(tests)


@pytest.mark.parametrize("test", sorted({test for *_, tests in ROWS for test in quoted(tests)}))
def test_a_test_that_is_named_exists(test):
    path, _, name = test.partition("::")
    text = (ROOT / path).read_text()
    if path.endswith(".yaml"):
        assert name in {case["id"] for case in reading.document(text)}
    elif name:
        assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE)


def test_each_section_that_the_code_cites_has_a_row():
    for file, text in citations():
        cited = list(sections_cited(text))
        assert cited, f"{file} cites a document that docs/design/rules.md does not know: {text}"
        for document, sections in cited:
            headings = [row[0].casefold() for row in rows_of(TITLES[document])]
            for section in sections:
                assert any(section.casefold() in heading for heading in headings), f"{file}: {document}, {section}"


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md", "rules.md"])
def test_a_file_that_a_page_names_exists(page):
    named = re.findall(r"`((?:app|policy|tests|docs|manifests)/[\w./-]+)`", (DESIGN / page).read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_a_module_that_a_page_names_without_its_folder_exists(page):
    named = set(re.findall(r"`(\w+\.py)`", (DESIGN / page).read_text()))
    there = {path.name for part in ("app", "policy", "tests") for path in (ROOT / part).rglob("*.py")}
    assert named - there == set()


def test_a_file_that_contributing_names_exists():
    named = [word.partition("::")[0] for span in quoted(CONTRIBUTING) for word in span.split()]
    paths = [word for word in named if re.match(r"(app|policy|tests|docs|manifests|examples)/", word)]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_name_of_a_test_has_fewer_than_80_characters():
    files = [file.read_text() for file in (ROOT / "tests").rglob("*.py")]
    names = [name for text in files for name in re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE)]
    assert names
    assert [name for name in names if len(name) >= LONGEST_NAME] == []


@pytest.mark.parametrize("room", sorted(each.parent.name for each in (ROOT / "policy").glob("*/__init__.py")))
def test_the_unit_tests_of_a_room_are_named_after_its_modules(room):
    modules = tuple(file.stem for file in (ROOT / "policy" / room).glob("[!_]*.py"))
    tests = [file.stem.removeprefix("test_") for file in (ROOT / "tests" / "unit" / room).glob("test_*.py")]
    assert [name for name in tests if not any(f"{name}_".startswith(f"{module}_") for module in modules)] == []


def test_the_layers_of_the_app_are_those_that_are_held():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    held = next(each["layers"] for each in contracts if each.get("containers") == ["app"])
    table = ARCHITECTURE.partition("| layer | part |")[2].partition("\n\n")[0]
    drawn: list[set[str]] = []
    for number, parts in re.findall(r"^\| (\d*) *\| ([^|]*) \|", table, re.MULTILINE):
        if number:
            drawn.append(set())
        drawn[-1] |= set(quoted(parts))
    assert drawn == [set(layer.split(" | ")) for layer in held]


def test_the_drawing_was_made_from_its_text():
    text, drawing = ((DESIGN / f"data-flow.{kind}").read_text() for kind in ("dot", "svg"))
    titles = set(re.findall(r"<title>([\w&#;]+)</title>", drawing))
    assert {f"{start}&#45;&gt;{end}" for start, end in re.findall(r"^  (\w+) -> (\w+)", text, re.MULTILINE)} <= titles
    labels = [line for label in re.findall(r'label="([^"]*)"', text) for line in label.split(r"\n")]
    assert [label for label in labels if f">{label.strip().replace('-', '&#45;')}</text>" not in drawing] == []
