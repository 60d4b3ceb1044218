"""Jobs that wait as a whole, as people see them: in REST, on the page, in explanations and in metrics."""

import asyncio
import json
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from app.actuators.protocol import Rejected
from app.actuators.recording import RecordingActuator
from app.cli import app
from app.questions import flow_of
from app.serving.seats import Flow
from app.store.heeded import FOR
from app.store.jobs import JOBS
from app.store.namespaces import NAMESPACES
from app.store.priority_classes import PRIORITY_CLASSES
from policy.simulate.waiting_jobs import LARGEST_JOB
from tests.unit.app.given import client_of, made, node, pod, queue, quota, refused, see, store_with
from tests.unit.app.manifest_folder import Folder
from tests.unit.app.test_gates import Ungating
from tests.unit.app.test_page import Parsed
from tests.unit.given_gates import ungated
from tests.unit.given_queues import divided

GATE = {"name": "quotaward.dev/quota"}
QUEUE = "scheduling.volcano.sh/queue-name"
STARTED = {"startTime": "2026-11-27T20:55:00Z"}


def labelled(name="a", **labels):
    labels = {"quotaward.dev/jobs": "queued", "quotaward.dev/gated": "true"} | labels
    return made(NAMESPACES, name, metadata={"labels": labels})


def job(name, parallelism=2, namespace="a", created=1, requests=None, annotations=None, of_pods=None, **spec):
    """A Job that is suspended, and was so for us; its pods ask for one core each."""
    container = {"name": "main", "resources": {"requests": {"cpu": "1"} | (requests or {})}}
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"containers": [container]} | (of_pods or {}),
    }
    time, marked = f"2026-11-27T20:55:{created:02}Z", {"quotaward.dev/queued": "true"}
    metadata = {"uid": f"uid-{name}", "creationTimestamp": time, "labels": marked}
    spec = {"suspend": True, "parallelism": parallelism, "template": template} | spec
    return made(JOBS, name, namespace, metadata, spec=spec)


def world(*items, cpu="100"):
    """A store whose namespace a queues Jobs and gates pods, with room on one node."""
    store = store_with(labelled(), node(cpu=cpu, memory="1Ti", pods="500"), *items)
    divided(store.cluster)
    return store


def jobs_of(store, query=""):
    return client_of(store).get(f"/api/v1/jobs{query}").json()


# REST


def test_jobs_are_listed_in_the_order_of_their_start_and_say_why_they_wait():
    store = world(
        made(PRIORITY_CLASSES, "high", value=5),
        job("late", 3, created=3),
        job("early", created=1),
        job("urgent", created=4, of_pods={"priorityClassName": "high"}),
        quota("a", max={"cpu": 2}),
    )
    told = jobs_of(store)
    assert [(each["name"], each["place"], each["pods"]) for each in told["items"]] == [
        *(("urgent", 1, 2), ("early", 2, 2), ("late", 3, 3))
    ]
    assert told["total"] == 3
    late = told["items"][2]
    assert late["demand"] == {"cpu": "3", "pods": "3"}
    assert (late["state"], late["since"], late["priority"]) == ("waiting", "2026-11-27T20:55:03Z", 0)
    assert (late["rule"], late["message"]) == ("elastic-quota-max", "ElasticQuota max exceeded: cpu")
    first = told["items"][0]
    assert first["priority"] == 5
    assert (first["rule"], first["message"]) == ("", "it is started as soon as there is room for all of its pods")


def test_places_count_the_pods_at_gates_and_only_jobs_are_listed():
    store = world(
        pod("p", metadata={"creationTimestamp": "2026-11-27T20:55:00Z"}, schedulingGates=[GATE]), job("train")
    )
    assert [(each["name"], each["place"]) for each in jobs_of(store)["items"]] == [("train", 2)]


def test_a_job_that_is_starting_is_told_from_those_that_wait():
    store = world(job("train"), job("next", 1, created=2), quota("a", max={"cpu": 2}))
    assert ungated(store.cluster) == ["job/uid-train"]
    told = jobs_of(store)["items"]
    assert [(each["name"], each["state"], each["place"]) for each in told] == [
        *(("train", "starting", 0), ("next", "waiting", 1))
    ]
    assert told[0]["message"] == "room is kept for its pods until they have come"


@pytest.mark.parametrize(
    ("status", "labels", "starting"),
    [
        ({}, {"quotaward.dev/queued": "true"}, ["train"]),
        (STARTED, {"quotaward.dev/queued": "true"}, []),
        ({}, {}, []),  # it starts whenever it is created
    ],
)
def test_a_job_whose_controller_has_not_begun_to_make_pods_is_starting(status, labels, starting):
    item = job("train", suspend=False) | {"status": status}
    item["metadata"]["labels"] = labels
    assert [each["name"] for each in jobs_of(world(item))["items"] if each["state"] == "starting"] == starting


