"""Text of others is harmless wherever people see it: on terminals, in logs, Events, on the page and in charts."""

import json
import os
import pty
import select
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from app.actuators.events import Event, Subject
from app.actuators.kubernetes import _object_of
from app.inert import inert, inert_document, say
from tests.cases.serving import serving
from tests.controlplane.launch import QUOTAWARD, launch, run_quotaward
from tests.unit.app.given import client_of, namespace, node, pod, queue, quota, refused, store_with

TERMINAL = "\x1b]0;owned\x07\x1b]52;c;cm0=\x07\x1b[2J\x9b31m\x7f\r\n"
EVIL = f"x{TERMINAL}\u202emoc\u2066\u200b\u200d\ufeff\u061c\u2028\u034f\U000e0041"
HARMFUL = set("\x1b\x07\x9b\x7f\r\n\u202e\u2066\u200b\u200d\ufeff\u061c\u2028\u034f\U000e0041")
QUEUE = "scheduling.volcano.sh/queue-name"


def assert_harmless(text, *, kept="\n"):
    assert {each for each in HARMFUL if each in text} <= set(kept)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größer ✕ ░▒▓█ … 😀 数", "größer ✕ ░▒▓█ … 😀 数"),
        ("a\x1b[2J", r"a\x1b[2J"),
        ("\x7f\x9b", r"\x7f\x9b"),
        ("a\r\nb\t", r"a\r\nb\t"),
        ("\u202ea\u2066", r"\u202ea\u2066"),
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("\u2028", r"\u2028"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud800", r"\ud800"),
        ("\u3164\ufe0f", r"\u3164\ufe0f"),
        ("\xa0", r"\xa0"),
        (r"\x1b", r"\x1b"),
    ],
)
def test_what_is_not_seen_as_what_it_is_is_escaped_and_nothing_else(text, shown):
    assert inert(text) == shown


@given(st.text())
@example(EVIL)
def test_whatever_comes_all_is_printable_afterwards_and_stays_as_it_is(text):
    shown = inert(text)
    assert shown.isprintable()
    assert_harmless(shown, kept="")
    assert inert(shown) == shown
    assert len(shown) <= 10 * len(text)
    assert text.isascii() is False or not text.isprintable() or shown == text


def test_a_document_stays_a_document():
    document = {EVIL: [EVIL, 1, None, True, {"a": EVIL}]}
    shown = inert_document(json.loads(json.dumps(document)))
    assert shown == {inert(EVIL): [inert(EVIL), 1, None, True, {"a": inert(EVIL)}]}


def test_what_is_said_stays_on_its_line(capsys):
    say("one", EVIL)
    say("two\nthree", err=True)
    out, err = capsys.readouterr()
    assert out == f"one\n{inert(EVIL)}\n"
    assert err == "two\\nthree\n"


