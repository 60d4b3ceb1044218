"""What ``quotaward check --cluster`` finds in events of schedulers, and at addresses that do not answer."""

import socket
import ssl
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest

from app.checks.events import RECENT, failed_evictions, pods_not_made, refused, unanswered
from app.checks.extender import extender
from app.checks.webhooks import webhook_findings
from app.client import HANGS
from app.store.pod_object import PodObject
from app.times import rfc3339
from tests.access.certificates import Authority

NOW = 1_800_000_000.0


def event(message, ago=10.0, **fields):
    return {"message": message, "reportingComponent": "q", "lastTimestamp": rfc3339(NOW - ago)} | fields


REFUSED = 'Post "http://127.0.0.1:9/extender/filter": dial tcp 127.0.0.1:9: connect: connection refused'
UNREADY = "failed filter with extender at URL http://127.0.0.1:8080/extender/filter, code 503"


def texts(*events):
    return [each.text.partition(". If a pod ")[0] for each in unanswered(list(events), [], NOW)]


def test_an_address_that_refuses_connections_is_named_once_with_the_latest_reason():
    [found] = texts(event(REFUSED, ago=40), event(REFUSED), event("0/3 nodes are available"))
    assert found.startswith("the scheduler q got no answer from http://127.0.0.1:9/extender/filter 10 s ago: ")
    assert found.endswith("dial tcp 127.0.0.1:9: connect: connection refused")


OURS = "0/1 nodes are available: 1 ElasticQuota max exceeded: cpu."  # tells nothing of the extenders after this one


@pytest.mark.parametrize(
    ("later", "placed", "over"),
    [
        ([], [], False),
        ([event(OURS, ago=9)], [], False),
        ([event("0/1 nodes are available: 1 Insufficient cpu.", ago=9)], [], False),
        ([], [event("Successfully assigned a/p to n", ago=9)], True),
        ([], [event("Successfully assigned a/p to n", ago=11)], False),
        ([], [event("Successfully assigned a/p to n", ago=9, reportingComponent="other")], False),
    ],
)
def test_a_scheduler_that_has_placed_a_pod_since_needs_nobody_to_act(later, placed, over):
    [found] = unanswered([event(REFUSED), *later], placed, NOW)
    assert found.severity == ("info" if over else "warning")
    assert found.text.endswith(
        ". It has placed a pod since: if it has to ask that address about every pod, this is over"
        if over
        else ". If a pod that names this scheduler has got a node since, this is over"
    )


@pytest.mark.parametrize(
    ("why", "hangs"),
    [
        ("context deadline exceeded (Client.Timeout exceeded while awaiting headers)", True),
        (
            "net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)",
            False,
        ),
        ("dial tcp 127.0.0.1:9: connect: connection refused", False),
    ],
)
def test_a_late_answer_means_that_the_process_hangs(why, hangs):
    [found] = texts(event(f'Post "http://127.0.0.1:9/extender/filter": {why}'))
    assert (HANGS in found) == hangs


def test_an_answer_that_is_an_error_is_told_with_its_code():
    [found] = texts(event(UNREADY))
    assert found.endswith("http://127.0.0.1:8080/extender/filter 10 s ago: it answers 503")


@pytest.mark.parametrize(
    "strange",
    [
        event(REFUSED, ago=RECENT + 1),
        event(REFUSED, lastTimestamp=None),
        event(REFUSED, lastTimestamp="soon", series="often"),
        event(f"failed calling webhook: {REFUSED}"),
        {},
    ],
    ids=["long ago", "without a time", "nonsense", "of a webhook", "empty"],
)
def test_other_events_say_nothing(strange):
    assert texts(strange) == []


def test_the_time_of_a_series_is_that_of_its_last_event():
    again = {"series": {"lastObservedTime": rfc3339(NOW - 5)}, "lastTimestamp": None, "eventTime": rfc3339(NOW - 4000)}
    [found] = texts(event(REFUSED, **again))
    assert " 5 s ago" in found


BLOCKED = 'eviction of b/r failed, and is tried again: the API server answered 500: failed calling webhook "x"'


def test_the_latest_eviction_that_failed_is_told_with_the_reason():
    waits = event("eviction of b/other waits for its disruption budget", ago=1)
    [found] = failed_evictions([event(BLOCKED.replace("b/r", "b/old"), ago=40), event(BLOCKED), waits], NOW)
    assert found.severity == "warning"
    assert found.text == f"10 s ago an {BLOCKED}"
    assert list(failed_evictions([event(BLOCKED, ago=RECENT + 1), waits, {}], NOW)) == []


NOT_MADE = (
    'Error creating: Internal error occurred: failed calling webhook "images.example.com": Post "https://x": late'
)


def test_the_latest_pod_that_was_not_made_for_want_of_an_answer_is_told():
    whose = {"kind": "ReplicaSet", "namespace": "a", "name": "train-1"}
    old = event(NOT_MADE, ago=40, involvedObject=whose | {"name": "other"})
    beyond = event('Error creating: pods "p" is forbidden: exceeded quota: q', ago=1, involvedObject=whose)
    [found] = pods_not_made([old, event(NOT_MADE, involvedObject=whose), beyond, {}], [], NOW)
    assert found.severity == "warning"
    assert found.text == f"10 s ago no pod could be created for ReplicaSet a/train-1: {NOT_MADE}"
    assert list(pods_not_made([event(NOT_MADE, ago=RECENT + 1), beyond, {}], [], NOW)) == []


