"""The limit on run times (``quotaward.dev/max-run-time``): who is refused, and what follows. See docs/time.md."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.explain.verdicts import verdict_on
from policy.objects.batch_job import BatchJob
from policy.objects.group import Group
from policy.objects.pod import JobMember
from policy.objects.run_time import UNREADABLE
from policy.queueing.waking import to_wake
from policy.quota.admission import refusal_of_all
from policy.quota.run_time_limit import RULE
from policy.simulate.snapshot import copy_steps, snapshot
from policy.stepwise import at_once
from tests.unit.app.lines import lines_once
from tests.unit.given import cluster_of, pod, quota, refused_for, wait_for_room
from tests.unit.given_gates import gate, gated, ungated
from tests.unit.given_queues import divided, queue, world

HOUR = 3600
JOB = BatchJob("a", "train", "j", ours=True)
OF_JOB = JobMember("j", "train")
REFUSED = refused_for(RULE, "")


def limited(of_quota=0, of_queue=0, above=0, **of_pod) -> Cluster:
    """A pod of namespace a, whose queue q stands below another one. Each of them has a limit, or none."""
    queues = [queue("top", max_run_time=above), queue("q", parent="top", max_run_time=of_queue)]
    cluster = world(*queues, "a:q")
    cluster.upsert_quota(replace(quota("a", most={"cpu": 9}), max_run_time=of_quota))
    cluster.upsert_pod(pod("p", "a", **of_pod), now=0)
    return cluster


def refuses(cluster: Cluster, uid: str = "p") -> bool:
    found = cluster.check(cluster.pods[uid])
    assert found is None or found == RULE.refusal()
    return found is not None


@pytest.mark.parametrize(
    ("of_quota", "of_queue", "above", "said", "refused"),
    [
        (0, 0, 0, {}, False),
        (HOUR, 0, 0, {}, True),
        (HOUR, 0, 0, {"run_time": HOUR}, False),
        (HOUR, 0, 0, {"run_time": HOUR + 1}, True),
        (HOUR, 0, 0, {"deadline": HOUR}, False),
        (HOUR, 0, 0, {"deadline": HOUR + 1}, True),
        (HOUR, 0, 0, {"run_time": 2 * HOUR, "deadline": HOUR}, False),
        (HOUR, 0, 0, {"run_time": UNREADABLE}, True),
        (HOUR, 0, 0, {"run_time": UNREADABLE, "deadline": HOUR}, False),
        (0, HOUR, 0, {"run_time": HOUR + 1}, True),
        (0, 0, HOUR, {"run_time": HOUR + 1}, True),
        (0, 0, HOUR, {"run_time": HOUR}, False),
        (3 * HOUR, 2 * HOUR, HOUR, {"run_time": 2 * HOUR}, True),
        (HOUR, 2 * HOUR, 3 * HOUR, {"run_time": 2 * HOUR}, True),
        (3 * HOUR, 2 * HOUR, 3 * HOUR, {"run_time": 2 * HOUR}, False),
    ],
)
def test_a_pod_that_says_more_or_nothing_is_refused_and_the_shortest_limit_counts(
    of_quota, of_queue, above, said, refused
):
    cluster = limited(of_quota, of_queue, above, **said)
    assert refuses(cluster) is refused
    answer = cluster.admit(cluster.pods["p"], now=0)
    assert answer == (RULE.refusal() if refused else None)
    assert answer is None or answer.message == "Run time exceeds the limit"


def test_the_figures_of_other_rules_are_not_told():
    assert verdict_on(limited(HOUR), "a", "p").numbers == {}
    assert verdict_on(limited(HOUR, run_time=HOUR), "a", "p").numbers


def test_what_a_job_a_group_or_a_default_says_counts_as_well():
    cluster = limited(HOUR, job=OF_JOB)
    assert refuses(cluster)
    cluster.upsert_batch_job(replace(JOB, run_time=HOUR))
    assert not refuses(cluster)
    cluster.delete_batch_job(JOB.key)
    cluster.upsert_pod(replace(cluster.pods["p"], group="podgroups/g"), now=0)
    cluster.upsert_group(Group("a", "podgroups/g", run_time=HOUR))
    assert not refuses(cluster)
    cluster.delete_group("a", "podgroups/g")
    cluster.upsert_queue(replace(cluster.queues["q"], run_time=HOUR))
    assert not refuses(cluster)
    cluster.upsert_queue(replace(cluster.queues["q"], run_time=2 * HOUR))
    assert refuses(cluster)


def test_who_runs_stays_when_a_limit_comes():
    cluster = limited(node="n1")
    cluster.upsert_quota(replace(quota("a"), max_run_time=HOUR))
    assert cluster.check(cluster.pods["p"]) is None
    assert cluster.ledger.account("a").used


def test_a_limit_that_becomes_unreadable_stays_in_force_until_it_is_removed():
    cluster = limited(HOUR)
    cluster.upsert_quota(replace(quota("a"), max_run_time=UNREADABLE))
    assert refuses(cluster)
    assert refuses(at_once(copy_steps(snapshot(cluster, 0.0))))
    cluster.upsert_quota(quota("a"))
    assert not refuses(cluster)
    cluster.upsert_quota(replace(quota("a"), max_run_time=HOUR))
    cluster.delete_quota("a", "quota")
    assert not refuses(cluster)


def test_a_refused_pod_claims_nothing_of_its_quotas_min_or_of_its_queue():
    def claimed(said: int) -> tuple[object, object]:
        cluster = world(queue("q", max_run_time=HOUR), queue("other"), "a:q")
        cluster.upsert_quota(quota("a", least={"cpu": 4}))
        cluster.upsert_pod(pod("p", "a", run_time=said), now=0)
        return cluster.ledger.account("a").claim, divided(cluster).ledger.queues.claims

    assert all(claimed(HOUR))
    assert not any(claimed(HOUR + 1))


CHANGES = {
    "the limit of the quota": lambda cluster: cluster.upsert_quota(quota("a", least={"cpu": 4})),
    "the default of the quota": lambda cluster: cluster.upsert_quota(
        replace(quota("a", least={"cpu": 4}), max_run_time=HOUR, run_time=HOUR)
    ),
    "the quota is gone": lambda cluster: cluster.delete_quota("a", "quota"),
    "the Job": lambda cluster: cluster.upsert_batch_job(replace(JOB, deadline=HOUR)),
    "the group": lambda cluster: cluster.upsert_group(Group("a", "podgroups/g", run_time=HOUR)),
    "the default of the queue": lambda cluster: cluster.upsert_queue(queue("q", parent="top", run_time=HOUR)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_run_time_or_limit_wakes_who_was_refused_and_gives_claims_back(change):
    cluster = world(queue("top"), queue("q", parent="top"), "a:q")
    cluster.upsert_quota(replace(quota("a", least={"cpu": 4}), max_run_time=HOUR))
    cluster.upsert_batch_job(JOB)
    asking = pod("p", "a", job=OF_JOB, group="podgroups/g", unschedulable=REFUSED)
    cluster.upsert_pod(asking, now=0)
    assert not to_wake(cluster)
    assert not cluster.ledger.account("a").claim
    before = cluster.generations.admission
    CHANGES[change](cluster)
    assert [each.uid for each in to_wake(cluster)] == ["p"]
    assert cluster.generations.admission > before
    assert cluster.ledger.account("a").claim or change == "the quota is gone"


def test_a_group_that_is_gone_has_the_run_times_of_its_members_asked_anew():
    cluster = limited(group="podgroups/g")
    cluster.upsert_quota(replace(quota("a", most={"cpu": 9}), max_run_time=HOUR, run_time=HOUR))
    cluster.upsert_group(Group("a", "podgroups/g", run_time=UNREADABLE))
    assert refuses(cluster)
    before = cluster.generations.of_ungating
    cluster.delete_group("a", "podgroups/g")
    assert not refuses(cluster)
    assert cluster.generations.of_ungating != before


def lines_of_changes(waiting: int) -> int:
    """Lines that take new, changed and deleted Jobs, one of which has a waiting pod, beside as many of others."""
    cluster = limited(HOUR, job=OF_JOB)
    for number in range(waiting):
        cluster.upsert_pod(pod(f"p{number}", "a", job=JobMember(f"j{number}", f"j{number}")), now=0)

    def change():
        for job in (replace(JOB, run_time=HOUR), BatchJob("a", "other", "other", ours=True, deadline=HOUR)):
            cluster.upsert_batch_job(job)
            cluster.delete_batch_job(job.key)

    return lines_once(change)


def test_a_changed_job_costs_nothing_for_the_waiting_pods_of_others():
    assert lines_of_changes(waiting=100) == lines_of_changes(waiting=10)


@pytest.mark.parametrize("name", ["top", "q"])
def test_a_limit_of_a_queue_or_one_above_takes_claims_and_gives_them_back(name):
    cluster = limited()
    before = cluster.queues[name]
    assert divided(cluster).ledger.queues.claims
    cluster.upsert_queue(replace(before, max_run_time=HOUR))
    assert not divided(cluster).ledger.queues.claims
    cluster.upsert_queue(before)
    assert divided(cluster).ledger.queues.claims


def test_a_queue_that_moves_below_a_limit_takes_the_claims_of_its_pods():
    cluster = limited()
    cluster.upsert_queue(queue("short", max_run_time=HOUR))
    assert divided(cluster).ledger.queues.claims
    cluster.upsert_queue(replace(cluster.queues["q"], parent="short"))
    assert refuses(divided(cluster))
    assert not cluster.ledger.queues.claims


def test_nobody_is_evicted_for_a_pod_that_is_refused_whoever_goes():
    def claimants(said: int) -> list[str]:
        lent = replace(quota("a", least={"cpu": 4}), max_run_time=HOUR)
        cluster = cluster_of(lent, pod("p", "a", run_time=said, unschedulable=REFUSED))
        return [each.uid for each in wait_for_room(cluster, now=100, delay=1)]

    assert claimants(HOUR) == ["p"]
    assert claimants(HOUR + 1) == []


def test_of_pods_at_gates_that_are_alike_otherwise_those_within_the_limit_go():
    first, second = gated(pod("p0", "a", run_time=2 * HOUR), pod("p1", "a", run_time=HOUR))
    cluster = world(queue("q", max_run_time=HOUR), first, second)
    assert ungated(gate(cluster, "a:q")) == ["p1"]
    cluster.upsert_queue(queue("q"))
    assert "p0" in ungated(cluster)


def test_of_pods_that_are_alike_otherwise_each_is_asked_about():
    cluster = limited(HOUR, run_time=2 * HOUR, unschedulable=REFUSED)
    cluster.upsert_pod(replace(cluster.pods["p"], uid="late", name="late", run_time=HOUR, created=9.0), now=0)
    assert [each.uid for each in to_wake(cluster)] == ["late"]
    pods = list(cluster.pods.values())
    assert refusal_of_all(cluster.ledger, pods, cluster.rules) == RULE.refusal()
    assert refusal_of_all(cluster.ledger, pods[::-1], cluster.rules) == RULE.refusal()
