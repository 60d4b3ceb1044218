"""An API server that says for a while that a kind is not there, and a watch that repeats and reorders changes."""

import asyncio
import json
import time
from contextlib import asynccontextmanager, suppress

import pytest
from structlog.testing import capture_logs

from app.kube import definitions, reflector
from app.kube.census import Census, Incomplete
from app.kube.client import KubeClient
from app.kube.reflector import Reflector
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.jobs import JOBS
from app.store.pods import PODS
from app.store.reservations import RESERVATIONS
from tests.unit.app.given import empty_store, kubeconfig, made, pod, quota

ALL = ("create", "delete", "get", "list", "watch")
ENDING = ("delete", "get", "list", "watch")
GONE_LINE = "the definition of elasticquotas.scheduling.x-k8s.io was deleted: "


class ApiServer:
    """One kind of objects. A watch brings what is put into ``events``, each line as it comes, and then stays open.

    ``version`` is that of lists, ``number`` what it says for the number of objects (None: as many as there are),
    ``counts`` is how that is answered. ``watched`` has the versions that watches were asked to go on from.
    """

    def __init__(self, *items):
        self.items = list(items)
        self.version = 100
        self.number, self.count_status, self.counts = None, 200, 0
        self.watched = []
        self.status = 200
        self.verbs = ALL
        self.discovery = 200
        self.events = asyncio.Queue()
        self.lists = 0

    async def answer(self, reader, writer):
        request = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
        with suppress(ConnectionError):
            if b"watch=true" in request:
                self.watched.append(int(request.partition(b"resourceVersion=")[2].partition(b"&")[0]))
                await self.send(writer, self.status, b"")
                event = {"type": ""}
                while self.status == 200 and event["type"] != "ERROR":
                    event = await self.events.get()
                    if event is None:
                        break
                    writer.write(json.dumps(event).encode() + b"\n")
                    await writer.drain()
            elif request.endswith(b"limit=1"):
                self.counts += 1
                more = len(self.items) - 1 if self.number is None else self.number - 1
                meta = {"resourceVersion": str(self.version), "continue": "more", "remainingItemCount": more}
                listed = {"metadata": meta, "items": self.items[:1]} if more > 0 else self.as_list()
                await self.send(writer, self.count_status, json.dumps(listed).encode())
            elif b"limit=" in request:
                self.lists += 1
                listed = self.as_list()
                await self.send(writer, self.status, json.dumps(listed).encode())
            else:
                known = [{"name": each, "verbs": self.verbs} for each in ("elasticquotas", "pods") if self.verbs]
                await self.send(writer, self.discovery, json.dumps({"resources": known}).encode())
        writer.close()

    async def send(self, writer, status, body):
        writer.write(b"HTTP/1.1 %d -\r\nConnection: close\r\n\r\n" % status + body)
        await writer.drain()

    def as_list(self):
        return {"metadata": {"resourceVersion": str(self.version)}, "items": self.items}

    def cut(self):
        """The connection of the watch ends."""
        self.events.put_nowait(None)

    def brings(self, kind, item, version, uid=None):
        item = json.loads(json.dumps(item))
        item["metadata"] |= {"resourceVersion": str(version)} | ({"uid": uid} if uid else {})
        self.events.put_nowait({"type": kind, "object": item})

    def expire(self):
        """The watch is to be made anew, from a new list."""
        self.events.put_nowait({"type": "ERROR", "object": {"code": 410}})

    def remove_definition(self):
        """As the API server does it in the end."""
        self.status, self.verbs, self.discovery = 404, (), 404
        self.expire()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a scenario with a store that a reflector keeps true to a server."""
    monkeypatch.setattr(reflector, "NOT_INSTALLED_RETRY", 0.02)
    monkeypatch.setattr(reflector, "GONE_AFTER", 0.3)
    monkeypatch.setattr(reflector, "LONGEST_WAIT", 0.05)
    monkeypatch.setattr(definitions, "DOUBT", 0.05)
    monkeypatch.setattr(definitions, "PAUSE", 0.02)

    @asynccontextmanager
    async def following(server, kind, **rest):
        listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
        file = tmp_path / "kubeconfig"
        file.write_text(kubeconfig(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"))
        client = await KubeClient.connect(file)
        store = empty_store()
        task = asyncio.create_task(Reflector(client, kind, store, **rest).run())
        try:
            yield store
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await client.close()
            listening.close()

    def run(server, kind, scenario, meanwhile=nothing, **rest):
        async def whole():
            async with following(server, kind, **rest) as store:
                await meanwhile()
                await until(lambda: store.feeds[kind.label].synced)
                return await scenario(store)

        return asyncio.run(whole())

    return run


async def nothing():
    pass


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def of(name, version, uid="u", **bounds):
    item = quota("a", name, **bounds)
    item["metadata"] |= {"resourceVersion": str(version), "uid": uid}
    return item


def names(store):
    return sorted(store.cluster.quotas.get("a", {}))


# A kind that is said not to be there


@pytest.mark.parametrize("keeps", [True, False])
def test_a_kind_that_is_said_to_be_gone_for_a_moment_is_not_let_go(run, keeps):
    server = ApiServer(of("q", 1))

    async def scenario(store):
        asked = server.lists
        server.remove_definition()
        await until(lambda: server.lists >= asked + 2)
        assert names(store) == ["q"]
        server.status, server.verbs, server.discovery = 200, ALL, 200
        await until(lambda: store.feeds[ELASTIC_QUOTAS.label].connected_at is not None)
        assert names(store) == ["q"]
        assert store.warnings == []

    with capture_logs() as logged:
        run(server, ELASTIC_QUOTAS, scenario, keeps=keeps)
    assert [line for line in logged if line["event"].startswith("definition")] == []


def test_a_404_of_a_kind_that_discovery_knows_is_no_end_of_it_however_long_it_lasts(run):
    server = ApiServer(of("q", 1))

    async def scenario(store):
        asked = server.lists
        server.status = 404
        server.expire()
        await until(lambda: server.lists >= asked + 3)
        assert names(store) == ["q"]
        assert store.warnings == []
        assert store.feeds[ELASTIC_QUOTAS.label].connected_at is None  # so that it gets stale

    with capture_logs() as logged:
        run(server, ELASTIC_QUOTAS, scenario, keeps=False)
    assert [line["error"] for line in logged if line["event"] == "watch lost" and line["error"]] == [
        "404, although the kind is served"
    ]


def test_at_the_start_a_404_is_believed_only_if_discovery_says_so_too(run):
    server = ApiServer(of("q", 1))
    server.status = 404

    async def mends():
        await until(lambda: server.lists >= 2)
        server.status = 200

    async def scenario(store):
        assert names(store) == ["q"]

    run(server, ELASTIC_QUOTAS, scenario, meanwhile=mends)
    assert server.lists >= 3


def test_a_kind_that_was_never_there_is_missed_by_nobody(run):
    server = ApiServer()
    server.status, server.discovery = 404, 404

    async def scenario(store):
        assert store.feeds[ELASTIC_QUOTAS.label].connected_at is not None
        assert store.warnings == []

    run(server, ELASTIC_QUOTAS, scenario)


@pytest.mark.parametrize("discovery", [404, 403])
def test_what_binds_pods_stays_in_force_when_its_definition_is_gone(run, discovery):
    server = ApiServer(of("p", 1, "u1"), of("q", 2, "u2"))

    async def scenario(store):
        server.remove_definition()
        server.discovery = discovery
        await until(lambda: store.warnings)
        assert store.warnings == [GONE_LINE + "2 objects stay in force"]
        assert names(store) == ["p", "q"]
        assert store.feeds[ELASTIC_QUOTAS.label].connected_at is not None  # it is no reason to decide nothing
        server.items = [of("q", 9, "u9")]
        server.status, server.verbs, server.discovery = 200, ALL, 200
        await until(lambda: not store.warnings)
        await until(lambda: names(store) == ["q"])

    with capture_logs() as logged:
        run(server, ELASTIC_QUOTAS, scenario)
    lines = [line for line in logged if line["event"].startswith("definition")]
    assert [(line["event"], line["log_level"], line.get("kept")) for line in lines] == [
        ("definition is gone", "warning", 2),
        ("definition is back", "warning", None),
    ]


def test_objects_that_are_deleted_before_their_definition_stay_in_force_with_it(run):
    server = ApiServer(of("p", 1, "u1"), of("q", 2, "u2"))

    async def scenario(store):
        server.verbs = ENDING
        for name, uid in (("p", "u1"), ("q", "u2")):
            server.brings("DELETED", quota("a", name), 101, uid)
        await until(lambda: store.warnings)
        assert names(store) == ["p", "q"]
        server.remove_definition()
        lists = server.lists
        await until(lambda: server.lists >= lists + 3)
        assert names(store) == ["p", "q"]

    run(server, ELASTIC_QUOTAS, scenario)


def test_a_single_object_that_is_deleted_is_gone_soon(run):
    server = ApiServer(of("p", 1, "u1"), of("q", 2, "u2"))

    async def scenario(store):
        server.brings("DELETED", quota("a", "p"), 101, "u1")
        await until(lambda: names(store) == ["q"])
        assert store.warnings == []

    run(server, ELASTIC_QUOTAS, scenario)


def test_a_deletion_is_in_doubt_no_longer_because_another_came_just_before(run, monkeypatch):
    doubt, tries = 0.4, 5  # others may have the processors for a moment
    monkeypatch.setattr(definitions, "DOUBT", doubt)
    server = ApiServer(*(of(f"{name}{number}", 1, f"{name}{number}") for name in "pq" for number in range(tries)))

    async def lag(store, number):
        """Seconds from when the first is let go to when the second is, which was deleted a moment later."""
        for turn, name in enumerate("pq"):
            await asyncio.sleep(turn * doubt / 10)  # the time under test
            server.brings("DELETED", quota("a", f"{name}{number}"), 101 + 2 * number + turn, f"{name}{number}")
        await until(lambda: f"p{number}" not in names(store))
        since = time.monotonic()
        await until(lambda: f"q{number}" not in names(store))
        return time.monotonic() - since

    async def scenario(store):
        lags = []
        while not lags or (min(lags) > doubt / 2 and len(lags) < tries):
            lags.append(await lag(store, len(lags)))
        assert min(lags) <= doubt / 2

    run(server, ELASTIC_QUOTAS, scenario)


def test_what_was_chosen_to_be_released_is_let_go_with_its_definition(run):
    server = ApiServer(of("q", 1))

    async def scenario(store):
        server.remove_definition()
        await until(lambda: store.warnings)
        assert store.warnings == [GONE_LINE + "its objects are let go"]
        assert names(store) == []

    run(server, ELASTIC_QUOTAS, scenario, keeps=False)


def test_reservations_go_with_their_definition_whatever_was_chosen(run):
    item = {
        "metadata": {"name": "r", "uid": "u", "resourceVersion": "1"},
        "spec": {
            "pod": {"namespace": "a", "name": "p", "uid": "p"},
            "nodeName": "n",
            "victims": [],
            "reason": "Reclaim",
        },
    }
    server = ApiServer(item)

    async def scenario(store):
        assert RESERVATIONS.known(store.cluster)
        server.remove_definition()
        await until(lambda: store.warnings)
        assert not RESERVATIONS.known(store.cluster)

    run(server, RESERVATIONS, scenario)


# What a watch brings late


def test_an_older_state_of_a_pod_does_not_replace_a_newer_one(run):
    server, waits = ApiServer(), pod("p")
    runs = pod("p", nodeName="n1") | {"status": {"phase": "Running"}}

    async def scenario(store):
        server.brings("ADDED", waits, 101)
        server.brings("MODIFIED", runs, 103)
        server.brings("MODIFIED", waits, 102)
        server.brings("ADDED", pod("last"), 104)
        await until(lambda: len(store.cluster.pods) == 2)
        assert store.cluster.pods["a/p"].node == "n1"

    run(server, PODS, scenario)


def test_a_pod_that_is_gone_does_not_come_back_by_an_older_state(run):
    server = ApiServer()

    async def scenario(store):
        server.brings("ADDED", pod("p"), 101)
        server.brings("DELETED", pod("p"), 103)
        server.brings("MODIFIED", pod("p"), 102)
        server.brings("ADDED", pod("last"), 104)
        await until(lambda: "a/last" in store.cluster.pods)
        assert "a/p" not in store.cluster.pods

    run(server, PODS, scenario)


@pytest.mark.parametrize("keeps", [True, False])
def test_the_end_of_an_object_that_comes_late_does_not_take_its_namesake(run, keeps):
    server = ApiServer(of("q", 1, "old", max={"cpu": "1"}))

    async def scenario(store):
        server.brings("ADDED", quota("a", "q", max={"cpu": "50"}), 102, "new")
        server.brings("DELETED", quota("a", "q", max={"cpu": "1"}), 101, "old")
        server.brings("MODIFIED", quota("a", "q", max={"cpu": "1"}), 101, "old")
        server.brings("ADDED", quota("a", "r"), 103, "last")
        await until(lambda: names(store) == ["q", "r"])
        assert store.cluster.quotas["a"]["q"].max == {"cpu": 50_000}
        server.brings("DELETED", quota("a", "q"), 104, "new")
        await until(lambda: names(store) == ["r"])

    run(server, ELASTIC_QUOTAS, scenario, keeps=keeps)


def test_after_a_new_list_versions_may_begin_again(run):
    """As after a restore of the API server's database."""
    server = ApiServer(of("q", 900, max={"cpu": "1"}))
    server.version = 900

    async def scenario(store):
        server.version = 20
        server.items = [of("q", 20, max={"cpu": "2"})]
        server.expire()
        await until(lambda: store.cluster.quotas["a"]["q"].max == {"cpu": 2000})
        server.brings("MODIFIED", quota("a", "q", max={"cpu": "3"}), 21, "u")
        await until(lambda: store.cluster.quotas["a"]["q"].max == {"cpu": 3000})

    run(server, ELASTIC_QUOTAS, scenario)


