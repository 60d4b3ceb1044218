"""What the scheduler waits for takes so many steps and no more: lines of Python, counted, where seconds would vary.

A line of ours that is run a second time counts again. That a bound is met tells nothing of a single slow step; that is
what the benchmarks are for.
"""

import json
from itertools import chain

import pytest

from app.actuators.recording import RecordingActuator
from app.extender.endpoints import Extender
from app.store.budgets import BUDGETS
from policy.preemption import victims
from policy.quota.admission import Rules
from policy.stepwise import at_once
from tests.unit.app.given import made, namespace, node, pod, queue, quota, refused, reserve, see, store_with
from tests.unit.app.lines import lines_of, lines_once

EPOCH = 1_000_000_000.0
A_BRANCH = 3
"""Lines by which two answers differ for what stands in the quotas, not for how many there are."""


def extender(quotas=3, pods=3):
    """Pods stand on two nodes, in namespaces that have a quota each; those of the first borrow."""
    objects = [node(name, cpu="1000", memory="1Gi", pods="1000") for name in ("n1", "n2")]
    objects += [quota(f"team-{number}", min={"cpu": 1}, max={"cpu": 100}) for number in range(quotas)]
    objects.append(quota("owner", min={"cpu": 10_000}, max={"cpu": 10_000}))
    objects += [pod(f"p{number}", f"team-{number % quotas}", nodeName="n1") for number in range(pods)]
    store = store_with(*objects)
    return Extender(store, RecordingActuator(store))


def asking(candidates=2, namespace="team-0", **requests):
    names = [f"n{number}" for number in range(1, candidates + 1)]
    return json.dumps({"Pod": pod("new", namespace, requests or None), "NodeNames": names}).encode()


VERBS = {
    "filter, admitted": ("filter", {}, 452),
    "filter, refused": ("filter", {"cpu": "101"}, 329),
    "prioritize": ("prioritize", {}, 33),
}


@pytest.mark.parametrize("case", VERBS)
def test_an_answer_takes_few_steps(case):
    verb, requests, bound = VERBS[case]
    assert lines_of(getattr(extender(), verb), asking(**requests)) <= bound


def test_an_answer_for_a_pod_of_a_queue_takes_few_steps_where_others_of_it_wait():
    teams = [f"team-{number}" for number in range(3)]
    objects = [node("n1", cpu="1000", memory="1Gi", pods="1000"), queue("q"), queue("other")]
    objects += [namespace(team, **{"scheduling.volcano.sh/queue-name": "q"}) for team in teams]
    waiting = [refused(pod(f"p{number}", team)) for team in teams for number in range(10)]
    store = store_with(*objects, *waiting)
    at_once(store.cluster.divide_steps())
    question = {"Pod": waiting[0], "NodeNames": ["n1"]}
    assert lines_of(Extender(store, RecordingActuator(store)).filter, json.dumps(question).encode()) <= 577


def test_a_queue_above_the_pods_own_costs_few_steps():
    def steps(depth):
        names = [f"q{level}" for level in range(depth)]
        parents = ["root", *names]
        objects = [node("n1", cpu="1000", memory="1Gi", pods="1000")]
        objects += [queue(name, parent=parent) for name, parent in zip(names, parents, strict=False)]
        objects += [namespace("team-0", **{"scheduling.volcano.sh/queue-name": names[-1]}), pod("p", "team-0")]
        store = store_with(*objects)
        at_once(store.cluster.divide_steps())
        question = {"Pod": pod("p", "team-0"), "NodeNames": ["n1"]}
        return lines_of(Extender(store, RecordingActuator(store)).filter, json.dumps(question).encode())

    assert (steps(8) - steps(1)) / 7 <= 17


@pytest.mark.parametrize("case", VERBS)
def test_an_answer_takes_no_more_steps_in_a_large_cluster(case):
    verb, requests, _ = VERBS[case]
    small, large = extender(), extender(quotas=100, pods=300)
    more = lines_of(getattr(large, verb), asking(**requests)) - lines_of(getattr(small, verb), asking(**requests))
    assert more <= A_BRANCH


@pytest.mark.parametrize("case", VERBS)
def test_an_answer_takes_no_more_steps_for_more_candidates(case):
    verb, requests, _ = VERBS[case]
    few, many = (lines_of(getattr(extender(), verb), asking(candidates, **requests)) for candidates in (2, 500))
    assert many == few


