"""Evictions come to an end where evicted pods are made anew, and none is in vain."""

import pytest

from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import condition, is_bound
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import ensure_for, evicted, evicts
from tests.e2e.worlds import Load, Team, World

QUIET = 3
"""Seconds for which nothing may happen in the end."""
HALF = {"min": 4, "max": 8}
GANG = Load(1, pods=3, cpu=2, together=True)
WORLDS = {
    "quotas": World(8, Team(Load(8), HALF), Team(Load(6), HALF), end=(4, 4), evicted=4),
    "queues": World(8, Team(Load(8), queue="q1"), Team(Load(6), queue="q2"), end=(4, 4), evicted=4),
    "fair share": World(
        8,
        Team(Load(8), queue="q"),
        Team(Load(6), queue="q"),
        end=(5, 3),  # with one more taken both would have changed places
        evicted=3,
        flags=("--fair-share.preemption",),
    ),
    "gangs that straddle a min": World(8, Team(GANG, HALF), Team(GANG, HALF), end=(3, 0), evicted=0),
    "gangs that straddle a queue": World(8, Team(GANG, queue="q1"), Team(GANG, queue="q2"), end=(3, 0), evicted=0),
}


@pytest.mark.parametrize("name", WORLDS)
def test_evictions_end_and_none_is_in_vain_where_evicted_pods_are_made_anew(cluster, watch, name):
    world = WORLDS[name]
    first, then = world.set_up(cluster)
    lending, taking = watch(first), watch(then)

    def made_anew():
        """How many pods there are, without those that are on their way out."""
        return [sum(not item["metadata"].get("deletionTimestamp") for item in each.pods) for each in (lending, taking)]

    def at_rest():
        """Whether as many are there as Jobs want, each bound or tried, as many bound as may be, and nothing held."""
        tried = all(condition(item, "PodScheduled") for each in (lending, taking) for item in each.pods)
        wanted = [team.load.jobs * team.load.pods for team in (world.first, world.then)]
        idle = not cluster.api.items("reservations")
        return idle and tried and made_anew() == wanted and (lending.bound, taking.bound) == world.end

    def seen():
        """What there is, where it is not as it should be."""
        waiting = [
            f"{item['metadata']['name']}: {item['status'].get('nominatedNodeName', '')} "
            f"{condition(item, 'PodScheduled').get('message')}"
            for each in (lending, taking)
            for item in each.pods
            if not is_bound(item)
        ]
        plans = [(item["spec"], item.get("status")) for item in cluster.api.items("reservations")]
        return "\n".join(map(str, [(lending.bound, taking.bound), made_anew(), *plans, *waiting]))

    with (
        ControllerManager(cluster.control_plane, "job-controller"),
        Quotaward(cluster.control_plane, *world.flags) as quotaward,
        Scheduler(cluster.control_plane, extender(quotaward.url)),
    ):

        def comes(team, namespace):
            groups = team.load.groups(namespace)
            cluster.api.create_all(groups)

            def known():
                return [each for each in quotaward.get("/api/v1/podgroups")["items"] if each["namespace"] == namespace]

            wait_until(lambda: len(known()) == len(groups), "its groups are known before their pods")
            cluster.api.create_all(team.load.objects(namespace))

        comes(world.first, first)
        most = min(world.first.load.jobs * world.first.load.pods, world.cpu // world.first.load.cpu)
        wait_until(lambda: lending.bound == most, "the first has filled what it can")
        comes(world.then, then)
        wait_until(at_rest, "all is as it should be", detail=seen)
        ensure_for(QUIET, at_rest, "it stays so")
        evicts(world.evicted, lending)
        assert not evicted(taking), "nobody was evicted who had taken back"
