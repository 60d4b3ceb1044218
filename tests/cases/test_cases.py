"""Every case of every ``*.yaml`` here, and of the directory that ``QUOTAWARD_CASES`` names, against a real process."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cases.runner import CaseFailed, run
from tests.cases.serving import DidNotStart
from tests.reading import documents

HERE = Path(__file__).parent


NOT_YET: dict[str, str] = {}  # each is expected to fail, and fails the run as soon as it passes


def cases_in(directory: Path) -> list[dict[str, Any]]:
    files = sorted(directory.glob("*.yaml"))
    return [case for file in files for cases in documents(file.read_text()) for case in cases]


def all_cases() -> list[Any]:
    elsewhere = os.environ.get("QUOTAWARD_CASES")
    cases = cases_in(HERE) + (cases_in(Path(elsewhere)) if elsewhere else [])
    return [pytest.param(case, id=case["id"], marks=_marks(case["id"])) for case in cases]


def _marks(name: str) -> list[pytest.MarkDecorator]:
    if name not in NOT_YET:
        return []
    return [pytest.mark.xfail(strict=True, reason=NOT_YET[name], raises=(CaseFailed, DidNotStart))]


@pytest.mark.parametrize("case", all_cases())
def test_case(case, tmp_path, servers):
    run(case, tmp_path, servers)


def test_ids_are_unique():
    assert [name for name, times in Counter(case["id"] for case in cases_in(HERE)).items() if times > 1] == []


def test_only_cases_that_exist_are_awaited():
    assert set(NOT_YET) - {case["id"] for case in cases_in(HERE)} == set()
