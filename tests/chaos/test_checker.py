"""Small histories: each fault is found, and what is like it and lawful is not."""

import copy
from decimal import Decimal

import pytest

from tests.chaos.checker import Leeway, violations
from tests.chaos.history import CLOCKS, History, Record, request_of
from tests.chaos.stuck import stuck
from tests.controlplane.objects import disruption_budget, elastic_quota, labelled, node, number, pod, queue
from tests.controlplane.pod_groups import members, pod_group

LEEWAY = Leeway(granted=10, seen=2)
API, SCHEDULER = "EvictionByEvictionAPI", "PreemptionByScheduler"
KINDS = {
    "Pod": "pods",
    "Node": "nodes",
    "Namespace": "namespaces",
    "ElasticQuota": "elasticquotas",
    "Queue": "queues",
    "PodGroup": "podgroups",
    "Reservation": "reservations",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ResourceClaim": "resourceclaims",
    "ResourceSlice": "resourceslices",
}


class Story:
    """A history as it is told: each thing happens at the time that was set last, or a moment after the one before."""

    def __init__(self):
        self.at = 0.0
        self.records = []

    def later(self, seconds):
        self.at += seconds
        return self

    def see(self, item, event="MODIFIED"):
        item = copy.deepcopy(item)
        meta = item["metadata"]
        uid = f"{item['kind']}/{meta.get('namespace', '')}/{meta['name']}"
        meta.setdefault("uid", uid)
        meta.setdefault("creationTimestamp", f"2026-01-01T00:00:{len(self.records):02}Z")
        self.records.append(Record(self.at, len(self.records) + 1, event, KINDS[item["kind"]], item))

    def create(self, *items):
        for item in items:
            self.see(item, "ADDED")

    def bind(self, *items, to="n1"):
        for item in items:
            self.see(item, "ADDED")
            self.see(bound(item, to))

    def evict(self, item, how, node="n1"):
        gone = bound(item, node)
        gone["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": how}]
        self.see(gone)
        self.see(gone, "DELETED")

    def reserve(self, name, whom, *victims, node="n1", reason="Reclaim", **spec):
        reservation = {"kind": "Reservation", "metadata": {"name": name}}
        names = [named(each) for each in victims]
        reservation["spec"] = {"reason": reason, "pod": named(whom), "nodeName": node, "victims": names} | spec
        self.create(reservation)
        return reservation

    @property
    def violations(self):
        history = History(self.records)
        return [each for each in violations(history, LEEWAY) if "status of" not in each]


def sized(name, **size):
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": size}}


def bound(item, to="n1"):
    item = copy.deepcopy(item)
    item["spec"]["nodeName"] = to
    item.setdefault("status", {})["phase"] = "Running"
    return item


def named(item):
    meta = item["metadata"]
    return {"namespace": meta["namespace"], "name": meta["name"], "uid": f"Pod/{meta['namespace']}/{meta['name']}"}


def priority(item, value):
    item["spec"]["priority"] = value
    return item


def opted_out(item):
    item["metadata"]["annotations"] = {"quotaward.dev/preemptible": "false"}
    return item


