"""kube-scheduler in a wild world: it tries pods, and does with our answers what it does."""

import copy
import json
from collections.abc import Callable
from typing import Any

from app.store.pods import PODS
from policy.nodes import fit
from tests.unit.app.given import Json
from tests.worlds.objects import NAMESPACES, NO_ROOM, NODES, Objects
from tests.worlds.quotaward import Quotaward
from tests.worlds.server import Server, key_of
from tests.worlds.walk import Pick

GONE = "gone"


def read(content: bytes) -> Any:
    """What JSON says; NaN and Infinity are none."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(content, parse_constant=refuse)


class Scheduler:
    """Asks Quotaward about what the server has; it sees of the nodes what the store sees."""

    def __init__(self, server: Server, quotaward: Quotaward, tell: Callable[[str], None]) -> None:
        self._server = server
        self._quotaward = quotaward
        self._store = quotaward.store
        self._tell = tell

    async def schedule(self, pick: Pick) -> None:
        """One attempt at a pod that waits."""
        pods = self._server.pods()
        waiting = [pod for pod in pods if not (pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates"))]
        if waiting:
            await self._try(copy.deepcopy(pick(waiting)), pick)

    async def ask_out_of_turn(self, pick: Pick, objects: Objects, born: str) -> None:
        """Anything: about a pod that is gone, or was never seen, or runs; with nodes that are not there."""
        unseen = objects.pod(pick((*NAMESPACES, "d")), f"p{pick(range(5))}", born, 0)
        unseen["spec"].pop("nodeName", None)
        item, verb = pick((*self._server.pods(), unseen)), pick(("filter", "prioritize", "preempt", "bind"))
        self._tell(f"ask {verb} {json.dumps(item)}")
        if verb == "bind":
            await self._ask(verb, _binding(item, pick((*NODES, GONE))))
        elif verb == "preempt":
            victims = {name: {"Pods": self._server.pods()[:2]} for name in (*NODES, GONE)}
            await self._ask(verb, {"Pod": item, "NodeNameToVictims": victims})
        else:
            names = pick((list(NODES), [GONE], [], ["n1", "n1"]))
            await self._ask(verb, {"Pod": item} | self._candidates(names, pick))

    async def _try(self, item: Json, pick: Pick) -> None:
        self._tell(f"schedule {key_of(PODS, item)}")
        offered, exempt = self._offered(item, pick), self._is_exempt(item)
        answer = await self._ask("filter", {"Pod": item} | self._candidates(offered, pick)) if offered else {}
        if answer is None:
            self._say(item, 'running "filter": failed filter with extender at URL', "SchedulerError")
            return
        failed = answer.get("FailedAndUnresolvableNodes") or {}
        whole = [node["metadata"]["name"] for node in (answer.get("Nodes") or {}).get("items", [])]
        passing = answer.get("NodeNames") or whole
        assert {*passing, *failed} == {*offered}, (answer, offered)
        assert not (exempt and failed), answer
        if passing:
            await self._ask("prioritize", {"Pod": item} | self._candidates(passing, pick))
            await self._place(item, pick(passing), pick)
        else:
            self._say(item, f"0/4 nodes are available: 4 {next(iter(failed.values()))}." if failed else NO_ROOM)
            await self._preempt(item, pick)

    async def _place(self, item: Json, node: str, pick: Pick) -> None:
        """Mostly it is bound; now and then it comes to nothing, or nobody ever hears of it again."""
        what = pick(("by itself", "by itself", "by itself", "by us", "not", "never"))
        if what == "not":
            self._say(item, NO_ROOM)
        elif what == "by us":
            await self._ask("bind", _binding(item, node))
        elif what == "by itself":
            self._server.bind(item, node)

    async def _preempt(self, item: Json, pick: Pick) -> None:
        on = {name: [pod for pod in self._server.pods() if pod["spec"].get("nodeName") == name] for name in NODES}
        proposed = {name: {"Pods": [{"UID": pod["metadata"]["uid"]} for pod in pods[:3]]} for name, pods in on.items()}
        answer = await self._ask("preempt", {"Pod": item, "NodeNameToMetaVictims": proposed})
        victims = list((answer or {}).get("NodeNameToMetaVictims", {}).items())
        if victims:
            node, chosen = pick(victims)
            uids = {each["UID"] for each in chosen["Pods"]}
            assert uids, answer
            self._tell(f"preempt {uids}")
            for pod in [pod for pod in self._server.pods() if pod["metadata"]["uid"] in uids]:
                self._server.remove(PODS, key_of(PODS, pod))
            self._server.note(item, {"nominatedNodeName": node})

    def _say(self, item: Json, message: str, reason: str = "Unschedulable") -> None:
        said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        self._tell(f"say {message}")
        self._server.note(item, {"conditions": [said]})

    def _offered(self, item: Json, pick: Pick) -> list[str]:
        """Where it fits, as far as is seen; or anything."""
        pod, table = self._store.cluster.pods.get(item["metadata"]["uid"]), self._store.cluster.table
        fitting = [table.names[row] for row in fit.fits(table, pod).nonzero()[0]] if pod else []
        return pick((fitting, fitting, fitting, fitting, list(NODES), [GONE], [*NODES[:2], GONE]))

    def _is_exempt(self, item: Json) -> bool:
        """Whether no rule applies to a pod, as far as what is seen of it is what is asked about."""
        pod = self._store.cluster.pods.get(item["metadata"]["uid"])
        seen = pod is not None and str(pod.version) == item["metadata"]["resourceVersion"]
        return seen and self._store.cluster.is_exempt(pod)

    def _candidates(self, names: list[str], pick: Pick) -> Json:
        if pick(range(3)):
            return {"NodeNames": names}
        known = self._server.objects["nodes"]
        return {"Nodes": {"items": [known.get(("", name), {"metadata": {"name": name}}) for name in names]}}

    async def _ask(self, verb: str, body: Json) -> Any:
        """The answer of a verb; None where it is not ready to say anything."""
        status, content = await self._quotaward.answer("POST", f"/extender/{verb}", json.dumps(body).encode())
        assert status in (200, 503), (status, content)
        return read(content) if status == 200 else None


def _binding(item: Json, node: str) -> Json:
    meta = item["metadata"]
    return {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}
