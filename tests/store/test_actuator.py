"""What is written to the real API server: bindings, and the condition that wakes a pod."""

import asyncio
import socket
from dataclasses import replace
from datetime import UTC, datetime

import aiohttp
import msgspec
import pytest
import yaml

from app.actuators import kubernetes
from app.actuators.events import Event, Series, about_pod
from app.actuators.kubernetes import KubernetesActuator
from app.actuators.protocol import ActionFailed, NoRight, Rejected, TimedOut
from app.kube.client import KubeClient
from app.store.jobs import JOBS, JobObject
from app.store.pods import PODS, pod_of
from app.store.reservations import RESERVATIONS, reservation_of
from policy.cluster.cluster import Cluster
from policy.objects.membership import Namespace
from policy.objects.reservation import PodName, Reservation
from tests.controlplane.admission import (
    a_policy_that_forbids_it,
    a_webhook_that_nobody_answers,
    in_force,
    may_not_be_changed,
)
from tests.controlplane.gates import GATE, is_gated
from tests.controlplane.objects import condition, job, pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import install_rights


@pytest.fixture
def act(kubeconfig):
    """Does something with an actuator, and waits for it."""

    def run(action):
        async def scenario():
            client = await KubeClient.connect(kubeconfig)
            try:
                actuator = KubernetesActuator(client)
                if (done := action(actuator)) is not None:
                    await done
                await actuator.finish()
            finally:
                await client.close()

        asyncio.run(scenario())

    return run


@pytest.fixture
def own_account(cluster, kubeconfig):
    """The kubeconfig is that of Quotaward's own account, with the rights that it always has."""
    install_rights(cluster.api)
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": cluster.api.service_account_token("quotaward", "quotaward-system")}
    kubeconfig.write_text(yaml.safe_dump(config))


@pytest.fixture
def created(cluster, namespace):
    cluster.node()
    return cluster.api.create(pod("p", namespace, schedulerName="nobody"))


def known(item):
    """The pod as the rules see it."""
    return pod_of(PODS.decoder.decode(msgspec.json.encode(item)))


def test_a_pod_is_bound(cluster, namespace, created, act):
    act(lambda actuator: actuator.bind(known(created), "node"))
    assert cluster.api.get("pods", "p", namespace)["spec"]["nodeName"] == "node"


def test_a_pod_is_bound_once(cluster, namespace, created, act):
    act(lambda actuator: actuator.bind(known(created), "node"))
    with pytest.raises(ActionFailed, match="409"):
        act(lambda actuator: actuator.bind(known(created), "elsewhere"))


def test_waking_adds_a_condition_and_leaves_the_others(cluster, namespace, created, act):
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    cluster.api.patch("pods", "p/status", {"status": {"conditions": [said]}}, namespace)
    for _ in range(2):
        act(lambda actuator: actuator.wake(known(created)))
    woken = cluster.api.get("pods", "p", namespace)
    assert condition(woken, "quotaward.dev/Admissible")["status"] == "True"
    assert condition(woken, "PodScheduled")["message"] == "0/1 nodes"
    assert len(woken["status"]["conditions"]) == 2


def test_a_notice_is_written_and_lifted_with_the_rights_that_there_are(cluster, namespace, created, own_account, act):
    victim, kept = pod_name(created), created["metadata"].get("annotations", {})

    def annotations():
        return cluster.api.get("pods", victim.name, namespace)["metadata"].get("annotations", {})

    act(lambda actuator: actuator.give_notice(victim, 1_800_000_000.0))
    assert annotations() == kept | {"quotaward.dev/evict-at": "2027-01-15T08:00:00Z"}
    act(lambda actuator: actuator.give_notice(replace(victim, uid="another"), 1.0))
    act(lambda actuator: actuator.give_notice(victim, None))
    assert annotations() == kept


def pod_name(created):
    meta = created["metadata"]
    return PodName(meta["namespace"], meta["name"], meta["uid"])