def mirror(item):
    """As a kubelet makes it of a static pod."""
    item["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "hash"}
    return item


def owned(item, kind):
    item["metadata"]["ownerReferences"] = [{"kind": kind, "controller": True}]
    return item


@pytest.fixture
def story():
    return Story()


# Bindings


def test_a_binding_up_to_max_is_lawful_and_one_above_it_is_found(story):
    story.create(elastic_quota("a", max={"cpu": 2}))
    story.later(60).bind(pod("p", "a"), pod("q", "a"))
    assert story.violations == []
    story.bind(pod("r", "a"))
    (found,) = story.violations
    assert found == "60.0 s: a/r was bound to n1, and its ElasticQuota used 3 of cpu then, above its max of 2"


def test_what_ends_makes_room_for_others(story):
    story.create(elastic_quota("a", max={"cpu": 1}))
    story.later(60).bind(pod("p", "a"))
    story.see(bound(pod("p", "a")), "DELETED")
    story.bind(pod("q", "a"))
    assert story.violations == []


def test_pods_admitted_before_max_was_lowered_may_arrive_and_no_others(story):
    story.create(elastic_quota("a", max={"cpu": 5}))
    story.later(60).bind(pod("p", "a"))
    story.see(elastic_quota("a", max={"cpu": 1}))
    story.later(5).bind(pod("q", "a"))
    assert story.violations == []
    story.later(30).bind(pod("r", "a"))
    (found,) = story.violations
    assert "a/r was bound" in found


def test_a_pod_that_was_put_on_its_node_by_hand_has_asked_nobody(story):
    story.create(elastic_quota("a", max={"cpu": 0}))
    story.later(60).see(bound(pod("p", "a")), "ADDED")
    assert story.violations == []


def test_records_count_in_the_order_of_revisions_however_late_a_watch_is(story):
    story.create(elastic_quota("a", max={"cpu": 1}))
    story.later(60).see(elastic_quota("a", max={"cpu": 2}))
    story.later(30).bind(pod("p", "a"), pod("q", "a"))
    late = [record for record in story.records if record.kind == "elasticquotas"]
    early = [record for record in story.records if record.kind == "pods"]
    story.records = early + late
    assert story.violations == []


def leaves_a_lost_node(story):
    """A pod of ``a`` is being deleted whose node is gone."""
    going = bound(pod("going", "a"), "lost")
    story.create(node("lost"), going)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    story.see(going)
    story.see(node("lost"), "DELETED")


def has_a_wrong_clock(story, *, wrong=True):
    item = {"metadata": {"uid": CLOCKS}, "wrong": wrong}
    story.records.append(Record(story.at, len(story.records), "MODIFIED", CLOCKS, item))


@pytest.mark.parametrize(("seconds", "wrong", "found"), [(299, False, True), (302, False, False), (9, True, False)])
@pytest.mark.parametrize("quota", [elastic_quota("a", max={"cpu": 1}), elastic_quota("a", min={"cpu": 0})])
def test_pods_that_are_overdue_on_a_lost_node_do_not_count(story, quota, seconds, wrong, found):
    """By a clock that is an hour fast they are so at once."""
    story.create(quota, elastic_quota("lender", min={"cpu": 1}))
    leaves_a_lost_node(story)
    story.later(seconds)
    if wrong:
        has_a_wrong_clock(story)
    story.bind(pod("p", "a"))
    assert bool(story.violations) == found


@pytest.mark.parametrize("why_not", ["its node is there", "it is not being deleted"])
def test_others_count_whatever_clocks_say(story, why_not):
    story.create(elastic_quota("a", max={"cpu": 1}), node("lost"))
    going = bound(pod("going", "a"), "lost")
    story.create(going)
    if why_not == "its node is there":
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        story.see(going)
    else:
        story.see(node("lost"), "DELETED")
    has_a_wrong_clock(story.later(400))
    story.bind(pod("p", "a"))
    assert len(story.violations) == 1


def test_who_borrows_what_nobody_has_left_is_found(story):
    story.create(elastic_quota("a", min={"cpu": 1}), elastic_quota("b", min={"cpu": 2}))
    story.later(60).bind(pod("own", "a"), pod("other", "b"), pod("lent", "a"))
    assert story.violations == []
    story.later(60).bind(pod("within-its-min", "b"))
    assert story.violations == [], "who is within min is let in whatever others have borrowed"
    story.later(60).bind(pod("one-too-many", "a"))
    (found,) = story.violations
    assert "a/one-too-many was bound to n1 and borrows cpu that nobody has left" in found


@pytest.mark.parametrize(("cpu", "fault"), [(1, False), (2, True)])
def test_who_stays_within_min_may_take_what_only_others_have_in_theirs(story, cpu, fault):
    story.create(elastic_quota("a", min={"cpu": 1}), elastic_quota("b", min={"memory": "1Gi"}))
    story.later(60).bind(pod("own", "b", memory="1Gi"))
    story.later(60).bind(pod("p", "a", cpu=cpu, memory="1Gi"))
    assert any("borrows memory" in each for each in story.violations) == fault


def test_a_pod_that_borrowed_in_time_may_arrive_later_than_the_owner(story):
    story.create(elastic_quota("a", min={"cpu": 1}), elastic_quota("b", min={"cpu": 1}))
    story.later(60).bind(pod("own", "a"))
    story.later(60).bind(pod("owner", "b"), pod("lent", "a"))
    assert story.violations == []


# Reserved nodes


def reserved_for_a_large_pod(story):
    large = pod("large", "a", cpu=8)
    story.create(large)
    return large, story.reserve("r", large, reason="Starving", job="pods/large")


def test_an_ordinary_pod_on_a_reserved_node_is_found(story):
    reserved_for_a_large_pod(story)
    story.later(5).bind(pod("let-through-before", "b"))
    story.later(20).bind(pod("elsewhere", "b"), to="n2")
    assert story.violations == []
    story.bind(pod("p", "b"))
    assert story.violations == ["25.0 s: b/p was bound to n1, reserved for a/large since 25.0 s"]


def test_pods_that_may_enter_a_reserved_node_are_no_fault(story):
    large, reservation = reserved_for_a_large_pod(story)
    story.later(20).bind(pod("nothing", "b", cpu=None), owned(pod("daemon", "b"), "DaemonSet"))
    story.see(bound(large))
    story.bind(pod("after-it-has-come", "b"))
    story.see(reservation, "DELETED")
    story.later(20).bind(pod("after-that", "b"))
    assert story.violations == []


def test_a_node_is_free_again_when_its_reservation_was_given_up(story):
    _, reservation = reserved_for_a_large_pod(story)
    story.see(reservation | {"status": {"failedAt": "2026-01-01T00:00:00Z"}})
    story.later(20).bind(pod("p", "b"))
    assert story.violations == []


def test_a_reservation_that_is_made_anew_under_the_same_name_counts(story):
    _, reservation = reserved_for_a_large_pod(story)
    story.see(reservation, "DELETED")
    reservation["metadata"]["uid"] = "another"
    story.create(reservation)
    story.later(20).bind(pod("p", "b"))
    assert story.violations == ["20.0 s: b/p was bound to n1, reserved for a/large since 20.0 s"]


@pytest.mark.parametrize(("used", "fault"), [(7, False), (8, True)])
def test_a_pod_may_take_what_is_left_beside_what_is_reserved(story, used, fault):
    story.create(sized("n1", cpu=16, pods=110))
    reserved_for_a_large_pod(story)
    story.bind(pod("runs", "b", cpu=used))
    story.later(20).bind(pod("p", "b", cpu=1))
    assert bool(story.violations) == fault


def test_pods_that_came_after_a_pod_was_let_in_are_no_fault_of_it(story):
    story.create(sized("n1", cpu=16, pods=110))
    reserved_for_a_large_pod(story)
    story.later(20).bind(owned(pod("daemon", "b", cpu=8), "DaemonSet"))
    story.bind(pod("p", "b", cpu=1))
    assert story.violations == []


# Evictions


def borrowing(story, *victims, least=1):
    """A quota whose pods these are, and an owner that waits."""
    story.create(elastic_quota("lent", min={"cpu": least}), elastic_quota("owner", min={"cpu": 9}))
    story.bind(*victims)
    story.later(30)
    wants = pod("wants", "owner")
    story.create(wants)
    return wants


def test_who_borrows_may_be_evicted_and_who_is_within_min_may_not(story):
    first, second = pod("first", "lent"), pod("second", "lent")
    wants = borrowing(story, first, second)
    story.reserve("r", wants, first)
    story.evict(first, API)
    assert story.violations == []
    story.later(30)
    story.reserve("s", wants, second)
    story.evict(second, API)
    assert story.violations == ["60.0 s: lent/second was evicted, and its ElasticQuota was within its min"]


def test_one_too_many_of_a_plan_is_found_at_once(story):
    first, second = pod("first", "lent"), pod("second", "lent")
    wants = borrowing(story, first, second)
    story.reserve("r", wants, first, second)
    story.evict(first, API)
    story.evict(second, API)
    assert story.violations == ["30.0 s: lent/second was evicted, and its ElasticQuota was within its min"]


def test_a_plan_may_take_a_small_one_and_then_a_large_one_in_whatever_order_they_go(story):
    small, large = pod("small", "lent"), pod("large", "lent", cpu=3)
    wants = borrowing(story, small, large, least=2)
    story.reserve("r", wants, large, small)
    story.evict(large, API)
    story.evict(small, API)
    assert story.violations == []


def test_a_gang_goes_as_a_whole_for_what_was_lent_to_one_of_it(story):
    gang = members("g", "lent", 3)
    wants = borrowing(story, *gang, least=2)
    story.reserve("r", wants, *gang)
    for member in gang:
        story.evict(member, API)
    assert story.violations == []


def test_what_is_lent_to_a_pod_on_its_way_counts_as_borrowed(story):
    victim, coming = pod("victim", "lent"), pod("coming", "lent")
    wants = borrowing(story, victim)
    story.create(coming)
    story.reserve("r", wants, victim)
    story.evict(victim, API)
    story.see(bound(coming))
    assert story.violations == []


def test_a_pod_that_requests_nothing_of_what_min_names_is_not_protected_by_it(story):
    story.create(elastic_quota("lent", min={"nvidia.com/gpu": 4}))
    victim, wants = pod("victim", "lent"), pod("wants", "owner")
    story.bind(victim)
    story.create(wants)
    story.reserve("r", wants, victim)
    story.evict(victim, API)
    assert story.violations == []


@pytest.mark.parametrize(
    ("guaranteed", "lawful"),
    [
        ({"nvidia.com/gpu": 1}, True),
        ({"nvidia.com/gpu": 0}, False),
        ({"memory": "1Gi"}, False),
        ({"cpu": 1, "memory": "1Gi"}, True),
        ({"cpu": 0, "memory": "1Gi"}, False),
    ],
)
def test_a_min_does_not_protect_what_it_does_not_name_from_who_is_guaranteed_more(story, guaranteed, lawful):
    story.create(elastic_quota("lent", min={"cpu": 4}), elastic_quota("owner", min=guaranteed))
    victim, wants = pod("victim", "lent", memory="1Gi", gpus=1), pod("wants", "owner", memory="1Gi", gpus=1)
    story.bind(victim)
    story.create(wants)
    story.later(30).reserve("r", wants, victim)
    story.evict(victim, API)
    assert (story.violations == []) == lawful


@pytest.mark.parametrize(("of", "lawful"), [(10, True), (0, False)])
def test_within_min_one_goes_for_a_more_important_pod_of_its_own_namespace_alone(story, of, lawful):
    victim = pod("victim", "a")
    story.create(elastic_quota("a", min={"cpu": 1}))
    story.bind(victim)
    story.create(priority(pod("wants", "a"), of), priority(pod("elsewhere", "b"), 100))
    story.later(30).evict(victim, SCHEDULER)
    assert (story.violations == []) == lawful


@pytest.mark.parametrize(
    ("victim", "text"),
    [
        (priority(pod("v", "lent", cpu=4), 2_000_000_000), "lent/v was evicted, which is critical to the system"),
        (owned(pod("v", "lent", cpu=4), "DaemonSet"), "lent/v was evicted, which is a pod of a DaemonSet"),
        (mirror(pod("v", "lent", cpu=4)), "lent/v was evicted, which is a pod of a Node"),
    ],
)
def test_whom_nobody_may_evict_is_found(story, victim, text):
    wants = borrowing(story, victim)
    story.reserve("r", wants, victim)
    story.evict(victim, API)
    assert story.violations == [f"30.0 s: {text}"]


@pytest.mark.parametrize(
    ("namespace", "of", "how", "lawful"),
    [
        ("free", 2_000_000_000, SCHEDULER, True),
        ("free", 1_999_999_999, SCHEDULER, False),
        ("bounded", 2_000_000_000, SCHEDULER, False),
        ("free", 2_000_000_000, API, False),
    ],
)
def test_only_the_scheduler_evicts_and_only_for_a_critical_pod_without_a_quota(story, namespace, of, how, lawful):
    victim, wants = pod("victim", "a"), priority(pod("wants", namespace), of)
    story.create(elastic_quota("a", min={"cpu": 1}), elastic_quota("bounded", min={"cpu": 0}))
    story.bind(victim)
    story.later(30).create(wants)
    story.reserve("r", wants, victim)
    story.evict(victim, how)
    assert (story.violations == []) == lawful


def test_opting_out_protects_within_min_and_not_beyond_it(story):
    out, more = opted_out(pod("out", "lent")), pod("more", "lent")
    wants = borrowing(story, out, more)
    story.reserve("r", wants, out)
    story.evict(out, API)
    assert story.violations == ["30.0 s: lent/out was evicted, which has opted out of it"]

    beyond, large = Story(), opted_out(pod("out", "lent", cpu=4))
    wants = borrowing(beyond, large)
    beyond.reserve("r", wants, large)
    beyond.evict(large, API)
    assert beyond.violations == []


def test_an_unexplained_eviction_is_found_but_not_the_rest_of_a_broken_gang(story):
    borrowing(story, pod("p", "lent"), pod("q", "lent"))
    story.evict(pod("p", "lent"), API)
    assert story.violations == ["30.0 s: lent/p was evicted, and no reservation says for whom"]

    broken, rest = Story(), members("g", "lent", 1)
    broken.create(pod_group("g", "lent", 2))
    borrowing(broken, *rest)
    broken.evict(rest[0], API)
    assert broken.violations == []


def test_an_eviction_beyond_a_budget_is_found(story):
    pods = [labelled(pod(f"p{number}", "lent"), app="web") for number in range(3)]
    wants = borrowing(story, *pods)
    story.create(disruption_budget("budget", "lent", 2, app="web"))
    story.later(30).reserve("r", wants, *pods)
    story.evict(pods[0], API)
    assert story.violations == []
    story.evict(pods[1], API)
    assert story.violations == ["60.0 s: lent/p1 was evicted, and PodDisruptionBudget budget wants 2 of 2 to stay"]


def test_a_budget_with_expressions_counts_and_one_of_another_kind_is_not_judged(story):
    pods = [labelled(pod(f"p{number}", "lent"), app="web") for number in range(2)]
    wants = borrowing(story, *pods)
    budget = disruption_budget("budget", "lent", 2)
    chosen = [{"key": "app", "operator": "NotIn", "values": ["db"]}, {"key": "job", "operator": "DoesNotExist"}]
    budget["spec"]["selector"] = {"matchExpressions": chosen}
    percent = disruption_budget("percent", "lent", "100%")
    percent["spec"]["selector"] = {}
    story.create(budget, percent)
    story.later(30).reserve("r", wants, *pods)
    story.evict(pods[0], API)
    assert story.violations == ["60.0 s: lent/p0 was evicted, and PodDisruptionBudget budget wants 2 of 2 to stay"]


# What tenants change


def resized(item, cpu):
    item = bound(item)
    item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return item


def test_of_a_pod_that_was_resized_it_is_not_known_what_was_decided_on(story):
    story.create(elastic_quota("a", max={"cpu": 3}))
    story.later(60).bind(pod("grows", "a"), pod("p", "a"))
    story.see(resized(pod("grows", "a"), "9"))
    story.bind(pod("q", "a"))
    assert story.violations == []
    story.bind(pod("r", "a"))
    assert ["a/r was bound" in each for each in story.violations] == [True]


def test_a_pod_that_shrinks_to_nothing_borrows_nothing(story):
    story.create(elastic_quota("a", min={"cpu": 0}), elastic_quota("b", min={"cpu": 1}))
    story.later(60).bind(pod("own", "b"))
    shrunk = pod("shrunk", "a")
    story.create(shrunk)
    story.see(resized(shrunk, "0"))
    assert story.violations == []


def test_nobody_is_protected_by_a_size_that_a_pod_had_only_later_or_before(story):
    shrinks = pod("shrinks", "lent", cpu=4)
    wants = borrowing(story, shrinks)
    story.see(resized(shrinks, "1"))
    story.later(60).reserve("r", wants, shrinks)
    story.evict(resized(shrinks, "1"), API)
    assert story.violations == []


@pytest.mark.parametrize("change", [opted_out, lambda item: owned(item, "DaemonSet")])
def test_what_a_pod_got_after_it_was_created_may_not_have_been_seen(story, change):
    victim = pod("victim", "lent", cpu=2)
    wants = borrowing(story, victim, least=2)
    story.bind(pod("other", "lent"))
    story.reserve("r", wants, victim)
    story.evict(change(victim), API)
    assert story.violations == []


def test_where_labels_change_no_budget_is_judged(story):
    pods = [labelled(pod(f"p{number}", "lent"), app="web") for number in range(2)]
    wants = borrowing(story, *pods)
    story.create(disruption_budget("budget", "lent", 2, app="web"))
    story.see(bound(labelled(copy.deepcopy(pods[1]), app="db")))
    story.later(30).reserve("r", wants, *pods)
    story.evict(pods[0], API)
    assert story.violations == []


@pytest.mark.parametrize(("version", "kind"), [("made-up.example.com/v1", "DaemonSet"), ("v1", "Node")])
def test_an_owner_that_a_pod_has_made_up_protects_nobody(story, version, kind):
    victim = owned(pod("victim", "lent", cpu=4), kind)
    victim["metadata"]["ownerReferences"][0]["apiVersion"] = version
    wants = borrowing(story, victim)
    story.reserve("r", wants, victim)
    story.evict(victim, API)
    assert story.violations == []


def test_of_a_group_of_another_kind_it_is_not_known_whether_it_is_broken(story):
    victim = pod("victim", "lent")
    victim["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    borrowing(story, victim)
    story.evict(victim, API)
    assert story.violations == []


def test_a_pod_requests_what_its_containers_and_its_largest_stage_do():
    item = pod("p", "a", cpu="1n", memory="1e3")

    def asks(cpu, **rest):
        return {"resources": {"requests": {"cpu": cpu}}} | rest

    item["spec"]["initContainers"] = [asks("2"), asks("1", restartPolicy="Always"), asks("1500m")]
    assert request_of(item) == {"cpu": Decimal("2.5"), "memory": 1000, "pods": 1}
    item["spec"]["resources"] = {"requests": {"memory": "1.5"}}
    assert request_of(item) == {"cpu": Decimal("2.5"), "memory": 2, "pods": 1}


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        *(("0", 0), ("+1.50", "1.5"), (".5", "0.5"), ("1.", 1), ("1e3", 1000), ("1E", 10**18), ("3Ki", 3072)),
        *(("500m", "0.5"), ("1n", "1e-9"), ("1e999999999", 2**63 - 1), ("1e-999999999", "1e-9"), ("9" * 60, 2**63 - 1)),
    ],
)
def test_every_quantity_has_its_value(quantity, value):
    assert number(quantity) == Decimal(value)


