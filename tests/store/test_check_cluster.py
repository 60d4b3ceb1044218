"""``quotaward check --cluster`` against the real API server."""

import pytest

from app.checks.rights import AGAIN
from tests.controlplane.launch import run_quotaward
from tests.controlplane.objects import pod
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward, install_rights, right_to_delete

QUEUE_NAME = "scheduling.volcano.sh/queue-name"
SYSTEM = "quotaward-system"
LEASE = f"Lease {SYSTEM}/quotaward"


@pytest.fixture
def check(cluster, tmp_path):
    """Checks the cluster with the credentials of that account, or of an administrator."""

    def run(account="", server="http://127.0.0.1:9", of="", **environment):
        file = tmp_path / "kubeconfig"
        token = cluster.api.service_account_token(account, "quotaward-system") if account else None
        file.write_text(cluster.api.kubeconfig(token))
        flags = ["--cluster", "--kubeconfig", str(file), "--server", server, *(["--as", of] if of else [])]
        done = run_quotaward("check", *flags, env=environment or None)
        assert done.stderr == ""
        return done.returncode, done.stdout.splitlines()

    return run


def test_a_cluster_that_has_everything_has_nothing_wrong(cluster, check):
    namespace = cluster.namespace("store")
    cluster.quota(namespace, max={"cpu": 1})
    cluster.api.create(pod("p", namespace))
    with Quotaward(cluster.control_plane) as quotaward:
        status, lines = check("quotaward", quotaward.url)
    assert [line for line in lines if line.startswith("error")] == []
    assert status == 0
    assert f"info: a Quotaward answers at {quotaward.url}" in lines
    uncalled = f"warning: no scheduler has called the Quotaward at {quotaward.url} since it was started"
    assert any(line.startswith(uncalled) for line in lines)
    assert any(line.startswith(f"info: {LEASE} is held by ") for line in lines)
    assert "info: pods name these schedulers: default-scheduler (1, of which 1 wait)" in lines


def test_rights_that_are_missing_are_named_one_by_one(cluster, check):
    install_rights(cluster.api)
    cluster.api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "in-part", "namespace": "quotaward-system"}}
    )
    may_list(cluster, "in-part", "queues.scheduling.volcano.sh")
    missing, given_by = "error: these credentials may not", f": {AGAIN}, which has it"
    wait_until(lambda: f"{missing} list pods{given_by}" in check("in-part")[1], "it may list queues")
    status, lines = check("in-part")
    assert status == 1
    assert f"{missing} patch elasticquotas.scheduling.x-k8s.io/status{given_by}" in lines
    assert f"{missing} get leases.coordination.k8s.io in namespace quotaward-system{given_by}" in lines


def test_an_account_without_the_role_of_quotaward_has_one_line(cluster, check):
    install_rights(cluster.api)
    account = f"system:serviceaccount:{SYSTEM}:quotaward"
    lost = f"error: {account} may do nothing that only Quotaward needs: "
    path = "/apis/rbac.authorization.k8s.io/v1"
    for plural, gone in (
        ("clusterrolebindings", "ClusterRoleBinding quotaward is missing"),
        ("clusterroles", "ClusterRole quotaward and ClusterRoleBinding quotaward are missing"),
    ):
        cluster.api.request("DELETE", f"{path}/{plural}/quotaward")
        said = f"{lost}{gone}; {AGAIN}"
        wait_until(lambda said=said: said in check(of=account)[1], f"{plural} are missed")
        assert [line for line in check(of=account)[1] if line.startswith("error")] == [said]
    install_rights(cluster.api)
    wait_until(lambda: check(of=account)[0] == 0, "the rights are given back")
    own = "error: nobody may do nothing that only Quotaward needs: ClusterRole quotaward is not bound to it, or has"
    assert [line for line in check(of="nobody")[1] if line.startswith(own)]


def test_an_administrator_checks_the_rights_of_an_account(cluster, check):
    install_rights(cluster.api)
    account = "system:serviceaccount:quotaward-system:quotaward"
    assert not any(line.startswith("error") for line in check(of=account)[1])
    status, lines = check(of="nobody")
    assert any(line.startswith("error: nobody may do nothing that only Quotaward needs: ") for line in lines)
    assert status == 1
    assert any("these credentials may do everything; --as ACCOUNT" in line for line in check()[1])
    status, lines = check("quotaward", of="nobody")
    assert (
        "error: the API server cannot be queried: these credentials may not ask for the rights of others" in lines[-3]
    )


