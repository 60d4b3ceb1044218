"""How long pods have waited, by queue and namespace, as a histogram for Prometheus.

There may be ten thousand series, so the text is written here, in slices between which the loop answers the scheduler.
"""

import asyncio
from bisect import bisect_left

from app.observability.metrics import WAITS
from app.observability.quota_metrics import SLICE, escaped

BUCKETS = WAITS[:10]
"""Upper bounds in seconds, up to a day: there are as many series for each pair."""
MOST = 1000
"""Maximum number of pairs of a queue and a namespace; all others count together, with both labels empty."""
NAME = "quotaward_wait_seconds"
HELP = "Time from the creation of a pod until it was admitted, of pods that were bound, by queue and namespace."
OTHERS = ("", "")


class WaitTimes:
    """Numbers of pods by pair of queue and namespace, in each bucket, and the sums of their seconds."""

    def __init__(self) -> None:
        """Starts without pods."""
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._sums: dict[tuple[str, str], float] = {}

    def observe(self, queue: str, namespace: str, seconds: float) -> None:
        """Counts a pod that has waited."""
        pair = (queue, namespace)
        if pair not in self._counts and len(self._counts) >= MOST:
            pair = OTHERS
        counts = self._counts.setdefault(pair, [0] * (len(BUCKETS) + 1))
        counts[bisect_left(BUCKETS, seconds)] += 1
        self._sums[pair] = self._sums.get(pair, 0.0) + max(0.0, seconds)

    async def lines(self) -> bytes:
        """Returns exposition text."""
        lines = [f"# HELP {NAME} {HELP}\n# TYPE {NAME} histogram\n"]
        for index, (pair, counts) in enumerate(list(self._counts.items()), start=1):
            labels, below = f'queue="{escaped(pair[0])}",namespace="{escaped(pair[1])}"', 0
            for bound, number in zip((*BUCKETS, "+Inf"), counts, strict=True):
                below += number
                lines.append(f'{NAME}_bucket{{{labels},le="{bound}"}} {below}\n')
            lines.append(f"{NAME}_sum{{{labels}}} {self._sums[pair]}\n{NAME}_count{{{labels}}} {below}\n")
            if index % SLICE == 0:
                await asyncio.sleep(0)
        return "".join(lines).encode()


WAIT_TIMES = WaitTimes()
