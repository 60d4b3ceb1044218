"""What queues deserve and namespaces are entitled to, for any demand, weights, guarantees and nodes."""

from hypothesis import given
from hypothesis import strategies as st

from policy.objects.queue import Queue
from policy.quota.water_filling import Bid, divide
from tests.unit.given_queues import Demand, divisions, entitlements

RESOURCES = ("cpu", "memory", "gpu")
NAMES = ("a", "b", "c", "d")

vectors = st.fixed_dictionaries({}, optional={resource: st.integers(1, 40) for resource in RESOURCES})
weights = st.integers(1, 9)


@st.composite
def demands(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, Queue], dict[str, dict[str, int]]]:
    """What is available, queues, and what they request."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    found = {
        name: Queue(name, weight=draw(weights), capability=draw(vectors), guarantee=draw(vectors)) for name in names
    }
    return draw(vectors), found, {name: draw(vectors) for name in names}


@given(demands())
def test_queues_deserve_no_more_than_there_is(demand):
    available, queues, requests = demand
    found = divisions(available, queues, requests)
    for resource in RESOURCES:
        assert sum(each.deserved.get(resource, 0) for each in found.values()) <= available.get(resource, 0)
        assert sum(each.guarantee.get(resource, 0) for each in found.values()) <= available.get(resource, 0)


@given(demands())
def test_a_queue_deserves_its_guarantee_and_never_more_than_it_can_have_or_asks_for(demand):
    available, queues, requests = demand
    for name, each in divisions(available, queues, requests).items():
        for resource in RESOURCES:
            kept, deserved = each.guarantee.get(resource, 0), each.deserved.get(resource, 0)
            most = each.real_capability.get(resource, 0)
            assert kept <= deserved <= max(kept, min(requests[name].get(resource, 0), most))
            assert most <= queues[name].capability.get(resource, available.get(resource, 0))


@given(demands())
def test_a_guarantee_is_kept_whole_where_all_of_them_can_be(demand):
    available, queues, requests = demand
    found = divisions(available, queues, requests)
    for resource in RESOURCES:
        wanted = {
            name: min(q.guarantee.get(resource, 0), q.capability.get(resource, 10**9)) for name, q in queues.items()
        }
        if sum(wanted.values()) <= available.get(resource, 0):
            assert {name: each.guarantee.get(resource, 0) for name, each in found.items()} == wanted


@given(demands())
def test_what_nobody_deserves_nobody_asks_for(demand):
    available, queues, requests = demand
    found = divisions(available, queues, requests)
    for resource in RESOURCES:
        left = available.get(resource, 0) - sum(each.deserved.get(resource, 0) for each in found.values())
        for name, each in found.items():
            satisfied = each.deserved.get(resource, 0) >= min(
                requests[name].get(resource, 0), each.real_capability.get(resource, 0)
            )
            assert left == 0 or satisfied


@given(demands())
def test_the_order_of_queues_does_not_matter(demand):
    available, queues, requests = demand
    assert divisions(available, dict(reversed(queues.items())), requests) == divisions(available, queues, requests)


@st.composite
def tenants(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, int], dict[str, dict[str, int]], dict[str, int]]:
    """What is available, what the queue deserves of it, what namespaces request, and what they weigh."""
    available = {resource: draw(st.integers(1, 10_000)) for resource in RESOURCES}
    deserved = {resource: draw(st.integers(0, amount)) for resource, amount in available.items()}
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    wanted = st.fixed_dictionaries({}, optional={resource: st.integers(1, 20_000) for resource in RESOURCES})
    return available, deserved, {name: draw(wanted) for name in names}, {name: draw(weights) for name in names}


@given(tenants())
def test_namespaces_are_entitled_to_all_that_is_deserved_or_requested(world):
    available, deserved, requests, weight = world
    [found] = entitlements(available, [Demand(deserved, requests, weight)])
    for resource in RESOURCES:
        wanted = sum(request.get(resource, 0) for request in requests.values())
        assert sum(each.get(resource, 0) for each in found.values()) == min(wanted, deserved[resource])
        assert all(found[name].get(resource, 0) <= requests[name].get(resource, 0) for name in requests)


@given(tenants())
def test_nobody_short_of_its_dominant_resource_has_less_by_weight_than_another(world):
    """No envy, within rounding."""
    available, deserved, requests, weight = world
    [found] = entitlements(available, [Demand(deserved, requests, weight)])
    for name, request in requests.items():
        if not request:
            continue
        dominant = max(request, key=lambda resource: (request[resource] / available[resource], resource))
        if any(request[r] * available[dominant] == request[dominant] * available[r] for r in request if r != dominant):
            continue  # two are dominant
        mine = found[name].get(dominant, 0)
        if mine < request[dominant]:
            for other in requests:
                assert (found[other].get(dominant, 0) - 1) / weight[other] < (mine + 1) / weight[name]


@given(st.integers(1, 1000), st.lists(st.tuples(st.integers(1, 500), weights), min_size=1, max_size=4))
def test_of_one_resource_everybody_gets_by_weight_until_satisfied(deserved, wanted):
    names = NAMES[: len(wanted)]
    requests = {name: {"cpu": asked} for name, (asked, _) in zip(names, wanted, strict=True)}
    weight = {name: each for name, (_, each) in zip(names, wanted, strict=True)}
    [found] = entitlements({"cpu": 1000}, [Demand({"cpu": deserved}, requests, weight)])
    for name in names:
        for other in names:
            if found[name].get("cpu", 0) < requests[name]["cpu"]:
                assert (found[other].get("cpu", 0) - 1) / weight[other] < (found[name].get("cpu", 0) + 1) / weight[name]


@given(st.lists(tenants(), min_size=2, max_size=5))
def test_many_queues_at_once_are_divided_as_each_alone(worlds):
    available = worlds[0][0]
    demands = [Demand(deserved, requests, weight) for _, deserved, requests, weight in worlds]
    assert entitlements(available, demands) == [entitlements(available, [demand])[0] for demand in demands]


@given(st.integers(1, 2**50), st.lists(st.tuples(st.integers(1, 2**48), weights), min_size=1, max_size=4))
def test_of_one_resource_the_parts_are_those_of_the_water_level(deserved, wanted):
    names = NAMES[: len(wanted)]
    requests = {name: {"memory": asked} for name, (asked, _) in zip(names, wanted, strict=True)}
    weight = {name: each for name, (_, each) in zip(names, wanted, strict=True)}
    [found] = entitlements({"memory": 2**50}, [Demand({"memory": deserved}, requests, weight)])
    exact = divide(deserved, [Bid(weight[name], 0, requests[name]["memory"]) for name in names])
    assert all(abs(found[name].get("memory", 0) - part) <= 1 for name, part in zip(names, exact, strict=True))
