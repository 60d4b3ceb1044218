"""What is read of claims, their templates, device classes, and pods that use claims."""

import json

import pytest
import yaml

from app.main import cluster_of
from app.settings import InvalidSettings, load
from app.store.device_classes import DEVICE_CLASSES, device_class_of
from app.store.pods import PODS, pod_of
from app.store.resource_claims import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, claim_of
from app.store.resource_slices import RESOURCE_SLICES, slice_of
from policy.cluster.cluster import Cluster
from policy.objects.device import MOST_CLAIMS, DeviceRequests, PodClaim
from policy.objects.device_selector import Comparison
from tests.unit.app.given import pod
from tests.unit.app.test_objects import decoded


def exactly(name="r", of="gpu", **fields):
    return {"name": name, "exactly": {"deviceClassName": of} | fields}


def a_claim(*requests, **status):
    item = {"metadata": {"name": "c", "namespace": "a"}, "spec": {"devices": {"requests": list(requests)}}}
    return claim_of(decoded(RESOURCE_CLAIMS, item | {"status": status}))


def results(*requests, **fields):
    return {"allocation": {"devices": {"results": [{"request": each} | fields for each in requests]}}}


TWO_OR_ONE = {
    "name": "g",
    "firstAvailable": [
        {"name": "two", "deviceClassName": "gpu", "count": 2},
        {"name": "one", "deviceClassName": "gpu", "count": 1},
        {"name": "big", "deviceClassName": "big", "count": 1},
    ],
}


@pytest.mark.parametrize(
    ("requests", "counts", "whole"),
    [
        ([exactly()], {"gpu": 1}, ()),
        ([exactly(count=2, allocationMode="ExactCount")], {"gpu": 2}, ()),
        ([exactly(count=2), exactly("s", count=3), exactly("t", "big")], {"gpu": 5, "big": 1}, ()),
        ([exactly(allocationMode="All")], {}, ("gpu",)),
        ([exactly(adminAccess=True), exactly("s", adminAccess=True, allocationMode="All")], {"gpu": 0}, ()),
        ([TWO_OR_ONE], {"gpu": 2, "big": 1}, ()),
        ([], {}, ()),
    ],
)
def test_a_claim_without_devices_counts_what_it_asks_for(requests, counts, whole):
    found = a_claim(*requests)
    assert {name: count for name, count in found.requests.counts.items() if count} == {
        name: count for name, count in counts.items() if count
    }
    assert found.requests.whole == set(whole)
    assert found.allocated is None


@pytest.mark.parametrize(
    ("requests", "status", "allocated"),
    [
        ([exactly(count=2)], results("r", "r"), {"gpu": 2}),
        ([exactly(allocationMode="All")], results(*"rrr"), {"gpu": 3}),
        ([TWO_OR_ONE], results("g/one"), {"gpu": 1}),
        ([TWO_OR_ONE], results("g/big"), {"big": 1}),
        ([exactly(adminAccess=True)], results("r", adminAccess=True), {}),
        ([exactly()], {"allocation": {}}, {}),
        ([exactly()], results("of nobody"), {}),
    ],
)
def test_a_claim_with_devices_counts_those_that_it_has(requests, status, allocated):
    assert a_claim(*requests, **status).allocated == allocated


def test_templates_and_classes_are_taken_in_and_go():
    cluster = Cluster()
    spec = {"spec": {"devices": {"requests": [exactly(count=2)]}}}
    template = {"metadata": {"name": "t", "namespace": "a"}, "spec": spec}
    RESOURCE_CLAIM_TEMPLATES.upsert(cluster, decoded(RESOURCE_CLAIM_TEMPLATES, template), 0)
    named = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}
    for item in (named, {"metadata": {"name": "plain"}}):
        DEVICE_CLASSES.upsert(cluster, decoded(DEVICE_CLASSES, item), 0)
    RESOURCE_CLAIMS.upsert(cluster, decoded(RESOURCE_CLAIMS, {"metadata": {"name": "c", "namespace": "a"}}), 0)
    devices, classes = cluster.devices, cluster.device_names.classes
    assert devices.templates == {("a", "t"): DeviceRequests({"gpu": 2})}
    assert {name: of.extended for name, of in classes.items()} == {
        "gpu": "nvidia.com/gpu",
        "plain": "",
    }
    assert devices.claims.keys() == {("a", "c")}
    RESOURCE_CLAIM_TEMPLATES.delete(cluster, ("a", "t"))
    RESOURCE_CLAIMS.delete(cluster, ("a", "c"))
    for name in ("gpu", "plain"):
        DEVICE_CLASSES.delete(cluster, name)
    assert (devices.templates, classes, devices.claims) == ({}, {}, {})


