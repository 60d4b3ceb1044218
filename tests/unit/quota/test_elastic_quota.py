"""The rules of elastic quotas. Seed: capacity scheduling."""

import pytest

from policy.objects.verdict import Refusal
from policy.quota.admission import Rules, hints, refusal
from policy.quota.elastic_quota import BORROWING, INVALID, MAX, conditions, in_force, numbers
from policy.quota.ledger import Ledger
from policy.quota.rules import named_in
from tests.unit.given import amounts, pod, quota, refused_for, unreadable

MAX_CPU = "ElasticQuota max exceeded: cpu"
EXHAUSTED = "ElasticQuota borrowing exhausted"
BORROWING_CPU = f"{EXHAUSTED}: cpu"


def ledger_of(quotas: dict, used: dict | None = None, *others) -> Ledger:
    """Quotas as {namespace: (min, max)}, what one pod of each namespace uses, and (kind, pod) besides."""
    ledger = Ledger()
    for namespace, (least, most) in quotas.items():
        ledger.set_quota(namespace, quota(namespace, least=least, most=most))
    for namespace, request in (used or {}).items():
        ledger.enter("assigned", pod(f"running-{namespace}", namespace, request=request))
    for kind, waiting in others:
        ledger.enter(kind, waiting)
    return ledger


def message(refused: Refusal | None) -> str | None:
    return refused and refused.message


def answer(ledger: Ledger, *, strict: bool = False, **asking) -> str | None:
    return message(refusal(ledger, pod("asking", **asking), "", Rules(strict_borrowing=strict)))


@pytest.mark.parametrize(
    ("case", "most", "used", "request_", "expected"),
    [
        ("room", {"cpu": 3}, {"cpu": 1}, {"cpu": 1}, None),
        ("exactly", {"cpu": 2}, {"cpu": 1}, {"cpu": 1}, None),
        ("a millicore too many", {"cpu": 2}, {"cpu": 1}, {"cpu": 1.001}, MAX_CPU),
        ("nothing used yet", {"cpu": 2}, {}, {"cpu": 3}, MAX_CPU),
        ("absent from max is unlimited", {"memory": 1}, {"cpu": 1000}, {"cpu": 1000}, None),
        ("no max at all", {}, {"cpu": 1000}, {"cpu": 1000}, None),
        ("a max of zero", {"cpu": 0}, {}, {"cpu": 0.001}, MAX_CPU),
        ("over max in what is not asked for", {"gpu": 1}, {"gpu": 5}, {"cpu": 1}, None),
        ("over max in what is asked for", {"cpu": 1}, {"cpu": 5}, {"cpu": 1}, MAX_CPU),
        ("best effort", {"cpu": 1}, {"cpu": 5}, {"cpu": 0}, None),
        ("pods are counted", {"pods": 1}, {"cpu": 1}, {"cpu": 1}, "ElasticQuota max exceeded: pods"),
        ("all that is exceeded, sorted", {"gpu": 1, "cpu": 1}, {}, {"gpu": 2, "cpu": 2}, f"{MAX_CPU}, gpu"),
    ],
)
def test_used_and_request_stay_within_max(case, most, used, request_, expected):
    asking = {name: value for name, value in request_.items() if value} or {"memory": 0}
    ledger = ledger_of({"a": ({}, most)}, {"a": used} if used else None)
    assert answer(ledger, request=asking) == expected, case


