"""Trees of queues as Volcano's older annotations have them become trees by spec.parent."""

import yaml

from app.checks import hierarchy
from tests.unit.app.given import node, queue, store_with
from tests.unit.app.test_checks import found_of
from tests.unit.app.test_cli import run

WAY, WEIGHTS = hierarchy.WAY, hierarchy.WEIGHTS


def annotated(name, way, weights, **spec):
    made = queue(name, **{"weight": 1} | spec)
    made["metadata"]["annotations"] = {WAY: way, WEIGHTS: weights}
    return made


EXAMPLE = (  # of Volcano
    annotated("root-eng-prod", "root/eng/prod", "1/2/8"),
    annotated("root-eng-dev", "root/eng/dev", "1/2/2"),
    annotated("root-sci-prod", "root/sci/prod", "1/8/8"),
    annotated("root-sci-dev", "root/sci/dev", "1/8/2"),
)


def tree(found):
    return {each["metadata"]["name"]: (each["spec"]["parent"], each["spec"]["weight"]) for each in found.queues}


def converted(folder, *objects):
    folder.write("queues.yaml", *objects)
    return hierarchy.converted(folder.path)


def test_the_example_of_volcano_becomes_a_tree(folder):
    found = converted(folder, *EXAMPLE)
    assert tree(found) == {
        "eng": ("root", 2),
        "sci": ("root", 8),
        "root-eng-dev": ("eng", 2),
        "root-eng-prod": ("eng", 8),
        "root-sci-dev": ("sci", 2),
        "root-sci-prod": ("sci", 8),
    }
    assert found.remarks == []
    store = store_with(node("n1"), *found.queues)
    assert not store.cluster.ledger.queues.tree.invalid


def test_a_queue_on_the_way_to_another_is_its_parent(folder):
    found = converted(folder, annotated("sci", "root/science", "1/3"), annotated("dev", "root/science/dev", "1/3/2"))
    assert tree(found) == {"sci": ("root", 3), "dev": ("sci", 2)}


def test_a_queue_that_has_the_name_of_a_place_keeps_it(folder):
    found = converted(folder, annotated("q", "root/eng/prod", "1/2/8"), queue("eng", parent="root"))
    assert tree(found) == {"eng-2": ("root", 2), "q": ("eng-2", 8)}


def test_what_else_a_queue_says_is_kept(folder):
    one = annotated("q", "root/eng", "1/0.2", capability={"cpu": 4}, weight=9)
    one["metadata"]["annotations"]["team"] = "x"
    (made,) = converted(folder, one).queues
    assert made["spec"] == {"weight": 1, "capability": {"cpu": 4}, "parent": "root"}
    assert made["metadata"] == {"name": "q", "annotations": {"team": "x"}}


def test_weights_that_do_not_agree_are_told_of(folder):
    found = converted(folder, annotated("a", "root/e/a", "1/2/1"), annotated("b", "root/e/b", "1/3/1"), queue("c"))
    assert tree(found)["e"] == ("root", 2)
    assert found.remarks == [
        "Queue b gives root/e the weight 3, another one 2: the latter is taken",
        f"Queue c has no annotation {WAY}: it stands right below the root, as before",
    ]


def test_what_cannot_be_read_is_left_out_or_weighs_one(folder):
    bad = annotated("a", 7, None), annotated("b", "root", "1"), annotated("c", "root/c", "root/heavy")
    assert tree(converted(folder, *bad)) == {"c": ("root", 1)}


def test_the_command_prints_manifests_in_which_nothing_is_found(folder):
    folder.write("all.yaml", *EXAMPLE)
    assert "quotaward check --convert DIR" in found_of(folder, *EXAMPLE)[0][1]
    code, text = run("check", str(folder.path), "--convert")
    assert code == 0
    folder.write("all.yaml", text)
    assert found_of(folder, *yaml.safe_load_all(text)) == []


def test_without_such_annotations_the_command_says_so(folder):
    folder.write("all.yaml", queue("q", parent="root"))
    code, text = run("check", str(folder.path), "--convert")
    assert (code, text.rstrip()) == (1, f"{folder.path}: no Queue has the annotation {WAY}")
    assert run("check", "--convert")[0] == 2
