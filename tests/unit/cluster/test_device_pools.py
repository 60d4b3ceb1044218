"""What nodes have by DRA: the devices of complete pools of the newest generation, by class."""

import random
from dataclasses import replace

import pytest

from app.whatif.rendering import node_manifest
from policy.cluster import devices as cluster_devices
from policy.cluster.device_pools import DevicePools
from policy.nodes import fit
from policy.objects.constraints import CLAIM, Constraints
from policy.objects.device import MOST_CLAIMS, DeviceClass, DeviceNeeds, DeviceSlice
from policy.objects.device_selector import as_value, parse
from policy.objects.node import Node
from policy.objects.quantity import LARGEST
from policy.objects.queue import Queue
from policy.stepwise import at_once
from tests.unit.given_devices import GPU, IMPLICIT_GPU, PLAIN, asking, claim, of_template, pod, see, with_devices

DRIVER = "x.com"


def devices(number, *, kind="gpu", driver=DRIVER):
    return ((("driver", as_value(driver)), (f"{driver}/type", as_value(kind))),) * number


def a_slice(name, node, number=2, *, pool="", generation=1, slices=1, of=None, **rest):
    found = devices(number) if of is None else of
    return DeviceSlice(name, node, (DRIVER, pool or node), generation, slices, found, **rest)


def selecting(*expressions, extended=""):
    return DeviceClass(extended, parse(expressions))


def world(*slices, classes=None):
    cluster = with_devices()
    for name in ("n1", "n2"):
        cluster.upsert_node(Node(name, {"cpu": 9000, "pods": 9}))
    for name, of in (classes or {}).items():
        cluster.devices.upsert_class(name, of)
    for each in slices:
        cluster.devices.upsert_slice(each)
    at_once(cluster.devices.renew_steps())
    return cluster


def has(cluster, resource=GPU):
    return [cluster.table.node(name).allocatable.get(resource, 0) for name in ("n1", "n2")]


def test_a_node_has_the_devices_of_its_slices_by_each_class_that_selects_them():
    cluster = world(a_slice("s", "n1"), a_slice("t", "n2", 3))
    assert has(cluster) == has(cluster, PLAIN) == [2, 3]
    cluster.devices.delete_slice("s")
    assert has(cluster) == [0, 3]


def test_devices_of_a_plugin_and_of_slices_add_up():
    cluster = world(a_slice("s", "n1"))
    cluster.upsert_node(Node("n1", {GPU: 1, "pods": 9}))
    assert has(cluster) == [3, 0]
    cluster.devices.upsert_slice(a_slice("s", "n1", 4))
    assert has(cluster) == [5, 0]


def test_what_a_node_lists_with_zero_stays_listed_when_its_slices_are_gone():
    cluster = world(a_slice("s", "n1"))
    plugin_is_gone = Node("n1", {GPU: 0, "pods": 9})
    cluster.upsert_node(plugin_is_gone)
    assert (has(cluster), node_manifest(cluster.table.node("n1"))["status"]["allocatable"][GPU]) == ([2, 0], "0")
    cluster.devices.delete_slice("s")
    assert cluster.table.node("n1") == plugin_is_gone


def test_slices_that_come_before_their_node_count_with_it():
    cluster = world(a_slice("s", "n3"))
    cluster.upsert_node(Node("n3", {"pods": 9}))
    assert cluster.table.node("n3").allocatable[GPU] == 2


def test_only_selected_devices_count():
    gpus = "device.driver == 'x.com' && device.attributes['x.com'].type == 'gpu'"
    classes = {"gpu": selecting(gpus, extended=GPU), "plain": selecting("device.driver == 'y.com'")}
    cluster = world(a_slice("s", "n1", of=devices(2) + devices(3, kind="nic")), classes=classes)
    assert (has(cluster), has(cluster, PLAIN)) == ([2, 0], [0, 0])


def test_two_classes_of_one_name_count_a_device_once():
    cluster = world(a_slice("s", "n1"), classes={"plain": DeviceClass(GPU)})
    assert has(cluster) == [2, 0]


def test_a_pool_counts_once_all_of_its_slices_are_there():
    cluster = world(a_slice("s", "n1", slices=2))
    assert has(cluster) == [0, 0]
    cluster.devices.upsert_slice(a_slice("t", "n1", slices=2))
    assert has(cluster) == [4, 0]


@pytest.mark.parametrize("order", [1, -1])
def test_slices_that_do_not_agree_on_their_number_are_no_complete_pool_in_any_order(order):
    slices = [a_slice("s", "n1", slices=2), a_slice("t", "n1", slices=1)][::order]
    cluster = world(*slices)
    assert has(cluster) == [0, 0]
    cluster.devices.upsert_slice(a_slice("t", "n1", slices=2))
    assert has(cluster) == [4, 0]


