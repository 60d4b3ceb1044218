"""Opens the gates of waiting pods, and starts Jobs that wait as a whole, in the fair order. For the leader only.

The next one is chosen only when a seat is free for it, whatever it is, so that the choice uses the latest state. Jobs
have seats of their own, and more of them: each is a request to the API server that its pods do not wait in line for.
"""

import asyncio
import time
from functools import partial

import structlog

from app.actuators.events import Event, about_pod
from app.actuators.protocol import ActionFailed, Actuator, NoRight, Rejected
from app.controllers.keyed_backoff import KeyedBackoff
from app.controllers.started_in_part import StartedInPart
from app.controllers.unanswered_starts import UnansweredStarts
from app.controllers.write_seats import WriteSeats
from app.observability import metrics
from app.observability.queue_metrics import label_of
from app.pause import SLICE
from app.settings import GateSettings, JobSettings
from app.store.store import Store
from policy.objects.pod import Pod, StandsFor
from policy.queueing import ungating
from policy.queueing.ungating import UngatingRound

log = structlog.get_logger(__name__)

INTERVAL = 0.02
"""Seconds between looks."""
PAUSE = 4
"""Multiple of a look's work for which it rests, so that looks never take more than a fifth of the time."""
AGAIN = 1.0
"""Seconds until all is looked at again without any change."""
SOON = (0.5, 4.0)
"""Seconds until the next attempt after the API server failed: at first, and at most (doubling)."""
UNDIVIDED = 5
"""Maximum number of looks that wait for all parts to be up to date: with half of them the wrong pod would be chosen."""
STARTED = "it was suspended until there was room for all of its pods"
NO_RIGHT = "Quotaward lacks the right to patch Jobs: an administrator can apply manifests/jobs/queued"
REJECTED = (5.0, 300.0)
"""Seconds until a gate that the API server would not change is tried again: at first, and at most."""


