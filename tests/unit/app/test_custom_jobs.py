"""Jobs of the kinds in the table: what is read of them, whose their pods are, and what becomes of them."""

import json
from contextlib import suppress

import msgspec
import pytest

from app import cli_output
from app.actuators.events import about_pod
from app.job_kinds import SHIPPED
from app.kube.job_patches import path_of, start, suspension
from app.store.custom_jobs import LARGEST_COUNT, MOST_TEMPLATES, kind_of
from app.store.jobs import JOBS
from app.store.kinds import kinds_with
from app.store.namespaces import NAMESPACES
from policy.preemption import reclaim
from policy.preemption.losses import lost_jobs
from policy.queueing.ungating import UngatingRound
from policy.simulate.snapshot import copy_steps, snapshot
from policy.stepwise import at_once
from tests.unit.app.given import client_of, made, node, pod, see, store_with
from tests.unit.app.lines import lines_once
from tests.unit.given_queues import divided

KINDS = {row.kind: kind_of(row) for row in SHIPPED}
JOB_SET, RAY_JOB, RAY_CLUSTER = KINDS["JobSet"], KINDS["RayJob"], KINDS["RayCluster"]
LABEL = "jobset.sigs.k8s.io/jobset-name"


def template(cpu="1", **spec):
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]} | spec}


def replicated(name, replicas, parallelism, cpu="1"):
    """A replicated job of a JobSet."""
    return {"name": name, "replicas": replicas, "template": {"spec": _of_job(parallelism, cpu)}}


def _of_job(parallelism, cpu):
    return {"template": template(cpu)} | ({} if parallelism is None else {"parallelism": parallelism})


def job_set(name="set", *replicated_jobs, suspend=True, metadata=None, status=None, **spec):
    """A JobSet, unless more is said of a leader of two cores and two workers of one."""
    jobs = list(replicated_jobs) or [replicated("leader", 1, 1, "2"), replicated("workers", 1, 2)]
    metadata = {"uid": f"uid-{name}", "creationTimestamp": "2026-11-27T20:55:00Z"} | (metadata or {})
    spec = {"replicatedJobs": jobs} | ({} if suspend is None else {"suspend": suspend}) | spec
    return made(JOB_SET, name, "a", metadata, spec=spec) | ({"status": status} if status else {})


