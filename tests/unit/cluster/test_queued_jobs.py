"""Jobs that wait as a whole: started once there is room for all of their pods, which is then kept for these."""

from dataclasses import replace

import pytest

from policy.cluster import gates
from policy.cluster.queued_jobs import MOST_LATE
from policy.objects.constraints import Constraints, Taint, Toleration
from policy.objects.job_kind import JobKind
from policy.objects.membership import Namespace
from policy.objects.pod import JobMember, Unschedulable
from policy.objects.queued_job import PodSet, QueuedJob
from policy.queueing.positions import position_text
from policy.queueing.ungating import AGAIN, FEW, UngatingRound
from tests.unit.app.lines import lines_once
from tests.unit.given import cluster_of, pod, quota
from tests.unit.given_gates import gated
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided, queue

PATIENCE = 60.0
JOB_SET = JobKind("JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", ("spec", "suspend"))


def job(name: str, pods: int = 2, *, namespace: str = "a", created: float = 0, **rest) -> QueuedJob:
    """A suspended Job of pods of one core."""
    template = pod(name, namespace, **rest)
    return QueuedJob(namespace, name, f"uid-{name}", (PodSet(template, pods),), pods, suspended=True, created=created)


def queued(*jobs: QueuedJob, cpu: float = 8, most: float = 99, least: float = 0):
    """A cluster in which Jobs of the namespace a wait as a whole, with a node, a quota, and one that lends a lot."""
    quotas = quota("a", least={"cpu": least}, most={"cpu": most}), quota("lender", least={"cpu": 99})
    cluster = cluster_of(node("n1", size={"cpu": cpu, "pods": 99}), *quotas, start_patience=PATIENCE)
    cluster.upsert_namespace(Namespace("a", gated=True, queues_jobs=True))
    for each in jobs:
        cluster.queued_jobs.upsert(each, now=0)
    return divided(cluster)


def started(cluster, now: float = 0, lookahead: float = 1) -> list[str]:
    """What is let go in one round: Jobs by name, pods by UID."""
    ungating = UngatingRound(divided(cluster), lookahead)
    return [each.stands_for.name if each.stands_for else each.uid for some in ungating.run(now) for each in some]


def is_seen_started(cluster, of: QueuedJob, now: float = 0) -> None:
    cluster.queued_jobs.upsert(replace(of, suspended=False), now)


def starting(of: QueuedJob, **room):
    """A cluster in which a Job was started, and is seen so; none of its pods has come."""
    cluster = queued(of, **room)
    assert started(cluster) == [of.name]
    is_seen_started(cluster, of)
    return cluster


def its_pod(of: QueuedJob, number: int, **rest):
    """A pod that the controller of Jobs makes for it."""
    uid = f"{of.name}-{number}"
    return replace(of.pod_sets[0].pod, uid=uid, name=uid, owner="Job", job=JobMember(of.uid, of.name), **rest)


def used(cluster) -> int:
    """Cores of the namespace that are taken or granted."""
    return cluster.ledger.account("a").used.get("cpu", 0) // 1000


def test_a_job_waits_until_there_is_room_for_all_of_its_pods():
    cluster = queued(job("small", 3), job("large", 6, created=1), cpu=8)
    assert started(cluster) == ["small"], "the other does not fit beside it"
    cluster.queued_jobs.delete(("a", "small"))
    assert started(cluster) == ["large"]


def test_jobs_are_started_by_priority_and_then_by_age():
    jobs = [job("new", created=3), job("old", created=1), job("high", created=9, priority=5)]
    assert started(queued(*jobs)) == ["high", "old", "new"]


def in_two_lines(*more: QueuedJob):
    """A cluster without room, in which two namespaces have two Jobs each that wait, beside others."""
    jobs = (job(f"{namespace}-{number}", 2, namespace=namespace) for namespace in "ab" for number in range(2))
    cluster = queued(*jobs, *more, cpu=1)
    for namespace in {"b", *(each.namespace for each in more)}:
        cluster.upsert_namespace(Namespace(namespace, queues_jobs=True))
    return divided(cluster)


