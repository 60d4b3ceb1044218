"""What the template of a suspended Job really demands, from the JSON that the API server shows."""

import asyncio
import json

import pytest

from app.controllers import divide
from app.controllers.divide import Divide
from app.sources.defaults import with_defaults
from app.store.jobs import JOBS
from app.store.limit_ranges import LIMIT_RANGES
from app.store.namespaces import NAMESPACES
from app.store.priority_classes import PRIORITY_CLASSES
from app.store.quantities import InvalidObject
from app.store.queues import QUEUES
from app.store.runtime_classes import RUNTIME_CLASSES
from app.whatif import changes
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.simulate.snapshot import copy_steps, snapshot
from policy.stepwise import at_once
from tests.unit.app.given import complete, empty_store, made, node, see
from tests.unit.app.test_batch_jobs import forbidden  # noqa: F401 - a fixture

KINDS = (PRIORITY_CLASSES, LIMIT_RANGES, RUNTIME_CLASSES)


def container(limits=None, requests=None, **more):
    return {"name": "main", "resources": {"limits": limits, "requests": requests}} | more


def job(*containers, name="train", parallelism=1, **spec):
    template = {"spec": {"containers": list(containers or (container(),))} | spec}
    metadata = {"uid": f"uid-{name}"}
    return made(JOBS, name, "a", metadata, spec={"suspend": True, "parallelism": parallelism, "template": template})


def limit_range(name="defaults", **of_containers):
    limits = [{"type": "Container"} | of_containers, {"type": "Pod", "max": {"cpu": "9"}}]
    return with_defaults(LIMIT_RANGES, made(LIMIT_RANGES, name, "a", spec={"limits": limits}))


def priority_class(name, value, **more):
    return made(PRIORITY_CLASSES, name, value=value, **more)


def runtime_class(name, **overhead):
    return made(RUNTIME_CLASSES, name, handler="vm", overhead={"podFixed": overhead})


def store_that_saw(*items):
    """Jobs of the namespace wait as a whole."""
    store = empty_store()
    see(store, made(NAMESPACES, "a", metadata={"labels": {"quotaward.dev/jobs": "queued"}}), *items)
    return store


def stand_in(store, name="train"):
    return store.cluster.pods[f"job/uid-{name}"]


def demand(*items, name="train"):
    return stand_in(store_that_saw(*items), name).request


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (container(), {"pods": 1}),
        (container(limits={"cpu": "2"}), {"cpu": 2000, "pods": 1}),
        (container(limits={"cpu": "2"}, requests={"cpu": "1"}), {"cpu": 1000, "pods": 1}),
        (container({"nvidia.com/gpu": 4}, {"cpu": "1"}), {"cpu": 1000, "nvidia.com/gpu": 4, "pods": 1}),
        ({"name": "main"}, {"pods": 1}),
        ({"name": "main", "resources": None}, {"pods": 1}),
    ],
)
def test_a_limit_of_a_container_is_its_request_where_it_names_none(given, expected):
    """``SetDefaults_Pod`` (pkg/apis/core/v1/defaults.go) does that to pods, "and not a v1.PodTemplate"."""
    assert demand(job(given)) == expected


def test_a_limit_comes_before_the_default_of_a_limit_range():
    """A pod gets defaults when it is decoded, and comes to LimitRanger only then."""
    found = demand(limit_range(defaultRequest={"cpu": "500m", "memory": 5}), job(container({"cpu": "2"})))
    assert found == {"cpu": 2000, "memory": 5, "pods": 1}


@pytest.mark.parametrize(("more", "expected"), [({"hostNetwork": True}, [80, 443, 53]), ({}, [443])])
def test_ports_of_pods_in_the_network_of_their_host_are_ports_of_the_host(more, expected):
    """``defaultHostNetworkPorts`` (pkg/apis/core/v1/defaults.go) does that to pods alone, too."""
    ports = [{"containerPort": 80}, {"containerPort": 8443, "hostPort": 443}]
    sidecar = container(ports=[{"containerPort": 53, "protocol": "UDP"}], restartPolicy="Always")
    store = store_that_saw(job(container(ports=ports), container(), initContainers=[sidecar], **more))
    assert [port.port for port in stand_in(store).constraints.host_ports] == expected


