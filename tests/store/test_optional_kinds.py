"""Kinds that need not be installed, and objects of a kind that cannot be decoded."""

import asyncio
from dataclasses import replace

import pytest

from app.kube import reflector
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.nodes import NODES
from tests.controlplane.objects import Object
from tests.controlplane.processes import wait_until
from tests.store.following import connected, following, in_loop, running

GROUP = "store.quotaward.dev"
LOOSE = replace(ELASTIC_QUOTAS, api_version=f"{GROUP}/v1")
"""Quotas of a definition that lets everything through, and that other tests do not need."""


class LooseQuotas:
    def __init__(self, api, namespace):
        self.api = api
        self.namespace = namespace

    def install(self) -> None:
        schema = {"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"kind": "ElasticQuota", "plural": "elasticquotas", "singular": "elasticquota"}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"elasticquotas.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
        }
        self.api.apply(definition)
        wait_until(lambda: self.api.is_ready_for(LOOSE.path), "the definition is served")

    def begin_to_remove(self) -> None:
        self.api.delete("customresourcedefinitions", f"elasticquotas.{GROUP}")

    def remove(self) -> None:
        if self.api.serves(LOOSE.path):
            self.begin_to_remove()
        wait_until(lambda: not self.api.serves(LOOSE.path), "the definition is not served any more")

    def delete(self, name: str) -> None:
        self.api.request("DELETE", LOOSE.path_of(self.namespace, name))

    def let_go(self, name: str) -> None:
        """Without what kept it from being deleted."""
        self.api.merge(LOOSE.path_of(self.namespace, name), {"metadata": {"finalizers": None}})

    def put(self, name: str, spec: object, **more: object) -> Object:
        metadata = {"name": name, "namespace": self.namespace} | more
        return self.api.apply(
            {"apiVersion": LOOSE.api_version, "kind": "ElasticQuota", "metadata": metadata, "spec": spec}
        )


@pytest.fixture
def quotas(cluster, namespace):
    loose = LooseQuotas(cluster.api, namespace)
    yield loose
    loose.remove()


@pytest.fixture
def soon(monkeypatch):
    """What is gone is known to be gone soon."""
    monkeypatch.setattr(reflector, "NOT_INSTALLED_RETRY", 0.2)
    monkeypatch.setattr(reflector, "GONE_AFTER", 1.0)


@pytest.mark.usefixtures("soon")
def test_a_kind_is_waited_for_and_followed_and_let_go_with_its_definition(quotas, kubeconfig):
    quotas.remove()

    async def scenario():
        async with following(kubeconfig, LOOSE, keeps=False) as found:  # in sync without it
            assert found.cluster.quotas == {}
            for attempt in range(2):
                await in_loop(quotas.install)
                await in_loop(quotas.put, "q", {"max": {"cpu": attempt}})
                await found.until(lambda: found.cluster.quotas, "the quota is known")
                assert found.cluster.quotas[quotas.namespace]["q"].max == {"cpu": attempt * 1000}
                await found.until(lambda: not found.store.warnings, "the definition is back")
                await in_loop(quotas.remove)
                await found.until(lambda: not found.cluster.quotas, "the quota is gone with its definition")
                await found.until(lambda: found.store.warnings, "that is said")
                assert found.store.feeds["elasticquotas"].connected_at is not None

    asyncio.run(scenario())


@pytest.mark.usefixtures("soon")
def test_quotas_stay_in_force_when_their_definition_is_deleted_until_it_is_back(quotas, kubeconfig):
    quotas.install()
    for name in ("p", "q"):
        quotas.put(name, {"max": {"cpu": 1}})

    async def scenario():
        async with following(kubeconfig, LOOSE) as found:

            def names():
                return sorted(found.cluster.quotas.get(quotas.namespace, {}))

            await in_loop(quotas.delete, "p")
            await found.until(lambda: names() == ["q"], "one that is deleted alone is gone")
            for name in ("r", "s"):
                await in_loop(quotas.put, name, {"max": {"cpu": 1}})
            await found.until(lambda: names() == ["q", "r", "s"], "all are known")
            await in_loop(quotas.remove)
            await found.until(lambda: found.store.warnings, "the definition is gone")
            lists = len(found.client.lists)
            await found.until(lambda: len(found.client.lists) >= lists + 3, "it is looked for")
            assert names() == ["q", "r", "s"]
            assert found.store.feeds["elasticquotas"].connected_at is not None
            await in_loop(quotas.install)
            await in_loop(quotas.put, "q", {"max": {"cpu": 2}})
            await found.until(lambda: names() == ["q"], "what there is counts")
            await found.until(lambda: not found.store.warnings, "the definition is back")

    asyncio.run(scenario())


@pytest.mark.usefixtures("soon")
def test_quotas_stay_in_force_while_their_definition_is_being_deleted(quotas, kubeconfig):
    quotas.install()
    quotas.put("goes", {"max": {"cpu": 1}})
    quotas.put("stays", {"max": {"cpu": 1}}, finalizers=["store.quotaward.dev/held"])

    async def scenario():
        async with following(kubeconfig, LOOSE) as found:
            await in_loop(quotas.begin_to_remove)
            await found.until(lambda: found.store.warnings, "the definition is going")
            assert sorted(found.cluster.quotas[quotas.namespace]) == ["goes", "stays"]
            await in_loop(quotas.let_go, "stays")
            await in_loop(quotas.remove)
            lists = len(found.client.lists)
            await found.until(lambda: len(found.client.lists) >= lists + 3, "it is looked for")
            assert sorted(found.cluster.quotas[quotas.namespace]) == ["goes", "stays"]

    asyncio.run(scenario())


def test_a_kind_that_everything_depends_on_is_not_done_without(cluster, kubeconfig):
    async def scenario():
        nowhere = replace(NODES, api_version="nowhere.quotaward.dev/v1")
        async with connected(kubeconfig, nowhere) as found, running(found):
            await found.until(lambda: len(found.client.lists) >= 3, "it goes on asking")
            assert not found.store.feeds["nodes"].synced

    asyncio.run(scenario())


def test_an_undecodable_object_stops_nothing_and_keeps_what_was_known_of_it(quotas, kubeconfig, proxy):
    quotas.install()
    quotas.put("was-good", {"max": {"cpu": 1}})
    quotas.put("never-good", "text")

    async def scenario():
        async with following(kubeconfig, LOOSE) as found:

            def known():
                return {name: quota.max for name, quota in found.cluster.quotas[quotas.namespace].items()}

            assert known()["was-good"] == {"cpu": 1000}
            await in_loop(quotas.put, "was-good", ["not", "a", "map"])
            await in_loop(quotas.put, "after", {"max": {"cpu": 2}})
            await found.until(lambda: known().get("after") == {"cpu": 2000}, "what came after it")
            assert known()["was-good"] == {"cpu": 1000}
            assert len(found.client.lists) == 1

            found.reflector._version = ""  # and a new list finds it no worse
            proxy.cut()
            proxy.mend()
            await found.until(lambda: len(found.client.lists) == 2, "a list")
            await found.until_connected(watches=2)
            assert known()["was-good"] == {"cpu": 1000}

    asyncio.run(scenario())


def test_a_quota_that_could_never_be_decoded_refuses_everything(quotas, kubeconfig):
    quotas.install()
    quotas.put("never-good", "text")

    async def scenario():
        async with following(kubeconfig, LOOSE) as found:
            assert not found.cluster.ledger.account(quotas.namespace).quota.readable

    asyncio.run(scenario())