def in_a_round(cluster, cpu: float) -> list[str]:
    """The Jobs that are started in one round if there is as much room from its first pause on."""
    found = []
    for pods in UngatingRound(cluster, lookahead=1).run(0):
        found += [pod.stands_for.name for pod in pods]
        cluster.upsert_node(node("n1", size={"cpu": cpu, "pods": 99}))
    return found


@pytest.mark.parametrize(("cpu", "expected"), [(2, ["a-0"]), (4, ["a-0", "b-0"]), (6, ["a-0", "b-0", "a-1"])])
def test_a_job_that_had_no_room_comes_first_if_room_comes_in_a_pause(cpu, expected):
    assert in_a_round(in_two_lines(), cpu) == expected


@pytest.mark.parametrize("queues", [{}, {"a": "qa", "b": "qb"}], ids=["namespaces", "queues"])
def test_a_namespace_whose_pods_end_in_a_pause_is_next_from_then_on(queues):
    cluster = queued(*(job(f"{each}-{number}", 1, namespace=each) for each in "ab" for number in range(3)), cpu=99)
    for each in "ab":
        cluster.upsert_namespace(Namespace(each, queue=queues.get(each, ""), queues_jobs=True))
    for name in queues.values():
        cluster.upsert_queue(queue(name))
    for number in range(5):
        cluster.upsert_pod(its_pod(job("before"), number, node="n1"), now=0)
    found = []
    for pods in UngatingRound(divided(cluster), lookahead=1).run(0):
        found += [pod.stands_for.name for pod in pods]
        for number in range(5):
            cluster.delete_pod(f"before-{number}")
    assert found[:3] == ["b-0", "a-0", "a-1"]


def test_where_many_are_refused_they_are_looked_at_again_in_the_next_round():
    many = in_two_lines(*(job(f"c{number}", namespace=f"c{number}") for number in range(FEW)))
    assert in_a_round(many, 2) == ["b-0"]


def test_jobs_that_are_refused_are_looked_at_again_a_few_times_at_most(monkeypatch):
    cluster = in_two_lines()
    asked, check = [], cluster.check
    monkeypatch.setattr(cluster, "check", lambda pod: asked.append(pod) or check(pod))
    for _ in UngatingRound(cluster, lookahead=1).run(0):
        cluster.gates.look_again()  # as if something went on and on
    assert len(asked) <= 2 * (AGAIN + 1)


@pytest.mark.parametrize(("lookahead", "number"), [(1, 10), (1.2, 12)])
def test_a_few_jobs_more_are_started_than_there_is_room_for(lookahead, number):
    cluster = queued(*(job(f"j{number:02}", 1) for number in range(20)), cpu=10)
    assert len(started(cluster, lookahead=lookahead)) == number


def test_a_job_that_was_taken_back_has_no_room_until_its_pods_have_gone():
    train = job("train", 2)
    cluster = queued(train, cpu=2)
    for number in range(2):
        cluster.upsert_pod(its_pod(train, number, node="n1", terminating=True), now=0)
    for number in range(2):
        assert started(cluster) == []
        cluster.delete_pod(f"train-{number}")
    assert started(cluster) == ["train"]


def asks(cluster, *pods) -> list[bool]:
    """Whether each of them is let in as the scheduler asks for it."""
    return [cluster.filter(each, 0, lambda: ["n1"]).refused is None for each in pods]


@pytest.mark.parametrize("seen_started", [False, True])
def test_pods_that_the_scheduler_is_told_of_sooner_take_over_their_parts_once(seen_started):
    train = job("train", 2)
    cluster = queued(train, cpu=2, most=2)
    assert started(cluster) == ["train"]
    if seen_started:
        is_seen_started(cluster, train)
    first, second = (its_pod(train, number, version=9) for number in (0, 1))
    assert asks(cluster, first, first) == [True, True]
    assert (used(cluster), cluster.pods["job/uid-train"].stands_for.pods) == (2, 1)
    cluster.upsert_pod(first, now=0)
    assert (used(cluster), cluster.pods["job/uid-train"].stands_for.pods) == (2, 1)
    assert asks(cluster, second, pod("stranger")) == [True, False]
    assert (used(cluster), cluster.gates.ungated.keys()) == (2, {"train-0", "train-1"})
    is_seen_started(cluster, train)
    cluster.upsert_pod(second, now=0)
    assert not [*cluster.queued_jobs.unseen_of(second.namespace, train.uid)]
    cluster.tick(PATIENCE)
    assert (used(cluster), cluster.grants.pod("train-1")) == (2, second)