# At the end


def test_a_status_that_is_not_the_recount_is_found(story):
    quota = elastic_quota("a", max={"cpu": 5, "memory": "1Gi"})
    quota["status"] = {"used": {"cpu": "1500m", "memory": "0"}}
    story.create(quota)
    story.bind(pod("p", "a", cpu="1500m"))
    assert violations(History(story.records), LEEWAY) == []
    story.bind(pod("q", "a", cpu=1))
    (found,) = violations(History(story.records), LEEWAY)
    assert found == "at the end: the status of ElasticQuota a/quota says that 1500m of cpu is used; it is 2.500"


def standing(**more):
    """The objects of a cluster with two cores, and one pod that waits for one."""
    objects = {kind: [] for kind in KINDS.values()}
    items = [node("n1", cpu=2), pod("waits", "a"), *more.pop("also", ())]
    for item in items:
        item["metadata"] |= {"uid": item["metadata"]["name"], "creationTimestamp": "2026-01-01T00:00:00Z"}
        objects[KINDS[item["kind"]]].append(item)
    return objects


def test_a_pod_that_may_run_and_fits_and_waits_is_found():
    assert stuck(standing()) == ["a/waits waits although it may run on n1: ''"]
    assert stuck(standing(also=[elastic_quota("a", max={"cpu": 1})])) != []
    assert stuck(standing(also=[elastic_quota("a", min={"cpu": 1}), bound(pod("b", "b"))])) != []
    assert stuck(standing(also=[queue("default", guarantee={"resource": {"cpu": "1", "pods": "1"}})])) != []


