"""The queue of a pod, and the weight of its namespace there.

The pod's own annotation comes first, then its group's queue, its namespace's annotation, and the queue ``default``
where there is one. Tenants write pods and groups. So where the namespace names a queue, they may choose only that one,
or one of those that the namespace allows; another choice counts for nothing.
"""

from dataclasses import dataclass

from policy.objects.group import Group
from policy.objects.pod import Pod

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Namespace:
    """The queues that a namespace names: its own, and others that its pods may choose.

    ``gated``: its pods wait outside of the scheduler's queue until they may run. ``queues_jobs``: its Jobs wait as a
    whole, and have no pods until then.
    """

    name: str
    queue: str = ""
    allowed: frozenset[str] = frozenset()
    gated: bool = False
    queues_jobs: bool = False


class Membership:
    """All namespaces, pod groups and weights. ``has_default``: a queue ``default`` exists."""

    def __init__(self) -> None:
        self.namespaces: dict[str, Namespace] = {}
        self.groups: dict[tuple[str, str], Group] = {}
        self.weights: dict[tuple[str, str], int] = {}
        self.has_default = False

    def queue_of(self, pod: Pod) -> str:
        """Returns the name of the pod's queue, whether or not it exists; empty where no rules of queues apply."""
        namespace = self.namespaces.get(pod.namespace)
        if pod.queue or pod.group:
            group = self.groups.get((pod.namespace, pod.group)) if pod.group else None
            for choice in (pod.queue, group.queue if group else ""):
                if choice and (
                    namespace is None or not namespace.queue or choice in (namespace.queue, *namespace.allowed)
                ):
                    return choice
        if namespace is not None and namespace.queue:
            return namespace.queue
        return DEFAULT if self.has_default else ""

    def who_names_the_queue_of(self, pod: Pod) -> str:
        """Tells people which object names the pod's queue."""
        name, group = self.queue_of(pod), self.groups.get((pod.namespace, pod.group)) if pod.group else None
        if pod.queue == name:
            return "its own annotation"
        if group is not None and group.queue == name:
            return f"its PodGroup {group.name.rpartition('/')[2]}"
        return f"the annotation of Namespace {pod.namespace}"

    def own_queue_of(self, pod: Pod) -> str:
        """Returns the pod's queue, but empty for one in the queue ``default`` only because nobody named any for it."""
        queue = self.queue_of(pod)
        if queue != DEFAULT:
            return queue
        namespace, group = self.namespaces.get(pod.namespace), self.groups.get((pod.namespace, pod.group))
        of_others = namespace.queue if namespace else "", group.queue if group else ""
        return DEFAULT if DEFAULT in (pod.queue, *of_others) else ""

    def weight_by_namespace(self) -> dict[str, int]:
        """Returns weights of namespaces that have one: the highest of their resource quotas (namespace fair share)."""
        highest: dict[str, int] = {}
        for (namespace, _), weight in self.weights.items():
            highest[namespace] = max(weight, highest.get(namespace, 1))
        return highest
