"""Small histories of claims: each fault is found, and what is like it and lawful is not."""

import copy

import pytest

from tests.chaos.checker import violations
from tests.chaos.devices import counted_as
from tests.chaos.history import History
from tests.chaos.stuck import stuck
from tests.chaos.test_checker import API, KINDS, LEEWAY, Story, bound, priority
from tests.controlplane.devices import CLASS, IMPLICIT, TWO_OR_ONE, asking, claiming, devices, made, requesting
from tests.controlplane.objects import GPU, elastic_quota, node, pod

OF_SCHEDULER = {"resource.kubernetes.io/extended-resource-claim": "true"}


@pytest.fixture
def story():
    told = Story()
    told.create(elastic_quota("a", min={"cpu": 9, f"deviceclass/{CLASS}": 1}, max={f"requests.{GPU}": 2}))
    told.create(elastic_quota("lender", min={GPU: 99}))
    return told.later(60)


def claim(name, *pods, count=1, spec=None, **result):
    """A claim with devices that is reserved for these pods."""
    item = made("ResourceClaim", name, "a", spec=spec or asking(allocationMode="ExactCount", count=count))
    if pods:
        results = [{"request": "g", "driver": "d", "pool": "n1", "device": str(each)} | result for each in range(count)]
        reserved = [{"resource": "pods", "name": each, "uid": f"Pod/a/{each}"} for each in pods]
        item["status"] = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    return item


def runs(story, name, *claims, item=None):
    """A pod comes, its claims get devices, and it is bound."""
    item = item or claiming(name, "a", resourceClaimName="c")
    story.create(item)
    for each in claims:
        story.see(each)
    story.see(bound(item))


def told(story):
    return [each for each in violations(History(story.records), LEEWAY) if "status" not in each]


def test_claims_up_to_max_are_lawful_and_one_above_it_is_found(story):
    runs(story, "p", claim("c"))
    runs(story, "p", claim("c", "p"))
    runs(story, "q", claim("d", "q"))
    assert told(story) == []
    runs(story, "r", claim("e", "r"))
    assert told(story) == [
        f"60.0 s: a/r was bound to n1, and its ElasticQuota used 3 of {GPU} then, above its max of 2",
    ]


def test_a_claim_that_pods_share_counts_once_and_until_the_last_of_them_has_ended(story):
    runs(story, "p", claim("c", "p", count=2))
    runs(story, "q", claim("c", "p", "q", count=2))
    assert told(story) == []
    story.see(bound(claiming("p", "a")), "DELETED")
    runs(story, "r", claim("d", "r"))
    assert len(told(story)) == 1


def test_devices_of_a_pod_that_has_ended_are_free_although_its_claim_has_them_still(story):
    runs(story, "p", claim("c", "p", count=2))
    story.see(bound(claiming("p", "a")), "DELETED")
    runs(story, "q", claim("d", "q", count=2))
    assert told(story) == []


def test_a_claim_that_the_scheduler_makes_is_what_the_pod_requests(story):
    made_by_it = claim("c", "p", count=2)
    made_by_it["metadata"]["annotations"] = OF_SCHEDULER
    runs(story, "p", made_by_it, item=requesting("p", "a", GPU, 2))
    assert told(story) == []
    runs(story, "q", item=requesting("q", "a", f"{IMPLICIT}{CLASS}"))
    assert len(told(story)) == 1


def test_devices_of_administrators_count_for_nothing(story):
    runs(story, "p", claim("c", "p", count=3, adminAccess=True))
    assert told(story) == []


def test_of_alternatives_that_which_was_taken_counts(story):
    runs(story, "p", claim("c", "p", count=3, spec=TWO_OR_ONE, request="g/two"))
    assert len(told(story)) == 1


@pytest.mark.parametrize(("used", "found"), [("2", 0), ("1", 1)])
def test_a_status_says_what_claims_have(story, used, found):
    runs(story, "p", claim("c", "p", count=2))
    quota = elastic_quota("a", max={f"{CLASS}.deviceclass.resource.k8s.io/devices": 2})
    story.see(quota | {"status": {"used": {GPU: used}}})
    assert len([each for each in violations(History(story.records), LEEWAY) if "status" in each]) == found


