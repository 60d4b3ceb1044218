"""Pods that were seen before their controllers: the watches of two kinds are not in step."""


class EarlyPods:
    """UIDs of pods by that of their controller, each for ``patience`` seconds."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._by_owner: dict[str, tuple[float, list[str]]] = {}

    def note(self, owner: str, pod: str, now: float) -> None:
        """Notes a pod whose controller is not known yet."""
        self._by_owner.setdefault(owner, (now + self._patience, []))[1].append(pod)

    def take(self, owner: str) -> list[str]:
        """Returns the pods of a controller that is known now, and forgets them."""
        _, pods = self._by_owner.pop(owner, (0.0, []))
        return pods

    def tick(self, now: float) -> None:
        """Lets time pass: forgets pods whose controllers have not come in time."""
        while self._by_owner and next(iter(self._by_owner.values()))[0] <= now:
            del self._by_owner[next(iter(self._by_owner))]
