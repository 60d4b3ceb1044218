"""Quotas and pod groups of the API group that scheduler-plugins had before, in folders and in a cluster."""

import asyncio
import json

import pytest
from structlog.testing import capture_logs

from app import checks
from app.actuators.protocol import ActionFailed
from app.controllers.status import Status
from app.kube.client import KubeClient
from app.kube.reflector import Reflector
from app.settings import GroupSettings, Settings
from app.sources import kubernetes, others
from app.sources.manifests import ManifestSource, read
from app.store.elastic_quotas import ELASTIC_QUOTAS, LEGACY_ELASTIC_QUOTAS
from app.store.kinds import KINDS
from app.store.pod_groups import LEGACY_POD_GROUPS, POD_GROUPS
from app.web import parts
from tests.unit.app.given import complete, empty_store, kubeconfig, pod, quota, see, store_with
from tests.unit.app.test_status import look_once

OLD = "scheduling.sigs.k8s.io/v1alpha1"
LABEL = "pod-group.scheduling.sigs.k8s.io"


def old(item):
    return item | {"apiVersion": OLD}


def old_group(name="g", minimum=2):
    metadata = {"name": name, "namespace": "a"}
    return {"apiVersion": OLD, "kind": "PodGroup", "metadata": metadata, "spec": {"minMember": minimum}}


def member(name, group="g"):
    return pod(name, metadata={"labels": {LABEL: group}})


def max_of(store, namespace="a", name="quota"):
    found = store.cluster.quotas.get(namespace, {}).get(name)
    return found and found.max.get("cpu")


# Folders


@pytest.mark.parametrize(
    ("legacy", "newer_too", "counts"),
    [("auto", False, True), ("auto", True, False), ("on", True, True), ("off", False, False)],
)
def test_quotas_of_the_older_group_count_in_a_folder_where_they_should(folder, legacy, newer_too, counts):
    folder.write("old.yaml", old(quota("a", max={"cpu": 2})), *([quota("b", max={"cpu": 1})] if newer_too else []))
    store = empty_store()
    ManifestSource(folder.path, store, legacy)
    assert max_of(store) == (2000 if counts else None)


@pytest.mark.parametrize("first", [quota("a", max={"cpu": 1}), old(quota("a", max={"cpu": 2}))], ids=["new", "old"])
def test_of_two_quotas_of_a_name_in_a_folder_the_newer_groups_counts(folder, first):
    both = [quota("a", max={"cpu": 1}), old(quota("a", max={"cpu": 2}))]
    folder.write("all.yaml", first, *(each for each in both if each != first))
    store = empty_store()
    ManifestSource(folder.path, store, "on")
    assert max_of(store) == 1000
    found = read(folder.path, "on")
    assert found.problems == []
    assert [str(each).endswith("scheduling.x-k8s.io has one of the same name") for each in found.strange] == [True]


def test_a_group_of_the_older_kind_holds_its_members_together(folder):
    folder.write("all.yaml", old_group(minimum=2), member("p"), member("q"))
    store = empty_store()
    ManifestSource(folder.path, store)
    [group] = store.cluster.membership.groups.values()
    assert {each.name for each in store.cluster.groups.members(group.key)} == {"p", "q"}
    assert group.minimum == 2


def test_the_newer_label_of_a_pod_comes_first():
    both = pod("p", metadata={"labels": {LABEL: "old", "scheduling.x-k8s.io/pod-group": "new"}})
    [found] = store_with(both).cluster.pods.values()
    assert found.group == "podgroups.scheduling.x-k8s.io/new"


def test_a_check_says_which_are_not_read_and_how_to_read_them(folder):
    folder.write("all.yaml", old(quota("a")), quota("b"))
    [finding] = checks.manifests(folder.path).findings
    assert finding.severity == "warning"
    assert finding.text.endswith(
        "ElasticQuota a/quota of scheduling.sigs.k8s.io is not read:"
        " there are newer ones of scheduling.x-k8s.io; groups.legacy: on reads both"
    )


