"""Replay against a real control plane: the same burst of Jobs, with the same nodes, quotas and queues."""

import os
from collections import Counter

import pytest

from tests.controlplane.processes import wait_until
from tests.e2e.replaying import Burst, Wanted, at_rest, in_turn, name_of
from tests.e2e.waiting import ensure_for

LONG = bool(os.environ.get("QUOTAWARD_LONG"))
NODES, CORES = 4, 8
GANG = 4
AT_ONCE = 4
"""How many Jobs are started at a time (``jobs.concurrency``): by so many turns their order may differ."""


def jobs(team, singles, gangs):
    """Jobs of one pod, with a gang after each fourth as long as there are gangs."""
    alone = [Wanted(f"{team}-s{number:02}", team) for number in range(singles)]
    whole = [Wanted(f"{team}-t{number}", team, pods=GANG) for number in range(gangs)]
    for number, each in enumerate(whole, start=1):
        alone.insert(5 * number - 1, each)
    return alone


def of_quotas(cluster, burst):
    """Teams with elastic quotas: the first borrows what the third is owed, the second may not borrow."""
    teams = [burst.team(name) for name in ("borrower", "modest", "owner")]
    for team, bounds in zip(teams, ((8, 32), (8, 8), (16, 32)), strict=True):
        cluster.quota(team, min={"cpu": bounds[0]}, max={"cpu": bounds[1]})
    return teams


def of_queues(cluster, burst):
    """Teams of two queues: the first has one for itself; the third asks for what the second leaves of theirs."""
    first, second = cluster.queue("first", weight=1), cluster.queue("second", weight=3)
    return [burst.team(*each) for each in (("borrower", first), ("modest", second), ("owner", second))]


def come_to_rest(burst, folder):
    """Waits until as many pods of each team run as in a replay of all that was made so far; returns that."""
    played = burst.play(folder)
    expected = at_rest(played)
    wait_until(lambda: burst.bound() == expected, f"{dict(expected)} run", 30, detail=burst.bound)
    ensure_for(2, lambda: burst.bound() == expected, f"{dict(expected)} run on")
    return played


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("world", "whole"),
    [(of_quotas, False), (of_queues, True)] + ([(of_quotas, True), (of_queues, False)] if LONG else []),
)
def test_as_many_pods_of_each_team_run_at_rest_also_after_an_owner_came(
    cluster, quotaward, scheduler, tmp_path, world, whole
):
    cluster.nodes(NODES, cpu=CORES)
    with Burst(cluster, quotaward, whole=whole) as burst:
        borrower, modest, owner = world(cluster, burst)
        burst.make([*in_turn(jobs(borrower, 34, 3), jobs(modest, 12, 0))])
        before = at_rest(come_to_rest(burst, tmp_path))
        assert before.total() == NODES * CORES
        burst.make(jobs(owner, 6, 1))
        played = come_to_rest(burst, tmp_path)
        print(dict(before), dict(at_rest(played)))
        assert at_rest(played) == before - Counter({borrower: 10}) + Counter({owner: 10})
        assert burst.evicted().keys() == {each.job.team for each in played.jobs if each.evictions} == {borrower}


@pytest.mark.timeout(300)
def test_jobs_start_in_the_order_of_a_replay_and_no_sooner(cluster, quotaward, scheduler, tmp_path):
    """Nobody starts sooner: all Jobs are alike, so who comes late only delays others. The first team has made many."""
    cluster.nodes(3, cpu=4)
    with Burst(cluster, quotaward, whole=True) as burst:
        teams = {burst.team(name): number for name, number in (("early", 24), ("late", 12))}
        burst.make([Wanted(f"{team}-{n:02}", team, run=3) for team, number in teams.items() for n in range(number)])
        wait_until(lambda: burst.ended() == len(burst.made), "all have run", detail=burst.ended)
        played = burst.play(tmp_path).jobs
    assert not burst.evicted()
    assert not any(each.evictions for each in played)
    starts = burst.starts()
    later = [
        is_at - at for is_at, at in zip(sorted(starts.values()), sorted(each.first for each in played), strict=True)
    ]
    print(f"{min(later):.2f} to {max(later):.2f} s later than in the replay")
    assert min(later) >= 0
    for team in teams:
        firsts = {name_of(each.job.name): each.first for each in played if each.job.team == team}
        assert sorted(firsts, key=firsts.get) == sorted(firsts)
        turns = burst.turns(team)
        assert max(abs(turn - sorted(firsts).index(name)) for turn, name in enumerate(turns)) <= AT_ONCE
        sooner = zip(sorted(firsts.values()), sorted(starts[name] for name in firsts)[AT_ONCE:], strict=False)
        assert all(at <= is_at for at, is_at in sooner), team