def test_a_pod_that_asked_and_is_never_seen_leaves_its_part_after_the_patience():
    train = job("train", 2)
    cluster = starting(train, cpu=2, most=2)
    assert asks(cluster, its_pod(train, 0)) == [True]
    cluster.tick(PATIENCE - 1)
    assert used(cluster) == 2
    cluster.tick(PATIENCE)
    assert (used(cluster), len(cluster.grants), cluster.gates.ungated) == (0, 0, {})


def test_a_pod_that_asks_again_and_is_not_seen_yet_keeps_its_part_for_as_long_again():
    train = job("train", 2)
    cluster = starting(train, cpu=2, most=2)
    waits = its_pod(train, 0)
    for now in (0.0, PATIENCE - 1):
        assert cluster.filter(waits, now, lambda: ["n1"]).refused is None
    for now, expected in ((PATIENCE, 1), (2 * PATIENCE - 2, 1), (2 * PATIENCE - 1, 0)):
        cluster.tick(now)
        assert used(cluster) == expected


def test_a_pod_that_has_come_and_gone_takes_no_second_part_if_it_is_asked_for_late():
    train = job("train", 2)
    cluster = starting(train, cpu=2, most=2)
    cluster.upsert_pod(gone := its_pod(train, 0), now=0)
    cluster.delete_pod(gone.uid)
    asks(cluster, gone)
    assert cluster.pods["job/uid-train"].stands_for.pods == 1
    assert asks(cluster, its_pod(train, 1)) == [True]


def test_a_pod_that_asks_before_it_is_seen_gets_no_more_than_its_job_says():
    train = job("train", 2)
    cluster = starting(train, cpu=9, most=2)
    larger = replace(its_pod(train, 0), request={"cpu": 2000, "pods": 1})
    assert asks(cluster, replace(its_pod(train, 5), job=JobMember("other", "train")), larger) == [False, False]
    assert (used(cluster), cluster.pods["job/uid-train"].stands_for.pods) == (1, 1)


def test_pods_of_a_started_job_that_find_no_place_lose_their_room_in_the_end():
    train = job("train", 2)
    cluster = starting(train, cpu=2)
    for number in range(2):
        cluster.upsert_pod(its_pod(train, number), now=0)
    no_place = Unschedulable("Unschedulable", "0/1 nodes are available", 0)
    cluster.upsert_pod(its_pod(train, 1, unschedulable=no_place), now=1)
    cluster.tick(1 + gates.PATIENCE - 0.1)
    assert used(cluster) == 2
    cluster.tick(1 + gates.PATIENCE)
    assert used(cluster) == 1


def test_a_job_and_gated_pods_stand_in_one_line():
    cluster = queued(job("train", 2, created=2), cpu=3)
    for each in gated(pod("early", created=1), pod("late", created=3)):
        cluster.upsert_pod(each, now=0)
    assert started(cluster) == ["early", "train"]


def test_a_job_that_exceeds_its_quota_waits_whatever_room_there_is():
    cluster = queued(job("train", 4), cpu=8, most=3)
    assert started(cluster) == []
    assert "waits" in position_text(cluster, cluster.pods["job/uid-train"])
    cluster.upsert_quota(quota("a", most={"cpu": 4}))
    assert started(cluster) == ["train"]


