"""A burst of Jobs on a real control plane, and the same burst in a replay: of its log, with the policy as exported.

The Jobs wait as a whole, or their pods wait for the scheduler, as a pod group if a Job has several.
"""

import csv
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import inf
from pathlib import Path
from typing import Self

from app.replay import tables
from app.replay.log import Log
from app.replay.player import Manner, Played, Player, Policy, Window
from app.settings import Settings
from tests.chaos.history import Record, is_evicted
from tests.chaos.recorder import Recorder
from tests.controlplane.cluster import Cluster
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.objects import Object, is_bound, job
from tests.controlplane.pod_groups import install_pod_groups, pod_group
from tests.controlplane.processes import wait_until
from tests.controlplane.queueing import queue_jobs_in, queueing
from tests.controlplane.quotaward import Quotaward
from tests.e2e.short_jobs import ENDS_AFTER

EXPORTED = {
    "nodes": ("v1", "Node"),
    "namespaces": ("v1", "Namespace"),
    "resourcequotas": ("v1", "ResourceQuota"),
    "elasticquotas": ("scheduling.x-k8s.io/v1alpha1", "ElasticQuota"),
    "queues": ("scheduling.volcano.sh/v1beta1", "Queue"),
}
"""What a policy consists of, by its resource: API version and kind, which the items of a list do not name."""
KNOWN_GROUPS = {"kind": "podgroups.scheduling.x-k8s.io"}
NO_FAILURE = 1000
"""A ``backoffLimit`` that evictions do not use up."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A Job of so many pods of one core each. ``run``: for how many seconds each of them runs; 0 for ever.

    ``after``: so many seconds after the first of its burst it is made, at the earliest.
    """

    name: str
    team: str
    pods: int = 1
    run: int = 0
    after: float = 0.0


