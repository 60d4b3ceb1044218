"""Signatures: keys of pods that are equal where one answer serves all of these pods.

Equal requests, constraints and labels are one object: ``app.store`` interns them (``shared``, ``placement``). So a
signature has the identity of these parts, which is quicker to compare than their values. Where equal parts are two
objects, as in tests or once ``app.store`` has forgotten a template, signatures only differ more often. Then more is
computed, and the answers stay the same.

An identity is valid only while its object lives. So whoever keeps a signature keeps the pod too, at least for as long.
Keys that outlive their pods have ``frozenset(pod.request.items())`` and the constraints themselves, as those of gates
and of unschedulable pods do.

A signature may always tell apart more pods than necessary. It must never tell apart fewer: whoever leaves a field out
has to show that no answer depends on it. Which fields are left out is a table in tests/unit/objects/test_signature.py.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from policy.objects.constraints import Constraints
from policy.objects.pod import Pod
from policy.objects.resources import Resources

TemplatePart = Resources | Constraints | Mapping[str, str]
"""A part that pods of one template have in common: their request, constraints or labels."""

T = TypeVar("T")


of_part: Callable[[TemplatePart], int] = id
"""Returns a key that is equal for equal requests, constraints or labels."""


def distinct(parts: Iterable[T]) -> Collection[T]:
    """Returns each object once, in order. Of equal parts of pods that is one, and only rarely more."""
    return {id(part): part for part in parts}.values()


def by_rules(pod: Pod, queue: str) -> Hashable:
    """Returns a key that is equal for pods that the rules of quotas and queues treat alike.

    ``queue`` is the queue whose rules apply to the pod, or the one that it is asked about. For pods of one group, or
    without a group, it may also be the queue that the pod itself names, which takes no look-up. Their group and
    namespace, which may name a queue as well, are the same. Whether a pod is exempt also depends on who names its
    queue, so callers that use the queue whose rules apply add whether it is exempt.
    Callers add whether a limit refuses its run time, too (policy.quota.run_time_limit).
    """
    return pod.namespace, queue, id(pod.request), pod.priority, pod.preemptible


def by_empty_nodes(pod: Pod) -> Hashable:
    """Returns a key that is equal for pods that the same nodes could take if they were empty (``fit.fits_if_empty``).

    Leaves out labels, which matter only beside other pods. Pods of one job mostly differ in them.
    """
    return id(pod.request), id(pod.constraints)


def by_rules_and_nodes(pod: Pod, queue: str) -> Hashable:
    """Returns a key that is equal for pods that both the rules and the nodes, as they are now, treat alike.

    ``queue``: see ``by_rules``. Priority matters to nodes, too, as expected pods of lower priority do not count. Labels
    matter where pods are spread, or kept near or apart, and the owner where nodes are kept for others. Leaves out what
    is promised to one pod or group: a nominated node, a plan, a hold, a reserved node. Callers that meet such pods add
    its group or its UID.
    """
    parts = id(pod.request), id(pod.constraints), id(pod.labels)
    return pod.namespace, queue, pod.priority, pod.preemptible, pod.owner, parts