def test_a_job_that_could_not_be_started_waits():
    store = world(job("train"))
    ungated(store.cluster)
    store.cluster.gate_admission.back_off("job/uid-train", now=0)
    told = jobs_of(store)["items"][0]
    assert (told["state"], told["place"]) == ("waiting", 0)
    assert "has not let it be started" in told["message"]
    steps = client_of(store).get("/api/v1/jobs/a/train").json()["next"]
    assert "has not let it be started" in steps[0]["text"]


def test_a_job_whose_namespace_queues_no_jobs_any_more_is_said_to_be_started():
    store = world(job("train", namespace="b"))
    told = jobs_of(store)["items"][0]
    assert told["message"] == "Jobs of namespace b are not queued any more: it is being started"


def test_the_list_of_jobs_may_be_of_one_namespace_and_is_bounded():
    some = (job(f"j{number}", created=number) for number in range(5))
    store = world(*some, labelled("b"), job("other", namespace="b"))
    assert [each["name"] for each in jobs_of(store, "?namespace=b")["items"]] == ["other"]
    told = jobs_of(store, "?limit=2")
    assert ([each["name"] for each in told["items"]], told["total"]) == (["j0", "other"], 6)
    ungated(store.cluster)
    told = jobs_of(store, "?limit=2&namespace=a")
    assert ([each["name"] for each in told["items"]], told["total"]) == (["j0", "j1"], 5)
    missing = client_of(store).get("/api/v1/jobs?namespace=typo")
    assert (missing.status_code, missing.json()["field"]) == (404, "namespace")


def test_resources_that_a_job_makes_up_are_in_no_list():
    assert "made-up" not in json.dumps(jobs_of(world(job("train", requests={"x.io/made-up": "1"}))))


def test_the_list_of_gates_counts_the_pods_of_a_job():
    store = world(job("train", 3), pod("p", schedulingGates=[GATE]), quota("a", max={"cpu": 0}))
    told = client_of(store).get("/api/v1/gates").json()["items"]
    assert {(each["job"], each["kind"], each["pods"]) for each in told} == {("a/train", "Job", 3), ("a/p", "", 1)}


# Explanations


def test_a_job_is_explained_as_a_pod_is():
    store = world(job("first", 3), job("train", 4, created=2), quota("a", max={"cpu": 2}))
    told = client_of(store).get("/api/v1/jobs/a/train").json()
    assert (told["namespace"], told["name"], told["verdict"]) == ("a", "train", "refused")
    assert told["rule"] == "elastic-quota-max"
    assert told["numbers"]["cpu"] == {"request": "4", "used": "0", "ahead": "0", "max": "2"}
    assert told["gate"] == {"queue": "", "namespace": "a", "place": 2, "of": 2}
    assert told["summary"].startswith("Job a/train is refused by elastic-quota-max: ElasticQuota max exceeded: cpu.")
    assert (
        "it waits suspended, 2 of 2 in the line of namespace a; the first there, Job first (3 pods)," in told["outlook"]
    )
    assert "raise max of cpu in ElasticQuota a/quota from 2 to at least 4" in told["summary"]


def test_a_job_that_mistypes_its_queue_is_told_to_choose_one_that_exists():
    store = world(job("train", annotations={QUEUE: "serch"}), queue("search"))
    told = client_of(store).get("/api/v1/jobs/a/train").json()
    assert [each["text"] for each in told["remedies"]] == ["choose a queue that exists, or create Queue serch"]
    assert told["message"].endswith("there is search")


def test_a_job_that_no_rule_refuses_waits_for_its_turn_or_is_being_started():
    store = world(job("train"))
    told = client_of(store).get("/api/v1/jobs/a/train").json()
    assert (told["verdict"], told["message"]) == ("admissible", "no rule refuses it; it waits suspended for its turn")
    ungated(store.cluster)
    told = client_of(store).get("/api/v1/jobs/a/train").json()
    assert told["message"].endswith("it is being started, and room is kept for its pods until they have come")
    assert [each["step"] for each in told["next"]] == ["to-be-bound"]


def test_nobody_is_said_to_be_evicted_for_a_job_as_a_whole():
    borrowers = [pod(f"b{number}", "b", nodeName="n1") for number in range(4)]
    quotas = quota("a", min={"cpu": 4}, max={"cpu": 9}), quota("b", min={"cpu": 0}, max={"cpu": 9})
    store = world(job("train", 1), *borrowers, *quotas, cpu="4")
    store.clock.now += 100
    told = client_of(store).get("/api/v1/jobs/a/train").json()
    assert told.pop("evicted") is None
    assert "evicted" not in json.dumps(told)


