"""The figures of queues on the metrics page."""

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from app.observability.queue_metrics import queue_lines
from app.observability.quota_metrics import SLICE
from tests.unit.app.given import client_of, namespace, node, pod, queue, store_with
from tests.unit.app.neighbour import neighbour

QUEUE = "scheduling.volcano.sh/queue-name"


def figures(*items):
    """By figure, queue and resource."""
    text = client_of(store_with(*items)).get("/metrics").text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {
        (sample.name.removeprefix("quotaward_queue_"), sample.labels["queue"], sample.labels["resource"]): sample.value
        for sample in samples
        if sample.name.startswith("quotaward_queue_") and "resource" in sample.labels
    }


def test_figures_of_a_queue_are_in_base_units():
    found = figures(
        node("n1", cpu=4, memory="8Gi"),
        queue("q", guarantee={"resource": {"cpu": "500m"}}),
        namespace("a", **{QUEUE: "q"}),
        pod("runs", requests={"cpu": "1500m", "memory": "1Gi"}, nodeName="n1"),
        pod("waits", requests={"memory": "2Gi"}),
    )
    assert found["deserved", "q", "cpu"] == 1.5
    assert found["deserved", "q", "memory"] == 3 * 2**30
    assert found["allocated", "q", "cpu"] == 1.5
    assert found["allocated", "q", "memory"] == 2**30
    assert found["guarantee", "q", "cpu"] == 0.5


def test_a_queue_that_deserves_nothing_of_what_it_asks_for_shows_zero():
    found = figures(
        node("n1", cpu=4),
        queue("q", capability={"x.io/gpu": 4}),
        namespace("a", **{QUEUE: "q"}),
        pod("p", requests={"x.io/gpu": 1}),
    )
    assert found["deserved", "q", "x.io/gpu"] == found["allocated", "q", "x.io/gpu"] == 0


def test_what_is_guaranteed_and_no_node_has_is_shown_as_far_as_capability_lets_it():
    guarantee = {"resource": {"cpu": 3, "gpu": 1}}
    found = figures(
        node("n1", cpu=4), queue("q", guarantee=guarantee, capability={"cpu": 3}), queue("r", guarantee=guarantee)
    )
    assert found["guarantee", "q", "cpu"] + found["guarantee_missing", "q", "cpu"] == 3
    missing = [found["guarantee_missing", name, "cpu"] for name in "qr"]
    assert sum(missing) == 2
    assert found["guarantee_missing", "r", "gpu"] == 1


def test_a_queue_that_does_not_exist_has_no_series():
    assert figures(node("n1"), queue("q"), namespace("a", **{QUEUE: "other"}), pod("p")).keys() == set()


def test_the_figures_are_written_in_slices_between_which_the_loop_answers():
    cluster = store_with(*(queue(f"q-{number:03}") for number in range(3 * SLICE))).cluster

    async def turns():
        async with neighbour() as turns:
            await queue_lines(cluster)
        return len(turns)

    assert asyncio.run(turns()) >= 3


def test_the_tree_is_a_metric_and_figures_of_a_queue_count_all_below_it():
    objects = (
        node("n1", cpu=4),
        *(queue("A"), queue("a", parent="A"), queue("root")),
        namespace("a", **{QUEUE: "a"}),
        pod("runs", requests={"cpu": 1}, nodeName="n1"),
    )
    assert figures(*objects)["allocated", "A", "cpu"] == 1
    lines = client_of(store_with(*objects)).get("/metrics").text.splitlines()
    infos = [line.partition("{")[2] for line in lines if line.startswith("quotaward_queue_info{")]
    assert infos == ['queue="A",parent="root"} 1', 'queue="a",parent="A"} 1', 'queue="root",parent=""} 1']
