"""Remedies for a waiting pod: raise a bound, end pods, add nodes, and others that fit its cause.

Each is computed from the numbers as they are. All others that wait decide, too, whether one really lets the pod run. So
the caller tries it on a copy, and asks again for what is still missing there (app.whatif.remedies).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from policy.cluster.cluster import Cluster
from policy.explain.queue_remedies import for_capability, for_deserved, for_share, opened, placed
from policy.explain.quota_remedies import corrected_quota, for_borrowing, for_max
from policy.explain.remedy import MOST_ADDED, Need, ObjectChange, Remedies, Remedy
from policy.explain.room_remedies import add_nodes, for_room
from policy.explain.run_time_remedies import for_run_time
from policy.objects.pod import Pod, turn
from policy.objects.verdict import MOST_TOLD, Refusal
from policy.quota import elastic_quota, fair_share, queue_rules, run_time_limit
from policy.quota.rule import QUOTA
from policy.quota.rules import BY_NAME
from policy.reserve import starving
from policy.stepwise import Steps

WAYS: dict[str, tuple[Callable[[Need], Remedies], ...]] = {
    run_time_limit.RULE.name: (for_run_time,),
    elastic_quota.INVALID.name: (corrected_quota,),
    elastic_quota.MAX.name: (for_max,),
    elastic_quota.BORROWING.name: (for_borrowing,),
    queue_rules.CLOSED.name: (opened,),
    queue_rules.INVALID.name: (placed,),
    queue_rules.CAPABILITY.name: (for_capability, add_nodes),
    queue_rules.DESERVED.name: (for_deserved, add_nodes),
    fair_share.RULE.name: (for_share, add_nodes),
}
"""Remedies by the rule that refuses a pod. They need the whole cluster, so they are no part of the rule."""


def is_tried(rule: str) -> bool:
    """False only for a rule about numbers that has no line in ``WAYS``: its hints are shown instead."""
    return rule in WAYS or rule not in BY_NAME or BY_NAME[rule].refuses is None


def remedies_steps(cluster: Cluster, pod: Pod, first: Sequence[Pod] = ()) -> Steps[list[Remedy]]:
    """Returns remedies for a waiting pod where all others have had their turn, the likeliest first.

    ``first`` are other pods that take free room before it. The cluster must be a copy: weights are tried out on it.
    Iterate to the end; it may pause.
    """
    yield from _give_claims_back_steps(cluster)
    pod = cluster.pods[pod.uid]
    refused, members = cluster.check(pod), [pod, *cluster.gangs.mates(pod)]
    concerned = members
    if refused is None and len(members) > 1:
        concerned, refused = _refused_together(cluster, members)
    have_room = yield from _have_room_steps(cluster, pod)
    need = Need(cluster, concerned, first, have_room=have_room if concerned == members else None)
    found = yield from _gathered_steps(for_room(need) if refused is None else _for_rule(need, refused))
    of_gang = list(_for_gang(cluster, pod, have_room)) if cluster.gangs.is_waiting(pod) else []
    return of_gang + found if cluster.gangs.lacks_members(pod) else found + of_gang


def ahead(cluster: Cluster, pod: Pod) -> list[Pod]:
    """Returns the waiting pods that come before this one."""
    waiting = (each for each in cluster.pods.values() if each.pending and not (each.terminating or each.gated))
    return [each for each in waiting if turn(each) < turn(pod)]


def _refused_together(cluster: Cluster, members: list[Pod]) -> tuple[list[Pod], Refusal | None]:
    """Returns the members of a gang that a rule refuses, and the refusal. They may be in several queues or none."""
    refused = starving.refused_together(cluster, members)
    if refused is None or BY_NAME[refused.rule].of == QUOTA:
        return members, refused
    for name in dict.fromkeys(map(cluster.queue_of, members)):
        of_queue = [member for member in members if cluster.queue_of(member) == name]
        if (alone := starving.refused_together(cluster, of_queue)) is not None:
            return of_queue, alone
    return [member for member in members if cluster.queue_of(member) in cluster.queues], refused


def _gathered_steps(found: Remedies) -> Steps[list[Remedy]]:
    gathered = []
    for each in found:
        if each is None:
            yield
        else:
            gathered.append(each)
    return gathered


def _for_rule(need: Need, refused: Refusal) -> Remedies:
    """Yields remedies where a rule refuses the members; none if it does for more resources than are told of."""
    if len(refused.resources) <= MOST_TOLD:
        for way in WAYS.get(refused.rule, ()):
            yield from way(replace(need, resources=refused.resources))


def _give_claims_back_steps(cluster: Cluster) -> Steps[None]:
    """Gives waiting pods their claims again, as after any change that could help them."""
    for uid in list(cluster.attempts.unschedulable_since):
        cluster.upsert_pod(replace(cluster.pods[uid], unschedulable=None), 0.0)
        yield
    yield from cluster.divide_steps()


def _have_room_steps(cluster: Cluster, pod: Pod) -> Steps[int | None]:
    """Returns how many members of a waiting gang could run together now; None for another pod, or with too few members.

    Any members: of those that a rule does not admit, others take the place.
    """
    group = cluster.gangs.gated(pod) if cluster.gangs.is_waiting(pod) else None
    missing = cluster.gangs.missing(pod)
    if group is None or len(cluster.gangs.mates(pod)) + 1 < missing:
        return None
    return (yield from cluster.gangs.search.most_steps(pod, cluster.gangs.others(pod, group), missing))


def _for_gang(cluster: Cluster, pod: Pod, have_room: int | None) -> Iterator[Remedy]:
    """Suggests more members, or a smaller minimum: as many as there are, or as have room."""
    group = cluster.gangs.gated(pod)
    if group is None:
        return
    kind, _, name = group.name.partition("/")
    target, ready = f"PodGroup {group.namespace}/{name}", len(cluster.gangs.ready(group) - {pod.uid})
    there = ready + 1 + len(cluster.gangs.mates(pod))
    lacking = group.minimum - there
    least = there if have_room is None else ready + max(1, have_room)
    if 0 < lacking <= MOST_ADDED:
        names = [f"{pod.name}-more-{number + 1}" for number in range(lacking)]
        text = f"create {lacking} more {'member' if lacking == 1 else 'members'} of {target}"
        yield Remedy("members", text, tuple(ObjectChange("Pod", pod.namespace, name, like=pod) for name in names))
    text = f"lower the minimum of {target} from {group.minimum} to {least}"
    yield Remedy("minimum", text, (ObjectChange(kind, group.namespace, name, ((("spec", "minMember"), least),)),))
