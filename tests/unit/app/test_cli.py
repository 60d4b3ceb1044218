"""The command line: clients of a server that really runs, and errors that are sentences."""

import http.server
import importlib.metadata
import json
import os
import platform
import re
import shlex
import socket
import subprocess
import sys
import threading

import pytest
import yaml
from typer.testing import CliRunner

from app.cli import app
from app.version import API_SERVER_FROM, SCHEDULERS
from tests.cases.serving import serving
from tests.controlplane.launch import QUOTAWARD, launch, run_quotaward
from tests.unit.app.given import node, pod, quota
from tests.unit.app.manifest_folder import Folder


@pytest.fixture(autouse=True)
def _no_server_of_whoever_runs_this(monkeypatch):
    for variable in ("QUOTAWARD_SERVER", "QUOTAWARD_TOKEN", "QUOTAWARD_CA"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cli")
    folder = Folder(directory / "manifests")
    folder.write(
        "all.yaml",
        node("n1"),
        quota("a", min={"cpu": 1}, max={"cpu": "2500m", "memory": "4Gi"}),
        quota("b", min={"cpu": 1}),
        quota("b", "second"),
        pod("running", requests={"cpu": 2}, nodeName="n1"),
        pod("waiting"),
        pod("free", "c"),
    )
    with serving("--manifests", str(folder.path), log=directory / "serve.log") as running:
        yield f"http://127.0.0.1:{running.port}"


def run(*arguments, **environment):
    """The exit status and what was printed, standard error included."""
    done = CliRunner().invoke(app, arguments, env=environment)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def rows(text):
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def is_a_sentence(text):
    return len(text.splitlines()) == 1 and "Traceback" not in text and text.strip()


def test_quotas_has_a_row_per_quota_and_resource(server):
    status, text = run("quotas", "--server", server)
    assert status == 0
    assert rows(text) == [
        ["NAMESPACE", "NAME", "RESOURCE", "USED", "MIN", "MAX", "BORROWED", "CONDITIONS"],
        ["a", "quota", "cpu", "2", "1", "2.5", "1"],
        ["a", "quota", "memory", "0", "-", "4Gi", "-"],
        ["a", "quota", "pods", "1", "-", "-", "-"],
        ["b", "quota", "cpu", "0", "1", "-", "0"],
        ["b", "second", "-", "-", "-", "-", "Conflict"],
    ]


def test_what_serve_says_to_ask_of_a_pod_that_waits_can_be_typed_as_it_stands(folder):
    folder.write("all.yaml", node("n1"), quota("a", max={"cpu": 0}), pod("waiting"))
    log = folder.path.with_name("serve.log")
    with serving("--manifests", str(folder.path), log=log):
        [command] = [line for line in log.read_text().splitlines() if " explain " in line]
        program, *arguments = shlex.split(command)
        done = run_quotaward(*arguments)
    assert program == str(QUOTAWARD)
    assert done.stdout.startswith("a/waiting is refused by elastic-quota-max")


def test_the_server_may_be_named_by_the_environment(server):
    assert run("quotas", QUOTAWARD_SERVER=server)[0] == 0
    assert run("quotas", QUOTAWARD_SERVER=f"{server}/")[0] == 0


def test_a_refused_pod_is_explained_with_numbers_and_remedies(server):
    status, text = run("explain", "a/waiting", "--server", server)
    assert status == 0
    [paragraph] = text.splitlines()
    assert paragraph.startswith("a/waiting is refused by elastic-quota-max: ElasticQuota max exceeded: cpu.")
    assert "cpu: request 1, used 2, max 2500m." in paragraph
    assert "raise max of cpu in ElasticQuota a/quota from 2500m to at least 3" in paragraph


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a/running", "a/running is bound: on node n1"),
        ("c/free", "c/free is admissible: no rule refuses it"),
    ],
)
def test_every_pod_is_explained(server, name, said):
    status, text = run("explain", name, "--server", server)
    assert (status, text.splitlines()[0][: len(said)]) == (0, said)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (["explain", "a/nobody"], "a/nobody is unknown: no pod nobody in namespace a is known."),
        (["quotas", "--namespace", "nowhere"], "there is no elastic quota in namespace nowhere"),
        (["gates", "--namespace", "nowhere"], "there is no namespace nowhere"),
        (["jobs", "--namespace", "nowhere"], "there is no namespace nowhere"),
        (["explain", "a/job/train"], "Job a/train is unknown: no Job train in namespace a is known."),
        (["whatif", "--remove", "ElasticQuota/a/none"], "there is no ElasticQuota a/none"),
        (["whatif", "--remove", "Queue/none"], "there is no Queue none"),
        (["whatif", "--remove", "Quota/a/none"], "in the version that is read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_not_there_is_said_and_is_a_failure(server, question, said):
    done = CliRunner().invoke(app, [*question, "--server", server])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.rstrip("\n").endswith(said)


def test_who_waits_at_a_gate_has_a_row_with_its_place(stranger):
    job = {"job": "a/p", "pods": 3, "queue": "q", "priority": 5, "place": 2, "message": ""}
    items = [job, job | {"place": 3, "message": "Queue is closed"}]
    _, text = run("gates", "--server", stranger(200, json.dumps({"total": 7, "items": items}).encode()))
    assert rows(text) == [
        ["QUEUE", "PLACE", "JOB", "PODS", "PRIORITY", "WAITS FOR"],
        ["q", "2", "a/p", "3", "5", "its turn"],
        ["q", "3", "a/p", "3", "5", "Queue is closed"],
        ["and 5 more"],
    ]


def test_a_job_that_waits_as_a_whole_is_told_from_a_pod_at_its_gate(stranger):
    job = {"job": "a/train", "kind": "Job", "pods": 3, "queue": "q", "priority": 5, "place": 2, "message": ""}
    _, text = run("gates", "--server", stranger(200, json.dumps({"total": 1, "items": [job]}).encode()))
    assert rows(text)[1] == ["q", "2", "Job a/train", "3", "5", "its turn"]


def test_jobs_that_wait_as_a_whole_have_a_row_each(stranger):
    of_all = {
        "namespace": "a",
        "name": "train",
        "queue": "q",
        "pods": 3,
        "priority": 5,
        "since": "2026-11-27T20:55:03Z",
    }
    items = [
        of_all | {"state": "starting", "place": 0, "message": "room is kept"},
        of_all | {"state": "waiting", "place": 7, "message": "Queue is closed"},
    ]
    _, text = run("jobs", "--server", stranger(200, json.dumps({"total": 3, "items": items}).encode()))
    assert rows(text) == [
        ["QUEUE", "PLACE", "JOB", "PODS", "PRIORITY", "STATE", "SINCE", "WHY"],
        ["q", "-", "a/train", "3", "5", "starting", "2026-11-27T20:55:03Z", "room is kept"],
        ["q", "7", "a/train", "3", "5", "waiting", "2026-11-27T20:55:03Z", "Queue is closed"],
        ["and 1 more"],
    ]


@pytest.mark.parametrize("command", ["gates", "jobs"])
def test_what_waits_can_be_released_only_where_there_is_a_cluster(tmp_path, command):
    status, output = run(command, "release", "--kubeconfig", str(tmp_path / "none"))
    assert status == 2
    assert "there is no such file" in output


def test_gates_are_released_with_a_kubeconfig_that_may_be_named_by_the_environment(tmp_path):
    status, output = run("gates", "release")
    assert (status, output) == (2, "no --kubeconfig and no KUBECONFIG given, and not in a cluster\n")
    assert "none: there is no such file" in run("gates", "release", KUBECONFIG=str(tmp_path / "none"))[1]


@pytest.mark.parametrize(("command", "what"), [("gates", "pods"), ("jobs", "jobs")])
def test_where_nothing_can_be_listed_nothing_is_released_and_that_is_said(tmp_path, command, what):
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {}}]
    config = {"current-context": "x", "contexts": [context], "clusters": [cluster], "users": users}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    status, output = run(command, "release", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert status == 1
    assert f"the {what} cannot be listed: " in output


def test_where_nothing_is_done_that_is_said(server):
    assert run("reservations", "--server", server) == (0, "no reservations\n")
    assert run("gates", "--server", server, "-n", "c") == (0, "no pods wait at gates\n")
    assert run("jobs", "--server", server, "-n", "c") == (0, "no Jobs wait as a whole\n")
    status, text = run("plan", "--server", server)  # pods do wait there, which no scheduler has tried
    assert (status, text.split(" (")[0]) == (0, "no pods are to be evicted, and no pods wait for an eviction")


def test_quotas_may_be_those_of_one_namespace(server):
    assert {row[0] for row in rows(run("quotas", "--server", server, "-n", "b")[1])} == {"NAMESPACE", "b"}


def test_a_token_is_shown_but_not_where_others_can_read_it(server, tmp_path):
    assert run("quotas", "--server", server, QUOTAWARD_TOKEN="secret-token")[0] == 0
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(yaml.safe_load(kubeconfig()) | {"users": [{"name": "u", "user": {"token": "t"}}]}))
    for by in (["--token", "secret-token"], ["--kubeconfig", str(file)]):
        status, text = run("quotas", "--server", "http://quotaward.example:1", *by)
        assert (status, text) == (
            2,
            "--server: http://quotaward.example:1 is not https: the token would be sent unencrypted\n",
        )
    file.write_text(kubeconfig())
    status, text = run("quotas", "--server", server, "--kubeconfig", str(file))
    assert (status, text.split(":")[0]) == (2, "--kubeconfig")
    assert "its user has no token" in text


