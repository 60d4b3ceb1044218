"""Elastic Jobs: started with as many pods as there is room for, at least their minimum, and enlarged later."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.cluster.gates import PATIENCE as GATE_PATIENCE
from policy.cluster.lowered import REST
from policy.cluster.unschedulable import PATIENCE as CLAIM_PATIENCE
from policy.explain.verdicts import verdict_on
from policy.objects.batch_job import BatchJob
from policy.objects.membership import Namespace
from policy.objects.pod import JobMember, Pod, Unschedulable
from policy.objects.queued_job import QueuedJob
from policy.objects.reservation import PodName, Reservation
from policy.queueing.positions import position_text
from policy.queueing.ungating import UngatingRound, adopt
from tests.unit.cluster.test_queued_jobs import PATIENCE, job, queued, used
from tests.unit.given import pod, quota
from tests.unit.given_gates import NO_ROOM
from tests.unit.given_nodes import node
from tests.unit.given_queues import divided

STAND_IN = "job/uid-train"


def elastic(least: int, asked: int, name: str = "train", **rest) -> QueuedJob:
    """A suspended Job of pods of one core."""
    return replace(job(name, asked, **rest), least=least, asked=asked)


def running(of: QueuedJob, parallelism: int, missing: int = 99) -> QueuedJob:
    """The Job as it is seen once it runs with so many pods."""
    lacking = max(0, min(of.asked, missing) - parallelism)
    return replace(of, suspended=False, parallelism=parallelism, lacking=lacking)


def let_go(cluster: Cluster, now: float = 0, lookahead: float = 1) -> dict[str, int]:
    """What is started or enlarged in one round: Jobs by name, and the parallelism that each gets."""
    ungating = UngatingRound(divided(cluster), lookahead)
    return {each.stands_for.name: each.stands_for.granted for some in ungating.run(now) for each in some}


def comes(cluster: Cluster, of: QueuedJob, number: int, now: float = 0) -> Pod:
    """A pod of a Job that its controller has made."""
    uid = f"{of.name}-{number}"
    [pod_set] = of.pod_sets
    made = replace(pod_set.pod, uid=uid, name=uid, owner="Job", job=JobMember(of.uid, of.name))
    cluster.upsert_pod(made, now)
    return made


def runs(cluster: Cluster, of: QueuedJob, parallelism: int, missing: int = 99) -> QueuedJob:
    """Shows that a Job was started, with its pods on the node; returns the Job as it is seen then."""
    seen = running(of, parallelism, missing)
    cluster.queued_jobs.upsert(seen, now=0)
    for number in range(parallelism):
        cluster.upsert_pod(replace(comes(cluster, of, number), node="n1"), now=0)
    return seen


@pytest.mark.parametrize(
    ("cpu", "most", "granted"),
    [(9, 99, 6), (6, 99, 6), (5, 99, 5), (2, 99, 2), (1, 99, None), (9, 4, 4), (9, 2, 2), (9, 1, None)],
)
def test_it_starts_with_as_many_pods_as_room_and_rules_allow(cpu, most, granted):
    cluster = queued(elastic(2, 6), cpu=cpu, most=most)
    assert let_go(cluster) == ({"train": granted} if granted else {})
    assert used(cluster) == (granted or 0)


def with_room_to_grow():
    """A Job that runs with one of its three pods, beside room for one more: the cluster, and the Job as it is seen."""
    train = elastic(1, 3)
    cluster = queued(train, cpu=1)
    let_go(cluster)
    seen = runs(cluster, train, 1)
    cluster.upsert_node(node("n1", size={"cpu": 2, "pods": 99}))
    return cluster, seen


def test_what_the_job_asks_for_counts_as_its_demand_until_it_starts():
    cluster = queued(elastic(2, 6), cpu=1, least=9)
    assert cluster.pods[STAND_IN].request == {"cpu": 6000, "pods": 6}
    assert let_go(queued(elastic(6, 6), cpu=5)) == {}


def test_room_is_kept_for_the_pods_that_were_granted_and_for_no_more():
    train = elastic(2, 6)
    cluster = queued(train, cpu=3)
    let_go(cluster)
    cluster.queued_jobs.upsert(running(train, 3), now=0)
    comes(cluster, train, 0)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.pods) == (3, 2)
    assert not cluster.pods[STAND_IN].at_gate
    for number in (1, 2):
        comes(cluster, train, number)
    assert used(cluster) == 3
    assert cluster.pods[STAND_IN].at_gate, "and now it waits for the others"
    assert cluster.pods[STAND_IN].stands_for.number == "3 more pods"


def test_it_grows_as_there_is_room_and_never_beyond_what_is_asked():
    train = elastic(2, 5)
    cluster = queued(train, cpu=2)
    assert let_go(cluster) == {"train": 2}
    seen = runs(cluster, train, 2)
    assert let_go(cluster) == {}
    cluster.upsert_node(node("n1", size={"cpu": 4, "pods": 99}))
    assert let_go(cluster) == {"train": 4}
    assert used(cluster) == 4, "before anything is written"
    seen = running(seen, 4)
    cluster.queued_jobs.upsert(seen, now=0)
    for number in (2, 3):
        cluster.upsert_pod(replace(comes(cluster, train, number), node="n1"), now=0)
    assert used(cluster) == 4
    cluster.upsert_node(node("n1", size={"cpu": 99, "pods": 99}))
    assert let_go(cluster) == {"train": 5}
    cluster.queued_jobs.upsert(running(seen, 5), now=0)
    comes(cluster, train, 4)
    assert STAND_IN not in cluster.pods
    assert let_go(cluster) == {}


def test_pods_that_came_before_the_job_was_seen_enlarged_are_counted_once():
    train = elastic(2, 4)
    cluster = queued(train, cpu=2)
    let_go(cluster)
    seen = runs(cluster, train, 2)
    cluster.upsert_node(node("n1", size={"cpu": 3, "pods": 99}))
    assert let_go(cluster) == {"train": 3}
    comes(cluster, train, 2)
    assert (used(cluster), STAND_IN in cluster.pods) == (3, False)
    cluster.queued_jobs.upsert(seen, now=0)
    assert STAND_IN not in cluster.pods, "as it was seen before, it has grown"
    cluster.queued_jobs.upsert(running(seen, 3), now=0)
    assert cluster.pods[STAND_IN].stands_for.pods == 1


def test_only_granted_pods_of_a_job_that_grows_count_though_all_is_counted_anew():
    """Freed room does that. If more counts, ``filter`` refuses a pod of the Job, which then grows into its room."""
    train = elastic(2, 4)
    cluster = queued(train, cpu=9, most=2)
    cluster.upsert_pod(replace(pod("other", "lender"), node="n1"), now=0)
    cluster.tick(0)
    assert let_go(cluster) == {"train": 2}
    cluster.queued_jobs.upsert(seen := running(train, 2), now=0)
    first, _ = (comes(cluster, train, number) for number in range(2))
    cluster.upsert_quota(quota("a", most={"cpu": 3}))
    assert let_go(cluster) == {"train": 3}
    cluster.delete_pod("other")
    cluster.tick(1)
    assert used(cluster) == 3
    assert cluster.filter(first, 1, lambda: ["n1"]).refused is None
    cluster.queued_jobs.upsert(running(seen, 3), now=1)
    comes(cluster, train, 2, now=1)
    assert (used(cluster), let_go(cluster, now=1)) == (3, {})


def test_while_the_api_server_does_not_let_it_start_all_its_pods_wait():
    cluster = queued(elastic(2, 6), cpu=3)
    let_go(cluster)
    assert cluster.pods[STAND_IN].request["cpu"] == 3000
    cluster.gate_admission.back_off(STAND_IN, now=1)
    assert (used(cluster), cluster.pods[STAND_IN].request["cpu"], let_go(cluster)) == (0, 6000, {})


def test_no_more_pods_are_asked_for_than_are_missing_to_its_completions():
    train = elastic(2, 6)
    cluster = queued(train, cpu=2)
    let_go(cluster)
    runs(cluster, train, 2, missing=3)
    assert cluster.pods[STAND_IN].stands_for.pods == 1
    cluster.queued_jobs.upsert(running(train, 2, missing=2), now=0)
    assert STAND_IN not in cluster.pods


def test_all_that_waits_to_start_with_its_priority_comes_before_growth():
    old = elastic(1, 4, created=1)
    cluster = queued(old, cpu=1)
    let_go(cluster)
    runs(cluster, old, 1)
    for each in (job("young", 1, created=9), job("low", 1, created=2, priority=-1)):
        cluster.queued_jobs.upsert(each, now=0)
    cluster.upsert_node(node("n1", size={"cpu": 3, "pods": 99}))
    assert let_go(cluster) == {"young": 0, "train": 2}


def test_it_grows_only_into_free_room_though_others_owe_it_more():
    train = elastic(1, 4)
    cluster = queued(train, cpu=1, least=8)
    let_go(cluster)
    runs(cluster, train, 1)
    assert let_go(cluster) == {}


def test_it_does_not_grow_into_the_room_of_its_own_pods_that_are_on_their_way():
    """With the lookahead other Jobs are started beyond the room of nodes."""
    train = elastic(1, 12)
    cluster = queued(train, cpu=10)
    assert let_go(cluster, lookahead=1.2) == {"train": 10}
    cluster.queued_jobs.upsert(running(train, 10), now=0)
    for number in range(10):
        comes(cluster, train, number)
    assert let_go(cluster, lookahead=1.2) == {}
    cluster.queued_jobs.upsert(elastic(1, 9, name="other"), now=0)
    assert let_go(cluster, lookahead=1.2) == {"other": 2}


@pytest.mark.parametrize("waited", [0, GATE_PATIENCE])
def test_it_does_not_grow_while_no_place_is_found_for_one_of_its_pods(waited):
    """That pod has no grant any more if it has waited for long, and what becomes free is for it."""
    train = elastic(1, 4)
    cluster = queued(train, cpu=2)
    let_go(cluster)
    cluster.queued_jobs.upsert(running(train, 2), now=0)
    first, second = (comes(cluster, train, number) for number in range(2))
    cluster.upsert_pod(replace(first, node="n1"), now=0)
    cluster.upsert_pod(replace(pod("other", "b"), node="n1"), now=0)
    cluster.upsert_pod(replace(second, unschedulable=NO_ROOM), now=0)
    cluster.tick(waited)
    cluster.upsert_node(node("n1", size={"cpu": 4, "pods": 99}))
    assert let_go(cluster, now=waited) == {}
    assert "as soon as a place is found for all pods that it has" in position_text(cluster, cluster.pods[STAND_IN])
    cluster.upsert_pod(replace(second, node="n1"), now=waited)
    assert let_go(cluster, now=waited) == {"train": 3}


def test_it_grows_again_once_the_pod_is_gone_for_which_there_was_no_place():
    train = elastic(1, 3)
    cluster = queued(train, cpu=1)
    let_go(cluster)
    runs(cluster, train, 1)
    without_place = comes(cluster, train, 1)
    cluster.upsert_pod(replace(without_place, unschedulable=NO_ROOM), now=0)
    cluster.upsert_node(node("n1", size={"cpu": 9, "pods": 99}))
    assert let_go(cluster) == {}
    cluster.delete_pod(without_place.uid)
    assert let_go(cluster) == {"train": 3}


def beside_a_job_without_place(priority: int = 0) -> tuple[Cluster, Pod]:
    """A Job that could grow by one pod, and a pod of another Job that found no place before there was that room."""
    cluster = queued(cpu=2)
    other = elastic(1, 3, name="other", created=1, priority=priority)
    for each in (other, elastic(1, 3)):
        runs(cluster, each, 1)
    cluster.upsert_pod(waits := replace(comes(cluster, other, 1), unschedulable=NO_ROOM), now=0)
    cluster.upsert_node(node("n1", size={"cpu": 3, "pods": 99}))
    return cluster, waits


def test_it_does_not_grow_into_room_that_a_pod_of_another_job_waits_for():
    cluster, waits = beside_a_job_without_place()
    assert let_go(cluster) == {}
    said = position_text(cluster, cluster.pods[STAND_IN])
    assert "as soon as a place is found for the pods of namespace a that wait for one" in said
    cluster.upsert_pod(replace(waits, node="n1", unschedulable=None), now=0)
    cluster.upsert_node(node("n1", size={"cpu": 4, "pods": 99}))
    assert let_go(cluster) == {"train": 2}


def test_it_grows_once_a_pod_of_another_job_has_waited_in_vain_for_too_long():
    cluster, _ = beside_a_job_without_place()
    cluster.tick(0)
    cluster.tick(CLAIM_PATIENCE - 1)
    assert let_go(cluster, now=CLAIM_PATIENCE - 1) == {}
    cluster.tick(CLAIM_PATIENCE + 1)
    assert let_go(cluster, now=CLAIM_PATIENCE + 1) == {"train": 2}


@pytest.mark.parametrize(
    ("asked", "grows_at"),
    [(8, [35]), (2.5, [35]), (2, [])],
    ids=["borrowers could go", "the Job itself could go", "enough is free again"],
)
def test_room_that_only_evictions_could_make_holds_it_up_no_longer(asked, grows_at):
    cluster = queued(cpu=1)
    runs(cluster, elastic(1, 9), 1)
    cluster.upsert_quota(quota("b", least={"cpu": 1}, most={"cpu": 99}))
    for number in range(6):
        cluster.upsert_pod(pod(f"b{number}", "b", node="n1"), now=0)
    cluster.upsert_node(node("n1", size={"cpu": 9, "pods": 99}))
    cluster.upsert_pod(pod("large", request={"cpu": asked}, unschedulable=NO_ROOM), now=0)
    grown = []
    for now in range(5, 60, 10):  # somebody comes and goes all the time
        cluster.upsert_pod(pod("short", "b", node="n1"), now)
        cluster.tick(now)
        cluster.delete_pod("short")
        cluster.tick(now)
        grown += [now] if let_go(cluster, now) else []
    assert grown == grows_at


def test_it_leaves_room_that_comes_late_to_a_pod_that_it_is_enough_for():
    cluster, _ = beside_a_job_without_place()
    cluster.upsert_pod(pod("b", "b", node="n1"), now=0)
    for now in (0, CLAIM_PATIENCE + 1):
        cluster.tick(now)
    cluster.delete_pod("b")
    assert let_go(cluster, now=CLAIM_PATIENCE + 1) == {}


def test_a_refusal_by_a_rule_meanwhile_does_not_prolong_that_time():
    cluster, waits = beside_a_job_without_place()
    refused = Unschedulable("Unschedulable", "0/1 nodes are available: 1 ElasticQuota borrowing exhausted: cpu.")
    for now, said in ((0, refused), (1, waits.unschedulable), (20, refused), (25, waits.unschedulable)):
        cluster.upsert_pod(replace(waits, unschedulable=said), now)
        cluster.tick(now)
    assert let_go(cluster, now=25) == {}
    cluster.tick(CLAIM_PATIENCE + 1)
    assert let_go(cluster, now=CLAIM_PATIENCE + 1) == {"train": 2}


def test_it_grows_though_a_pod_of_lower_priority_waits_for_that_room():
    cluster, _ = beside_a_job_without_place(priority=-1)
    assert let_go(cluster) == {"train": 2}


def test_pods_of_another_namespace_do_not_keep_a_job_from_growing():
    cluster, _ = with_room_to_grow()
    stranger = pod("stranger", "b", job=JobMember("uid-train", "train"), unschedulable=NO_ROOM)
    cluster.upsert_pod(stranger, now=0)
    assert let_go(cluster) == {"train": 2}


def test_a_pod_that_another_job_has_adopted_keeps_its_former_one_from_nothing():
    cluster, seen = with_room_to_grow()
    adopted = replace(comes(cluster, seen, 1), unschedulable=NO_ROOM)
    cluster.upsert_pod(adopted, now=0)
    later = CLAIM_PATIENCE + 1
    for now in (0, later):
        cluster.tick(now)
    assert let_go(cluster, now=later) == {}
    cluster.upsert_pod(replace(adopted, job=JobMember("uid-other", "other")), now=later)
    assert let_go(cluster, now=later) == {"train": 2}


def test_others_owe_it_no_more_than_its_minimum_where_there_is_no_room():
    def let_go_beside_a_borrower(least):
        cluster = queued(elastic(2, 6), cpu=2, least=least)
        cluster.upsert_quota(quota("b", most={"cpu": 99}))
        cluster.upsert_pod(pod("borrower", "b", node="n1"), now=0)
        return let_go(cluster)

    assert let_go_beside_a_borrower(8) == {"train": 2}
    assert let_go_beside_a_borrower(1) == {}


def test_nobody_owes_it_room_to_grow():
    cluster = queued(cpu=2, least=8)
    cluster.upsert_quota(quota("b", most={"cpu": 99}))
    cluster.upsert_pod(pod("borrower", "b", node="n1"), now=0)
    runs(cluster, elastic(1, 3), 1)
    assert let_go(cluster) == {}


def test_a_start_that_fails_leaves_it_waiting_for_all_its_pods():
    cluster = queued(elastic(2, 6), cpu=3)
    assert let_go(cluster) == {"train": 3}
    cluster.gate_admission.regate(STAND_IN, now=1)
    assert (used(cluster), cluster.pods[STAND_IN].request["cpu"]) == (0, 6000)
    assert let_go(cluster) == {"train": 3}


def test_a_start_that_fails_leaves_it_waiting_for_what_is_asked_by_then():
    """As happens when its user raises the parallelism just then: the patch tests that."""
    cluster = queued(elastic(2, 6), cpu=3)
    let_go(cluster)
    cluster.queued_jobs.upsert(elastic(2, 7), now=1)
    cluster.gate_admission.regate(STAND_IN, now=2)
    assert (used(cluster), cluster.pods[STAND_IN].request["cpu"]) == (0, 7000)
    assert let_go(cluster) == {"train": 3}


def test_a_growth_that_fails_leaves_it_running_as_it_was():
    cluster, _ = with_room_to_grow()
    assert let_go(cluster) == {"train": 2}
    cluster.gate_admission.regate(STAND_IN, now=1)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.pods) == (1, 2)


def test_growth_that_makes_no_pods_in_time_is_released_and_tried_again():
    cluster, seen = with_room_to_grow()
    let_go(cluster)
    cluster.queued_jobs.upsert(running(seen, 2), now=10)
    cluster.tick(70)
    assert (used(cluster), cluster.queued_jobs.late) == (1, [])
    assert cluster.pods[STAND_IN].stands_for.pods == 1


def test_growth_that_is_never_seen_is_tried_again():
    cluster, _ = with_room_to_grow()
    let_go(cluster)
    for now in (1, 62):
        cluster.tick(now)
    assert used(cluster) == 1
    assert let_go(cluster, now=62) == {"train": 2}


def test_of_a_job_that_starts_with_part_of_its_pods_those_missing_in_time_are_told():
    train = elastic(2, 6)
    cluster = queued(train, cpu=3)
    let_go(cluster)
    cluster.queued_jobs.upsert(running(train, 3), now=0)
    comes(cluster, train, 0)
    cluster.tick(60)
    assert [(missing, pods) for _, missing, pods in cluster.queued_jobs.late] == [(2, 3)]
    assert cluster.pods[STAND_IN].stands_for.pods == 3


def test_a_job_that_is_suspended_while_it_grows_waits_as_a_whole_again():
    cluster, seen = with_room_to_grow()
    let_go(cluster)
    cluster.queued_jobs.upsert(replace(seen, suspended=True), now=0)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.pods) == (1, 3)
    assert not cluster.pods[STAND_IN].stands_for.grows


def test_what_the_user_asks_for_meanwhile_holds():
    train = elastic(1, 6)
    cluster = queued(train, cpu=2)
    let_go(cluster)
    runs(cluster, train, 2)
    cluster.queued_jobs.upsert(running(replace(train, asked=3), 2), now=0)
    assert cluster.pods[STAND_IN].stands_for.pods == 1
    cluster.queued_jobs.upsert(running(replace(train, asked=1), 1), now=0)
    assert STAND_IN not in cluster.pods


def test_where_jobs_wait_no_longer_it_is_enlarged_at_once():
    train = elastic(1, 6)
    cluster = queued(replace(train, marked=True), cpu=1)
    let_go(cluster)
    runs(cluster, replace(train, marked=True), 1)
    cluster.delete_namespace("a")
    assert let_go(cluster) == {"train": 6}


def test_a_job_that_is_not_ours_is_enlarged_only_once_it_is():
    train = running(elastic(1, 6), 1)
    cluster = queued(cpu=9)
    cluster.delete_namespace("a")
    cluster.queued_jobs.upsert(train, now=0)
    assert STAND_IN not in cluster.pods
    cluster.upsert_namespace(Namespace("a", queues_jobs=True))
    assert let_go(cluster) == {"train": 6}


def test_people_are_told_of_the_minimum_that_it_waits_for():
    cluster = queued(elastic(2, 6), cpu=1)
    assert "as soon as there is room for 2 of its pods" in position_text(cluster, cluster.pods[STAND_IN])
    cluster = queued(elastic(2, 6), most=1)
    verdict = verdict_on(cluster, "a", "job/train")
    assert (verdict.rule, verdict.numbers["cpu"]["request"]) == ("elastic-quota-max", 2000)


def test_people_are_told_how_a_job_waits_that_runs_with_fewer_pods():
    train = elastic(2, 6)
    cluster = queued(train, cpu=2)
    let_go(cluster)
    runs(cluster, train, 2)
    text = position_text(cluster, cluster.pods[STAND_IN])
    assert "it runs and waits for 4 more pods, 1 of 1 in the line" in text
    assert "it grows as soon as there is room for one more pod" in text
    assert "runs with a parallelism of 2" in verdict_on(cluster, "a", "job/train").message


def test_a_job_of_many_pods_costs_few_questions(monkeypatch):
    cluster = queued(elastic(1, 10**6), cpu=10**6, most=777_777, least=777_777)
    cluster.upsert_node(node("n1", size={"cpu": 10**6, "pods": 10**6}))
    asked = []
    check = cluster.check
    monkeypatch.setattr(cluster, "check", lambda pod: asked.append(pod) or check(pod))
    assert let_go(cluster) == {"train": 777_777}
    assert len(asked) < 30


@pytest.mark.parametrize("most", [9, 0], ids=["room was kept for a while", "its quota refused it"])
def test_a_job_that_awaits_its_pods_is_known_alike_whether_room_was_kept_or_not(most):
    cluster = queued(most=most)
    unnoticed = replace(running(elastic(1, 3), 3), marked=True, awaits_pods=True)
    cluster.queued_jobs.upsert(unnoticed, now=0)
    cluster.tick(PATIENCE)
    assert (list(cluster.queued_jobs), used(cluster)) == ([unnoticed], 0)


def test_a_part_that_was_started_unnoticed_has_its_room_kept_and_no_more():
    train = elastic(2, 6)
    cluster = queued(cpu=9)
    unnoticed = replace(running(train, 3), marked=True, awaits_pods=True)
    cluster.queued_jobs.upsert(unnoticed, now=0)
    assert (used(cluster), let_go(cluster)) == (3, {})
    for number in range(3):
        comes(cluster, train, number)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.pods) == (3, 3)
    cluster.queued_jobs.namespace_changed("a")
    assert used(cluster) == 3, "it is not taken for one without pods again"


def test_a_part_that_was_started_unnoticed_and_is_refused_keeps_nothing():
    train = elastic(2, 6)
    cluster = queued(cpu=9, most=2)
    cluster.queued_jobs.upsert(replace(running(train, 3), marked=True, awaits_pods=True), now=0)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.number) == (0, "3 more pods")


def test_it_does_not_grow_while_pods_of_it_are_taken():
    train = elastic(1, 4)
    cluster = queued(train, cpu=2)
    let_go(cluster)
    runs(cluster, train, 2)
    lowered = BatchJob("a", "train", train.uid, ours=True, parallelism=3, runs=3, least=1, asked=4)
    cluster.batch_jobs.upsert(lowered)
    cluster.lowered.begin(lowered, 2, [], now=0)
    cluster.upsert_node(node("n1", size={"cpu": 9, "pods": 99}))
    assert let_go(cluster) == {}
    cluster.tick(REST)
    assert let_go(cluster, now=REST) == {"train": 4}


def with_growth_of_an_earlier_leader(most: int = 99) -> tuple[Cluster, QueuedJob]:
    """A Job of six pods that was let grow from two to four just before; none of the new ones is there."""
    cluster, train = queued(cpu=5, most=most), elastic(1, 6)
    cluster.upsert_namespace(Namespace("a", queues_jobs=True))
    runs(cluster, train, 2)
    cluster.upsert_pod(replace(comes(cluster, train, 7), node="n1", terminating=True), now=0)
    cluster.upsert_pod(replace(comes(cluster, train, 8), node="n1", finished=True), now=0)
    cluster.delete_pod("train-7")
    cluster.queued_jobs.upsert(running(train, 4), now=0)
    cluster.queued_jobs.upsert(job("late", 2), now=0)
    return cluster, train


def test_a_new_leader_keeps_room_for_growth_as_the_job_itself_shows_it():
    cluster, train = with_growth_of_an_earlier_leader()
    adopt(cluster, now=0)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.pods, cluster.pods[STAND_IN].at_gate) == (4, 2, False)
    assert let_go(cluster) == {}, "there is room for no other Job"
    for number in (2, 3):
        comes(cluster, train, number)
    assert (used(cluster), cluster.pods[STAND_IN].stands_for.pods, cluster.pods[STAND_IN].at_gate) == (4, 2, True)
    adopt(cluster, now=0)
    assert used(cluster) == 4


def test_a_new_leader_keeps_no_room_for_a_pod_whose_end_its_job_has_still_to_count():
    cluster, train = with_growth_of_an_earlier_leader()
    made = comes(cluster, train, 2)
    cluster.upsert_pod(replace(made, node="n1", finished=True, job=replace(made.job, tracked=True)), now=0)
    adopt(cluster, now=0)
    assert used(cluster) == 3


def test_growth_without_pods_is_kept_by_a_new_leader_for_a_while_and_not_told():
    cluster, _ = with_growth_of_an_earlier_leader()
    adopt(cluster, now=0)
    cluster.tick(PATIENCE)
    assert (used(cluster), cluster.queued_jobs.late) == (2, [])
    assert let_go(cluster, now=PATIENCE) == {"late": 0, "train": 5}


def test_a_new_leader_keeps_no_room_for_growth_that_the_rules_do_not_admit():
    cluster, _ = with_growth_of_an_earlier_leader(most=3)
    adopt(cluster, now=0)
    assert (used(cluster), cluster.pods[STAND_IN].at_gate) == (2, True)


def test_a_new_leader_counts_pods_of_a_grown_job_that_are_on_their_way():
    cluster, train = with_growth_of_an_earlier_leader()
    for number in (2, 3):
        comes(cluster, train, number)
    adopt(cluster, now=0)
    assert (used(cluster), cluster.pods[STAND_IN].at_gate) == (4, True)
    assert let_go(cluster) == {"train": 5}, "there is room for no other Job"


def of_twins(cluster: Cluster) -> list[BatchJob]:
    """Two Jobs that run with one pod each, and wait for one more."""
    found = []
    for number, name in enumerate(("one", "two")):
        twin = elastic(1, 2, name=name, created=number)
        found.append(BatchJob("a", name, twin.uid, ours=True, parallelism=1, runs=1, least=1, asked=2))
        cluster.batch_jobs.upsert(found[-1])
        runs(cluster, twin, 1)
    return found


@pytest.mark.parametrize("by", ["a plan", "lowering"])
def test_a_job_of_which_pods_are_taken_keeps_no_other_from_growing(by):
    cluster = queued(cpu=4)
    one, _ = of_twins(cluster)
    if by == "lowering":
        cluster.lowered.begin(one, 1, [], now=0)
    else:
        cluster.upsert_pod(pod("owner", "lender"), now=0)
        victims = (PodName("a", "one-0", "one-0"),)
        cluster.upsert_reservation(Reservation("r", PodName("lender", "owner", "owner"), "n1", victims, 0.0))
    assert let_go(cluster) == {"two": 2}
    cluster.delete_reservation("r")
    cluster.delete_pod("owner")
    cluster.tick(REST)
    assert let_go(cluster, now=REST) == {"one": 2}


def test_a_part_whose_pods_have_come_is_not_kept_again_when_its_job_changes():
    train = elastic(1, 3)
    cluster = queued(train, cpu=2)
    assert let_go(cluster) == {"train": 2}
    for number in range(2):
        cluster.upsert_pod(replace(comes(cluster, train, number), node="n1"), now=0)
    unnoticed = replace(running(train, 2), marked=True, awaits_pods=True)
    for _ in range(2):  # the second time, its fields are not ours any more
        cluster.queued_jobs.upsert(unnoticed, now=0)
    assert (used(cluster), cluster.queued_jobs.starting()) == (2, [])
    cluster.upsert_node(node("n1", size={"cpu": 9, "pods": 99}))
    assert let_go(cluster) == {"train": 3}
