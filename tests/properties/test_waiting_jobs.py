"""Simulations start the same Jobs as one that tries each waiting Job at each moment, in worlds made by dice.

That is what policy.simulate.waiting_jobs leaves out trials for. Places of shapes are those that ``fit`` counts.
"""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.nodes import fit
from policy.nodes.place_counts import PlaceCounts
from policy.objects.batch_job import BatchJob
from policy.objects.constraints import Constraints, HostPort
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.pod import Pod, turn
from policy.objects.queue import Queue
from policy.objects.queued_job import PodSet, QueuedJob
from policy.queueing.ungating import has_room_for_all
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.simulate.waiting_jobs import OWN, JobsAlike, Peers, WaitingJobs
from policy.stepwise import at_once
from tests.unit.given import quota
from tests.worlds.walk import Pick, by_dice, scaled

TEAMS = ("a", "b", "c")
PARTS = 4
ZONES = (Constraints(node_selector=(("zone", "z1"),)), Constraints(host_ports=(HostPort(80),)))


class EachJob(WaitingJobs):
    """Tries each Job at each look."""

    def look_steps(self):
        pods = self._cluster.pending.values()
        yield
        return [pod for pod in pods if not (pod.terminating or self._is_at_gate(pod))]

    def first_steps(self):
        pods = [pod for pod in self._cluster.pending.values() if self._is_at_gate(pod)]
        yield
        return [(turn(pod), self._kind_of(pod)) for pod in pods]

    def following(self, kind, after):
        return None

    def may_start(self, kind, stand_in):
        return self.would_start(kind.peers.where, stand_in, lambda: has_room_for_all(self._cluster, stand_in))

    def _kind_of(self, pod):
        where, _, _ = self._cluster.gates.line_of(pod.uid)
        return JobsAlike([], pod.request, OWN, 0, Peers(where, (), [], None, None), 0)

    def _is_at_gate(self, pod):
        return pod.stands_for is not None and pod.uid in self._cluster.gates


class Course:
    """A world that goes on for some moments. ``history`` has what happened: who was bound where, who was evicted."""

    def __init__(self, pick: Pick, *, exhaustive: bool) -> None:
        self.pick = pick
        self.cluster = Cluster(settle_time=0)
        self.history: list[tuple] = []
        self._jobs: dict[str, QueuedJob] = {}
        for number in range(pick((1, 2, 4, 6))):
            self._put_node(f"n{number}")
        governed_by = pick(("nothing", "quotas", "queues"))
        for team in TEAMS:
            self.cluster.upsert_namespace(
                Namespace(team, f"q-{team}" if governed_by == "queues" else "", queues_jobs=True)
            )
            if governed_by == "quotas" and pick((True, True, False)):
                least = pick((0, 2, 4, 8))
                most = pick(({}, {"cpu": least + pick((0, 2, 6))}))
                self.cluster.upsert_quota(quota(team, least={"cpu": least}, most=most))
            if governed_by == "queues":
                self.cluster.upsert_queue(Queue(f"q-{team}", weight=pick((1, 1, 2))))
        self.cluster.begin()
        self.simulation = Simulation(self.cluster, Terms(), now=1000.0)
        if exhaustive:
            self.simulation._jobs = EachJob(self.cluster)

    def play(self, moments: int) -> list[tuple]:
        """Plays so many moments; at each, Jobs come and end, and nodes change."""
        for moment in range(moments):
            self.simulation.advance(self.simulation.now + self.pick((1, 10, 40)))
            for name in [each for each in self._jobs if self.pick((True, False, False))]:
                self.cluster.queued_jobs.gone(self._jobs.pop(name).key)
            for number in range(self.pick((0, 1, 2, 5))):
                self._come(f"j{moment}-{number}")
            if self.pick((True,) + (False,) * 5):
                self._put_node(f"n{self.pick((0, 1, 2, 6))}")
            at_once(self.simulation.settle_steps())
            for _ in range(3):
                if not self._come_back():
                    break
                at_once(self.simulation.settle_steps())
            self.history += [(moment, pod.uid, pod.node) for pod in self.simulation.bound]
            self.simulation.bound.clear()
        return self.history

    def _put_node(self, name: str) -> None:
        size = {"cpu": self.pick((2, 4, 8)) * 1000, "memory": self.pick((4, 8)) << 30, "pods": self.pick((3, 20))}
        zone = {"zone": self.pick(("z1", "z2"))}
        self.cluster.upsert_node(Node(name, size, labels=zone, unschedulable=self.pick((False,) * 4 + (True,))))

    def _come(self, name: str) -> None:
        pick, team = self.pick, self.pick(TEAMS)
        sets = tuple(
            PodSet(Pod("", team, name, self.request(), priority=priority, constraints=constraints), pick((1, 1, 2, 4)))
            for priority in [pick((0, 0, 0, 5))]
            for _ in range(pick((1, 1, 1, 2)))
            for constraints in [pick((Constraints(),) * 4 + ZONES)]
        )
        created = self.simulation.time - pick((0, 0, 5))
        self._stand(
            QueuedJob(team, name, name, sets, sum(each.count for each in sets), suspended=True, created=created)
        )

    def request(self) -> dict[str, int]:
        request = {"cpu": self.pick((500, 1000, 2000, 3000, 6000)), "memory": self.pick((1, 2, 3)) << 30, "pods": 1}
        return request if self.pick((True, True, False)) else {"cpu": request["cpu"], "pods": 1}

    def _stand(self, job: QueuedJob) -> None:
        self._jobs[job.name] = job
        self.cluster.batch_jobs.upsert(BatchJob(job.namespace, job.name, job.uid, ours=True))
        self.cluster.queued_jobs.upsert(job, self.simulation.now)

    def _come_back(self) -> bool:
        """Puts Jobs back in line of which pods were evicted; returns whether there were any."""
        gone = sorted({eviction.pod.uid.partition("/")[0] for eviction in self.simulation.evictions})
        self.simulation.evictions.clear()
        for name in gone:
            self.history.append(("evicted", name))
            self.cluster.queued_jobs.gone(self._jobs[name].key)
            self._stand(replace(self._jobs[name], suspended=True))
        return bool(gone)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_jobs_start_as_if_each_were_tried_at_each_moment(part):
    bound = 0
    for seed in range(part, scaled(200), PARTS):
        history = Course(by_dice(seed), exhaustive=False).play(moments=12)
        assert history == Course(by_dice(seed), exhaustive=True).play(moments=12), f"seed {seed}"
        bound += len(history)
    assert bound > scaled(200)


@pytest.mark.parametrize("part", range(PARTS))
def test_places_are_those_that_are_counted_for_each_shape_by_itself(part):
    for seed in range(part, scaled(200), PARTS):
        course = Course(by_dice(seed), exhaustive=False)
        places, table = PlaceCounts(course.cluster.table), course.cluster.table
        shapes: list[Pod] = []
        for _ in range(6):
            course.play(moments=1)
            for constraints in (Constraints(), course.pick((Constraints(), ZONES[0]))):
                pod = Pod("", "a", "p", course.request(), constraints=constraints)
                shapes += [pod] if places.number(pod) == len(shapes) else []
            counted = [int(fit.how_often(table, table.free, pod)[1].sum()) for pod in shapes]
            assert [places.of(number) for number in range(len(shapes))] == counted, f"seed {seed}"
            assert course.pick((False, True)) or at_once(places.all_steps()).tolist() == counted, f"seed {seed}"
