"""The random quantities and pods that Kubernetes' own code is asked about; the same on every machine and version."""

import random

SEED = 1
COUNT = 2000

RESOURCES = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi")
AMOUNTS = {
    "cpu": ("0", "1m", "0.0001", "250m", "1.5", "333333u", "1", "2", "1e1", "0.1k"),
    "memory": ("0", "1", "1m", "0.5", "1500m", "64Mi", "0.3Gi", "1e9", "1G", "2Gi"),
}
OTHER_AMOUNTS = ("0", "1", "2", "3", "8", "500m", "1k", "1Ki")
SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
LETTERS = "0123456789.+-eEnumkKMGTPi aZ\u0663"


class Dice:
    """Chance whose course is fixed: only ``Random.random`` is the same in every version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, bound: int) -> int:
        return int(self._random() * bound)

    def one_of(self, choices):
        return choices[self.below(len(choices))]

    def happens(self, probability: float) -> bool:
        return self._random() < probability

    def digits(self, longest: int) -> str:
        return "".join(self.one_of("0000123456789") for _ in range(self.below(longest + 1)))


def quantities(seed: int = SEED, count: int = COUNT) -> list[str]:
    """Texts that are quantities for the most part, and what is nearly one."""
    dice = Dice(seed)
    return [_quantity(dice) for _ in range(count)]


def pods(seed: int = SEED, count: int = COUNT) -> list[dict]:
    """Pods as JSON, with all that a pod's effective request may depend on, each part there or not."""
    dice = Dice(seed)
    return [_pod(dice) for _ in range(count)]


def _quantity(dice: Dice) -> str:
    text = dice.one_of(("", "", "", "", "+", "-")) + dice.digits(dice.one_of((3, 3, 5, 8, 20)))
    if dice.happens(0.4):
        text += "." + dice.digits(dice.one_of((1, 3, 12, 30)))
    if dice.happens(0.25):
        text += dice.one_of("eE") + dice.one_of(("", "", "+", "-")) + str(dice.below(dice.one_of((4, 10, 30))))
    else:
        text += dice.one_of(SUFFIXES)
    if dice.happens(0.15):
        at = dice.below(len(text) + 1)
        text = text[:at] + dice.one_of(LETTERS) + text[at + dice.below(2) :]
    return text


def _resources(dice: Dice) -> dict[str, str]:
    return {name: dice.one_of(AMOUNTS.get(name, OTHER_AMOUNTS)) for name in RESOURCES if dice.happens(0.4)}


def _present(**lists: dict) -> dict:
    """As an API server writes it: a list that is empty is left out."""
    return {name: resources for name, resources in lists.items() if resources}


def _pod(dice: Dice) -> dict:
    containers = [_container(dice, f"main-{i}") for i in range(1 + dice.below(3))]
    init_containers = [_container(dice, f"init-{i}", restarts=dice.happens(0.4)) for i in range(dice.below(4))]
    spec = {"containers": containers, "initContainers": init_containers}
    if dice.happens(0.2):
        spec |= _present(overhead=_resources(dice))
    if dice.happens(0.4):
        spec["resources"] = _present(requests=_resources(dice))
    status = {}
    if dice.happens(0.5):
        status["containerStatuses"] = _statuses(dice, containers)
        status["initContainerStatuses"] = _statuses(dice, init_containers)
    if dice.happens(0.4):
        status |= _present(allocatedResources=_resources(dice))
    if dice.happens(0.4):
        status["resources"] = _present(requests=dice.one_of(({}, _resources(dice), _resources(dice))))
    if dice.happens(0.2):
        reason = dice.one_of(("Infeasible", "Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
        spec["nodeName"] = "node-1"  # whose kubelet says so
    return {"spec": spec, "status": status}


def _container(dice: Dice, name: str, *, restarts: bool = False) -> dict:
    container = {"name": name}
    if dice.happens(0.9):
        container["resources"] = _present(requests=_resources(dice))
    return container | ({"restartPolicy": "Always"} if restarts else {})


def _statuses(dice: Dice, containers: list[dict]) -> list[dict]:
    statuses = []
    for container in containers:
        status = {"name": container["name"]}
        if dice.happens(0.6):
            status |= _present(allocatedResources=_resources(dice))
        if dice.happens(0.6):
            status["resources"] = _present(requests=dice.one_of(({}, _resources(dice), _resources(dice))))
        if dice.happens(0.9):
            statuses.append(status)
    return statuses