@pytest.mark.parametrize("command", [["quotas"], ["explain", "a/p"], ["top"], ["gates"]])
def test_a_kubeconfig_that_is_not_there_is_named_by_its_option(command):
    said = "--kubeconfig: kubeconfig /nowhere/config: there is no such file\n"
    assert run(*command, "--kubeconfig", "/nowhere/config") == (2, said)


def test_a_ca_that_is_not_there_is_named():
    assert run("quotas", "--server", "https://127.0.0.1:1", "--ca", "/nowhere/ca.crt") == (
        2,
        "--ca (or QUOTAWARD_CA): /nowhere/ca.crt: there is no such file\n",
    )


@pytest.mark.parametrize("name", ["waiting", "a/", "/waiting", "a//c", "a/job/", "a/job/b/c", ""])
def test_what_is_no_name_of_a_pod_is_said(name):
    status, text = run("explain", name)
    assert (status, text) == (2, f"{name!r} must be NAMESPACE/POD or NAMESPACE/job/JOB\n")


@pytest.mark.parametrize("command", [["quotas"], ["explain", "a/p"], ["whatif"], ["top"]])
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:99999", "http://127.0.0.1:x", "http://[::1", "http://", "ftp://127.0.0.1", "127.0.0.1:1", ""],
)
def test_what_is_no_url_of_a_server_is_named_by_its_option(command, url):
    said = f"--server (or QUOTAWARD_SERVER): {url!r} is not a URL like http://127.0.0.1:8080\n"
    assert run(*command, "--server", url) == (2, said)


