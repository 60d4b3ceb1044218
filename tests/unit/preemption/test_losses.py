"""Nobody's Job is failed by a take-back while another victim would do."""

from dataclasses import replace

import pytest

from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.objects.batch_job import FAIL_JOB, IGNORE, BatchJob
from policy.objects.membership import Namespace
from policy.objects.pod import JobMember, Pod
from policy.preemption.joint_plans import plans_for_all_steps
from policy.preemption.losses import lost_jobs
from policy.preemption.plans import Plan
from policy.preemption.reclaim import reservation_of
from policy.preemption.victims import plan, victims_on
from policy.quota.admission import Rules
from policy.stepwise import at_once
from tests.unit.given import pod, quota
from tests.unit.given_nodes import labelled, node
from tests.unit.preemption.test_victims import LOANS, gang, gone, gone_from, me, run, with_gangs

SPARE = Rules(spare_jobs=True)


def of_job(uid: str, job: str = "train", namespace: str = "b", **rest) -> Pod:
    return run(uid, namespace, owner="Job", job=JobMember(job, job, tracked=True), **rest)


def batch_job(name: str = "train", limit: int = 0, namespace: str = "b", **rest) -> BatchJob:
    return BatchJob(namespace, name, name, backoff_limit=limit, **rest)


def world(*objects, rules: Rules | None = None) -> Cluster:
    jobs = [each for each in objects if isinstance(each, BatchJob)]
    cluster = with_gangs(*(each for each in objects if not isinstance(each, BatchJob)))
    cluster.rules = rules or cluster.rules
    for each in jobs:
        cluster.batch_jobs.upsert(each)
    return cluster


# On one node


@pytest.mark.parametrize("response", [IGNORE, FAIL_JOB])
def test_a_pod_whose_job_would_fail_goes_last_whatever_its_age_and_priority(response):
    newer = of_job("j", cpu=1, started=9.0)
    older = run("p", cpu=1, started=1.0, priority=5)
    least = run("q", cpu=2, priority=9)
    cluster = world(node(), *LOANS, newer, older, least, batch_job(limit=9, response=response))
    assert gone(cluster, me(1)) == ({"p"} if response == FAIL_JOB else {"j"})


def test_it_goes_if_nobody_else_will_do_and_the_plan_names_the_job():
    cluster = world(node(), *LOANS, *(of_job(f"j{number}") for number in range(4)), batch_job())
    found = plan(cluster, me(1))
    assert isinstance(found, Plan)
    assert set(found.lost.failing.values()) == {"b/train"}
    assert len(found.victims) == 1


def test_with_spare_jobs_it_does_not_go_even_then():
    four = [of_job(f"j{number}") for number in range(4)]
    assert gone(world(node(), *LOANS, *four, batch_job(), rules=SPARE), me(1)) == "protected"
    assert gone(world(node(), *LOANS, *four, batch_job(limit=1), rules=SPARE), me(1)) != "protected"
    assert gone_from(world(node(), *LOANS, *four, batch_job(), rules=SPARE), me(1, priority=9)) == set()


def test_with_spare_jobs_as_many_go_as_the_job_bears():
    four = [of_job(f"j{number}") for number in range(4)]
    assert len(gone(world(node(), *LOANS, *four, batch_job(limit=2), rules=SPARE), me(2))) == 2
    assert gone(world(node(), *LOANS, *four, batch_job(limit=1), rules=SPARE), me(2)) == "protected"


def test_naming_a_job_that_nobody_knows_makes_a_pod_no_safer_than_last():
    forged = [of_job(f"j{number}", "made-up") for number in range(4)]
    for rules in (None, SPARE):
        cluster = world(node(), *LOANS, *forged, batch_job("another"), rules=rules)
        assert len(gone(cluster, me(1))) == 1
    cluster = world(node(), *LOANS, forged[0], run("p"), run("q", cpu=2), batch_job("another"))
    assert gone(cluster, me(1)) == {"p"}


def test_where_no_job_is_known_a_reference_to_one_changes_nothing():
    forged = of_job("j", started=9.0)
    assert gone(world(node(), *LOANS, forged, run("p", started=1.0), run("q", cpu=2)), me(1)) == {"j"}


def test_of_a_job_that_bears_one_failure_one_goes_and_then_another_pod():
    pods = [of_job("j1", started=9.0), of_job("j2", started=8.0), run("p", started=1.0), run("q", started=0.5)]
    cluster = world(node(), *LOANS, *pods, batch_job(limit=1))
    found = gone(cluster, me(2))
    assert "p" in found
    assert len(found & {"j1", "j2"}) == 1