def test_pods_that_were_made_since_mean_that_it_is_over():
    train, other = ({"kind": "ReplicaSet", "namespace": "a", "name": name} for name in ("train", "other"))
    failed = event(NOT_MADE, involvedObject=train)
    earlier = event("Created pod: train-1", ago=11, involvedObject=train)
    elsewhere = event("Created pod: other-1", ago=9, involvedObject=other)
    [found] = pods_not_made([failed], [earlier, elsewhere, {}], NOW)
    assert found.severity == "warning"
    since = event("Created pod: train-2", ago=9, involvedObject=train)
    [found] = pods_not_made([failed], [since, earlier], NOW)
    assert found.severity == "info"
    assert found.text.endswith(f"{NOT_MADE}. A pod was created for it since, so this is over")
    still = event(NOT_MADE, ago=40, involvedObject=other | {"name": "still"})
    [found] = pods_not_made([failed, still], [since], NOW)
    assert (found.severity, "a/still" in found.text) == ("warning", True)


def unplaced(*names):
    items = [{"metadata": {"namespace": "a", "name": name, "uid": f"uid-{name}"}} for name in names]
    return [msgspec.convert(item, PodObject) for item in items]


def tried(name, message, ago=10.0):
    return event(message, ago=ago, involvedObject={"namespace": "a", "name": name, "uid": f"uid-{name}"})


def test_each_rule_that_pods_wait_for_is_told_with_what_to_type():
    gang = "Gang minimum cannot be placed yet"
    events = [
        *(tried(name, f"0/2 nodes are available: 2 {gang}.") for name in ("g-2", "g-0", "g-1", "gone")),
        tried("m", "0/2 nodes are available: 2 Insufficient cpu.", ago=40),
        tried("m", OURS, ago=20),
        tried("n", OURS, ago=40),
        tried("n", "0/2 nodes are available: 2 Insufficient cpu."),
        {},
    ]
    found = list(refused(events, unplaced("g-1", "g-2", "g-0", "m", "n", "untried")))
    assert {each.severity for each in found} == {"info"}
    assert [each.text for each in found] == [
        "1 pod waits for the rule elastic-quota-max (ElasticQuota max exceeded), such as a/m: quotaward explain a/m",
        f"3 pods wait for the rule gang-minimum ({gang}), such as a/g-0: quotaward explain a/g-0",
    ]


def test_a_server_that_hangs_is_told_without_the_words_of_a_library(monkeypatch):
    monkeypatch.setattr("app.checks.extender.TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        [found] = extender(url)
    assert found.text == f"no Quotaward answers at {url}: it has not answered in time, so {HANGS}"


@pytest.mark.parametrize(
    ("ends_in", "trusted", "said"),
    [
        (timedelta(days=-1), True, "its certificate is not accepted: certificate has expired"),
        (timedelta(days=1), False, "its certificate is not accepted: unable to get local issuer certificate"),
        (timedelta(days=1), True, None),
    ],
    ids=["ended", "of another authority", "good"],
)
def test_a_certificate_that_cannot_be_accepted_is_told_with_the_reason(tmp_path, ends_in, trusted, said):
    ours, other = Authority(), Authority()
    ca = tmp_path / "ca.crt"
    ca.write_bytes((ours if trusted else other).pem)
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.issue("localhost", ends_in=ends_in).configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        [found] = extender(f"https://localhost:{server.server_port}", ca)
    finally:
        server.shutdown()
        server.server_close()
    assert (said is None) == ("certificate" not in found.text)
    assert (said or "is not ready: it answers 501") in found.text


@pytest.mark.parametrize(
    ("groups", "resources", "operations", "named"),
    [
        ([""], ["pods/eviction"], ["CREATE"], "pods/eviction"),
        (["*"], ["*/*"], ["*"], "new pods, pods/eviction, pods/binding, pods/status"),
        ([""], ["pods/*"], ["CREATE", "UPDATE"], "pods/eviction, pods/binding, pods/status"),
        ([""], ["pods", "pods/status"], ["UPDATE"], "pods/status"),
        ([""], ["pods"], ["CREATE", "UPDATE"], "new pods"),
        (["*"], ["*"], ["CREATE"], "new pods"),
        ([""], ["pods"], ["DELETE"], None),
        (["apps"], ["*/*"], ["*"], None),
    ],
)
def test_a_webhook_that_can_refuse_what_is_written_of_pods_is_named(groups, resources, operations, named):
    rule = {"apiGroups": groups, "resources": resources, "operations": operations}
    webhook = {"name": "audit.example.com", "rules": [rule]}
    said = (
        f"webhook audit.example.com of MutatingWebhookConfiguration audit is asked about {named}: these are refused if"
    )
    command = "kubectl get mutatingwebhookconfiguration audit -o yaml"
    assert found_of(webhook) == ([f"{said} it does not answer within 10 s ({command})"] if named else [])
    assert found_of(webhook | {"failurePolicy": "Ignore"}) == []


def found_of(webhook):
    configuration = {"metadata": {"name": "audit"}, "webhooks": [webhook]}
    return [each.text for each in webhook_findings("MutatingWebhookConfiguration", [configuration])]
