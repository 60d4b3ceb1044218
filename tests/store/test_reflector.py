"""A reflector against the real API server: it lists and watches, and goes on from where it was."""

import asyncio
from collections import Counter
from dataclasses import replace

from app import pause
from app.kube import reflector
from app.observability import metrics
from app.settings import GroupSettings
from app.sources import kubernetes
from app.store.kinds import SUCCESSORS
from app.store.nodes import NODES
from app.store.pods import PODS
from app.store.reservations import RESERVATIONS
from app.store.store import Store
from policy.cluster.cluster import Cluster
from tests.controlplane.objects import pod, pods
from tests.controlplane.processes import wait_until
from tests.store.following import RecordingClient, connected, following, in_loop, running, until
from tests.unit.app.neighbour import neighbour


def restarts(reason):
    return metrics.WATCH_RESTARTS.labels("pods", reason)._value.get()


def names(count, prefix="pod"):
    return {f"{prefix}-{number}" for number in range(count)}


def test_a_list_of_many_pages_is_taken_in_as_a_whole(cluster, namespace, kubeconfig, monkeypatch):
    monkeypatch.setattr(reflector, "PAGE", 50)
    cluster.api.create_all(pods(220, namespace))

    async def scenario():
        async with following(kubeconfig) as found:
            assert found.names == names(220)
            assert len(found.client.lists) == 5
            assert len({query.get("continue") for query in found.client.lists}) == 5
            assert {pod.request["cpu"] for pod in found.cluster.pods.values()} == {1000}

    asyncio.run(scenario())


def test_changes_are_taken_in_as_they_happen(cluster, namespace, kubeconfig):
    async def scenario():
        async with following(kubeconfig) as found:
            await in_loop(cluster.api.create, pod("p", namespace, cpu=2, nodeName="elsewhere"))
            await found.until(lambda: found.cluster.ledger.account(namespace).assigned, "the pod counts")
            assert found.cluster.ledger.account(namespace).assigned == {"cpu": 2000, "pods": 1}
            await in_loop(cluster.api.patch, "pods", "p/status", {"status": {"phase": "Succeeded"}}, namespace)
            await found.until(lambda: not found.cluster.ledger.account(namespace).assigned, "it has finished")
            await in_loop(cluster.api.delete, "pods", "p", namespace, grace=0)
            await found.until(lambda: not found.names, "it is gone")
            assert len(found.client.lists) == len(found.client.watches) == 1

    asyncio.run(scenario())


def test_an_object_of_any_size_is_taken_in(cluster, namespace, kubeconfig):
    def large(name):
        item = pod(name, namespace)
        item["metadata"]["annotations"] = {"note": "\N{EURO SIGN}" * 80_000}  # several chunks of the connection
        return item

    cluster.api.create(large("listed"))

    async def scenario():
        async with following(kubeconfig) as found:
            await found.until_connected(watches=1)
            await in_loop(cluster.api.create, large("watched"))
            await in_loop(cluster.api.create, pod("after", namespace))
            await found.until(lambda: found.names == {"listed", "watched", "after"}, "all three")
            assert len(found.client.lists) == 1

    asyncio.run(scenario())


def test_a_dropped_connection_is_resumed_without_listing_again(cluster, namespace, kubeconfig, proxy):
    cluster.api.create_all(pods(3, namespace))

    async def scenario():
        async with following(kubeconfig) as found:
            await found.until_connected(watches=1)
            expected = names(3)
            for number in range(2):
                proxy.cut()
                cluster.api.create(pod(f"later-{number}", namespace))
                cluster.api.delete("pods", f"pod-{number}", namespace, grace=0)
                await found.until(lambda: found.store.feeds["pods"].connected_at is None, "the loss is noticed")
                assert found.names == expected
                proxy.mend()
                expected = expected - {f"pod-{number}"} | {f"later-{number}"}
                await found.until(lambda now=expected: found.names == now, "what happened meanwhile")
            assert len(found.client.lists) == 1
            versions = [int(query["resourceVersion"]) for query in found.client.watches]
            assert versions == sorted(versions)

    asyncio.run(scenario())


def test_what_was_deleted_while_the_api_server_forgot_is_found_by_a_new_list(cluster, namespace, kubeconfig, proxy):
    cluster.api.create_all(pods(5, namespace))
    before = restarts("expired")

    async def scenario():
        async with following(kubeconfig) as found:
            await found.until_connected(watches=1)
            proxy.cut()
            for number in range(3):
                cluster.api.delete("pods", f"pod-{number}", namespace, grace=0)
            cluster.api.create(pod("later", namespace))
            cluster.control_plane.crash_api_server()  # it keeps the latest changes in memory only
            cluster.control_plane.start_api_server()
            proxy.mend()
            await found.until(lambda: found.names == {"pod-3", "pod-4", "later"}, "the new list")
            assert len(found.client.lists) == 2

    asyncio.run(scenario())
    assert restarts("expired") == before + 1