@pytest.mark.parametrize("command", [["quotas"], ["explain", "a/p"]])
@pytest.mark.filterwarnings("error")
def test_a_server_that_cannot_be_asked_is_said(command):
    status, text = run(*command, "--server", "http://127.0.0.1:1")
    assert status == 1
    assert is_a_sentence(text)
    assert "does not answer as Quotaward does" in text


@pytest.mark.parametrize("command", [["quotas"], ["explain", "a/p"], ["top"]])
def test_a_server_that_hangs_is_not_taken_for_another_program(command, monkeypatch):
    monkeypatch.setattr("app.client.TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        status, text = run(*command, "--server", url)
    assert status == 1
    assert is_a_sentence(text)
    assert text.startswith(f"{url}: it has not answered in time, so the process there hangs or is overloaded (")


@pytest.mark.parametrize("command", ["quotas", "top"])
def test_where_nothing_listens_it_is_said_how_to_reach_one_that_runs(command):
    _, text = run(command, "--server", "http://127.0.0.1:1")
    assert is_a_sentence(text)
    assert "connection refused" in text
    assert "port-forward deployment/quotaward-scheduler 8080; name another one with --server URL" in text


@pytest.fixture
def stranger():
    """Starts a server that answers everything with this status and body; its URL."""
    servers = []

    def start(status, body):
        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()  # looks up so often
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>hello</html>", "does not answer as Quotaward does"),
        (200, b"\xff", "does not answer as Quotaward does"),
        (404, b'{"detail": "Not Found"}', "answers 404: Not Found"),
        (
            422,
            b'{"detail": "must be a name", "field": "remove[0].name"}',
            "answers 422: remove[0].name: must be a name",
        ),
        (503, b'{"detail": "not synced: wait"}', "answers 503: not synced: wait"),
        (500, b"{}", "answers 500: {}"),
        (401, b'"who are you"', "answers 401"),
        (200, b'{"kind": "Status"}', "does not answer as Quotaward does"),
        (200, b"[]", "does not answer as Quotaward does"),
    ],
)
def test_an_answer_of_somebody_else_is_said_to_be_one(stranger, status, body, said):
    url = stranger(status, body)
    code, text = run("quotas", "--server", url)
    assert code == 1
    assert is_a_sentence(text)
    assert text.startswith(f"{url} ")
    assert said in text


def shown(stranger, namespace="a", **changes):
    item = {"namespace": namespace, "name": "quota", "used": {}, "min": {}, "max": {}, "borrowed": {}, "conditions": []}
    return run("quotas", "--server", stranger(200, json.dumps({"items": [item | changes]}).encode()))