def needs(claims, made=()):
    item = pod("p", resourceClaims=claims)
    return pod_of(decoded(PODS, item | {"status": {"resourceClaimStatuses": list(made)}})).needs


OF_T = {"name": "x", "resourceClaimTemplateName": "t"}


@pytest.mark.parametrize(
    ("claims", "made", "found"),
    [
        ([{"name": "x", "resourceClaimName": "c"}], [], [PodClaim("c")]),
        ([{"name": x, "resourceClaimName": "c"} for x in "xy"], [], [PodClaim("c")]),
        ([OF_T], [], [PodClaim("", "t")]),
        ([OF_T, OF_T | {"name": "y"}], [], [PodClaim("", "t"), PodClaim("", "t")]),
        ([OF_T], [{"name": "x", "resourceClaimName": "p-x"}], [PodClaim("p-x", "t")]),
    ],
)
def test_the_claims_of_a_pod_are_those_that_it_names_and_those_made_for_it(claims, made, found):
    assert list(needs(claims, made).claims) == found


def test_a_pod_whose_template_makes_no_claim_for_it_needs_none():
    assert needs([OF_T], [{"name": "x"}]) is None
    assert needs([{"name": "x"}]) is None


def test_a_pod_with_more_claims_than_are_counted_says_so():
    many = [{"name": f"x{number}", "resourceClaimName": f"c{number}"} for number in range(MOST_CLAIMS + 1)]
    assert (len(needs(many).claims), needs(many).excess) == (MOST_CLAIMS, True)
    assert not needs(many[:-1]).excess


def test_only_a_pod_that_names_a_class_or_claims_needs_more_than_it_requests():
    plain, implicit = pod("p"), pod("p")
    implicit["spec"]["containers"][0]["resources"] = {"requests": {"deviceclass.resource.kubernetes.io/gpu": "2"}}
    assert pod_of(decoded(PODS, plain)).needs is None
    found = pod_of(decoded(PODS, implicit))
    assert found.needs.request is found.request


