"""The metrics page: Prometheus can read it, and its labels are bounded."""

import asyncio
from itertools import pairwise

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.job_kinds import SHIPPED
from app.observability.quota_metrics import SLICE, quota_lines
from app.store.kinds import kinds_with
from policy.quota.rules import BY_NAME
from tests.unit.app.given import client_of, empty_store, node, pod, quota, refused, see, store_with
from tests.unit.app.neighbour import neighbour

BOUNDED = {
    "verb": {"filter", "prioritize", "preempt", "bind"},
    "kind": {*(kind.label for kind in kinds_with(SHIPPED)), "TokenReview", "SubjectAccessReview"},
    "rule": {*BY_NAME, "no-room", "other", "untried"},
}


def page(*items):
    answer = client_of(store_with(*items)).get("/metrics")
    assert answer.status_code == 200
    return answer


def samples(*items):
    return samples_of(store_with(*items))


def samples_of(store):
    families = text_string_to_metric_families(client_of(store).get("/metrics").text)
    return [sample for family in families for sample in family.samples]


def value(found, name, **labels):
    [sample] = [each for each in found if each.name == name and each.labels == labels]
    return sample.value


def test_figures_of_a_quota_are_in_base_units():
    running = pod("p", requests={"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": 1}, nodeName="n1")
    found = samples(quota("a", min={"cpu": "250m"}, max={"cpu": 4, "memory": "2Gi"}), running)
    prefix = "quotaward_elastic_quota_"
    assert value(found, f"{prefix}used", namespace="a", resource="cpu") == 1.5
    assert value(found, f"{prefix}used", namespace="a", resource="memory") == 2**30
    assert value(found, f"{prefix}min", namespace="a", resource="cpu") == 0.25
    assert value(found, f"{prefix}max", namespace="a", resource="cpu") == 4
    labels = [each.labels["resource"] for each in found if each.name.startswith(prefix)]
    assert set(labels) == {"cpu", "memory"}  # what no bound names is no figure of the quota


def test_what_a_quota_does_not_bound_has_no_series():
    found = samples(quota("a", max={"cpu": 1}))
    assert not [each for each in found if each.name == "quotaward_elastic_quota_min"]


def test_of_two_quotas_only_the_one_in_force_is_shown():
    found = samples(quota("a", "x", max={"cpu": 1}), quota("a", "y", max={"cpu": 2}))
    assert value(found, "quotaward_elastic_quota_max", namespace="a", resource="cpu") == 1


def test_pending_pods_are_shown_by_the_rule_that_last_refused_them():
    borrowing = "0/1 nodes are available: 1 ElasticQuota borrowing exhausted: cpu."
    held = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) held for a pod that is being given room."
    waiting = [refused(pod("w1")), refused(pod("w2", "b")), refused(pod("w3"), borrowing), refused(pod("w4"), held)]
    waiting += [refused(pod("w5"), "0/1 nodes are available: 1 Queue is closed.")]
    waiting += [pod("never tried"), refused(pod("large"), "0/1 nodes are available: 1 Insufficient cpu.")]
    waiting += [refused(pod("elsewhere"), "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity.")]
    waiting += [pod("gated", schedulingGates=[{"name": "x"}])]
    waiting += [pod("at its gate", schedulingGates=[{"name": "quotaward.dev/quota"}])]
    store = store_with(quota("a", max={"cpu": 0}), *waiting)

    def pending():
        families = text_string_to_metric_families(client_of(store).get("/metrics").text)
        found = [each for family in families for each in family.samples if each.name == "quotaward_pending_pods"]
        return {each.labels["rule"]: each.value for each in found}

    nobody = dict.fromkeys(BOUNDED["rule"], 0)
    everybody = nobody | {"elastic-quota-max": 2, "elastic-quota-borrowing": 1, "queue-closed": 1, "node-held": 1}
    everybody |= {"no-room": 1, "other": 1, "untried": 1}
    assert pending() == everybody
    see(store, pod("w1", nodeName="n1"), refused(pod("w4"), borrowing))
    assert pending() == everybody | {"elastic-quota-max": 1, "elastic-quota-borrowing": 2, "node-held": 0}