def test_a_check_has_nothing_against_a_folder_of_the_older_group(folder):
    folder.write("all.yaml", old(quota("a")), old_group(minimum=2), member("p"), member("q"))
    assert checks.manifests(folder.path).findings == []


# The store


def test_of_two_quotas_of_a_name_the_newer_groups_counts_for_as_long_as_it_is_there():
    for order in ("new first", "old first"):
        store = store_with()
        both = [quota("a", max={"cpu": 1}), old(quota("a", max={"cpu": 2}))]
        see(store, *(both if order == "new first" else reversed(both)))
        assert max_of(store) == 1000, order
        store.delete(ELASTIC_QUOTAS, ("a", "quota"))
        assert max_of(store) == 2000, order
        store.delete(LEGACY_ELASTIC_QUOTAS, ("a", "quota"))
        assert max_of(store) is None, order


def test_that_the_older_one_is_gone_changes_nothing_while_there_is_the_newer():
    store = store_with(quota("a", max={"cpu": 1}), old(quota("a", max={"cpu": 2})))
    store.delete(LEGACY_ELASTIC_QUOTAS, ("a", "quota"))
    assert max_of(store) == 1000


def test_a_list_of_one_group_leaves_the_quotas_of_the_other_alone():
    store = store_with(quota("a", "new"), old(quota("a", "old")))
    store.keep_only(LEGACY_ELASTIC_QUOTAS, set())
    assert set(store.cluster.quotas["a"]) == {"new"}
    see(store, old(quota("a", "old")))
    store.keep_only(ELASTIC_QUOTAS, set())
    assert set(store.cluster.quotas["a"]) == {"old"}
    assert store.known(ELASTIC_QUOTAS) == []
    assert store.known(LEGACY_ELASTIC_QUOTAS) == [("a", "old")]


def test_a_status_is_written_to_the_group_that_its_quota_is_of():
    class Actuator:
        def __init__(self):
            self.written = {}

        async def write_quota_status(self, namespace, name, _status, kind):
            self.written[namespace, name] = kind.path_of(namespace, name, "status")
            raise ActionFailed("that is enough")

        def report(self, _event):
            pass

    actuator = Actuator()
    asyncio.run(look_once(Status(store_with(quota("a", "new"), old(quota("b", "old"))), actuator)))
    assert actuator.written == {
        ("a", "new"): "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/a/elasticquotas/new/status",
        ("b", "old"): "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/b/elasticquotas/old/status",
    }


# A cluster


class ApiServer:
    """Serves lists of some paths; all others are not installed, but for those that are forbidden."""

    def __init__(self, lists=None, forbidden=()):
        self.lists = lists or {}
        self.forbidden = set(forbidden)
        self.asked = []

    async def answer(self, reader, writer):
        request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode().split()[1]
        path = request.partition("?")[0]
        self.asked.append(path)
        status, body = 404, {"code": 404, "message": "there is none"}
        if path in self.forbidden:
            status, body = 403, {"code": 403, "message": "may not"}
        elif path == "/apis":
            versions = {each.split("/")[2]: "/".join(each.split("/")[2:4]) for each in self.lists}
            body = {"groups": [{"name": g, "preferredVersion": {"groupVersion": v}} for g, v in versions.items()]}
            status = 200
        elif plurals := [each.rpartition("/")[2] for each in self.lists if each.rpartition("/")[0] == path]:
            status, body = 200, {"resources": [{"name": plural, "verbs": ["create"]} for plural in plurals]}
        elif "watch=true" in request and path in self.lists:
            await asyncio.sleep(60)
        elif path in self.lists:
            status, body = 200, {"metadata": {"resourceVersion": "1"}, "items": self.lists[path]}
        text = json.dumps(body).encode()
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (status, len(text), text))
        await writer.drain()
        writer.close()