def test_what_is_granted_to_a_job_is_taken_over_by_its_pods_as_they_come():
    train = job("train", 3)
    cluster = queued(train, cpu=8, most=3)
    assert started(cluster) == ["train"]
    assert used(cluster) == 3
    is_seen_started(cluster, train)
    assert (used(cluster), cluster.pods["job/uid-train"].at_gate) == (3, False)
    cluster.upsert_pod(its_pod(train, 0), now=1)
    assert (used(cluster), "train-0" in cluster.grants) == (3, True)
    assert cluster.pods["job/uid-train"].stands_for.pods == 2
    assert cluster.admit(pod("stranger"), now=1) is not None, "the rest is kept for the others"
    for number in (1, 2):
        cluster.upsert_pod(its_pod(train, number), now=1)
    assert (used(cluster), "job/uid-train" in cluster.pods) == (3, False)
    assert all(cluster.admit(cluster.pods[f"train-{number}"], now=2) is None for number in range(3))


def test_pods_that_are_born_at_gates_are_let_go_at_once_by_what_was_kept_for_them():
    train = job("train", 2)
    cluster = queued(train, cpu=2)
    assert started(cluster) == ["train"]
    cluster.upsert_pod(*gated(replace(pod("early"), created=-1)), now=0)
    cluster.upsert_pod(*gated(replace(pod("earlier"), created=-2)), now=0)
    for number in (0, 1):
        cluster.upsert_pod(*gated(its_pod(train, number)), now=1)
    assert used(cluster) == 2, "what was kept is theirs before their gates are open"
    let_go = started(cluster, now=1)
    assert sorted(let_go[:2]) == ["train-0", "train-1"], "those of higher rank come after them"


def test_pods_may_come_before_their_job_is_seen_started():
    train = job("train", 2)
    cluster = queued(train)
    started(cluster)
    cluster.upsert_pod(its_pod(train, 0), now=0)
    cluster.queued_jobs.upsert(train, now=0)
    assert (used(cluster), cluster.pods["job/uid-train"].stands_for.pods) == (2, 1)
    is_seen_started(cluster, train)
    cluster.upsert_pod(its_pod(train, 1), now=0)
    assert (used(cluster), "job/uid-train" in cluster.pods) == (2, False)


def test_what_is_missing_after_the_patience_is_released_and_told():
    train = job("train", 3)
    cluster = queued(train)
    started(cluster)
    is_seen_started(cluster, train, now=10)
    cluster.upsert_pod(its_pod(train, 0), now=11)
    cluster.tick(10 + PATIENCE - 1)
    assert (used(cluster), cluster.queued_jobs.late) == (3, [])
    cluster.tick(10 + PATIENCE)
    assert used(cluster) == 1
    assert [(of.name, missing, pods) for of, missing, pods in cluster.queued_jobs.late] == [("train", 2, 3)]


def test_a_pod_that_asks_for_more_than_its_template_is_asked_anew():
    train = job("train", 2)
    cluster = starting(train, most=3)
    larger = replace(its_pod(train, 0), request={"cpu": 5000, "pods": 1})
    cluster.upsert_pod(larger, now=0)
    assert ("train-0" in cluster.grants, used(cluster)) == (False, 1)


def test_a_pod_that_names_a_job_of_another_uid_or_namespace_gets_nothing():
    train = job("train", 2)
    cluster = queued(train)
    started(cluster)
    forged = its_pod(train, 0)
    cluster.upsert_pod(replace(forged, uid="x", name="x", job=JobMember("other", "train")), now=0)
    cluster.upsert_pod(replace(forged, uid="y", name="y", namespace="b"), now=0)
    assert cluster.pods["job/uid-train"].stands_for.pods == 2


def test_a_job_that_could_not_be_started_stands_in_line_again():
    cluster = queued(job("train", 2))
    assert started(cluster) == ["train"]
    assert started(cluster) == []
    cluster.gate_admission.regate("job/uid-train", now=0)
    assert used(cluster) == 0
    assert started(cluster) == ["train"]


def test_a_job_suspended_while_it_starts_waits_again_and_keeps_nothing():
    train = job("train", 2)
    cluster = starting(train)
    cluster.upsert_pod(its_pod(train, 0), now=0)
    cluster.queued_jobs.upsert(train, now=1)
    assert (used(cluster), cluster.pods["job/uid-train"].stands_for.pods) == (1, 2)
    assert cluster.pods["job/uid-train"].at_gate