def owned_by(kind, name, uid):
    """Metadata of what it controls."""
    return {"ownerReferences": [{"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid} | OWN]}


OWN = {"controller": True}


def child(name="set-workers-0", owner="set"):
    """The Job that a JobSet makes."""
    spec = {"parallelism": 2, "suspend": False, "template": template()}
    return made(JOBS, name, "a", {"uid": f"uid-{name}"} | owned_by(JOB_SET, owner, f"uid-{owner}"), spec=spec)


def member(name, job="set-workers-0", requests=None, labels=None, **spec):
    """A pod of such a Job."""
    metadata = {"uid": name, "labels": labels or {}} | owned_by(JOBS, job, f"uid-{job}")
    return pod(name, requests=requests, metadata=metadata, **spec)


def world(*items, cpu="100", label="queued"):
    labels = {"quotaward.dev/jobs": label}
    store = store_with(
        made(NAMESPACES, "a", metadata={"labels": labels}),
        node(cpu=cpu, memory="1Ti", pods="500"),
        *items,
        kinds=kinds_with(SHIPPED),
    )
    divided(store.cluster)
    return store


def stand_in(store, name="set"):
    return store.cluster.pods.get(f"job/uid-{name}")


def start_all(store):
    """The stand-ins of what is started in one round."""
    return [each for some in UngatingRound(divided(store.cluster), lookahead=1).run(store.clock()) for each in some]


# What is read


def test_a_suspended_job_set_demands_what_all_of_its_pods_request():
    found = stand_in(world(job_set()))
    assert (found.title, found.request) == ("JobSet a/set (3 pods)", {"cpu": 4000, "pods": 3})


@pytest.mark.parametrize(
    ("jobs", "pods"),
    [
        ([replicated("a", 3, 4)], 12),
        ([replicated("a", 3, None)], 3),
        ([replicated("a", 2, 1), replicated("b", 1, 1)], 3),
        ([replicated("a", 2, 1), replicated("b", 0, 9)], 2),
        ([replicated("a", 2, -1), replicated("b", 1, 1)], 1),
        ([replicated("a", None, 5)], 5),
        ([replicated("a", 2**31 - 1, 2**31 - 1)], LARGEST_COUNT),
        ([replicated("a", 2**31 - 1, 1), replicated("b", 2**31 - 1, 1)], LARGEST_COUNT),
    ],
)
def test_counts_are_multiplied_and_bounded(jobs, pods):
    assert stand_in(world(job_set("set", *jobs))).stands_for.pods == pods


def ray_spec(*, suspend=True, **more):
    """The spec of a RayCluster with a head of one core and two workers of three."""
    workers = {"groupName": "w", "replicas": 2, "minReplicas": 0, "maxReplicas": 2, "template": template("3")}
    return {"headGroupSpec": {"template": template()}, "workerGroupSpecs": [workers], "suspend": suspend} | more


SUSPENDED = {
    "JobSet": {"replicatedJobs": [replicated("a", 1, 2, "3"), replicated("b", 1, 1)], "suspend": True},
    "RayCluster": ray_spec(),
    "RayJob": {"suspend": True, "shutdownAfterJobFinishes": True, "rayClusterSpec": ray_spec(suspend=False)},
    "MPIJob": {
        "runPolicy": {"suspend": True},
        "mpiReplicaSpecs": {
            "Launcher": {"template": template()},
            "Worker": {"replicas": 2, "template": template("3")},
        },
    },
    "PyTorchJob": {
        "runPolicy": {"suspend": True},
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": template()},
            "Worker": {"replicas": 2, "template": template("3")},
        },
    },
}


@pytest.mark.parametrize("name", SUSPENDED)
def test_a_job_of_each_built_in_kind_waits_with_all_of_its_pods(name):
    kind = KINDS[name]
    store = world(made(kind, "x", "a", {"uid": "uid-x"}, spec=SUSPENDED[name]))
    assert (stand_in(store, "x").request, stand_in(store, "x").stands_for.pods) == ({"cpu": 7000, "pods": 3}, 3)
    [started] = start_all(store)
    assert started.stands_for.kind.name == name


@pytest.mark.parametrize(
    "item",
    [
        job_set(managedBy="kueue.x-k8s.io/multikueue"),
        job_set(status={"conditions": [{"type": "Completed", "status": "True"}]}),
        job_set(status={"conditions": [{"type": "Failed", "status": "True"}]}),
        job_set(metadata=owned_by(RAY_JOB, "above", "u")),
        job_set(metadata={"deletionTimestamp": "2026-11-27T20:55:00Z"}),
        job_set(suspend=False),
        job_set(suspend=None),
        job_set(replicatedJobs=[]),
        job_set(replicatedJobs=None),
        job_set(replicatedJobs=[{"name": "a"}]),
    ],
)
def test_jobs_that_others_run_that_have_ended_or_have_no_pods_do_not_wait(item):
    assert stand_in(world(item)) is None


@pytest.mark.parametrize("item", [job_set(managedBy="jobset.sigs.k8s.io/jobset-controller"), job_set(status={})])
def test_jobs_that_their_own_project_runs_wait(item):
    assert stand_in(world(item)) is not None


@pytest.mark.parametrize("state", ["Complete", "Failed", "Running"])
def test_a_field_may_say_that_a_job_has_ended(state):
    item = made(RAY_JOB, "x", "a", {"uid": "uid-x"}, spec=SUSPENDED["RayJob"])
    store = world(item | {"status": {"jobDeploymentStatus": state}})
    assert (stand_in(store, "x") is None) is (state != "Running")


@pytest.mark.parametrize("name", ["JobSet", "JobSet of no label"])
def test_where_jobs_do_not_wait_only_those_suspended_for_us_are_started(name):
    marked = name == "JobSet"
    item = job_set(metadata={"labels": {"quotaward.dev/queued": "true"}} if marked else {})
    store = world(item, label="no")
    assert [each.title for each in start_all(store)] == (["JobSet a/set (3 pods)"] if marked else [])


def test_since_when_it_waits_is_that_of_its_condition():
    since = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-27T21:00:00Z"}
    store = world(job_set(status={"conditions": [since]}))
    job = store.cluster.queued_jobs.of(stand_in(store))
    assert job.since == job.created + 300


# What is hostile or broken


def test_a_job_of_too_many_different_templates_is_reported_and_not_started(capsys):
    def many(number):
        return job_set("set", *(replicated(f"r{at}", 1, 1, f"{at + 1}m") for at in range(number)))

    assert stand_in(world(many(MOST_TEMPLATES))).stands_for.pods == MOST_TEMPLATES
    assert stand_in(world(many(MOST_TEMPLATES + 1))) is None
    assert "there are more than 16 different templates" in capsys.readouterr().out


@pytest.mark.parametrize("is_starting", [False, True])
@pytest.mark.parametrize(
    "parts",
    [
        [replicated(f"r{at}", 1, 1, f"{at + 1}m") for at in range(MOST_TEMPLATES + 1)],
        [{"template": {"spec": {"template": 1}}}],
        [replicated("a", 1, 1, "x")],
    ],
    ids=["too many templates", "no template", "no quantity"],
)
def test_a_job_that_becomes_unreadable_leaves_its_line_and_keeps_nothing(parts, is_starting):
    store = world(job_set())
    if is_starting:
        is_started(store, job_set())
    see(store, job_set("set", *parts, suspend=not is_starting))
    assert (stand_in(store), start_all(store), store.cluster.ledger.account("a").used) == (None, [], {})
    if not is_starting:
        see(store, job_set())
        assert stand_in(store) is not None


def test_equal_templates_count_once_however_many_there_are():
    store = world(job_set("set", *(replicated(f"r{at}", 1, 1) for at in range(1000))))
    assert stand_in(store).stands_for.pods == 1000
    assert len(store.cluster.queued_jobs.wanted(stand_in(store))) == 1


@pytest.mark.parametrize(
    "spec",
    [
        {"suspend": "yes"},
        {"replicatedJobs": 1},
        {"replicatedJobs": [1]},
        {"replicatedJobs": [{"replicas": "1"}]},
    ],
)
def test_what_cannot_be_read_changes_nothing_that_was_known(spec):
    store = world(job_set())
    broken = job_set(**spec)
    kind = next(kind for kind in store.kinds if kind.name == "JobSet")
    with suppress(msgspec.ValidationError):  # the reflector reports it
        store.upsert(kind, kind.decoder.decode(json.dumps(broken)))
    assert stand_in(store).request == {"cpu": 4000, "pods": 3}


@pytest.mark.parametrize("template", [1, {"spec": []}, {"spec": {"containers": [1]}}])
def test_a_template_that_is_none_is_reported_with_its_path(template, capsys):
    parts = [{"name": "a", "template": {"spec": {"template": template}}}]
    assert stand_in(world(job_set(replicatedJobs=parts))) is None
    assert "spec.replicatedJobs[*].template.spec.template" in capsys.readouterr().out


# Start and suspension


def test_the_start_is_one_patch_with_tests_and_so_is_the_suspension():
    store = world(job_set(), made(KINDS["MPIJob"], "mpi", "a", {"uid": "uid-mpi"}, spec=SUSPENDED["MPIJob"]))
    waiting = stand_in(store).stands_for
    assert path_of(waiting.kind, "a", "set") == "/apis/jobset.x-k8s.io/v1alpha2/namespaces/a/jobsets/set"
    assert start(waiting) == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-set"},
        {"op": "test", "path": "/spec/suspend", "value": True},
        {"op": "replace", "path": "/spec/suspend", "value": False},
    ]
    assert start(stand_in(store, "mpi").stands_for)[1]["path"] == "/spec/runPolicy/suspend"


@pytest.mark.parametrize(("suspend", "seen"), [(False, False), (None, None)])
def test_a_job_is_suspended_as_it_was_seen(suspend, seen):
    job = world(job_set(suspend=suspend)).cluster.batch_jobs.others.get("uid-set")
    assert suspension(job)[1:] == [
        {"op": "test", "path": "/spec/suspend", "value": seen},
        {"op": "add", "path": "/spec/suspend", "value": True},
    ]


def test_events_are_about_the_object():
    subject = about_pod(stand_in(world(job_set())))
    assert (subject.api_version, str(subject), subject.uid) == ("jobset.x-k8s.io/v1alpha2", "JobSet a/set", "uid-set")


# Whose pods they are


def is_started(store, item):
    [started] = start_all(store)
    assert started.stands_for.uid == item["metadata"]["uid"]
    see(store, item | {"spec": item["spec"] | {"suspend": False}})


def missing(store, name="set"):
    found = stand_in(store, name)
    return found.stands_for.pods if found is not None else 0


def test_pods_of_the_jobs_of_a_job_set_take_over_what_is_kept_for_it():
    store = world(job_set())
    is_started(store, job_set())
    see(store, child(), member("w0"), member("w1"))
    assert (missing(store), {"w0", "w1"} <= {each.uid for each in store.cluster.grants.pods()}) == (1, True)
    see(store, child("set-leader-0"), member("l0", "set-leader-0", {"cpu": "2"}))
    assert (missing(store), store.cluster.ledger.account("a").used) == (0, {"cpu": 4000, "pods": 3})


def test_pods_that_come_before_their_job_is_seen_take_over_once_it_is():
    store = world(job_set())
    is_started(store, job_set())
    see(store, member("w0"))
    assert missing(store) == 3
    see(store, child())
    assert (missing(store), "w0" in store.cluster.grants) == (2, True)


def test_a_label_of_the_project_tells_whose_a_pod_is_before_its_job_is_seen():
    store = world(job_set())
    is_started(store, job_set())
    see(store, member("w0", labels={LABEL: "set"}), member("other", labels={LABEL: "another"}))
    assert missing(store) == 2


def test_a_pod_stands_for_its_own_template():
    store = world(job_set())
    is_started(store, job_set())
    see(store, child(), member("w0"))
    assert stand_in(store).request == {"cpu": 3000, "pods": 2}, "the leader and a worker are missing"


def test_pods_of_a_ray_job_belong_to_its_cluster():
    item = made(RAY_JOB, "x", "a", {"uid": "uid-x"}, spec=SUSPENDED["RayJob"])
    store = world(item)
    is_started(store, item)
    cluster = made(
        RAY_CLUSTER,
        "x-raycluster",
        "a",
        {"uid": "uid-c"} | owned_by(RAY_JOB, "x", "uid-x"),
        spec=ray_spec(suspend=False),
    )
    see(store, pod("head", metadata={"uid": "head"} | owned_by(RAY_CLUSTER, "x-raycluster", "uid-c")))
    assert missing(store, "x") == 3
    see(store, cluster)
    assert missing(store, "x") == 2


def test_a_pod_of_another_namespace_gets_nothing():
    store = world(job_set())
    is_started(store, job_set())
    see(store, pod("w0", "b", metadata={"uid": "w0", "labels": {LABEL: "set"}} | owned_by(JOB_SET, "set", "uid-set")))
    assert missing(store) == 3
    assert store.cluster.batch_jobs.owner_of(store.cluster.pods["w0"]) is None


def test_owners_that_own_each_other_are_followed_to_an_end():
    store = world(
        job_set("one", metadata={"uid": "one"} | owned_by(JOB_SET, "two", "two"), suspend=False),
        job_set("two", metadata={"uid": "two"} | owned_by(JOB_SET, "one", "one"), suspend=False),
        pod("p", metadata={"uid": "p"} | owned_by(JOB_SET, "one", "one"), nodeName="n1"),
    )
    jobs = store.cluster.batch_jobs
    assert jobs.owner_of(store.cluster.pods["p"]).name in ("one", "two")
    assert jobs.whole(store.cluster.pods["p"]) is None, "each has an owner"
    assert list(jobs.may_own(jobs.others.get("one"))) == ["p"]


# Taken back


def running(store, name="w0"):
    return store.cluster.pods[name]


def test_pods_of_a_running_job_set_are_taken_back_as_a_whole():
    store = world(job_set(suspend=False), child(), member("w0", nodeName="n1"), member("w1", nodeName="n1"))
    jobs = store.cluster.batch_jobs
    whole = jobs.whole(running(store))
    assert (whole.object, {each.uid for each in reclaim.running_pods(store.cluster, whole)}) == (
        "JobSet a/set",
        {"w0", "w1"},
    )


def test_the_pods_that_run_of_a_job_are_found_at_no_cost_for_those_of_others():
    def lines(others):
        members = [member(f"o{number}", "others", nodeName="n1") for number in range(others)]
        store = world(job_set(suspend=False), child(), member("w0", nodeName="n1"), *members)
        return lines_once(reclaim.running_pods, store.cluster, store.cluster.batch_jobs.whole(running(store)))

    assert lines(others=40) == lines(others=2)


def test_of_a_large_job_no_more_pods_are_looked_at_than_are_wanted():
    def lines(pods):
        members = [member(f"w{number}", nodeName="n1") for number in range(pods)]
        store = world(job_set(suspend=False), child(), *members)
        return lines_once(reclaim.running_pods, store.cluster, store.cluster.batch_jobs.whole(running(store)), 2)

    assert lines(pods=40) == lines(pods=4)


@pytest.mark.parametrize(
    "item",
    [
        job_set(),
        job_set(suspend=False, managedBy="kueue.x-k8s.io/multikueue"),
        job_set(suspend=False, metadata=owned_by(RAY_JOB, "above", "u")),
        job_set(suspend=False, status={"conditions": [{"type": "Failed", "status": "True"}]}),
    ],
    ids=["suspended already", "run by others", "owned by others", "ended"],
)
def test_other_job_sets_are_not_suspended(item):
    store = world(item, child(), member("w0", nodeName="n1"))
    assert store.cluster.batch_jobs.whole(running(store)) is None


def test_a_label_alone_makes_no_pod_one_that_is_taken_back_with_a_job():
    store = world(job_set(suspend=False), pod("p", metadata={"uid": "p", "labels": {LABEL: "set"}}, nodeName="n1"))
    assert store.cluster.batch_jobs.whole(running(store, "p")) is None


@pytest.mark.parametrize(
    ("change", "bears_it"),
    [
        ({}, True),
        ({"clusterSelector": None}, True),
        ({"clusterSelector": {"a": "b"}}, False),
        ({"rayClusterSpec": None, "clusterSelector": {"a": "b"}}, False),
        ({"shutdownAfterJobFinishes": False}, False),
    ],
)
def test_a_ray_job_that_fails_if_it_is_suspended_is_left_alone(change, bears_it):
    runs = SUSPENDED["RayJob"] | {"suspend": False} | change
    submitter = made(JOBS, "x", "a", {"uid": "uid-j"} | owned_by(RAY_JOB, "x", "uid-x"), spec={"template": template()})
    of_it = pod("p", metadata={"uid": "p"} | owned_by(JOBS, "x", "uid-j"), nodeName="n1")
    store = world(made(RAY_JOB, "x", "a", {"uid": "uid-x"}, spec=runs), submitter, of_it)
    assert (store.cluster.batch_jobs.whole(running(store, "p")) is not None) is bears_it
    store = world(made(RAY_JOB, "x", "a", {"uid": "uid-x"}, spec=runs | {"suspend": True}))
    assert (stand_in(store, "x") is not None) is bears_it


def test_without_a_place_for_the_field_a_job_cannot_be_suspended():
    item = made(
        KINDS["MPIJob"], "x", "a", {"uid": "uid-x"}, spec={"mpiReplicaSpecs": SUSPENDED["MPIJob"]["mpiReplicaSpecs"]}
    )
    of_it = pod("p", metadata={"uid": "p"} | owned_by(KINDS["MPIJob"], "x", "uid-x"), nodeName="n1")
    store = world(item, of_it)
    assert running(store, "p").controller == "uid-x"
    assert store.cluster.batch_jobs.whole(running(store, "p")) is None


def test_a_job_that_is_gone_waits_and_owns_nothing():
    store = world(job_set())
    store.delete(next(kind for kind in store.kinds if kind.name == "JobSet"), ("a", "set"))
    assert (stand_in(store), len(store.cluster.batch_jobs.others)) == (None, 0)


def test_a_copy_of_the_cluster_knows_them():
    store = world(job_set(), job_set("runs", suspend=False), child(owner="runs"), member("w0", nodeName="n1"))
    copy = at_once(copy_steps(snapshot(store.cluster, store.clock())))
    assert copy.pods["job/uid-set"] == stand_in(store)
    assert copy.batch_jobs.whole(copy.pods["w0"]).name == "runs"


# Seen from outside


def test_rest_names_the_kind_and_explains_one():
    store = world(job_set(), cpu="1")
    client = client_of(store)
    [shown] = client.get("/api/v1/jobs").json()["items"]
    assert (shown["kind"], shown["name"], shown["pods"], shown["demand"]) == (
        "JobSet",
        "set",
        3,
        {"cpu": "4", "pods": "3"},
    )
    explained = client.get("/api/v1/jobs/a/jobset/set").json()
    assert (explained["verdict"], explained["gate"]["place"]) == ("admissible", 1)
    assert explained["summary"].startswith("JobSet a/set ")
    assert client.get("/jobs/a/jobset/set").status_code == 200
    assert client.get("/pods?name=a/jobset/set").headers["location"] == "jobs/a/jobset/set"
    assert "JobSet <a href=" in client.get("/").text


def test_rest_says_what_it_does_not_know():
    client = client_of(world(job_set("runs", suspend=False)))
    assert "does not wait as a whole" in client.get("/api/v1/jobs/a/jobset/runs").json()["summary"]
    assert "no jobset x in namespace a is known" in client.get("/api/v1/jobs/a/jobset/x").json()["summary"]


def test_what_a_plan_costs_names_the_kind():
    store = world(job_set("set", suspend=False), child(), member("w0", nodeName="n1"), member("w1", nodeName="n1"))
    pods = [store.cluster.pods[name] for name in ("w0", "w1")]
    lost = lost_jobs(store.cluster.batch_jobs, pods, ())
    assert lost.suspending == dict.fromkeys(("w0", "w1"), "JobSet a/set")
    assert lost.text == "this suspends JobSet a/set: all of its pods go, and it waits again"


def test_pods_that_are_owned_without_a_job_cost_their_job():
    item = made(KINDS["PyTorchJob"], "x", "a", {"uid": "uid-x"}, spec=SUSPENDED["PyTorchJob"])
    item["spec"] = item["spec"] | {"runPolicy": {"suspend": False}}
    worker = pod("p", metadata={"uid": "p"} | owned_by(KINDS["PyTorchJob"], "x", "uid-x"), nodeName="n1")
    store = world(item, worker)
    assert lost_jobs(store.cluster.batch_jobs, [running(store, "p")], ()).suspending == {"p": "PyTorchJob a/x"}


@pytest.mark.parametrize(("suspended", "said"), [("a/train", "Job a/train"), ("JobSet a/set", "JobSet a/set")])
def test_the_plan_of_the_command_says_what_is_suspended(capsys, suspended, said):
    eviction = {"pod": "a/p", "node": "n1", "for": "b/q", "suspendsJob": suspended}
    cli_output.print_plan({"evictions": [eviction], "waiting": []})
    assert f"({said} is suspended)" in capsys.readouterr().out


def test_lists_of_names_have_what_explain_takes():
    [shown] = client_of(world(job_set())).get("/api/v1/jobs").json()["items"]
    assert cli_output.explained_name(shown) == "a/jobset/set"
