"""Jobs that wait as a whole, by kind: which of them are tried, and in which order."""

from operator import itemgetter

from policy.cluster.budgets import Budget
from policy.cluster.cluster import Cluster
from policy.cluster.gates import GatedJob, Line
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.queued_job import PodSet, QueuedJob
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.simulate.waiting_jobs import FEW_GONE, WaitingJobs
from policy.stepwise import at_once
from tests.unit.app.lines import lines_once
from tests.unit.given import pod, quota
from tests.unit.given_nodes import labelled

NOW = 1000.0


def waiting(jobs, cores):
    """A cluster where Jobs wait. Each is (namespace, name, cpu of its only pod, created)."""
    cluster = Cluster(settle_time=0)
    cluster.upsert_node(Node("n1", {"cpu": cores, "pods": 100}))
    for namespace in {each[0] for each in jobs}:
        cluster.upsert_namespace(Namespace(namespace, queues_jobs=True))
    cluster.begin()
    for namespace, name, cpu, created in jobs:
        sets = (PodSet(Pod("", namespace, name, {"cpu": cpu, "pods": 1}), 1),)
        cluster.queued_jobs.upsert(QueuedJob(namespace, name, name, sets, 1, suspended=True, created=created), NOW)
    return cluster


def started(jobs, cores):
    """The Jobs that start at once, in that order."""
    simulation = Simulation(waiting(jobs, cores), Terms(), NOW)
    at_once(simulation.settle_steps())
    return [each.uid.partition("/")[0] for each in simulation.bound]


def test_jobs_start_by_the_share_of_their_namespace_then_by_age_then_by_name():
    jobs = [("b", "b1", 1, 5.0), ("a", "a2", 1, 5.0), ("a", "a1", 2, 5.0), ("b", "b0", 2, 1.0), ("a", "a3", 1, 7.0)]
    assert started(jobs, cores=10) == ["a1", "b0", "a2", "b1", "a3"]
    assert started(jobs, cores=5) == ["a1", "b0", "a2"]


def test_a_smaller_job_starts_where_a_larger_one_of_its_line_has_no_room():
    assert started([("a", "large", 9, 1.0), ("a", "small", 2, 2.0), ("a", "large2", 9, 3.0)], cores=4) == ["small"]


def test_after_a_turn_of_a_kind_comes_its_next_job():
    known = WaitingJobs(waiting([("b", f"b{n}", 1, 5.0) for n in range(3)], cores=9))
    at_once(known.look_steps())
    [(at, kind)] = at_once(known.first_steps())
    assert at[3] == "job/b0"
    assert [known.following(kind, (0, 5.0, "b", f"job/b{n}"))[0][3] for n in (0, 1)] == ["job/b1", "job/b2"]
    assert known.following(kind, (0, 5.0, "b", "job/b2")) is None


def test_a_line_keeps_the_list_of_a_kind_when_its_only_job_is_seen_again():
    line, member = Line(), pod("p")
    line.put(GatedJob("/p", "kind"), member)
    turns = line.kinds()["kind"]
    line.put(GatedJob("/p", "kind"), member)
    assert line.kinds()["kind"] is turns
    assert (len(turns), line.arrivals) == (1, 1)


def lines_of_a_look(kinds):
    """The lines of Python that it takes to see that no Job can start where so many kinds have no room."""
    known = WaitingJobs(waiting([("a", f"j{number}", 10 + number, 5.0) for number in range(kinds)], cores=9))
    at_once(known.look_steps())
    assert at_once(known.first_steps()) == []
    known.anything_may_help()
    return lines_once(at_once, known.first_steps())


def test_ten_times_the_kinds_without_room_take_no_more_lines_of_python():
    assert lines_of_a_look(400) <= 1.1 * lines_of_a_look(40)


