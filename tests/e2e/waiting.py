"""What tests wait for: pods that are bound, and pods that are refused and know why."""

import time
from collections.abc import Callable

from tests.controlplane.objects import Object, condition, is_bound
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward

OVER_MAX = "ElasticQuota max exceeded: cpu"
NO_MORE_TO_BORROW = "ElasticQuota borrowing exhausted: cpu"


def wait_for(watch: PodWatch, *, bound: int, refused: int = 0, why: str = OVER_MAX, timeout: float = 60) -> None:
    """Wait until this many pods are bound, and this many wait with this reason in their condition."""

    def counts() -> tuple[int, int]:
        pods = watch.pods
        return sum(map(is_bound, pods)), sum(is_refused(pod, why) for pod in pods)

    def what_pods_say() -> set[str]:
        return {condition(pod, "PodScheduled").get("message", "") for pod in watch.pods}

    wait_until(
        lambda: counts() == (bound, refused),
        f"{bound} pods of {watch.namespace} are bound and {refused} refused",
        timeout,
        detail=lambda: f"bound and refused: {counts()}; conditions: {what_pods_say()}",
    )


def is_refused(pod: Object, why: str = OVER_MAX) -> bool:
    scheduled = condition(pod, "PodScheduled")
    return not is_bound(pod) and scheduled.get("status") == "False" and why in scheduled["message"]


def was_woken(pod: Object) -> bool:
    """Whether Quotaward has told the scheduler to try this pod again."""
    return condition(pod, "quotaward.dev/Admissible").get("status") == "True"


def is_being_evicted(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"] or bool(condition(pod, "DisruptionTarget"))


def evicted(*watches: PodWatch) -> set[str]:
    """Names of the pods that were evicted, or went away by other means, since the watches were opened."""
    gone = {pod["metadata"]["name"] for watch in watches for kind, pod in list(watch.events) if kind == "DELETED"}
    return gone.union(*(watch.ever(is_being_evicted) for watch in watches))


def evicts(number: int, *watches: PodWatch) -> None:
    """Waits until so many pods are seen to be evicted, and ensures that they are no more.

    What another watch shows already, these may show a moment later.
    """
    wait_until(lambda: len(evicted(*watches)) >= number, f"{number} pods are evicted")
    assert len(evicted(*watches)) == number


def bound(watch: PodWatch) -> set[str]:
    """Names of the pods that are on nodes now."""
    return {pod["metadata"]["name"] for pod in watch.pods if is_bound(pod)}


def ensure_for(seconds: float, holds: Callable[[], object], what: str, every: float = 0.1) -> None:
    """Watch that something holds for a while, once the watches have seen it: the time is what is under test."""
    wait_until(holds, what, timeout=10)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert holds(), what
        time.sleep(every)


def wait_for_quiet(quotaward: Quotaward, seconds: float = 3) -> None:
    """Wait until no filter call has come for a while: the back-off of pods after a burst is over."""
    calls, since = quotaward.requests("filter"), time.monotonic()

    def quiet() -> bool:
        nonlocal calls, since
        if (now := quotaward.requests("filter")) != calls:
            calls, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    wait_until(quiet, "no more filter calls", detail=lambda: f"{calls} calls until now")
