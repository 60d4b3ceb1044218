"""Kinds that need not be installed, and objects of a kind that cannot be decoded."""

import asyncio
from dataclasses import replace

import pytest

from app.kube import reflector
from app.store.kinds import ELASTIC_QUOTAS, NODES
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
        wait_until(lambda: self.api.serves(LOOSE.path), "the definition is served")

    def remove(self) -> None:
        if self.api.serves(LOOSE.path):
            self.api.delete("customresourcedefinitions", f"elasticquotas.{GROUP}")
        wait_until(lambda: not self.api.serves(LOOSE.path), "the definition is not served any more")

    def put(self, name: str, spec: object) -> Object:
        metadata = {"name": name, "namespace": self.namespace}
        return self.api.apply(
            {"apiVersion": LOOSE.api_version, "kind": "ElasticQuota", "metadata": metadata, "spec": spec}
        )


@pytest.fixture
def quotas(cluster, namespace):
    loose = LooseQuotas(cluster.api, namespace)
    yield loose
    loose.remove()


def test_a_kind_is_waited_for_and_followed_and_missed_by_nobody_when_it_is_gone(quotas, kubeconfig, monkeypatch):
    monkeypatch.setattr(reflector, "NOT_INSTALLED_RETRY", 0.2)
    quotas.remove()

    async def scenario():
        async with following(kubeconfig, LOOSE) as found:  # in sync without it
            assert found.cluster.quotas == {}
            for attempt in range(2):
                await in_loop(quotas.install)
                await in_loop(quotas.put, "q", {"max": {"cpu": attempt}})
                await found.until(lambda: found.cluster.quotas, "the quota is known")
                assert found.cluster.quotas[quotas.namespace]["q"].max == {"cpu": attempt * 1000}
                await in_loop(quotas.remove)
                await found.until(lambda: not found.cluster.quotas, "the quota is gone with its definition")
                assert found.store.feeds["elasticquotas"].connected_at is not None

    asyncio.run(scenario())


def test_a_kind_that_everything_depends_on_is_not_done_without(cluster, kubeconfig):
    async def scenario():
        nowhere = replace(NODES, api_version="nowhere.quotaward.dev/v1")
        async with connected(kubeconfig, nowhere) as found, running(found):
            await found.until(lambda: len(found.client.lists) >= 3, "it goes on asking")
            assert not found.store.feeds["nodes"].synced

    asyncio.run(scenario())


def test_an_object_that_cannot_be_decoded_stops_nothing_and_what_was_known_of_it_stays(quotas, kubeconfig, proxy):
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