def test_what_all_nodes_have_and_what_pods_on_them_request_is_shown_in_base_units():
    store = store_with(node("n1", cpu=4, memory="8Gi"), node("n2", cpu=2, gpu=1), pod("p", nodeName="n1"))
    found = samples_of(store)
    assert value(found, "quotaward_cluster_allocatable", resource="cpu") == 6
    assert value(found, "quotaward_cluster_allocatable", resource="memory") == 8 * 2**30
    assert value(found, "quotaward_cluster_allocatable", resource="gpu") == 1
    assert value(found, "quotaward_cluster_requested", resource="cpu") == 1
    assert value(found, "quotaward_cluster_requested", resource="gpu") == 0


def test_the_store_is_shown():
    found = samples(node("n1"), node("n2"), pod("p"), quota("a"), quota("b"))
    assert value(found, "quotaward_store_objects", kind="nodes") == 2
    assert value(found, "quotaward_store_objects", kind="pods") == 1
    assert value(found, "quotaward_store_objects", kind="elasticquotas") == 2
    assert value(found, "quotaward_store_synced") == 1
    assert value(found, "quotaward_watch_lag_seconds", kind="pods") == 0


def test_there_are_metrics_before_anything_is_known():
    families = text_string_to_metric_families(client_of(empty_store()).get("/metrics").text)
    found = [sample for family in families for sample in family.samples]
    assert value(found, "quotaward_store_synced") == 0


def test_every_metric_of_ours_has_its_prefix_a_help_text_and_no_name_of_a_pod():
    store = store_with(node("n1"), quota("a", max={"cpu": 1}), pod("pod-secret"), refused(pod("pod-other")))
    client = client_of(store)
    for name in ("pod-secret", "pod-other", "pod-secret"):
        client.ask("filter", {"Pod": pod(name), "NodeNames": ["n1"]})
        client.ask("prioritize", {"Pod": pod(name), "NodeNames": ["n1"]})
        client.ask("preempt", {"Pod": pod(name), "NodeNameToMetaVictims": {}})
        client.ask("bind", {"PodName": name, "PodNamespace": "a", "PodUID": f"a/{name}", "Node": "n1"})
    text = client.get("/metrics").text
    assert "pod-" not in text
    ours = [each for each in text_string_to_metric_families(text) if not each.name.startswith(("python_", "process_"))]
    assert all(family.name.startswith("quotaward_") and family.documentation for family in ours)
    for sample in (sample for family in ours for sample in family.samples):
        for label, known in BOUNDED.items():
            assert sample.labels.get(label, next(iter(known))) in known


def test_a_series_is_there_once():
    found = samples(*(quota(f"ns-{number}", max={"cpu": 1}) for number in range(3)))
    keys = [(each.name, tuple(sorted(each.labels.items()))) for each in found]
    assert len(set(keys)) == len(keys)


def test_prometheus_is_told_the_format():
    assert page().headers["content-type"].startswith("text/plain; version=")


@pytest.mark.parametrize("resource", ['x"} 1\nquotaward_elastic_quota_max{namespace="a', 'quoted"', "line\nfeed"])
def test_a_resource_of_any_name_leaves_the_page_readable(resource):
    found = samples(quota("a", max={resource: 1, "cpu": 2}))
    assert value(found, "quotaward_elastic_quota_max", namespace="a", resource=resource) == 1
    assert value(found, "quotaward_elastic_quota_max", namespace="a", resource="cpu") == 2


def test_the_figures_are_written_in_slices_between_which_the_loop_answers():
    ledger = store_with(*(quota(f"ns-{number:03}", max={"cpu": 1}) for number in range(4 * SLICE))).cluster.ledger

    async def turns():
        async with neighbour() as turns:
            await quota_lines(ledger)
        return len(turns)

    assert asyncio.run(turns()) >= 4


def test_quotas_are_sorted_by_namespace():
    found = samples(*(quota(name, max={"cpu": 1}) for name in ("c", "a", "b")))
    order = [each.labels["namespace"] for each in found if each.name == "quotaward_elastic_quota_max"]
    assert all(earlier < later for earlier, later in pairwise(order))
