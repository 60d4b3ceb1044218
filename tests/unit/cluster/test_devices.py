"""Devices by DRA: what counts for a pod by its claims, and that nothing of it is left."""

from dataclasses import replace

import pytest

from policy.objects.device import MOST_CLAIMS
from policy.objects.membership import Namespace
from policy.objects.node import Node
from policy.objects.queued_job import PodSet, QueuedJob
from policy.stepwise import at_once
from tests.unit.app.lines import lines_once
from tests.unit.cluster.test_queued_jobs import its_pod, started
from tests.unit.given import quota
from tests.unit.given_devices import (
    FULL,
    GPU,
    PLAIN,
    answer,
    asking,
    claim,
    of_template,
    pod,
    see,
    used,
    with_devices,
)

# Claims


def test_a_claim_of_a_template_counts_with_its_pod_before_and_after_it_is_made():
    cluster = with_devices(quota(most={GPU: 3}))
    cluster.devices.upsert_template("a", "two", asking(gpu=2))
    assert answer(cluster, pod("p", "a", of_template("two"))) == ""
    assert used(cluster) == 2
    see(cluster, claim("p-gpu", gpu=2), pod("p", "a", of_template("two", "p-gpu"), node="n"))
    assert used(cluster) == 2
    see(cluster, claim("q-gpu", gpu=2))
    assert answer(cluster, pod("q", "a", of_template("two", "q-gpu"))) == FULL
    cluster.delete_pod("p")
    assert used(cluster) == 0
    assert answer(cluster, pod("q", "a", of_template("two", "q-gpu"))) == ""


def test_a_template_that_comes_late_counts_for_pods_that_wait_for_it():
    cluster = with_devices(pod("p", "a", of_template("two"), node="n"))
    assert used(cluster) == 0
    cluster.devices.upsert_template("a", "two", asking(gpu=2))
    at_once(cluster.devices.renew_steps())
    assert used(cluster) == 2


def test_what_is_allocated_counts_instead_of_what_was_asked():
    cluster = with_devices(claim("c", gpu=4), pod("p", "a", "c", node="n"))
    see(cluster, claim("c", gpu=4, has={"gpu": 1, "plain": 2}))
    assert (used(cluster), used(cluster, PLAIN)) == (1, 2)
    see(cluster, claim("c", gpu=4))
    assert (used(cluster), used(cluster, PLAIN)) == (4, 0)


def test_a_pod_with_many_claims_charges_each_pod_that_shares_them_once(monkeypatch):
    names = [f"c{number}" for number in range(50)]
    cluster = with_devices(*(claim(name, gpu=1) for name in names), *(pod(uid, "a", *names) for uid in "qr"))
    charged = []
    charge = cluster.devices._charge_again
    monkeypatch.setattr(cluster.devices, "_charge_again", lambda uid: (charged.append(uid), charge(uid)))
    for uid in "pqr":
        assert answer(cluster, pod(uid, "a", *names)) == ""
    cluster.withdraw("p")
    cluster.delete_pod("q")
    assert used(cluster) == 50
    assert len(charged) < 30, "the work grows with the pods that share claims, not with their number of claims"


def test_a_pod_that_shares_as_many_claims_as_are_counted_costs_few_steps():
    names = [f"c{number}" for number in range(MOST_CLAIMS)]
    cluster = with_devices(*(claim(name, gpu=1) for name in names))
    for number, name in enumerate(names):
        others = (f"{name}-{each}" for each in range(MOST_CLAIMS - 1))
        see(cluster, pod(f"payer-{number}", "a", name, *others, node="n1"))
    for number in range(MOST_CLAIMS):  # these come to share everything
        sharing = pod(f"p{number}", "a", *names, node="n1")
        assert lines_once(cluster.upsert_pod, sharing, 0) < 9_000
    assert used(cluster) == MOST_CLAIMS
    assert lines_once(cluster.delete_pod, "p0") < 9_000


def test_a_pod_that_was_granted_before_it_was_seen_counts_with_its_claim():
    cluster = with_devices(claim("c", gpu=2))
    cluster.admit(pod("p", "a", "c"), now=0)
    assert used(cluster) == 2
    see(cluster, claim("c", gpu=3))
    assert used(cluster) == 3
    cluster.withdraw("p")
    assert (used(cluster), cluster.devices._payers._users) == (0, {})


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "not seen yet"])
@pytest.mark.parametrize(("devices", "left"), [(2, 2), (3, 0)], ids=["admitted", "not admitted"])
def test_a_grant_that_grows_by_a_late_template_ends_unless_the_rules_admit_it(seen, devices, left):
    cluster, waits = with_devices(quota(most={GPU: 2})), pod("p", "a", of_template("late"), of_template("never"))
    see(cluster, *([waits] if seen else []))
    cluster.grant(waits, now=0)
    cluster.devices.upsert_template("a", "late", asking(gpu=devices))
    at_once(cluster.devices.renew_steps())
    assert (used(cluster), len(cluster.grants)) == (left, left > 0)