def test_of_two_jobs_one_fails_and_not_both():
    pods = [of_job("x1", "x", started=4.0), of_job("y1", "y", started=3.0)]
    pods += [of_job("x2", "x", started=2.0), of_job("y2", "y", started=1.0)]
    found = plan(world(node(), *LOANS, *pods, batch_job("x"), batch_job("y")), me(2))
    assert isinstance(found, Plan)
    assert len(set(found.lost.failing.values())) == 1


def test_ones_own_less_important_pod_goes_before_another_teams_job_fails():
    pods = [of_job("j", cpu=1), run("q", cpu=1), run("own", "a", cpu=2, priority=-5)]
    quotas = quota("a", least={"cpu": 3}), quota("b", least={"cpu": 1})
    assert gone(world(node(), *quotas, *pods[:1], pods[2], run("q", cpu=1), batch_job()), me(1)) == {"q"}
    protected = run("q", cpu=1, preemptible=False)
    assert gone(world(node(), *quotas, pods[0], protected, pods[2], batch_job()), me(1)) == {"own"}


def test_a_budget_is_heeded_before_a_job():
    pods = [of_job("j"), run("p", labels={"app": "web"}), run("q", "a", cpu=2)]
    quotas = quota("a", least={"cpu": 3}), quota("b", least={"cpu": 1})
    budget = Budget("b", "web", labelled(app="web"), allowed=0)
    assert gone(world(node(), *quotas, *pods, budget, batch_job()), me(1)) == {"j"}


def test_whom_others_protect_goes_although_a_job_fails_if_nothing_else_makes_room():
    """The small one would end the loan, and the large one is needed."""
    quotas = quota("a", least={"cpu": 2}), quota("b", least={"cpu": 2})
    pods = [of_job("j", cpu=2), run("p", cpu=1)]
    assert gone(world(node(size={"cpu": 3}), *quotas, *pods, batch_job()), me(2)) == {"j"}


# Over all nodes


def test_a_plan_that_fails_no_job_is_better_than_one_that_does_wherever_it_is():
    cheap = [of_job("j", cpu=4, on="n1", priority=-9)]
    dear = [run("p", cpu=4, on="n2", priority=9)]
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 4})
    assert gone(world(node("n1"), node("n2"), *quotas, *cheap, *dear, batch_job()), me(4)) == {"p"}


def test_preemption_is_offered_a_node_where_a_job_fails_beside_one_over_a_budget():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 4})
    pods = [of_job("j", cpu=4, on="n1"), run("p", cpu=4, on="n2", labels={"app": "web"})]
    budget = Budget("b", "web", labelled(app="web"), allowed=0)
    cluster = world(node("n1"), node("n2"), *quotas, *pods, budget, batch_job())
    assert [each.node for each in victims_on(cluster, me(4, priority=10), ["n1", "n2"])] == ["n1", "n2"]


def test_more_nodes_are_looked_at_as_long_as_a_job_would_fail():
    nodes = [node(f"n{number:03}", size={"cpu": 1}) for number in range(151)]
    fragile = [of_job(f"j{number}", f"x{number}", on=f"n{number:03}") for number in range(150)]
    jobs = [batch_job(f"x{number}") for number in range(150)]
    quotas = quota("a", least={"cpu": 151}), quota("b", least={"cpu": 0})
    assert gone(world(*nodes, *quotas, *fragile, run("p", on="n150", priority=9), *jobs), me(1)) == {"p"}


def test_preemption_is_offered_no_node_where_a_job_fails_if_there_is_another():
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 4})
    pods = [of_job("j", cpu=4, on="n1", priority=-9), run("p", cpu=4, on="n2")]
    there = [node("n1"), node("n2"), *quotas, *pods]
    both = victims_on(world(*there, batch_job(limit=3)), me(4, priority=10), ["n1", "n2"])
    assert [each.node for each in both] == ["n1", "n2"]
    one = victims_on(world(*there, batch_job()), me(4, priority=10), ["n1", "n2"])
    assert [each.node for each in one] == ["n2"]
    assert [each.node for each in victims_on(world(*there, batch_job()), me(4, priority=10), ["n1"])] == ["n1"]


def test_where_the_quota_is_in_the_way_on_free_nodes_pods_of_jobs_go_last_too():
    nodes = [node(name, size={"cpu": 9}) for name in ("n1", "n2")]
    pods = [of_job("j", namespace="a", on="n1", priority=1), run("p", "a", on="n2", priority=2)]
    cluster = world(*nodes, quota("a", most={"cpu": 2}), *pods, batch_job(namespace="a"))
    assert gone(cluster, me(1, priority=9)) == {"p"}