@pytest.mark.parametrize(
    ("case", "quotas", "used", "request_", "expected", "strictly"),
    [
        ("within min", {"a": 2, "b": 2}, {"a": 1, "b": 2}, {"cpu": 1}, None, None),
        ("others use less", {"a": 2, "b": 2}, {"a": 2, "b": 1}, {"cpu": 1}, None, None),
        ("others use all", {"a": 2, "b": 2}, {"a": 2, "b": 2}, {"cpu": 1}, BORROWING_CPU, BORROWING_CPU),
        ("others borrow all, within min", {"a": 2, "b": 2}, {"a": 1, "b": 3}, {"cpu": 1}, None, BORROWING_CPU),
        ("others borrow all, beyond min", {"a": 2, "b": 2}, {"a": 1, "b": 3}, {"cpu": 2}, BORROWING_CPU, BORROWING_CPU),
        ("no own min", {"b": 2}, {"b": 1}, {"cpu": 1}, None, None),
        ("no own min, nothing left", {"b": 2}, {"b": 1}, {"cpu": 2}, BORROWING_CPU, BORROWING_CPU),
        ("nobody names it", {"a": 0, "b": 0}, {"a": 9, "b": 9}, {"gpu": 9}, None, None),
        ("named, but zero", {"a": 0, "b": 0}, {}, {"cpu": 1}, BORROWING_CPU, BORROWING_CPU),
        ("not asked for", {"a": 2, "b": 2}, {"a": 9, "b": 9}, {"gpu": 1}, None, None),
    ],
)
def test_beyond_min_a_pod_borrows_what_is_left_of_the_sum_of_min(case, quotas, used, request_, expected, strictly):
    limits = {"a": ({}, {})} | {namespace: ({"cpu": least}, {}) for namespace, least in quotas.items()}
    ledger = ledger_of(limits, {namespace: {"cpu": value} for namespace, value in used.items()})
    assert answer(ledger, request=request_) == expected, case
    assert answer(ledger, request=request_, strict=True) == strictly, case


@pytest.mark.parametrize(
    ("case", "least", "used", "request_", "expected"),
    [
        ("within min", {"cpu": 2}, {"cpu": 1}, {"cpu": 1, "gpu": 1}, None),
        ("within a min of two", {"cpu": 2, "memory": 2}, {}, {"cpu": 1, "memory": 1, "gpu": 1}, None),
        ("beyond min", {"cpu": 2}, {"cpu": 2}, {"cpu": 1, "gpu": 1}, f"{BORROWING_CPU}, gpu"),
        (
            "beyond one of two",
            {"cpu": 2, "memory": 0},
            {},
            {"cpu": 1, "memory": 1, "gpu": 1},
            f"{EXHAUSTED}: gpu, memory",
        ),
        ("nothing that min names", {"cpu": 2}, {}, {"gpu": 1}, f"{EXHAUSTED}: gpu"),
        ("none of what min names", {"cpu": 2}, {}, {"cpu": 0, "gpu": 1}, f"{EXHAUSTED}: gpu"),
        ("no min", {}, {}, {"cpu": 1, "gpu": 1}, f"{BORROWING_CPU}, gpu"),
        ("named, but zero", {"cpu": 2, "gpu": 0}, {}, {"cpu": 1, "gpu": 1}, f"{EXHAUSTED}: gpu"),
    ],
)
def test_what_is_guaranteed_is_not_refused_for_what_only_others_name(case, least, used, request_, expected):
    quotas = {"a": (least, {}), "b": ({"cpu": 1, "gpu": 2}, {})}
    ledger = ledger_of(quotas, {"a": used, "b": {"cpu": 9, "gpu": 2, "memory": 9}})
    assert answer(ledger, request=request_) == expected, case
    refused = answer(ledger, request=request_, strict=True)
    assert refused is not None, case
    assert refused.startswith(EXHAUSTED), case


def test_one_that_may_not_be_evicted_borrows_nothing_that_only_others_name():
    ledger = ledger_of({"a": ({"cpu": 2}, {}), "b": ({"gpu": 2}, {})})
    assert answer(ledger, request={"cpu": 1, "gpu": 1}) is None
    assert answer(ledger, request={"cpu": 1, "gpu": 1}, preemptible=False) == f"{EXHAUSTED}: gpu"


def test_a_namespace_without_a_quota_is_free_and_uses_nothing_of_the_pool():
    ledger = ledger_of({"a": ({"cpu": 2}, {"cpu": 2})}, {"free": {"cpu": 100}})
    assert answer(ledger, namespace="free", request={"cpu": 100}) is None
    assert answer(ledger, request={"cpu": 2}, strict=True) is None


