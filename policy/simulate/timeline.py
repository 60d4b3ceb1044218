"""A story played in time: objects come, pods run for their durations, and in between everything comes to rest.

Between two moments nothing happens but what time itself does: jobs begin to starve, and pods that are tried in vain
lose their claims. The scheduler and our controllers take no time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf

from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import shown
from policy.cluster.unschedulable import PATIENCE
from policy.objects.pod import Pod
from policy.objects.resources import Resources
from policy.reserve.starving import Terms
from policy.simulate.simulation import Simulation
from policy.stepwise import Steps

START = 1_000_000_000.0
"""The time since the epoch at which a story without dates begins: a day in 2001, so that everything has an age."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An object that comes to the cluster ``at`` so many seconds after the start; ``show`` gets the time then."""

    at: float
    show: Callable[[Cluster, float], None]
    is_pod: bool = False


@dataclass(slots=True)
class Life:
    """The life of a pod, in seconds after the start. ``end`` is finished, evicted, or empty until then.

    A Job that waits as a whole has one, too, until it is started: then its pods have theirs.
    """

    pod: Pod
    created: float
    started: float | None = None
    reserved: float | None = None
    ended: float | None = None
    node: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """The usage at one time: by elastic quota (its namespace) and by queue, with all queues below it."""

    at: float
    quotas: Mapping[str, Resources]
    queues: Mapping[str, Resources]


@dataclass(slots=True)
class Story:
    """The events of a story: the lives of pods by UID in the order in which they came, and the moments of changes.

    ``over`` are pods that had finished before they came, by UID. ``given_up_at``: when the story was given up because
    it took too long, in seconds after the start; ``never_came`` is how many pods had not come by then.
    """

    lives: dict[str, Life] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    over: dict[str, Pod] = field(default_factory=dict)
    given_up_at: float | None = None
    never_came: int = 0

    @property
    def length(self) -> float:
        """Seconds until the last event."""
        return self.moments[-1].at if self.moments else 0.0


class Timeline:
    """Plays arrivals. ``durations`` are the seconds that pods run, by UID; a pod without one runs for ever.

    The story begins at the present time of the simulation.
    """

    def __init__(
        self, simulation: Simulation, terms: Terms, arrivals: Sequence[Arrival], durations: Mapping[str, float]
    ) -> None:
        self.story = Story()
        self._start = simulation.now
        self._simulation = simulation
        self._terms = terms
        self._arrivals = sorted(arrivals, key=lambda arrival: arrival.at)
        self._came = 0
        self._durations = durations
        self._evictions = 0
        self._quiet_at = inf
        self._waiting: dict[str, Life] = {}
        self._running: dict[str, Life] = {}
        self._ends: list[tuple[float, str]] = []
        self._at = 0.0

    def play_steps(self, until: float = inf) -> Steps[None]:
        """Goes on until nothing more is to come, or so many seconds have passed. Iterate to the end, or ``give_up``."""
        at = 0.0
        while at <= until and at < inf:
            self._at = at
            self._simulation.advance(self._start + at)
            before = self._simulation.steps
            changed = any((self._end_what_is_over(at), self._show(at)))
            yield from self._simulation.settle_steps()
            changed = changed or self._simulation.steps != before
            if changed:
                self._observe(at)
            self._quiet_at = at + PATIENCE + 1 if changed else inf
            at = self._next(at)
            yield

    def give_up(self) -> None:
        """Ends the story early: it takes too long."""
        self.story.given_up_at = self._at
        self.story.never_came = sum(arrival.is_pod for arrival in self._arrivals[self._came :])

    def _show(self, at: float) -> bool:
        before = self._came
        while self._came < len(self._arrivals) and self._arrivals[self._came].at <= at:
            self._arrivals[self._came].show(self._simulation.cluster, self._start + at)
            self._came += 1
        return self._came != before

    def _end_what_is_over(self, at: float) -> bool:
        cluster, ended = self._simulation.cluster, False
        while self._ends and self._ends[0][0] <= at:
            life = self._running.pop(uid := heappop(self._ends)[1], None)
            if life is not None:
                life.ended, life.end = at, "finished"
                cluster.upsert_pod(replace(cluster.pods[uid], finished=True, succeeded=True), self._start + at)
                ended = True
        return ended

    def _over_at(self, uid: str, started: float, life: Life) -> float:
        """Returns when a pod's duration is over. A pod that was there already has run since its own start time."""
        since = min(started, life.pod.started - self._start) if life.pod.started else started
        return since + self._durations.get(uid, inf)

    def _observe(self, at: float) -> None:
        simulation, lives = self._simulation, self.story.lives
        cluster = simulation.cluster
        for eviction in simulation.evictions[self._evictions :]:
            uid = eviction.pod.uid
            life = lives.setdefault(uid, Life(eviction.pod, at))
            life.started = at if life.started is None else life.started
            life.node, life.ended, life.end = eviction.pod.node, at, "evicted"
            self._waiting.pop(uid, None)
            self._running.pop(uid, None)
        self._evictions = len(simulation.evictions)
        for uid, pod in cluster.pods.items():
            if uid in lives:
                continue
            if pod.finished:
                self.story.over[uid] = pod
            else:
                lives[uid] = self._waiting[uid] = Life(pod, at)
        for uid, life in list(self._waiting.items()):
            self._observe_waiting(uid, life, at)
        self.story.moments.append(
            Moment(
                at,
                {namespace: shown(cluster, account.used) for namespace, _, account in cluster.ledger.quotas()},
                {name: shown(cluster, cluster.ledger.queues.node(name).taken) for name in sorted(cluster.queues)},
            )
        )

    def _observe_waiting(self, uid: str, life: Life, at: float) -> None:
        """Notes what has become of a pod that waited at the moment before."""
        cluster = self._simulation.cluster
        pod = cluster.pods.get(uid)
        if pod is None:
            del self._waiting[uid]
            if life.pod.stands_for is not None:
                life.ended, life.end = at, "started"
            return
        life.pod = pod
        if pod.assigned:
            life.started, life.node = at, pod.node
            del self._waiting[uid]
            self._running[uid] = life
            if (over := self._over_at(uid, at, life)) < inf:
                heappush(self._ends, (max(over, at + 1) if over <= at else over, uid))
        elif life.reserved is None and cluster.reservations.reserved.of_pod(uid) is not None:
            life.reserved = at

    def _next(self, at: float) -> float:
        """Returns when the next thing happens."""
        times = [self._arrivals[self._came].at] if self._came < len(self._arrivals) else []
        times += [self._ends[0][0]] if self._ends else []
        times += [self._starves_at(life.pod) for life in self._waiting.values()]
        longest = self._terms.max_duration + 1 - self._start
        times += [reserved.since + longest for reserved in self._simulation.cluster.reservations.reserved]
        times += [self._quiet_at, self._simulation.again_at - self._start] if self._waiting else []
        return min((time for time in times if time > at), default=inf)

    def _starves_at(self, pod: Pod) -> float:
        """Returns when nodes may be reserved for a pod's job: once it and its group have waited for long enough."""
        group = self._simulation.cluster.membership.groups.get((pod.namespace, pod.group))
        created = max(pod.created, group.created if group else 0.0)
        return created - self._start + self._terms.starving_after + 1
