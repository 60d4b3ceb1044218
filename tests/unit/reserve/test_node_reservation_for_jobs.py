"""Nodes are reserved for a Job that waits as a whole, for each of its pods, before any of them exists."""

from dataclasses import replace

import pytest

from policy.cluster import job_members
from policy.cluster.job_members import MOST
from policy.explain.next_steps import Times, next_steps
from policy.objects.batch_job import BatchJob
from policy.objects.membership import Namespace
from policy.objects.pod import JobMember
from policy.objects.queued_job import PodSet, QueuedJob
from policy.queueing.ungating import UngatingRound, has_room_for_all
from policy.quota.admission import Rules
from policy.quota.elastic_quota import ElasticQuota
from policy.reserve.node_reservation import UNUSED, preview
from policy.reserve.preferred_nodes import preferred
from policy.reserve.starving import OF_A_LINE, in_turn_steps
from policy.simulate.expected_start import Forecast
from policy.stepwise import at_once
from tests.unit.given import quota
from tests.unit.given_jobs import NOW, TERMS, in_turn, reserve_all, reserved, seen, sized, sized_pod, waiting, why_not
from tests.unit.given_queues import divided
from tests.unit.reserve.test_promises import passes, promise, promised, refused, running, short, starts, ways

AGE = 7200


def job(name="big", pods=2, cpu=4, *, age=AGE, since=AGE, **rest):
    """A suspended Job of such pods, created so many seconds ago, and suspended ``since`` then."""
    template = sized_pod(name, cpu, **rest)
    times = {"created": NOW - age, "since": NOW - since}
    return QueuedJob("a", name, f"uid-{name}", (PodSet(template, pods),), pods, suspended=True, **times)


def queued(*objects, jobs=None, **terms):
    """Jobs wait in the namespace a, and what is to be reserved for them is."""
    cluster = seen(*(each for each in objects if not isinstance(each, ElasticQuota)))
    for each in objects:
        if isinstance(each, ElasticQuota):
            cluster.upsert_quota(each)
    cluster.upsert_namespace(Namespace("a", gated=True, queues_jobs=True))
    cluster.protection.pass_time(NOW)
    for each in jobs or [job()]:
        cluster.batch_jobs.upsert(BatchJob("a", each.name, each.uid, ours=True))
        cluster.queued_jobs.upsert(each, 0)
    reserve_all(divided(cluster), replace(TERMS, **terms))
    return cluster


def two_nodes(*more, **terms):
    """Two nodes of four cores, on which pods run that end after 60 and 30 minutes, and a Job that needs both."""
    pods = running("r1", 3, 60), running("r2", 3, 30, node="n2")
    return queued(sized("n1", cpu=4), sized("n2", cpu=4), *pods, *more, **terms)


def let_go(cluster):
    """Jobs, by name, and pods that may start now."""
    ungating = UngatingRound(divided(cluster), 1)
    return [each.stands_for.name if each.stands_for else each.uid for some in ungating.run(0) for each in some]


def its_pod(number, **rest):
    """A pod that the controller of Jobs makes."""
    uid = f"uid-big-{number}"
    member = JobMember("uid-big", "big")
    return sized_pod(uid, 4, owner="Job", job=member, created=NOW, **rest)


def begins(cluster):
    """Its nodes have room, and it is started."""
    passes(cluster, 60, "r1", "r2")
    assert let_go(cluster) == ["big"]
    cluster.queued_jobs.upsert(replace(job(), suspended=False), 0)


def comes(cluster, number, node=""):
    cluster.upsert_pod(its_pod(number), 0)
    if node:
        cluster.upsert_pod(its_pod(number, node=node), 0)


def restarted():
    """What a new process sees of a Job of which one pod had come, before it has seen Jobs and pods."""
    before = two_nodes()
    begins(before)
    comes(before, 0, "n2")
    cluster = seen(sized("n1", cpu=4), sized("n2", cpu=4))
    cluster.upsert_namespace(Namespace("a", gated=True, queues_jobs=True))
    for each in before.reservations.reserved:
        cluster.upsert_reservation(each)
    return cluster