def test_a_job_that_somebody_else_starts_keeps_nothing_for_its_pods():
    train = job("train", 2)
    cluster = queued(train)
    is_seen_started(cluster, train)
    assert ("job/uid-train" in cluster.pods, ("a", "train") in cluster.queued_jobs) == (False, False)
    cluster.upsert_pod(its_pod(train, 0), now=0)
    assert "train-0" not in cluster.grants


def test_a_new_size_counts_at_once():
    cluster = queued(job("train", 9), cpu=8)
    assert started(cluster) == []
    cluster.queued_jobs.upsert(job("train", 8), now=1)
    assert started(cluster) == ["train"]


def test_a_job_deleted_while_it_starts_keeps_nothing():
    train = job("train", 2)
    cluster = starting(train)
    cluster.queued_jobs.delete(("a", "train"))
    assert (used(cluster), len(cluster.grants), cluster.gates.ungated) == (0, 0, {})


def test_a_job_of_the_same_name_takes_the_place_of_the_one_before():
    cluster = queued(job("train", 2))
    cluster.queued_jobs.upsert(replace(job("train", 3), uid="new"), now=0)
    assert [uid for uid in cluster.pods if uid.startswith("job/")] == ["job/new"]


@pytest.mark.parametrize("marked", [True, False])
def test_without_the_label_of_its_namespace_only_a_job_suspended_for_us_is_started(marked):
    cluster = queued(replace(job("train", 99), marked=marked))
    assert started(cluster) == []
    cluster.upsert_namespace(Namespace("a"))
    assert started(cluster) == (["train"] if marked else [])
    assert ("job/uid-train" in cluster.pods) is marked


def test_jobs_of_a_namespace_that_gets_the_label_wait_from_then_on():
    cluster = queued()
    cluster.upsert_namespace(Namespace("a"))
    cluster.queued_jobs.upsert(job("train", 2), now=0)
    assert started(cluster) == []
    cluster.upsert_namespace(Namespace("a", queues_jobs=True))
    assert started(cluster) == ["train"]


def test_pods_at_gates_are_let_go_where_only_jobs_wait():
    cluster = queued(job("train", 99))
    cluster.upsert_namespace(Namespace("a", queues_jobs=True))
    cluster.upsert_pod(*gated(pod("loose")), now=0)
    assert started(cluster) == ["loose"]


def test_a_job_within_its_min_has_a_claim_that_borrowers_leave():
    cluster = queued(job("train", 4), cpu=8, least=4)
    cluster.upsert_quota(quota("b", least={"cpu": 4}, most={"cpu": 99}))
    for number in range(4):
        cluster.upsert_pod(pod(f"b{number}", "b", node="n1"), now=0)
    assert cluster.check(pod("more", "b")) is not None, "the rest of the node is claimed"
    cluster.queued_jobs.delete(("a", "train"))
    assert cluster.check(pod("more", "b")) is None


def test_a_job_without_pods_to_run_waits_for_nothing_until_it_has_some():
    cluster = queued(job("train", 0))
    assert (started(cluster), "job/uid-train" in cluster.pods) == ([], False)
    cluster.queued_jobs.upsert(job("train", 1), now=0)
    assert started(cluster) == ["train"]


def test_a_job_whose_pods_have_all_come_is_not_started_again():
    train = job("train", 1)
    cluster = queued(train)
    started(cluster)
    cluster.upsert_pod(its_pod(train, 0), now=0)
    cluster.queued_jobs.upsert(train, now=0)
    assert (started(cluster), used(cluster)) == ([], 1)
    is_seen_started(cluster, train)
    cluster.queued_jobs.upsert(train, now=1)
    assert cluster.pods["job/uid-train"].at_gate, "now it was suspended again"


