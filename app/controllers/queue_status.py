"""Writes what each queue deserves, has and uses, and what is wrong with it, into its status. For the leader only.

This is a part of the controller ``status``. It changes only the fields that it writes: ``state`` and the counters of
pod groups belong to other programs.
"""

import asyncio

from app.actuators.protocol import Actuator
from app.controllers.rounds import at_intervals_with_group
from app.controllers.status_writer import Json, StatusWriter, Subject, condition_of
from app.shapes import quantities
from app.store.queues import QUEUES
from app.store.store import Store
from policy.cluster import quota_manager
from policy.cluster.cluster import Cluster
from policy.cluster.shown_resources import allocated, shown
from policy.explain.terminating import conditions_of_queue
from policy.objects.queue import ROOT
from policy.objects.resources import total

INTERVAL = 1.0
"""Seconds between writes of one queue."""
REFRESH = 300.0
"""Seconds until an unchanged status is written again, which corrects changes by others: these are not read."""
AT_ONCE = 20
"""Writes under way at a time."""
SLICE = 50


class QueueStatus:
    """Keeps the status of every queue equal to the ledger."""

    def __init__(self, store: Store, actuator: Actuator) -> None:
        self._store = store
        self._actuator = actuator
        self._writer = StatusWriter("queue", AT_ONCE, REFRESH, store.clock, write=self._write)

    async def run(self) -> None:
        """Runs until cancelled."""
        await at_intervals_with_group(INTERVAL, self.look)

    async def look(self, group: asyncio.TaskGroup) -> None:
        """Writes, in the group, the statuses that have changed. A slow write delays no other."""
        cluster = self._store.cluster
        if self._store.unready() or self._store.lacks(QUEUES):
            return
        wanted: dict[Subject, Json] = {}
        for index, name in enumerate(list(cluster.queues)):
            if name in cluster.queues:
                wanted[Subject("", name, cluster.queues[name].uid)] = status_of(cluster, name)
            if index % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        await self._writer.write_missing(group, wanted)

    async def _write(self, queue: Subject, status: Json) -> None:
        await self._actuator.write_queue_status(queue.name, status)


def status_of(cluster: Cluster, name: str) -> Json:
    """Returns the status of an existing queue, without the transition times of its conditions.

    Seed: Queue API. ``allocated`` counts pods on nodes and admitted pods, ``used`` only pods on nodes. ``preempting``
    counts the room held for pods that others are evicted for, and the use of the queue's own terminating pods.
    All of them count the queues below it, too.
    """
    queue, queues = cluster.queues[name], cluster.ledger.queues
    inside, division = list(queues.inside(name)), queues.node(name).division
    request, held = shown(cluster, queues.requested(name)), shown(cluster, total(each.held for each in inside))
    leaving = total(quota_manager.preempting(cluster, each.queue.name) for each in inside if each.queue is not None)
    zero = dict.fromkeys({**division.deserved, **queue.capability, **queue.guarantee, **request}, 0)
    conditions: dict[str, Json] = {}
    for condition in conditions_of_queue(cluster, name):  # one for each type
        if condition.type in conditions:
            conditions[condition.type]["message"] += f"; {condition.message}"
        else:
            conditions[condition.type] = condition_of(condition)
    return {
        "deserved": quantities({**zero, **division.deserved}),
        "allocated": quantities({**zero, **allocated(cluster, name)}),
        "used": quantities({**zero, **shown(cluster, total(each.running for each in inside))}),
        "preempting": quantities(total((held, shown(cluster, leaving)))),
        "parent": "" if name == ROOT else queue.parent,
        "children": queues.tree.children_of(name),
        "conditions": list(conditions.values()),
    }