@pytest.mark.parametrize(("request_", "expected"), [({"cpu": 1}, None), ({"cpu": 2}, BORROWING_CPU)])
def test_what_may_not_be_evicted_may_not_borrow(request_, expected):
    quotas = {"a": ({"cpu": 2}, {}), "b": ({"cpu": 10}, {})}
    ledger = ledger_of(quotas, {"a": {"cpu": 5}}, ("granted", pod("pinned", preemptible=False)))
    assert answer(ledger, request=request_) is None
    assert answer(ledger, request=request_, preemptible=False) == expected


def test_what_may_not_be_evicted_is_free_where_no_min_names_a_resource():
    ledger = ledger_of({"a": ({"cpu": 2}, {})})
    assert answer(ledger, request={"gpu": 5}, preemptible=False) is None


def test_max_is_checked_before_borrowing():
    ledger = ledger_of({"a": ({"cpu": 1}, {"cpu": 2})}, {"a": {"cpu": 1}})
    assert answer(ledger, request={"cpu": 2}) == MAX_CPU
    assert answer(ledger, request={"cpu": 1}) == BORROWING_CPU


def test_a_min_over_max_counts_as_max():
    over = quota(least={"cpu": 5, "memory": 1}, most={"cpu": 2})
    assert over.min == amounts(cpu=2, memory=1)
    assert over.min_over_max == ("cpu",)
    assert ledger_of({"a": ({"cpu": 5}, {"cpu": 2})}).pool.min == amounts(cpu=2)


def test_a_quota_that_could_never_be_read_refuses_everything():
    ledger = Ledger()
    ledger.set_quota("a", unreadable())
    assert refusal(ledger, pod("p"), "", Rules()) == Refusal("elastic-quota-invalid", "ElasticQuota is invalid")
    assert answer(ledger, namespace="b") is None


@pytest.mark.parametrize(("priority", "expected"), [(0, MAX_CPU), (5, MAX_CPU), (6, None)])
def test_a_nominated_pod_of_the_same_quota_goes_before_equal_and_lower_priority(priority, expected):
    ledger = ledger_of({"a": ({}, {"cpu": 2})}, None, ("nominated", pod("first", priority=5, request={"cpu": 2})))
    assert answer(ledger, priority=priority) == expected


@pytest.mark.parametrize(("used_by_b", "expected"), [(1, BORROWING_CPU), (2, BORROWING_CPU), (2.001, None)])
def test_a_nominated_pod_of_another_quota_goes_first_while_that_is_within_min(used_by_b, expected):
    waiting = ("nominated", pod("first", "b", request={"cpu": 6}))
    ledger = ledger_of(
        {"a": ({}, {}), "b": ({"cpu": 2}, {}), "c": ({"cpu": 6}, {})}, {"b": {"cpu": used_by_b}}, waiting
    )
    assert answer(ledger, priority=9, request={"cpu": 1.5}) == expected


@pytest.mark.parametrize(("namespace", "expected"), [("a", MAX_CPU), ("b", BORROWING_CPU), ("free", None)])
def test_what_may_be_in_flight_counts_only_where_it_is_asked_for(namespace, expected):
    quotas = {"a": ({}, {"cpu": 2}), "b": ({}, {}), "c": ({"cpu": 2}, {})}
    ledger = ledger_of(quotas, None, ("in_flight", pod("p", request={"cpu": 2})))
    asking = pod("q", namespace)
    assert message(refusal(ledger, asking, "", Rules())) is None
    assert message(refusal(ledger, asking, "", Rules(), with_in_flight=True)) == expected


def test_what_may_be_in_flight_and_may_not_be_evicted_counts_against_its_like():
    pinned = pod("p", preemptible=False, request={"cpu": 2})
    ledger = ledger_of({"a": ({"cpu": 2}, {}), "b": ({"cpu": 10}, {})}, None, ("in_flight", pinned))
    asking = pod("q", preemptible=False)
    assert message(refusal(ledger, asking, "", Rules())) is None
    assert message(refusal(ledger, asking, "", Rules(), with_in_flight=True)) == BORROWING_CPU