def test_bookmarks_move_the_version_on_where_nothing_happens(cluster, namespace, kubeconfig, monkeypatch):
    monkeypatch.setattr(reflector, "WATCH_SECONDS", 4)  # the API server sends one before it ends a watch

    async def scenario():
        async with following(kubeconfig) as found:
            await in_loop(cluster.api.create, pod("p", namespace))
            await found.until(lambda: found.names == {"p"}, "the pod")
            last_event = int(found.reflector._version)
            await in_loop(cluster.namespace)  # moves the version of the cluster, but is no event of pods
            await in_loop(cluster.api.items, "pods")  # makes the API server look how far its pods are
            await found.until(lambda: int(found.reflector._version) > last_event, "a bookmark")
            watches = len(found.client.watches)
            await found.until_connected(watches=watches + 1)
            assert int(found.client.watches[-1]["resourceVersion"]) > last_event
            assert len(found.client.lists) == 1
            assert found.names == {"p"}

    asyncio.run(scenario())


def test_a_quiet_kind_does_not_get_stale_and_is_listed_again_now_and_then(cluster, kubeconfig, monkeypatch):
    monkeypatch.setattr(reflector, "WATCH_SECONDS", 1)
    monkeypatch.setattr(reflector, "IDLE_TIMEOUT", 8.0)
    before = [metrics.WATCH_RESTARTS.labels("reservations", reason)._value.get() for reason in ("silent", "error")]

    async def scenario():
        async with following(kubeconfig, RESERVATIONS) as found:
            await found.until_connected(watches=1)
            stalest = 0.0

            def listed_again():
                nonlocal stalest
                stalest = max(stalest, found.store.staleness("reservations", found.store.clock()))
                return len(found.client.lists) == 2

            await found.until(listed_again, "a second list")
            assert stalest < 0.9  # between two watches, but not during one
            assert len(found.client.watches) >= reflector.PATIENCE

    asyncio.run(scenario())
    after = [metrics.WATCH_RESTARTS.labels("reservations", reason)._value.get() for reason in ("silent", "error")]
    assert after == before


def test_a_watch_that_has_ended_and_is_not_answered_again_is_no_contact(
    cluster, namespace, kubeconfig, proxy, monkeypatch
):
    monkeypatch.setattr(reflector, "WATCH_SECONDS", 1)

    async def scenario():
        async with following(kubeconfig) as found:
            await found.until_connected(watches=1)
            ask = found.client.get

            def silenced(*arguments, **named):
                proxy.silence()
                return ask(*arguments, **named)

            monkeypatch.setattr(found.client, "get", silenced)  # the first watch has been answered, no other will be
            await found.until(lambda: found.store.staleness("pods", found.store.clock()) > 1, "it is known to be stale")
            assert len(found.client.watches) + len(found.client.counts) == 2

    asyncio.run(scenario())


def test_a_list_alone_is_no_contact_while_the_watch_after_it_is_not_answered(
    cluster, namespace, kubeconfig, proxy, monkeypatch
):
    async def scenario():
        async with connected(kubeconfig) as found:
            ask, feed = found.client.get, found.store.feeds["pods"]

            def silenced(path, query, **named):
                if "watch" in query:
                    proxy.silence()
                return ask(path, query, **named)

            monkeypatch.setattr(found.client, "get", silenced)
            async with running(found):
                await found.until(
                    lambda: feed.synced and found.store.staleness("pods", found.store.clock()) > 0,
                    "it is known to be stale",
                )
                assert len(found.client.watches) == 1

    asyncio.run(scenario())


def test_after_a_loss_it_is_listed_as_soon_as_a_watch_brings_nothing(
    cluster, namespace, kubeconfig, proxy, monkeypatch
):
    monkeypatch.setattr(reflector, "WATCH_SECONDS", 1)
    cluster.api.create(pod("p", namespace))

    async def scenario():
        async with following(kubeconfig) as found:
            await found.until_connected(watches=1)
            proxy.cut()
            await found.until(lambda: found.store.feeds["pods"].connected_at is None, "the loss is noticed")
            found.reflector._version = "1000000000"  # etcd is put back to an older state meanwhile
            cluster.api.create(pod("later", namespace))
            watches = len(found.client.watches)
            proxy.mend()
            await found.until(lambda: found.names == {"p", "later"}, "it is listed again")
            answered = len(found.client.watches) - watches
            assert answered < reflector.PATIENCE

    asyncio.run(scenario())