def test_the_stand_in_is_judged_by_no_scheduler():
    cluster = queued(job("train", 99), cpu=8)
    stand_in = cluster.pods["job/uid-train"]
    assert stand_in.unschedulable is None
    cluster.upsert_pod(replace(stand_in, unschedulable=Unschedulable("Unschedulable", "x")), now=0)
    cluster.queued_jobs.upsert(job("train", 98), now=1)
    assert cluster.pods["job/uid-train"].unschedulable is None


@pytest.mark.parametrize("least", [4, 3])
def test_a_job_starts_without_room_only_if_others_owe_it_all_of_that_room(least):
    cluster = queued(job("train", 4), cpu=4, least=least)
    cluster.upsert_quota(quota("b", most={"cpu": 99}))
    cluster.upsert_pod(pod("borrower", "b", node="n1"), now=0)
    assert started(cluster) == (["train"] if least == 4 else [])


def test_room_counts_only_where_a_whole_pod_fits():
    train = job("train", 2, request={"cpu": 3})
    cluster = queued(train, cpu=4)
    cluster.upsert_node(node("n2", size={"cpu": 2, "pods": 9}))
    assert started(cluster) == [], "six cores are free, and three on one node only"
    cluster.upsert_node(node("n2", size={"cpu": 3, "pods": 9}))
    assert started(cluster) == ["train"]


def test_a_job_that_requests_what_no_node_has_any_more_waits():
    cluster = queued(job("train", 2, request={"cpu": 1, "hugepages-2Mi": 1}))
    assert started(cluster) == []


def test_a_job_whose_start_is_undone_at_once_stands_in_line_again_and_keeps_nothing():
    train = job("train", 2)
    cluster = queued(train)
    assert started(cluster) == ["train"]
    for now in (1, PATIENCE):
        cluster.tick(now)
        cluster.queued_jobs.upsert(train, now)
    assert (started(cluster, PATIENCE), used(cluster)) == ([], 2)
    cluster.tick(1 + PATIENCE)
    assert (used(cluster), cluster.pods["job/uid-train"].at_gate) == (0, True)
    assert started(cluster, 1 + PATIENCE) == ["train"]


def test_what_is_on_its_way_to_nodes_does_not_grow_as_pods_come():
    train = job("train", 3)
    cluster = starting(train)
    cluster.upsert_pod(its_pod(train, 0), now=0)
    assert cluster.gates.on_their_way("")["cpu"] == 3000


def test_a_pod_keeps_its_part_when_the_api_server_says_that_it_is_gated():
    train = job("train", 1)
    cluster = queued(train)
    started(cluster)
    cluster.upsert_pod(replace(its_pod(train, 0), gate=0), now=0)
    cluster.upsert_pod(*gated(its_pod(train, 0)), now=0)
    assert ("train-0" in cluster.grants, used(cluster)) == (True, 1)


def test_of_a_job_that_another_of_its_name_replaces_while_it_starts_nothing_is_left():
    train = job("train", 2)
    cluster = starting(train)
    cluster.queued_jobs.upsert(replace(train, uid="new"), now=0)
    cluster.tick(PATIENCE + 1)
    assert (used(cluster), cluster.queued_jobs.late) == (0, [])


def of_two(name: str = "set", *, leader: int = 2, workers: int = 3, **of_leader) -> QueuedJob:
    """A job of another kind, of one leader of so many cores and of workers of one."""
    first = pod("leader", request={"cpu": leader, "pods": 1}, **of_leader)
    sets = PodSet(first, 1), PodSet(pod("worker", request={"cpu": 1, "pods": 1}), workers)
    return QueuedJob("a", name, f"uid-{name}", sets, 0, suspended=True, kind=JOB_SET)


def test_a_job_of_several_templates_waits_until_there_is_room_for_each_of_its_pods():
    cluster = queued(of_two(), cpu=3)
    cluster.upsert_node(node("n2", size={"cpu": 1, "pods": 9}))
    assert started(cluster) == []
    cluster.upsert_node(node("n2", size={"cpu": 2, "pods": 9}))
    assert (started(cluster), used(cluster)) == (["set"], 5)


