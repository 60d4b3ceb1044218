"""Honest tenants, whose pods come at a steady pace and go after a while, and how soon each of them is bound.

They are a process of their own, so that what is measured is not how busy the test itself is.
"""

import itertools
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from tests.controlplane.api import Api, path
from tests.controlplane.objects import Object, is_bound, pod
from tests.hostile.apart import Apart

RUN = 5.0
"""Seconds after which a pod that runs is deleted."""
_PATIENCE = 60.0
_DELETING = 4
"""Threads that delete: one alone is late where the API server is busy, and what it leaves counts against a quota."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the process has to know. ``pace``: pods by the second; ``spec``: what else is in their spec.

    Their label ``team`` has the name of the team.
    """

    url: str
    ca_file: Path
    token: str
    team: str
    namespaces: tuple[str, ...]
    pace: float
    spec: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bindings:
    """How many pods were bound by the second in a stretch of time, and after how many seconds each."""

    rate: float
    took: list[float]

    @property
    def detail(self) -> str:
        if len(self.took) < 2:
            return f"{len(self.took)} bound"
        late = statistics.quantiles(self.took, n=20)[-1]
        return f"{self.rate:.1f}/s after {statistics.median(self.took):.2f} s, p95 {late:.2f} s"


class Honest:
    """Pods of a team come and go while this is open. ``times``: at the end, when each was created and bound."""

    def __init__(self, plan: Plan) -> None:
        self.times: list[tuple[float, float]] = []
        self._team = Apart(_be_honest, plan)

    def __enter__(self) -> Self:
        self._team.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.times = self._team.end(_PATIENCE)

    def during(self, start: float, end: float) -> Bindings:
        """Those that were bound from one moment to another."""
        took = [bound - created for created, bound in self.times if start <= bound < end]
        return Bindings(len(took) / (end - start), took)


def _be_honest(plan: Plan, over: Any, told: Any) -> None:
    team = _Team(plan, over)
    works = (team.watch, team.come, *(team.go for _ in range(_DELETING)))
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    over.wait()
    for thread in threads:
        thread.join(_PATIENCE / 4)
    bound_at = dict(team.bound)  # its watch may still go on
    told.put([(team.created.get(name, bound), bound) for name, bound in bound_at.items()])


class _Team:
    """``created`` and ``bound``: when each pod was, by namespace and name."""

    def __init__(self, plan: Plan, over: Any) -> None:
        self.created: dict[tuple[str, str], float] = {}
        self.bound: dict[tuple[str, str], float] = {}
        self._plan, self._over = plan, over
        self._running: list[tuple[float, tuple[str, str]]] = []
        self._lock = threading.Lock()

    def come(self) -> None:
        began, api, plan = time.monotonic(), self._api(), self._plan
        for number in itertools.count():
            if self._over.wait(max(0.0, began + number / plan.pace - time.monotonic())):
                return
            item = pod(f"pod-{number}", plan.namespaces[number % len(plan.namespaces)], **plan.spec)
            item["metadata"]["labels"] = {"team": plan.team}
            self.created[_name(item)] = time.monotonic()
            self._try(lambda item=item: api.create(item))

    def go(self) -> None:
        api = self._api()
        while not self._over.wait(0.05):
            while (item := self._one_that_has_run()) is not None:
                namespace, name = item
                self._try(lambda name=name, namespace=namespace: api.delete("pods", name, namespace))

    def _one_that_has_run(self) -> tuple[str, str] | None:
        """Namespace and name of a pod whose time is over, for one thread alone."""
        with self._lock:
            if self._running and self._running[0][0] < time.monotonic() - RUN:
                return self._running.pop(0)[1]
            return None

    def watch(self) -> None:
        api, since, chosen = self._api(), "", {"labelSelector": f"team={self._plan.team}"}
        while not self._over.is_set():
            try:
                since = since or self._list(api, chosen)
                for event in api.watch("pods", None, since, **chosen):
                    if event["type"] == "ERROR":
                        since = ""
                        break
                    since = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._note(event["object"])
            except httpx.HTTPError:  # nothing has happened for a while, or the API server has no time
                self._over.wait(0.02)

    def _list(self, api: Api, chosen: Object) -> str:
        answer = api.request("GET", path("pods"), params=chosen)
        for item in answer["items"]:
            self._note(item)
        return answer["metadata"]["resourceVersion"]

    def _note(self, item: Object) -> None:
        if is_bound(item) and _name(item) not in self.bound:
            now = time.monotonic()
            self.bound[_name(item)] = now
            self._running.append((now, _name(item)))

    def _try(self, call: Callable[[], object]) -> None:
        """What the API server has no time for is left undone, and shows in the rate; a pod may be evicted already."""
        try:
            call()
        except httpx.HTTPError as error:
            print(f"honest: {error}", flush=True)

    def _api(self) -> Api:
        return Api(self._plan.url, self._plan.ca_file, self._plan.token)


def _name(item: Object) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]
