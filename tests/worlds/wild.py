"""A whole Quotaward without a network, its controllers and views, in a cluster where anything valid may happen."""

import asyncio
import json
import tempfile
from collections.abc import Callable, Coroutine
from copy import deepcopy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from app import checks
from app.actuators.kubernetes import KubernetesActuator
from app.actuators.recording import RecordingActuator
from app.main import application, cluster_of
from app.readiness import Readiness
from app.settings import Settings
from app.sources.manifests import ManifestSource
from app.store import budgets, elastic_quotas, jobs, namespaces, nodes, queues, reservations
from app.store.heeded import GATE, GATED
from app.store.pod_groups import POD_GROUPS
from app.store.pods import PODS
from app.store.store import Store
from app.whatif import scenario
from policy.cluster.attempts import refused_by_rules
from policy.cluster.cluster import Cluster
from policy.simulate.snapshot import Snapshot, snapshot
from policy.stepwise import at_once
from tests.unit.app.given import Clock, Json
from tests.worlds.anatomy import anatomy, assert_same, lines_of, sizes, standing
from tests.worlds.kinds import JOB_SETS, KINDS, ROWS
from tests.worlds.objects import EPOCH, NAMESPACES, NODES, QUEUES, Objects
from tests.worlds.quotaward import Quotaward, answer_of
from tests.worlds.scheduler import Scheduler, read
from tests.worlds.server import LONG_AGO, Server, key_of
from tests.worlds.starts import settings_by, start_by
from tests.worlds.walk import Pick

START = 1000.0
VIEWS = (
    *("/", "/?q=a", "/?q=p1&show=waiting", "/waiting", "/waiting?q=a", "/metrics", "/readyz"),
    *(
        f"/api/v1/{each}"
        for each in (
            "elasticquotas",
            "queues",
            "podgroups",
            "reservations",
            "decisions",
            "plan",
            "plan",
            "history",
            "evictions",
        )
    ),
    *("/api/v1/gates", "/api/v1/gates?limit=1", "/api/v1/gates?namespace=a"),
    *("/api/v1/jobs", "/api/v1/jobs?limit=1", "/api/v1/jobs?namespace=a"),
    *(f"{root}/jobs/a/{name}" for root in ("", "/api/v1") for name in "jk"),
    *(f"/api/v1/elasticquotas/{name}" for name in NAMESPACES),
    *(f"/api/v1/queues/{name}" for name in QUEUES),
)