@pytest.mark.parametrize("pause", range(3))
def test_a_job_may_go_in_each_pause_in_which_old_ones_are_sought(pause):
    cluster = two_nodes()
    for number, _ in enumerate(in_turn_steps(cluster, TERMS, NOW)):
        if number == pause:
            cluster.queued_jobs.gone(("a", "big"))
    assert number >= pause
    assert in_turn(cluster, TERMS, NOW) == []


def test_each_of_its_pods_has_a_node():
    cluster = two_nodes()
    assert reserved(cluster) == {"big-0": "n1", "big-1": "n2"}
    assert {each.name for each in cluster.reservations.reserved} == {"starving-job.uid-big.0", "starving-job.uid-big.1"}


def test_its_start_is_promised_and_short_pods_use_the_nodes_meanwhile():
    cluster = two_nodes()
    promise(cluster)
    assert promised(cluster) == 60
    assert refused(cluster, sized_pod("endless")) == "node-reserved"
    assert refused(cluster, short(cpu=1, minutes=50)) is None


@pytest.mark.parametrize(
    ("of", "terms", "why"),
    [
        (job(pods=3), {}, "TooLarge"),
        (job(cpu=9), {}, "TooLarge"),
        (job(), {"max_nodes_percent": 50}, "NoNodes"),
        (job(pods=MOST + 1, cpu=0), {}, None),
        (replace(job(), least=1, asked=2), {}, None),
        (job(age=60), {}, None),
        (job(since=60), {}, None),
    ],
    ids=["too many", "too large", "half of the nodes", "a crowd", "elastic", "young", "suspended again"],
)
def test_nothing_is_reserved_for_others(of, terms, why):
    cluster = two_nodes(jobs=[of], **terms)
    assert reserved(cluster) == {}
    assert why_not(cluster, terms=replace(TERMS, **terms)) == why


def test_nothing_is_reserved_for_a_job_that_its_quota_refuses():
    cluster = two_nodes(quota("a", most={"cpu": 13}))  # its pods want 8, and those on nodes use 6
    assert (reserved(cluster), why_not(cluster)) == ({}, "Refused")
    cluster.upsert_quota(quota("a", most={"cpu": 14}))
    reserve_all(cluster)
    assert reserved(cluster) == {"big-0": "n1", "big-1": "n2"}


def test_it_starts_as_soon_as_its_nodes_have_room_whatever_is_on_its_way():
    cluster = two_nodes()
    for number in range(3):
        cluster.upsert_pod(sized_pod(f"p{number}", 2, gate=0), 0)
    passes(cluster, 30, "r2")
    assert "big" not in let_go(cluster)
    passes(cluster, 60, "r1")
    assert let_go(cluster)[0] == "big"


@pytest.mark.parametrize("change", [{"unschedulable": True}, {"ready": False}], ids=str)
def test_it_does_not_start_on_a_node_that_takes_no_pods(change):
    cluster = two_nodes()
    passes(cluster, 60, "r1", "r2")
    assert cluster.reservations.nodes.jobs_with_room() == ["job/uid-big"]
    cluster.upsert_node(replace(sized("n2", cpu=4), **change))
    assert cluster.reservations.nodes.jobs_with_room() == []


def test_it_does_not_start_on_fewer_nodes_than_it_needs():
    cluster = two_nodes()
    cluster.delete_reservation("starving-job.uid-big.1")
    passes(cluster, 60, "r1")
    assert let_go(cluster) == []


def test_a_job_without_reserved_nodes_waits_for_room_beside_them_or_is_gone_in_time():
    late, small = job("late", pods=1, cpu=1, age=5), job("small", pods=1, cpu=1, age=5, deadline=60)
    cluster = two_nodes(jobs=[job(), late, small])
    promise(cluster)
    rooms = [has_room_for_all(cluster, cluster.pods[f"job/uid-{name}"]) for name in ("late", "small", "big")]
    assert rooms == [False, True, False]