class TestStoryOne:
    """QuotaA (min 4, max 6) and QuotaB (min 6, max 8) of ten GPUs."""

    quotas = {"a": ({"gpu": 4}, {"gpu": 6}), "b": ({"gpu": 6}, {"gpu": 8})}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("a", "b", "asking", "gpus", "expected"),
        [
            (2, 3, "a", 2, None),
            (4, 3, "a", 2, None),
            (4, 3, "a", 3, "ElasticQuota max exceeded: gpu"),
            (6, 3, "a", 1, "ElasticQuota max exceeded: gpu"),
            (6, 3, "b", 3, None),
            (4, 6, "b", 1, "ElasticQuota borrowing exhausted: gpu"),
            (4, 6, "b", 2, "ElasticQuota borrowing exhausted: gpu"),
            (4, 6, "a", 1, "ElasticQuota borrowing exhausted: gpu"),
        ],
    )
    def test_each_step(self, a, b, asking, gpus, expected):
        ledger = ledger_of(self.quotas, {"a": {"gpu": a}, "b": {"gpu": b}})
        assert answer(ledger, namespace=asking, request={"gpu": gpus}) == expected

    def test_to_the_letter_the_owner_waits_for_what_is_borrowed(self):
        ledger = ledger_of(self.quotas, {"a": {"gpu": 6}, "b": {"gpu": 3}})
        refused = answer(ledger, namespace="b", request={"gpu": 3}, strict=True)
        assert refused == "ElasticQuota borrowing exhausted: gpu"
        assert answer(ledger, namespace="b", request={"gpu": 1}, strict=True) is None


class TestStoryTwo:
    """QuotaA (min 3, max 4), QuotaB (min 4, max 6) and QuotaC (min 3, max 4) of ten GPUs."""

    quotas = {"a": ({"gpu": 3}, {"gpu": 4}), "b": ({"gpu": 4}, {"gpu": 6}), "c": ({"gpu": 3}, {"gpu": 4})}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("used", "asking", "expected"),
        [
            ((2, 2, 3), "a", None),
            ((4, 3, 3), "a", "ElasticQuota max exceeded: gpu"),
            ((4, 3, 3), "b", None),
            ((2, 5, 3), "b", "ElasticQuota borrowing exhausted: gpu"),
            ((2, 5, 3), "a", None),
        ],
    )
    def test_each_step(self, used, asking, expected):
        ledger = ledger_of(self.quotas, {name: {"gpu": gpus} for name, gpus in zip("abc", used, strict=True)})
        assert answer(ledger, namespace=asking, request={"gpu": 1}) == expected


def test_the_oldest_quota_is_in_force_and_then_the_first_by_name():
    young, old, old_too = quota(name="a", created=2), quota(name="c", created=1), quota(name="b", created=1)
    assert in_force([young, old, old_too]) is old_too
    assert in_force([young, old]) is old
    assert in_force([]) is None


def test_conditions_say_what_is_wrong_with_a_quota():
    good, over, bad = (
        quota(name="a"),
        quota(name="b", least={"cpu": 2, "gpu": 3}, most={"gpu": 1}),
        unreadable(name="c"),
    )
    assert conditions(good, good) == []
    assert [(each.type, each.reason) for each in conditions(over, over)] == [("Invalid", "MinExceedsMax")]
    assert "gpu" in conditions(over, over)[0].message
    assert "cpu" not in conditions(over, over)[0].message
    assert [(each.type, each.reason) for each in conditions(bad, good)] == [
        ("Invalid", "Unreadable"),
        ("Conflict", "OlderQuotaInForce"),
    ]
    assert "spec.max.cpu" in conditions(bad, good)[0].message