def test_an_administrator_checks_the_rights_of_the_accounts_that_quotaward_has(cluster, check):
    install_rights(cluster.api)
    ours = {"labels": {"app.kubernetes.io/name": "quotaward"}}
    for name, account in (("good", "quotaward"), ("lost", "nobody")):
        item = pod(name, SYSTEM, serviceAccountName=account)
        cluster.api.create(item | {"metadata": item["metadata"] | ours})
    status, lines = check()
    account = f"system:serviceaccount:{SYSTEM}"
    lost = f"error: {account}:nobody may do nothing that only Quotaward needs: ClusterRole quotaward is not bound to it"
    assert any(line.startswith(lost) for line in lines)
    assert not any(line.startswith(f"error: {account}:quotaward") for line in lines)
    assert status == 1


def test_bounds_and_names_of_queues_are_compared(cluster, check):
    cluster.node(cpu=4)
    namespace = cluster.namespace("store")
    cluster.quota(namespace, min={"cpu": 9}, max={"cpu": 8})
    cluster.queue("research")
    mistyped = pod("p", namespace)
    mistyped["metadata"]["annotations"] = {QUEUE_NAME: "reserch"}
    cluster.api.create(mistyped)
    cluster.api.patch("namespaces", namespace, {"metadata": {"annotations": {QUEUE_NAME: "nowhere"}}})
    _, lines = check()
    gone = f"warning: Namespace {namespace} names the queue nowhere, which does not exist"
    assert f"{gone}, in its annotation {QUEUE_NAME}" in lines
    own = f"warning: Pod {namespace}/p names the queue reserch, which does not exist, in its own annotation"
    assert f"{own}: did you mean research?" in lines
    assert any(line.startswith(f"warning: ElasticQuota {namespace}/quota: Invalid: min exceeds max") for line in lines)
    assert any(
        line.startswith("warning: min of all elastic quotas is 8 of cpu, but the nodes have 4") for line in lines
    )


def test_the_right_to_delete_is_missed_where_budgets_are_heeded_for_a_while_only(cluster, check):
    install_rights(cluster.api)
    patient = {"QUOTAWARD_RECLAIM__BUDGET_PATIENCE": "60"}
    missing = "these credentials may not delete pods"
    status, lines = check("quotaward")
    assert f"info: {missing}; Quotaward works without that right (see manifests/patience)" in lines
    assert status == 0
    status, lines = check("quotaward", **patient)
    assert f"error: {missing}: see manifests/patience" in lines
    assert status == 1
    with right_to_delete(cluster.api):
        wait_until(lambda: missing not in "".join(check("quotaward", **patient)[1]), "it may delete pods")


def test_the_right_to_start_jobs_is_missed_where_some_wait_as_a_whole(cluster, check):
    install_rights(cluster.api)
    missing = "these credentials may not patch jobs.batch"
    assert f"info: {missing}; Quotaward works without that right (see manifests/jobs/queued)" in check("quotaward")[1]
    cluster.api.patch(
        "namespaces", cluster.namespace("store"), {"metadata": {"labels": {"quotaward.dev/jobs": "queued"}}}
    )
    status, lines = check("quotaward", QUOTAWARD_JOBS__KINDS="JobSet,RayJob")
    assert [line for line in lines if line.startswith("error")] == [
        f"error: {missing}: see manifests/jobs/queued",
        *(
            f"error: these credentials may not {verb} {kind}: see manifests/jobs/kinds/{folder}"
            for kind, folder in (("jobsets.jobset.x-k8s.io", "jobset"), ("rayjobs.ray.io", "rayjob"))
            for verb in ("list", "watch", "patch")
        ),
    ]
    assert status == 1
    cluster.api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": SYSTEM, "name": "nearly-blind"}}
    )
    may_list(cluster, "nearly-blind", "namespaces", "queues.scheduling.volcano.sh")
    unseen = f"error: these credentials may not list jobs.batch: {AGAIN}, which has it"
    wait_until(lambda: unseen in check("nearly-blind")[1], "the right to see Jobs is missed, too")


def may_list(cluster, account, *resources):
    """Gives an account the right to list these, and no other."""
    rbac, name = "rbac.authorization.k8s.io", {"name": account}
    split = [each.partition(".") for each in resources]
    rules = [{"apiGroups": [group], "resources": [plural], "verbs": ["list"]} for plural, _, group in split]
    subject = {"kind": "ServiceAccount", "namespace": SYSTEM} | name
    for item in (
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": name, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": name,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole"} | name,
            "subjects": [subject],
        },
    ):
        cluster.api.apply(item)


def test_a_resource_that_no_node_lists_is_named(cluster, check):
    cluster.node(cpu=4)
    namespace = cluster.namespace("store")
    cluster.quota(namespace, max={"nvidia.com/gpus": 1, "example.com/fpga": 1})
    _, lines = check()
    where = f"warning: ElasticQuota {namespace}/quota: spec.max."
    assert [line for line in lines if line.startswith(f"{where}nvidia.com/gpus bounds nothing")]
    assert [line for line in lines if line.startswith(f"{where}example.com/fpga is on no node")]
