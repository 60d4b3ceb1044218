"""What a wild world begins with: settings of any kind, and situations in which much is about to happen."""

from app.settings import Settings
from app.store.heeded import GATE, GATED, GROUP, QUEUE
from app.store.namespaces import NAMESPACES
from tests.fuzz.seeds import ITEMS, NATIVE
from tests.unit.app.given import Json, made, namespace, node, pod, queue, quota, refused
from tests.unit.app.situations import cpus, created, group, situations
from tests.worlds.objects import NO_ROOM, REQUIRED
from tests.worlds.walk import Pick


def settings_by(pick: Pick) -> Settings:
    """Any of the switches on or off."""
    return Settings.model_validate(
        {
            "mode": pick(("enforce",) * 5 + ("observe",)),
            "elastic_quota": {"strict_borrowing": pick((False, False, True))},
            "fair_share": {"preemption": pick((False, True))},
            "gangs": {"enabled": pick((True, True, False)), "hold_time": pick((30, 0.5))},
            "gates": {"lookahead": pick((1.2, 1, 100)), "patience": pick((30, 0.5)), "concurrency": pick((1, 5))},
            "quota_manager": {"enabled": pick((False, True))},
            "reserve": {
                "evict": pick((False, True)),
                "starving_after": pick((0, 60, 172800)),
                "max_nodes_percent": pick((50, 100, 0)),
                "max_duration": pick((None, None, 0.5)),
            },
            "prioritize": {"borrowers_apart": pick((1, 0, 10))},
            "preemption": {"pdb": pick(("best-effort", "respect"))},
            "reclaim": {
                "delay": pick((1, 0)),
                "bind_timeout": pick((60, 1)),
                "broken_gang_grace": pick((60, 0)),
                "clean_up_broken_gangs": pick((True, True, False)),
                "fail_jobs": pick(("last", "last", "never")),
            },
            "run_time": {"evict": pick((False, False, True)), "grace": pick((60, 0))},
            "overdue": {"after": pick((300, 0))},
            "claims": {"patience": pick((30, 0.5))},
            "whatif": {"remedy_time": pick((0.01, 0.3)), "time_limit": 5},
            "store": {"settle_time": pick((0, 0, 3))},
        }
    )


def _lent() -> list[Json]:
    """Two full nodes, of which what is b's and c's is lent to a."""
    return [
        *(node("n1", **cpus(4)), node("n2", **cpus(4) | {"nvidia.com/gpu": "2"})),
        quota("a", "x", min={"cpu": 2}),
        quota("b", "x", min={"cpu": 3, "nvidia.com/gpu": 1}),
        quota("c", "x", min={"cpu": 3}, max={"cpu": 4}),
        group("a", 2),
        *(
            pod(
                f"p{n}",
                "a",
                nodeName="n1",
                metadata={"labels": {"app": "web", "scheduling.x-k8s.io/pod-group": "g" if n < 2 else "h"}},
            )
            for n in range(4)
        ),
        *(pod(f"s{n}", "a", nodeName="n2", metadata={"labels": {"app": "web"}}) for n in range(4)),
        *(refused(pod(f"p{n}", "b", {"cpu": 1 + n % 2}, created(3)), NO_ROOM) for n in range(3)),
        refused(pod("p3", "b", {"cpu": 1, "nvidia.com/gpu": 1}), NO_ROOM),
        refused(pod("p0", "c", {"cpu": 2}, priority=10), NO_ROOM),
        refused(pod("p1", "c", {"cpu": 2}), "0/2 nodes are available: 2 ElasticQuota borrowing exhausted: cpu."),
    ]


def _gangs() -> list[Json]:
    """Gangs of two namespaces beside each other, of which not all have room."""
    mates = [(of, f"p{n}", "g" if n < 3 else "h") for of in "abc" for n in range(5)]
    return [
        *(node("n1", **cpus(4)), node("n2", **cpus(2)), node("n3", **cpus(1))),
        *(group(of, 3) for of in "abc"),
        *(
            pod(name, of, {"cpu": "1"}, {"labels": {"app": "web", "scheduling.x-k8s.io/pod-group": g}, **created(3)})
            for of, name, g in mates
        ),
    ]


