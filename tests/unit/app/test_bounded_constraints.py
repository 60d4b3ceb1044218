"""What a tenant's pod may say of where it goes costs everybody else a bounded step, and who says too much is told."""

import asyncio
import json

import msgspec
import pytest

from app.actuators.recording import RecordingActuator
from app.controllers.unjudged import OF_NAMESPACE, Unjudged
from app.extender.endpoints import Extender
from app.store.pods import PODS, pod_of
from policy.nodes import gang_demands, pod_demands
from policy.nodes.fit import fits
from policy.nodes.tolerations import EVERYTHING
from policy.objects.constraints import MOST_RESOURCES, MOST_STEPS, MOST_STEPS_ON_NODES, TOO_MANY, TOO_MANY_OF_NAMESPACE
from policy.preemption.plans import NoPlan
from policy.preemption.victims import plan
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from tests.unit.app.given import client_of, node, pod, pod_group, quota, refused, see, store_with
from tests.unit.app.lines import lines_of, lines_once, longest_step
from tests.unit.app.test_refusals import Recorder

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NUMBERS = "it is let in by numbers, nobody is evicted for it, and its anti-affinity keeps nobody away here"


def term(number, key="kubernetes.io/hostname", **rest):
    """A term of four steps: itself, an expression, a value, and the pod's own namespace."""
    chosen = [{"key": "app", "operator": "NotIn", "values": [f"v{number}"]}]
    return {"labelSelector": {"matchExpressions": chosen}, "topologyKey": key} | rest


def apart(count, **rest):
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term(number, **rest) for number in range(count)]}}}


def near(count, **rest):
    return {"affinity": {"podAffinity": {REQUIRED: [term(number, **rest) for number in range(count)]}}}


def wide(count):
    """One term with so many values."""
    values = [f"v{number}" for number in range(count)]
    chosen = [{"key": "app", "operator": "In", "values": values}]
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{"labelSelector": {"matchExpressions": chosen}}]}}}


def spread(count):
    """Constraints of three steps each."""
    chosen = {"matchLabels": {"app": "web"}}
    rules = [{"maxSkew": each + 1, "topologyKey": "zone", "labelSelector": chosen} for each in range(count)]
    return {"topologySpreadConstraints": rules}


def on_nodes(count):
    """Terms of three steps each."""
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"z{each}"]}]} for each in range(count)]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def ports(count):
    container = {"name": "main", "ports": [{"containerPort": 80, "hostPort": 8000 + each} for each in range(count)]}
    return {"containers": [container]}