@pytest.mark.parametrize(
    ("text", "rule"),
    [(refused_for(rule).message, rule) for rule in (MAX, BORROWING, INVALID)]
    + [("", None), ("0/3 nodes are available: 3 Insufficient cpu.", None)],
)
def test_a_condition_tells_which_rule_refused_the_pod(text, rule):
    assert named_in(text) == rule


def test_the_numbers_are_those_that_the_rules_compare():
    ledger = ledger_of(
        {"a": ({"cpu": 1}, {"cpu": 5}), "b": ({"cpu": 4, "gpu": 1}, {})},
        {"a": {"cpu": 1}, "b": {"cpu": 1}},
        ("nominated", pod("first", "a", priority=5)),
    )
    assert numbers(ledger, pod("p", request={"cpu": 2, "memory": 3})) == {
        "cpu": amounts()
        | {"request": 2000, "used": 1000, "ahead": 1000, "min": 1000, "max": 5000}
        | {"poolUsed": 2000, "poolAhead": 1000, "poolMin": 5000, "claimedByOthers": 0},
    }
    assert numbers(ledger, pod("p", "b", request={"gpu": 1})) == {
        "gpu": {"request": 1, "used": 0, "ahead": 0, "min": 1}
        | {"poolUsed": 0, "poolAhead": 0, "poolMin": 1, "claimedByOthers": 0},
    }
    assert numbers(ledger, pod("p", "free")) == {}


@pytest.mark.parametrize(
    ("case", "limits", "used", "request_", "texts"),
    [
        (
            "max",
            ({}, {"cpu": 2}),
            {"a": {"cpu": 1.5}},
            {"cpu": 1},
            [
                "raise max of cpu in ElasticQuota a/quota from 2 to at least 2500m",
                "wait until pods in namespace a release 500m of cpu",
            ],
        ),
        (
            "larger than max",
            ({}, {"memory": 2**30}),
            {},
            {"memory": 2**31},
            ["raise max of memory in ElasticQuota a/quota from 1Gi to at least 2Gi"],
        ),
        (
            "borrowing",
            ({"cpu": 2}, {}),
            {"a": {"cpu": 1}, "b": {"cpu": 6}},
            {"cpu": 2},
            [
                "raise min of cpu in ElasticQuota a/quota from 2 to at least 3",
                "wait until 2 of cpu is released under any elastic quota (borrowing now: b)",
            ],
        ),
    ],
)
def test_hints_say_what_would_help(case, limits, used, request_, texts):
    ledger = ledger_of({"a": limits, "b": ({"cpu": 5}, {})}, used)
    asking = pod("p", request=request_)
    refused = refusal(ledger, asking, "", Rules())
    assert [hint.text for hint in hints(ledger, asking, refused, asking.request)] == texts, case


def test_a_remedy_names_the_field_to_change():
    ledger = ledger_of({"a": ({}, {"cpu": 2})})
    asking = pod("p", request={"cpu": 3})
    hint, *_ = hints(ledger, asking, refusal(ledger, asking, "", Rules()), asking.request)
    assert (hint.target, hint.path, hint.value) == ("ElasticQuota a/quota", "spec.max.cpu", "3")


def test_the_remedy_for_an_unreadable_quota_is_to_correct_it():
    ledger = Ledger()
    ledger.set_quota("a", unreadable())
    (hint,) = hints(ledger, pod("p"), refusal(ledger, pod("p"), "", Rules()), pod("p").request)
    assert hint.text == "correct ElasticQuota a/quota: spec.max.cpu: is not a quantity"


def test_a_pod_that_opted_out_of_eviction_is_told_so():
    ledger = ledger_of({"a": ({"cpu": 1}, {}), "b": ({"cpu": 5}, {})})
    asking = pod("p", preemptible=False, request={"cpu": 2})
    found = hints(ledger, asking, refusal(ledger, asking, "", Rules()), asking.request)
    assert 'quotaward.dev/preemptible: "false"' in found[-1].text
    assert found[-1].target == "Pod a/p"
