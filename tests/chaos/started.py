"""Whether nodes stayed reserved for a Job from its start until its pods had come; see the checker."""

from collections.abc import Iterator
from math import inf

from tests.chaos.history import History, Position
from tests.chaos.reserved import goes_on_as_it_is, job_of, members, not_filled, pods_of, turns_of
from tests.controlplane.cluster import QUEUE
from tests.controlplane.objects import Object


def of_started_jobs(history: History, seen: float) -> Iterator[tuple[float, str]]:
    """Yields which nodes were given up too early, a sentence each, with its position. ``seen`` is that of the leeway.

    Those that were given up because the time for it was over say so.
    """
    for reservation, _, ended in history.reservations.values():
        spec, is_over = reservation["spec"], reservation.get("status", {}).get("failedAt")
        if not job_of(spec) or ended == inf or is_over:
            continue
        position = int(ended)
        coming, left = _still_to_come(history, spec, position, seen)
        if coming > left and not _may_be_lifted(history, spec, position, seen):
            whom = f"{spec['pod']['namespace']}/{spec['pod']['name']}"
            text = f"{spec['nodeName']} is not reserved for {whom} any more, whose Job has started"
            yield ended, f"{text}: {coming} of its pods are to come, and room is reserved for {left}"


def _still_to_come(history: History, spec: Object, ended: Position, seen: float) -> tuple[int, int]:
    """How many pods of a Job that has started are to come, and for how many of them nodes are still reserved."""
    start, turns = history.window(ended, seen), turns_of(history, spec, ended)
    if not turns or goes_on_as_it_is(history, spec, min(start, turns[-1][0]), ended) is None or turns[-1][1]:
        return 0, 0  # one that has grown may need further nodes, and all are given up if there are none
    waiting = [life for life in pods_of(history, spec) if life.waits(start) and life.waits(ended)]
    there = {each["nodeName"]: each for each, _ in members(history, spec, ended)}.values()
    left = sum(len(not_filled(history, each, turns[-1][0], ended)) for each in there)
    return sum(not life.pod["spec"].get("schedulingGates") for life in waiting), left


def _may_be_lifted(history: History, spec: Object, ended: Position, seen: float) -> bool:
    """Whether it may have got another node, or all are given up as there is one too few, or its pods are refused."""
    again = any(
        each["spec"]["pod"] == spec["pod"] and ended <= began and history.times[began] <= history.times[ended] + seen
        for each, began, _ in history.reservations.values()
    )
    started = turns_of(history, spec, ended)[-1][0]
    nodes = {each["nodeName"] for each, _ in members(history, spec, ended - 1)} & history.sizes.keys()
    changed = any(len(list(history.sizes[node].during(started, ended))) > 1 for node in nodes)
    lost = any(life.ended <= ended for life in pods_of(history, spec))
    wrong = True in history.wrong_clocks.during(history.window(ended, seen), ended)
    return again or changed or lost or wrong or _may_be_refused(history, spec["pod"]["namespace"])


def _may_be_refused(history: History, namespace: str) -> bool:
    """Whether a quota or a queue may come to refuse the pods of a namespace."""
    namespaces = (each["metadata"] for each in history.objects("namespaces"))
    in_queue = any(QUEUE in each.get("annotations", {}) for each in namespaces if each["name"] == namespace)
    return in_queue or namespace in history.bounds