def test_where_a_pod_counts_is_noted_and_the_note_removed_and_other_conditions_stay(cluster, namespace, created, act):
    act(lambda actuator: actuator.bind(known(created), "node"))
    act(lambda actuator: actuator.wake(known(created)))
    for queue in ("q", "", "r"):
        act(lambda actuator, queue=queue: actuator.count_in(known(created), queue))
        noted = cluster.api.get("pods", "p", namespace)
        assert known(noted).counts_in == queue
    act(lambda actuator: actuator.count_in(known(created), None))
    left = cluster.api.get("pods", "p", namespace)
    assert known(left).counts_in is None
    assert condition(left, "quotaward.dev/Admissible")
    assert not condition(left, "quotaward.dev/CountsIn")


@pytest.mark.usefixtures("own_account")
def test_a_pod_whose_deletion_is_refused_is_not_marked_as_disrupted(cluster, namespace, created, act):
    victim = PodName(namespace, "p", created["metadata"]["uid"])
    with pytest.raises(ActionFailed, match="403"):
        act(lambda actuator: actuator.delete(victim))
    left = cluster.api.get("pods", "p", namespace)
    assert "deletionTimestamp" not in left["metadata"]
    assert condition(left, "DisruptionTarget")["status"] == "False"


def test_a_namesake_is_left_alone(cluster, namespace, created, act):
    cluster.api.delete("pods", "p", namespace, grace=0)
    cluster.api.create(pod("p", namespace, schedulerName="nobody"))
    with pytest.raises(ActionFailed, match=r"409|422"):
        act(lambda actuator: actuator.bind(known(created), "node"))
    act(lambda actuator: actuator.wake(known(created)))
    act(lambda actuator: actuator.count_in(known(created), "q"))
    left = cluster.api.get("pods", "p", namespace)
    assert not condition(left, "quotaward.dev/CountsIn")
    assert "nodeName" not in left["spec"]
    assert not condition(left, "quotaward.dev/Admissible")


@pytest.mark.parametrize(
    "why", [a_policy_that_forbids_it, a_webhook_that_nobody_answers], ids=["forbidden by a policy", "a dead webhook"]
)
def test_a_gate_that_the_rules_of_its_namespace_keep_shut_is_that_pods_own_matter(cluster, namespace, act, why):
    gated = cluster.api.create(pod("p", namespace, schedulingGates=[{"name": GATE}]))
    with in_force(cluster, namespace, *why(namespace)), pytest.raises(Rejected):
        act(lambda actuator: actuator.open_gate(known(gated)))
    wait_until(lambda: not may_not_be_changed(cluster, namespace), "pods may be changed again")
    act(lambda actuator: actuator.open_gate(known(gated)))
    assert not is_gated(cluster.api.get("pods", "p", namespace))


def test_a_gate_that_a_hanging_webhook_keeps_shut_is_given_up_in_time(cluster, namespace, act, monkeypatch):
    monkeypatch.setattr(kubernetes, "TIMEOUT", 0.5)
    gated = cluster.api.create(pod("p", namespace, schedulingGates=[{"name": GATE}]))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = a_webhook_that_nobody_answers(namespace, silent.getsockname()[1], timeoutSeconds=2)
        with in_force(cluster, namespace, *hanging), pytest.raises(TimedOut):
            act(lambda actuator: actuator.open_gate(known(gated)))
    assert is_gated(cluster.api.get("pods", "p", namespace))


@pytest.mark.usefixtures("own_account")
def test_who_may_not_open_gates_at_all_does_not_blame_the_pod(cluster, namespace, act):
    gated = cluster.api.create(pod("p", namespace, schedulingGates=[{"name": GATE}]))
    with pytest.raises(ActionFailed, match="403") as failure:
        act(lambda actuator: actuator.open_gate(known(gated)))
    assert not isinstance(failure.value, Rejected)


@pytest.mark.usefixtures("own_account")
def test_who_may_not_start_jobs_at_all_is_told_so(cluster, namespace, act):
    waiting = cluster.api.create(job("train", namespace, suspend=True))
    mine = Cluster()
    mine.upsert_namespace(Namespace(namespace, queues_jobs=True))
    JOBS.upsert(mine, msgspec.json.decode(msgspec.json.encode(waiting), type=JobObject), 0.0)
    stand_in = mine.pods[f"job/{waiting['metadata']['uid']}"]
    with pytest.raises(NoRight, match="403"):
        act(lambda actuator: actuator.start_job(stand_in))