def test_a_new_kind_is_taken_in_without_a_look_at_the_others():
    def lines(kinds):
        jobs = waiting([("a", f"j{number}", 10 + number, 5.0) for number in range(kinds)], cores=9)
        known = WaitingJobs(jobs)
        at_once(known.look_steps())
        sets = (PodSet(Pod("", "a", "new", {"cpu": 1, "pods": 1}), 1),)
        jobs.queued_jobs.upsert(QueuedJob("a", "new", "new", sets, 1, suspended=True, created=9.0), NOW)
        taken = lines_once(at_once, known.look_steps())
        assert [kind.request["cpu"] for _, kind in at_once(known.first_steps())] == [1]
        return taken

    assert lines(400) <= 1.1 * lines(40)


def test_kinds_of_which_no_job_waits_any_more_are_not_gone_through():
    def lines(gone):
        jobs = waiting([("a", "large", 10, 1.0)], cores=9)
        known = WaitingJobs(jobs)
        for number in range(gone):
            sets = (PodSet(Pod("", "a", "j", {"cpu": 1 + number % 2, "pods": 1}), 1),)
            jobs.queued_jobs.upsert(QueuedJob("a", "j", "j", sets, 1, suspended=True, created=5.0), NOW)
            at_once(known.look_steps())
            jobs.queued_jobs.delete(("a", "j"))
        known.anything_may_help()
        at_once(known.look_steps())
        return lines_once(at_once, known.first_steps())

    assert lines(10 * FEW_GONE) <= 1.1 * lines(FEW_GONE)


def test_what_is_known_of_kinds_stays_when_others_are_dropped():
    jobs = [("b", "b0", 12, 1.0), *(("a", f"j{number:03}", 10 + number, 2.0) for number in range(3 * FEW_GONE))]
    jobs = [*jobs, ("a", "small", 2, 9.0), ("a", "late", 10, 10.0)]
    cluster = waiting(jobs, cores=9)
    known = WaitingJobs(cluster)
    at_once(known.look_steps())
    assert [at[3] for at, _ in at_once(known.first_steps())] == ["job/small"]
    for number in range(3 * FEW_GONE):
        cluster.queued_jobs.delete(("a", f"j{number:03}"))
    at_once(known.look_steps())
    assert at_once(known.first_steps()) == [], "nothing is new"
    cluster.upsert_node(Node("n2", {"cpu": 12, "pods": 100}))
    known.anything_may_help()
    assert sorted(at[3] for at, _ in at_once(known.first_steps())) == ["job/b0", "job/late", "job/small"]


def test_of_a_line_only_one_job_at_a_time_starts_without_room():
    cluster = waiting([("a", "j1", 1000, 1.0), ("a", "j2", 2000, 2.0)], cores=4000)
    for each in (quota("a", least={"cpu": 4}), quota("b", most={"cpu": 9})):
        cluster.upsert_quota(each)
    cluster.upsert_pod(pod("borrower", "b", node="n1", request={"cpu": 4}), NOW)
    known = WaitingJobs(cluster)

    def may_start():
        known.rules_may_help()
        at_once(known.look_steps())
        found = sorted(at_once(known.first_steps()), key=itemgetter(0))
        return [at[3] for at, kind in found if known.may_start(kind, cluster.pod(*at[2:]))]

    assert may_start() == ["job/j1", "job/j2"]
    cluster.upsert_pod(pod("j1-0", "a"), NOW)
    known.note_without_room(("", "a"), ["j1-0"])
    assert may_start() == []
    cluster.delete_pod("j1-0")
    assert may_start() == ["job/j1", "job/j2"]


def test_a_job_that_was_started_without_room_holds_up_the_others_until_it_has_that():
    cluster = waiting([("a", "j1", 1000, 1.0), ("a", "j2", 2000, 2.0)], cores=4000)
    for each in (quota("a", least={"cpu": 4}), quota("b", most={"cpu": 9})):
        cluster.upsert_quota(each)
    cluster.upsert_pod(pod("stays", "b", node="n1", request={"cpu": 4}, labels={"app": "web"}), NOW)
    cluster.upsert_budget(Budget("b", "web", labelled(app="web"), 0))
    simulation = Simulation(cluster, Terms(), NOW)
    at_once(simulation.settle_steps())
    assert sorted(cluster.pending) == ["j1/0", "job/j2"]