def test_a_pod_that_takes_over_what_others_shared_keeps_its_grant():
    cluster = with_devices(quota(most={GPU: 2}), claim("c", gpu=2))
    for uid in "pq":
        see(cluster, pod(uid, "a", "c"))
        assert answer(cluster, pod(uid, "a", "c")) == ""
    see(cluster, pod("p", "a", version=1))
    assert (used(cluster), "q" in cluster.grants) == (2, True)


def test_a_pod_that_was_granted_before_its_claims_were_known_gives_them_back():
    cluster = with_devices(claim("c", gpu=2))
    cluster.admit(replace(pod("p"), needs=None), now=0)
    see(cluster, pod("p", "a", "c"))
    assert used(cluster) == 2
    cluster.withdraw("p")
    assert (used(cluster), cluster.devices._payers._holders) == (0, {})


def test_a_pod_that_has_ended_holds_no_claim():
    cluster = with_devices(claim("c", gpu=2), pod("p", "a", "c", node="n"))
    see(cluster, pod("p", "a", "c", node="n", finished=True))
    assert used(cluster) == 0


def test_nothing_is_kept_of_pods_and_claims_that_are_gone():
    cluster = with_devices(claim("c", gpu=2), pod("p", "a", "c", of_template("t")), pod("q", "a", "c", node="n"))
    for uid in "pq":
        cluster.delete_pod(uid)
    cluster.devices.delete_claim("a", "c")
    devices = cluster.devices
    kept = (devices.claims, devices._of_pods, devices._of_templates, *vars(devices._payers).values())
    assert not any(kept)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        (("known",), ""),
        (("missing",), "its resource claims are not seen yet"),
        ((of_template("t"),), "its resource claims are not seen yet"),
    ],
)
def test_it_is_known_what_a_pod_takes_once_its_claims_are_seen(claims, why):
    cluster = with_devices(*[claim("known", gpu=1)] * (claims == ("known",)))
    asked = pod("p", "a", *claims)
    assert cluster.devices.unknown(asked) == why
    excess = replace(asked, needs=replace(asked.needs, excess=True))
    assert "more resource claims" in cluster.devices.unknown(excess)


# Jobs that wait as a whole


def train(*claims, pods=3):
    """A Job whose pods use these claims."""
    return QueuedJob("a", "train", "uid-train", (PodSet(pod("train", "a", *claims), pods),), pods, suspended=True)


def waiting(cluster, *jobs):
    cluster.upsert_namespace(Namespace("a", gated=True, queues_jobs=True))
    for each in jobs:
        cluster.queued_jobs.upsert(each, now=0)
    return cluster.pods["job/uid-train"].request.get(GPU, 0)


def test_a_job_demands_a_claim_of_each_template_for_each_pod_and_shared_ones_once():
    cluster = with_devices(claim("shared", gpu=4))
    cluster.devices.upsert_template("a", "two", asking(gpu=2))
    assert waiting(cluster, train(of_template("two"), "shared")) == 3 * 2 + 4
    cluster.devices.upsert_template("a", "two", asking(gpu=1))
    at_once(cluster.queued_jobs.renew_steps())
    assert cluster.pods["job/uid-train"].request[GPU] == 3 * 1 + 4


def test_a_job_demands_a_claim_that_comes_changes_and_goes_while_it_waits():
    cluster = with_devices()
    assert waiting(cluster, train("late")) == 0
    demanded = []
    for change in (claim("late", gpu=4), claim("late", gpu=5), None):
        if change is not None:
            cluster.devices.upsert_claim(change)
        else:
            cluster.devices.delete_claim("a", "late")
        assert cluster.queued_jobs.is_outdated(cluster.pods["job/uid-train"]), "it may not start yet"
        at_once(cluster.queued_jobs.renew_steps())
        demanded.append(cluster.pods["job/uid-train"].request.get(GPU, 0))
    assert demanded == [4, 5, 0]


def test_jobs_are_computed_anew_only_for_claims_that_they_name_now():
    cluster = with_devices()
    waiting(cluster, train("before"))
    cluster.queued_jobs.upsert(train("now"), now=0)
    cluster.devices.upsert_claim(claim("before", gpu=4))
    assert not cluster.queued_jobs.is_outdated(cluster.pods["job/uid-train"])
    cluster.queued_jobs.delete(train().key)
    assert not cluster.queued_jobs.demands._naming


def test_pod_sets_of_one_job_share_a_claim():
    cluster = with_devices(claim("shared", gpu=4))
    first = train("shared")
    assert waiting(cluster, replace(first, pod_sets=first.pod_sets * 2)) == 4


def test_a_started_job_keeps_what_its_pods_share_until_the_first_of_them_has_come():
    cluster = with_devices(quota(most={GPU: 4}), claim("shared", gpu=4))
    cluster.upsert_node(Node("n", {"cpu": 9000, "pods": 9}))
    job = train("shared")
    waiting(cluster, job)
    assert started(cluster) == ["train"]
    assert used(cluster) == 4
    for number in range(3):
        see(cluster, replace(its_pod(job, number), needs=job.pod_sets[0].pod.needs))
        assert used(cluster) == 4