def test_a_job_demands_the_defaults_for_all_of_its_pods_and_containers():
    init = {"initContainers": [container(requests={"cpu": "3"}), container(restartPolicy="Always")]}
    given = job(container(), container(requests={"cpu": "1"}), parallelism=2, **init)
    assert demand(limit_range(defaultRequest={"cpu": "500m"}), given) == {"cpu": 2 * 3000, "pods": 2}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"defaultRequest": {"cpu": "1"}}, 1000),
        ({"default": {"cpu": "2"}}, 2000),
        ({"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, 1000),
        ({"max": {"cpu": "3"}}, 3000),
        ({"max": {"cpu": "3"}, "default": {"cpu": "2"}}, 2000),
        ({"min": {"cpu": "100m"}}, 100),
        ({"min": {"cpu": "100m"}, "max": {"cpu": "3"}}, 3000),
        ({}, None),
    ],
    ids=["request", "limit", "both", "most", "limit below the most", "least", "least and most", "nothing"],
)
def test_a_limit_range_of_a_folder_has_the_defaults_that_follow_from_its_fields(given, expected):
    """``SetDefaults_LimitRangeItem`` (pkg/apis/core/v1/defaults.go): first the limit, then the request."""
    assert demand(limit_range(**given), job()).get("cpu") == expected


def test_limits_of_other_types_have_no_defaults():
    """``defaultContainerResourceRequirements`` looks at the type Container alone."""
    items = [{"type": "Pod", "max": {"cpu": "3"}}, {"type": "PersistentVolumeClaim", "min": {"storage": "1"}}, "odd"]
    given = with_defaults(LIMIT_RANGES, made(LIMIT_RANGES, "x", "a", spec={"limits": items}))
    assert given["spec"]["limits"] == items
    of_claims = [{"type": "PersistentVolumeClaim", "defaultRequest": {"storage": "1Gi"}}]
    assert demand(made(LIMIT_RANGES, "x", "a", spec={"limits": of_claims}), job()) == {"pods": 1}


@pytest.mark.parametrize("limits", [None, {}, {"cpu": "4"}])
def test_a_pod_level_request_replaces_those_of_containers(limits):
    whole = {"resources": {"requests": {"cpu": "3"}, "limits": limits}}
    assert demand(limit_range(defaultRequest={"cpu": "500m"}), job(**whole)) == {"cpu": 3000, "pods": 1}


def test_pod_level_limits_are_requests_only_where_nothing_is_requested():
    """``defaultPodLevelRequests`` (pkg/api/pod/util.go); huge pages cannot be overcommitted."""
    whole = {"resources": {"limits": {"cpu": "4", "memory": "8", "hugepages-2Mi": "2Mi"}}}
    found = demand(limit_range(defaultRequest={"cpu": "500m"}), job(**whole))
    assert found == {"cpu": 500, "memory": 8, "hugepages-2Mi": 2 * 2**20, "pods": 1}


def test_the_priority_is_that_of_the_class_and_never_a_number_of_the_template():
    classes = priority_class("high", 1000, preemptionPolicy="Never"), priority_class("normal", 5, globalDefault=True)
    jobs = job(name="named", priorityClassName="high", priority=7), job(name="unnamed", priority=7)
    store = store_that_saw(*classes, *jobs)
    found = [(stand_in(store, name).priority, stand_in(store, name).may_preempt) for name in ("named", "unnamed")]
    assert found == [(1000, False), (5, True)]


def test_the_overhead_of_the_runtime_class_counts_for_each_pod():
    given = job(container(requests={"cpu": "1"}), parallelism=3, runtimeClassName="vm")
    assert demand(runtime_class("vm", cpu="250m"), runtime_class("other", cpu="1"), given)["cpu"] == 3 * 1250


def test_a_template_may_lack_everything():
    nothing = made(JOBS, "train", "a", {"uid": "uid-train"}, spec={"suspend": True, "parallelism": 1})
    assert demand(nothing) == {"pods": 1}
    assert demand(nothing | {"spec": {"suspend": True, "template": {"spec": None}}}) == {"pods": 1}


def test_a_template_has_no_more_resources_than_are_judged():
    """However many limits there are, a pod of it is judged by the first 500."""
    found = demand(job(container({f"example.com/r{number:04}": 1 for number in range(600)})))
    assert len(found) == 500 + 1


def test_jobs_of_alike_templates_share_what_is_known_of_them():
    store = store_that_saw(job(name="one"), job(name="two"))
    one, two = (store.cluster.queued_jobs._jobs["a", name].pod_sets[0].template for name in ("one", "two"))
    assert one is two


@pytest.mark.parametrize(
    "item",
    [limit_range(defaultRequest={"cpu": "x"}), runtime_class("vm", cpu="-1")],
    ids=lambda item: item["kind"],
)
def test_what_cannot_be_read_is_reported_by_its_field(item):
    kind = next(kind for kind in KINDS if kind.name == item["kind"])
    with pytest.raises(InvalidObject, match=r"^(spec.limits.0..defaultRequest|overhead.podFixed)\.cpu: "):
        kind.upsert(empty_store().cluster, kind.decoder.decode(json.dumps(item)), 0.0)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