# What a watch has never told of


@pytest.fixture
def soon(monkeypatch):
    """Every watch has lasted, and what it does not bring soon it will not bring."""
    monkeypatch.setattr(reflector, "BRIEF", 0.0)
    monkeypatch.setattr(reflector, "CATCHING_UP", 0.1)


LOST = {
    "an end": ([pod("p")], {"a/p"}),
    "the last one's end": ([], set()),
    "a beginning": ([pod("p"), pod("q"), pod("r")], {"a/p", "a/q", "a/r"}),
}


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("case", LOST)
def test_what_no_watch_has_told_of_is_found_by_the_number_of_objects(run, case):
    server = ApiServer(pod("p"), pod("q"))

    async def scenario(store):
        server.items, left = LOST[case]
        server.version = 103
        server.cut()
        await until(lambda: set(store.cluster.pods) == left)

    with capture_logs() as logged:
        run(server, PODS, scenario)
    assert next(line["reason"] for line in logged if line["event"] == "watch lost") == "incomplete"


@pytest.mark.usefixtures("soon")
def test_it_is_found_also_where_something_newer_is_told(run, monkeypatch):
    monkeypatch.setattr(reflector, "CATCHING_UP", 1000.0)
    server = ApiServer(pod("p"), pod("q"))

    async def scenario(store):
        server.items, server.version = [pod("p")], 103
        server.brings("BOOKMARK", pod("p"), 102)
        server.cut()
        await until(lambda: server.counts)
        server.items, server.version = [pod("p"), pod("r")], 104
        server.brings("ADDED", pod("r"), 104)
        await until(lambda: set(store.cluster.pods) == {"a/p", "a/r"})

    run(server, PODS, scenario)
    assert server.lists == 2


