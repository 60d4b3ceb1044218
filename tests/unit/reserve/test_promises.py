"""Backfill: short pods use reserved nodes meanwhile, and the promised start of the job is kept.

The example in numbers: one node of 8 cores; ``r1`` has 4 and ends after 60 minutes, ``r2`` has 2 and ends after 30;
``big`` wants all 8, starves, and is promised its start in 60 minutes.
"""

from dataclasses import replace

import pytest

from policy.cluster.budgets import Budget
from policy.explain.remedy import Need
from policy.explain.room_remedies import for_room
from policy.objects.batch_job import BatchJob
from policy.objects.constraints import Selector
from policy.objects.pod import JobMember
from policy.objects.reservation import STARVING, PodName, Reservation
from policy.quota.admission import Rules
from policy.reserve import promises
from policy.stepwise import at_once
from tests.unit.app.lines import lines_of
from tests.unit.given import quota
from tests.unit.given_jobs import NOW, gang, reserve_all, seen, sized, sized_pod, waiting

MINUTE = 60
GPU = "nvidia.com/gpu"
SIZE = {"cpu": 8, "memory": 64 * 2**30, "pods": 100}


def running(name, cpu, minutes, node="n1", **rest):
    """A pod that runs since NOW, and that the kubelet ends after so many minutes; without minutes nobody does."""
    return sized_pod(name, cpu, node=node, started=NOW, grace=0, deadline=minutes * MINUTE, **rest)


def short(name="s", cpu=2, minutes=0.0, **rest):
    return sized_pod(name, cpu, **{"grace": 0, "deadline": round(minutes * MINUTE)} | rest)


R1, R2 = running("r1", 4, 60), running("r2", 2, 30)


def world(*objects):
    cluster = seen(*objects)
    cluster.protection.pass_time(NOW)
    reserve_all(cluster)
    promise(cluster)
    return cluster


def example(*more):
    return world(sized(size=SIZE), R1, R2, waiting(cpu=8), *more)


def decision(cluster, at=0.0):
    own = list(cluster.reservations.reserved)
    before = max(each.promised_start for each in own)
    return at_once(promises.decide_steps(cluster, own, before, NOW + at * MINUTE))


def promise(cluster, at=0.0):
    """Does what the controller does, and returns what it has decided."""
    decided = decision(cluster, at)
    for each in list(cluster.reservations.reserved):
        cluster.upsert_reservation(promises.noted(each, decided, NOW + at * MINUTE))
    return decided


def promised(cluster):
    """The promised start in minutes, or None."""
    [start] = {each.promised_start for each in cluster.reservations.reserved}
    return (start - NOW) / MINUTE if start else None


def passes(cluster, minutes, *gone):
    cluster.protection.pass_time(NOW + minutes * MINUTE)
    for uid in gone:
        cluster.delete_pod(uid)


def refused(cluster, pod):
    answer = cluster.filter(pod, 0, lambda: ["n1"]).refused
    return answer and answer.rule


def starts(cluster, pod, minutes, node="n1"):
    cluster.upsert_pod(replace(pod, node=node, started=NOW + minutes * MINUTE), now=0)


def test_the_start_is_promised_for_when_the_last_pod_has_ended():
    assert promised(example()) == 60


def test_without_an_enforced_end_of_one_pod_that_has_to_end_nothing_is_promised():
    cluster = world(sized(size=SIZE), running("r1", 4, 0), R2, waiting(cpu=8))
    assert promised(cluster) is None
    assert refused(cluster, short(minutes=1)) == "node-reserved"


def test_a_pod_that_need_not_end_needs_no_end():
    cluster = world(sized(size=SIZE), running("r1", 4, 0), R2, running("r3", 2, 20), waiting(cpu=4))
    assert promised(cluster) == 30


@pytest.mark.parametrize("last", [running("r1", 4, 24 * 60 + 1), replace(R1, grace=10**18)])
def test_nothing_is_promised_more_than_a_day_ahead(last):
    cluster = world(sized(size=SIZE), last, R2, waiting(cpu=8))
    assert promised(cluster) is None
    assert refused(cluster, short(minutes=1)) == "node-reserved"


def test_the_grace_period_comes_on_top():
    assert promised(world(sized(size=SIZE), replace(R1, grace=45), R2, waiting(cpu=8))) == 60.75


