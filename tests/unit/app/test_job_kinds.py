"""The table of kinds of jobs: each built-in row fits the schema of its project, and rows of operators are checked."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.job_kinds import BUILT_IN, EACH, SHIPPED, Row
from app.settings import InvalidSettings, load
from tests.reading import document

SCHEMAS = Path(__file__).parents[2] / "schemas"
ROW: dict[str, Any] = {
    "group": "example.com",
    "version": "v1",
    "plural": "things",
    "kind": "Thing",
    "suspend": "spec.suspend",
    "templates": [{"path": "spec.parts[*].template", "counts": ["spec.replicas", "spec.parts[*].replicas"]}],
    "end": {"field": "status.state", "values": ["Done"]},
    "managedBy": {"field": "spec.managedBy", "own": "example.com/things"},
    "onlyIf": "spec.mayBeSuspended",
    "unlessSet": "spec.pool",
    "podLabel": "example.com/thing",
}


def schema_of(row: Row) -> dict[str, Any]:
    """The schema of the version that a row names."""
    definition = document((SCHEMAS / f"{row.plural}.yaml").read_text())
    assert definition["metadata"]["name"] == f"{row.plural}.{row.group}"
    assert definition["spec"]["names"]["kind"] == row.kind
    [version] = definition["spec"]["versions"]
    assert (version["name"], version["served"]) == (row.version, True)
    return version["schema"]["openAPIV3Schema"]


def field(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """The schema of a field. Raises KeyError if there is none."""
    for part in path.replace(EACH, f".{EACH}").split("."):
        schema = schema["properties"][part] if part != EACH else schema.get("items") or schema["additionalProperties"]
    return schema


@pytest.mark.parametrize("row", SHIPPED, ids=BUILT_IN)
def test_each_path_of_a_built_in_row_is_a_field_of_the_right_type(row):
    schema = schema_of(row)
    types = dict.fromkeys((each.path for each in row.templates), "object") | {row.suspend: "boolean"}
    types |= {count: "integer" for each in row.templates for count in each.counts}
    types |= dict.fromkeys((row.managed_by.field, row.end.field), "string") | {row.only_if: "boolean"}
    types |= {row.unless_set: "object"}
    found = {path: field(schema, path)["type"] for path in row.paths}
    assert found == {path: types[path] for path in row.paths}


@pytest.mark.parametrize("row", SHIPPED, ids=BUILT_IN)
def test_the_conditions_of_a_built_in_row_are_where_they_are_read(row):
    if row.end.conditions:
        condition = field(schema_of(row), "status.conditions[*]")["properties"]
        assert {name: each["type"] for name, each in condition.items()} == dict.fromkeys(
            ("type", "status", "lastTransitionTime"), "string"
        )


def test_kinds_without_a_row_lack_what_it_would_name():
    lacking = {
        found["kind"]: found["spec"] for file in SCHEMAS.glob("without-row.*") for found in [document(file.read_text())]
    }
    assert "suspend" not in lacking["LeaderWorkerSet"]
    assert "template" not in lacking["TrainJob"], "its templates are in another object, its runtime"
    assert not lacking.keys() & set(BUILT_IN)


def loaded(tmp_path, **jobs):
    (tmp_path / "quotaward.yaml").write_text(yaml.safe_dump({"jobs": jobs}))
    return load(["--config", str(tmp_path / "quotaward.yaml")]).jobs


def test_rows_are_built_in_ones_and_those_of_the_operator(tmp_path):
    found = loaded(tmp_path, kinds="RayJob,JobSet", ownKinds=[ROW])
    assert [row.kind for row in found.rows] == ["JobSet", "RayJob", "Thing"]
    assert found.rows[-1].templates[0].counts == ("spec.replicas", "spec.parts[*].replicas")


def test_rows_may_come_from_the_environment_and_from_a_flag_as_json(monkeypatch):
    assert load(["--jobs.own-kinds", json.dumps([ROW])]).jobs.rows[0].kind == "Thing"
    monkeypatch.setenv("QUOTAWARD_JOBS__OWN_KINDS", json.dumps([ROW]))
    assert load([]).jobs.rows[0].kind == "Thing"


def test_without_the_settings_there_are_no_further_kinds(tmp_path):
    assert loaded(tmp_path, startPatience=1).rows == ()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"group": "batch"}, "group"),
        ({"version": "1"}, "version"),
        ({"plural": "Things"}, "plural"),
        ({"kind": "thing"}, "kind"),
        ({"suspend": "spec..suspend"}, "suspend"),
        ({"suspend": "spec.parts[*].suspend"}, "suspend"),
        ({"suspend": "/spec/suspend"}, "suspend"),
        ({"templates": []}, "templates"),
        ({"templates": [{"path": "spec.a[*].b[*].template"}]}, "templates.0.path"),
        ({"templates": [{"path": "spec.parts[*]"}]}, "templates.0.path"),
        ({"templates": [{"path": "spec.template", "counts": ["spec.parts[*].n"]}]}, "templates.0"),
        ({"templates": [{"path": "spec.a[*].template", "counts": ["spec.parts[*].n"]}]}, "templates.0"),
        ({"templates": [{"path": "spec.template", "counts": ["a b"]}]}, "templates.0"),
        ({"end": {"field": "status.state"}}, "end"),
        ({"end": {"field": "status[*].x", "values": ["a"]}}, "end"),
        ({"managedBy": {"field": "spec.", "own": "x"}}, "managedBy.field"),
        ({"managedBy": {"field": "spec.x"}}, "managedBy.own"),
        ({"suspended": "spec.suspend"}, "suspended"),
        ({"onlyIf": "spec.a[*].b"}, "onlyIf"),
        ({"onlyIf": "spec.suspend"}, ""),
        ({"unlessSet": "spec.a[*].b"}, "unlessSet"),
        ({"unlessSet": "spec.suspend"}, ""),
        ({"templates": [{"path": "spec.suspend.template"}]}, ""),
        ({"templates": [{"path": "spec.suspend"}]}, ""),
        ({"suspend": "spec.parts.suspend"}, ""),
        ({"end": {"conditions": ["Done"], "field": "status.conditions", "values": ["Done"]}}, ""),
    ],
)
def test_a_wrong_row_is_refused_at_the_start_and_its_field_is_named(tmp_path, change, field):
    with pytest.raises(InvalidSettings) as caught:
        loaded(tmp_path, ownKinds=[ROW | change])
    assert ".".join(filter(None, ("jobs.ownKinds.0", field))) + ":" in str(caught.value)


def test_two_rows_of_one_resource_are_refused(tmp_path):
    with pytest.raises(InvalidSettings, match=r"two rows of things\.example\.com"):
        loaded(tmp_path, ownKinds=[ROW, ROW | {"kind": "Other"}])


@pytest.mark.parametrize("kind", ["Job", "JobSet", "JOBSET"])
def test_two_rows_of_one_kind_are_refused(tmp_path, kind):
    with pytest.raises(InvalidSettings, match="two rows of the kind"):
        loaded(tmp_path, kinds="JobSet", ownKinds=[ROW | {"kind": kind}])


def test_an_unknown_built_in_kind_is_refused_with_those_that_there_are(tmp_path):
    with pytest.raises(InvalidSettings, match=r"jobs\.kinds: no built-in kind TrainJob; there are JobSet, MPIJob"):
        loaded(tmp_path, kinds="JobSet,TrainJob")
