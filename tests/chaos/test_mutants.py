"""The checker finds each rule that is broken, on the real control plane, and nothing where none is."""

import itertools
import os
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.checker import Leeway, violations
from tests.chaos.devices import DRIVERS, NIC, of_class
from tests.chaos.history import KINDS, History
from tests.chaos.mutants import MUTANTS
from tests.chaos.recorder import Recorder
from tests.chaos.stuck import stuck
from tests.controlplane.cluster import Cluster
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.devices import asking, claims, device_class, devices, made, of_template
from tests.controlplane.objects import GPU, is_bound, job, node, pod
from tests.controlplane.pod_groups import install_pod_groups
from tests.controlplane.processes import wait_until
from tests.controlplane.queueing import queue_jobs_in, queueing
from tests.controlplane.quotaward import Quotaward, install_definitions
from tests.controlplane.scheduler import Scheduler, extender

pytestmark = pytest.mark.skipif(
    not os.environ.get("QUOTAWARD_LONG"), reason="takes a quarter of a minute per mutant: QUOTAWARD_LONG=1"
)
LEEWAY = Leeway(granted=5, seen=2)
QUIET = 4
FLAGS = ("--reserve.starving-after", "2", "--leader.lease-duration", "3", "--reserve.max-nodes-percent", "100")


@pytest.fixture
def cluster(control_plane):
    install_definitions(control_plane.api)
    install_pod_groups(control_plane.api)
    cluster = Cluster(control_plane)
    yield cluster
    cluster.wipe()


@pytest.fixture
def recorder(cluster):
    with Recorder(cluster.api, (*KINDS, "jobs")) as recorder:
        yield recorder


def on(part, name, namespace, **arguments):
    """A pod that can only go to the node of that part of the play."""
    return pod(name, namespace, nodeSelector={"part": part}, **arguments)


