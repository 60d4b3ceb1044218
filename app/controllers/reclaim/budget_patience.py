"""The patience with disruption budgets that never allow an eviction (``reclaim.budgetPatience``)."""

from app.controllers.reclaim.clocks import Clocks
from app.settings import ReclaimSettings
from app.store.store import Store
from policy.objects.pod import Pod
from policy.objects.reservation import RECLAIM, Reservation


class BudgetPatience:
    """Since when such budgets have kept victims from ending for each waiting pod, by UID."""

    def __init__(self, store: Store, settings: ReclaimSettings, clocks: Clocks) -> None:
        self._store = store
        self._settings = settings
        self._clocks = clocks
        self._since: dict[str, float] = {}

    def is_over(self, pod: Pod) -> bool:
        """Whether such budgets have blocked this pod for ``reclaim.budgetPatience``."""
        since, patience = self._since.get(pod.uid), self._settings.budget_patience
        return since is not None and patience is not None and self._clocks.now() >= since + patience

    def is_over_with(self, victim: Pod, reservation: Reservation) -> bool:
        """Whether such a budget has kept a victim for ``budgetPatience``. Begins to count if one does."""
        patience, now = self._settings.budget_patience, self._clocks.now()
        keeping = self._store.cluster.budgets.keeping_for_good(victim)
        if patience is None or not keeping or victim.namespace == reservation.pod.namespace:
            return False
        return now >= self._since.setdefault(reservation.pod.uid, now) + patience

    def adopt(self) -> None:
        """Takes over from an earlier leader since when budgets have blocked pods whose plans were given up."""
        for reservation in self._store.cluster.reservations.given_up.values():
            if reservation.reason == RECLAIM and reservation.blocked_since:
                self._since.setdefault(reservation.pod.uid, self._clocks.on_store(reservation.blocked_since))

    def forget_what_is_gone(self) -> None:
        """Forgets pods that wait no more."""
        pods = self._store.cluster.pods
        self._since = {uid: at for uid, at in self._since.items() if uid in pods and pods[uid].pending}
