"""Budgets that never let anybody go, and the time for which they are heeded."""

import pytest

from policy.preemption import plan_text
from policy.stepwise import at_once
from tests.unit.app.given import node, pod, quota, refused, see
from tests.unit.app.reclaim_world import World, either


def budget_over(namespace, name="budget", **spec):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {}} | spec,
        "status": {"disruptionsAllowed": 0, "currentHealthy": 4, "expectedPods": 4, "desiredHealthy": 3},
    }


NOTHING = {"maxUnavailable": 0}


class Patient(World):
    """The same, with a bound on what budgets keep; evictions are blocked."""

    def __init__(self, *budgets, patience=300):
        super().__init__(budget_patience=patience, max_grace=20)
        see(self.store, *budgets)
        self.api.blocked, self.deleted = True, []
        delete = self.api.delete

        async def deletes(victim, grace=None):
            self.deleted.append((victim.name, grace))
            await delete(victim, grace)

        self.api.delete = deletes

    def waits(self, seconds, step=30):
        for _ in range(seconds // step):
            self.passes(step)


@either
@pytest.mark.parametrize(
    "budgets",
    [
        [budget_over("a", **NOTHING)],
        [budget_over("a", maxUnavailable="0%")],
        [budget_over("a", minAvailable="100%")],
        [budget_over("a") | {"status": {"expectedPods": 4, "desiredHealthy": 4}}],
        [budget_over("a", "one", maxUnavailable=1), budget_over("a", "two", maxUnavailable=1)],
    ],
    ids=["maxUnavailable 0", "0%", "minAvailable 100%", "minAvailable of all", "two budgets"],
)
def test_budgets_that_allow_nothing_keep_what_is_lent_only_for_the_time_set(budgets, another_leads):
    world = Patient(*budgets)
    world.passes(1)
    world.waits(290, step=10)
    assert world.deleted == []
    if another_leads:
        world.take_lead()
    world.waits(900)
    assert len(world.deleted) == 1
    assert world.deleted[0][1] == 20, "as it may have 30 seconds"


@pytest.mark.parametrize(
    ("budgets", "patience"),
    [
        ([budget_over("a", maxUnavailable=1)], 300),
        ([budget_over("b", **NOTHING)], 300),
        ([budget_over("a", **NOTHING)], None),
        ([], 300),
    ],
    ids=["allows some", "of others", "for ever", "no budget"],
)
def test_nobody_is_deleted_for_any_other_reason(budgets, patience):
    world = Patient(*budgets, patience=patience)
    world.passes(1)
    assert world.held
    world.waits(1200)
    assert world.deleted == []


def test_a_less_important_pod_of_ones_own_is_not_deleted_past_its_budget():
    world = Patient(budget_over("b", **NOTHING))
    see(world.store, node("n1", cpu="5", pods="9"), quota("a", min={"cpu": 9}), quota("b", max={"cpu": 1}))
    see(world.store, pod("own", "b", nodeName="n1"))
    waits = pod("owner", "b", priority=5)
    see(world.store, refused(waits, "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu."))
    world.passes(1)
    assert [each.name for each in world.store.cluster.reservations.plans["reclaim-b.owner"].victims] == ["own"]
    world.waits(1200)
    assert world.deleted == []


def test_budgets_that_never_let_anybody_go_are_named():
    world = Patient(budget_over("a", **NOTHING))
    world.passes(1)
    said = at_once(plan_text.for_pod_steps(world.store.cluster, world.store.cluster.pod("b", "owner")))
    assert said.endswith("; as they are, these will never let them go: a/budget")
    see(world.store, budget_over("a", maxUnavailable=1))
    said = at_once(plan_text.for_pod_steps(world.store.cluster, world.store.cluster.pod("b", "owner")))
    assert "a disruption budget does not let go now" in said
    assert "never" not in said
