"""Which pod a claim of devices counts for, so that devices that several pods share count once.

That is its payer: one of the pods that use it and hold room for it, because they are on a node or were admitted; while
none does, one of those that wait with it. It stays the payer for as long as it is one of these; then the one that has
been for longest follows.
"""

from collections.abc import Mapping

Key = tuple[str, str]
"""Namespace and name of a claim."""
_NOBODY: Mapping[str, None] = {}


class ClaimPayers:
    """The users of each claim, those of them that hold room for it, and its payer, by UID."""

    def __init__(self) -> None:
        self._users: dict[Key, dict[str, None]] = {}
        self._holders: dict[Key, dict[str, None]] = {}
        self._payers: dict[Key, str] = {}

    def of(self, key: Key) -> str:
        """Returns the UID of the pod that a claim counts for; empty if nobody uses it."""
        return self._payers.get(key, "")

    def users(self, key: Key) -> Mapping[str, None]:
        """Returns the pods that use a claim."""
        return self._users.get(key, _NOBODY)

    def holders(self, key: Key) -> Mapping[str, None]:
        """Returns the pods that use a claim and hold room for it."""
        return self._holders.get(key, _NOBODY)

    def use(self, key: Key, uid: str, *, holds: bool) -> None:
        """Notes that a pod uses a claim, and whether it holds room for it."""
        self._users.setdefault(key, {})[uid] = None
        if holds:
            self._holders.setdefault(key, {})[uid] = None
        else:
            remove_user(self._holders, key, uid)
        self._choose(key)

    def leave(self, key: Key, uid: str) -> None:
        """Notes that a pod uses a claim no longer."""
        remove_user(self._users, key, uid)
        remove_user(self._holders, key, uid)
        self._choose(key)

    def _choose(self, key: Key) -> None:
        """Chooses the payer of a claim: the one so far, or else who has held it for longest.

        It is not chosen anew as long as it holds the claim: another one may be in a queue that has no room for it.
        """
        found = self._holders.get(key) or self._users.get(key)
        if not found:
            self._payers.pop(key, None)
        elif self.of(key) not in found:
            self._payers[key] = next(iter(found))


def remove_user(uids: dict[Key, dict[str, None]], key: Key, uid: str) -> None:
    """Removes a pod from those of a claim or a template, and the last one with them."""
    found = uids.get(key)
    if found is not None:
        found.pop(uid, None)
        if not found:
            del uids[key]