def test_where_there_are_no_quotas_that_is_said(stranger):
    assert run("quotas", "--server", stranger(200, b'{"items": []}')) == (0, "no elastic quotas\n")


def test_long_names_lose_nothing(stranger):
    namespace, resource = "team-" + 58 * "n", "vendor.example/" + 48 * "r"
    conditions = [{"type": "Invalid"}, {"type": "Conflict"}]
    _, text = shown(stranger, namespace, used={resource: "1"}, conditions=conditions)
    for said in ("USED", "MIN", "MAX", "BORROWED", namespace, resource, "Invalid, Conflict"):
        assert said in text


@pytest.mark.parametrize("used", ["2", "2500m"])
def test_a_bound_that_is_exceeded_is_told_beside_its_resource_alone(stranger, used):
    conditions = [{"type": "Exceeded"}, {"type": "OverduePods"}]
    amounts = {"used": {"cpu": used, "pods": "2", "memory": "1Gi"}, "max": {"cpu": "1900m", "memory": "1024Mi"}}
    _, text = shown(stranger, conditions=conditions, **amounts)
    told = {row[2]: row[-1] for row in rows(text)[1:]}
    assert told == {"cpu": "Exceeded, OverduePods", "memory": "OverduePods", "pods": "OverduePods"}


def test_a_queue_that_exceeds_a_bound_tells_so_beside_its_resource_alone(stranger):
    amounts = {"allocated": {"cpu": "2", "memory": "1Gi"}, "deserved": {}, "guarantee": {}, "capability": {"cpu": "1"}}
    queue = {"name": "q", "weight": 1, "state": "Closed", "children": [], "namespaces": []} | amounts
    item = queue | {"conditions": [{"type": "Exceeded"}]}
    _, text = run("queues", "--server", stranger(200, json.dumps({"items": [item]}).encode()))
    assert {row[2]: row[-1] for row in rows(text)[1:]} == {"cpu": "Closed, Exceeded", "memory": "Closed"}


@pytest.mark.parametrize("name", ["[/]", "[red]x", "[/x]"])
def test_names_are_printed_as_they_are(stranger, name):
    _, text = shown(stranger, used={name: "1"})
    assert name in text


def test_a_good_folder_passes_the_check(folder):
    folder.write("a.yaml", quota("a", max={"cpu": 1}))
    assert run("check", str(folder.path)) == (0, "0 errors, 0 warnings; read 1 ElasticQuota\n")


def test_warnings_alone_are_no_failure(folder):
    folder.write("a.yaml", quota("a", min={"cpu": 2}, max={"cpu": 1}))
    status, text = run("check", str(folder.path))
    assert status == 0
    assert text.splitlines()[0].startswith("warning: ElasticQuota a/quota: Invalid: min exceeds max: cpu")
    assert text.endswith("0 errors, 1 warning; read 1 ElasticQuota\n")


def test_every_error_is_a_line_and_fails_the_check(folder):
    folder.write("a.yaml", "a: [")
    folder.write("b.yaml", quota("b", max={"cpu": "x"}), pod("p", requests={"cpu": "x"}))
    status, text = run("check", str(folder.path))
    assert status == 1
    assert [line.split(":")[0] for line in text.splitlines()[:-1]] == ["error"] * 3
    assert text.endswith("3 errors, 0 warnings; read 1 ElasticQuota; skipped 1 Pod\n")


def test_folder_and_scheduler_are_checked_together(folder, tmp_path):
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text(yaml.safe_dump({"extenders": [{"filterVerb": "filter", "urlPrefix": "http://x"}]}))
    folder.write("a.yaml", "a: [")
    status, text = run("check", str(folder.path), "--scheduler-config", str(configuration))
    assert status == 1
    assert text.endswith("3 errors, 1 warning\n")
    assert run("check", "--scheduler-config", str(configuration))[1].endswith("2 errors, 1 warning\n")


def test_there_has_to_be_something_to_check():
    status, text = run("check")
    assert status == 2
    assert is_a_sentence(text)


@pytest.mark.parametrize("arguments", [["nonsense"], ["explain"], ["quotas", "--nonsense"]])
def test_what_cannot_be_understood_is_said(arguments):
    status, text = run(*arguments)
    assert status == 2
    assert "Traceback" not in text


def test_without_a_command_the_commands_are_listed():
    _, text = run()
    for command in ("serve", "quotas", "reservations", "explain", "plan", "check"):
        assert command in text


def test_the_version_is_that_of_the_package():
    assert run("--version") == (0, f"quotaward {importlib.metadata.version('quotaward')}\n")