@pytest.mark.usefixtures("soon")
def test_what_is_told_when_the_watch_is_resumed_is_not_listed_again(run):
    server = ApiServer(pod("p"), pod("q"))

    async def scenario(store):
        server.items, server.version = [pod("q"), pod("r")], 102
        server.cut()
        server.brings("DELETED", pod("p"), 101)
        server.brings("ADDED", pod("r"), 102)
        await until(lambda: set(store.cluster.pods) == {"a/q", "a/r"})
        server.items, server.version = [pod("q")], 103
        server.brings("DELETED", pod("r"), 103)
        await until(lambda: set(store.cluster.pods) == {"a/q"})
        counts = server.counts
        server.cut()
        await until(lambda: server.counts > counts)

    run(server, PODS, scenario)
    assert server.lists == 1


def test_a_wrong_number_leads_to_one_list_and_not_to_one_after_another():
    census = Census()
    census.begin({"p", "q"})
    assert census.expect("100", 7)
    census.reach(100)
    with pytest.raises(Incomplete, match="there are 7, and 2 are known"):
        census.reach(101)
    census.begin({"p", "q"})
    assert not census.expect("102", 7)
    census.reach(103)
    census.compare()


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("status", [500, 403, 410, 404])
def test_a_number_that_is_not_told_holds_up_no_watch(run, status):
    server = ApiServer(pod("p"))
    server.count_status = status

    async def scenario(store):
        server.items = []
        server.cut()
        server.brings("ADDED", pod("last"), 104)
        await until(lambda: "a/last" in store.cluster.pods)

    run(server, PODS, scenario)
    assert (server.lists, server.counts) == (1, 1)


