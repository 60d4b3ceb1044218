"""docs/security.md says who can do what: each row of its table is done on a real API server, with its own roles."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.admission import BINDING, POLICY, installed
from tests.controlplane.api import read_manifests
from tests.controlplane.cluster import Cluster
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import Object, pod
from tests.controlplane.pod_groups import install_pod_groups
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import install_rights, right_to_bind
from tests.e2e.deeds import QUEUE, RUNNING, SYSTEM, Deed, deeds, ours
from tests.e2e.tenants import RIGHT, STOCK, Answer, Answers, Tenants

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
ADMISSION = read_manifests(ROOT / "manifests/admission")
POLICIES = [each for each in ADMISSION if each["kind"] == "ValidatingAdmissionPolicy"]
BINDINGS = [each for each in ADMISSION if each["kind"] == "ValidatingAdmissionPolicyBinding"]
VALIDATIONS = [
    pytest.param(each, number, id=f"{each['metadata']['name']}-{number}")
    for each in POLICIES
    for number in range(len(each["spec"]["validations"]))
]


def table(heading: str) -> dict[str, list[str]]:
    """The first table below a heading: by the first cell of each row the others."""
    lines = PAGE[PAGE.index(f"## {heading}\n") :].splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("|")) + 2
    end = next(number for number in range(begin, len(lines)) if not lines[number].startswith("|"))
    rows = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[begin:end])
    return {first: others for first, *others in rows}


ROWS = table("Who can do what")


@dataclass(frozen=True, slots=True)
class World:
    """The policies are in force. ``before`` is what was answered while they were not."""

    tenants: Tenants
    before: Answers
    after: Answers

    def refused_by(self, policy: str) -> list[Answer]:
        """What a policy alone refuses, of those who have a right to it."""
        words = f"ValidatingAdmissionPolicy '{policy}' with binding"
        return [
            each for (_, who), found in self.after.items() if who == RIGHT for each in found if words in each.objection
        ]

    def passes(self, answers: list[Answer]) -> bool:
        """Whether any of these is let pass now."""
        return not all(self.tenants.ask(each.deed, each.user) for each in answers)


@pytest.fixture(scope="module")
def tenants(control_plane, definitions) -> Iterator[Tenants]:
    """All of it on a real API server, whose stock roles are filled by a controller of Kubernetes."""
    cluster = Cluster(control_plane)
    install_rights(cluster.api)
    install_pod_groups(cluster.api)
    with right_to_bind(cluster.api):
        with ControllerManager(control_plane, "clusterrole-aggregation-controller"):
            tenants = Tenants(cluster)
        yield tenants
        tenants.close()
    cluster.wipe()


@pytest.fixture(scope="module")
def world(tenants) -> Iterator[World]:
    before = tenants.answers()
    with installed(tenants.cluster, ADMISSION):
        yield World(tenants, before, tenants.answers())


def verdict(answers: list[Answer]) -> str:
    """The word of the table: all of a row's requests are answered alike."""
    refused = [each.objection for each in answers if each.objection]
    assert all(re.search(r": (403|422) ", each) for each in refused), refused
    assert len(refused) in (0, len(answers)), answers
    return "no" if refused else "yes"


# The table


def test_each_row_is_done():
    assert list(ROWS) == list(deeds(""))


@pytest.mark.parametrize("row", ROWS)
def test_the_table_is_true(world, row):
    *before, after, what = (cell.strip("*") for cell in ROWS[row])
    assert [verdict(world.before[row, who]) for who in (*STOCK, RIGHT)] == before
    for who, might in zip((*STOCK, RIGHT), before, strict=True):
        assert verdict(world.after[row, who]) == ("no" if might == "no" else after), who
        if (might, after) == ("yes", "no"):
            assert all(" denied request: " in each.objection for each in world.after[row, who])
    assert what


# The policies


@pytest.mark.parametrize(("policy", "number"), VALIDATIONS)
def test_each_rule_is_needed(world, policy, number):
    name = policy["metadata"]["name"]
    refused = world.refused_by(name)
    assert not world.passes(refused)
    rules = [
        each | {"expression": "true"} if at == number else each for at, each in enumerate(policy["spec"]["validations"])
    ]
    try:
        world.tenants.api.patch(POLICY, name, {"spec": {"validations": rules}})
        wait_until(lambda: world.passes(refused), "without that rule something passes", every=0.2)
    finally:
        world.tenants.api.apply(policy)
        wait_until(lambda: not world.passes(refused), "it is in force again", every=0.2)


@pytest.mark.parametrize("binding", BINDINGS, ids=lambda each: each["metadata"]["name"])
def test_each_binding_is_needed(world, binding):
    refused = world.refused_by(binding["spec"]["policyName"])
    try:
        world.tenants.api.delete(BINDING, binding["metadata"]["name"])
        wait_until(lambda: world.passes(refused), "without that binding something passes", every=0.2)
    finally:
        world.tenants.api.apply(binding)
        wait_until(lambda: not world.passes(refused), "it is in force again", every=0.2)