def test_a_job_of_several_templates_counts_with_the_sum_and_is_called_by_its_kind():
    cluster = queued(of_two(), most=4)
    waiting = cluster.pods["job/uid-set"]
    assert (waiting.name, waiting.title) == ("jobset/set", "JobSet a/set (4 pods)")
    assert (started(cluster), waiting.request) == ([], {"cpu": 5000, "pods": 4})
    assert "JobSet set (4 pods)" not in position_text(cluster, waiting)


def test_jobs_of_one_name_and_different_kinds_wait_beside_each_other():
    cluster = queued(job("set", 1), replace(of_two(), uid="another"))
    assert sorted(started(cluster)) == ["set", "set"]
    cluster.queued_jobs.delete(("a", "set"))
    assert ("a", "jobset/set") in cluster.queued_jobs


def test_of_equal_sums_each_shape_is_looked_at():
    wide, flat = job("wide", 1), job("flat", 2, created=1, request={"cpu": 2})
    large = replace(wide.pod_sets[0].pod, request={"cpu": 4000, "pods": 2})
    cluster = queued(replace(wide, pod_sets=(PodSet(large, 1),)), flat, cpu=3)
    cluster.upsert_node(node("n2", size={"cpu": 3, "pods": 9}))
    assert started(cluster) == ["flat"]


def test_a_job_of_several_templates_has_the_highest_priority_of_its_pods():
    last = of_two(priority=5)
    cluster = queued(job("early", 1), replace(last, pod_sets=last.pod_sets[::-1]), cpu=5)
    assert started(cluster) == ["set"]
    assert cluster.pods["job/uid-set"].priority == 5


def test_pods_that_not_all_may_be_evicted_make_the_whole_job_such_a_one():
    cluster = queued(of_two(preemptible=False))
    assert not cluster.pods["job/uid-set"].preemptible


def test_without_room_for_tolerations_of_one_template_nothing_of_a_job_starts():
    tainted = node("n2", size={"cpu": 8, "pods": 9}, taints=(Taint("dedicated", "x", "NoSchedule"),))
    tolerant = Constraints(tolerations=(Toleration("dedicated", "Exists"),))
    cluster = queued(of_two(leader=8, constraints=tolerant), cpu=2)
    cluster.upsert_node(tainted)
    assert started(cluster) == []
    cluster.upsert_node(node("n1", size={"cpu": 3, "pods": 9}))
    assert started(cluster) == ["set"]


def without_pods(of: QueuedJob) -> QueuedJob:
    """The Job after it was started by somebody, before its controller has begun to make pods."""
    return replace(of, suspended=False, marked=True, awaits_pods=True)


@pytest.mark.parametrize("tried", [True, False], ids=["by us, and the answer was lost", "by the leader before"])
def test_room_is_kept_for_the_pods_of_a_job_that_was_started_unnoticed(tried):
    train, late = job("train", 5), job("late", 4, created=1)
    cluster = queued(*([train] if tried else []), cpu=8)
    if tried:
        assert started(cluster) == ["train"]
        cluster.gate_admission.regate("job/uid-train", now=0)
    cluster.queued_jobs.upsert(without_pods(train), now=0)
    cluster.queued_jobs.upsert(late, now=0)
    assert (started(cluster), used(cluster)) == ([], 5)
    cluster.upsert_pod(its_pod(train, 0), now=0)
    assert cluster.pods["job/uid-train"].stands_for.pods == 4
    cluster.tick(PATIENCE)
    assert (used(cluster), [missing for _, missing, _ in cluster.queued_jobs.late]) == (1, [4])
    assert started(cluster) == ["late"]


def test_pods_that_were_seen_before_their_job_was_are_not_kept_out_by_room_for_them():
    train = job("train", 5)
    cluster = queued(most=5)
    for number in range(3):
        cluster.upsert_pod(its_pod(train, number), now=0)
    cluster.queued_jobs.upsert(without_pods(train), now=0)
    assert (used(cluster), cluster.pods["job/uid-train"].stands_for.pods) == (2, 2)
    assert [cluster.admit(its_pod(train, number), now=1) for number in range(5)] == [None] * 5
    assert used(cluster) == 5


