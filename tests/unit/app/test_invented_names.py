"""Names that pods make up, of resources and of queues: what is shown is bounded by what operators write."""

import json
from collections.abc import Iterator

import pytest

from app.controllers.queue_status import status_of
from app.controllers.status import Status
from policy.cluster.shown_resources import named
from policy.objects.verdict import MOST_TOLD
from policy.stepwise import at_once
from tests.unit.app.given import client_of, namespace, node, pod, queue, quota, refused, see, store_with

QUEUE = "scheduling.volcano.sh/queue-name"
MANY = 249
"""Of each sort: of more than 500 in all the rest is not looked at."""
INVENTED = {f"x.io/r{number}": 1 for number in range(MANY)} | {f"hugepages-{size + 3}Ki": 1 for size in range(MANY)}


def world(*pods):
    return store_with(
        node("n1", **{"cpu": 8, "memory": "8Gi", "pods": 10, "nvidia.com/gpu": 1}),
        queue("q"),
        namespace("a", **{QUEUE: "q"}),
        namespace("e"),
        quota("e", min={"cpu": 1}, max={"b.io/named": 3}),
        *pods,
    )


def hostile():
    """Pods that wait and pods on nodes, in a queue, in ones that do not exist, and under an elastic quota."""
    for where in "ae":
        yield pod("waits", where, {"cpu": 1, **INVENTED})
        yield pod("runs", where, {"cpu": 1, **{f"{name}-": 1 for name in INVENTED}}, nodeName="n1")
        yield refused(pod("tried", where, {"cpu": 1, **INVENTED}), "0/1 nodes are available: " + ", ".join(INVENTED))
    for number in range(50):
        ghost = {"name": f"ghost{number}", "namespace": "e", "uid": f"ghost{number}"}
        named = {QUEUE: f"g{number}" + "g" * 100_000, "scheduling.k8s.io/group-name": "j" * 100_000}
        gates = [{"name": "quotaward.dev/quota"}] if number % 2 else []
        yield pod(f"ghost{number}", "e", metadata={**ghost, "annotations": named}, schedulingGates=gates)


PATHS = (
    "/metrics",
    "/",
    "/waiting",
    "/api/v1/queues",
    "/api/v1/elasticquotas",
    "/api/v1/plan",
    "/api/v1/gates",
    "/api/v1/jobs",
)
SURFACES = (*PATHS, "whatif", "status of the queue", "status of the quota")
"""All that shows many pods at a time."""


def surfaces(store, wanted=SURFACES):
    """What these show, as text."""
    at_once(store.cluster.divide_steps())
    client = client_of(store)

    def shown(surface):
        match surface:
            case "whatif":
                answer = client.request("POST", "/api/v1/whatif", json={"remove": [{"kind": "Queue", "name": "q"}]})
                assert answer.status_code == 200, answer.text
                return answer.text
            case "status of the queue":
                return json.dumps(status_of(store.cluster, "q"))
            case "status of the quota":
                return json.dumps(list(Status(store, None)._statuses("e").values()))
            case path:
                return client.get(path).text

    return {surface: shown(surface) for surface in wanted}


def test_what_pods_make_up_is_shown_nowhere_but_in_their_own_explanation():
    plain = [pod("waits", where, {"cpu": 1}) for where in "ae"]
    before, after = surfaces(world(*plain)), surfaces(world(*hostile()))
    for surface, text in after.items():
        assert len(text) < len(before[surface]) + 30_000, surface
        if surface not in ("/", "/waiting", "/api/v1/plan", "whatif"):  # those name a few of each single pod
            assert "x.io/" not in text, surface
            assert "Ki" not in text.replace("hugepages-2Mi", ""), surface
    series = [text.count("\n") for text in (before["/metrics"], after["/metrics"])]
    assert series[1] <= series[0] + 20  # amounts of what everybody may request: memory, pods


@pytest.mark.slow
def test_a_pods_own_explanation_names_its_own_up_to_a_bound():
    client = client_of(world(*hostile()))
    for path in (
        "/api/v1/pods/a/waits",
        "/api/v1/pods/a/tried",
        "/api/v1/pods/e/tried",
        "/api/v1/pods/e/ghost0",
        "/api/v1/pods/e/ghost1",
    ):
        text = client.get(path).text
        assert len(text) < 60_000, path
        assert len(json.loads(text)["numbers"]) <= MOST_TOLD
    assert "hugepages-" in client.get("/api/v1/pods/a/waits").text
    assert len(client.get("/pods/a/waits").text) < 60_000


def test_the_answer_to_the_scheduler_does_not_grow_with_what_a_pod_makes_up():
    asked = pod("asked", "a", {"cpu": 1, **INVENTED})
    nodes = [f"n{number}" for number in range(100)]
    answer = client_of(world()).ask("filter", {"Pod": asked, "NodeNames": nodes})
    texts = set(answer["FailedAndUnresolvableNodes"].values())
    assert len(texts) == 1
    assert len(texts.pop()) < 500


@pytest.mark.parametrize(
    "item",
    [
        node("n2", **{"x.io/r7": 0}),
        quota("b", min={"x.io/r7": 0}),
        quota("b", max={"x.io/r7": 0}),
        queue("other", capability={"x.io/r7": 0}),
        queue("other", guarantee={"resource": {"x.io/r7": 0}}),
    ],
    ids=["a node", "min", "max", "capability", "guarantee"],
)
def test_what_an_operator_names_anywhere_is_shown(item):
    wanted = ("/metrics", "/", "/api/v1/queues", "status of the queue")
    for surface, text in surfaces(world(*hostile(), item), wanted).items():
        assert "x.io/r7" in text, surface
        assert "x.io/r8" not in text or surface == "/"


def test_what_nobody_names_any_more_is_not_shown_any_more():
    store = world()
    usual = named(store.cluster)
    for item in (node("n2", **{"x.io/a": 1}), quota("b", max={"x.io/b": 1}), queue("other", capability={"x.io/c": 1})):
        see(store, item)
    assert named(store.cluster) - usual == {"x.io/a", "x.io/b", "x.io/c"}
    store.cluster.delete_node("n2")
    store.cluster.delete_quota("b", "quota")
    store.cluster.delete_queue("other")
    assert named(store.cluster) == usual


def strings_in(root: object) -> Iterator[str]:
    """All text that an object leads to."""
    seen, left = set[int](), [root]
    while left:
        each = left.pop()
        if isinstance(each, str):
            yield each
        if id(each) in seen or isinstance(each, type | str | bytes | int | float):
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            left += each
        else:
            left += [value for name in dir(each) if not name.startswith("__") for value in [_field(each, name)]]


def _field(owner: object, name: str) -> object:
    own = getattr(owner, "__dict__", {})
    slots = [slot for kind in type(owner).__mro__ for slot in getattr(kind, "__slots__", ())]
    return own.get(name) if name in own else getattr(owner, name, None) if name in slots else None


def test_nothing_is_kept_of_it_when_the_pods_are_gone():
    store = world(*hostile())
    surfaces(store)
    assert any(text.startswith("x.io/") for text in strings_in(store.cluster))
    for uid in list(store.cluster.pods):
        store.cluster.delete_pod(uid)
    at_once(store.cluster.divide_steps())
    kept = {
        text
        for text in strings_in(store.cluster)
        if text.startswith(("x.io/", "hugepages-", "g0", "g1", "volcano/jjj"))
    }
    assert kept == set()
