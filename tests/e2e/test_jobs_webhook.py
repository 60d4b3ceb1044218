"""The webhook for API servers before 1.36 does to Jobs what the policies do: their tests, asked of it."""

import base64

import pytest

from tests.access.certificates import Authority, Files
from tests.cases.serving import serving
from tests.controlplane.api import read_manifests
from tests.controlplane.gates import delete
from tests.controlplane.objects import job
from tests.controlplane.processes import free_port, wait_until
from tests.controlplane.quotaward import install_rights
from tests.e2e.test_ignore_disruptions import kubectl, tried  # noqa: F401 - a fixture
from tests.e2e.test_manifests import MANIFESTS, SYSTEM
from tests.e2e.test_queued_jobs_policy import (  # noqa: F401 - fixtures, and the tests that these have
    LEFT_ALONE,
    WAITING,
    account,
    controllers,
    held,
    in_force,
    ours,
    queued,
    tenant,
    test_a_job_that_has_ended_is_left_alone,
    test_a_manifest_is_applied_again_and_again,
    test_a_manifest_is_applied_again_and_again_while_less_is_granted,
    test_beside_a_second_scheduler_quotaward_may_do_the_same,
    test_new_jobs_wait_without_pods_however_they_are_created,
    test_nobody_else_starts_a_job_that_waits_and_no_change_is_refused,
    test_other_jobs_are_left_alone,
    test_quotaward_starts_a_job_and_its_author_may_stop_it_but_not_start_it_again,
    test_the_rest_of_a_change_that_would_start_a_job_is_made,
    waits,
)


def asked_at(item, url, bundle):
    """The configuration of the webhook, with its service at an address of this machine."""
    client = {"url": url, "caBundle": base64.b64encode(bundle).decode()}
    return item | {"webhooks": [each | {"clientConfig": client} for each in item["webhooks"]]}


@pytest.fixture(scope="module")
def installed(control_plane, controllers, tmp_path_factory):  # noqa: F811
    """The webhook and the right in place of the policies; whoever answers knows nothing of the cluster."""
    directory = tmp_path_factory.mktemp("webhook")
    (directory / "manifests").mkdir()
    files, authority = Files(directory), Authority()
    files.present(authority.issue("quotaward"))
    files.ask_for(authority)
    address = f"127.0.0.1:{free_port()}"
    flags = ["--manifests", str(directory / "manifests"), "--secure-listen", address, *files.flags]
    install_rights(control_plane.api)
    control_plane.api.apply(account("quotaward-scheduler", SYSTEM))
    rights = {"ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    items = [item for item in read_manifests(MANIFESTS / "jobs/queued") if item["kind"] in rights]
    [webhook] = read_manifests(MANIFESTS / "jobs/webhook")
    items.append(asked_at(webhook, f"https://{address}/admission/gate", authority.pem))
    with serving(*flags, log=directory / "serve.log", path_when_up="/healthz"):
        for item in items:
            control_plane.api.apply(item)
        yield items
        for item in reversed(items):
            delete(control_plane, item)


def test_while_nobody_answers_jobs_are_created_as_they_are(cluster, queued, installed):  # noqa: F811
    *_, webhook = installed
    nowhere = f"https://127.0.0.1:{free_port()}/admission/gate"
    cluster.api.apply(asked_at(webhook, nowhere, base64.b64decode(webhook["webhooks"][0]["clientConfig"]["caBundle"])))
    try:
        wait_until(lambda: waits(tried(cluster, job("tried", queued))) == LEFT_ALONE, "nobody is asked")
    finally:
        cluster.api.apply(webhook)
        in_force(cluster, queued)


def with_commas(number, namespace):
    item = job("wide", namespace)
    item["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "v", "value": "," * number}]
    return item


def test_a_job_too_wide_to_be_read_does_not_wait(cluster, queued):  # noqa: F811
    assert waits(tried(cluster, with_commas(300_000, queued))) == WAITING
    assert waits(tried(cluster, with_commas(450_000, queued))) == LEFT_ALONE