def _choosy() -> list[Json]:
    """Gangs whose members keep apart, before a few nodes, some of them at our gates."""
    apart = {
        "podAntiAffinity": {
            REQUIRED: [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]
        }
    }
    nodes = [node(f"n{n}", **cpus(2)) for n in (1, 2, 3)]
    for each in nodes:
        each["metadata"]["labels"] = {"kubernetes.io/hostname": each["metadata"]["name"]}
    gated = made(NAMESPACES, "c", metadata={"labels": {GATED: "true"}})
    return [
        *(
            *nodes,
            gated,
            group("a", 2),
            group("b", 3),
            group("c", 2),
            quota("b", "x", min={"cpu": 2}),
            queue("default"),
        ),
        *(
            pod(
                f"p{n}",
                of,
                {"cpu": "1"},
                {"labels": {"app": "web", "scheduling.x-k8s.io/pod-group": "g"}},
                affinity=apart,
            )
            for of in "ab"
            for n in range(3)
        ),
        *(
            pod(
                f"p{n}", "c", {"cpu": "1"}, {"labels": {GROUP: "g" if n < 2 else "h"}}, schedulingGates=[{"name": GATE}]
            )
            for n in range(4)
        ),
    ]


def _queued() -> list[Json]:
    """Two queues, of which one has more than it deserves, and a third of nobody's."""
    return [
        *(node("n1", **cpus(4)), node("n2", **cpus(4))),
        *(queue("q", weight=2, guarantee={"resource": {"cpu": "1"}}), queue("r"), queue("default", weight=1)),
        *(namespace("a", **{QUEUE: "q"}), namespace("b", **{QUEUE: "r"}), namespace("c", **{QUEUE: "r"})),
        *(pod(f"p{n}", "b", nodeName="n1") for n in range(4)),
        *(pod(f"p{n}", "c", nodeName="n2") for n in range(3)),
        *(refused(pod(f"p{n}", "a", {"cpu": 1 + n % 2}, created(3)), NO_ROOM) for n in range(3)),
        refused(pod("p4", "c", {"cpu": 2}), "0/2 nodes are available: 2 Queue deserved exceeded: cpu."),
    ]


def _gated() -> list[Json]:
    """Namespaces of two queues whose pods wait at our gates, with more of them than there is room for."""
    names = {"a": "q", "b": "q", "c": "r"}
    spaces = [namespace(of, **{QUEUE: name}) for of, name in names.items()]
    for each in spaces:
        each["metadata"]["labels"] = {GATED: "true"}
    waiting = [pod(f"p{n}", of, {"cpu": str(1 + n % 2)}, priority=n % 3) for of in names for n in range(5)]
    for number, each in enumerate(waiting):
        each["spec"] |= {"schedulingGates": [{"name": GATE}]}
        each["spec"] |= {"schedulingGroup": {"podGroupName": "g"}} if number % 2 else {}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    gangs = [made(NATIVE, "g", of, spec=spec) for of in names]
    return [*(node(f"n{n}", **cpus(4)) for n in (1, 2)), queue("q", weight=2), queue("r"), *spaces, *gangs, *waiting]


def _lent_to_gangs() -> list[Json]:
    """A full node of gangs that are lent what is another's: who loses one member may not do without it."""
    of_gang = {"labels": {GROUP: "g"}}
    return [
        *(node("n1", **cpus(6)), node("n2", **cpus(2))),
        *(quota("a", "x", min={"cpu": 1}), quota("b", "x", min={"cpu": 5}), quota("c", "x", min={"cpu": 2})),
        *(group("a", 3), group("c", 2)),
        *(pod(f"p{n}", "a", nodeName="n1", metadata=of_gang) for n in range(5)),
        *(pod(f"p{n}", "c", nodeName="n2", metadata=of_gang) for n in range(2)),
        *(refused(pod(f"p{n}", "b", {"cpu": 1 + n}, created(3)), NO_ROOM) for n in range(3)),
    ]


def start_by(pick: Pick) -> list[Json]:
    """One of the situations, or nothing."""
    known = [*situations().values(), *[ITEMS] * 4]
    for make in (_lent, _lent_to_gangs, _gangs, _choosy, _queued, _gated):
        known += [make()] * 4
    return pick((*([[]] * 8), *known))
