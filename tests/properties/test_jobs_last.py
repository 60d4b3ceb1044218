"""Jobs and victims: nobody's Job fails while another victim would do, and no Job costs an owner its room."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from policy.cluster.cluster import Cluster
from policy.objects.batch_job import COUNT, FAIL_JOB, IGNORE, BatchJob
from policy.objects.node import Node
from policy.objects.pod import JobMember, Pod
from policy.preemption.losses import lost_jobs
from policy.preemption.plans import Plan
from policy.preemption.victims import plan, victims_on
from policy.quota.elastic_quota import elastic_quota
from tests.properties.test_victims import NODES, ByHand, World, check, worlds

JOBS = ("x", "y", "unknown")


@dataclass(frozen=True)
class WithJobs:
    """A world some of whose pods belong to Jobs."""

    world: World
    jobs: tuple[BatchJob, ...]

    def cluster(self, *, spare: bool = False, backwards: bool = False) -> Cluster:
        cluster = self.world.cluster(backwards=backwards)
        cluster.rules = replace(cluster.rules, spare_jobs=spare)
        for job in self.jobs:
            cluster.batch_jobs.upsert(job)
        return cluster

    def without_jobs(self) -> Cluster:
        return self.world.cluster()


@st.composite
def lent(draw: st.DrawFn) -> World:
    """Two nodes that others have filled with what they borrow of what their owner is entitled to."""
    pods = []
    for name in NODES:
        free = 4
        while free:
            namespace, cpu = draw(st.sampled_from("bbbca")), draw(st.integers(1, min(free, 2)))
            size, priority = {"cpu": cpu, "pods": 1}, draw(st.integers(0, 2))
            pods.append(Pod(f"p{len(pods)}", namespace, f"p{len(pods)}", size, priority, name))
            free -= cpu
    least = {"a": 8, "b": draw(st.integers(0, 2)), "c": draw(st.integers(0, 2))}
    quotas = [elastic_quota(namespace, "quota", 0.0, {"cpu": cpu}, {}) for namespace, cpu in least.items()]
    me = Pod("me", "a", "me", {"cpu": draw(st.integers(1, 3)), "pods": 1}, 1)
    nodes = [Node(name, {"cpu": 4, "pods": 9}) for name in NODES]
    return World(me, tuple(nodes), tuple(quotas), tuple(pods), (), strict=False)


@st.composite
def worlds_with_jobs(draw: st.DrawFn) -> WithJobs:
    world = replace(draw(st.one_of(lent(), worlds())), budgets=())
    member = st.sampled_from([None, *(JobMember(name, name, tracked=True) for name in JOBS)])
    pods = tuple(replace(pod, job=draw(member)) for pod in world.pods)
    jobs = [
        BatchJob(
            namespace,
            name,
            name,
            backoff_limit=draw(st.sampled_from((0, 1, 9))),
            response=draw(st.sampled_from((COUNT, COUNT, IGNORE, FAIL_JOB))),
            failed=draw(st.sampled_from((0, 0, 1))),
        )
        for namespace in ("a", "b", "c", "free")
        for name in JOBS[:2]
    ]
    return WithJobs(replace(world, pods=pods), tuple(jobs))


def costs(cluster: Cluster, victims: list[Pod]) -> set[tuple[str, str]]:
    """The Jobs that fail, or may, by these evictions; counted once more."""
    failing = lost_jobs(cluster.batch_jobs, victims, ()).failing
    unknown = [pod for pod in victims if pod.job is not None and cluster.batch_jobs.of(pod) is None]
    found = {(pod.namespace, pod.job.uid) for pod in victims if pod.uid in failing and pod.job is not None}
    return found | {(pod.namespace, pod.job.uid) for pod in unknown if pod.job is not None}


@given(worlds_with_jobs())
def test_with_jobs_a_plan_keeps_to_the_rules_and_is_found_where_it_is_without(given_world):
    cluster, me = given_world.cluster(), given_world.world.preemptor
    found, without = plan(cluster, me), plan(given_world.without_jobs(), me)
    assert isinstance(found, Plan) == isinstance(without, Plan)
    if isinstance(found, Plan):
        check(ByHand(given_world.world), found)
        assert found.lost == lost_jobs(cluster.batch_jobs, list(found.victims), ())


@given(worlds_with_jobs())
def test_no_job_fails_by_a_plan_where_those_whose_going_fails_none_are_enough(given_world):
    cluster, world = given_world.cluster(), given_world.world
    found = plan(cluster, world.preemptor)
    if not isinstance(found, Plan) or not costs(cluster, list(found.victims)):
        return
    by_hand, nobody = ByHand(world), frozenset[str]()
    safe = {pod.uid for pod in world.pods if pod.node and _is_safe(cluster, pod)}
    for node in world.nodes if not by_hand.exceeded(nobody) else ():
        lacking = by_hand.lacking(node, nobody) & by_hand.entitled()
        may_go = frozenset(uid for uid in safe if by_hand.by_uid[uid].node == node.name)
        in_any_order = frozenset(
            uid
            for uid, others in ((uid, may_go - {uid}) for uid in may_go)
            if by_hand.touchable(by_hand.by_uid[uid], others)
            and (by_hand.peer(by_hand.by_uid[uid]) or by_hand.borrowed(by_hand.by_uid[uid], lacking, others))
        )
        assert not by_hand.runs(node, in_any_order), f"{in_any_order} on {node.name} are enough, instead of {found}"


def _is_safe(cluster: Cluster, pod: Pod) -> bool:
    """Whether a pod is in no Job, or in one that bears the eviction of all its pods."""
    if pod.job is None:
        return True
    of_job = [each for each in cluster.pods.values() if each.job == pod.job and each.namespace == pod.namespace]
    return not costs(cluster, of_job)


@given(worlds_with_jobs())
def test_with_spare_jobs_nobodys_job_fails(given_world):
    cluster, me = given_world.cluster(spare=True), given_world.world.preemptor
    plans = [plan(cluster, me), *victims_on(cluster, me, NODES)]
    for found in plans:
        if isinstance(found, Plan):
            assert not lost_jobs(cluster.batch_jobs, list(found.victims), ()).failing
            check(ByHand(given_world.world), found)


@given(worlds_with_jobs())
def test_of_the_nodes_that_preemption_is_offered_none_fails_more_jobs_than_another(given_world):
    cluster, me = given_world.cluster(), given_world.world.preemptor
    plans = victims_on(cluster, me, NODES)
    assert len({each.lost.fail for each in plans}) <= 1


@given(worlds_with_jobs())
def test_with_jobs_the_answer_does_not_depend_on_the_order_of_events(given_world):
    me = given_world.world.preemptor
    assert plan(given_world.cluster(), me) == plan(given_world.cluster(backwards=True), me)