@pytest.mark.parametrize(
    ("pod", "at", "rule"),
    [
        (short("s1", 2, 50), 0, None),
        (short("s2", 2, 28), 31, None),
        (short("s2", 2, 28.5), 31, None),
        (short("s3", 2, 29 + 40 / 60), 31, "node-reserved"),
        (short("s4", 2), 31, "node-reserved"),
        (short("said", 2, run_time=60), 31, "node-reserved"),
        (short("slow to end", 2, 28, grace=31), 31, "node-reserved"),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else None,
)
def test_only_who_is_surely_gone_before_may_start_there(pod, at, rule):
    cluster = example()
    passes(cluster, at)
    assert refused(cluster, pod) == rule


def test_the_promise_moves_earlier_by_what_ends_early():
    cluster = example()
    starts(cluster, short("s1", 2, 50), 0)
    passes(cluster, 31, "r2")
    starts(cluster, short("s2", 2, 28), 31)
    assert promise(cluster, 31).moved == ""
    assert promised(cluster) == 60
    passes(cluster, 40, "r1")
    promise(cluster, 40)
    assert promised(cluster) == 59


def test_nobody_comes_before_the_job_once_there_is_room_for_it():
    cluster = example()
    passes(cluster, 10, "r1", "r2")
    assert refused(cluster, short(minutes=1)) == "node-reserved"


def test_a_gang_waits_for_the_last_of_its_nodes_and_the_others_are_used_meanwhile():
    pods = [running("r1", 3, 10, "n1"), running("r2", 3, 20, "n2")]
    cluster = world(sized("n1"), sized("n2"), *pods, *gang("w1", "w2"))
    assert promised(cluster) == 20
    passes(cluster, 11, "r1")
    assert refused(cluster, short("fits", 3, 8)) is None
    assert refused(cluster, short("too long", 3, 9)) == "node-reserved"


def test_who_may_start_takes_few_steps_for_each_node_of_a_gang():
    def lines(nodes):
        names = [f"n{number}" for number in range(nodes)]
        members = gang(*(f"w{number}" for number in range(nodes)))
        cluster = world(*map(sized, names), running("r1", 3, 60, "n0"), *members)

        def ask(pod):
            assert not cluster.filter(pod, 0, lambda: names).failed

        return lines_of(ask, short("s", 1, 30))

    few, many = lines(20), lines(80)
    assert many < 4 * few


def test_a_run_time_that_a_job_enforces_counts_as_it_is_now():
    pod = replace(R1, deadline=0, job=JobMember("j", "j"))
    cluster = seen(sized(size=SIZE), R2, waiting(cpu=8))
    cluster.batch_jobs.upsert(BatchJob("a", "j", "j", ours=True, deadline=3600, started=NOW))
    cluster.upsert_pod(pod, now=0)
    cluster.protection.pass_time(NOW)
    reserve_all(cluster)
    promise(cluster)
    assert promised(cluster) == 60
    cluster.batch_jobs.upsert(BatchJob("a", "j", "j", ours=True, deadline=36_000, started=NOW))
    decided = promise(cluster, 1)
    assert (promised(cluster), [each.name for each in decided.late], decided.moved) == (60, ["r1"], "")
    assert promises.goes_at(pod, NOW + 3600) == NOW + 3600 - promises.LEAD


def of_job(cluster, pod, minutes):
    """Says the deadline of a Job, and returns its pod."""
    cluster.batch_jobs.upsert(BatchJob("a", "j", "j", ours=True, deadline=minutes * MINUTE, started=NOW))
    return replace(pod, job=JobMember("j", "j"))


@pytest.mark.parametrize("started", [0, 1], ids=["in the second of the promise", "later"])
def test_who_opts_out_of_evictions_once_let_in_has_to_go_all_the_same(started):
    cluster = example()
    pod = of_job(cluster, short("s1", 2), 50)
    assert refused(cluster, pod) is None
    starts(cluster, pod, started)
    assert promise(cluster, 2).late == ()
    cluster.upsert_pod(replace(cluster.pods["s1"], preemptible=False), now=0)
    assert promise(cluster, 3).late == ()
    of_job(cluster, pod, 500)
    decided = promise(cluster, 4)
    assert ([each.name for each in decided.late], decided.moved, promised(cluster)) == (["s1"], "", 60)


def evicting(r1):
    """The example in a namespace with a quota, where pods are evicted that outlive what is said of them."""
    cluster = seen(sized(size=SIZE), r1, R2, waiting(cpu=8))
    cluster.upsert_quota(quota())
    cluster.rules = Rules(run_time_grace=55)
    cluster.protection.pass_time(NOW)
    reserve_all(cluster)
    promise(cluster)
    return cluster


def test_where_outlived_pods_are_evicted_a_said_run_time_counts_with_the_grace():
    cluster = evicting(replace(R1, deadline=0, run_time=59 * MINUTE))
    assert promised(cluster) == 60
    assert refused(cluster, short("s1", 2, run_time=58 * MINUTE + 30)) is None
    assert refused(cluster, short("s3", 2, run_time=58 * MINUTE + 31)) == "node-reserved"
    assert refused(cluster, short("s4", 2)) == "node-reserved"


def test_it_helps_nobody_to_say_more_once_it_was_let_in():
    cluster = evicting(R1)
    pod = short("s1", 2, run_time=50 * MINUTE)
    starts(cluster, pod, 1)
    assert promise(cluster, 2).late == ()
    starts(cluster, replace(pod, run_time=500 * MINUTE), 1)
    decided = promise(cluster, 3)
    assert ([each.name for each in decided.late], decided.moved, promised(cluster)) == (["s1"], "", 60)


@pytest.mark.parametrize("change", [{}, {"run_time": 0}], ids=["it says what it said", "it says nothing any more"])
def test_no_budget_keeps_a_pod_that_was_let_in_from_going_in_time(change):
    cluster = evicting(R1)
    pod = short("s1", 2, run_time=50 * MINUTE)
    assert refused(cluster, pod) is None
    cluster.upsert_budget(Budget("a", "b", Selector(()), 0, never=True))
    starts(cluster, replace(pod, **change), 1)
    decided = promise(cluster, 2)
    assert ([each.name for each in decided.late], decided.moved, promised(cluster)) == (["s1"], "", 60)
    assert promise(cluster, 60.4).late
    assert promise(cluster, 60.6).moved == "pods on node n1 have not ended in time"


def test_who_came_without_an_end_into_room_beside_never_has_to_go():
    gpu = {GPU: 2}
    cluster = world(sized(size=SIZE | gpu), running("r1", 1, 60, more=gpu), waiting(cpu=4, more=gpu))
    beside = short("beside", 2)
    assert refused(cluster, beside) is None
    starts(cluster, beside, 1)
    starts(cluster, short("d", 3, owner="DaemonSet"), 2)
    decided = promise(cluster, 3)
    assert (decided.late, decided.moved) == ((), "pods that may not be refused have come to node n1")


def test_an_opt_out_helps_only_before_the_promise_is_looked_at_again():
    cluster = evicting(R1)
    pod = short("s1", 2, run_time=50 * MINUTE)
    starts(cluster, pod, 1)
    assert promise(cluster, 2).late == ()
    starts(cluster, replace(pod, preemptible=False), 1)
    assert [each.name for each in promise(cluster, 3).late] == ["s1"]


@pytest.mark.parametrize(("own", "rule"), [(0, "node-reserved"), (500, "node-reserved"), (50, None)])
def test_of_a_pod_that_may_not_be_evicted_only_its_own_deadline_counts(own, rule):
    cluster = example()
    assert refused(cluster, of_job(cluster, short("s1", 2, own, preemptible=False), 40)) == rule


@pytest.mark.parametrize(("own", "start"), [(0, None), (60, 60)])
def test_a_promise_relies_on_no_deadline_that_may_be_raised_without_eviction(own, start):
    cluster = seen(sized(size=SIZE), R2, waiting(cpu=8))
    cluster.upsert_pod(of_job(cluster, running("r1", 4, own, preemptible=False), 40), now=0)
    cluster.protection.pass_time(NOW)
    reserve_all(cluster)
    promise(cluster)
    assert promised(cluster) == start


def test_who_ran_before_and_opts_out_moves_the_promise():
    cluster = seen(sized(size=SIZE), R2, waiting(cpu=8))
    pod = replace(of_job(cluster, running("r1", 4, 0), 60), started=NOW - 1)
    cluster.upsert_pod(pod, now=0)
    cluster.protection.pass_time(NOW)
    reserve_all(cluster)
    promise(cluster)
    assert promised(cluster) == 60
    cluster.upsert_pod(replace(pod, preemptible=False), now=0)
    of_job(cluster, pod, 500)
    decided = promise(cluster, 1)
    assert (decided.late, decided.moved) == ((), "node n1 has changed, or what stands there")


def test_who_opted_out_before_it_came_stays_where_the_promise_moves_earlier():
    cluster = world(sized(size=SIZE), R1, R2, waiting(cpu=6))
    starts(cluster, short("s1", 2, 50, preemptible=False), 1)
    promise(cluster, 2)
    assert (promised(cluster), next(iter(cluster.reservations.reserved)).due) == (60, ("r1", "r2", "s1"))
    passes(cluster, 3, "r1")
    promise(cluster, 3)
    assert promised(cluster) == 30
    starts(cluster, short("d", 2, owner="DaemonSet"), 5)
    decided = promise(cluster, 6)
    assert (decided.late, decided.moved) == ((), "pods that may not be refused have come to node n1")


def test_who_was_let_in_late_has_to_go_in_time():
    cluster = example()
    starts(cluster, short("s1", 2, 50), 15)
    decided = promise(cluster, 16)
    assert ([each.name for each in decided.late], promised(cluster)) == (["s1"], 60)


def test_who_is_within_the_room_beside_never_has_to_go():
    cluster = world(sized(size=SIZE), running("r1", 4, 60), waiting(cpu=6))
    starts(cluster, short("beside", 2), 1)
    starts(cluster, short("late", 2, 500), 2)
    assert [each.name for each in promise(cluster, 3).late] == ["late"]


def test_nobody_goes_whose_end_gives_nothing_that_the_job_lacks():
    gpu = {GPU: 2}
    holder = sized_pod("holder", 1, more=gpu, node="n1", started=NOW, grace=0, job=JobMember("j", "j"))
    cluster = seen(sized(size=SIZE | gpu), waiting(cpu=1, more=gpu))
    cluster.batch_jobs.upsert(BatchJob("a", "j", "j", ours=True, deadline=3600, started=NOW))
    cluster.upsert_pod(holder, now=0)
    cluster.protection.pass_time(NOW)
    reserve_all(cluster)
    promise(cluster)
    starts(cluster, short("beside", 2, 500), 1)
    assert promise(cluster, 2).late == ()
    cluster.batch_jobs.upsert(BatchJob("a", "j", "j", ours=True, deadline=36_000, started=NOW))
    assert [each.name for each in promise(cluster, 2).late] == ["holder"]


def test_who_came_by_a_short_run_time_goes_before_who_had_room_anyway():
    size = SIZE | {GPU: 3}
    cluster = world(sized(size=size), running("r1", 1, 60, more={GPU: 2}), waiting(cpu=4, more={GPU: 2}))
    starts(cluster, short("short", 2, 500, more={GPU: 1}), 1)
    starts(cluster, short("beside", 1, 500), 2)
    starts(cluster, short("d", 2, owner="DaemonSet"), 3)
    assert [each.name for each in promise(cluster, 4).late] == ["short"]


def test_nobody_goes_for_whom_there_is_room_once_others_have_gone():
    cluster = world(sized(size=SIZE), running("r1", 4, 60), waiting(cpu=6))
    starts(cluster, short("large", 3, 500), 1)
    starts(cluster, short("small", 1, 500), 2)
    assert [each.name for each in promise(cluster, 3).late] == ["large"]


def test_the_last_to_come_goes_where_it_is_enough():
    cluster = world(sized(size=SIZE), running("r1", 4, 60), waiting(cpu=6))
    starts(cluster, short("earlier", 2, 500), 1)
    starts(cluster, short("later", 2, 500), 2)
    assert [each.name for each in promise(cluster, 3).late] == ["later"]


def test_a_promise_takes_few_steps_for_each_pod_on_its_way():
    def lines(granted):
        cluster = seen(sized(size=SIZE | {"pods": 10_000}), R1)
        cluster.protection.pass_time(NOW)
        for number in range(granted):
            cluster.filter(short(f"s{number}", 0.001, 10 + number), 0, lambda: ["n1"])
        cluster.upsert_pod(waiting(cpu=8), now=0)
        cluster.upsert_reservation(Reservation("r", PodName("a", "big", "big"), "n1", (), NOW, STARVING, job="Pod/big"))
        assert len(list(cluster.reservations.nodes.may_come())) == granted
        return lines_of(decision, cluster)

    few, many = lines(100), lines(300)
    assert many < 4 * few


def test_who_came_before_the_promise_and_need_not_end_never_has_to_go():
    cluster = world(sized(size=SIZE), running("r1", 4, 60), running("long", 2, 500), waiting(cpu=6))
    cluster.upsert_node(sized(size=SIZE | {"cpu": 7}))
    decided = promise(cluster, 1)
    assert (decided.late, decided.moved) == ((), "node n1 has changed, or what stands there")
    assert promised(cluster) == 500


def test_a_pod_that_may_not_be_refused_moves_the_promise_and_the_reason_is_kept():
    cluster = world(sized(size=SIZE), running("r1", 4, 60), waiting(cpu=8))
    starts(cluster, short("d", 1, owner="DaemonSet"), 1)
    decided = promise(cluster, 2)
    [kept] = cluster.reservations.reserved
    assert decided.moved == kept.moved == "pods that may not be refused have come to node n1"
    assert promised(cluster) is None


def test_a_lost_node_moves_the_promise():
    cluster = example()
    cluster.upsert_node(sized(size=SIZE, ready=False))
    assert promise(cluster, 1).moved == "node n1 was lost"


def test_a_pod_that_ignores_its_end_goes_and_the_promise_moves_only_if_it_stays():
    cluster = example()
    passes(cluster, 60.3, "r2")
    assert [each.name for each in promise(cluster, 60.3).late] == ["r1"]
    assert promised(cluster) == 60
    assert promise(cluster, 60.6).moved == "pods on node n1 have not ended in time"


def test_pods_that_were_let_in_before_the_node_was_reserved_count():
    cluster = seen(sized(size=SIZE), R1, waiting(cpu=8))
    cluster.protection.pass_time(NOW)
    late = short("late", 2, 100)
    assert cluster.filter(late, 0, lambda: ["n1"]).refused is None
    reserve_all(cluster)
    promise(cluster)
    assert promised(cluster) == 100.5  # it may take as long as the margin to start


def test_pods_that_were_kept_from_the_node_do_not_count():
    cluster = world(sized("n1", size=SIZE), sized("n2", 2), R1, waiting(cpu=8))
    endless = short("endless", 2)
    assert cluster.filter(endless, 0, lambda: ["n1", "n2"]).failed.keys() == {"n1"}
    promise(cluster, 1)
    assert promised(cluster) == 60


def test_the_job_comes_before_another_for_which_its_node_was_reserved_later():
    first, second = waiting("first", 4), waiting("second", 4, age=7100)
    cluster = world(sized(size=SIZE), sized("n2", 2), R1, running("r2", 4, 30), first, second)
    assert len(cluster.reservations.reserved) == 2
    passes(cluster, 31, "r2")
    assert refused(cluster, first) is None
    assert refused(cluster, second) == "node-reserved"


def ways(cluster, *pods):
    """The sorts and the texts of what is suggested to pods that want room."""
    return {each.sort: each for each in for_room(Need(cluster, pods, ())) if each is not None}


def test_who_is_kept_from_a_promised_node_is_told_first_how_short_it_has_to_be():
    pod = sized_pod("s", 2, grace=10)
    cluster = example(pod)
    found = ways(cluster, pod)
    told = "a pod that surely ends by 14:47 UTC may start on node n1: set activeDeadlineSeconds of a/s to at most 3540"
    assert found["backfill"].text == told
    assert next(iter(found)) == "backfill"
    assert list(found)[-1] == "unreserve"
    assert found["unreserve"].text.startswith("wait until a/big has started, which has reserved nodes, or")
    assert refused(cluster, replace(pod, deadline=3540)) is None
    assert refused(cluster, replace(pod, deadline=3600)) == "node-reserved"


@pytest.mark.parametrize(("grace", "offered"), [(60 * MINUTE - 30 - MINUTE, True), (60 * MINUTE - 30 - 59, False)])
def test_no_deadline_is_suggested_that_leaves_no_time(grace, offered):
    pod = sized_pod("s", 2, grace=grace)
    assert ("backfill" in ways(example(pod), pod)) is offered


def test_without_a_promise_no_deadline_is_suggested():
    pod = sized_pod("s", 2)
    found = ways(world(sized(size=SIZE), replace(R1, deadline=0), R2, waiting(cpu=8), pod), pod)
    assert "backfill" not in found
    assert list(found)[-1] == "unreserve"