class Gates:
    """Opens gates after every change that may matter."""

    def __init__(self, store: Store, actuator: Actuator, settings: GateSettings, of_jobs: JobSettings) -> None:
        self._store = store
        self._actuator = actuator
        self._lookahead = settings.lookahead
        again = store.cluster.gates.look_again
        starts = max(settings.concurrency, of_jobs.concurrency)
        self._gate_seats = WriteSeats(settings.concurrency, store.clock, again, actuator.be_answered)
        self._start_seats = WriteSeats(starts, store.clock, again, actuator.be_answered)
        self._seen: tuple[int, ...] = ()
        self._looked = float("-inf")
        self._rejected: KeyedBackoff[str] = KeyedBackoff(*REJECTED)
        self._withdrawn: set[str] = set()
        self._told_of_right: set[str] = set()
        self._started_in_part = StartedInPart(store, actuator, self._start_seats)
        self._unanswered = UnansweredStarts(store, of_jobs.start_patience / 2)
        self._not_before = float("-inf")
        self._pause = SOON[0]
        self._adopted = False
        self._undivided = 0

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                worked = await self.look(group)
                await asyncio.sleep(max(INTERVAL, PAUSE * worked))

    async def look(self, group: asyncio.TaskGroup) -> float:
        """Opens, in the group, the gates that may be opened now; returns the seconds of work."""
        now = self._store.clock()
        if not self._may_go_on():
            return 0.0
        cluster = self._store.cluster
        if not self._adopted:
            self._adopted = True
            ungating.adopt(cluster, now)
            cluster.queued_jobs.late = []  # an earlier leader has told of them, or they are long past
        self._started_in_part.look(group)
        await self._ask_again(group)
        for uid in [uid for uid in self._withdrawn if not self._rejected.holds(uid, now)]:
            self._withdrawn.discard(uid)
            cluster.gate_admission.regate(uid, now)
        if not cluster.divided and self._undivided < UNDIVIDED:
            self._undivided += 1
            return 0.0
        self._undivided = 0
        state = cluster.generations.of_ungating
        if state == self._seen and now - self._looked < AGAIN:
            return 0.0
        self._seen, self._looked = state, now
        return await self._round(group, UngatingRound(cluster, self._lookahead, self._are_kept_from))

    async def _round(self, group: asyncio.TaskGroup, ungating_round: UngatingRound) -> float:
        """Opens jobs one by one, choosing each when seats of both sorts are free; returns the seconds of work."""
        worked, steps = 0.0, ungating_round.run(self._store.clock())
        await self._gate_seats.take()
        await self._start_seats.take()
        try:
            while self._may_go_on():
                started = time.perf_counter()
                pods: list[Pod] | None = []
                while pods == [] and time.perf_counter() - started < SLICE:
                    pods = next(steps, None)
                worked += time.perf_counter() - started
                if pods is None:
                    break
                for at, pod in enumerate(pods):
                    if self._are_kept_from(pod.namespace):
                        self._regate(pods[at:])
                        break
                    self._begin(group, pod)
                    await self._take_seat(self._seats_for(pod), pods[at + 1 :])
                await asyncio.sleep(0)
        finally:
            self._gate_seats.give_back()
            self._start_seats.give_back()
        return worked

    async def _ask_again(self, group: asyncio.TaskGroup) -> None:
        """Asks again, in the group, for starts of which nobody knows whether they were made."""
        for pod, waits_since in self._unanswered.seen():
            self._note_start(pod, waits_since)
        for pod in self._unanswered.given_up():
            self._put_off(pod)
        due = [pod for pod in self._unanswered.due() if not self._rejected.holds(pod.uid, self._store.clock())]
        for pod in due:
            if not await self._start_seats.take_for(pod.namespace):
                continue
            if self._unanswered.ask_again(pod):
                self._begin(group, pod)
            else:
                self._start_seats.give_back()

    def _begin(self, group: asyncio.TaskGroup, pod: Pod) -> None:
        opening = group.create_task(self._open(pod))
        opening.add_done_callback(partial(self._end_opening, pod))

    def _seats_for(self, pod: Pod) -> WriteSeats:
        return self._gate_seats if pod.stands_for is None else self._start_seats

    def _are_kept_from(self, namespace: str) -> bool:
        return self._gate_seats.are_kept_from(namespace) or self._start_seats.are_kept_from(namespace)

    def _may_go_on(self) -> bool:
        return not self._store.unready() and self._store.clock() >= self._not_before

    async def _take_seat(self, seats: WriteSeats, pods: list[Pod]) -> None:
        """Waits for a seat. If cancelled, withdraws the grants of pods whose gate stays closed."""
        try:
            await seats.take()
        except BaseException:
            self._regate(pods)
            raise

    def _end_opening(self, pod: Pod, opening: asyncio.Task[None]) -> None:
        """Withdraws the grant of a pod if opening its gate was cancelled, perhaps before it began, or went wrong."""
        if opening.cancelled() or opening.exception() is not None:
            self._regate([pod])

    def _regate(self, pods: list[Pod]) -> None:
        for pod in pods:
            self._store.cluster.gate_admission.regate(pod.uid, self._store.clock())

    async def _open(self, pod: Pod) -> None:
        whole = pod.stands_for is not None
        act, counter = self._actuator.open_gate, metrics.GATES_OPENED
        if whole:
            act, counter = self._actuator.start_job, metrics.JOBS_STARTED
        waits_since = self._waits_since(pod)
        try:
            with self._seats_for(pod).writing_in(pod.namespace):
                await act(pod)
        except ActionFailed as failure:
            counter.labels("failed").inc()
            no_right = whole and isinstance(failure, NoRight)
            if not (no_right and pod.namespace in self._told_of_right):  # it is the same for each Job that waits
                what = "job not started" if whole else "gate not opened"
                log.warning(what, namespace=pod.namespace, pod=pod.name, error=str(failure))
            if no_right:
                self._tell_of_right(pod)
            self._note_failure(pod, waits_since, failure)
        else:
            if whole:
                self._note_start(pod, waits_since)
            else:
                self._note_answer(pod)
                counter.labels("opened").inc()
                log.debug("gate opened", namespace=pod.namespace, pod=pod.name)

    def _note_failure(self, pod: Pod, waits_since: float, failure: ActionFailed) -> None:
        """Lets others go on if it concerns this pod alone. Keeps its grant while a Job may have been started."""
        kept, now = pod.stands_for is not None and failure.unknown, self._store.clock()
        if kept:
            self._unanswered.keep(pod, waits_since)
        else:
            self._unanswered.end(pod.uid)
        if not isinstance(failure, NoRight | Rejected):
            self._not_before = now + self._pause
            self._pause = min(2 * self._pause, SOON[1])
            if not kept:
                self._regate([pod])
        elif kept:
            self._rejected.put(pod.uid, now)
        else:
            self._put_off(pod)

    def _put_off(self, pod: Pod) -> None:
        """Takes a pod out of its line for a while, so that others go on."""
        now = self._store.clock()
        self._rejected.put(pod.uid, now)
        self._withdrawn.add(pod.uid)
        self._store.cluster.gate_admission.back_off(pod.uid, now)

    def _note_answer(self, pod: Pod) -> None:
        self._pause = SOON[0]
        self._rejected.clear(pod.uid)
        self._unanswered.end(pod.uid)

    def _note_start(self, pod: Pod, waits_since: float) -> None:
        self._note_answer(pod)
        self._tell_of_start(pod, waits_since)

    def _tell_of_start(self, pod: Pod, waits_since: float) -> None:
        """Tells of a Job that was started, or has grown."""
        job = pod.stands_for
        assert job is not None, "only stand-ins are started"  # noqa: S101
        outcome, reason = ("grown", "Grown") if job.grows else ("started", "Started")
        metrics.JOBS_STARTED.labels(outcome).inc()
        log.debug("job started", outcome=outcome, namespace=pod.namespace, job=job.name)
        self._told_of_right.discard(pod.namespace)
        self._actuator.report(Event(about_pod(pod), reason, _how_started(job)))
        known = self._store.cluster.batch_jobs.of_stand_in(pod)
        if known is not None and known.problem:
            self._actuator.report(Event(about_pod(pod), "NotElastic", known.problem, warning=True))
        if waits_since and not job.grows:
            waited = max(0.0, self._store.clock() + self._store.cluster.epoch - waits_since)
            metrics.ADMISSION_WAIT.labels(label_of(self._store.cluster, pod)).observe(waited)

    def _tell_of_right(self, pod: Pod) -> None:
        """Tells of a Job that may not be started, one of each namespace. Pods at gates and others' Jobs go on."""
        if pod.namespace not in self._told_of_right:
            self._told_of_right.add(pod.namespace)
            self._actuator.report(Event(about_pod(pod), "NotStarted", NO_RIGHT, warning=True))

    def _waits_since(self, pod: Pod) -> float:
        """Returns since when a Job waits, in seconds since the epoch; 0 if that is not known, or it is a pod."""
        job = self._store.cluster.queued_jobs.of(pod)
        return job.since if job is not None else 0.0


def _how_started(job: StandsFor) -> str:
    """Returns with how many pods a Job was started, or to how many it has grown, for people."""
    if job.grows:
        return f"there is room for {job.number}: its parallelism is raised from {job.parallelism} to {job.granted}"
    if job.granted < job.asked:
        return f"it was suspended until there was room for it: it starts with {job.granted} of {job.asked} pods"
    return STARTED
