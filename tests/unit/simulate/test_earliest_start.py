"""When waiting jobs could start at the earliest, were each of them alone in line. See docs/time.md."""

from dataclasses import replace

import pytest

from policy.objects.batch_job import BatchJob
from policy.objects.group import Group
from policy.objects.membership import Namespace
from policy.objects.queued_job import PodSet, QueuedJob
from policy.reserve.starving import Terms
from policy.simulate import earliest_start
from policy.simulate.expected_start import Forecast
from policy.stepwise import at_once
from tests.unit.app.lines import lines_of, longest_step
from tests.unit.given import quota
from tests.unit.given_jobs import GANG, NOW, gang, seen, sized, sized_pod, waiting


def runs(name, seconds, size=1, node="n1", **fields):
    return replace(sized_pod(name, size, node=node), started=NOW, run_time=seconds, **fields)


def forecast(cluster, estimate=lambda _pod, _now: None):
    found = Forecast(cluster, Terms(), NOW, 0.0, estimate)
    at_once(found.play_steps())
    return found


def earliest(*objects):
    """After how many seconds each could start, by name."""
    cluster = seen(*objects)
    names = {uid: each.name for uid, each in cluster.pods.items()}
    return {names[uid]: at - NOW for uid, at in forecast(cluster).earliest.items()}


NODE = sized("n1", 3)
THREE = [runs("r1", 10), runs("r2", 20), runs("r3", 30)]


@pytest.mark.parametrize(("cpu", "at"), [(0.5, 10), (1, 10), (2, 20), (3, 30)])
def test_it_is_the_first_moment_with_room_on_a_node(cpu, at):
    assert earliest(NODE, *THREE, waiting("p", cpu)) == {"p": at}


def test_it_is_now_where_there_is_room_and_never_where_no_end_is_known():
    assert earliest(NODE, runs("r", 10), waiting("p", 2)) == {"p": 0}
    assert earliest(NODE, runs("r", 0), waiting("p", 3)) == {}
    assert earliest(NODE, runs("r", 10), waiting("p", 4)) == {}


def test_a_pod_that_requests_more_than_is_ever_counted_starts_never():
    assert earliest(NODE, *THREE, waiting("p", 2**63), waiting("q", 1)) == {"q": 10}


def test_others_of_the_line_do_not_count():
    assert earliest(NODE, *THREE, *(waiting(name, 3, priority=9) for name in "pqr")) == dict.fromkeys("pqr", 30)


def test_the_node_with_room_first_decides_and_room_of_two_is_not_added():
    nodes = [sized("n1", 3), sized("n2", 3), sized("n3", 2)]
    pods = [*THREE, runs("s1", 25, 2, "n2"), runs("s2", 5, 1, "n2"), runs("t", 1, 2, "n3")]
    assert earliest(*nodes, *pods, waiting("p", 3), waiting("q", 2)) == {"p": 25, "q": 1}


def test_only_nodes_that_the_pod_may_go_to_count():
    bound = replace(waiting("p", 1).constraints, node_selector=(("kubernetes.io/hostname", "n2"),))
    world = [NODE, sized("n2", 1), *THREE, runs("s", 50, node="n2"), replace(waiting("p", 1), constraints=bound)]
    assert earliest(*world) == {"p": 50}


def test_a_gang_needs_room_for_as_many_as_it_lacks():
    world = [NODE, sized("n2", 1), *THREE, runs("s", 15, node="n2")]
    assert earliest(*world, *gang("a", "b", "c", cpu=1)) == dict.fromkeys("abc", 20)
    assert earliest(*world, *gang("a", "b", "c", minimum=1, cpu=1)) == dict.fromkeys("abc", 10)
    assert earliest(*world, *gang("a", "b", minimum=3, cpu=1)) == {}


def test_a_job_that_waits_as_a_whole_needs_room_for_all_of_its_pods():
    cluster = seen(NODE, *THREE)
    cluster.upsert_quota(quota())
    cluster.upsert_namespace(Namespace("a", queues_jobs=True))
    cluster.batch_jobs.upsert(BatchJob("a", "train", "j"))
    pods = PodSet(sized_pod("train", 1), 2)
    cluster.queued_jobs.upsert(QueuedJob("a", "train", "j", (pods,), 2, suspended=True), NOW)
    assert [at - NOW for at in forecast(cluster).earliest.values()] == [20]


def test_an_estimate_counts_for_nothing():
    cluster = seen(NODE, runs("r", 0, 3), waiting("p", 3))
    found = forecast(cluster, lambda pod, now: now + 60 if pod.uid == "r" else None)
    assert (found.found["p"].at, found.earliest) == (NOW + 60, {})


def test_room_where_a_pod_is_only_expected_counts_as_free():
    cluster = seen(NODE, runs("r", 10, 2), waiting("p", 1), waiting("q", 1))
    cluster.table.add(cluster.pods["q"], "n1")
    assert forecast(cluster).earliest == {"p": NOW, "q": NOW}


def test_more_kinds_than_are_looked_at_have_none(monkeypatch):
    monkeypatch.setattr(earliest_start, "MOST_KINDS", 2)
    assert len(earliest(NODE, *THREE, *(waiting(f"p{n}", 1 + n / 10) for n in range(4)))) == 2


def test_unlike_members_of_a_gang_are_walked_once_for_all_of_them():
    def lines(number):
        members = (waiting(f"p{each}", 1 + each / 1000, group=GANG) for each in range(number))
        cluster = seen(NODE, *THREE, Group("a", GANG, number), *members)
        return lines_of(lambda _: at_once(earliest_start.earliest_steps(cluster, [], NOW)), None)

    assert lines(100) - lines(50) < 1.2 * (lines(50) - lines(0))


def test_no_step_takes_longer_for_more_pods():
    def longest(number):
        pods = [runs(f"r{each}", 1 + each, 0.001) for each in range(number)]
        cluster = seen(sized("n1", 3, size={"pods": 10**4}), *pods, *(waiting(f"p{each}") for each in range(number)))
        ends = [(NOW + 1, each.uid) for each in pods]
        return longest_step(earliest_start.earliest_steps(cluster, ends, NOW))

    longest(10)
    assert longest(400) <= longest(200) + 20
