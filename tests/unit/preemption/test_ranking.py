"""Of victims that are equal otherwise the one goes whose eviction loses least work. See docs/time.md."""

import pytest

from policy.objects.pod import Pod
from tests.unit.given import quota
from tests.unit.given_nodes import node
from tests.unit.preemption.test_victims import gone, me, run, world

NOW = 1000.0
LENT = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})


def goes(*running: Pod, nodes=("n1",), now=NOW) -> set[str] | str:
    """Who goes for a pod of one core, on nodes that these pods fill."""
    cpu = sum(each.request["cpu"] for each in running) / 1000 / len(nodes)
    cluster = world(*(node(name, size={"cpu": cpu}) for name in nodes), *LENT, *running)
    cluster.protection.pass_time(now)
    return gone(cluster, me(1))


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ({}, "young"),
        ({"checkpointed": 950.0}, "old"),
        ({"checkpointed": 850.0}, "young"),
        ({"checkpointed": 50.0}, "young"),
    ],
    ids=["nobody says", "it has saved last", "the other has less to lose", "before its start"],
)
def test_of_pods_of_one_size_the_one_goes_that_has_saved_its_work_last(saved, expected):
    assert goes(run("old", started=100.0, **saved), run("young", started=900.0)) == {expected}


@pytest.mark.parametrize(("since", "expected"), [(700.0, "small"), (500.0, "large")])
def test_the_time_counts_times_what_a_pod_holds(since, expected):
    assert goes(run("large", cpu=2, started=800.0), run("small", started=since)) == {expected}
    assert goes(run("large", cpu=2, started=1.0, checkpointed=800.0), run("small", started=since)) == {expected}


def test_what_is_beside_what_the_preemptor_asks_for_does_not_count():
    request = {"cpu": 2, "memory": 10_000}
    assert goes(run("large", request=request, started=900.0), run("small", started=500.0)) == {"large"}


def test_of_two_nodes_the_one_is_emptied_on_which_less_is_lost():
    saved = run("saved", on="n1", started=100.0, checkpointed=990.0)
    assert goes(saved, run("young", on="n2", started=900.0), nodes=("n1", "n2")) == {"saved"}


@pytest.mark.parametrize("said", [2 * NOW, 1e11])
def test_who_says_that_it_has_just_saved_or_will_goes_itself(said):
    liar = run("liar", started=100.0, checkpointed=said)
    assert goes(liar, run("young", started=990.0)) == {"liar"}
    assert goes(liar, run("large", cpu=2, started=990.0)) == {"liar"}


def test_a_time_before_its_start_saves_nobody():
    assert goes(run("old", started=100.0), run("liar", started=900.0, checkpointed=1.0)) == {"liar"}


def test_whoever_is_more_important_stays_whatever_it_says():
    saved = run("saved", started=100.0, checkpointed=999.0, priority=1)
    assert goes(saved, run("young", started=900.0)) == {"young"}
