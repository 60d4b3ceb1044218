"""Everything that happens to the pods of a namespace, recorded in order."""

import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Self

import httpx

from tests.controlplane.api import Api, path
from tests.controlplane.objects import Object, is_bound, requested


class PodWatch:
    """Records pod events while it is open, so that a test can ask what held *at every moment*.

    Where the API server cannot continue the watch (it was restarted), pods are listed again, the difference is
    recorded as events, and ``gaps`` counts one more moment that nobody has seen.
    """

    def __init__(self, api: Api, namespace: str):
        self.api = api
        self.namespace = namespace
        self.events: list[tuple[str, Object]] = []
        self.gaps = -1  # the first list is none
        self._since = ""
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch of {namespace}", daemon=True)

    def __enter__(self) -> Self:
        self._list()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()  # the thread notices within a second; nothing is recorded until then

    @property
    def pods(self) -> list[Object]:
        """The pods as they are now."""
        for pods in self._history():  # noqa: B007 (only the last one counts)
            pass
        return list(pods.values())

    @property
    def bound(self) -> int:
        """How many pods take room on a node now."""
        return sum(map(is_bound, self.pods))

    def most_bound(self) -> int:
        """The largest number of pods that took room on nodes at any one moment."""
        return max(sum(map(is_bound, pods.values())) for pods in self._history())

    def most_requested(self, resource: str) -> Decimal:
        """The largest amount of a resource that pods on nodes requested at any one moment."""
        return max(
            sum((requested(pod, resource) for pod in pods.values() if is_bound(pod)), Decimal(0))
            for pods in self._history()
        )

    def ever(self, condition: Callable[[Object], object]) -> set[str]:
        """Names of the pods for which this has held at any moment."""
        self._check()
        return {pod["metadata"]["name"] for _, pod in list(self.events) if condition(pod)}

    def _history(self) -> Iterator[dict[str, Object]]:
        """The pods by UID after each event."""
        self._check()
        pods: dict[str, Object] = {}
        yield pods
        for kind, pod in list(self.events):
            if kind == "DELETED":
                pods.pop(pod["metadata"]["uid"], None)
            else:
                pods[pod["metadata"]["uid"]] = pod
            yield pods

    def _check(self) -> None:
        if self._failure:
            raise AssertionError(f"the watch of {self.namespace} has failed") from self._failure

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._follow()
        except BaseException as failure:  # noqa: BLE001 (raised again in the test's thread)
            self._failure = failure

    def _follow(self) -> None:
        try:
            if not self._since:
                self._list()
            for event in self.api.watch("pods", self.namespace, self._since):
                if self._closing.is_set():
                    return
                self._record(event)
        except httpx.TransportError:
            self._closing.wait(0.05)  # nothing happened for a while, or the API server is away: go on from there
        except httpx.HTTPStatusError as error:
            if error.response.status_code == httpx.codes.GONE:
                self._since = ""
            elif error.response.is_client_error:
                raise
            self._closing.wait(0.05)

    def _record(self, event: Object) -> None:
        if event["type"] == "ERROR":
            assert event["object"].get("code") == httpx.codes.GONE, event
            self._since = ""
            return
        self._since = event["object"]["metadata"]["resourceVersion"]
        if event["type"] != "BOOKMARK":
            self.events.append((event["type"], event["object"]))

    def _list(self) -> None:
        answer = self.api.request("GET", path("pods", self.namespace))
        before = {pod["metadata"]["uid"]: pod for pod in self.pods}
        for pod in answer["items"]:
            before.pop(pod["metadata"]["uid"], None)
            self.events.append(("LISTED", pod))
        self.events += [("DELETED", pod) for pod in before.values()]
        self._since = answer["metadata"]["resourceVersion"]
        self.gaps += 1
