"""In the place of the API server: objects, what may be done to them, and what watches have still to tell of it."""

import copy
import json
from collections import deque
from http import HTTPStatus
from typing import Any

from app.actuators.kubernetes import JSON_PATCH
from app.store.kind import Kind
from app.store.pods import PODS
from app.store.reservations import RESERVATIONS
from app.store.resource_quotas import RESOURCE_QUOTAS
from app.store.store import Store
from tests.unit.app.given import Json
from tests.worlds.kinds import KINDS
from tests.worlds.walk import Pick

DONE = HTTPStatus.OK
FAILURES = (500, 403, 409, 429)
LONG_AGO = "2027-01-15T08:00:00Z"
_KIND_OF = {(kind.api_version, kind.name): kind for kind in KINDS}


def key_of(kind: Kind, item: Json) -> tuple[str, str]:
    """What identifies an object of its kind on an API server."""
    return item["metadata"].get("namespace") or "" if kind.namespaced else "", item["metadata"]["name"]


class Server:
    """``send`` is what our client of an API server has. It fails so many times of ten, and a watch may lag behind."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.objects: dict[str, dict[tuple[str, str], Json]] = {kind.label: {} for kind in KINDS}
        self.fails = 0
        self._lagging: dict[str, deque[tuple[bool, bytes]]] = {kind.label: deque() for kind in KINDS}
        self._version = 1

    def pods(self) -> list[Json]:
        """All pods."""
        return list(self.objects["pods"].values())

    def put(self, item: Json) -> None:
        """There is this object from now on."""
        kind, item = _KIND_OF[item["apiVersion"], item["kind"]], copy.deepcopy(item)
        known = self.objects[kind.label].get(key_of(kind, item))
        if kind is PODS:
            item.setdefault("status", {"phase": "Pending"})
            if known is not None and known["metadata"]["uid"] != item["metadata"]["uid"]:
                self.remove(kind, key_of(kind, item))
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self.objects[kind.label][key_of(kind, item)] = item
        self._lagging[kind.label].append((True, json.dumps(item).encode()))

    def remove(self, kind: Kind, key: tuple[str, str]) -> None:
        """The object is gone."""
        item = self.objects[kind.label].pop(key)
        self._lagging[kind.label].append((False, json.dumps(item).encode()))

    def note(self, pod: Json, status: Json) -> None:
        """The scheduler writes into the status of a pod, if it is still there and waits."""
        current = self.objects["pods"].get(key_of(PODS, pod))
        if current and current["metadata"]["uid"] == pod["metadata"]["uid"] and not current["spec"].get("nodeName"):
            self.put(current | {"status": current["status"] | status})

    def bind(self, pod: Json, node: str) -> int:
        """Binds a pod to a node, if it is still there and waits."""
        current = self.objects["pods"].get(key_of(PODS, pod))
        if not current or current["metadata"].get("uid") != pod["metadata"]["uid"] or current["spec"].get("nodeName"):
            return HTTPStatus.CONFLICT
        self.put(current | {"spec": current["spec"] | {"nodeName": node}, "status": {"phase": "Running"}})
        return HTTPStatus.CREATED

    def deliver(self, store: Store, kind: Kind, most: int = 10**6) -> None:
        """A watch tells of what has happened, of at most so much."""
        events = self._lagging[kind.label]
        for _ in range(min(most, len(events))):
            there, line = events.popleft()
            obj = kind.decoder.decode(line)
            if there:
                store.upsert(kind, obj)
            else:
                store.delete(kind, kind.key(obj.metadata))

    def list_anew(self, store: Store, kind: Kind) -> None:
        """All objects of a kind are listed; what a watch had still to tell is lost."""
        self._lagging[kind.label].clear()
        keys = set()
        for item in self.objects[kind.label].values():
            obj = kind.decoder.decode(json.dumps(item).encode())
            keys.add(kind.key(obj.metadata))
            store.upsert(kind, obj)
        store.keep_only(kind, keys)
        store.complete(kind)

    async def send(self, method: str, path: str, body: Any, content_type: str, **_: Any) -> tuple[int, bytes]:
        """What our actuator asks for, as an API server would do it."""
        if self.pick(range(10)) < self.fails:
            if self.pick(range(4)) == 0:
                raise TimeoutError
            return self.pick(FAILURES), b"no"
        json.dumps(body, allow_nan=False)
        return int(self._do(method, path.partition("?")[0].split("/"), body, content_type)), b"{}"

    def _do(self, method: str, path: list[str], body: Any, content_type: str) -> int:
        root, rest = ("v1", path[3:]) if path[1] == "api" else (f"{path[2]}/{path[3]}", path[4:])
        namespace, rest = (rest[1], rest[2:]) if rest[0] == "namespaces" else ("", rest)
        plural, name, part = [*rest, "", ""][:3]
        if plural == "events":
            return HTTPStatus.CREATED
        kind = next(kind for kind in KINDS if (kind.api_version, kind.plural) == (root, plural))
        if method == "POST" and not part:
            return self._create(kind, namespace, body)
        known = self.objects[kind.label].get((namespace, name))
        if known is None:
            return HTTPStatus.NOT_FOUND
        if method == "PATCH":
            return self._patch(copy.deepcopy(known), body, content_type)
        if part == "binding":
            return self.bind(body | {"metadata": body["metadata"] | {"name": name}}, body["target"]["name"])
        return self._evict_or_delete(kind, known, body)

    def _create(self, kind: Kind, namespace: str, body: Json) -> int:
        body["metadata"] |= {"namespace": namespace} if namespace else {}
        if key_of(kind, body) in self.objects[kind.label]:
            return HTTPStatus.CONFLICT
        if kind is RESERVATIONS:
            body["metadata"]["creationTimestamp"] = LONG_AGO
        if kind is RESOURCE_QUOTAS:
            body["metadata"]["uid"] = f"rq-{self._version}"
        self.put(body)
        return HTTPStatus.CREATED

    def _evict_or_delete(self, kind: Kind, known: Json, body: Any) -> int:
        """At once, after a while, or (where it is an eviction) not now."""
        meta, options = known["metadata"], (body or {}).get("deleteOptions") or body or {}
        if options.get("preconditions", {}).get("uid", meta.get("uid")) != meta.get("uid"):
            return HTTPStatus.CONFLICT
        what = self.pick(("refuse", "linger", "linger", "go")) if kind is PODS else "go"
        if what == "refuse":
            return HTTPStatus.TOO_MANY_REQUESTS
        if what == "linger":
            self.put(known | {"metadata": meta | {"deletionTimestamp": LONG_AGO}})
        else:
            self.remove(kind, key_of(kind, known))
        return DONE

    def _patch(self, item: Json, body: Any, content_type: str) -> int:
        if content_type == JSON_PATCH:
            if not all(_apply(item, operation) for operation in body):
                return HTTPStatus.UNPROCESSABLE_ENTITY
        elif body.get("metadata", {}).get("uid", item["metadata"].get("uid")) != item["metadata"].get("uid"):
            return HTTPStatus.CONFLICT
        else:
            _merge(item, body)
        self.put(item)
        return DONE


def _merge(into: Json, patch: Json) -> None:
    for key, value in patch.items():
        if key == "conditions" and isinstance(into.get(key), list):
            types = {each["type"] for each in value}
            into[key] = [each for each in into[key] if each["type"] not in types] + value
        elif isinstance(value, dict):
            into[key] = there if isinstance(there := into.get(key), dict) else {}
            _merge(into[key], value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = value


def _apply(into: Any, operation: Json) -> bool:
    """An operation of a JSON patch; whether it can be done."""
    *path, last = (part.replace("~1", "/") for part in operation["path"].split("/")[1:])
    try:
        for part in path:
            into = into[int(part) if isinstance(into, list) else part]
        at = int(last) if isinstance(into, list) else last
        if operation["op"] == "test":
            return bool((into.get(at) if isinstance(into, dict) else into[at]) == operation["value"])
        if operation["op"] == "remove":
            del into[at]
        else:
            into[at] = operation["value"]
    except (KeyError, IndexError):
        return False
    return True