def test_a_watch_is_asked_for_less_time_than_it_may_be_silent(cluster, namespace, kubeconfig):
    async def scenario():
        async with following(kubeconfig) as found:
            await found.until_connected(watches=1)
            assert int(found.client.watches[0]["timeoutSeconds"]) < reflector.IDLE_TIMEOUT - 10

    asyncio.run(scenario())


def test_a_connection_that_has_gone_silent_is_given_up(cluster, namespace, kubeconfig, proxy, monkeypatch):
    monkeypatch.setattr(reflector, "IDLE_TIMEOUT", 1.0)

    async def scenario():
        async with following(kubeconfig) as found:
            await found.until_connected(watches=1)
            proxy.silence()
            cluster.api.create(pod("p", namespace))
            await found.until(lambda: found.store.feeds["pods"].connected_at is None, "the silence is noticed")
            proxy.cut()
            proxy.mend()
            await found.until(lambda: found.names == {"p"}, "what happened meanwhile")
            assert len(found.client.lists) == 1

    asyncio.run(scenario())


def test_an_api_server_that_has_lost_its_history_is_listed_again(cluster, namespace, kubeconfig, monkeypatch):
    monkeypatch.setattr(reflector, "IDLE_TIMEOUT", 0.3)
    cluster.api.create(pod("p", namespace))

    async def scenario():
        async with connected(kubeconfig) as found:
            found.reflector._version = "1000000000"  # seen before etcd was put back to an older state
            async with running(found):
                await found.until(lambda: found.names == {"p"}, "the pod was listed")

    asyncio.run(scenario())


def test_nothing_is_lost_while_the_api_server_is_killed_and_comes_back(cluster, namespace, kubeconfig):
    cluster.quota(namespace, max={"cpu": 5})
    cluster.api.create(pod("p", namespace))
    cluster.node()
    missed = []

    async def scenario():
        store = Store(Cluster(settle_time=0), settle_time=0)
        client = await RecordingClient.connect(kubeconfig)

        def known():
            pods = {pod.name for pod in store.cluster.pods.values()}
            return {*NODES.known(store.cluster), *store.cluster.quotas, *pods}

        async def observe():
            while True:
                missed.extend({"node", namespace, "p"} - known())
                await asyncio.sleep(0.001)

        follower = asyncio.create_task(kubernetes.follow(client, store, GroupSettings()))
        await until(lambda: store.synced, "the store is in sync")
        observer = asyncio.create_task(observe())
        cluster.control_plane.crash_api_server()
        followed = [feed for label, feed in store.feeds.items() if label not in SUCCESSORS]
        await until(lambda: not any(feed.connected_at for feed in followed), "the loss is noticed")
        cluster.control_plane.api_server.start()  # not in another thread, whose end would be its own
        await in_loop(wait_until, cluster.api.is_ready, "the API server is ready")
        await in_loop(cluster.change_quota, namespace, max={"cpu": 7})
        await in_loop(cluster.api.create, pod("later", namespace))
        await until(lambda: "later" in known(), "what happened since")
        await until(lambda: store.cluster.quotas[namespace]["quota"].max == {"cpu": 7000}, "the changed quota")
        await until(lambda: all(feed.connected_at for feed in store.feeds.values()), "all are connected")
        for task in (observer, follower):
            task.cancel()
        await asyncio.gather(observer, follower, return_exceptions=True)
        await client.close()

    asyncio.run(scenario())
    assert missed == []


def test_decoding_is_cut_into_slices_between_which_the_loop_answers(cluster, namespace, kubeconfig, proxy, monkeypatch):
    monkeypatch.setattr(pause, "SLICE", 0.0)
    cluster.api.create_all(pods(200, namespace))
    taken_in_turn = Counter()

    async def scenario():
        async with neighbour() as turns:

            def upsert(*arguments):
                taken_in_turn[len(turns)] += 1
                PODS.upsert(*arguments)

            async with following(kubeconfig, replace(PODS, upsert=upsert)) as found:
                await found.until_connected(watches=1)
                assert taken_in_turn.total() == 200
                proxy.cut()
                await in_loop(cluster.api.create_all, pods(200, namespace, prefix="later"))
                proxy.mend()  # all changes come at once
                await found.until(lambda: taken_in_turn.total() == 400, "all changes")
                assert len(found.client.lists) == 1

    asyncio.run(scenario())
    assert max(taken_in_turn.values()) <= 2