@pytest.mark.parametrize(
    "also",
    [
        [bound(pod("large", "b", cpu=2))],
        [elastic_quota("a", max={"cpu": 0})],
        [elastic_quota("a", min={"cpu": 0}), elastic_quota("b", min={"cpu": 1}), bound(pod("p", "b"))],
        [elastic_quota("a", min={"cpu": 0}), elastic_quota("b", min={"cpu": 1}), pod("owner", "b")],
        [queue("default")],
        [pod("other", "b", cpu=2) | {"status": {"nominatedNodeName": "n1"}}, elastic_quota("b", max={"cpu": 0})],
        [
            {
                "kind": "Reservation",
                "metadata": {"name": "r"},
                "spec": {"reason": "Starving", "nodeName": "n1", "pod": {"uid": "other"}},
            }
        ],
    ],
    ids=[
        "no room",
        "max",
        "nothing to borrow",
        "others wait within min",
        "a queue without guarantee",
        "room kept for another",
        "reserved",
    ],
)
def test_a_pod_that_waits_for_a_reason_is_none(also):
    assert not any("a/waits" in each for each in stuck(standing(also=also)))


@pytest.mark.parametrize(
    ("tolerations", "may_run"), [([], False), ([{"key": "other"}], False), ([{"key": "batch"}], True)]
)
def test_a_pod_may_run_on_a_node_whose_taints_it_tolerates(tolerations, may_run):
    tainted = node("n2", taints=[{"key": "batch", "effect": "NoSchedule"}])
    large = pod("large", "b", cpu=9, tolerations=tolerations)
    assert any("b/large" in each for each in stuck(standing(also=[tainted, large]))) == may_run