def test_where_nobody_starts_jobs_it_is_said():
    told = client_of(world(job("train")), observe=True).get("/api/v1/jobs/a/train").json()
    assert told["next"][0]["text"].endswith("no Job is started: observe mode changes nothing")


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ((), "no Job train in namespace a is known"),
        (
            (job("train", suspend=False) | {"status": STARTED},),
            "Job train in namespace a does not wait as a whole; it runs",
        ),
        ((pod("job/train"),), "no Job train in namespace a is known"),
    ],
)
def test_a_job_that_does_not_wait_as_a_whole_is_unknown(items, said):
    told = client_of(world(*items)).get("/api/v1/jobs/a/train").json()
    assert told["verdict"] == "unknown"
    assert told["message"].startswith(said)


def test_the_queue_that_a_job_names_is_told_with_those_of_like_names():
    annotations = {QUEUE: "gqu"}
    store = world(job("train", annotations=annotations), queue("gpu"))
    assert "there is gpu" in client_of(store).get("/api/v1/jobs/a/train").json()["summary"]


@pytest.mark.parametrize("path", ["/api/v1/jobs/a/train", "/api/v1/pods/a/train", "/jobs/a/train", "/pods/a/train"])
def test_questions_about_one_namespace_wait_in_one_flow(path):
    assert flow_of({"path": path}) == Flow("", "a")


# The page


def shown(store, path="/"):
    answer = client_of(store).get(path)
    assert answer.status_code == 200, answer.text
    return Parsed(answer.text)


def test_the_page_names_the_jobs_that_wait_and_counts_them_apart():
    store = world(job("train", 3), job("one", 1), pod("p", schedulingGates=[GATE]), quota("a", max={"cpu": 0}))
    page = shown(store)
    assert "at its gate 1 pod" in page.words
    assert "waits as a whole 2 Jobs" in page.words
    assert "Job a/train (3 pods) ElasticQuota max exceeded: cpu; it waits suspended" in page.words
    assert "Job a/one (1 pod) ElasticQuota max exceeded: cpu" in page.words
    assert {"./jobs/a/train", "./pods/a/p"} <= {link["href"] for link in page.all("a")}
    assert "job/" not in page.words.replace("NAMESPACE/job/NAME", "")


def test_a_job_that_is_starting_waits_no_more_on_the_page():
    store = world(job("train"))
    ungated(store.cluster)
    assert "Nobody waits for a node." in shown(store).words


@pytest.mark.parametrize(("text", "found"), [("a/train", True), ("trai", True), ("a/other", False)])
def test_a_job_is_found_by_its_name(text, found):
    assert ("Job a/train (2 pods)" in shown(world(job("train")), f"/waiting?q={text}").words) is found


def test_a_job_has_a_page_of_its_own():
    page = shown(world(job("train"), quota("a", max={"cpu": 1})), "/jobs/a/train")
    assert "Job a/train is refused by elastic-quota-max: ElasticQuota max exceeded: cpu" in page.words
    assert page.all("body")[0]["data-live"] == "../../live/jobs/a/train"
    missing = client_of(world()).get("/jobs/a/train")
    assert (missing.status_code, "no Job train in namespace a is known" in missing.text) == (404, True)


def test_a_name_leads_to_the_page_of_the_job():
    client = client_of(world())
    assert client.get("/pods?name=a/job/train").headers["location"] == "jobs/a/train"
    assert client.get("/pods?name=a/job//evil.example").headers["location"] == "jobs/a/%2Fevil.example"


def test_the_page_of_a_job_changes_with_what_is_said_of_it():
    store = world(job("train"))

    def version():
        return shown(store, "/jobs/a/train").all("body")[0]["data-version"]

    before = version()
    assert version() == before
    see(store, quota("a", max={"cpu": 1}))
    assert version() != before


# Metrics


def samples(store, name):
    """The samples of a metric, by the values of its labels, in the order of their names."""
    families = text_string_to_metric_families(client_of(store).get("/metrics").text)
    found = (sample for family in families for sample in family.samples if sample.name == name)
    return {tuple(sample.labels.values()): sample.value for sample in found}


def in_queue(name, **annotations):
    """A namespace of this queue, in which Jobs wait."""
    item = labelled()
    item["metadata"]["annotations"] = {QUEUE: name} | annotations
    return item