# Gangs, and plans one after the other


def test_a_gang_whose_job_would_fail_by_all_of_it_goes_after_another_pod():
    members = [of_job(f"g{number}", group="g") for number in range(2)]
    group = gang(minimum=2)
    pods = [*members, run("p", started=0.1), run("q", "a")]
    quotas = quota("a", least={"cpu": 3}), quota("b", least={"cpu": 1})
    assert gone(world(node(), *quotas, *group, *pods, batch_job(limit=1)), me(1)) == {"p"}


def test_with_spare_jobs_a_gang_stays_if_a_job_of_any_member_would_fail():
    members = [run("g0", group="g"), of_job("g1", group="g"), run("p", priority=9), run("q", "a")]
    quotas = quota("a", least={"cpu": 3}), quota("b", least={"cpu": 0})
    there = [node(), *quotas, *gang(minimum=2), *members, batch_job()]
    assert gone(world(*there, rules=SPARE), me(1)) == {"p"}
    assert gone(world(*there, rules=SPARE), me(2)) == "protected"


def test_plans_that_are_under_way_count_for_the_next():
    quotas = quota("a", least={"cpu": 2}), quota("b", least={"cpu": 2})
    pods = [of_job(f"j{number}", started=9.0) for number in range(2)] + [run("p", started=1.0), run("q", started=0.5)]
    cluster = world(node(), *quotas, *pods, batch_job(limit=1))
    first = plan(cluster, pod("me1", "a"))
    assert isinstance(first, Plan)
    assert {victim.uid for victim in first.victims} <= {"j0", "j1"}
    cluster.upsert_pod(pod("me1", "a"), 0)
    cluster.upsert_reservation(reservation_of(first, 0.0))
    assert gone(cluster, pod("me2", "a")) == {"p"}


def test_plans_for_a_gang_count_together():
    quotas = quota("a", least={"cpu": 2}), quota("b", least={"cpu": 2})
    pods = [of_job(f"j{number}", started=9.0) for number in range(2)] + [run("p", started=1.0), run("q", started=0.5)]
    cluster = world(node(), *quotas, *pods, batch_job(limit=1))
    plans = at_once(plans_for_all_steps(cluster, [pod("m1", "a"), pod("m2", "a")]))
    assert not any(each.lost.failing for each in plans)


def test_of_ones_own_that_have_to_go_first_pods_of_jobs_go_last_too():
    """It is entitled to three cores once one of its own has gone."""
    quotas = quota("a", least={"cpu": 4}), quota("b", least={"cpu": 0})
    own = [of_job("j", namespace="a", priority=1), run("own", "a", priority=2)]
    cluster = world(node(), *quotas, *own, run("lent1"), run("lent2"), batch_job(namespace="a"))
    assert gone(cluster, me(3, priority=9)) == {"own", "lent1", "lent2"}


# Jobs that wait as a whole are taken back as a whole, and never pod by pod


def queued(*objects, namespace: str = "b", **options) -> Cluster:
    """Jobs of the namespace wait as a whole."""
    jobs = (replace(each, ours=True) if isinstance(each, BatchJob) else each for each in objects)
    cluster = world(*jobs, **options)
    cluster.upsert_namespace(Namespace(namespace, queues_jobs=True))
    return cluster


def test_its_pods_go_after_those_of_nobody_s_job():
    newer, older = of_job("j", cpu=1, started=9.0), run("p", cpu=1, started=1.0, priority=5)
    assert gone(queued(node(), *LOANS, newer, older, run("q", cpu=2, priority=9), batch_job(limit=9)), me(1)) == {"p"}


def test_its_pods_go_before_those_of_a_job_that_would_fail():
    whole, fails = of_job("j", cpu=1, priority=5), [of_job(f"k{number}", "fragile", cpu=1) for number in (0, 1)]
    cluster = queued(node(), *LOANS, run("own", "a"), whole, *fails, batch_job())
    cluster.batch_jobs.upsert(batch_job("fragile"))  # another controller runs it
    assert gone(cluster, me(1)) == {"j"}


def test_a_plan_names_the_job_that_is_suspended_and_no_job_that_fails():
    four = [of_job(f"j{number}") for number in range(4)]
    found = plan(queued(node(), *LOANS, *four, batch_job()), me(1))
    assert isinstance(found, Plan)
    assert (set(found.lost.suspending.values()), found.lost.failing) == ({"b/train"}, {})