def test_an_older_bookmark_takes_no_watch_back(run):
    server = ApiServer()

    async def scenario(store):
        server.brings("ADDED", pod("p"), 104)
        server.brings("BOOKMARK", pod("p"), 5)
        server.cut()
        await until(lambda: len(server.watched) == 2)
        assert "a/p" in store.cluster.pods

    run(server, PODS, scenario)
    assert server.watched == [100, 104]


# A kind that may not be read, or not yet


def train():
    return made(JOBS, "train", "a", {"uid": "j", "resourceVersion": "90"}, spec={"backoffLimit": 0})


def test_jobs_that_an_api_server_forbids_for_a_while_stay_known(run):
    server = ApiServer(train())

    async def scenario(store):
        await until(lambda: store.feeds["jobs"].synced)
        server.status = 403
        server.cut()
        await until(lambda: len(server.watched) >= 3)
        assert len(store.cluster.batch_jobs) == 1
        server.status = 200
        server.brings("DELETED", train(), 104)
        await until(lambda: not len(store.cluster.batch_jobs))

    run(server, JOBS, scenario)
    assert server.lists == 1


def test_jobs_that_are_forbidden_for_long_are_done_without(run, monkeypatch):
    monkeypatch.setattr(reflector, "FORBIDDEN_FOR", 0.3)
    server = ApiServer(train())

    async def scenario(store):
        await until(lambda: store.feeds["jobs"].synced)
        assert not store.feeds["jobs"].without
        server.status = 403
        server.cut()
        await until(lambda: not len(store.cluster.batch_jobs))
        assert store.feeds["jobs"].without

    run(server, JOBS, scenario)
    assert len(server.watched) >= 3