@pytest.mark.parametrize("whole", [False, True])
def test_another_job_starts_beside_what_is_reserved_unless_whole_nodes_are(whole):
    jobs = job(pods=1), job("late", pods=1, cpu=1, age=5)
    cluster = queued(sized("n1", cpu=8), running("r1", 5, 60), jobs=jobs)
    cluster.rules = Rules(whole_nodes=whole)
    passes(cluster, 60, "r1")
    assert has_room_for_all(cluster, cluster.pods["job/uid-late"]) is not whole


def test_its_pods_come_before_a_job_for_which_their_node_was_reserved_later():
    pods = running("r1", 4, 60), running("r2", 4, 30)
    cluster = queued(sized("n1", cpu=8), sized("n2", cpu=2), *pods, jobs=[job(pods=1), job("second", pods=1)])
    assert reserved(cluster) == {"big-0": "n1", "second-0": "n1"}
    passes(cluster, 30, "r2")
    assert let_go(cluster) == ["big"]
    cluster.queued_jobs.upsert(replace(job(pods=1), suspended=False), 0)
    assert refused(cluster, its_pod(1)) is None


def test_a_job_does_not_start_while_its_demand_is_to_be_computed_anew():
    cluster = two_nodes()
    passes(cluster, 60, "r1", "r2")
    cluster.pod_defaults.upsert_limit_range("a", "comes", {"cpu": 300})
    assert let_go(cluster) == []
    at_once(cluster.queued_jobs.renew_steps())
    assert let_go(cluster) == ["big"]


def test_nobody_is_evicted_from_its_nodes_before_it_has_started():
    cluster = two_nodes()
    cluster.rules = Rules(evict_for_reserved=True)
    assert cluster.reservations.node_to_empty_for(cluster.pods["job/uid-big"]) == ""


def test_its_pods_prefer_its_nodes_and_others_the_others():
    cluster = two_nodes(sized("n3", cpu=1))
    begins(cluster)
    assert preferred(cluster, its_pod(1), ["n1", "n3"]) == ["n1"]
    assert preferred(cluster, sized_pod("other"), ["n1", "n3"]) == ["n3"]


def test_a_job_with_too_many_pods_is_not_looked_at_even_if_they_have_ended(monkeypatch):
    monkeypatch.setattr(job_members, "MOST", 2)
    cluster = two_nodes(max_nodes_percent=0)
    for number in range(3):
        assert cluster.job_members.find("a", "pods/job/big") is not None
        cluster.upsert_pod(its_pod(number, node="n1", finished=True), 0)
    assert cluster.job_members.find("a", "pods/job/big") is None


def test_its_pods_enter_its_nodes_and_others_do_not_until_they_have_come():
    cluster = two_nodes(quota("a", most={"cpu": 14}))
    begins(cluster)
    reserve_all(cluster)
    assert reserved(cluster) == {"big-0": "n1", "big-1": "n2"}, "it counts once"
    assert cluster.job_members.find("a", "pods/job/big").ready == 2
    comes(cluster, 1)
    comes(cluster, 2)
    assert "job/uid-big" not in cluster.pods, "all have come"
    assert refused(cluster, sized_pod("endless")) == "node-reserved"
    assert refused(cluster, its_pod(1)) is None
    reserve_all(cluster)
    assert reserved(cluster) == {"big-0": "n1", "big-1": "n2"}


def test_nodes_stay_reserved_for_pods_that_have_asked_and_were_not_seen_yet():
    cluster = two_nodes()
    begins(cluster)
    assert [refused(cluster, its_pod(number)) for number in range(2)] == [None, None]
    reserve_all(cluster)
    assert reserved(cluster) == {"big-0": "n1", "big-1": "n2"}
    assert refused(cluster, sized_pod("x")) == "node-reserved"
    cluster.tick(61)
    assert refused(cluster, sized_pod("x")) is None
    reserve_all(cluster)
    assert reserved(cluster) == {}