def test_of_a_pool_only_the_newest_generation_counts():
    cluster = world(a_slice("s", "n1", slices=2), a_slice("t", "n1", slices=2))
    cluster.devices.upsert_slice(a_slice("s", "n1", 1, generation=2, slices=2))
    assert has(cluster) == [0, 0], "it is not complete"
    cluster.devices.upsert_slice(a_slice("t", "n1", 1, generation=2, slices=2))
    assert has(cluster) == [2, 0]


def test_a_pool_of_several_nodes_counts_on_all_of_them_once_it_is_complete():
    cluster = world(a_slice("s", "n1", pool="p", slices=2))
    cluster.devices.upsert_slice(a_slice("t", "n2", 3, pool="p", slices=2))
    assert has(cluster) == [2, 3]
    cluster.devices.delete_slice("s")
    assert has(cluster) == [0, 0]


def test_a_class_that_changes_changes_what_nodes_have():
    cluster = world(a_slice("s", "n1"))
    cluster.devices.upsert_class("gpu", DeviceClass())
    at_once(cluster.devices.renew_steps())
    assert (has(cluster), has(cluster, IMPLICIT_GPU)) == ([0, 0], [2, 0])
    cluster.devices.delete_class("gpu")
    at_once(cluster.devices.renew_steps())
    assert has(cluster, IMPLICIT_GPU) == [0, 0]


@pytest.mark.parametrize(
    ("slices", "classes"),
    [
        ([a_slice("s", "n1", shared=True)], {}),
        ([a_slice("s", "")], {}),
        ([a_slice("s", "n1")], {"gpu": selecting("device.driver.startsWith('x')", extended=GPU)}),
    ],
    ids=["shared devices", "devices of no node", "a selector that is not judged"],
)
def test_what_cannot_be_counted_is_as_if_no_node_listed_it(slices, classes):
    cluster = world(*slices, classes=classes)
    cluster.upsert_node(Node("n2", {GPU: 1, "pods": 9}))
    asked = pod("p", request={GPU: 1})
    assert GPU not in cluster.table.listed
    assert fit.undecidable(cluster.table, asked)
    for each in slices:
        cluster.devices.delete_slice(each.name)
    assert not fit.undecidable(cluster.table, asked)


def test_each_shared_slice_is_looked_at_once_however_many_there_are(monkeypatch):
    cluster = world()
    pools, looked = cluster.devices.pools, []
    counts_of = pools._counts_of
    monkeypatch.setattr(pools, "_counts_of", lambda of: looked.append(of.name) or counts_of(of))
    for number in range(40):
        cluster.devices.upsert_slice(a_slice(f"s{number}", "", pool=f"p{number}"))
    assert pools.undecidable == {GPU, PLAIN}
    for number in range(40):
        assert pools.undecidable == {GPU, PLAIN}
        cluster.devices.delete_slice(f"s{number}")
    assert not pools.undecidable
    assert not pools._names_of_shared
    assert len(looked) < 200


def test_a_shared_slice_makes_undecidable_what_its_devices_are_called_now():
    cluster = world(a_slice("s", "n1", shared=True))
    for name in ("example.com/gpu", GPU):
        cluster.devices.upsert_class("gpu", DeviceClass(name))
        assert cluster.devices.pools.undecidable == {name, PLAIN}
    cluster.devices.upsert_slice(a_slice("s", "n1"))
    assert not cluster.devices.pools.undecidable


def claiming(uid, *claims, **rest):
    made = pod(uid, "a", *claims, **rest)
    needs = DeviceNeeds(made.request, made.needs.claims, constraints=Constraints(undecidable=(CLAIM,)))
    return made.__class__(uid, "a", uid, made.request, needs=needs, constraints=needs.constraints)


def where(cluster, uid):
    asked = cluster.pods[uid]
    return fit.undecidable(cluster.table, asked) or [
        name for name in cluster.table.names if fit.fits(cluster.table, asked)[cluster.table.rows[name]]
    ]


def test_where_a_pod_with_plain_claims_fits_goes_by_the_devices_left():
    cluster = world(a_slice("s", "n1"), a_slice("t", "n2", 3))
    see(cluster, claim("c", gpu=2), claiming("p", "c"))
    assert where(cluster, "p") == ["n1", "n2"]
    see(cluster, pod("q", request={GPU: 1}, node="n1"))
    assert where(cluster, "p") == ["n2"]


def test_where_a_pod_with_other_claims_fits_cannot_be_decided():
    cluster = world(a_slice("s", "n1"))
    see(cluster, claim("c", gpu=1), claiming("p", "c", of_template("t")))
    assert CLAIM in where(cluster, "p")
    cluster.devices.upsert_template("a", "t", asking(gpu=1))
    at_once(cluster.devices.renew_steps())
    assert where(cluster, "p") == ["n1"]
    see(cluster, claim("c", gpu=1, has={"gpu": 1}))
    assert CLAIM in where(cluster, "p"), "its devices are on some node already"