def test_jobs_that_wait_are_counted_by_queue_and_namespace_and_are_no_pods():
    waiting = [job("j"), job("k"), job("other", namespace="b"), pod("p", schedulingGates=[GATE])]
    store = world(queue("q"), in_queue("q"), labelled("b"), *waiting, quota("a", max={"cpu": 0}), cpu="1")
    assert samples(store, "quotaward_pending_jobs") == {("a", "q"): 2, ("b", ""): 1}
    assert samples(store, "quotaward_gated_pods") == {(): 1}
    assert sum(samples(store, "quotaward_pending_pods").values()) == 0


def test_a_job_that_is_starting_is_counted_among_none():
    store = world(job("train"))
    ungated(store.cluster)
    for name in ("quotaward_grants", "quotaward_let_out_pods"):
        assert samples(store, name) == {(): 0}, name
    assert samples(store, "quotaward_pending_jobs") == {}
    store.cluster.gate_admission.back_off("job/uid-train", now=0)
    assert samples(store, "quotaward_pending_jobs") == {("a", ""): 1}


def test_queues_that_jobs_make_up_are_no_labels():
    made_up = [job(f"j{number}", annotations={QUEUE: f"g{number}"}) for number in range(5)]
    assert samples(world(queue("q"), *made_up), "quotaward_pending_jobs") == {("a", ""): 5}


@pytest.mark.parametrize(
    ("failures", "conditions", "waited"),
    [
        ([], [], 100),
        ([], [{"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-27T20:55:41Z"}], 60),
        ([], [{"type": "Suspended", "status": "False", "lastTransitionTime": "2026-11-27T20:55:41Z"}], 100),
        ([Rejected("422")], [], None),
    ],
)
def test_how_long_a_job_has_waited_is_observed_when_it_has_been_started(failures, conditions, waited):
    name = f"observed-{waited}-{len(conditions)}"
    item = job("train") | {"status": {"conditions": conditions}}
    ungating = Ungating(queue(name), in_queue(name), item)
    actuator, cluster, failures = ungating.doors, ungating.store.cluster, list(failures)
    cluster.epoch = cluster.pods["job/uid-train"].created + 100 - ungating.clock.now

    async def start(pod):
        if failures:
            raise failures.pop()
        await RecordingActuator.start_job(actuator, pod)

    actuator.start_job = start
    ungating.look()
    observed = samples(ungating.store, "quotaward_admission_wait_seconds_sum")
    assert observed.get((name,)) == waited
    assert [pod.name for pod in cluster.pods.values()] == (["train-0", "train-1"] if waited else ["job/train"])


@pytest.mark.parametrize(("concurrency", "at_once"), [(1, 4), (6, 6)])
def test_jobs_are_started_side_by_side_and_gates_opened_as_few_at_a_time_as_ever(concurrency, at_once):
    pods = [pod(f"p{number}", schedulingGates=[GATE]) for number in range(9)]
    jobs = [job(f"j{number}", 1, created=number) for number in range(9)]
    ungating = Ungating(labelled(), *pods, *jobs, concurrency=concurrency)
    actuator, under_way, chosen, most = ungating.doors, [], [], []

    async def start(stand_in):
        under_way.append(stand_in)
        chosen.append(stand_in.stands_for.name)
        most.append(len(under_way))
        for _ in range(20):
            await asyncio.sleep(0)
        under_way.remove(stand_in)
        await RecordingActuator.start_job(actuator, stand_in)

    actuator.start_job = start
    assert len(ungating.look()) == 9
    assert (actuator.most_under_way, max(most)) == (concurrency, at_once)
    assert chosen == [f"j{number}" for number in range(9)]


# Where only pods are meant


LISTS = ("elasticquotas", "queues", "podgroups", "reservations", "decisions", "plan", "gates", "jobs")


def test_no_list_shows_a_job_as_a_pod():
    borrowers = [pod(f"b{number}", "b", nodeName="n1") for number in range(4)]
    owed = quota("a", min={"cpu": 3}, max={"cpu": 9}), quota("b", min={"cpu": 0}, max={"cpu": 9})
    gated = pod("g", metadata={"creationTimestamp": "2026-11-27T20:56:00Z"}, schedulingGates=[GATE])
    waiting = [refused(pod("p")), gated, job("one", 1), job("late", 3), job("beyond", 99)]
    store = world(*borrowers, *owed, *waiting, job("first", 1, created=0), cpu="5")
    assert "job/uid-first" in ungated(store.cluster)
    store.clock.now += 1_000_000  # whoever can starve, or have others evicted, does
    store.cluster.tick(store.clock())
    client = client_of(store)
    texts = {path: client.get(path).text for path in (*(f"/api/v1/{each}" for each in LISTS), "/metrics")}
    texts["/waiting"] = shown(store, "/waiting").words
    removed = {"kind": "ElasticQuota", "namespace": "a", "name": "quota"}
    change = {"apply": [], "remove": [removed]}
    texts["what-if"] = client.request("POST", "/api/v1/whatif", json=change).text
    for name in ("p", "g"):
        texts[name] = client.get(f"/api/v1/pods/a/{name}").text
    assert "a/p" in texts["/api/v1/plan"]
    assert '"admitted":[{"pod":"a/' in texts["what-if"]
    for where, text in texts.items():
        assert not re.search(r"\bjob/", text), where