@pytest.fixture
def with_api(tmp_path):
    """Runs something with a client of such an API server."""

    def run(api, work):
        async def scenario():
            server = await asyncio.start_server(api.answer, "127.0.0.1", 0)
            file = tmp_path / "kubeconfig"
            file.write_text(kubeconfig(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
            client = await KubeClient.connect(file)
            try:
                await asyncio.wait_for(work(client), 30)
            finally:
                await client.close()
                server.close()

        asyncio.run(scenario())

    return run


def followed(with_api, api, legacy, kind=LEGACY_ELASTIC_QUOTAS, until=lambda store: store.feeds[LEGACY].synced):
    """The store after the kind was followed until that holds."""
    store = empty_store()

    async def work(client):
        work = Reflector(client, kind, store).run
        groups = GroupSettings(legacy=legacy)
        task = asyncio.create_task(kubernetes._follow_legacy(client, kind, store, groups, work))
        while not until(store):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with_api(api, work)
    return store


LEGACY = LEGACY_ELASTIC_QUOTAS.label
ITEMS = [old(quota("a", max={"cpu": 2}))]


@pytest.mark.parametrize(
    ("legacy", "newer", "counts"),
    [
        ("auto", None, True),
        ("auto", "installed", False),
        ("auto", "forbidden", False),
        ("on", "installed", True),
        ("off", None, False),
    ],
)
def test_the_older_group_is_followed_where_it_should_be(with_api, legacy, newer, counts):
    api = ApiServer({LEGACY_ELASTIC_QUOTAS.path: ITEMS} | ({ELASTIC_QUOTAS.path: []} if newer == "installed" else {}))
    api.forbidden |= {ELASTIC_QUOTAS.path.rpartition("/")[0]} if newer == "forbidden" else set()
    assert max_of(followed(with_api, api, legacy)) == (2000 if counts else None)


def test_without_the_right_to_read_the_older_group_nothing_waits_for_it(with_api):
    with capture_logs() as logs:
        store = followed(with_api, ApiServer(forbidden={LEGACY_ELASTIC_QUOTAS.path}), "auto")
    assert store.feeds[LEGACY].connected_at is not None
    warnings = [entry["event"] for entry in logs if entry["log_level"] == "warning"]
    assert warnings == ["may not be read, and is done without"]


@pytest.mark.parametrize("kind", [LEGACY_ELASTIC_QUOTAS, LEGACY_POD_GROUPS], ids=lambda kind: kind.name)
def test_objects_that_look_as_if_they_were_read_are_named_on_the_page(with_api, kind):
    run_ai = "/apis/scheduling.run.ai/v2/queues"
    api = ApiServer({kind.path: ITEMS, run_ai: [{}], "/apis/kueue.x-k8s.io/v1beta1/clusterqueues": []})
    store = complete(empty_store())
    with capture_logs() as logs:
        with_api(api, lambda client: others.look(client, store))
    said = parts.status(store, Settings()).warnings
    assert [text.split(" is not read")[0] for text in said] == [
        "Queue of scheduling.run.ai",
        f"{kind.name} of scheduling.sigs.k8s.io",
    ]
    assert [entry["what"] for entry in logs] == list(said)
    assert len(api.asked) < 2 + len(KINDS)


def test_what_may_not_be_listed_is_not_spoken_of(with_api):
    api = ApiServer({"/apis/scheduling.run.ai/v2/queues": [{}]}, forbidden={"/apis/scheduling.run.ai/v2/queues"})
    store = complete(empty_store())
    with_api(api, lambda client: others.look(client, store))
    assert store.strange == ()


def test_the_older_group_that_is_read_is_not_spoken_of(with_api):
    store = store_with(*ITEMS)
    with_api(ApiServer({LEGACY_ELASTIC_QUOTAS.path: ITEMS}), lambda client: others.look(client, store))
    assert store.strange == ()


def test_the_groups_are_those_of_their_label():
    assert POD_GROUPS[0].api_version.startswith("scheduling.x-k8s.io/")
    assert LEGACY_POD_GROUPS.api_version == LEGACY_ELASTIC_QUOTAS.api_version == OLD
