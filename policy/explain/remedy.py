"""A remedy for a waiting pod: a sentence, and the changes that it consists of."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policy.cluster.cluster import Cluster
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.quantity import render
from policy.objects.resources import Resources, add, subtract, total
from policy.preemption.ranking import importance
from policy.quota.exempt_from_eviction import SYSTEM_OWNERS

Path = tuple[str, ...]

FEW = 5
"""Pods that are named in a sentence."""
MOST_ADDED = 1000
"""The most objects that a remedy may add: tenants may write something that calls for any number of them."""


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object to change: fields by path and their new values (None: nothing); or an object to remove, or a new one.

    ``kind`` as in manifests, for a pod group with its plural and group (as it stands before its name). ``like``: there
    is no object of this name yet, and it is to be like this one.
    """

    kind: str
    namespace: str
    name: str
    fields: tuple[tuple[Path, Any], ...] = ()
    removed: bool = False
    like: Pod | Node | None = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """A remedy: ``sort`` tells one from another, ``text`` is a sentence without its full stop."""

    sort: str
    text: str
    changes: tuple[ObjectChange, ...]


Remedies = Iterator[Remedy | None]
"""Remedies, and None wherever others may work in between."""


@dataclass(frozen=True, slots=True)
class Need:
    """The pods to let in: a waiting pod, and the ``members`` of its gang that start with it; the pod comes first.

    ``first`` are others that take free room before them. ``resources`` are those that a rule refuses them for.
    ``have_room`` is how many members could run together now, where that is known.
    """

    cluster: Cluster
    members: Sequence[Pod]
    first: Sequence[Pod]
    resources: Sequence[str] = ()
    have_room: int | None = None

    @property
    def pod(self) -> Pod:
        """The pod that somebody asks about."""
        return self.members[0]

    @property
    def asked(self) -> dict[str, int]:
        """The sum of requests of all of them, and of others of the pod's namespace that come first."""
        others = (each for each in self.others if each.namespace == self.pod.namespace)
        return total(each.request for each in (*self.members, *others))

    @property
    def others(self) -> list[Pod]:
        """The pods that come first, without the members."""
        uids = {member.uid for member in self.members}
        return [each for each in self.first if each.uid not in uids]


def end(pods: Iterable[Pod], lacking: Resources, where: str) -> Iterator[Remedy]:
    """Suggests the end of pods, in their order, until so much is free. Leaves out pods that are not needed."""
    lacking = {resource: amount for resource, amount in lacking.items() if amount > 0}
    chosen, freed = list[Pod](), dict[str, int]()
    for pod in pods:
        if _suffices(freed, lacking):
            break
        if any(pod.request.get(r, 0) and freed.get(r, 0) < amount for r, amount in lacking.items()):
            chosen.append(pod)
            add(freed, pod.request)
    for pod in list(chosen):
        without = dict(freed)
        subtract(without, pod.request)
        if _suffices(without, lacking):
            chosen.remove(pod)
            freed = without
    if chosen and _suffices(freed, lacking):
        amounts = listed([f"{render(r, amount)} of {r}" for r, amount in sorted(lacking.items())])
        text = f"wait until pods {where} release {amounts}, as {names_of(chosen)} would"
        yield Remedy("end", text, tuple(removed(pod) for pod in chosen))


def pods_to_end(cluster: Cluster, is_meant: Callable[[Pod], bool]) -> list[Pod]:
    """Returns the pods on nodes that are meant and could be ended, the least important first."""
    there = (each for each in cluster.pods.values() if each.assigned and may_end(cluster, each))
    return sorted(filter(is_meant, there), key=importance, reverse=True)


def may_end(cluster: Cluster, pod: Pod) -> bool:
    """Whether people may be told to end a pod: not one of a DaemonSet or a node, nor one that the system needs."""
    return pod.owner not in SYSTEM_OWNERS and not cluster.is_exempt(pod)


def removed(pod: Pod) -> ObjectChange:
    """Returns the change that deletes the pod, or the Job that it stands for."""
    if (job := pod.stands_for) is not None:
        return ObjectChange(job.kind.name, pod.namespace, job.name, removed=True)
    return ObjectChange("Pod", pod.namespace, pod.name, removed=True)


def raised(cluster: Cluster, path: Path, values: Mapping[str, int], written: Resources) -> tuple[tuple[Path, Any], ...]:
    """Returns the fields of a bound by resource, each under every name that the object has for it (``written``)."""
    names = cluster.device_names.names_in(written)
    return tuple(
        ((*path, name), render(resource, amount))
        for resource, amount in values.items()
        for name in names.get(resource, [resource])
    )


def corrected(errors: Iterable[str]) -> tuple[tuple[Path, Any], ...]:
    """Returns the fields that cannot be read, without a value; each error begins with its path."""
    return tuple((tuple(error.partition(": ")[0].split(".", 2)), None) for error in errors)


def names_of(pods: Sequence[Pod]) -> str:
    """Returns the names of pods for people."""
    return first_of([f"{pod.namespace}/{pod.name}" for pod in pods])


def first_of(names: Sequence[str]) -> str:
    """Returns the first of these names for people, and how many there are more."""
    named = ", ".join(names[:FEW])
    return named if len(names) <= FEW else f"{named} and {len(names) - FEW} more"


def listed(parts: Sequence[str]) -> str:
    """Joins parts of a sentence."""
    return " and ".join(parts)


def _suffices(freed: Resources, lacking: Resources) -> bool:
    return all(freed.get(resource, 0) >= amount for resource, amount in lacking.items())