class WildWorld:
    """Steps that may happen in any order. ``trace`` tells what did."""

    def __init__(self, pick: Pick, run: Callable[[Coroutine[Any, Any, None]], None], settings: Settings | None = None):
        """``run`` does some work to its end. With these settings nothing is there from the start."""
        self.settings = settings or settings_by(pick)
        self.recording = pick((False, False, False, True))  # as with a folder of manifests
        self.trace = [self.settings.model_dump_json(exclude_defaults=True)]
        self.clock = Clock(START)
        self.server, self.objects = Server(pick), Objects(pick)
        self._pick, self._run = pick, run
        self._born = 0
        for item in [] if settings else start_by(pick) or self._any_start():
            self._put(item)
        self._start()

    def _start(self) -> None:
        actuator = RecordingActuator if self.recording else lambda _: KubernetesActuator(self.server)
        self.quotaward = Quotaward(self.settings, self.clock, lambda: EPOCH + self.clock(), actuator)
        self.store = self.quotaward.store
        for kind in KINDS:
            self.server.list_anew(self.store, kind)
        self.scheduler = Scheduler(self.server, self.quotaward, self.trace.append)

    @property
    def cluster(self) -> Cluster:
        """The rules' picture of the world."""
        return self.store.cluster

    def steps(self) -> list[Callable[[Pick], None]]:
        does = (
            *[self._changes] * 13,
            *[self._is_scheduled] * 6,
            *[self._is_asked, self._is_looked_at, self._is_controlled] * 2,
            *[self._is_controlled, self._is_delivered, self._time_passes, self._jobs_run] * 2,
            *[self._is_looked_at, self._is_asked_what_if, self._is_simulated, self._happens_to_the_process],
        )
        return [partial(self._step, each) for each in does]

    def _step(self, does: Callable[[], Coroutine[Any, Any, None]], pick: Pick) -> None:
        """Something happens, and mostly all that has happened is seen then."""
        self._pick = self.objects.pick = self.server.pick = pick
        self._run(does())
        if pick(range(3)):
            self._deliver()

    def check(self) -> None:
        """All is compared in the end."""

    def finish(self) -> None:
        self._run(self._finish())

    def _put(self, item: Json) -> None:
        self.trace.append(f"put {json.dumps(item)}")
        self.server.put(item)

    # What happens in the cluster

    async def _changes(self) -> None:
        self._pick(
            (self._is_made, self._is_made, self._is_tweaked, self._is_tweaked, self._moves_on, self._is_deleted)
        )()

    def _any_start(self) -> list[Json]:
        """Something that may matter to each other, or it would take long until anything meets anything."""
        objects, pick = self.objects, self._pick
        items = [objects.node(name) for name in NODES[: pick((3, 2, 1, 0))]]
        for namespace in NAMESPACES:
            items += [objects.quota(namespace, "x", 0), objects.namespace(namespace)][: pick((2, 1, 0))]
            items += [objects.group(pick((*POD_GROUPS, *POD_GROUPS[:1] * 4)).label, namespace, "g", 0)]
        items += [objects.queue(name, "queue-0") for name in QUEUES[: pick((2, 0, 3))]]
        return items + [self._any_pod(self._new_uid()) for _ in range(pick((0, 6, 12)))]

    def _new_uid(self) -> str:
        self._born += 1
        return f"uid-{self._born}"

    def _any_pod(self, uid: str) -> Json:
        return self.objects.pod(self._pick(NAMESPACES), f"p{self._pick(range(5))}", uid, self.clock.now)

    def _anything(self, uid: str) -> Json:
        objects, pick, now, of = self.objects, self._pick, self.clock.now, self._pick(NAMESPACES)
        makers = (
            *[lambda: self._any_pod(uid)] * 8,
            *[lambda: objects.node(pick(NODES))] * 4,
            *[lambda: objects.quota(of, pick("xxy"), now)] * 2,
            *[lambda: objects.queue(pick(QUEUES), f"queue-{pick(range(3))}")] * 2,
            *[lambda: objects.group(pick((*POD_GROUPS, *POD_GROUPS[:1] * 2)).label, of, pick("gh"), now)] * 2,
            lambda: objects.namespace(of),
            lambda: objects.resource_quota(of, pick(("rq", "quotaward"))),
            lambda: objects.budget(of, pick(("pdb", "pdb2"))),
            *[lambda: objects.job(of, pick("jk"))] * 2,
            lambda: objects.job_set(of, pick("jk")),
            lambda: objects.default_of_pods(of, pick("xy")),
            lambda: objects.device(of, pick("cd")),
        )
        return pick(makers)()

    def _is_made(self) -> None:
        if self._pick(range(20)):
            self._put(self._anything(self._new_uid()))
            return
        item = self.objects.reservation(self.server.pods(), self.clock.now)
        known = self.server.objects["reservations"].get(key_of(reservations.RESERVATIONS, item))
        if known is None or "failedAt" not in known.get("status", {}):  # what was given up is so for good
            self._put(item)

    def _is_tweaked(self) -> None:
        some = (
            nodes.NODES,
            nodes.NODES,
            PODS,
            PODS,
            elastic_quotas.ELASTIC_QUOTAS,
            queues.QUEUES,
            namespaces.NAMESPACES,
            budgets.BUDGETS,
            jobs.JOBS,
            JOB_SETS,
        )
        known = list(self.server.objects[self._pick((*some, *POD_GROUPS)).label].values())
        if known:
            item = deepcopy(self._pick(known))
            self.objects.change(item)
            self._put(item)

    def _moves_on(self) -> None:
        """A pod is changed by whoever else is at work."""
        if not (pods := self.server.pods()):
            return
        pick, pod = self._pick, deepcopy(self._pick(pods))
        spec, status, node = pod["spec"], pod["status"], pick((*NODES, "gone"))
        anew = self.objects.pod(pod["metadata"]["namespace"], pod["metadata"]["name"], pod["metadata"]["uid"], 0)
        resized = {"name": "main", "allocatedResources": self.objects.amounts(2), "resources": {"requests": {}}}
        of_all = [
            (pod["metadata"], {"deletionTimestamp": LONG_AGO}),
            (status, {"phase": pick(("Running", "Succeeded", "Failed"))}),
        ]
        of_waiting = [
            *[(status, {"conditions": [self.objects.condition()]})] * 2,
            (status, {"nominatedNodeName": pick((node, ""))}),
            (spec, {"schedulingGates": pick(([], [{"name": GATE}], [{"name": "other"}]))}),
            (spec, {"nodeName": node}),
            (spec, {part: value for part, value in anew["spec"].items() if part != "nodeName"}),
        ]
        of_running = [(status, {"containerStatuses": [resized]}), (status, {"phase": "Succeeded"})]
        into, more = pick(of_all + (of_running if spec.get("nodeName") else of_waiting))
        into.update(more)
        self._put(pod)

    def _is_deleted(self) -> None:
        kind = self._pick((PODS, PODS, PODS, nodes.NODES, *KINDS))
        if keys := list(self.server.objects[kind.label]):
            key = self._pick(keys)
            self.trace.append(f"delete {kind.label} {key}")
            self.server.remove(kind, key)

    async def _jobs_run(self) -> None:
        """The controllers of Jobs and JobSets make the pods of those that run, and delete those of suspended ones."""
        self._job_sets_run()
        gated = {key[1] for key, item in self.server.objects["namespaces"].items() if _is_gated(item)}
        for (namespace, name), job in list(self.server.objects["jobs"].items()):
            spec, uid, status = job["spec"], job["metadata"]["uid"], job.get("status", {})
            own = [pod for pod in self.server.pods() if uid in map(_uid_of, pod["metadata"].get("ownerReferences", ()))]
            if spec.get("suspend"):
                for pod in own:
                    self.server.remove(PODS, key_of(PODS, pod))
                self._put(job | {"status": status | {"startTime": None}})
            elif "template" in spec:
                self._put(job | {"status": status | {"startTime": status.get("startTime") or "2026-01-01T00:00:00Z"}})
                for pod in own[spec["parallelism"] :] if self._pick((True, False)) else ():  # it is lowered
                    self.server.remove(PODS, key_of(PODS, pod))
                taken = {pod["metadata"]["name"] for pod in own}
                names = (f"{name}-{number}" for number in range(spec["parallelism"]))
                for missing in [each for each in names if each not in taken][: self._pick((1, 3))]:
                    made = self.objects.pod_of_job(job, missing, self._new_uid(), self.clock.now)
                    made["spec"]["schedulingGates"] = [{"name": GATE}] if namespace in gated else []
                    self._put(made)

    def _job_sets_run(self) -> None:
        """The controller of JobSets makes the pods itself here, without Jobs."""
        for (_, name), job_set in list(self.server.objects[JOB_SETS.label].items()):
            spec, uid = job_set["spec"], job_set["metadata"]["uid"]
            own = [pod for pod in self.server.pods() if uid in map(_uid_of, pod["metadata"].get("ownerReferences", ()))]
            if spec.get("suspend"):
                for pod in own:
                    self.server.remove(PODS, key_of(PODS, pod))
                continue
            taken = {pod["metadata"]["name"] for pod in own}
            missing = [
                (f"{name}-set-{part['name']}-{number}", part)
                for part in spec["replicatedJobs"]
                for number in range(part["replicas"])
            ]
            for each, part in [each for each in missing if each[0] not in taken][: self._pick((1, 3))]:
                self._put(self.objects.pod_of_job_set(job_set, part, each, self._new_uid(), self.clock.now))

    async def _is_scheduled(self) -> None:
        await self.scheduler.schedule(self._pick)

    async def _is_asked(self) -> None:
        await self.scheduler.ask_out_of_turn(self._pick, self.objects, self._new_uid())

    async def _time_passes(self) -> None:
        seconds = self._pick((0.25, 1.0, 5.0, 35.0, 400.0))
        self.trace.append(f"wait {seconds}")
        self.clock.now += seconds
        self.store.tick()

    # What reaches the process

    def _deliver(self) -> None:
        for kind in KINDS:
            self.server.deliver(self.store, kind)

    async def _is_delivered(self) -> None:
        kind = self._pick((*KINDS, PODS, PODS))
        self.trace.append(f"see {kind.label}")
        if self._pick(range(4)) == 0:
            self.server.list_anew(self.store, kind)
        else:
            self.server.deliver(self.store, kind, self._pick((1, 2, 100)))

    async def _happens_to_the_process(self) -> None:
        what = self._pick(("writes fail", "writes fail", "starts anew", "leads anew", "is cut off", "was not asked"))
        self.trace.append(what)
        if what == "writes fail":
            self.server.fails = self._pick((0, 0, 2, 10))
        elif what == "starts anew":
            self._start()
        elif what == "leads anew":
            self.quotaward.lead()
        elif what == "was not asked":
            self.cluster.in_flight.suspect(self.clock())
        else:
            self.store.lost(PODS)
            self.clock.now += 100
            await self.quotaward.control(self.quotaward.controllers)
            self.server.list_anew(self.store, PODS)

    async def _meddle(self) -> None:
        """Things happen between the steps of somebody else's work."""
        for _ in range(3):
            for _ in range(self._pick((0, 1, 3, 10))):
                await asyncio.sleep(0)
            await self._pick((self._changes, self._changes, self._is_scheduled))()
            self._deliver()

    # What people see

    async def _is_looked_at(self) -> None:
        pods = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in self.server.pods()]
        of_pods = [f"{root}/pods/{of}/{name}" for root in ("", "/api/v1") for of, name in (*pods, ("a", "gone"))]
        path = self._pick(self._pick((VIEWS, of_pods)))
        self.trace.append(f"look at {path}")
        if self._pick(range(3)):
            await self._look_at(path)
        else:
            await asyncio.gather(self._answer(path), self._meddle())

    async def _look_at(self, path: str) -> bytes:
        """Whoever looks changes nothing."""
        for _ in self.cluster.divide_steps():  # but for this, which may be needed first
            pass
        before = anatomy(self.cluster)
        content = await self._answer(path)
        assert_same(anatomy(self.cluster), before, f"a look at {path}")
        return content

    async def _answer(self, path: str, body: Json | None = None) -> bytes:
        method, (route, _, query) = "POST" if body else "GET", path.partition("?")
        encoded = json.dumps(body).encode() if body else b""
        status, content = await self.quotaward.answer(method, route, encoded, query.encode())
        assert status in (200, 404, 422, 503), (path, status, content)
        if route.startswith("/api"):
            read(content)
            assert b"/job/" not in content, "no list shows a Job as a pod"
        assert route != "/metrics" or not (b"NaN" in content or b"Inf " in content)
        return content

    async def _is_asked_what_if(self) -> None:
        apply, some = [self._anything("uid-if") for _ in range(self._pick((1, 2)))], self._pick((PODS, nodes.NODES))
        known = list(self.server.objects[some.label])[: self._pick((0, 0, 1))]
        question = {
            "apply": apply,
            "remove": [{"kind": some.name, "namespace": of, "name": name} for of, name in known],
        }
        self.trace.append(f"what if {json.dumps(question)}")
        for _ in self.cluster.divide_steps():
            pass
        before = anatomy(self.cluster)
        await self._answer("/api/v1/whatif", question)
        assert_same(anatomy(self.cluster), before, "what would be if")

    async def _is_simulated(self) -> None:
        """All that there is, as a folder of manifests that is checked, served and played as a story."""
        items = [deepcopy(item) for kind in KINDS for item in self.server.objects[kind.label].values()]
        for item in items:
            timed = self._pick(({}, {}, {scenario.AT: "5m", scenario.FOR: "10m"}))
            item["metadata"]["annotations"] = item["metadata"].get("annotations", {}) | timed
        self.trace.append("simulate")
        with tempfile.TemporaryDirectory(prefix="quotaward-wild-") as directory:
            folder = Path(directory)
            (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            ManifestSource(folder, Store(cluster_of(self.settings, 0), clock=self.clock, settle_time=0, kinds=KINDS))
            checks.manifests(folder)
            story = scenario.read(folder, rows=ROWS)
        for _ in islice(scenario.play_steps(story, self.settings, until=100_000), 300):
            pass

    # What the leader does

    async def _is_controlled(self) -> None:
        names = list(self.quotaward.controllers)
        chosen = names if self._pick(range(3)) == 0 else [self._pick(names)]
        self.clock.now += self._pick((0.3, 2.0, 0.0))
        self.store.tick()
        self.trace.append(f"{self.clock.now}: control by {', '.join(chosen)}")
        if self._pick(range(3)):
            await self.quotaward.control(chosen)
        else:
            await asyncio.gather(self.quotaward.control(chosen), self._meddle())

    def _give_back_claims_that_rules_refuse(self) -> None:
        """Who had lost its claim before its quota or queue refused it has it again for whoever starts anew."""
        for uid in [uid for uid, pod in self.cluster.attempts.refused.items() if refused_by_rules(pod)]:
            self.cluster.attempts.unschedulable.remove(uid)
            self.cluster.states.assign_again([uid])

    # What has to hold in the end

    async def _finish(self) -> None:
        """One that is told now how things stand knows the same; and when all is gone, nothing is left."""
        self.server.fails = 0
        self._deliver()
        self._give_back_claims_that_rules_refuse()
        _come_to_rest(self.cluster, self.clock())
        self.clock.now += 4000
        seen = snapshot(self.cluster, self.clock())
        for fresh in (self._told_in_another_order(seen), *([] if self.recording else [self._told_by_the_server()])):
            fresh.begin()
            at_once(fresh.queue_changes.count_steps(dict(seen.counted)))
            at_once(fresh.divide_steps())  # before pods may move: what was divided before was of pods in other queues
            _come_to_rest(fresh, self.clock())
            assert_same(standing(self.cluster), standing(fresh), "one that lived through it, and a fresh one")
        page = await self._look_at("/")
        fresh_app = application(Readiness(self.store), self.quotaward.extender, self.settings)
        _, anew = await answer_of(fresh_app, "GET", "/")
        assert_same(lines_of(page), lines_of(anew), "the page, and one made anew")
        self.trace.append("all is deleted")
        for kind in KINDS:
            for key in list(self.server.objects[kind.label]):
                self.server.remove(kind, key)
        bare = WildWorld(self._pick, self._run, self.settings)
        for _ in range(3):
            self._deliver()
            for world in (self, bare):
                world.clock.now += 4000
                world.store.tick()
                await world.quotaward.control(world.quotaward.controllers)
                await world._look_at("/")
        usual = bare.sizes()
        left = {path: size for path, size in self.sizes().items() if size > usual.get(path, 0)}
        assert not left, f"left over: {left}"

    def sizes(self) -> dict[str, int]:
        """How much is kept, by what keeps it."""
        return sizes(self.store, *self.quotaward.controllers.values(), self.quotaward.app.state.web)

    def _told_by_the_server(self) -> Cluster:
        epoch = self.cluster.leaving.deletions.now
        cluster = cluster_of(self.settings, 0)
        store = Store(cluster, clock=self.clock, settle_time=0, epoch=lambda: epoch, kinds=KINDS)
        for kind in KINDS:
            self.server.list_anew(store, kind)
        # Of what cannot be read the last good spec stays in force, which no fresh one knows.
        for quota in [quota for quotas in self.cluster.quotas.values() for quota in quotas.values() if quota.errors]:
            store.cluster.delete_quota(quota.namespace, quota.name)
            store.cluster.upsert_quota(quota)
        for queue in [queue for queue in self.cluster.queues.values() if queue.errors]:
            store.cluster.delete_queue(queue.name)
            store.cluster.upsert_queue(queue)
        return store.cluster

    def _told_in_another_order(self, seen: Snapshot) -> Cluster:
        """Pods first, and then what they are bound by."""
        cluster = cluster_of(self.settings, 0)
        cluster.leaving.pass_time(seen.epoch)
        for pod in reversed(seen.pods):
            cluster.upsert_pod(pod, self.clock())
        for upsert, some in (
            (cluster.upsert_reservation, seen.reservations),
            (cluster.upsert_budget, seen.budgets),
            (cluster.batch_jobs.upsert, seen.batch_jobs),
            (cluster.upsert_other_job, seen.other_jobs),
            (lambda each: cluster.queued_jobs.upsert(each, self.clock()), seen.queued_jobs),
            (cluster.devices.upsert_slice, seen.device_slices),
            (cluster.devices.upsert_claim, seen.device_claims),
            (lambda each: cluster.devices.upsert_template(*each[0], each[1]), seen.claim_templates),
            (lambda each: cluster.devices.upsert_class(*each), seen.device_classes),
            (lambda each: cluster.pod_defaults.upsert_priority_class(*each), seen.priority_classes),
            (lambda each: cluster.pod_defaults.upsert_runtime_class(*each), seen.runtime_classes),
            (lambda each: cluster.pod_defaults.upsert_limit_range(*each), seen.limit_ranges),
            (cluster.upsert_quota, seen.quotas),
            (cluster.upsert_node, reversed(seen.nodes)),
            (cluster.upsert_group, seen.groups),
            (lambda each: cluster.upsert_weight(*each[0], each[1]), seen.weights),
            (lambda each: cluster.upsert_limit(*each), seen.limits),
            (cluster.upsert_queue, reversed(seen.queues)),
            (cluster.upsert_namespace, seen.namespaces),
        ):
            for each in some:
                upsert(each)
        return cluster


def _is_gated(namespace: Json) -> bool:
    return (namespace["metadata"].get("labels") or {}).get(GATED) == "true"


def _uid_of(reference: Json) -> str:
    return str(reference.get("uid", ""))


def _come_to_rest(cluster: Cluster, now: float) -> None:
    """Nothing is granted any more, and time passes until nothing is changed by it.

    A fresh one grants, too: to pods of a Job that awaits its pods, if it sees the Job first.
    """
    for uid in list(cluster.gates.ungating):
        cluster.gate_admission.regate(uid, now)
    for pod in list(cluster.grants.pods()):
        cluster.withdraw(pod.uid)
    cluster.queued_jobs.at_gates()
    at_once(cluster.devices.renew_steps())
    for later in (0, 1000, 2000):
        at_once(cluster.queued_jobs.renew_steps())
        cluster.tick(now + later)
        for _ in cluster.divide_steps():
            pass
    cluster.lowered.look()  # as whoever opens gates does each time