def reserving(number, promised=EPOCH + 3600, large="3", cpu="3"):
    """A hundred nodes with room for a pod each, many of which may be reserved for large pods by a promised time."""
    names = [f"n{each}" for each in range(100)]
    objects = [quota("team-0", min={"cpu": 1000}, max={"cpu": 1000})]
    for name in names:
        objects += [node(name, cpu=cpu, pods="9"), pod(f"on-{name}", "team-0", {"cpu": "2"}, nodeName=name)]
    store = store_with(*objects, *(refused(pod(f"big-{name}", "b", {"cpu": large})) for name in names[:number]))
    store.cluster.protection.pass_time(EPOCH)
    for name in names[:number]:
        reserve(store, f"big-{name}", name, "b", promised=promised)
    return Extender(store, RecordingActuator(store))


@pytest.mark.parametrize(("offered", "bound"), [((100, 500), 54), ((0, 500), 65)], ids=["no reserved node", "all"])
def test_a_hundred_promised_starts_take_an_answer_few_more_steps(offered, bound):
    question = {"Pod": pod("new", "team-0"), "NodeNames": [f"n{each}" for each in range(*offered)]}

    def steps(extender):
        table, answer = extender.store.cluster.table, json.dumps(question, separators=(",", ":")).encode()
        taken = lines_of(extender.filter, answer)
        elsewhere = pod("other", "team-0", nodeName="elsewhere")
        see(extender.store, elsewhere)
        assert not table.memo, "what is on the nodes has changed"
        assert lines_once(extender.filter, answer) <= taken
        return taken

    assert 0 < steps(reserving(100)) - steps(reserving(0)) <= bound
    assert steps(reserving(100)) == steps(reserving(10))


def test_room_beside_promised_starts_takes_an_answer_no_more_steps_where_many_are():
    """Some pods are on their way, and may come to each of the nodes, as the pod may that asks, or that it is for."""

    def steps(number):
        extender, taken = reserving(number, large="2", cpu="16"), []
        for each in range(5):
            on_its_way = pod(f"p{each}", "team-0", {"cpu": f"{each + 1}m"})
            extender.filter(json.dumps({"Pod": on_its_way, "NodeNames": ["elsewhere"]}).encode())
        for item in (pod("new", "team-0"), pod("big-n1", "b", {"cpu": "2"})):
            question = {"Pod": item, "NodeNames": [f"n{each}" for each in range(500)]}
            taken.append(lines_of(extender.filter, json.dumps(question, separators=(",", ":")).encode()))
        assert len(list(extender.store.cluster.reservations.nodes.may_come())) > 5
        return taken

    assert steps(100) == steps(10)


def test_many_budgets_that_protect_the_pod_take_an_answer_no_more_steps():
    def steps(budgets):
        asking = pod("new", "team-0", metadata={"annotations": {"quotaward.dev/run-time": "10m"}})
        extender, names = reserving(10), [f"n{each}" for each in range(10)]
        extender.store.cluster.rules = Rules(run_time_grace=60)
        for number in range(budgets):
            see(extender.store, made(BUDGETS, f"pdb-{number}", "team-0", spec={"selector": {}}))
        see(extender.store, asking)
        assert extender.store.cluster.run_times.declared(extender.store.cluster.pod("team-0", "new")) == 600
        return lines_of(extender.filter, json.dumps({"Pod": asking, "NodeNames": names}).encode())

    assert steps(1000) == steps(10)


@pytest.mark.parametrize(("enough", "bound"), [(1, 19), (1000, 34)], ids=["one is enough", "all are not enough"])
def test_preemption_takes_few_steps_by_the_pod_that_might_go(enough, bound):
    def steps(pods):
        victims = {"n1": {"Pods": [{"UID": "team-0/p0"}], "NumPDBViolations": 0}}
        cpu = 1000 - pods + enough
        question = {"Pod": pod("new", "owner", {"cpu": str(cpu)}, priority=1), "NodeNameToMetaVictims": victims}
        return lines_of(extender(quotas=10, pods=pods).preempt, json.dumps(question).encode())

    assert (steps(60) - steps(30)) / 30 <= bound


def test_no_step_of_a_search_for_victims_takes_longer_for_more_quotas():
    def longest_step(quotas):
        objects = [node("n1", cpu="20", memory="1Gi", pods="100"), pod("new", "owner")]
        objects += [quota("owner", min={"cpu": 1000}, max={"cpu": 1000})]
        objects += [quota(f"team-{number}", min={"cpu": 0}, max={"cpu": 100}) for number in range(quotas)]
        objects += [pod(f"p{number}", f"team-{number}", nodeName="n1") for number in range(20)]
        cluster = store_with(*objects).cluster
        results = []
        search = chain(victims.search_steps(cluster, cluster.pod("owner", "new")), [results])
        steps = []
        while not results:
            steps.append(lines_once(lambda: next(search) is results and results.append(True)))
        return max(steps)

    assert longest_step(1000) <= longest_step(500)