def test_with_spare_jobs_it_goes_all_the_same_as_it_never_fails():
    four = [of_job(f"j{number}") for number in range(4)]
    assert len(gone(queued(node(), *LOANS, *four, batch_job(), rules=SPARE), me(1))) == 1


def test_the_scheduler_is_told_none_of_its_pods_as_it_would_evict_them_one_by_one():
    four = [of_job(f"j{number}") for number in range(4)]
    cluster = queued(node(), *LOANS, *four, batch_job(limit=9))
    assert victims_on(cluster, me(1), ["n1"]) == []
    cluster.upsert_namespace(Namespace("b"))
    assert victims_on(cluster, me(1), ["n1"]) != []


@pytest.mark.parametrize("change", [{"ours": False}, {"ended": True}])
def test_a_job_that_another_controller_runs_or_that_has_ended_is_taken_pod_by_pod(change):
    four = [of_job(f"j{number}") for number in range(4)]
    cluster = queued(node(), *LOANS, *four, batch_job(limit=9))
    cluster.batch_jobs.upsert(replace(batch_job(limit=9), **{"ours": True, **change}))
    found = plan(cluster, me(1))
    assert isinstance(found, Plan)
    assert found.lost.suspending == {}


def test_of_a_job_that_is_being_suspended_the_other_pods_cost_no_job():
    first, second = of_job("j0"), of_job("j1")
    cluster = queued(node(), *LOANS, first, second, batch_job())
    assert lost_jobs(cluster.batch_jobs, [second], []).suspending == {"j1": "b/train"}
    assert lost_jobs(cluster.batch_jobs, [second], [first]).suspending == {}


# An elastic Job is lowered first, and suspended only below its minimum


def elastic(runs: int, least: int) -> BatchJob:
    return batch_job(parallelism=runs, runs=runs, least=least, asked=runs)


def costs(runs: int, least: int, taken: int, job: BatchJob | None = None) -> tuple[int, int]:
    """How many Jobs are lowered, and suspended, if so many pods are taken of an elastic one that runs so many."""
    pods = [of_job(f"j{number}") for number in range(4)]
    cluster = queued(node(), *LOANS, *pods, job or elastic(runs, least))
    lost = lost_jobs(cluster.batch_jobs, pods[:taken], [])
    return len(set(lost.lowering.values())), len(set(lost.suspending.values()))


@pytest.mark.parametrize(
    ("runs", "least", "taken", "found"),
    [
        (4, 2, 1, (1, 0)),
        (4, 2, 2, (1, 0)),
        (4, 2, 3, (0, 1)),
        (4, 4, 1, (0, 1)),
        (2, 2, 1, (0, 1)),
        (4, 0, 1, (0, 1)),
        (0, 2, 1, (0, 0)),
    ],
    ids=str,
)
def test_an_elastic_job_is_lowered_as_long_as_its_minimum_stays(runs, least, taken, found):
    assert costs(runs, least, taken) == found


def test_its_pods_above_the_minimum_cost_no_more_than_those_of_nobody_s_job():
    newer, older = of_job("j", cpu=1, started=9.0), run("p", cpu=1, started=1.0)
    rest = [run("q", cpu=2, priority=9)]
    assert gone(queued(node(), *LOANS, newer, older, *rest, elastic(2, 1)), me(1)) == {"j"}
    assert gone(queued(node(), *LOANS, newer, older, *rest, elastic(1, 1)), me(1)) == {"p"}


def test_a_plan_takes_no_more_of_it_than_its_minimum_allows_where_others_do():
    pods = [of_job(f"j{number}", cpu=1, started=9.0) for number in range(3)]
    cluster = queued(node(), *LOANS, *pods, run("p", cpu=1, started=1.0, priority=5), elastic(3, 2))
    found = plan(cluster, me(2))
    assert isinstance(found, Plan)
    assert {victim.uid for victim in found.victims} >= {"p"}
    assert (len(found.victims), found.lost.suspending, set(found.lost.lowering.values())) == (2, {}, {"b/train"})


def test_a_plan_says_that_it_lowers_the_job():
    pods = [of_job(f"j{number}") for number in range(4)]
    found = plan(queued(node(), *LOANS, *pods, elastic(4, 1)), me(1))
    assert isinstance(found, Plan)
    assert found.lost.text == "this lowers the parallelism of Job b/train: its controller chooses which pods go"


def test_the_scheduler_is_told_none_of_the_pods_of_an_elastic_job_either():
    pods = [of_job(f"j{number}") for number in range(4)]
    assert victims_on(queued(node(), *LOANS, *pods, elastic(4, 1)), me(1), ["n1"]) == []
