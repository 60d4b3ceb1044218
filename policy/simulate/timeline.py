"""A story played in time: objects come, pods run for their durations, and in between everything comes to rest.

Between two moments nothing happens but what time itself does: jobs begin to starve, and pods that are tried in vain
lose their claims. The scheduler and our controllers take no time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
MOST_MOMENTS = 10_000


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
    """The usage at one time: by elastic quota (its namespace) and by queue."""

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
        self._durations = durations
        self._evictions = 0
        self._quiet_at = inf

    def play_steps(self, until: float = inf) -> Steps[None]:
        """Goes on until nothing more is to come, or so many seconds have passed. Iterate to the end."""
        at = 0.0
        for _ in range(MOST_MOMENTS):
            self._simulation.advance(self._start + at)
            before = self._simulation.steps
            changed = any((self._end_what_is_over(at), self._show(at)))
            yield from self._simulation.settle_steps()
            changed = changed or self._simulation.steps != before
            if changed:
                self._observe(at)
            self._quiet_at = at + PATIENCE + 1 if changed else inf
            at = self._next(at)
            if at > until or at == inf:
                return
        self.story.given_up_at = at
        self.story.never_came = sum(arrival.is_pod for arrival in self._arrivals)

    def _show(self, at: float) -> bool:
        shown = False
        while self._arrivals and self._arrivals[0].at <= at:
            arrival = self._arrivals.pop(0)
            arrival.show(self._simulation.cluster, self._start + at)
            shown = True
        return shown

    def _end_what_is_over(self, at: float) -> bool:
        cluster, ended = self._simulation.cluster, False
        for uid, life in self.story.lives.items():
            if life.started is not None and life.ended is None and self._over_at(uid, life) <= at:
                life.ended, life.end = at, "finished"
                cluster.upsert_pod(replace(cluster.pods[uid], finished=True, succeeded=True), self._start + at)
                ended = True
        return ended

    def _over_at(self, uid: str, life: Life) -> float:
        """Returns when a pod's duration is over. A pod that was there already has run since its own start time."""
        if life.started is None:
            return inf
        since = min(life.started, life.pod.started - self._start) if life.pod.started else life.started
        return since + self._durations.get(uid, inf)

    def _observe(self, at: float) -> None:
        simulation, lives = self._simulation, self.story.lives
        cluster = simulation.cluster
        for eviction in simulation.evictions[self._evictions :]:
            life = lives.setdefault(eviction.pod.uid, Life(eviction.pod, at))
            life.started = at if life.started is None else life.started
            life.node, life.ended, life.end = eviction.pod.node, at, "evicted"
        self._evictions = len(simulation.evictions)
        for uid, pod in cluster.pods.items():
            if pod.finished and uid not in lives:
                self.story.over[uid] = pod
                continue
            life = lives.setdefault(uid, Life(pod, at))
            life.pod = pod
            if pod.assigned and life.started is None:
                life.started, life.node = at, pod.node
            if life.reserved is None and life.started is None and cluster.reservations.reserved.of_pod(uid) is not None:
                life.reserved = at
        for uid, life in lives.items():
            if life.pod.stands_for is not None and life.ended is None and uid not in cluster.pods:
                life.ended, life.end = at, "started"
        self.story.moments.append(
            Moment(
                at,
                {namespace: shown(cluster, account.used) for namespace, _, account in cluster.ledger.quotas()},
                {name: shown(cluster, cluster.ledger.queues.account(name).taken) for name in sorted(cluster.queues)},
            )
        )

    def _next(self, at: float) -> float:
        """Returns when the next thing happens."""
        alive = {uid: life for uid, life in self.story.lives.items() if life.ended is None}
        waiting = [life for life in alive.values() if life.started is None]
        times = [arrival.at for arrival in self._arrivals[:1]]
        ends = [self._over_at(uid, life) for uid, life in alive.items()]
        times += [at + 1 if end <= at else end for end in ends]  # what is overdue ends in a second
        times += [self._starves_at(life.pod) for life in waiting]
        longest = self._terms.max_duration + 1 - self._start
        times += [reserved.since + longest for reserved in self._simulation.cluster.reservations.reserved]
        times += [self._quiet_at] if waiting else []
        return min((time for time in times if time > at), default=inf)

    def _starves_at(self, pod: Pod) -> float:
        """Returns when nodes may be reserved for a pod's job: once it and its group have waited for long enough."""
        group = self._simulation.cluster.membership.groups.get((pod.namespace, pod.group))
        created = max(pod.created, group.created if group else 0.0)
        return created - self._start + self._terms.starving_after + 1
