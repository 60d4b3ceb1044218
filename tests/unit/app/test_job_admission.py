"""What the webhook for API servers before 1.36 answers about Jobs: the same as the policies of newer ones do."""

import base64
import json

import msgspec
import pytest

from app.api.job_admission import patch_of
from app.store.jobs import JOBS
from tests.unit.app.given import client_of, store_with

MARK, LEAST, ASKED = "quotaward.dev/queued", "quotaward.dev/min-parallelism", "quotaward.dev/parallelism"
SUSPEND = {"op": "add", "path": "/spec/suspend", "value": True}
LABELS = {"op": "add", "path": "/metadata/labels", "value": {MARK: "true"}}
LABEL = {"op": "add", "path": "/metadata/labels/quotaward.dev~1queued", "value": "true"}
ENDED = {"conditions": [{"type": "Complete", "status": "True"}]}


def written(labels=None, annotations=None, owner=None, status=None, **spec):
    metadata = {"name": "j", "namespace": "a", "uid": "u"}
    metadata |= {"labels": labels} if labels is not None else {}
    metadata |= {"annotations": annotations} if annotations is not None else {}
    metadata |= {"ownerReferences": [{"kind": owner, "name": "o", "uid": "o", "controller": True}]} if owner else {}
    return {"metadata": metadata, "spec": {"parallelism": 2} | spec, "status": status or {}}


def patched(job, old=None):
    read = JOBS.decoder.decode
    return patch_of(read(msgspec.json.encode(job)), read(msgspec.json.encode(old)) if old is not None else None)


@pytest.mark.parametrize(
    ("job", "gets"),
    [
        (written(), [SUSPEND, LABELS]),
        (written(suspend=False), [SUSPEND, LABELS]),
        (written(labels={}, suspend=True), [LABEL]),
        (written(labels={MARK: "false"}), [SUSPEND, LABEL]),
        (written(labels={MARK: "true"}, suspend=True), []),
        (written(managedBy="kubernetes.io/job-controller"), [SUSPEND, LABELS]),
        (written(managedBy="example.com/queue"), []),
        (written(owner="CronJob"), [SUSPEND, LABELS]),
        (written(owner="JobSet"), []),
        (written(status=ENDED), [SUSPEND, LABELS]),
        (written() | {"spec": None}, []),
    ],
    ids=[
        *("nothing", "suspend: false", "its own", "another mark", "both", "its controller", "another controller"),
        *("of a CronJob", "of a JobSet", "a made-up end", "no spec"),
    ],
)
def test_a_new_job_is_suspended_and_marked(job, gets):
    assert patched(job) == gets


@pytest.mark.parametrize(
    ("job", "old", "gets"),
    [
        (written(suspend=False), written(suspend=True), [SUSPEND, LABELS]),
        (written(), written(suspend=True), [SUSPEND, LABELS]),
        (written(owner="JobSet"), written(suspend=True), [SUSPEND, LABELS]),
        (written(status=ENDED), written(suspend=True), [SUSPEND, LABELS]),
        (written(managedBy="example.com/queue"), written(suspend=True), [SUSPEND, LABELS]),
        (written(), written(suspend=True, status=ENDED), []),
        (written(), written(suspend=True, owner="JobSet"), []),
        (written(), written(), []),
        (written(suspend=True), written(), []),
        (written(suspend=True), written(suspend=True), []),
    ],
    ids=[
        *("false", "removed", "a made-up owner", "a made-up end", "a made-up controller", "has ended", "of a JobSet"),
        *("runs", "is suspended", "stays suspended"),
    ],
)
def test_a_start_by_others_is_undone(job, old, gets):
    assert patched(job, old) == gets


def elastic(parallelism, asked="4", least="1", **rest):
    annotations = {LEAST: least} if least else {}
    return written(annotations=annotations | ({ASKED: asked} if asked else {}), parallelism=parallelism, **rest)


def noted(number):
    return {"op": "add", "path": "/metadata/annotations/quotaward.dev~1parallelism", "value": str(number)}


KEPT = {"op": "add", "path": "/spec/parallelism", "value": 2}


@pytest.mark.parametrize(
    ("job", "old", "gets"),
    [
        (elastic(4), elastic(2), [noted(4), KEPT]),
        (elastic(4, asked=None), elastic(2), [noted(4), KEPT]),
        (elastic(1), elastic(2), [noted(1)]),
        (elastic(2), elastic(2), []),
        (elastic(4, suspend=True), elastic(2, suspend=True), [noted(4)]),
        (elastic(4, suspend=True), elastic(2), [noted(4)]),
        (elastic(4, labels={}), elastic(2, suspend=True), [noted(4), SUSPEND, LABEL]),
        (elastic(4, least=None), elastic(2), []),
        (elastic(4), elastic(2, asked=None), []),
        (elastic(4, completions=4), elastic(2, completions=2), []),
        (elastic(4), elastic(2, status=ENDED), []),
    ],
    ids=[
        *("raised", "raised, and its note taken away", "lowered", "as it was", "raised while it waits"),
        *("suspended", "started", "elastic no more", "nothing granted", "its completions, too", "has ended"),
    ],
)
def test_what_was_granted_to_an_elastic_job_is_kept(job, old, gets):
    assert patched(job, old) == gets


def asked(kind, job, old=None):
    review = {"request": {"uid": "u", "kind": kind, "object": job, "oldObject": old}}
    return client_of(store_with()).request("POST", "/admission/gate", json=review)


def test_the_webhook_answers_a_review_of_a_job():
    of_batch = {"group": "batch", "version": "v1", "kind": "Job"}
    response = asked(of_batch, written()).json()["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u", True, "JSONPatch")
    assert json.loads(base64.b64decode(response["patch"])) == [SUSPEND, LABELS]
    assert "patch" not in asked(of_batch, written(), written()).json()["response"]
    assert asked(of_batch, {"metadata": 1}).status_code == 422


def test_the_webhook_changes_nothing_of_a_kind_it_is_not_for():
    response = asked({"group": "example.com", "kind": "Job"}, written()).json()["response"]
    assert response == {"uid": "u", "allowed": True}


def test_a_review_too_wide_to_be_read_is_refused_so_the_job_does_not_wait():
    """As the documentation says: the API server goes on without the webhook then."""
    variable = {"name": "v", "value": "," * 500_000}
    template = {"spec": {"containers": [{"name": "c", "env": [variable]}]}}
    assert asked({"group": "batch", "kind": "Job"}, written(template=template)).status_code == 422