class Burst:
    """Jobs that are made while this is open, and what became of them. ``whole``: they wait as a whole."""

    def __init__(self, cluster: Cluster, quotaward: Quotaward, *, whole: bool) -> None:
        self._cluster = cluster
        self._quotaward = quotaward
        self._whole = whole
        self._stack = ExitStack()
        self._recorder = Recorder(cluster.api, ("pods", "jobs"))
        self.made: list[tuple[Wanted, float]] = []

    def __enter__(self) -> Self:
        if self._whole:
            self._stack.enter_context(queueing(self._cluster))
        else:
            install_pod_groups(self._cluster.api)
        self._stack.enter_context(ControllerManager(self._cluster.control_plane, "job-controller"))
        self._stack.enter_context(self._recorder)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def team(self, name: str, queue: str | None = None) -> str:
        """Returns a namespace, in which Jobs wait as they do in this burst."""
        namespace = self._cluster.namespace(name, queue)
        if self._whole:
            queue_jobs_in(self._cluster, namespace)
        return namespace

    def make(self, jobs: Sequence[Wanted]) -> None:
        """Makes Jobs one after the other, once the groups of all of them are known."""
        if not self._whole:
            self._make_groups([each for each in jobs if each.pods > 1])
        began = time.monotonic()
        for each in jobs:
            time.sleep(max(0.0, began + each.after - time.monotonic()))  # when it comes is what is played
            self.made.append((each, time.monotonic()))
            self._cluster.api.create(self._job(each))

    def _make_groups(self, jobs: Sequence[Wanted]) -> None:
        def known() -> float:
            return self._quotaward.metric("quotaward_store_objects", **KNOWN_GROUPS)

        number = known() + len(jobs)
        self._cluster.api.create_all(pod_group(each.name, each.team, each.pods) for each in jobs)
        wait_until(lambda: known() == number, "all groups are known")

    def _job(self, wanted: Wanted) -> Object:
        group = wanted.name if wanted.pods > 1 and not self._whole else ""
        item = job(wanted.name, wanted.team, wanted.pods, group=group, backoffLimit=NO_FAILURE)
        if wanted.run:
            item["spec"]["template"]["metadata"]["annotations"] = {ENDS_AFTER: f"{wanted.run}s"}
        return item

    def bound(self) -> Counter[str]:
        """Returns how many pods of each team are on nodes now, those that have ended left out."""
        return Counter(each["metadata"]["namespace"] for each in self._recorder.objects()["pods"] if is_bound(each))

    def _records(self, kind: str) -> list[Record]:
        return [record for record in list(self._recorder.records) if record.kind == kind]

    def evicted(self) -> Counter[str]:
        """Returns how many pods of each team had been on a node and went, or were evicted, before they had ended."""
        ended, gone = set[str](), dict[str, str]()
        for record in self._records("pods"):
            uid, item = record.object["metadata"]["uid"], record.object
            if item["status"].get("phase") == "Succeeded":
                ended.add(uid)
            if item["spec"].get("nodeName") and (record.type == "DELETED" or is_evicted(item)):
                gone.setdefault(uid, item["metadata"]["namespace"])
        return Counter(team for uid, team in gone.items() if uid not in ended)

    def starts(self) -> dict[str, float]:
        """Returns when all pods of each Job were seen to be on nodes first, by the Job's name."""
        there, found = dict[str, set[str]](), dict[str, float]()
        wanted = {each.name: each.pods for each, _ in self.made}
        for record in self._records("pods"):
            name = record.object["metadata"]["labels"]["batch.kubernetes.io/job-name"]
            running = there.setdefault(name, set())
            (running.add if _is_on_node(record) else running.discard)(record.object["metadata"]["uid"])
            if len(running) >= wanted[name]:
                found.setdefault(name, record.at)
        return found

    def turns(self, team: str) -> list[str]:
        """Returns the names of the Jobs of a team that waited as a whole, in the order in which they were started."""
        items = (record.object for record in self._records("jobs"))
        started = (item["metadata"] for item in items if not item["spec"].get("suspend"))
        return list(dict.fromkeys(each["name"] for each in started if each["namespace"] == team))

    def ended(self) -> int:
        """Returns how many pods have run to their end."""
        return sum(each["status"].get("phase") == "Succeeded" for each in self._recorder.objects()["pods"])

    def write_log(self, file: Path) -> None:
        """Writes the Jobs that were made as a log for replay; with the waits of those that have started."""
        starts = self.starts()
        with file.open("w", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(("id", "team", "submit", "wait", "run", "pods", "cpu"))
            for each, at in self.made:
                wait = f"{starts[each.name] - at:.3f}" if each.name in starts else ""
                rows.writerow((each.name, each.team, f"{at:.3f}", wait, each.run or 1, each.pods, 1))

    def play(self, folder: Path) -> Played:
        """Plays the burst so far; ``folder`` is for its log and its policy. Jobs that never end never do."""
        log = self.log(folder)
        jobs = [
            job if wanted.run else replace(job, run=inf) for job, (wanted, _) in zip(log.jobs, self.made, strict=True)
        ]
        player = Player(Settings(), (), Manner(gangs=not self._whole), Window())
        played = player.play(Policy("exported", export_policy(self._cluster, folder)), jobs)
        assert player.problems == []
        return played

    def log(self, folder: Path) -> Log:
        """Writes the log into a folder, and returns how replay reads it."""
        folder.mkdir(exist_ok=True)
        self.write_log(folder / "log.csv")
        with (folder / "log.csv").open(newline="") as lines:
            log = tables.read_csv(lines, {}, "")
        assert log.problems == []
        return log


def _is_on_node(record: Record) -> bool:
    """Whether a pod is on a node, or has run there to its end."""
    succeeded = record.object["status"].get("phase") == "Succeeded"
    return bool(record.object["spec"].get("nodeName")) and (record.type != "DELETED" or succeeded)


def export_policy(cluster: Cluster, folder: Path) -> Path:
    """Writes what a policy consists of, as it is in the cluster, into a folder; returns that."""
    policy = folder / "policy"
    policy.mkdir(parents=True, exist_ok=True)
    items = [
        {"apiVersion": version, "kind": kind} | item
        for resource, (version, kind) in EXPORTED.items()
        for item in cluster.api.items(resource)
    ]
    (policy / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return policy


def at_rest(played: Played) -> Counter[str]:
    """Returns how many pods of each team run at the end of a replay in which nothing ends."""
    counts = Counter[str]()
    for each in played.jobs:
        if each.started is not None and each.ended is None:
            counts[each.job.team] += each.job.pods
    return counts


def name_of(job_name: str) -> str:
    """Returns the name of a Job in the cluster by that in a replay, which adds the line of the log."""
    return job_name.rpartition("-")[0]


def in_turn(*lists: Sequence[Wanted]) -> Iterator[Wanted]:
    """Yields Jobs of several lists in turn, as they would come from teams that know nothing of each other."""
    for of_each in zip_longest(*lists):
        yield from (wanted for wanted in of_each if wanted is not None)
