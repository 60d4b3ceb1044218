"""What ``quotaward check`` finds about queues."""

from tests.unit.app.given import namespace, node, pod, queue
from tests.unit.app.test_checks import found_of

QUEUE = "scheduling.volcano.sh/queue-name"
ALLOWED = "quotaward.dev/allowed-queues"
GOOD = (
    node(cpu=4),
    queue("q", weight=2, capability={"cpu": 4}, guarantee={"resource": {"cpu": 2}}),
    namespace("a", **{QUEUE: "q"}),
    pod("p"),
)


def test_good_queues_have_nothing_to_be_found(folder):
    assert found_of(folder, *GOOD) == []


def test_a_guarantee_beyond_capability_is_a_warning(folder):
    bad = queue("q", capability={"cpu": 1}, guarantee={"resource": {"cpu": 2}})
    [(severity, text)] = found_of(folder, node(cpu=4), bad)
    assert severity == "warning"
    assert "guarantee exceeds capability: cpu" in text


def test_more_guarantees_than_the_nodes_have_is_a_warning(folder):
    queues = [queue(name, guarantee={"resource": {"cpu": 3}}) for name in "ab"]
    found = found_of(folder, node(cpu=4), *queues)
    assert found == [("warning", "guarantee of all queues is 6 of cpu, but the nodes have 4")]


def test_without_nodes_nothing_is_said_about_guarantees_and_capabilities(folder):
    assert found_of(folder, queue("q", capability={"x.io/gpu": 1}, guarantee={"resource": {"cpu": 3}})) == []


def test_a_weight_below_one_is_a_warning(folder):
    [(severity, text)] = found_of(folder, queue("q", weight=0))
    assert severity == "warning"
    assert "spec.weight (below 1, so 1)" in text


def test_a_field_that_cannot_be_read_is_an_error(folder):
    [(severity, text)] = found_of(folder, queue("q", weight="two"))
    assert (severity, text) == ("error", "Queue q: spec.weight: must be a whole number")


def test_a_mistyped_key_is_a_warning(folder):
    found = found_of(folder, queue("q", wieght=2, affinity={}, guarantee={"cpu": 1}))
    where = f"{folder.path / 'all.yaml'}: Queue q: spec"
    read = "capability, guarantee, parent, priority, reclaimable, weight"
    assert found == [
        ("warning", f"{where}.affinity has no effect: only {read} have one"),
        ("warning", f"{where}.wieght has no effect: only {read} have one"),
        ("warning", f"{where}.guarantee.cpu guarantees nothing: amounts belong under resource"),
    ]


def test_a_key_that_the_queues_condition_names_is_found_once(folder):
    [(severity, text)] = found_of(folder, queue("q", parent="root", deserved={"cpu": 1}))
    assert severity == "warning"
    assert "not enforced: spec.deserved" in text


def test_a_capability_for_what_no_node_has_is_a_warning(folder):
    bounds = {"x.io/gpu": 1, "y.io/gpu": 0, "cpu": 1}
    found = found_of(folder, node(cpu=4), queue("q", capability=bounds))
    assert found == [("warning", "Queue q: capability names resources that no node has: x.io/gpu")]


def test_whoever_names_a_queue_that_does_not_exist_is_named(folder):
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "a"},
        "spec": {"queue": "nowhere"},
    }
    mine = pod("p", metadata={"name": "p", "namespace": "b", "annotations": {QUEUE: "gone"}})
    also = [pod(f"p{each}", "c", metadata={"annotations": {QUEUE: "gon"}}) for each in range(3)]
    known = queue("q"), queue("typos"), queue("gong")
    own = "which does not exist, in its own annotation"
    found = found_of(folder, *known, namespace("a", **{QUEUE: "typo", ALLOWED: "q, other"}), group, mine, *also)
    assert found == [
        (
            "warning",
            "Namespace a names the queue other, which does not exist, in its annotation quotaward.dev/allowed-queues",
        ),
        (
            "warning",
            f"Namespace a names the queue typo, which does not exist, in its annotation {QUEUE}: did you mean typos?",
        ),
        ("warning", "Pod b/p names the queue gone, which does not exist, in its own annotation: did you mean gong?"),
        ("warning", f"Pod c/p0 (and 2 more pods of its namespace) names the queue gon, {own}: did you mean gong?"),
        ("warning", "PodGroup a/g names the queue nowhere, which does not exist, in its spec.queue"),
    ]


def test_bounds_that_do_not_fit_those_of_the_parent_are_warned_of(folder):
    found = found_of(
        folder,
        node(cpu=40),
        queue("A", capability={"cpu": 6}),
        queue("a1", parent="A", guarantee={"resource": {"cpu": 4}}, capability={"cpu": 8}),
        queue("a2", parent="A", guarantee={"resource": {"cpu": 4}}),
        namespace("boss", **{QUEUE: "A", ALLOWED: "a1"}),
    )
    assert found == [
        ("warning", "Queue A: its children are guaranteed 8 of cpu together, but its capability is 6"),
        ("warning", "Queue a1: capability of cpu is 8, above that of its parent A: 6"),
        ("warning", "Namespace boss names the queue A, which has children: only leaves take pods"),
    ]


def test_a_parent_that_does_not_exist_is_an_error(folder):
    assert found_of(folder, queue("q", parent="nobody")) == [
        (
            "error",
            "Queue q: ParentInvalid: there is no Queue nobody, which Queue q names as its parent; it admits no pod",
        )
    ]