class Play:
    """Each rule has a part, on a node of its own, in which it is put to the test."""

    def __init__(self, cluster, recorder):
        self.api, self.cluster, self.recorder = cluster.api, cluster, recorder
        self.numbers = itertools.count()
        sizes = {
            "burst": 64,
            "gpu": 1,
            "protected": 4,
            "out": 2,
            "critical": 2,
            "daemon": 1,
            "lent": 1,
            "reserved": 4,
            "promised": 4,
            "whole": 4,
            "raised": 2,
            "claims": 4,
            "shared": 2,
        }
        for part, cpu in sizes.items():
            self.api.create(node(part, cpu=cpu, gpus=8, labels={"part": part}))
        self.api.create(device_class(NIC, DRIVERS[NIC]))
        self.api.create_all([devices(4, "claims", DRIVERS[NIC]), devices(1, "shared", DRIVERS[NIC])])

    def team(self, **bounds):
        namespace = self.cluster.namespace()
        if bounds:
            self.cluster.quota(namespace, **bounds)
        return namespace

    def prepare(self):
        """Everything is as it may stay for long."""
        self.claiming = self.team(min={of_class(NIC): 2}, max={of_class(NIC): 2})
        self.sharing = self.team(min={of_class(NIC): 2}, max={of_class(NIC): 2})
        self.api.create(of_template("one", self.claiming, asking(NIC)))
        self.api.create(made("ResourceClaim", "one", self.sharing, spec=asking(NIC)))
        self.burst = self.team(min={"cpu": 12}, max={"cpu": 10})
        self.raised = self.team(min={"cpu": 2}, max={"cpu": 1})
        self.team(min={"cpu": 4})  # lends all that it has: only max bounds the two
        self.poor, _ = self.team(min={GPU: 1}), self.team(min={GPU: 1})
        self.queued = self.team()
        queue_jobs_in(self.cluster, self.queued)
        full, out, critical = self.team(min={"cpu": 4}), self.team(min={"cpu": 2}), self.team(min={"cpu": 0})
        daemons, lent, free = self.team(min={"cpu": 0}), self.team(min={"cpu": 0}), self.team()
        opted_out, daemon = on("out", "stays", out, cpu=2), on("daemon", "stays", daemons)
        opted_out["metadata"]["annotations"] = {"quotaward.dev/preemptible": "false"}
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
        daemon["metadata"]["ownerReferences"] = [owner]
        self.owners = {
            "protected": self.team(min={"cpu": 4}),
            "out": self.team(min={"cpu": 2}),
            "critical": self.team(min={"cpu": 2}),
            "daemon": self.team(min={"cpu": 1}),
            "lent": self.team(min={"cpu": 1}),
        }
        stay = [
            on("protected", "stays", full, cpu=4),
            opted_out,
            on("critical", "stays", critical, cpu=2, priorityClassName="system-cluster-critical"),
            daemon,
            on("lent", "goes", lent),
            on("reserved", "stays", free),
            on("promised", "ends", free, cpu=3, activeDeadlineSeconds=3600),
            on("whole", "ends-too", free, cpu=3, activeDeadlineSeconds=3600),
        ]
        self.api.create_all(stay)
        wait_until(lambda: sum(map(is_bound, self.recorder.objects()["pods"])) == len(stay), "all are on nodes")
        self.api.create(on("burst", "borrows", out, cpu=2))
        self.free = free

    def act(self):
        """Owners come for what is theirs, many pods at once, and one that is too large for what is free."""
        wait_until(lambda: self.since("elasticquotas") > LEEWAY.granted, "the quotas bind whatever was let through")
        self.api.create_all(on(part, "owner", team) for part, team in self.owners.items())
        self.api.create_all(on(part, "large-" + part, self.free, cpu=4) for part in ("reserved", "promised"))
        self.api.create(self.job("large", cpu=4))
        self.api.create_all(on("gpu", f"gpu-{number}", self.poor, cpu=None, gpus=1) for number in range(2))
        self.api.create_all(on("burst", f"burst-{number}", self.burst) for number in range(30))
        self.api.create_all(self.with_claim("claims", self.claiming, resourceClaimTemplateName="one") for _ in range(4))
        self.api.create_all(self.with_claim("shared", self.sharing, resourceClaimName="one") for _ in range(2))
        self.api.create_all(on("raised", f"raised-{number}", self.raised) for number in range(2))
        wait_until(lambda: not self.on_nodes("goes"), "what was lent is taken back")

    def with_claim(self, part, namespace, **source):
        item = on(part, f"{part}-{next(self.numbers)}", namespace)
        claims(item["spec"], **source)
        return item

    def job(self, name, cpu):
        """A Job that waits as a whole, and whose pod can only go to its node."""
        item = job(name, self.queued, cpu=cpu)
        item["spec"]["template"]["spec"]["nodeSelector"] = {"part": "whole"}
        return item

    def end(self):
        """Some come to reserved nodes, one to borrow what is all lent; at rest a quota is raised."""
        for part in ("reserved", "promised", "whole"):
            wait_until(
                lambda part=part: self.since("reservations", part) > LEEWAY.granted,
                "what was let through before has arrived",
            )
        self.api.create_all([on("reserved", "ordinary", self.free), on("whole", "ordinary", self.team())])
        self.api.create(self.job("small", cpu="500m"))
        self.api.create_all(
            on("promised", name, self.free, cpu="500m", activeDeadlineSeconds=seconds)
            for name, seconds in (("in-time", 600), ("too-long", 7200))
        )
        self.api.create(on("gpu", "gpu-too-many", self.poor, cpu=None, gpus=1))
        self.rest()
        self.cluster.change_quota(self.raised, min={"cpu": 2}, max={"cpu": 2})
        self.rest()

    def rest(self):
        began = time.monotonic()  # what was done just now has not been seen yet
        wait_until(
            lambda: time.monotonic() - max(began, self.recorder.records[-1].at) > QUIET, "nothing happens any more"
        )

    def on_nodes(self, *names):
        there = [each["metadata"]["name"] for each in self.recorder.objects()["pods"] if is_bound(each)]
        return set(names) & set(there)

    def since(self, kind, node=None):
        """Seconds since the last of the objects of a kind came (for reservations: the first of a node's)."""
        seen = [record for record in self.recorder.records if record.kind == kind and record.type != "MODIFIED"]
        if node:
            seen = [record for record in seen if record.object["spec"]["nodeName"] == node][:1]
        return time.monotonic() - max((record.at for record in seen), default=time.monotonic())

    def found(self):
        return violations(History(list(self.recorder.records)), LEEWAY) + stuck(self.recorder.objects())


@pytest.fixture
def play(cluster, recorder):
    return Play(cluster, recorder)


@pytest.fixture
def performed(play):
    """Performs the play with a Quotaward that is started by this command; what the checker finds afterwards."""

    def perform(*command):
        quotaward = Quotaward(play.cluster.control_plane, *FLAGS)
        quotaward.process.command[:1] = command or quotaward.process.command[:1]
        quotaward.process.env["PYTHONPATH"] = str(Path(__file__).parents[2])
        control_plane = play.cluster.control_plane
        with (
            ControllerManager(control_plane, "resourceclaim-controller", "job-controller"),
            queueing(play.cluster),
            quotaward,
            Scheduler(control_plane, extender(quotaward.url)),
        ):
            play.prepare()
            play.act()
            play.end()
            assert play.on_nodes("in-time"), "the reserved node is used until the promised start"
            return play.found()

    return perform


def test_nothing_is_found_where_no_rule_is_broken(performed):
    assert performed() == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_rule_is_found(performed, mutant):
    found = performed(sys.executable, "-m", "tests.chaos.mutants", mutant)
    assert any(MUTANTS[mutant][1] in each for each in found), found