def test_what_serves_the_whole_cluster_is_not_hindered(world):
    home = world.tenants.homes[0]
    rows = deeds(home)
    quotaward, scheduler = "system:serviceaccount:quotaward-system:quotaward", "system:kube-scheduler"
    gone = [Deed("deletecollection", each, home) for each in ("elasticquotas", "resourcequotas")]
    for who, wanted in (
        (quotaward, rows["write the conditions `quotaward.dev/...` of a pod"]),
        (quotaward, rows["change what the quota manager wrote"]),
        (quotaward, rows["write the status of an ElasticQuota"]),
        (scheduler, rows["bind a pod (`pods/binding`, `bindings`)"]),
        (scheduler, rows["write anything else of `pods/status`"]),
        ("system:serviceaccount:kube-system:namespace-controller", gone),
    ):
        assert [world.tenants.ask(each, who) for each in wanted] == [""] * len(wanted), who


def test_a_kubelet_is_not_hindered(world):
    home = world.tenants.homes[0]
    rows = deeds(home)
    wanted = [
        *rows["create a pod that passes for a static one (`kubernetes.io/config.mirror`, `spec.nodeName`)"],
        *rows["write the phase of a pod"],
        *rows["write the conditions `quotaward.dev/...` of a pod"],
        *rows["write the condition `PodResizePending` of a pod"],
    ]
    kubelet = world.tenants.somebody(home, *wanted)
    assert all(" denied request: " in world.tenants.ask(each, kubelet) for each in wanted)
    assert [world.tenants.ask(each, kubelet, "system:nodes") for each in wanted] == [""] * len(wanted)


def test_a_right_over_the_cluster_makes_an_operator_but_no_pod_skips_its_scheduler(world):
    for home in world.tenants.homes:
        refused = [row for row, (*_, right, admission, _) in ROWS.items() if (right, admission) == ("yes", "**no**")]
        everywhere = {row: world.tenants.deeds(home)[row] for row in refused}
        operator = world.tenants.operator(*(each for wanted in everywhere.values() for each in wanted))
        still = {row for row, wanted in everywhere.items() if any(world.tenants.ask(each, operator) for each in wanted)}
        assert still == {row for row in refused if row.startswith("create a pod")}


def test_the_namespaces_that_the_cluster_lives_on_are_left_alone(world, control_plane):
    item = pod("p", SYSTEM)
    control_plane.api.patch("namespaces", SYSTEM, {"metadata": {"annotations": {QUEUE: "poor"}}})
    assert Deed("create", "pods", SYSTEM, body=item).asked(control_plane.api) == ""
    control_plane.api.patch("namespaces", SYSTEM, {"metadata": {"annotations": {QUEUE: None}}})


def test_without_the_definition_of_quotas_no_pod_is_created_but_old_ones_are_bound(world):
    api, home = world.tenants.api, world.tenants.homes[1]
    created = Deed("create", "pods", home, body=ours("p", home))
    vital = Deed("create", "pods", SYSTEM, body=pod("p", SYSTEM))
    nowhere = {"spec": {"paramKind": {"apiVersion": "nowhere.example.com/v1", "kind": "ElasticQuota"}}}
    of_quotas = [each for each in POLICIES if "paramKind" in each["spec"]]
    assert created.asked(api) == ""
    try:
        for policy in of_quotas:
            api.patch(POLICY, policy["metadata"]["name"], nowhere)
        wait_until(lambda: "failed to configure policy" in created.asked(api), "nobody can say who has a quota")
        assert vital.asked(api) == ""
        bindings = deeds(home)["bind a pod (`pods/binding`, `bindings`)"]
        wait_until(lambda: not any(world.tenants.ask(each, "system:kube-scheduler") for each in bindings), "it binds")
    finally:
        for policy in of_quotas:
            api.apply(policy)
        wait_until(lambda: created.asked(api) == "", "it is in force again")


@pytest.mark.parametrize("containers", [30, 1000])
def test_a_pod_of_many_containers_does_not_grow(world, containers):
    home, name = world.tenants.homes[0], f"large-{containers}"
    item = ours(name, home)
    item["spec"]["containers"] = [
        {"name": f"c{number}", "image": "none", "resources": {"requests": {"cpu": "2m", "memory": "2Mi"}}}
        for number in range(containers)
    ]
    world.tenants.api.create(item)

    def resized(cpu: str) -> Deed:
        last = {"name": f"c{containers - 1}", "resources": {"requests": {"cpu": cpu}}}
        return Deed("patch", "pods/resize", home, name, {"spec": {"containers": [last]}})

    tenant = world.tenants.somebody(home, resized("3m"))
    assert "quotaward-growth" in world.tenants.ask(resized("3m"), tenant)
    assert world.tenants.ask(resized("3m"), world.tenants.operator(resized("3m"))) == ""
    if containers == 30:
        assert world.tenants.ask(resized("1m"), tenant) == ""


def test_a_condition_is_not_hidden_among_thousands(world):
    home = world.tenants.homes[0]
    others = [{"type": f"example.com/c{number}", "status": "True"} for number in range(3000)]
    ours = {"type": "quotaward.dev/CountsIn", "status": "True", "message": "elsewhere"}

    def said(*conditions: Object) -> Deed:
        return Deed("patch", "pods/status", home, RUNNING, {"status": {"conditions": list(conditions)}})

    tenant = world.tenants.somebody(home, said())
    assert world.tenants.ask(said(*others), tenant) == ""
    assert "the conditions quotaward.dev/... are Quotaward's" in world.tenants.ask(said(*others, ours), tenant)
