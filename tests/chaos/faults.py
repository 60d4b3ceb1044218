"""What goes wrong, by chance but in the same order for the same seed."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable

from tests.chaos.gateway import FAIR, Gateway, Weather
from tests.chaos.recorder import Recorder
from tests.chaos.system import LEASE, System

HOUR = 3600


class Faults:
    """One fault after the other, each kind before one comes again."""

    def __init__(self, system: System, recorder: Recorder, seed: int, lasting: float):
        """Each fault lasts about this long (seconds), and the pause after it half as long."""
        self._recorder = recorder
        self.count: Counter[str] = Counter()
        self._system = system
        self._random = random.Random(seed)
        self._lasting = lasting

    def make(self, seconds: float) -> None:
        """Goes on for so long, and until there was one of each kind.

        In the main thread: what a thread has started ends with it.
        """
        kinds: list[Callable[[], None]] = [
            self.quotaward_is_killed,
            self.leader_is_killed,
            self.leader_is_frozen,
            self.scheduler_asks_the_other,
            self.api_server_restarts,
            self.watches_are_cut,
            self.watches_are_late,
            self.watches_expire,
            self.api_server_errs,
            self.api_server_is_slow,
            self.clocks_jump,
            self.answers_are_late,
            self.scheduler_restarts,
        ]
        until = time.monotonic() + seconds
        while True:
            self.clocks_are_right()
            for kind in self._random.sample(kinds, len(kinds)):
                time.sleep(self._lasting * self._random.uniform(0.3, 0.7))
                if time.monotonic() > until and len(self.count) == len(kinds):
                    return
                print(f"fault: {kind.__name__}", flush=True)
                kind()
                self.count[kind.__name__] += 1

    def quotaward_is_killed(self) -> None:
        """With SIGKILL, while it is asked; the scheduler finds nobody for a moment."""
        victim = self._system.asked
        victim.process.kill()
        time.sleep(self._random.uniform(0, 1))
        victim.start()
        self._last()

    def leader_is_killed(self) -> None:
        """It stays away until another leads; if it was asked, the scheduler turns to the other at once."""
        leader = self._system.leader
        if leader is self._system.asked:
            self._system.ask(self._system.other(leader))
        leader.process.kill()
        self._last()
        leader.start()

    def leader_is_frozen(self) -> None:
        """For longer than it holds the lead; when it goes on, it does not know yet that another leads."""
        frozen = self._system.leader
        os.kill(frozen.process.pid, signal.SIGSTOP)
        time.sleep(max(LEASE + 2, self._lasting))
        os.kill(frozen.process.pid, signal.SIGCONT)

    def scheduler_asks_the_other(self) -> None:
        self._system.ask(self._system.other(self._system.asked))
        self._last()

    def api_server_restarts(self) -> None:
        self._system.control_plane.crash_api_server()
        time.sleep(self._random.uniform(0, 2))
        self._system.control_plane.start_api_server()
        self._last()

    def watches_are_cut(self) -> None:
        for _ in range(3):
            self._system.way_to_api.cut()
            time.sleep(self._random.uniform(0, 1))

    def watches_are_late(self) -> None:
        self._spoil(self._system.way_to_api, Weather(lag=self._random.uniform(0.2, 1)))

    def watches_expire(self) -> None:
        self._system.way_to_api.cut()
        self._spoil(self._system.way_to_api, Weather(expired=True))

    def api_server_errs(self) -> None:
        self._spoil(self._system.way_to_api, Weather(errors=(429, 500), share=0.4))

    def api_server_is_slow(self) -> None:
        self._spoil(self._system.way_to_api, Weather(delay=self._random.uniform(0.3, 2)))

    def clocks_jump(self) -> None:
        """On one replica forward, on the other back; they stay so until there was one fault of each kind."""
        self._recorder.note_clocks(wrong=True)
        first, second = self._random.sample(self._system.replicas, 2)
        first.set_clock(HOUR)
        second.set_clock(self._random.choice((0, -HOUR)))
        self._last()

    def clocks_are_right(self) -> None:
        for replica in self._system.replicas:
            replica.set_clock(0)
        self._recorder.note_clocks(wrong=False)

    def answers_are_late(self) -> None:
        """Later than the scheduler waits: Quotaward has said yes, and the scheduler has not heard it."""
        self._spoil(self._system.way_to_quotaward, Weather(delay=2.5))

    def scheduler_restarts(self) -> None:
        self._system.scheduler.process.kill()
        self._system.scheduler.process.start()
        self._last()

    def _spoil(self, way: Gateway, weather: Weather) -> None:
        way.weather = weather
        self._last()
        way.weather = FAIR

    def _last(self) -> None:
        time.sleep(self._lasting * self._random.uniform(0.7, 1.3))