@pytest.mark.parametrize(("count", "found"), [(1, 1), (2, 0)])
def test_who_is_evicted_has_borrowed_devices_or_is_found(story, count, found):
    """In what it requests besides, its quota is within min."""
    runs(story, "p", claim("c", "p", count=count))
    story.later(10).create(owner := priority(pod("owner", "b"), 1))
    story.reserve("plan", owner, claiming("p", "a"))
    story.evict(claiming("p", "a", resourceClaimName="c"), API)
    assert len(told(story)) == found


WANTS_TWO = claim("wanted", count=2)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([WANTS_TWO], 0),
        ([WANTS_TWO | {"spec": TWO_OR_ONE}], 0),
        ([claim("wanted", count=3)], 1),
        ([claim("wanted", spec=asking(adminAccess=True))], 1),
        ([], 1),
    ],
    ids=["within min", "alternatives within min", "above min", "for an administrator", "no claim yet"],
)
def test_devices_that_a_waiting_claim_wants_are_guaranteed_like_others(story, wanted, found):
    """The victim has more devices than its quota guarantees, which does not name any."""
    story.see(elastic_quota("a", min={"cpu": 9}))
    runs(story, "p", claim("c", "p", count=2))
    story.create(elastic_quota("b", min={"cpu": 9, GPU: 2}))
    owner = claiming("owner", "b", resourceClaimTemplateName="t")
    owner["status"] = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "wanted"}]}
    story.create(*({**each, "metadata": each["metadata"] | {"namespace": "b"}} for each in wanted))
    story.later(10).create(owner)
    story.reserve("plan", owner, claiming("p", "a"))
    story.evict(claiming("p", "a", resourceClaimName="c"), API)
    assert len(told(story)) == found


def objects(*items):
    there = {kind: [] for kind in KINDS.values()}
    for item in copy.deepcopy(items):
        meta = item["metadata"]
        meta.setdefault("uid", f"{item['kind']}/{meta.get('namespace', '')}/{meta['name']}")
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        there[KINDS[item["kind"]]].append(item)
    return there


def waiting(name="p", *, shared=False):
    if shared:
        return claiming(name, "a", resourceClaimName="c")
    item = claiming(name, "a", resourceClaimTemplateName="t")
    return item | {"status": {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "c"}]}}


@pytest.mark.parametrize(
    ("others", "waits"),
    [
        ([], True),
        ([claim("d", "q", count=1), bound(claiming("q", "a"))], True),
        ([claim("d", "q", count=2), bound(claiming("q", "a"))], False),
        ([elastic_quota("a", max={GPU: 0})], False),
    ],
    ids=["two devices are free", "one is free", "none is free", "its quota does not allow it"],
)
def test_a_pod_whose_claim_could_have_devices_and_that_waits_is_found(others, waits):
    there = node("n1", cpu=9), devices(2, "n1"), claim("c"), *others
    assert bool(stuck(objects(*there, waiting()))) is waits


def test_of_claims_for_which_it_is_not_certain_nothing_is_told():
    there = node("n1", cpu=9), devices(2, "n1")
    assert stuck(objects(*there, claim("c", spec=TWO_OR_ONE), waiting())) == []
    assert stuck(objects(*there, claim("c"), waiting(shared=True))) == []
    assert stuck(objects(*there, waiting())) == []


@pytest.mark.parametrize(
    ("written", "counted"),
    [
        (GPU, GPU),
        (f"requests.{GPU}", GPU),
        (f"{IMPLICIT}{CLASS}", GPU),
        (f"requests.{IMPLICIT}{CLASS}", GPU),
        (f"deviceclass/{CLASS}", GPU),
        ("nic.deviceclass.resource.k8s.io/devices", f"{IMPLICIT}nic"),
        ("cpu", "cpu"),
    ],
)
def test_all_names_of_a_class_are_one(written, counted):
    assert counted_as(written) == counted