def test_nothing_is_decided_for_a_pod_with_more_claims_than_are_counted():
    cluster = world(a_slice("s", "n1"))
    asked = claiming("p", "c")
    see(cluster, claim("c", gpu=1), replace(asked, needs=replace(asked.needs, excess=True)))
    assert CLAIM in where(cluster, "p")


def test_a_claim_for_all_devices_counts_as_those_of_the_largest_node():
    cluster = world(a_slice("s", "n1"), a_slice("t", "n2", 3))
    see(cluster, claim("c", whole={"gpu"}), pod("p", "a", "c"))
    assert cluster.check(pod("p", "a", "c")) is None
    assert cluster.pods["p"].request[GPU] == 3
    see(cluster, claim("c", whole={"gpu"}, has={"gpu": 2}))
    assert cluster.pods["p"].request[GPU] == 2


def test_the_most_on_a_node_is_that_of_all_nodes_whatever_comes_and_goes():
    dice, cluster, nodes = random.Random(1), world(), ("n1", "n2", "n3", "")
    pools = cluster.devices.pools
    for step in range(300):
        name, node = dice.choice("stuv"), dice.choice(nodes)
        if dice.random() < 0.3:
            cluster.devices.delete_slice(name)
        else:
            more = {"generation": dice.randrange(1, 3), "slices": dice.choice((1, 1, 2)), "pool": dice.choice("pqr")}
            cluster.devices.upsert_slice(a_slice(name, node, dice.randrange(5), **more))
        if step % 20 == 10:
            cluster.devices.upsert_class("gpu", selecting(extended=GPU if step % 40 == 10 else ""))
        if dice.random() < 0.5:
            for name in (GPU, IMPLICIT_GPU):
                assert pools.most_on_a_node(name) == max(pools.of_node(each).get(name, 0) for each in nodes)


def test_only_nodes_that_have_changed_are_counted_for_the_most_on_a_node(monkeypatch):
    cluster, counted = world(*(a_slice(f"s{number}", f"n{number}", number) for number in range(40))), []
    pools = cluster.devices.pools
    assert pools.most_on_a_node(GPU) == 39
    of_node = DevicePools.of_node
    monkeypatch.setattr(DevicePools, "of_node", lambda self, node: counted.append(node) or of_node(self, node))
    pools.upsert(a_slice("s3", "n3", 50))
    assert (pools.most_on_a_node(GPU), pools.most_on_a_node(GPU), counted) == (50, 50, ["n3"])


def room_without(cluster, *gone):
    return fit.fits_on(cluster.table, pod("new", request={GPU: 2}), "n1", gone)


def test_devices_that_pods_share_are_free_once_all_of_these_are_gone():
    cluster = world(a_slice("s", "n1"))
    see(cluster, claim("c", gpu=2), *(pod(uid, "a", "c", node="n1") for uid in "pqr"))
    assert not any(room_without(cluster, *gone) for gone in ("p", "q", "r", "pq", "pr", "qr"))
    assert room_without(cluster, *"pqr")
    for uid in "pq":
        cluster.delete_pod(uid)
    assert room_without(cluster, "r")
    assert cluster.table.sharing == {}


def test_a_claim_that_too_many_pods_hold_is_never_free_and_costs_each_little(monkeypatch):
    """A tenant's pods may be put on nodes without kube-scheduler, which lets 256 pods have a claim."""
    monkeypatch.setattr(cluster_devices, "MOST_HOLDERS", 3)
    cluster = world(a_slice("s", "n1"))
    see(cluster, claim("c", gpu=2), *(pod(uid, "a", "c", node="n1") for uid in "pqr"))
    assert room_without(cluster, *"pqr")
    see(cluster, pod("s", "a", "c", node="n1"))
    assert not room_without(cluster, *"pqrs")
    assert [len(others) for shared in cluster.table.sharing.values() for others, _ in shared] == [1]


@pytest.mark.parametrize("on", ["n1", ""], ids=["on a node", "waiting"])
def test_no_number_of_devices_in_claims_is_too_large_to_count(on):
    cluster, names = world(a_slice("s", "n1")), [f"c{number}" for number in range(MOST_CLAIMS)]
    see(cluster, *(claim(name, gpu=LARGEST) for name in names), pod("p", "a", *names, node=on))
    assert room_without(cluster) is (not on)
    assert room_without(cluster, "p")
    assert not fit.fits(cluster.table, replace(cluster.pods["p"], uid="q", node="")).any()


def test_what_a_queue_may_have_of_listed_devices_is_bounded_by_any_name():
    cluster = world(a_slice("s", "n1", 4))
    cluster.upsert_queue(Queue("q", capability={"deviceclass/gpu": 3}))
    at_once(cluster.divide_steps())
    assert cluster.ledger.queues.account("q").division.real_capability[GPU] == 3
