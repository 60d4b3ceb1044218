"""Records what happens to the objects of a cluster, by watches of the API server that go on whatever happens to it."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Self

import httpx

from tests.chaos.history import CLOCKS, KINDS, Record
from tests.controlplane.api import Api, path
from tests.controlplane.objects import Object

_PAUSE = 0.05


class Recorder:
    """Records all that happens while it is open.

    Where a watch cannot be resumed, objects are listed again, and ``gaps`` counts it.

    ``keep`` makes of an object what is recorded of it.
    """

    def __init__(self, api: Api, kinds: tuple[str, ...] = KINDS, keep: Callable[[Object], Object] = lambda item: item):
        self.api = api
        self._keep = keep
        self.records: list[Record] = []
        self.gaps = 0
        self._objects: dict[str, dict[str, Object]] = {kind: {} for kind in kinds}
        self._listed = {kind: threading.Event() for kind in kinds}
        self._closing = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(kind,), daemon=True) for kind in kinds]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        for kind, listed in self._listed.items():
            assert listed.wait(60), f"{kind} cannot be listed"
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(10)

    def note_clocks(self, *, wrong: bool) -> None:
        """Records whether some clock of Quotaward's is wrong from now on."""
        item = {"metadata": {"uid": CLOCKS}, "wrong": wrong}
        latest = max((record.revision for record in self.records), default=0)
        self.records.append(Record(time.monotonic(), latest, "MODIFIED", CLOCKS, item))

    def objects(self) -> Mapping[str, list[Object]]:
        """By kind, the objects as they are now."""
        if self._failures:
            raise AssertionError("a watch has failed") from self._failures[0]
        return {kind: list(there.values()) for kind, there in self._objects.items()}

    def _run(self, kind: str) -> None:
        since = ""
        try:
            while not self._closing.is_set():
                since = self._follow(kind, since)
        except BaseException as failure:  # noqa: BLE001 (raised again in the test's thread)
            self._failures.append(failure)

    def _follow(self, kind: str, since: str) -> str:
        """Records until the watch ends; returns the version to go on from, empty if it cannot go on."""
        try:
            if not since:
                since = self._list(kind)
            for event in self.api.watch(kind, None, since):
                if event["type"] == "ERROR":
                    assert event["object"].get("code") in (httpx.codes.GONE, httpx.codes.INTERNAL_SERVER_ERROR), event
                    self._closing.wait(_PAUSE)
                    return "" if event["object"]["code"] == httpx.codes.GONE else since
                since = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._note(event["type"], kind, event["object"], int(since))
        except httpx.TransportError:
            self._closing.wait(_PAUSE)  # nothing happened for a while, or the API server is away: go on from there
        except httpx.HTTPStatusError as error:
            self._closing.wait(_PAUSE)
            if error.response.status_code == httpx.codes.GONE:
                return ""
        return since

    def _list(self, kind: str) -> str:
        """What is there, and what has gone since the last time: as early as it may have gone, so that nobody is
        thought to have been there together with who came after it.
        """
        answer = self.api.request("GET", path(kind))
        gone = dict(self._objects[kind])
        last = max((int(each["metadata"]["resourceVersion"]) for each in gone.values()), default=0)
        for item in answer["items"]:
            gone.pop(item["metadata"]["uid"], None)
            self._note("LISTED", kind, item, int(item["metadata"]["resourceVersion"]))
        for item in gone.values():
            self._note("DELETED", kind, item, last)
        self.gaps += bool(last)
        self._listed[kind].set()
        return answer["metadata"]["resourceVersion"]

    def _note(self, event: str, kind: str, item: Object, revision: int) -> None:
        item = self._keep(item)
        there, uid = self._objects[kind], item["metadata"]["uid"]
        if event == "DELETED":
            there.pop(uid, None)
        else:
            there[uid] = item
        self.records.append(Record(time.monotonic(), revision, event, kind, item))