def test_a_pod_of_a_job_of_the_same_name_before_is_not_its_pod():
    cluster = two_nodes()
    begins(cluster)
    stranger = replace(its_pod(1), uid="x", name="x", job=JobMember("uid-before", "big"))
    assert refused(cluster, stranger) == "node-reserved"


def test_what_is_reserved_ends_as_its_pods_come():
    cluster = two_nodes()
    begins(cluster)
    assert all(map(cluster.reservations.is_reserved, cluster.reservations.reserved))
    comes(cluster, 1, "n2")
    comes(cluster, 2)
    assert [each.node for each in cluster.reservations.reserved if cluster.reservations.is_reserved(each)] == ["n1"]
    reserve_all(cluster)
    assert reserved(cluster) == {"big-0": "n1"}
    assert all(map(cluster.reservations.is_reserved, cluster.reservations.reserved))
    comes(cluster, 2, "n1")
    assert not any(map(cluster.reservations.is_reserved, cluster.reservations.reserved))
    reserve_all(cluster)
    assert reserved(cluster) == {}


def test_a_pod_that_goes_elsewhere_leaves_a_node():
    cluster = two_nodes(sized("n3", cpu=4))
    cluster.upsert_pod(running("r3", 1, 999, node="n3"), 0)
    begins(cluster)
    comes(cluster, 1, "n3")
    comes(cluster, 2)
    assert len(reserved(cluster)) == 2
    reserve_all(cluster)
    assert len(reserved(cluster)) == 1


def test_what_is_reserved_ends_with_the_job():
    cluster = two_nodes()
    assert refused(cluster, sized_pod("endless")) == "node-reserved"
    cluster.queued_jobs.gone(("a", "big"))
    assert cluster.job_members.find("a", "pods/job/big") is None
    assert refused(cluster, sized_pod("endless")) is None


def test_a_start_that_fails_changes_nothing():
    cluster = two_nodes()
    passes(cluster, 60, "r1", "r2")
    assert let_go(cluster) == ["big"]
    cluster.gate_admission.regate("job/uid-big", 0)
    reserve_all(cluster)
    assert reserved(cluster) == {"big-0": "n1", "big-1": "n2"}
    assert let_go(cluster) == ["big"]


def test_a_short_pod_of_another_job_moves_no_promise():
    cluster = two_nodes()
    promise(cluster)
    starts(cluster, short(cpu=1, minutes=50), 1)
    promise(cluster, 2)
    assert promised(cluster) == 60


def test_what_would_be_reserved_is_foreseen_and_nothing_is_changed():
    cluster = two_nodes(max_nodes_percent=0)
    [found] = filter(None, preview(cluster, in_turn(cluster, TERMS, NOW), TERMS, NOW))
    assert [(place.pod.name, place.node) for place in found.places] == [("big-0", "n1"), ("big-1", "n2")]
    assert (reserved(cluster), refused(cluster, sized_pod("endless"))) == ({}, None)


def test_the_job_is_told_what_it_waits_for():
    cluster = two_nodes()
    promise(cluster)
    told = at_once(next_steps(cluster, cluster.pods["job/uid-big"], TERMS, Times(0.0, NOW, 0.0)))
    [text] = [each.text for each in told if each.step == "node-draining"]
    assert text.startswith("nodes n1, n2 are reserved for it, and others may not take the room that it needs there;")
    assert "; it waits until" in text


def test_a_job_that_does_not_starve_yet_is_told_when_nodes_will_be_reserved():
    cluster = two_nodes(jobs=[job(age=60)])
    told = at_once(next_steps(cluster, cluster.pods["job/uid-big"], TERMS, Times(0.0, NOW, 0.0)))
    assert [each.after for each in told if each.step == "reservation-planned"] == [3600 - 60]


def test_others_are_told_to_wait_for_the_job_or_to_delete_it():
    cluster, endless = two_nodes(), sized_pod("endless")
    text = "wait until a/big has started, which has reserved nodes, or delete a/job/big"
    assert ways(cluster, endless)["unreserve"].text == text
    begins(cluster)
    assert ways(cluster, endless)["unreserve"].text == text