def test_a_check_of_a_folder_takes_no_job_for_a_pod(tmp_path):
    Folder(tmp_path).write("all.yaml", queue("q"), labelled(), job("train", annotations={QUEUE: "gone"}))
    checked = CliRunner().invoke(app, ["check", str(tmp_path)]).output
    assert "warning: Job a/train names the queue gone, which does not exist" in checked


def test_a_story_tells_of_jobs_until_they_start_and_then_of_their_pods(tmp_path):
    new = job("new")
    del new["metadata"]["creationTimestamp"]
    running = pod("p", metadata={"uid": "p", "annotations": {FOR: "60s"}}, nodeName="n1")
    longer = pod("q", metadata={"uid": "q", "annotations": {FOR: "120s"}}, requests={}, nodeName="n1")
    Folder(tmp_path).write("all.yaml", labelled(), node(cpu="2", pods="9"), running, longer, new, job("beyond", 9))
    told = CliRunner().invoke(app, ["simulate", str(tmp_path)]).output
    assert "Job a/beyond (9 pods) waits: there is no room for all of its pods" in told
    assert "job/" not in told
    drawn = dict(re.findall(r"^(\S*a/\S+(?: \(.*\))?) +([ ·█]+)$", told.replace("Job a", "Job-a"), re.MULTILINE))
    assert set(drawn["Job-a/beyond (9 pods)"]) == {"·"}
    assert set(drawn["Job-a/new (2 pods)"].rstrip()) == {"·"}
    assert len(drawn["Job-a/new (2 pods)"].rstrip()) == len(drawn["a/p"].rstrip()), "it waits until the other has ended"
    assert "█" in drawn["a/new-0"]


def test_what_if_tells_of_jobs_that_would_start_and_of_those_that_would_wait():
    store = world(labelled(), job("train"), job("beyond", 9), quota("a", max={"cpu": 1}), cpu="4")
    change = quota("a", max={"cpu": 8})
    told = client_of(store).request("POST", "/api/v1/whatif", json={"apply": [change], "remove": []}).json()
    assert [(each["pod"], each["node"], each["anyway"]) for each in told["admitted"]] == [
        *(("a/train-0", "n1", False), ("a/train-1", "n1", False))
    ]
    [waits] = told["refused"]
    assert (waits["pod"], waits["rule"]) == ("Job a/beyond (9 pods)", "elastic-quota-max")
    assert waits["message"] == "ElasticQuota max exceeded: cpu"


def what_if(store, *apply):
    """The pods that would run, and what would wait, with the message."""
    told = client_of(store).request("POST", "/api/v1/whatif", json={"apply": list(apply), "remove": []}).json()
    return [each["pod"] for each in told["admitted"]], {each["pod"]: each["message"] for each in told["refused"]}


def test_a_trial_starts_no_job_whose_room_another_one_has_just_taken():
    store = world(job("train"), job("next", created=2), quota("a", max={"cpu": 0}), cpu="3")
    runs, waits = what_if(store, quota("a", max={"cpu": 9}))
    assert runs == ["a/train-0", "a/train-1"]
    assert waits == {"Job a/next (2 pods)": "there is no room for all of its pods"}


def test_a_trial_makes_no_pods_of_a_job_of_any_size():
    store = world(job("huge", LARGEST_JOB + 1, namespace="b", requests={"cpu": "0"}))
    runs, waits = what_if(store)
    assert (runs, list(waits.values())) == ([], ["a Job of more than 1000 pods is not started here"])


def test_a_job_that_was_suspended_again_waits_since_then_and_keeps_its_age():
    again = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-11-28T08:00:00Z"}
    store = world(job("new", created=2), job("again") | {"status": {"conditions": [again]}}, quota("a", max={"cpu": 0}))
    assert [(each["name"], each["since"]) for each in jobs_of(store)["items"]] == [
        *(("again", "2026-11-28T08:00:00Z"), ("new", "2026-11-27T20:55:02Z"))
    ]