def hostile():
    """A folder, or a store, in which everything is named as nobody would name it."""
    metadata = {"name": "p1", "namespace": "a", "uid": "p1", "annotations": {QUEUE: EVIL}}
    gated = {"name": "p2", "namespace": "a", "uid": "p2", "annotations": {QUEUE: EVIL}}
    return [
        node("n1", cpu=4),
        queue("q"),
        namespace("a") | {"metadata": {"name": "a", "labels": {"quotaward.dev/gated": "true"}}},
        quota("b", f"quota{EVIL}", min={"cpu": 1}, max={EVIL: 1}),
        refused(pod("p1", metadata=metadata), f"0/1 nodes are available: {EVIL}"),
        pod("p2", metadata=gated, schedulingGates=[{"name": "quotaward.dev/quota"}]),
        refused(pod(f"p3{EVIL}", f"c{EVIL}"), f"0/1 nodes are available: {EVIL}"),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile")
    (path / "all.yaml").write_text(yaml.safe_dump_all(hostile()))
    bad = {"apiVersion": "v1", "kind": EVIL, "metadata": {"name": EVIL}}
    (path / "bad.yaml").write_text(yaml.safe_dump(bad))
    return path


def on_a_terminal(*arguments):
    """What a command writes on a terminal, its standard error included."""
    ours, theirs = pty.openpty()
    environment = dict(os.environ, TERM="xterm-256color")
    process = launch([str(QUOTAWARD), *map(str, arguments)], Path(os.ttyname(theirs)), environment)
    written, ended = b"", False
    while not ended:
        ended = process.poll() is not None
        while select.select([ours], [], [], 0 if ended else 0.02)[0]:
            written += os.read(ours, 65536)
    os.close(theirs)
    os.close(ours)
    return written.decode()


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    with serving("--manifests", str(folder), log=tmp_path_factory.mktemp("log") / "serve.log") as server:
        yield server


@pytest.mark.parametrize(
    "command",
    [
        *(("quotas",), ("queues",), ("gates",), ("plan",), ("reservations",), ("top", "--once"), ("explain", "a/p1")),
        *(("explain", f"c{EVIL}/x"), ("quotas", "-n", "nobody"), ("whatif", "--remove", "Queue/q")),
    ],
    ids=repr,
)
def test_what_a_server_tells_is_harmless_on_a_terminal(server, command):
    shown = on_a_terminal(*command, "--server", f"http://127.0.0.1:{server.port}")
    ours = ("\x1b[0m", "\x1b[1m", "\x1b[34m", "\x1b[33m", "\x1b[36m", "\x1b[2m", "\r\n")
    for each in ours:
        shown = shown.replace(each, "\n")
    assert_harmless(shown)
    assert shown.strip()


@pytest.mark.parametrize("command", [("check",), ("simulate",), ("simulate", "--remove", "Queue/q")], ids=repr)
def test_what_a_folder_holds_is_harmless_on_a_terminal(folder, command):
    shown = on_a_terminal(command[0], str(folder), *command[1:]).replace("\r\n", "\n")
    assert_harmless(shown)
    assert shown.strip()


def test_the_page_shows_it_escaped():
    client = client_of(store_with(*hostile()))
    for path in ("/", "/waiting", "/pods/a/p1", "/pods/a/nobody%E2%80%AE"):
        text = client.get(path).text
        assert_harmless(text)
        assert "&lt;" not in text
    assert r"\u202e" in client.get("/").text


def test_rest_keeps_it_as_it_is_in_the_escapes_of_json():
    answer = client_of(store_with(*hostile())).get("/api/v1/elasticquotas")
    assert answer.json()["items"][0]["name"] == f"quota{EVIL}"
    assert not {"\x1b", "\x07", "\x00"} & set(answer.text)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["console", "json"])
def test_the_log_is_harmless_and_has_a_line_for_each_event(form, tmp_path):
    script = f"""
from app.observability.logging import configure
from app.settings import LogSettings
import structlog
configure(LogSettings(format={form!r}))
log = structlog.get_logger("x")
log.warning({EVIL!r}, name={EVIL!r}, all=[{EVIL!r}])
try:
    raise ValueError({EVIL!r})
except ValueError as error:
    log.error("failed", exc_info=error)
"""
    done = subprocess.run([Path(QUOTAWARD).parent / "python", "-c", script], capture_output=True, check=True)
    text = done.stderr.decode()
    assert_harmless(text)
    assert len([line for line in text.splitlines() if "owned" in line and "warning" in line]) == 1
    if form == "json":
        assert json.loads(text.splitlines()[0])["name"] == EVIL


def test_an_event_says_it_escaped():
    event = Event(Subject("v1", "Pod", "a", "p", "uid"), "Said", EVIL)
    assert_harmless(json.dumps(_object_of(event), ensure_ascii=False), kept="")


def test_a_chart_shows_it_escaped(folder, tmp_path):
    page = tmp_path / "chart.html"
    run_quotaward("simulate", str(folder), "--html", str(page), "--until", "1m")
    assert "owned" in page.read_text()
    assert_harmless(page.read_text())