def test_it_starts_in_a_simulation_when_its_nodes_have_room():
    cluster = two_nodes()
    found = Forecast(cluster, TERMS, NOW, 0.0)
    assert at_once(found.play_steps())
    assert found.found["job/uid-big"].at == NOW + 3600


def test_a_simulation_gives_up_nodes_for_pods_that_do_not_come_to_them():
    cluster = two_nodes()
    begins(cluster)
    for number in range(2):
        cluster.upsert_pod(replace(its_pod(number), request={"cpu": 9000, "pods": 1}), 0)
    cluster.batch_jobs.upsert(replace(cluster.batch_jobs.get(("a", "big")), started=NOW))
    cluster.upsert_pod(waiting("other", 3), 0)
    found = Forecast(cluster, TERMS, NOW, 0.0)
    assert at_once(found.play_steps())
    [at] = [each.at for uid, each in found.found.items() if cluster.pods[uid].name == "other"]
    assert 0 <= at - NOW - UNUSED < 1


def test_a_member_counts_in_no_ledger_and_on_no_node():
    cluster = two_nodes()
    entries = dict(cluster.ledger.entries)
    assert [uid for uid in entries if uid.count("/") > 1] == []
    assert cluster.table.placed("job/uid-big/0") is None


def test_what_a_job_that_has_started_requests_is_known_as_long_as_needed():
    cluster = two_nodes()
    begins(cluster)
    comes(cluster, 1)
    comes(cluster, 2)
    assert ("a", "big") not in cluster.queued_jobs
    [first, second] = cluster.reservations.reserved
    assert cluster.reservations.request_of(first)["cpu"] == 4000
    for each in (first, second):
        cluster.delete_reservation(each.name)
    assert cluster.job_members.pod_of(first) is None


def test_of_very_many_that_starve_the_first_of_each_line_are_looked_at():
    crowd = [job(f"j{number:03}", age=AGE + number) for number in range(200)]
    cluster = two_nodes(jobs=[*crowd, job("urgent", priority=5)])
    oldest = [f"a/j{number:03}" for number in range(199, 199 - OF_A_LINE + 1, -1)]
    assert [each.title for each in in_turn(cluster, TERMS, NOW)] == ["a/urgent", *oldest]


def test_nodes_stay_reserved_after_a_restart_while_its_pods_come():
    cluster = restarted()
    cluster.protection.pass_time(NOW)
    cluster.batch_jobs.upsert(BatchJob("a", "big", "uid-big", ours=True, parallelism=2))
    comes(cluster, 0, "n2")
    comes(cluster, 1)
    reserve_all(divided(cluster))
    assert "n1" in reserved(cluster).values()
    assert refused(cluster, sized_pod("endless")) == "node-reserved"
    assert refused(cluster, its_pod(1)) is None
    comes(cluster, 1, "n1")
    assert not any(map(cluster.reservations.is_reserved, cluster.reservations.reserved))


def test_a_preview_keeps_nothing_of_jobs_for_which_nothing_is_reserved():
    cluster = two_nodes(jobs=[job("big"), job("more", pods=1, cpu=2)])
    for each in list(cluster.reservations.reserved):
        cluster.delete_reservation(each.name)
    assert [each for each in preview(cluster, in_turn(cluster, TERMS, NOW), TERMS, NOW) if each and each.places]
    assert cluster.job_members._known == {}


def test_a_job_that_is_seen_after_its_pods_and_nodes_has_them_kept():
    cluster = restarted()
    comes(cluster, 0, "n2")
    comes(cluster, 1)
    assert cluster.reservations.nodes.on("n1") is None, "nobody knows yet how many pods it has"
    cluster.upsert_batch_job(BatchJob("a", "big", "uid-big", ours=True, parallelism=2))
    assert [each.node for each in cluster.reservations.nodes.on("n1").members] == ["n1"]