def test_a_new_api_server_is_asked_again_before_jobs_are_done_without(run, monkeypatch):
    monkeypatch.setattr(reflector, "GONE_AFTER", 60)
    server = ApiServer(train())
    server.status = 403

    async def starts():
        await until(lambda: server.lists >= 2)
        server.status = 200

    async def scenario(store):
        assert len(store.cluster.batch_jobs) == 1

    run(server, JOBS, scenario, starts)


# A list that undoes what is known


@pytest.mark.parametrize(
    ("items", "version"), [([], 200), ([], 1), ([pod("q")], 99)], ids=["empty", "empty and old", "old"]
)
def test_a_list_that_undoes_what_is_known_for_a_moment_is_not_believed(run, items, version, monkeypatch):
    monkeypatch.setattr(reflector, "GONE_AFTER", 1000.0)
    server = ApiServer(pod("p", nodeName="n1"))

    async def scenario(store):
        right, server.items, server.version = server.items, items, version
        asked = server.lists
        server.expire()
        await until(lambda: server.lists >= asked + 2)
        assert set(store.cluster.pods) == {"a/p"}
        assert store.feeds[PODS.label].connected_at is None  # so that it gets stale
        server.items, server.version = right, 201
        await until(lambda: store.feeds[PODS.label].connected_at is not None)
        assert set(store.cluster.pods) == {"a/p"}

    with capture_logs() as logged:
        run(server, PODS, scenario)
    assert [line["reason"] for line in logged if line["event"] == "watch lost"] == ["expired", "doubtful"]


@pytest.mark.parametrize(("items", "version"), [([], 200), ([pod("q")], 20)], ids=["empty", "restored"])
def test_it_is_believed_where_that_is_said_for_some_seconds(run, items, version):
    server = ApiServer(pod("p", nodeName="n1"))

    async def scenario(store):
        server.items, server.version = items, version
        server.expire()
        await until(lambda: set(store.cluster.pods) == {f"a/{each['metadata']['name']}" for each in items})
        assert store.feeds[PODS.label].synced

    run(server, PODS, scenario)


def test_an_empty_list_at_the_start_is_believed_at_once(run):
    server = ApiServer()

    async def scenario(_):
        assert server.lists == 1

    run(server, PODS, scenario)
