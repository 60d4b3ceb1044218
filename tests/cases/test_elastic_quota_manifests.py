"""What the words of a case cannot say of elastic quotas: whole manifests, and texts word for word."""

import time
from datetime import UTC, datetime

import pytest

from tests.cases.expectations import difference
from tests.cases.manifests import translate
from tests.cases.runner import ANSWER_SECONDS, POLL_SECONDS, extender_arguments

NODES = {"n1": {"cpu": 64, "memory": "256Gi", "nvidia.com/gpu": 8}}


def quota(name, created, **spec):
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"namespace": "a", "name": name, "uid": f"quota-{name}", "creationTimestamp": created},
        "spec": spec,
    }


def pod(name, *, containers=(), **spec):
    """A pending pod of namespace ``a`` with the spec as it is given; containers as their requests."""
    made = translate({"pods": [{"name": name, "ns": "a"}]}, datetime.now(UTC), namespaces=["a"])[0]
    made["spec"] |= spec | {"containers": [container(requests) for requests in containers]}
    return made


def container(requests, **fields):
    return {"name": "c", "image": "img", "resources": {"requests": requests}, **fields}


class Serving:
    """A server and the folder that it watches."""

    def __init__(self, server, folder):
        self.server, self.folder = server, folder

    def filter(self, name):
        return self.server.ask("filter", extender_arguments("filter", {"pod": f"a/{name}"}, self.folder)[0]).json

    def passes(self, name):
        return self.filter(name).get("NodeNames") == ["n1"]

    def shows(self, path, expected):
        """Waits until the answer of a REST path has what is expected; None, or what it lacks to the end."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while (wrong := difference(expected, self.server.get(path).json_or_text)) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return wrong


@pytest.fixture
def serve(servers):
    def anew(*manifests, **given):
        return Serving(*servers.serving_anew({"nodes": NODES, "namespaces": {"a": {}}, **given}, manifests))

    return anew


def test_of_two_quotas_in_a_namespace_the_oldest_is_in_force(serve):
    it = serve(
        quota("aaa", "2026-03-01T12:00:00Z", max={"cpu": "1"}),
        quota("zzz", "2026-02-01T12:00:00Z", max={"cpu": "4"}),
        pod("next", containers=[{"cpu": "3"}]),
        pod("more", containers=[{"cpu": "2"}]),
    )
    assert it.passes("next")  # the 4 of zzz, neither the 1 of aaa
    assert not it.passes("more")  # nor the sum of both


def test_of_two_quotas_as_old_as_each_other_the_first_by_name_is_in_force(serve):
    it = serve(
        quota("zzz", "2026-03-01T12:00:00Z", max={"cpu": "4"}),
        quota("aaa", "2026-03-01T12:00:00Z", max={"cpu": "1"}),
        pod("next", containers=[{"cpu": "3"}]),
    )
    assert not it.passes("next")


def test_the_other_quota_takes_over_when_the_oldest_is_gone(serve):
    it = serve(
        quota("old", "2026-02-01T12:00:00Z", max={"cpu": "1"}),
        quota("new", "2026-03-01T12:00:00Z", max={"cpu": "4"}),
        pod("next", containers=[{"cpu": "3"}]),
    )
    assert not it.passes("next")
    it.folder.delete("ElasticQuota", "a/old")
    assert it.shows("/api/v1/pods/a/next", {"verdict": "admissible"}) is None
    assert it.passes("next")


def test_only_the_quota_in_force_lends(serve):
    it = serve(
        quota("old", "2026-02-01T12:00:00Z", min={"cpu": "1"}, max={"cpu": "8"}),
        quota("new", "2026-03-01T12:00:00Z", min={"cpu": "4"}, max={"cpu": "8"}),
        pod("next", containers=[{"cpu": "2"}]),
    )
    assert not it.passes("next")  # a pool of 1, not of 5


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [{"cpu": "1"}, {"cpu": "2"}]}, 3),
        ({"containers": [{"cpu": "1"}], "initContainers": [container({"cpu": "4"})]}, 4),
        ({"containers": [{"cpu": "3"}], "initContainers": [container({"cpu": "2"}), container({"cpu": "2"})]}, 3),
        ({"containers": [{"cpu": "3"}], "initContainers": [container({"cpu": "2"}, restartPolicy="Always")]}, 5),
        (  # the second stage runs beside the sidecar that was started before it
            {
                "containers": [{"cpu": "1"}],
                "initContainers": [container({"cpu": "2"}, restartPolicy="Always"), container({"cpu": "4"})],
            },
            6,
        ),
        (  # the first stage does not
            {
                "containers": [{"cpu": "1"}],
                "initContainers": [container({"cpu": "4"}), container({"cpu": "2"}, restartPolicy="Always")],
            },
            4,
        ),
        ({"containers": [{"cpu": "1"}], "overhead": {"cpu": "2"}}, 3),
        ({"containers": [{"cpu": "1"}], "resources": {"requests": {"cpu": "5"}}}, 5),
        ({"containers": [{"cpu": "3"}], "resources": {"requests": {"memory": "1Gi"}}}, 3),
    ],
    ids=[
        "the sum of containers",
        "an init container that is larger",
        "init containers that are smaller",
        "a sidecar beside the containers",
        "an init container beside a sidecar",
        "an init container before a sidecar",
        "overhead",
        "requests of the pod as a whole",
        "requests of the pod for something else",
    ],
)
def test_a_pod_requests_what_kube_scheduler_thinks_it_requests(serve, spec, cpu):
    enough = {"cpu": str(cpu)}
    it = serve(quota("q", "2026-03-01T12:00:00Z", min=enough, max=enough), pod("next", **spec))
    assert it.passes("next")
    it.folder.put([quota("q", "2026-03-01T12:00:00Z", min=enough, max={"cpu": f"{cpu * 1000 - 1}m"})])
    assert it.shows("/api/v1/elasticquotas", {"items": {"a": {"max": {"cpu": f"{cpu * 1000 - 1}m"}}}}) is None
    assert not it.passes("next")


def test_a_refusal_names_what_is_exceeded_sorted_and_nothing_else(serve):
    spec = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    it = serve(
        quota("q", "2026-03-01T12:00:00Z", min=spec, max=spec),
        pod("next", containers=[{"nvidia.com/gpu": "2", "cpu": "2", "memory": "1Gi"}]),
        pod("other", containers=[{"memory": "3Gi"}]),
    )
    text = "ElasticQuota max exceeded: cpu, nvidia.com/gpu"
    assert it.filter("next")["FailedAndUnresolvableNodes"] == {"n1": text}
    assert it.filter("other")["FailedAndUnresolvableNodes"] == {"n1": "ElasticQuota max exceeded: memory"}


def test_a_borrower_is_told_what_is_exhausted(serve):
    it = serve(
        quota("q", "2026-03-01T12:00:00Z", min={"cpu": "1", "memory": "1Gi"}),
        pod("next", containers=[{"cpu": "1", "memory": "2Gi"}]),
    )
    text = "ElasticQuota borrowing exhausted: memory"
    assert it.filter("next")["FailedAndUnresolvableNodes"] == {"n1": text}


def test_quotas_are_shown_with_their_namespace_and_name(serve):
    it = serve(quota("q", "2026-03-01T12:00:00Z", min={"cpu": "1500m"}, max={"memory": "9Gi"}))
    shown = {"namespace": "a", "name": "q", "min": {"cpu": "1500m"}, "max": {"memory": "9Gi"}}
    assert it.shows("/api/v1/elasticquotas/a", {"items": [shown]}) is None
    assert it.server.get("/api/v1/elasticquotas/a").json["items"][0]["min"] == {"cpu": "1500m"}  # as a quantity string
