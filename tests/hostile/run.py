"""A while of hostile tenants beside honest ones, and what it has cost the honest ones."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

from tests.bench.figures import Figure
from tests.bench.filling import Etcd
from tests.chaos.checker import Leeway, violations
from tests.chaos.history import History, read
from tests.chaos.stuck import stuck
from tests.controlplane import schedulers
from tests.controlplane.api import Api
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import ControllerManager
from tests.controlplane.gates import RIGHTS
from tests.controlplane.objects import Object, condition, is_bound, priority_class
from tests.controlplane.observing import Look, Observer
from tests.controlplane.pod_groups import (
    NATIVE,
    NATIVE_GATE,
    NATIVE_SERVED,
    OLDER_SCHEDULER_PLUGINS,
    SCHEDULER_PLUGINS,
    VOLCANO,
    install_pod_groups,
)
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward, install_definitions
from tests.controlplane.scheduler import Scheduler, extender
from tests.hostile.honest import Honest, Plan
from tests.hostile.pods import RENTED
from tests.hostile.recording import Recording
from tests.hostile.tenants import Orders, Tenants, give_rights
from tests.hostile.world import HONEST, OWNER, Size, honest_namespaces, objects, places

LEEWAY = Leeway(granted=40, seen=20)
WARM_UP = 15.0
"""Seconds until what is measured begins: programs have started, and the first pods of honest tenants end."""
CONTROLLERS = ("disruption-controller", "pod-garbage-collector-controller")
"""The latter removes pods on nodes that do not exist, which tenants make up."""
BORNE = 120.0
"""Seconds that honest pods may wait once nobody means harm any more."""
_QUIET = 3.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured, what was not lawful, and what the tenants have done. ``unready``: what /readyz said."""

    figures: list[Figure]
    violations: list[str]
    unready: list[str]
    deeds: Counter[str]
    bindings: int
    evictions: int


def asking(quotaward: Quotaward) -> list[Object]:
    """The extenders of a scheduler that asks Quotaward."""
    return [extender(quotaward.url, httpTimeout="2s")]


def asking_nobody(_: Quotaward) -> list[Object]:
    """The extenders of one that does not: to know what it makes of hostile tenants by itself."""
    return []


def run(
    control_plane: ControlPlane,
    directory: Path,
    size: Size,
    seed: int,
    quiet: float,
    seconds: float,
    extenders: Callable[[Quotaward], list[Object]] = asking,
) -> Outcome:
    """So many seconds of honest tenants alone, and then so many with hostile ones, in a cluster that is empty."""
    api, native = control_plane.api, control_plane.api.serves(f"/apis/{NATIVE}/podgroups")
    group_versions = _prepare(control_plane, size, native=native)
    orders = Orders(api.url, api.ca_file, api.token, tuple(places(size)), group_versions, seed, size.hostile_pace)
    tenants, file = Tenants(orders), directory / "history.jsonl"
    where = api.url, api.ca_file, api.token
    honest = Honest(Plan(*where, HONEST, tuple(honest_namespaces()), size.honest_pace))
    owner = Honest(Plan(*where, OWNER, (OWNER,), size.honest_pace / 10, {"cpu": 2, "nodeSelector": RENTED}))
    with contextlib.ExitStack() as stack:
        quotaward = stack.enter_context(Quotaward(control_plane, "--groups.legacy", "on", ready_within=300))
        stack.enter_context(ControllerManager(control_plane, *CONTROLLERS))
        flags = [NATIVE_GATE] if native else []
        scheduler = stack.enter_context(Scheduler(control_plane, *extenders(quotaward), flags=flags))
        programs = {
            "kube-scheduler": scheduler.process.pid,
            "kube-apiserver": control_plane.api_server.pid,
            "etcd": control_plane.etcd.pid,
        }
        observer = stack.enter_context(Observer(quotaward.url, quotaward.process.pid, programs))
        recording = stack.enter_context(Recording(api, file))
        with honest, owner:
            time.sleep(WARM_UP)
            began = time.monotonic()
            time.sleep(quiet)
            turned = time.monotonic()
            with tenants:
                time.sleep(seconds)
                over = time.monotonic()
        _come_to_rest(api, recording)
    history, looks = History(read(file)), observer.during(began, inf)
    lives = history.lives.values()
    waiting = [each for each in stuck(history.all_objects()) if each.startswith((f"{HONEST}-", f"{OWNER}/"))]
    return Outcome(
        figures=list(_figures(honest, observer, began, turned, over)),
        violations=violations(history, LEEWAY) + waiting,
        unready=[look.trouble for look in looks if look.trouble],
        deeds=tenants.counts,
        bindings=sum(life.by_scheduler for life in lives),
        evictions=sum(life.evicted < inf for life in lives),
    )