def a_slice(*devices, **spec):
    pool = {"name": "p", "generation": 3, "resourceSliceCount": 2}
    given = {"driver": "x.com", "nodeName": "n1", "pool": pool, "devices": list(devices)} | spec
    return slice_of(decoded(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": given}))


def device(**fields):
    return {"name": "d"} | fields


DRIVER = ("driver", '"x.com"')


@pytest.mark.parametrize(
    ("given", "attributes"),
    [
        ({}, ()),
        ({"attributes": {"type": {"string": "gpu"}}}, (("x.com/type", '"gpu"'),)),
        ({"attributes": {"y.com/cores": {"int": 7}}}, (("y.com/cores", "7"),)),
        ({"attributes": {"healthy": {"bool": False}}}, (("x.com/healthy", "false"),)),
        ({"attributes": {"driverVersion": {"version": "1.2.3"}}}, ()),
        ({"attributes": None, "taints": None, "consumesCounters": []}, ()),
    ],
)
def test_a_device_has_its_driver_and_the_attributes_that_are_judged(given, attributes):
    assert a_slice(device(**given)).devices == ((DRIVER, *attributes),)


def test_a_slice_is_a_part_of_its_pool_on_a_node():
    found = a_slice(device(), device())
    assert (found.name, found.node, found.pool) == ("s", "n1", ("x.com", "p"))
    assert (found.generation, found.slices, len(found.devices), found.shared) == (3, 2, 2, False)
    assert a_slice(nodeName=None, allNodes=True).node == ""


@pytest.mark.parametrize("field", [{"allowMultipleAllocations": True}, {"consumesCounters": [{"counterSet": "c"}]}])
def test_devices_that_several_claims_may_have_are_shared(field):
    assert a_slice(device(), device(**field)).shared


def test_a_tainted_device_does_not_count():
    assert a_slice(device(taints=[{"key": "broken", "effect": "NoSchedule"}])).devices == ()


def test_a_class_has_comparisons_or_is_not_judged():
    def selects(*expressions):
        selectors = [{"cel": {"expression": each}} for each in expressions]
        item = {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}
        return device_class_of(decoded(DEVICE_CLASSES, item)).selects

    assert selects("device.driver == 'x.com'") == (Comparison(*DRIVER),)
    assert selects("device.driver.startsWith('x')") is None
    assert selects() == ()


@pytest.mark.parametrize(
    ("request_", "plain"),
    [
        (exactly(count=2), True),
        (exactly(selectors=[], capacity=None), True),
        (exactly(selectors=[{"cel": {"expression": "true"}}]), False),
        (exactly(capacity={"requests": {"memory": "1Gi"}}), False),
        (exactly(allocationMode="All"), False),
        (exactly(adminAccess=True), False),
        (TWO_OR_ONE, False),
    ],
)
def test_a_claim_is_plain_if_any_devices_of_a_class_will_do(request_, plain):
    assert a_claim(request_).requests.plain == plain


def test_a_claim_with_constraints_is_not_plain():
    spec = {"devices": {"requests": [exactly()], "constraints": [{"matchAttribute": "x.com/numa"}]}}
    item = {"metadata": {"name": "c", "namespace": "a"}, "spec": spec}
    assert not claim_of(decoded(RESOURCE_CLAIMS, item)).requests.plain


UNREAD = "device.driver.startsWith('x.')"
ROW = {"name": "gpu", "selector": 'device.driver == "x.com" && device.attributes["x.com"].fast'}


def loaded(tmp_path, *rows):
    (tmp_path / "quotaward.yaml").write_text(yaml.safe_dump({"devices": {"classes": list(rows)}}))
    return load(["--config", str(tmp_path / "quotaward.yaml")])


def by_settings(settings, expression):
    """What a class of this selector selects where Quotaward runs with these settings."""
    cluster = cluster_of(settings, 0)
    selector = {"cel": {"expression": expression}}
    obj = decoded(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}})
    DEVICE_CLASSES.upsert(cluster, obj, 0)
    return cluster.device_names.classes["gpu"].selects


OF_ROW = (Comparison("driver", '"x.com"'), Comparison("x.com/fast", "true"))


def test_settings_say_what_a_class_selects_whose_selectors_are_not_judged(tmp_path):
    assert by_settings(loaded(tmp_path, ROW), UNREAD) == OF_ROW
    assert by_settings(loaded(tmp_path, ROW | {"name": "other"}), UNREAD) is None


def test_a_class_whose_selectors_are_judged_heeds_no_setting(tmp_path):
    assert by_settings(loaded(tmp_path, ROW), "device.driver == 'y.com'") == (Comparison("driver", '"y.com"'),)


def test_classes_may_come_from_the_environment_and_from_a_flag_as_json(monkeypatch):
    in_single_quotes = ROW | {"selector": ROW["selector"].replace('"', "'")}
    assert load(["--devices.classes", json.dumps([in_single_quotes])]).rules.device_classes == {"gpu": OF_ROW}
    monkeypatch.setenv("QUOTAWARD_DEVICES__CLASSES", json.dumps([ROW]))
    assert load([]).rules.device_classes == {"gpu": OF_ROW}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([ROW | {"selector": UNREAD}], "devices.classes.0.selector: must be comparisons"),
        ([ROW | {"selector": ""}], "devices.classes.0.selector: must be comparisons"),
        ([ROW | {"name": ""}], "devices.classes.0.name: "),
        ([{"name": "gpu"}], "devices.classes.0.selector: "),
        ([ROW | {"driver": "x"}], "devices.classes.0.driver: "),
        ([ROW, ROW], "devices.classes: there are two rows of the class gpu"),
    ],
)
def test_a_class_that_the_settings_do_not_say_clearly_is_refused(tmp_path, rows, said):
    with pytest.raises(InvalidSettings) as caught:
        loaded(tmp_path, *rows)
    assert said in str(caught.value)
