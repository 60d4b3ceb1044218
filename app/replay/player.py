"""Plays a log with the policy in a folder: its quotas, queues, namespaces and nodes."""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import monotonic

from app import settings as settings_module
from app.replay.log import CannotRead, Log, amount
from app.settings import Settings
from app.whatif import scenario
from policy.cluster.cluster import Cluster
from policy.objects.node import Node
from policy.objects.resources import add
from policy.simulate.replay import PlayedJob, RecordedJob, Replay, State
from policy.simulate.simulation import Simulation
from policy.simulate.timeline import START

SETTINGS = "settings.yaml"
"""The file of a policy that is no manifest: a configuration file of a server, whose settings hold for this policy."""
PODS_PER_NODE = "1000"
MOST_NODES = 100_000
STEPS = 500
"""Steps between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a log that is played, and of which figures are given, in seconds on its clock."""

    begin: float = -inf
    end: float = inf


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy: what to call it, and the folder with its manifests (None: there are no quotas)."""

    name: str
    folder: Path | None


@dataclass(slots=True)
class Played:
    """The fate of the jobs that were submitted in the window, and the use of all jobs in it (amounts x seconds).

    ``capacity`` of the cluster in amounts, ``length`` of the window in seconds. ``stopped_at`` is the time on the log's
    clock at which it was stopped, None if it was played to the end; ``to_come``: how many jobs had not come by then.
    ``promises`` counts promised starts by what became of them. ``begin`` of the window and the ``states`` since are on
    the log's clock.
    """

    policy: str
    jobs: list[PlayedJob]
    used: dict[str, float]
    capacity: dict[str, int]
    entitled: dict[str, dict[str, int]]
    length: float
    stopped_at: float | None = None
    to_come: int = 0
    promises: Mapping[str, int] = field(default_factory=dict)
    begin: float = 0.0
    states: Sequence[State] = ()


@dataclass(frozen=True, slots=True)
class Manner:
    """How jobs are played.

    ``resumes``: a job that is taken back goes on where it stood; else it begins anew. ``gangs``: each is a pod group;
    else it waits as a whole. ``enforced``: what its user said about its run time is a deadline, at which it is ended.
    """

    resumes: bool = False
    gangs: bool = False
    enforced: bool = False


def in_window(jobs: Iterable[RecordedJob], window: Window) -> list[RecordedJob]:
    """Returns the jobs of a window: those submitted in it, and those that were recorded to wait or run at its begin.

    The latter come at its begin; one that ran has only the rest of its run before it.
    """
    found = []
    for job in jobs:
        started = job.submitted + (job.waited or 0.0)
        if window.begin <= job.submitted < window.end:
            found.append(job)
        elif job.submitted < window.begin < started + job.run:
            rest = min(job.run, started + job.run - window.begin)
            limit = max(1, math.ceil(job.limit - (job.run - rest))) if job.limit else 0
            waited = max(0.0, started - window.begin)
            found.append(replace(job, submitted=window.begin, run=rest, waited=waited, limit=limit))
    return found


def parse_nodes(text: str) -> list[Node]:
    """Parses nodes that are alike: ``120x2``, ``4x64x256Gi`` or ``2x64x1Ti+nvidia.com/gpu=8``. Raises CannotRead."""
    sizes, *others = text.split("+")
    try:
        number, *amounts = sizes.split("x")
        allocatable = {"pods": amount("pods", PODS_PER_NODE)}
        for resource, value in zip(("cpu", "memory")[: max(1, len(amounts))], amounts, strict=True):
            allocatable[resource] = amount(resource, value)
        for each in others:
            resource, _, value = each.partition("=")
            allocatable[resource] = amount(resource, value)
        if not 1 <= int(number) <= MOST_NODES:
            raise ValueError(f"there may be {MOST_NODES} nodes at most")
    except ValueError as error:
        raise CannotRead(f"--nodes: {text!r} is not like 120x2 or 4x64x256Gi+nvidia.com/gpu=8: {error}") from error
    return [Node(f"node-{index:05}", allocatable) for index in range(int(number))]


def nodes_of(log: Log) -> list[Node]:
    """Returns the nodes that a log tells of; none if it does not."""
    if not log.nodes or not log.cores:
        return []
    return parse_nodes(f"{log.nodes}x{max(1, log.cores // log.nodes)}")


def jittered(jobs: Sequence[RecordedJob], seconds: float, run: int) -> list[RecordedJob]:
    """Returns the jobs, each submitted up to so many seconds later; as they are in run 0. A run is always the same."""
    dice = random.Random(run)  # noqa: S311 - it hides nothing
    return (
        list(jobs) if run == 0 else [replace(job, submitted=job.submitted + dice.uniform(0, seconds)) for job in jobs]
    )


class Player:
    """Plays jobs with policies. ``nodes`` are added to a policy that has none, ``settings`` hold for one without."""

    def __init__(self, settings: Settings, nodes: Sequence[Node], manner: Manner, window: Window) -> None:
        self._settings = settings
        self._nodes = nodes
        self._manner = manner
        self._window = window
        self.problems: list[str] = []

    def play(
        self,
        policy: Policy,
        jobs: Sequence[RecordedJob],
        seconds: float = inf,
        progress: Callable[[float], None] = lambda _: None,
    ) -> Played:
        """Plays jobs, for so many seconds at most. ``progress`` is called with the part of them that has come.

        Raises CannotRead for a policy that cannot be used, InvalidSettings for its settings, and PingPong.
        """
        settings = self._settings_of(policy)
        cluster, terms = self._cluster(policy, settings), settings.reserve.terms
        simulation = Simulation(cluster, terms, START, delays=settings.reclaim.delays)
        jobs = [self._as_asked(cluster, job) for job in jobs]
        last = max((job.submitted for job in jobs), default=0.0)
        begin = max(self._window.begin, min((job.submitted for job in jobs), default=0.0))
        end = min(self._window.end, last)
        gangs = terms if self._manner.gangs else None
        replay = Replay(simulation, jobs, resumes=self._manner.resumes, gangs=gangs)
        stop, used = monotonic() + seconds, dict[str, float]()
        in_time = True
        for until in (end, inf):
            work = replay.play_steps(until)
            for step, _ in enumerate(work):
                if step % STEPS == 0:
                    progress(1 - replay.remaining / max(1, len(jobs)))
                    if not (in_time := monotonic() < stop):
                        break
            used = used or dict(replay.used)
            if not in_time:
                break
        capacity: dict[str, int] = {}
        for node in cluster.table.nodes():
            add(capacity, node.allocatable)
        return Played(
            policy.name,
            list(replay.played.values()),
            used,
            capacity,
            {namespace: dict(quota.min) for namespace, quota, _ in cluster.ledger.quotas()},
            max(0.0, (end if in_time else replay.at) - begin),
            None if in_time else replay.at,
            0 if in_time else replay.remaining,
            simulation.promises,
            begin,
            replay.states,
        )

    def _settings_of(self, policy: Policy) -> Settings:
        """Returns the settings that a policy has of its own, or else those that hold for all."""
        file = policy.folder / SETTINGS if policy.folder is not None else None
        if file is None or not file.is_file():
            return self._settings
        return settings_module.of_file(file)

    def _cluster(self, policy: Policy, settings: Settings) -> Cluster:
        if policy.folder is not None:
            own = policy.folder / SETTINGS
            read = scenario.read(policy.folder, settings.groups.legacy, settings.jobs.rows, without=own)
            self.problems += read.problems
            arrivals = [each for each in read.arrivals if not each.is_pod]
            if not arrivals and not own.is_file():
                raise CannotRead(f"--policy: {policy.folder} has no manifests")
        else:
            arrivals = []
        cluster = scenario.initial_cluster(arrivals, settings, START)
        if not cluster.table.rows:
            for node in self._nodes:
                cluster.upsert_node(node)
        if not cluster.table.rows:
            raise CannotRead("--nodes: neither a policy nor the log has nodes; name some, like 120x2")
        return cluster

    def _as_asked(self, cluster: Cluster, job: RecordedJob) -> RecordedJob:
        """Returns a job without resources that no node lists: the log may tell of more than the nodes.

        Run times that are enforced end it. Else nothing is known of them.
        """
        request = {name: job.request[name] for name in job.request if cluster.table.lists(name)}
        limit = job.limit if self._manner.enforced else 0
        return replace(job, request=request, limit=limit, run=min(job.run, limit or inf))
