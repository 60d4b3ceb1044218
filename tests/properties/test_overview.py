"""Whatever happens in whatever order: looking only at what is said to have changed shows what a look at all does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.settings import Settings
from app.store.store import Store
from app.web.overview import Overview
from app.web.parts import Gone
from policy.quota import changes
from tests.properties.test_ledger_equals_recount import LedgerWalker
from tests.properties.test_queue_ledger import QueueWalker
from tests.worlds.walk import by_dice, by_hypothesis, walk

SETTINGS = Settings()


class Watched:
    """Takes the steps of another walker, and looks at the cluster after each."""

    def __init__(self, walker) -> None:
        self.walker, self.trace = walker, walker.trace
        self.store = Store(walker.cluster, clock=lambda: walker.now)
        self.overview, self.shown = self.look(), {}

    def look(self):
        return Overview(self.store, SETTINGS, ())

    def steps(self):
        return self.walker.steps()

    def check(self):
        take(self.overview, self.shown)
        take(self.overview, self.shown)  # asking why somebody waits may have divided the cluster among new queues
        everything = {}
        take(self.look(), everything)
        assert self.shown == everything

    def finish(self):
        pass


def take(overview, shown):
    """What a board makes of a look."""
    for part in overview.look():
        if isinstance(part, Gone):
            shown.pop(part.key, None)
        elif part is not None:
            shown[part.key] = part


@pytest.mark.parametrize("walker", [LedgerWalker, QueueWalker])
@given(st.data())
def test_what_has_changed_is_all_that_is_different(walker, data):
    pick = by_hypothesis(data)
    walk(Watched(walker(pick)), pick, 10)


@pytest.mark.parametrize("walker", [LedgerWalker, QueueWalker])
@pytest.mark.parametrize(("seed", "most"), [(0, changes.MOST), (1, changes.MOST), (2, 1)])
def test_what_has_changed_is_all_that_is_different_on_long_walks(walker, seed, most, monkeypatch):
    monkeypatch.setattr(changes, "MOST", most)  # where that is not enough, anything may be different
    pick = by_dice(seed)
    walk(Watched(walker(pick)), pick, 100)
