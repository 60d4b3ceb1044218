"""The sources of the page of a single object, and the page of each of its tables that is asked for."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.history.recorder import Name, Recorder
from app.observability.evictions import Evictions
from app.settings import Settings
from app.web.figures import Bar
from app.web.plots import Happened, happened
from app.whatif.expected_starts import ExpectedStarts
from policy.cluster.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Asked:
    """The cluster with its history, expected starts, and the page of each table that is asked for, by its ``param``."""

    cluster: Cluster
    recorder: Recorder
    evictions: Evictions
    settings: Settings
    starts: ExpectedStarts
    now: float
    pages: dict[str, str]

    def after(self, param: str) -> str:
        """Returns the key of the row before the first that is asked for; empty: from the beginning."""
        return self.pages.get(param, "")

    def happened(self, name: Name, bars: Iterable[Bar], own: str, most: str) -> Happened | None:
        """Returns the plots of the last day, the scarcest resource first."""
        scarcity = {bar.resource: bar.scarcity for bar in bars}
        return happened(self.recorder, name, own, most, lambda resource: scarcity.get(resource, 0.0))