@pytest.mark.parametrize(("name", "is_it"), [("kubernetes.default.svc", True), ("another.example", False)])
def test_the_api_server_is_known_by_the_name_that_the_kubeconfig_says(cluster, kubeconfig, name, is_it):
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["tls-server-name"] = name
    kubeconfig.write_text(yaml.safe_dump(config))

    async def reads(client):
        async with client.get("/version", {}, read_timeout=10) as response:
            return response.status

    async def writes(client):
        return (await client.send("PATCH", "/version", {}, "application/merge-patch+json", timeout=10))[0]

    async def scenario(asks):
        client = await KubeClient.connect(kubeconfig)
        try:
            return await asks(client)
        except aiohttp.ClientConnectorCertificateError:
            return None
        finally:
            await client.close()

    assert [asyncio.run(scenario(asks)) is not None for asks in (reads, writes)] == [is_it, is_it]


def test_a_pod_that_is_gone_needs_no_waking(cluster, namespace, created, act):
    cluster.api.delete("pods", "p", namespace, grace=0)
    act(lambda actuator: actuator.wake(known(created)))


@pytest.mark.parametrize("what", ["bind", "wake"])
def test_without_the_api_server_the_failure_is_said(created, act, proxy, what):
    proxy.cut()
    with pytest.raises(ActionFailed, match="cannot be reached"):
        act(lambda actuator: actuator.bind(known(created), "node") if what == "bind" else actuator.wake(known(created)))


# Reservations


def test_a_reservation_says_how_far_it_has_come(cluster, act):
    owner, victim = PodName("a", "owner", "u1"), PodName("b", "victim", "u2")
    made = Reservation("reclaim-u1-2", owner, "n1", (victim,), 0.0, failures=1)

    def seen():
        item = cluster.api.get("reservations", made.name)
        return replace(reservation_of(RESERVATIONS.decoder.decode(msgspec.json.encode(item))), since=0.0)

    act(lambda actuator: actuator.reserve(made))
    try:
        assert seen() == made
        came_so_far = (replace(made, blocked_since=7.0), replace(made, freed_at=8.0), replace(made, failed_at=9.0))
        for come_so_far in came_so_far:
            act(lambda actuator, written=come_so_far: actuator.note_progress(written))
            assert seen() == come_so_far
    finally:
        act(lambda actuator: actuator.unreserve(made.name))
    with pytest.raises(ActionFailed, match="404"):
        act(lambda actuator: actuator.note_progress(made))


# Events


def events_of(cluster, namespace):
    return [event for event in cluster.api.items("events", namespace) if event["reason"] == "Said"]


def test_an_event_stands_where_kubectl_looks_for_it(cluster, namespace, created, act):
    act(lambda actuator: actuator.report(Event(about_pod(known(created)), "Said", "x" * 2000, warning=True)))
    [event] = events_of(cluster, namespace)
    metadata = created["metadata"]
    subject = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": "p", "uid": metadata["uid"]}
    assert event["involvedObject"] == subject
    assert (event["type"], event["count"], event["source"]["component"]) == ("Warning", 1, "quotaward")
    assert event["message"] == "x" * 1024


def test_a_series_is_one_event_with_a_count_and_is_created_again_once_expired(cluster, namespace, created, act):
    since = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    for count in (1, 2, 3):
        event = Event(about_pod(known(created)), "Said", f"{count} wait", series=Series("p.series", since, count))
        act(lambda actuator, event=event: actuator.report(event))
        [found] = events_of(cluster, namespace)
        assert (found["count"], found["message"]) == (count, f"{count} wait")
        assert found["firstTimestamp"] == "2026-01-02T03:04:05Z" < found["lastTimestamp"]
        if count == 2:
            cluster.api.delete("events", "p.series", namespace)


def test_an_event_that_cannot_be_written_is_lost(created, act, proxy):
    proxy.cut()
    act(lambda actuator: actuator.report(Event(about_pod(known(created)), "Said", "nobody hears it")))