@pytest.mark.parametrize("state", [{"terminating": True}, {"node": "n1", "finished": True}], ids=["goes", "has ended"])
def test_a_pod_that_goes_or_has_ended_before_its_job_was_seen_has_no_part(state):
    train = job("train", 5)
    cluster = queued(most=5)
    cluster.upsert_pod(its_pod(train, 0, **state), now=0)
    cluster.queued_jobs.upsert(without_pods(train), now=0)
    assert cluster.pods["job/uid-train"].stands_for.pods == 5


def test_no_room_is_kept_for_a_job_that_the_rules_would_not_admit():
    train = job("train", 5)
    cluster = queued(most=4)
    cluster.queued_jobs.upsert(without_pods(train), now=0)
    assert (used(cluster), list(cluster.queued_jobs), "job/uid-train" in cluster.pods) == (0, [], False)


def test_late_jobs_that_nobody_is_told_of_are_noted_in_a_bounded_number():
    cluster = queued(most=9999)
    cluster.upsert_quota(quota("lender", least={"cpu": 9999}))
    for number in range(MOST_LATE + 5):
        cluster.queued_jobs.upsert(without_pods(job(f"j{number}", 1)), now=0)
    cluster.tick(PATIENCE)
    assert len(cluster.queued_jobs.late) == MOST_LATE
    cluster.queued_jobs.gone(("a", f"j{MOST_LATE}"))
    assert len(cluster.queued_jobs.late) == MOST_LATE - 1


@pytest.mark.parametrize("times", [1, 2])
def test_nothing_is_kept_again_for_a_job_whose_pods_have_come(times):
    train, late = job("train", 3), job("late", 1, created=1)
    cluster = queued(train, cpu=4)
    assert started(cluster) == ["train"]
    for number in range(3):
        cluster.upsert_pod(its_pod(train, number, node="n1"), now=0)
    for _ in range(times):  # its user labels it, say
        cluster.queued_jobs.upsert(without_pods(train), now=0)
    assert (used(cluster), cluster.queued_jobs.starting()) == (3, [])
    cluster.queued_jobs.upsert(late, now=0)
    assert started(cluster) == ["late"]


def test_what_was_released_after_the_patience_is_not_kept_again():
    train = job("train", 3)
    cluster = queued(train)
    assert started(cluster) == ["train"]
    cluster.queued_jobs.upsert(without_pods(train), now=0)
    cluster.tick(PATIENCE)
    cluster.queued_jobs.upsert(without_pods(train), now=PATIENCE)
    assert used(cluster) == 0
    cluster.queued_jobs.upsert(train, now=PATIENCE)  # its user suspends it
    assert started(cluster, PATIENCE) == ["train"]
    cluster.gate_admission.regate("job/uid-train", now=PATIENCE)  # the answer is lost
    cluster.queued_jobs.upsert(without_pods(train), now=PATIENCE)
    assert used(cluster) == 3


def test_a_start_costs_nothing_for_the_running_pods_of_others():
    def lines(running: int) -> int:
        cluster = queued(cpu=200)
        for number in range(running):
            cluster.upsert_pod(its_pod(job("other"), number, node="n1"), now=0)
        return lines_once(cluster.queued_jobs.upsert, without_pods(job("train", 3)), 0)

    assert lines(running=90) == lines(running=10)


def test_a_leader_that_begins_keeps_room_only_for_pods_that_are_not_on_nodes_yet():
    train = job("train", 3)
    cluster = queued()
    for number in range(2):
        cluster.upsert_pod(its_pod(train, number, node="n1"), now=0)
    cluster.upsert_pod(its_pod(job("other", 1), 0, node="n1"), now=0)
    cluster.queued_jobs.upsert(without_pods(train), now=0)
    assert used(cluster) == 4
    cluster.upsert_pod(its_pod(train, 2), now=0)
    assert (used(cluster), cluster.queued_jobs.starting()) == (4, [])
