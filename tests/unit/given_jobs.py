"""Jobs that wait, in the words of the tests of reserving: times in seconds, with now a long time after creation."""

from policy.cluster.cluster import Cluster
from policy.objects.group import Group
from policy.objects.job import Job
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.reserve.node_reservation import ReserveDecision, decide_steps, reservation_of, surplus
from policy.reserve.starving import Terms, in_turn_steps
from policy.stepwise import at_once
from tests.unit.given import amounts, pod

NOW = 1_000_000.0
TERMS = Terms(starving_after=3600, max_nodes_percent=100)
NO_ROOM = Unschedulable("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
GANG = "podgroups.scheduling.x-k8s.io/gang"


def sized(name: str = "n1", cpu: float = 3, **rest) -> Node:
    """A node of so many cores, and of one GiB each."""
    size = rest.pop("size", {})
    allocatable = amounts(**({"cpu": cpu, "memory": cpu * 2**30, "pods": 10} | size))
    return Node(name, allocatable, {"kubernetes.io/hostname": name}, **rest)


def sized_pod(name: str, cpu: float = 1, **rest) -> Pod:
    """A pod of so many cores, and of one GiB each."""
    more = rest.pop("more", {})
    return pod(name, request={"cpu": cpu, "memory": cpu * 2**30} | more, **{"created": NOW - 10} | rest)


def waiting(name: str = "big", cpu: float = 3, *, age: float = 7200, **rest) -> Pod:
    """A pod that the scheduler has found no place for, of this age."""
    return sized_pod(name, cpu, **{"created": NOW - age, "unschedulable": NO_ROOM} | rest)


def gang(*names: str, minimum: int | None = None, age: float = 7200, cpu: float = 3, **rest) -> list[Group | Pod]:
    """A pod group and its members, which wait."""
    group = Group("a", GANG, minimum or len(names), created=NOW - age)
    return [group, *(waiting(name, cpu, age=age, group=GANG, **rest) for name in names)]


def seen(*objects: Node | Group | Pod) -> Cluster:
    """A cluster that has seen all this."""
    cluster = Cluster(settle_time=0)
    for each in objects:
        if isinstance(each, Node):
            cluster.upsert_node(each)
        elif isinstance(each, Group):
            cluster.upsert_group(each)
        else:
            cluster.upsert_pod(each, now=0)
    return cluster


def in_turn(cluster: Cluster, terms: Terms, now: float) -> list[Job]:
    """Jobs that starve or have reserved nodes, in order, each with all of its members."""
    jobs = at_once(in_turn_steps(cluster, terms, now))
    return [job for each in jobs if (job := cluster.job_members.find(each.namespace, each.name)) is not None]


def decide(cluster: Cluster, job: Job, terms: Terms, now: float) -> ReserveDecision:
    """Decides what to reserve for a job, without pauses."""
    return at_once(decide_steps(cluster, job, terms, now))


def decisions(cluster: Cluster, terms: Terms = TERMS, now: float = NOW) -> dict[str, ReserveDecision]:
    """What is decided about each job that is concerned, by its name; each is decided on alone."""
    return {job.title: decide(cluster, job, terms, now) for job in in_turn(cluster, terms, now)}


def chosen(cluster: Cluster, job: str = "a/big", terms: Terms = TERMS) -> dict[str, str]:
    """The node that is to be reserved for each member of a job."""
    decision = decisions(cluster, terms).get(job)
    return {place.pod.name: place.node for place in decision.places} if decision else {}


def why_not(cluster: Cluster, job: str = "a/big", terms: Terms = TERMS) -> str | None:
    """Why nothing is reserved for a job; None for one that does not starve."""
    decision = decisions(cluster, terms).get(job)
    return decision.reason if decision else None


def reserve_all(cluster: Cluster, terms: Terms = TERMS, now: float = NOW) -> None:
    """Does what the controller does, and nothing goes wrong."""
    for each in list(cluster.reservations.reserved):
        if cluster.job_members.find(each.pod.namespace, each.job) is None:
            cluster.delete_reservation(each.name)
    for job in in_turn(cluster, terms, now):
        decision = decide(cluster, job, terms, now)
        own = cluster.reservations.reserved.of_job(job.namespace, job.name)
        for each in surplus(cluster, own, decision.places):
            cluster.delete_reservation(each.name)
        for place in decision.places:
            if cluster.reservations.reserved.of_pod(place.pod.uid) is None:
                cluster.upsert_reservation(reservation_of(job, place, now))


def reserved(cluster: Cluster) -> dict[str, str]:
    """The node that is reserved, by the name of the pod it is for."""
    return {each.pod.name: each.node for each in cluster.reservations.reserved}
