"""Replicas behind a Service are replaced one after the other, under load."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self

import pytest

from tests.cases.serving import Server, serving
from tests.controlplane.objects import is_bound, pods
from tests.controlplane.processes import free_port, wait_until
from tests.controlplane.quotaward import install_rights
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import OVER_MAX, is_refused
from tests.store.proxy import Proxy

LONG = bool(os.environ.get("QUOTAWARD_LONG"))
TEAMS = 10 if LONG else 3
MAX, CREATED = (300, 360) if LONG else (80, 100)
"""Pods that each team may have on nodes, and that it creates."""
REPLACED = 4 if LONG else 2
"""How many times whoever leads is replaced, each time among as many new pods."""
QPS = 5000 if LONG else 40  # requests a second of the scheduler: else a few pods were bound too soon
PROBED = 0.1  # seconds: as the kubelet does, only more often, so that a short run has several hand-overs


class Service:
    """Leads new connections to the replica that is ready; those that there are stay where they are."""

    def __init__(self) -> None:
        self.replicas: list[Server] = []
        self._nobody = free_port()
        self._proxy = Proxy(self._nobody)
        self._closing = threading.Event()
        self._prober = threading.Thread(target=self._probe, daemon=True)
        self.url = f"http://127.0.0.1:{self._proxy.port}"

    def __enter__(self) -> Self:
        self._proxy.__enter__()
        self._prober.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._prober.join(10)
        self._proxy.__exit__()

    def ready(self) -> list[Server]:
        return [each for each in list(self.replicas) if says(each) == "ok"]

    def _probe(self) -> None:
        while not self._closing.wait(PROBED):
            self._proxy.target = next((each.port for each in self.ready()), self._nobody)


def says(replica: Server) -> str:
    """What a replica says of itself: ok, or why it should not be asked."""
    try:
        answer = replica.get("/readyz").json
    except OSError:
        return "nothing"
    return answer.get("detail") or answer["status"]


@pytest.mark.timeout(900 if LONG else 300)
def test_nothing_is_lost_or_counted_twice_while_replicas_are_replaced(cluster, watch, tmp_path):
    api = cluster.api
    cluster.nodes(TEAMS, cpu=2 * MAX, pods=4 * MAX)
    teams = [cluster.namespace() for _ in range(TEAMS)]
    for team in teams:
        cluster.quota(team, max={"cpu": MAX})
    watches = [watch(team) for team in teams]
    install_rights(api)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(api.kubeconfig(api.service_account_token("quotaward", "quotaward-system")))
    with ExitStack() as stack:
        service = stack.enter_context(Service())

        def start() -> Server:
            log = tmp_path / f"replica-{len(service.replicas)}.log"
            flags = ("--kubeconfig", str(kubeconfig), "--leader.only-leader-answers")
            replica = stack.enter_context(serving(*flags, log=log, path_when_up="/healthz"))
            service.replicas.append(replica)
            wait_until(lambda: says(replica) in ("ok", "another replica leads"), "the replica leads or stands by")
            return replica

        for _ in range(2):
            start()
        connection = {"kubeconfig": str(cluster.control_plane.kubeconfig), "qps": QPS, "burst": QPS}
        asked = extender(service.url, httpTimeout="2s")
        stack.enter_context(Scheduler(cluster.control_plane, asked, clientConnection=connection))
        background = stack.enter_context(ThreadPoolExecutor(1))

        def bound() -> int:
            return sum(len(each.ever(is_bound)) for each in watches)

        amid = 0
        for number in range(1, REPLACED + 1):
            start()
            before = bound()
            some = [each for team in teams for each in pods(CREATED // REPLACED, team, prefix=f"pod-{number}")]
            creating = background.submit(api.create_all, some)
            wait_until(
                lambda before=before: bound() >= before + 5,
                "some more are bound",
                120,
                detail=lambda creating=creating: f"{creating}, pods: {[len(each.pods) for each in watches]}",
            )
            amid += bound() < TEAMS * min(MAX, number * CREATED // REPLACED)
            [leader] = service.ready()
            leader.process.send_signal(signal.SIGTERM)
            assert leader.process.wait(30) == 0
            wait_until(lambda: len(service.ready()) == 1, "another replica leads", 30)
            creating.result()
        assert amid, "all were bound already whenever a replica was replaced"
        wait_until(
            lambda: all(each.bound == MAX and refused(each) == CREATED - MAX for each in watches),
            f"of each team {MAX} pods are bound, and the others refused",
            300,
            every=0.5,
            detail=lambda: str([(each.bound, refused(each)) for each in watches]),
        )
        assert [each.most_bound() for each in watches] == [MAX] * TEAMS
        assert [len(each.pods) for each in watches] == [CREATED] * TEAMS
        [leader] = service.ready()
        wait_until(lambda: used(leader) == dict.fromkeys(teams, str(MAX)), "what it counts is what is there")


def refused(watch) -> int:
    return sum(is_refused(each, OVER_MAX) for each in watch.pods if not is_bound(each))


def used(replica: Server) -> dict[str, str]:
    """What a replica counts as used, by team."""
    items = replica.get("/api/v1/elasticquotas").json["items"]
    return {item["namespace"]: item["used"]["cpu"] for item in items}
