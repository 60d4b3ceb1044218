"""When pods that wait will start, by the run times of those that run. See docs/time.md."""

from dataclasses import replace

import pytest

from policy.objects.batch_job import BatchJob
from policy.objects.membership import Namespace
from policy.objects.queued_job import PodSet, QueuedJob
from policy.reserve.starving import Terms
from policy.simulate import expected_start
from policy.simulate.expected_start import Forecast
from policy.stepwise import at_once
from tests.unit.given import quota
from tests.unit.given_jobs import NOW, gang, seen, sized, sized_pod, waiting


def runs(name, size=3, node="n1", started=NOW, **fields):
    return replace(sized_pod(name, size, node=node), started=started, **fields)


def forecast(cluster, epoch=0.0):
    found = Forecast(cluster, Terms(), NOW, epoch)
    assert at_once(found.play_steps())
    return {uid: (each.at - NOW - epoch, each.after) for uid, each in found.found.items()}


def starts(*objects):
    cluster = seen(*objects)
    return {cluster.pods[uid].name: told for uid, told in forecast(cluster).items()}


def test_a_pod_starts_when_the_one_in_its_way_ends():
    assert starts(sized("n1"), runs("run", run_time=60), waiting("p", 3)) == {"p": (60, ("a/run",))}


def test_those_that_have_started_end_in_turn():
    in_line = [replace(waiting(name, 3, priority=-1 - number), run_time=100) for number, name in enumerate("pqr")]
    found = starts(sized("n1"), runs("run", run_time=60), *in_line)
    assert {name: at for name, (at, _) in found.items()} == {"p": 60, "q": 160, "r": 260}
    assert found["r"][1] == ("a/q",)


def test_a_pod_for_which_there_is_room_starts_now():
    assert starts(sized("n1"), sized_pod("p", 3)) == {"p": (0, ())}


@pytest.mark.parametrize(
    "run", [{}, {"run_time": 60, "started": NOW - 100}, {"run_time": -1}], ids=["unknown", "outlived", "unreadable"]
)
def test_a_pod_whose_end_nobody_knows_never_ends(run):
    assert starts(sized("n1"), runs("run", **run), waiting("p", 3)) == {}


def test_a_pod_that_is_beyond_its_enforced_end_ends_soon():
    assert starts(sized("n1"), runs("run", deadline=60, started=NOW - 100), waiting("p", 3)) == {"p": (1, ("a/run",))}


def test_a_terminating_pod_leaves_when_its_grace_is_over():
    going = runs("going", terminating=True, deletion_time=NOW + 30)
    assert starts(sized("n1"), going, waiting("p", 3)) == {"p": (30, ("a/going",))}


@pytest.mark.parametrize(("late", "found"), [(10, {"p": (1, ("a/going",))}), (100, {})], ids=["soon", "stuck"])
def test_a_pod_that_should_be_gone_for_long_never_ends(late, found):
    cluster = seen(sized("n1"), runs("going", terminating=True, deletion_time=NOW - late), waiting("p", 3))
    cluster.leaving.pass_time(NOW)
    assert forecast(cluster) == found


@pytest.mark.parametrize("epoch", [0.0, 1000.0])
def test_a_pod_starts_when_min_run_time_no_longer_protects_a_borrower(epoch):
    cluster = seen(sized("n1"), replace(runs("run", started=NOW + epoch), namespace="b"), waiting("p", 3))
    cluster.upsert_quota(quota("a", least={"cpu": 3}))
    cluster.upsert_quota(replace(quota("b"), min_run_time=100))
    [(at, after)] = forecast(cluster, epoch).values()
    assert (round(at, 1), after) == (100, ())


def test_a_gang_starts_when_there_is_room_for_all_of_it():
    objects = sized("n1"), sized("n2"), runs("r1", run_time=60), runs("r2", node="n2", run_time=90)
    assert {at for at, _ in starts(*objects, *gang("m0", "m1")).values()} == {90}


def test_of_many_that_end_only_some_are_named():
    ending = [runs(f"run-{number}", 1, run_time=60) for number in range(3)]
    assert starts(sized("n1"), *ending, waiting("p", 3))["p"] == (60, ("a/run-0", "a/run-1", "a/run-2"))


def test_a_job_that_waits_as_a_whole_starts_with_its_first_pod():
    cluster = seen(sized("n1"), runs("run", run_time=60))
    cluster.upsert_namespace(Namespace("a", queues_jobs=True))
    cluster.batch_jobs.upsert(BatchJob("a", "train", "j", ours=True))
    pods = PodSet(sized_pod("train", 3), 1)
    cluster.queued_jobs.upsert(QueuedJob("a", "train", "j", (pods,), 1, suspended=True), NOW)
    assert forecast(cluster) == {"job/j": (60, ("a/run",))}


def test_the_clock_of_the_cluster_may_be_another_than_that_of_kubernetes():
    cluster = seen(sized("n1"), runs("run", run_time=60, started=NOW + 1000), waiting("p", 3))
    assert forecast(cluster, epoch=1000.0) == {"p": (60, ("a/run",))}


def test_it_gives_up_where_too_much_comes(monkeypatch):
    monkeypatch.setattr(expected_start, "MOST_MOMENTS", 1)
    found = Forecast(seen(sized("n1"), runs("run", run_time=60), waiting("p", 3)), Terms(), NOW, 0.0)
    assert at_once(found.play_steps()) is False


def test_what_nobody_says_may_be_estimated_and_all_that_follows_is_so_too():
    def after_a_minute(pod, now):
        return (pod.started or now) + 60 if pod.name != "odd" else None

    first, last = (replace(waiting(name, 3, priority=-1 - number), run_time=30) for number, name in enumerate("pq"))
    declared, odd = runs("said", 3, node="n2", run_time=20), runs("odd", node="n3", run_time=-1)
    cluster = seen(sized("n1"), sized("n2"), sized("n3"), runs("run"), declared, odd, first, last)
    found = Forecast(cluster, Terms(), NOW, 0.0, after_a_minute)
    assert at_once(found.play_steps())
    told = {cluster.pods[uid].name: (each.at - NOW, each.basis) for uid, each in found.found.items()}
    assert told == {"p": (20, "declared"), "q": (50, "declared")}
    cluster = seen(sized("n1"), runs("run"), first, last)
    found = Forecast(cluster, Terms(), NOW, 0.0, after_a_minute)
    assert at_once(found.play_steps())
    told = {cluster.pods[uid].name: (each.at - NOW, each.basis) for uid, each in found.found.items()}
    assert told == {"p": (60, "estimated"), "q": (90, "estimated")}
