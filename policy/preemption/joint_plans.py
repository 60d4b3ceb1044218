"""Plans for several pods, of which each counts for the next: for the members of a gang, and for all pods that wait."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from policy.cluster.cluster import Cluster
from policy.objects.pod import Pod
from policy.objects.reservation import Reservation
from policy.preemption import victims
from policy.preemption.plans import NoPlan, Plan
from policy.preemption.preemptors import Shape, shape_of, together_with
from policy.preemption.reclaim import reservation_of
from policy.stepwise import Steps, within_steps

FEW = 20
"""Plans that are assumed for the next one as quickly as a node is searched."""


def plans_for_all_steps(
    cluster: Cluster, members: Iterable[Pod], planned: Iterable[Reservation] = ()
) -> Steps[list[Plan] | NoPlan]:
    """Returns a plan for each member of a gang, or why there is none for all of them. Iterate to the end; it may pause.

    A plan without victims keeps room that is free already.
    """
    assumed = list(planned)

    def search_steps(pod: Pod, beside: Sequence[Pod]) -> Steps[Plan | NoPlan]:
        return _search_after_steps(cluster, pod, assumed, beside)

    return (yield from _plans_one_by_one_steps(members, search_steps, assumed.append))


def plans_for_all_of_a_copy_steps(cluster: Cluster, members: Iterable[Pod]) -> Steps[list[Plan] | NoPlan]:
    """Plans for a whole gang, as ``plans_for_all_steps``, but in a copy of the cluster that nobody else reads.

    Each plan stays assumed until the last one is made, also in pauses, so each member costs as much as the first.
    A caller that gives up before the end throws the copy away.
    """
    assumed: list[AbstractContextManager[None]] = []

    def assume(reservation: Reservation) -> None:
        assumed.append(_assumed(cluster, [reservation]))
        assumed[-1].__enter__()

    answer = yield from _plans_one_by_one_steps(members, partial(victims.search_steps, cluster), assume)
    while assumed:
        assumed.pop().__exit__(None, None, None)
        yield
    return answer


def _plans_one_by_one_steps(
    members: Iterable[Pod],
    search_steps: Callable[[Pod, Sequence[Pod]], Steps[Plan | NoPlan]],
    assume: Callable[[Reservation], None],
) -> Steps[list[Plan] | NoPlan]:
    """A plan for each member, of which each counts for the next; to the search they are there once they are assumed."""
    plans, members = list[Plan](), list(members)
    for pod in members:
        beside = [other for other in members if other.uid != pod.uid]
        takes = _takes(pod, (yield from search_steps(pod, beside)))
        if isinstance(takes, NoPlan):
            text = f"there is no room for all of its group: {pod.name}: {takes.text}"
            return NoPlan("gang", text, moments=takes.moments)
        plans.append(takes)
        assume(_assumption(takes))
        yield
    if not plans:
        return NoPlan("gang", "not all that its group takes to start have been tried yet")
    if not any(plan.victims for plan in plans):
        return NoPlan("room", "nodes have room for all of its group, or will have")
    return plans


def _takes(pod: Pod, result: Plan | NoPlan) -> Plan | NoPlan:
    """Returns the result, or a plan without victims for a pod that has room, or will have."""
    return Plan(pod, result.node, (), 0) if isinstance(result, NoPlan) and result.node else result


def preview(cluster: Cluster, pods: Iterable[Pod]) -> Iterator[tuple[Pod, Plan | NoPlan] | None]:
    """Yields the plan for each of these pods, one after the other. The cluster is as it was whenever it yields.

    Each plan counts for the next: its victims are going, and their room is kept. So does room that is there already, or
    is coming: the first takes it. None stands for a pause within one answer, in which the cluster may change.
    """
    planned: list[Reservation] = []
    without_plan: dict[Shape, NoPlan] = {}
    known: dict[str, Plan | NoPlan] = {}
    pods = list(pods)
    for pod in pods:
        if pod.uid not in known and cluster.gangs.is_waiting(pod):
            members = together_with(cluster, pod, pods)
            answer = yield from plans_for_all_steps(cluster, members, planned)
            uids = [member.uid for member in members or [pod]]
            known.update(zip(uids, answer, strict=True) if isinstance(answer, list) else dict.fromkeys(uids, answer))
        shape = shape_of(pod, cluster)
        result = (
            known.get(pod.uid) or without_plan.get(shape) or (yield from _search_after_steps(cluster, pod, planned))
        )
        takes = _takes(pod, result)
        if isinstance(takes, Plan):
            planned.append(_assumption(takes))
        elif pod.uid not in known:
            without_plan[shape] = takes
        yield pod, result


def _search_after_steps(
    cluster: Cluster, pod: Pod, planned: Iterable[Reservation], beside: Sequence[Pod] = ()
) -> Steps[Plan | NoPlan]:
    """The best plan for a pod once these are carried out; where it pauses they are not there.

    ``beside``: see ``victims.search_steps``.
    """
    planned = list(planned)
    work = victims.search_steps(cluster, pod, beside)
    return (yield from within_steps(partial(_assumed, cluster, planned), work, at_a_time=1 + len(planned) // FEW))


def _assumed(cluster: Cluster, planned: Iterable[Reservation]) -> AbstractContextManager[None]:
    reservations = cluster.reservations
    return reservations.assumed([each for each in planned if not reservations.is_held_for(each.pod.uid)])


def _assumption(plan: Plan) -> Reservation:
    """Keeps the room of a plan, as if it was begun. By a name of its own, as the pod's first may have been given up."""
    return replace(reservation_of(plan, 0.0), name=f"assumed-{plan.pod.uid}")