def test_defaults_that_may_not_be_read_are_done_without(forbidden, kind):  # noqa: F811
    """``forbidden`` is a reflector that the API server answers 403."""
    _, store = forbidden(kind)
    assert store.feeds[kind.label].synced


def test_jobs_are_computed_anew_where_all_replicas_divide():
    store = store_that_saw(job(container(requests={"memory": 1})))
    see(store, limit_range(defaultRequest={"cpu": "500m"}))
    assert "cpu" not in stand_in(store).request
    asyncio.run(Divide(store).look())
    assert "cpu" not in stand_in(store).request, "the picture is not complete yet"
    asyncio.run(Divide(complete(store)).look())
    assert stand_in(store).request["cpu"] == 500


def test_an_object_that_is_gone_gives_no_default_any_more():
    store = store_that_saw(
        limit_range(defaultRequest={"cpu": "500m"}), priority_class("high", 9), runtime_class("vm", cpu="1")
    )
    assert [list(kind.known(store.cluster)) for kind in KINDS] == [["high"], [("a", "defaults")], ["vm"]]
    for kind in KINDS:
        store.keep_only(kind, set())
    assert [list(kind.known(store.cluster)) for kind in KINDS] == [[], [], []]
    see(store, job(priorityClassName="high", runtimeClassName="vm"))
    assert (stand_in(store).request, stand_in(store).priority) == ({"pods": 1}, 0)


# In copies


def everything():
    """A Job whose pods get something of everything, and what they get it from."""
    init = {
        "initContainers": [container(requests={"cpu": "1500m"}), container({"memory": "1"}, restartPolicy="Always")]
    }
    whole = {"resources": {"requests": {"hugepages-2Mi": "4Mi"}, "limits": {"memory": "9"}}}
    named = {"priorityClassName": "high", "runtimeClassName": "vm"}
    given = job(container({"cpu": "250m"}, ports=[{"hostPort": 80}]), container(), **init, **whole, **named)
    classes = priority_class("high", 1000, preemptionPolicy="Never"), runtime_class("vm", cpu="250m")
    return store_that_saw(*classes, limit_range(defaultRequest={"cpu": "100m", "example.com/x": 1}), given, node())


def copied(store):
    return at_once(copy_steps(snapshot(store.cluster, 0.0)))


def test_a_copy_has_the_same_demand():
    store = everything()
    assert copied(store).pods["job/uid-train"] == stand_in(store)
    assert stand_in(store).request == {
        "cpu": 1500 + 250,
        "memory": 1,
        "example.com/x": 3,
        "hugepages-2Mi": 4 * 2**20,
        "pods": 1,
    }


def test_a_change_of_the_job_in_a_copy_leaves_its_template():
    store = everything()
    copy = copied(store)
    wider = {"kind": "Job", "metadata": {"name": "train", "namespace": "a"}, "spec": {"parallelism": 2}}
    changes.apply(copy, changes.read([wider], []), 0.0, 0.0)
    twice = {resource: 2 * amount for resource, amount in stand_in(store).request.items()}
    found = copy.pods["job/uid-train"]
    assert (found.request, found.priority, found.may_preempt) == (twice, 1000, False)
    assert found.constraints == stand_in(store).constraints
    of = [cluster.queued_jobs.get(("a", "train")).pod_sets[0].template for cluster in (copy, store.cluster)]
    assert of[0] == of[1]


def test_what_is_played_goes_on_with_the_defaults_of_the_time():
    copy = copied(store_that_saw(job(), node()))
    copy.pod_defaults.upsert_limit_range("a", "comes", {"cpu": 300})
    at_once(Simulation(copy, Terms(), 0.0).settle_steps())
    assert [pod.request for pod in copy.pods.values() if pod.node] == [{"cpu": 300, "pods": 1}]


def test_the_division_waits_for_no_renewal_and_many_of_these_take_several_looks(monkeypatch):
    monkeypatch.setattr(divide, "RENEWALS", 2)
    store = complete(store_that_saw(*(job(container(requests={"memory": 1}), name=name) for name in "abc")))
    see(store, made(QUEUES, "q", spec={}), limit_range(defaultRequest={"cpu": "500m"}))
    done = []
    cluster = store.cluster
    renew, divide_steps = cluster.queued_jobs.renew_steps, cluster.divide_steps
    monkeypatch.setattr(cluster.queued_jobs, "renew_steps", lambda: (done.append("renewal") for _ in renew()))
    monkeypatch.setattr(cluster, "divide_steps", lambda most: done.append(f"division {most}") or divide_steps(most))
    asyncio.run(Divide(store).look())
    assert done == ["division 2", "renewal", "renewal"]
    asyncio.run(Divide(store).look())
    assert done[3:] == ["renewal"]
    assert all(stand_in(store, name).request["cpu"] == 500 for name in "abc")
