"""The pods of each owner, so that what happens to one Job costs nothing for the pods of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policy.objects.pod import Pod


def owner_uid(pod: Pod) -> str:
    """Returns the UID of the Job or the custom resource that controls a pod; empty if none is known."""
    return pod.job.uid if pod.job is not None else pod.controller


class OwnedPods:
    """UIDs of existing pods, by the namespace and the UID of their controller, be that known or not."""

    def __init__(self) -> None:
        self._uids: dict[tuple[str, str], dict[str, None]] = {}

    def of(self, namespace: str, owner: str) -> Iterable[str]:
        """Returns UIDs of the pods that a controller has in a namespace, in the order in which they were seen."""
        return self._uids.get((namespace, owner), ())

    def number_of(self, namespace: str, owner: str) -> int:
        """Returns how many pods a controller has in a namespace."""
        return len(self._uids.get((namespace, owner), ()))

    def see(self, pod: Pod, before: Pod | None = None) -> None:
        """Notes a pod, and whose it is now."""
        owner = owner_uid(pod)
        if before is not None and owner_uid(before) != owner:
            self.forget(before)
        if owner:
            self._uids.setdefault((pod.namespace, owner), {})[pod.uid] = None

    def forget(self, pod: Pod) -> None:
        """Notes that a pod is gone."""
        key = pod.namespace, owner_uid(pod)
        uids = self._uids.get(key)
        if uids is not None:
            uids.pop(pod.uid, None)
            if not uids:
                del self._uids[key]
