"""No tenant keeps reserved nodes by what he does to a Job that waits as a whole."""

from dataclasses import replace

from policy.cluster.job_members import MOST
from policy.objects.reservation import STARVING, PodName, Reservation
from policy.reserve.starving import OF_A_LINE
from tests.unit.given_jobs import NOW, TERMS, reserve_all, reserved, sized_pod
from tests.unit.reserve.test_node_reservation_for_jobs import AGE, begins, comes, its_pod, job, two_nodes
from tests.unit.reserve.test_promises import refused

BOTH = {"big-0": "n1", "big-1": "n2"}
LATER = NOW + TERMS.starving_after


def test_a_young_job_inherits_nothing_from_one_of_its_name():
    cluster = two_nodes()
    cluster.queued_jobs.gone(("a", "big"))
    cluster.queued_jobs.upsert(replace(job(age=1, since=1), uid="uid-new"), 0)
    reserve_all(cluster)
    assert (reserved(cluster), refused(cluster, sized_pod("endless"))) == ({}, None)
    cluster.delete_pod("endless")
    reserve_all(cluster, now=LATER)
    assert {each.pod.uid for each in cluster.reservations.reserved} == {"job/uid-new/0", "job/uid-new/1"}


def test_a_job_that_is_suspended_again_has_to_starve_anew():
    cluster = two_nodes()
    begins(cluster)
    reserve_all(cluster)
    assert reserved(cluster) == BOTH
    cluster.queued_jobs.upsert(job(since=0), 0)
    reserve_all(cluster)
    assert reserved(cluster) == {}
    reserve_all(cluster, now=LATER)
    assert reserved(cluster) == {}
    reserve_all(cluster, now=LATER + 1)
    assert reserved(cluster) == BOTH


def test_no_node_waits_for_pods_that_its_user_holds_back():
    cluster = two_nodes()
    begins(cluster)
    cluster.upsert_pod(its_pod(1, gated=True), 0)
    comes(cluster, 2)
    reserve_all(cluster)
    assert len(reserved(cluster)) == 1


def test_pods_of_its_user_that_name_it_as_their_controller_count_for_nothing():
    cluster = two_nodes()
    cluster.upsert_pod(its_pod(1), 0)
    cluster.upsert_pod(its_pod(2, node="n1"), 0)
    reserve_all(cluster)
    assert reserved(cluster) == BOTH


def test_it_has_no_more_members_than_it_takes_to_run():
    cluster = two_nodes()
    begins(cluster)
    for number in range(4):
        comes(cluster, number)
    assert cluster.job_members.find("a", "pods/job/big").minimum == 2


def test_jobs_of_too_many_pods_do_not_shut_out_their_line():
    crowd = [job(f"c{number}", pods=MOST + 1, cpu=0.001, age=AGE + 1) for number in range(OF_A_LINE)]
    assert reserved(two_nodes(jobs=[*crowd, job()])) == BOTH


def test_jobs_that_had_their_nodes_for_long_do_not_shut_out_their_line():
    crowd = [job(f"c{number}", age=AGE + 1) for number in range(OF_A_LINE)]
    cluster = two_nodes(jobs=[*crowd, job()], max_nodes_percent=0)
    for each in crowd:
        pod = PodName("a", f"{each.name}-0", f"job/{each.uid}/0")
        given_up = Reservation(each.name, pod, "n1", (), NOW - 9, STARVING, job=f"pods/job/{each.name}", failed_at=NOW)
        cluster.upsert_reservation(given_up)
    reserve_all(cluster)
    assert reserved(cluster) == BOTH