def _prepare(control_plane: ControlPlane, size: Size, *, native: bool) -> tuple[str, ...]:
    """Everything but Quotaward and a scheduler is there; the API groups of pod groups that are served."""
    api = control_plane.api
    install_definitions(api)
    for version in (defined := (SCHEDULER_PLUGINS, VOLCANO, OLDER_SCHEDULER_PLUGINS)):
        install_pod_groups(api, version)
    for name, value in (("low", -10), ("high", 1000)):
        api.create(priority_class(name, value))
    with contextlib.closing(Etcd(control_plane.etcd_url)) as etcd:
        etcd.put(objects(size))
        wait_until(lambda: etcd.is_served(api), "the API server serves all that was put", 300)
    api.apply_files(RIGHTS)
    give_rights(api, [place.namespace for place in places(size)])
    wait_until(lambda: _are_ready(api), "all nodes are ready", 300, every=1)
    return (*defined, NATIVE) if native else defined


def native_flags() -> list[str]:
    """What the API server needs so that there are native pod groups, where the scheduler knows them."""
    return [] if schedulers.chosen() else [NATIVE_GATE, NATIVE_SERVED]


def _are_ready(api: Api) -> bool:
    return all(condition(node, "Ready").get("status") == "True" for node in api.items("nodes"))


def _come_to_rest(api: Api, recording: Recording) -> None:
    """Waits until nothing happens any more, and no honest pod waits."""
    until = time.monotonic() + BORNE
    while time.monotonic() < until:
        mine = api.items("pods", labelSelector=f"team in ({HONEST},{OWNER})")
        if recording.quiet_for() > _QUIET and all(map(is_bound, mine)):
            return
        time.sleep(1)


def _figures(honest: Honest, observer: Observer, began: float, turned: float, over: float) -> Iterator[Figure]:
    before, after = observer.during(began, turned), observer.during(turned, over)
    alone, beside = (honest.during(*phase) for phase in ((began, turned), (turned, over)))
    yield Figure(
        "honest pods bound beside hostile tenants, against without",
        beside.rate / alone.rate if alone.rate else 0.0,
        "x",
        0.8,
        1.0,
        at_least=True,
        detail=f"{alone.detail} -> {beside.detail}",
    )
    least, most = max(look.memory for look in before), max(look.memory for look in after)
    yield Figure("memory, against without", most / least, "x", 1.5, 1.2, detail=f"{least:.0f} -> {most:.0f} MB")
    answered = [max(look.answered_in for look in looks) for looks in (before, after)]
    unready = sum(bool(look.trouble) for look in after)
    detail = f"of {len(after)}; slowest answer {answered[0]:.2f} -> {answered[1]:.2f} s"
    yield Figure("times that /readyz was not yes", unready, "", 0, 0, detail=detail)
    for name in before[0].worked:
        work = [_work(looks, name) for looks in (before, after)]
        yield Figure(f"processor time of {name} by the second", work[1], "s", detail=f"{work[0]:.2f} without")


def _work(looks: list[Look], name: str) -> float:
    return (looks[-1].worked[name] - looks[0].worked[name]) / (looks[-1].at - looks[0].at)
