"""Why the latest attempt to evict for a waiting pod failed, in the words of the API server."""

from collections.abc import Set as AbstractSet

LONGEST = 200
"""Maximum number of characters of a reason: webhooks write some of them."""


class FailedEvictions:
    """The reasons by UID of the pod that room is made for. Only the replica that evicts knows any."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def note(self, uid: str, reason: str) -> None:
        """Notes that an eviction for a pod failed, or that it could not be recorded. Keeps one line of the reason."""
        self._reasons[uid] = " ".join(reason[:LONGEST].split())

    def reason(self, uid: str) -> str:
        """Returns why the latest eviction for a pod failed; empty if it did not, as far as is known here."""
        return self._reasons.get(uid, "")

    def forget(self, uid: str) -> None:
        """Forgets a pod: evictions for it do not fail any more, or it is gone."""
        self._reasons.pop(uid, None)

    def keep_only(self, uids: AbstractSet[str]) -> None:
        """Forgets all other pods: nobody is to be evicted for them now."""
        self._reasons = {uid: reason for uid, reason in self._reasons.items() if uid in uids}

    def clear(self) -> None:
        """Forgets all: another replica evicts now."""
        self._reasons.clear()
