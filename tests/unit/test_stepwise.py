"""Functions that pause are known by their names, and nobody mistakes their work for its result."""

import ast
import functools
import re
from pathlib import Path

import pytest

from policy.stepwise import at_once, within_steps

ROOT = Path(__file__).parents[2]
FILES = [file for package in ("app", "policy") for file in sorted((ROOT / package).rglob("*.py"))]
RUNNERS = {"at_once", "at_leisure", "_or_none"}
"""Functions that run work to its end; those that end in ``_steps`` do so within their own."""
PAUSES = re.compile(r"steps\b|\bSteps\b|\byield\b")
"""What stands in each file that has such a function, or calls one."""
WORK = "work"
"""The name of work that is run later."""


@functools.cache
def every_function_and_call():
    """All functions and calls in files of policy/ and app/ that may pause, each with its parent and where it stands."""
    return [
        (node, parent, f"{file.relative_to(ROOT)}:{node.lineno}")
        for file in FILES
        if PAUSES.search(source := file.read_text())
        for parent in ast.walk(ast.parse(source))
        for node in ast.iter_child_nodes(parent)
        if isinstance(node, ast.FunctionDef | ast.Call)
    ]


@pytest.fixture(scope="module", autouse=True)
def _nothing_of_it_stays():
    """Else the garbage collector would look through it in all tests that follow."""
    yield
    every_function_and_call.cache_clear()


def nodes(kind):
    return [each for each in every_function_and_call() if isinstance(each[0], kind)]


def called(call):
    """The name of a function that is called, without its module or object."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def own_yields(function):
    """Whether a function itself is a generator."""
    inner = list(function.body)
    while inner:
        node = inner.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            inner.extend(ast.iter_child_nodes(node))
    return False


def test_a_function_returns_steps_just_where_its_name_says_so():
    functions = [(each, where) for each, _, where in nodes(ast.FunctionDef) if each.returns]
    assert {where for each, where in functions if ast.unparse(each.returns).startswith("Steps[")} == {
        where for each, where in functions if each.name.endswith("_steps")
    }


def test_a_generator_that_yields_nothing_is_annotated_with_steps():
    contexts = ("contextmanager", "asynccontextmanager")
    others = [
        where
        for each, _, where in nodes(ast.FunctionDef)
        if own_yields(each)
        and not any(ast.unparse(decorator) in contexts for decorator in each.decorator_list)
        and ast.unparse(each.returns).startswith(("Iterator[None]", "Generator[None"))
    ]
    assert others == []


def is_run(call, parent):
    """Whether work is run where it is made, or handed on as what it is."""
    match parent:
        case ast.YieldFrom() | ast.Return():
            return True
        case ast.For():
            return parent.iter is call
        case ast.Call():
            return called(parent) in RUNNERS or called(parent).endswith("_steps")
        case ast.Assign():
            return [getattr(target, "id", "") for target in parent.targets] == [WORK]
        case _:
            return False


def test_work_is_run_where_it_is_made_or_is_called_work():
    calls = [each for each in nodes(ast.Call) if called(each[0]).endswith("_steps")]
    assert len(calls) > 50
    assert [where for call, parent, where in calls if not is_run(call, parent)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yield from search_steps(pod)", True),
        ("for _ in self.divide_steps(): pass", True),
        ("at_once(search_steps(pod))", True),
        ("work = search_steps(pod)", True),
        ("search_steps(pod)", False),
        ("found = search_steps(pod)", False),
        ("repr(search_steps(pod))", False),
        ("f'{search_steps(pod)}'", False),
        ("search_steps(pod) == 1", False),
        ("for each in found: search_steps(each)", False),
    ],
)
def test_a_forgotten_yield_from_is_noticed(text, expected):
    tree = ast.parse(text)
    found = [
        is_run(node, parent)
        for parent in ast.walk(tree)
        for node in ast.iter_child_nodes(parent)
        if isinstance(node, ast.Call) and called(node).endswith("_steps")
    ]
    assert found == [expected]


def counted_steps(number):
    for _ in range(number):
        yield
    return number


def test_at_once_returns_the_result():
    assert at_once(counted_steps(3)) == 3


@pytest.mark.parametrize(("at_a_time", "entered"), [(1, 4), (2, 2), (9, 1)])
def test_the_scope_is_left_at_each_pause(at_a_time, entered):
    log = []

    class Scope:
        def __enter__(self):
            log.append("in")

        def __exit__(self, *_):
            log.append("out")

    found, pauses = [], 0

    def work():
        found.append((yield from within_steps(Scope, counted_steps(3), at_a_time)))

    for _ in work():
        assert log[-1] == "out"
        pauses += 1
    assert (found, log.count("in"), pauses) == ([3], entered, entered - 1)