def tolerations(count):
    return {"tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(count)]}


def labels_of_nodes(count):
    return {"nodeSelector": {f"k{number}": "x" for number in range(count)}}


def namespaces(count):
    """One term on so many namespaces."""
    names = [f"n{number}" for number in range(count)]
    return {"affinity": {"podAffinity": {REQUIRED: [{"labelSelector": {}, "namespaces": names}]}}}


PARTS = {
    "anti-affinity": (apart, "anti_affinity", MOST_STEPS // 4),
    "values of anti-affinity": (wide, "anti_affinity", MOST_STEPS - 3),
    "affinity": (near, "affinity", MOST_STEPS // 4),
    "namespaces of affinity": (namespaces, "affinity", MOST_STEPS - 1),
    "spreading": (spread, "spread", MOST_STEPS // 3),
    "node affinity": (on_nodes, "node_terms", MOST_STEPS_ON_NODES // 3),
    "node selector": (labels_of_nodes, "node_selector", MOST_STEPS_ON_NODES),
    "tolerations": (tolerations, "tolerations", MOST_STEPS),
    "host ports": (ports, "host_ports", MOST_STEPS),
}
INSTEAD = {"node_terms": None, "tolerations": EVERYTHING}
"""What stands in place of what is not judged, where that is not nothing: such a pod is kept off nowhere."""


def decoded(**spec):
    return pod_of(PODS.decoder.decode(msgspec.json.encode(pod("p", **spec))))


def constraints_of(**spec):
    return decoded(**spec).constraints


def pod_with(requests):
    return decoded(containers=[{"name": "main", "resources": {"requests": requests}}])


@pytest.mark.parametrize("part", PARTS)
def test_as_much_as_is_judged_is_kept(part):
    given, name, most = PARTS[part]
    constraints = constraints_of(**given(most))
    assert constraints.undecidable == ()
    assert getattr(constraints, name) not in ((), None, EVERYTHING)


@pytest.mark.parametrize("part", PARTS)
def test_of_more_than_is_judged_nothing_is_kept_and_that_is_said(part):
    given, name, most = PARTS[part]
    constraints = constraints_of(**given(most + 1))
    assert constraints.undecidable == (TOO_MANY[name],)
    assert getattr(constraints, name) == INSTEAD.get(name, ())


def test_of_more_resources_than_are_judged_so_many_are_kept_and_that_is_said():
    names = [f"x.io/r{number:05}" for number in range(MOST_RESOURCES)]
    usual = {"cpu": "1", "memory": "1Gi"}
    enough = pod_with(dict.fromkeys(names[2:], "1") | usual)
    assert enough.request == dict.fromkeys(names[2:], 1) | {"cpu": 1000, "memory": 2**30, "pods": 1}
    assert enough.constraints.undecidable == ()
    too_many = pod_with(dict.fromkeys([*names, "y.io/more"], "1") | usual)
    assert too_many.request == dict.fromkeys(names[:-2], 1) | {"cpu": 1000, "memory": 2**30, "pods": 1}
    assert too_many.constraints.undecidable == (TOO_MANY["resources"],)


def test_what_is_asked_for_as_nothing_hides_no_resource():
    nothing = {f"a.io/r{number}": "0" for number in range(MOST_RESOURCES)}
    hidden = pod_with({**nothing, "nvidia.com/gpu": "8"})
    assert hidden.request["nvidia.com/gpu"] == 8
    assert hidden.constraints.undecidable == ()


def test_what_is_not_too_much_is_judged_beside_it():
    constraints = constraints_of(**apart(1000), nodeSelector={"zone": "a"}, **spread(1))
    assert constraints.node_selector == (("zone", "a"),)
    assert len(constraints.spread) == 1
    assert constraints.undecidable == (TOO_MANY["anti_affinity"],)


@pytest.mark.parametrize("part", ["anti-affinity", "affinity", "spreading", "node affinity", "tolerations"])
def test_no_more_is_translated_than_is_judged(part):
    given = PARTS[part][0]
    small, large = ([pod("p", **given(count)) for count in (many, many + 1)] for many in (600, 6000))
    assert lines_decoding(large) <= lines_decoding(small) * 1.1


def lines_decoding(items):
    """How many lines of Python it takes to translate pods, once what all pods have in common is at hand."""
    constraints_of()
    objects = [PODS.decoder.decode(msgspec.json.encode(item)) for item in items]
    return lines_once(lambda: [pod_of(each) for each in objects])


def crowd(count, **spec):
    """Pods that stand on two nodes, each with another label."""
    items = [node(name, cpu="1000", pods="10000") for name in ("n1", "n2")]
    for item in items:
        item["metadata"]["labels"] = {"kubernetes.io/hostname": item["metadata"]["name"], "zone": "a"}
    labels = [{"labels": {"app": f"x{number}"}, "uid": f"u{number}"} for number in range(count)]
    return items + [
        pod(f"r{each}", "o", {}, labels[each], nodeName=f"n{each % 2 + 1}", **spec) for each in range(count)
    ]


def heavy(name="heavy", count=3000, **rest):
    return refused(
        pod(name, "t", {"cpu": "5"}, **apart(count, namespaceSelector={}), **rest), "0/2 nodes: Insufficient"
    )


def test_a_pod_with_thousands_of_terms_is_let_in_by_numbers_and_nobody_goes_for_it():
    store = store_with(*crowd(4), quota("t", min={"cpu": 5}, max={"cpu": 5}), heavy())
    assert store.cluster.check(store.cluster.pod("t", "heavy")) is None
    found = plan(store.cluster, store.cluster.pod("t", "heavy"))
    assert isinstance(found, NoPlan)
    assert (found.reason, found.text) == (
        "undecidable",
        f"Where the pod fits cannot be decided here: {TOO_MANY['anti_affinity']}",
    )


@pytest.mark.parametrize("stands", [False, True], ids=["waiting", "running"])
def test_others_are_answered_in_as_many_steps_as_without_it(stands):
    def steps(*more):
        store = store_with(*crowd(10), quota("t", min={"cpu": 9}), quota("o", min={"cpu": 500}), *more)
        extender = Extender(store, RecordingActuator(store))
        question = {"Pod": pod("new", "o"), "NodeNames": ["n1", "n2"]}
        asked = lines_of(extender.filter, json.dumps(question).encode())
        victims = {"n1": {"Pods": [{"UID": "u0"}], "NumPDBViolations": 0}}
        question = {"Pod": pod("new", "o", priority=9), "NodeNameToMetaVictims": victims}
        return asked + lines_of(extender.preempt, json.dumps(question).encode())

    rest = {"nodeName": "n1"} if stands else {}
    assert steps(heavy(**rest)) <= 1.1 * steps(heavy(count=0, **rest))


def test_what_a_pod_of_full_measure_demands_costs_no_more_among_many_pods():
    def steps(number):
        cluster = store_with(*crowd(number), heavy(count=MOST_STEPS // 3)).cluster
        return lines_asking(cluster, cluster.pod("t", "heavy"))

    assert steps(400) <= 1.1 * steps(100)
    assert steps(100) <= 30 * MOST_STEPS


def lines_asking(cluster, asker):
    """What it takes to know where a pod fits, when the table has changed and has been asked before."""

    def ask(_):
        cluster.table.memo.clear()
        fits(cluster.table, asker)

    return lines_of(ask, None)


def demanding_pods(count, space="evil", **rest):
    """Running pods, each of which keeps away others everywhere, by a term of its own that selects by what lacks."""
    for number in range(count):
        chosen = [{"key": f"k{number}", "operator": "DoesNotExist"}]
        alone = {"labelSelector": {"matchExpressions": chosen}, "topologyKey": "zone", "namespaceSelector": {}}
        yield pod(f"e{number}", space, {}, affinity={"podAntiAffinity": {REQUIRED: [alone]}}, **rest)


def test_many_pods_of_few_terms_cost_others_no_more_than_their_namespace_may(monkeypatch):
    monkeypatch.setattr(pod_demands, "MOST_IN_NAMESPACE", 200)

    def steps(count):
        cluster = store_with(*crowd(10), *demanding_pods(count, nodeName="n1"), pod("new", "o")).cluster
        return lines_asking(cluster, cluster.pod("o", "new"))

    assert steps(400) <= 1.1 * steps(20)


def explained(store, name="heavy"):
    told = client_of(store).get(f"/api/v1/pods/t/{name}").json()
    [step] = [each["text"] for each in told["next"] if each["step"] == "not-judged"]
    assert f"Mind that {step}." in told["summary"]
    return step


def test_who_has_more_than_is_judged_is_told_in_its_explanation():
    store = store_with(*crowd(2), heavy())
    assert explained(store) == f"{TOO_MANY['anti_affinity']}: {NUMBERS}"


def test_so_is_one_whose_namespace_has_too_much(monkeypatch):
    monkeypatch.setattr(pod_demands, "MOST_IN_NAMESPACE", 30)
    store = store_with(*crowd(2), *demanding_pods(2, "t"))
    assert explained(store, "e1") == f"{TOO_MANY_OF_NAMESPACE}: {NUMBERS}"
    told = client_of(store).get("/api/v1/pods/t/e0").json()
    assert "not-judged" not in {each["step"] for each in told["next"]}


def test_how_many_are_not_judged_is_a_metric():
    store = store_with(*crowd(2), heavy("h1"), heavy("h2"))
    client = client_of(store)
    assert 'quotaward_unjudged_pods{namespace="t"} 2.0' in client.get("/metrics").text
    see(store, heavy("h1", nodeName="n1"))
    assert 'quotaward_unjudged_pods{namespace="t"} 1.0' in client.get("/metrics").text
    store.cluster.delete_pod("t/h2")
    assert "quotaward_unjudged_pods{" not in client.get("/metrics").text


def test_each_pod_gets_one_event_and_not_too_many_of_a_namespace_at_a_time():
    store = store_with(*crowd(2), *(heavy(f"h{number}", 40) for number in range(OF_NAMESPACE + 2)))
    recorder = Recorder()
    unjudged = Unjudged(store, recorder)
    for expected in (OF_NAMESPACE, 2, 0):
        recorder.events.clear()
        asyncio.run(unjudged.look())
        assert len(recorder.events) == expected
        for event in recorder.events:
            assert (event.reason, event.warning, event.subject.namespace) == ("ConstraintsNotJudged", True, "t")
            assert event.message == f"{TOO_MANY['anti_affinity']}: {NUMBERS}"


def test_nothing_is_told_of_pods_that_are_judged():
    store = store_with(*crowd(2), heavy(count=3))
    recorder = Recorder()
    asyncio.run(Unjudged(store, recorder).look())
    assert recorder.events == []


# Gangs

GROUP = "scheduling.x-k8s.io/pod-group"


def gang(count, minimum=None, spec=lambda _: {}, labels=lambda _: {"app": "g"}):
    members = [
        pod(
            f"g{number}",
            "t",
            {"cpu": "1m"},
            {"labels": {GROUP: "g"} | labels(number), "uid": f"g{number}"},
            **spec(number),
        )
        for number in range(count)
    ]
    return [pod_group("g", "t", minimum or count), *members]


KINDS = {
    "alike, spread": lambda _: spread(1),
    "alike, apart": lambda _: apart(1, key="nowhere"),
    "of many kinds, spread": lambda number: spread(number % 30 + 1),
    "of many kinds, apart": lambda number: apart(number % 25 + 1),
    "with many ports": lambda number: {"containers": [], **ports(number + 1)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_of_a_gang_is_answered_in_no_more_steps_among_many_pods(kind):
    def steps(number):
        store = store_with(*crowd(number), *gang(60, spec=KINDS[kind]))
        member = store.cluster.pod("t", "g0")
        return lines_once(lambda: store.cluster.admit(member, 0, ("n1", "n2")))

    assert steps(600) <= 1.1 * steps(150)


def test_members_are_alike_whatever_labels_they_have_that_nobody_asks_for():
    def steps(labels):
        store = store_with(*crowd(10), *gang(60, spec=lambda _: spread(1), labels=labels))
        member = store.cluster.pod("t", "g0")
        taken = lines_once(lambda: store.cluster.admit(member, 0, ("n1", "n2")))
        assert len(store.cluster.gangs.holds) == 60
        assert all(store.cluster.gangs.node_for(f"g{number}") in ("", "n1", "n2") for number in range(60))
        return taken

    indexed = steps(lambda number: {"app": "g", "batch.kubernetes.io/job-completion-index": str(number)})
    assert indexed <= 1.5 * steps(lambda _: {"app": "g"})


@pytest.mark.parametrize(
    ("bound", "few"), [("MOST_ONE_BY_ONE", 9), ("MOST_KINDS", 1), ("MOST_STEPS_TOGETHER", 10 * 5 - 1)]
)
def test_a_gang_that_would_take_too_long_is_let_in_by_numbers(monkeypatch, bound, few):
    def held():
        many = gang(10, spec=lambda number: {"nodeSelector": {"x": "y"}} | apart(1) | tolerations(number % 2))
        cluster = store_with(*crowd(2), *many).cluster
        refusal = cluster.admit(cluster.pod("t", "g0"), 0, ("n1", "n2"))
        return refusal is None and {cluster.gangs.node_for(f"g{number}") for number in range(10)}

    assert held() is False  # no node has the label
    monkeypatch.setattr(gang_demands, bound, few)
    assert held() == {""}


def test_a_member_of_a_gang_that_cannot_start_is_refused_without_asking_for_others():
    def steps(count):
        store = store_with(*crowd(2), *gang(count, minimum=2**31 - 1))
        first, *others = [store.cluster.pod("t", f"g{number}") for number in range(10)]
        assert store.cluster.admit(first, 0, ("n1",)) is not None
        return max(lines_once(lambda pod=pod: store.cluster.admit(pod, 0, ("n1",))) for pod in others)

    assert steps(400) <= steps(100)


@pytest.mark.parametrize("minimum", [2**31 - 1, 1000], ids=str)
def test_what_would_be_pauses_for_a_gang_that_has_too_few(minimum):
    def steps(count):
        store = store_with(*crowd(2), *gang(count, minimum=minimum))
        return longest_step(Simulation(store.cluster, Terms(), 0.0).come_to_rest_steps())

    assert steps(400) <= 5 * steps(100)
