"""Many short Jobs that wait as a whole and go through a few places: made, started in their turn, and run to the end."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.history import Record
from tests.chaos.recorder import Recorder
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object, job
from tests.controlplane.processes import wait_until
from tests.controlplane.queueing import queue_jobs_in
from tests.controlplane.quotaward import Quotaward

ENDS_AFTER = "tests.quotaward.dev/ends-after"
"""Annotation of a pod that ends by itself, and after what time."""
KINDS = ("jobs", "pods")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A namespace with so many Jobs, to which this part of the places belongs."""

    namespace: str
    part: float
    jobs: int


def tenants(cluster: Cluster, jobs: int) -> list[Tenant]:
    """Two queues of weights 1 and 4, the second of two namespaces of weights 1 and 3, and who has how many Jobs."""
    of_first, of_second = cluster.queue("first", weight=1), cluster.queue("second", weight=4)
    found = []
    for queue, weight, part in ((of_first, 1, 0.2), (of_second, 1, 0.2), (of_second, 3, 0.6)):
        namespace = cluster.namespace("short", queue=queue)
        cluster.weigh(namespace, weight)
        queue_jobs_in(cluster, namespace)
        found.append(Tenant(namespace, part, round(part * jobs)))
    return found


def short_job(name: str, namespace: str, ends_after: str) -> Object:
    """A Job of one pod that ends by itself."""
    item = job(name, namespace, suspend=True)
    item["spec"]["template"]["metadata"]["annotations"] = {ENDS_AFTER: ends_after}
    item["metadata"]["labels"] = {"quotaward.dev/queued": "true"}
    return item


def make(cluster: Cluster, given: Sequence[Tenant], ends_after: str, quotaward: Quotaward) -> None:
    """Makes all Jobs, those of the namespaces in turn, and waits until they are known.

    Also to their controller. It makes pods in the order in which it hears of Jobs. With some thousand new ones to look
    at, it would make the pods of the last ones first, and whoever has most of these would have its places back sooner.
    """
    rows = ([short_job(f"job-{n:05}", each.namespace, ends_after) for n in range(each.jobs)] for each in given)
    cluster.api.create_all(each for row in itertools.zip_longest(*rows) for each in row if each is not None)
    number = sum(each.jobs for each in given)
    wait_until(lambda: quotaward.metric("quotaward_pending_jobs") == number, "all Jobs wait", 600, every=0.5)
    wait_until(lambda: all(_seen_suspended(cluster, each) for each in given), "their controller knows", 600, every=2)


def _seen_suspended(cluster: Cluster, tenant: Tenant) -> bool:
    """Whether the controller of Jobs has seen that all Jobs of a namespace are suspended."""
    return all(item["status"].get("conditions") for item in cluster.api.items("jobs", tenant.namespace))


def kept(item: Object) -> Object:
    """What is recorded of a Job or a pod."""
    meta = item["metadata"]
    metadata = {name: meta.get(name) for name in ("uid", "name", "namespace", "resourceVersion", "creationTimestamp")}
    owners = [owner["uid"] for owner in meta.get("ownerReferences", ())]
    counts = {name: item["status"].get(name) for name in ("succeeded", "failed")} if "status" in item else {}
    return {"metadata": metadata, "owners": owners, "suspend": item["spec"].get("suspend"), "status": counts}


class Turns:
    """What happened to the Jobs, from the records of their watch."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def jobs(self) -> dict[str, list[Record]]:
        """The records of each Job that was made meanwhile, by its UID; earlier ones are found in a list."""
        found = defaultdict[str, list[Record]](list)
        for record in list(self._recorder.records):
            if record.kind == "jobs":
                found[record.object["metadata"]["uid"]].append(record)
        return {uid: records for uid, records in found.items() if records[0].type != "LISTED"}

    def ended(self) -> int:
        """How many have run to the end."""
        return sum(bool(each["status"].get("succeeded")) for each in self._recorder.objects()["jobs"])

    def starts(self) -> list[Record]:
        """The records in which a Job is started, in order."""
        found = []
        for records in self.jobs().values():
            found += [
                now for was, now in itertools.pairwise(records) if was.object["suspend"] and not now.object["suspend"]
            ]
        return sorted(found, key=lambda record: record.revision)

    def wrong(self) -> Iterator[str]:
        """Says which Jobs have not run exactly once."""
        pods = Counter(uid for each in self._of_pods() for uid in each)
        started = Counter(record.object["metadata"]["uid"] for record in self.starts())
        for uid, records in self.jobs().items():
            last, name = records[-1].object, records[-1].object["metadata"]["name"]
            if (started[uid], pods[uid], last["status"]) != (1, 1, {"succeeded": 1, "failed": None}):
                yield f"{name}: started {started[uid]} times, {pods[uid]} pods, {last['status']}"

    def _of_pods(self) -> list[list[str]]:
        owners = {r.object["metadata"]["uid"]: r.object["owners"] for r in self._recorder.records if r.kind == "pods"}
        return list(owners.values())

    def out_of_turn(self) -> int:
        """By how many turns a Job was started before or after its age in its namespace says, at most."""
        of_namespace = defaultdict[str, list[tuple[str, str]]](list)
        for record in self.starts():
            meta = record.object["metadata"]
            of_namespace[meta["namespace"]].append((meta["creationTimestamp"], meta["name"]))
        most = 0
        for order in of_namespace.values():  # each has a due order of its own: Jobs of two may have one name and age
            due = {each: turn for turn, each in enumerate(sorted(order))}
            most = max(most, *(abs(turn - due[each]) for turn, each in enumerate(order)))
        return most

    def imbalance(self, given: Sequence[Tenant]) -> float:
        """By how many places a namespace had more or less than its part of all starts, at most over all prefixes.

        It stops where the first namespace has no Job left that waits.
        """
        so_far, most = Counter[str](), 0.0
        for number, record in enumerate(self.starts(), start=1):
            so_far[record.object["metadata"]["namespace"]] += 1
            if any(so_far[each.namespace] == each.jobs for each in given):
                break
            most = max(most, *(abs(so_far[each.namespace] - number * each.part) for each in given))
        return most