def test_the_version_names_python_and_kubernetes_in_each_form():
    status, text = run("version")
    version = importlib.metadata.version("quotaward")
    assert (status, text.splitlines()[:2]) == (0, [f"quotaward {version}", "commit unknown"])
    document = {
        "version": version,
        "commit": None,
        "python": platform.python_version(),
        "kubernetes": {"apiServerFrom": API_SERVER_FROM, "schedulers": list(SCHEDULERS)},
    }
    assert json.loads(run("version", "-o", "json")[1]) == document
    assert yaml.safe_load(run("version", "-o", "yaml")[1]) == document
    assert run("version", "-o", "name")[0] == 2


def test_serve_says_which_settings_are_wrong(tmp_path):
    assert run("serve", "--listen", "0.0.0.0:1", "--mode", "dry-run") == (
        2,
        "mode: Input should be 'enforce' or 'observe'\n",
    )
    status, text = run("serve", f"--config={tmp_path}")
    assert status == 2
    assert text.startswith(f"config: {tmp_path} cannot be read: ")


def test_the_settings_are_listed_by_help():
    status, text = run("serve", "--help")
    assert status == 0
    assert "--store.max-staleness" in text


@pytest.fixture
def serve(tmp_path):
    """Runs ``quotaward serve``, which is expected to end by itself; its exit status and what it said last."""

    def ended(*arguments, **environment):
        log = tmp_path / "serve.log"
        command = [str(QUOTAWARD), "serve", "--listen", "127.0.0.1:0", *map(str, arguments)]
        path = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        status = launch(command, log, environment | path).wait(60)
        said = log.read_text()
        assert "Traceback" not in said, said
        return status, said.splitlines()[-1]

    return ended


@pytest.mark.slow
def test_what_only_a_cluster_needs_is_loaded_only_where_there_is_one():
    loaded = "import sys, app.cli, app.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True, timeout=60)
    assert not {"kubernetes", "aiohttp", "requests", "httpx"} & set(done.stdout.split())


def test_serve_says_that_there_is_no_cluster(serve):
    status, said = serve()
    assert status == 2
    assert said.startswith("no --kubeconfig, KUBECONFIG or --manifests given, and not in a cluster: ")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("/nowhere/config", "kubeconfig /nowhere/config: there is no such file"),
        ("/a/config:/b/config", "kubeconfig /a/config:/b/config: there is no such file; of several files, name one"),
    ],
)
def test_serve_looks_for_the_kubeconfig_that_the_environment_names(serve, named, said):
    in_a_pod = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    assert serve(KUBECONFIG=named, **in_a_pod) == (2, said)
    assert serve("--kubeconfig", "/its/own", KUBECONFIG=named)[1].startswith("kubeconfig /its/own: ")


def test_serve_says_what_is_wrong_with_its_service_account(serve):
    status, said = serve(KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT="1")
    assert status == 2
    assert said.startswith("service account of this pod: /var/run/secrets/kubernetes.io/serviceaccount/token ")


@pytest.mark.parametrize("option", ["--listen", "--probe-listen"])
def test_serve_says_that_its_address_is_taken(serve, folder, option):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        status, said = serve("--manifests", folder.path, "--listen", "127.0.0.1:0", option, f"127.0.0.1:{port}")
    assert status == 1
    assert said.startswith("cannot listen: ")
    assert str(port) in said
    assert option in said


def test_serve_says_that_its_folder_is_missing(serve, tmp_path):
    status, said = serve("--manifests", tmp_path / "missing")
    assert status != 0
    assert "missing" in said
    assert "listen" not in said


def kubeconfig(**cluster):
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "u", "user": {}}]}
    config["clusters"] = [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"} | cluster}]
    config["contexts"] = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    return yaml.safe_dump(config)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        kubeconfig(**{"certificate-authority": "missing.crt"}),
        pytest.param("a: ["),
        pytest.param(kubeconfig(**{"certificate-authority-data": "YWJj"})),
        kubeconfig(server=5),
        kubeconfig(server=["https://127.0.0.1:1"]),
        kubeconfig(**{"proxy-url": 3128}),
        kubeconfig(**{"tls-server-name": 5}),
    ],
    ids=["nothing in it", "certificate missing", "no YAML", "certificate is none", "number", "list", "proxy", "name"],
)
def test_serve_says_what_is_wrong_with_its_kubeconfig(serve, tmp_path, content):
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    status, said = serve("--kubeconfig", file)
    assert status == 2
    assert said.startswith(f"kubeconfig {file}: ")


def test_serve_says_that_its_kubeconfig_is_missing(serve, tmp_path):
    status, said = serve("--kubeconfig", tmp_path / "missing")
    assert status == 2
    assert "current-context" not in said
