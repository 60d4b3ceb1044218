"""The rights that ``quotaward check --cluster`` asks for, and a Quotaward that it asks."""

from pathlib import Path

from typer.testing import CliRunner

from app.checks.extender import extender
from app.checks.rights import lack, rights, rights_to_delete, rights_to_start_jobs
from app.cli import app
from app.job_kinds import SHIPPED
from app.settings import LeaderSettings, ReclaimSettings
from tests.controlplane.processes import free_port
from tests.reading import documents
from tests.unit.app.forwarding import Forwarding
from tests.unit.app.given import client_of, kubeconfig, store_with

MANIFESTS = Path(__file__).parents[3] / "manifests"


def granted(file):
    """What a file of the manifests grants: group, resource, part, verb and name."""
    for document in documents((MANIFESTS / file).read_text()):
        for rule in document.get("rules", ()):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        plural, _, part = resource.partition("/")
                        yield from ((group, plural, part, verb, name) for name in rule.get("resourceNames", [""]))


def asked(wanted):
    return {(each.group, each.resource, each.subresource, each.verb, each.name) for each in wanted}


def test_the_rights_that_are_asked_for_are_those_that_the_manifests_grant():
    assert asked(rights(LeaderSettings())) == set(granted("rbac/quotaward.yaml"))
    assert asked(rights_to_delete(ReclaimSettings())) == set(granted("patience/quotaward-patience.yaml"))
    of_jobs = set(granted("jobs/queued/quotaward-jobs.yaml"))
    assert asked(rights_to_start_jobs(needed=True)) == of_jobs
    of_kinds = {
        right for row in SHIPPED for right in granted(f"jobs/kinds/{row.kind.lower()}/quotaward-{row.plural}.yaml")
    }
    assert asked(rights_to_start_jobs(needed=True, rows=SHIPPED)) == of_jobs | of_kinds


def test_each_right_names_the_folder_that_has_it():
    optional = *rights_to_delete(ReclaimSettings()), *rights_to_start_jobs(needed=True, rows=SHIPPED)
    for right in (*rights(LeaderSettings()), *optional):
        [file] = (Path(__file__).parents[3] / right.given_by).glob("quotaward*.yaml")
        assert asked([right]) <= set(granted(file))


def test_the_right_to_delete_is_needed_only_where_budgets_are_not_heeded_for_ever():
    [as_it_comes], [with_patience] = (rights_to_delete(ReclaimSettings(budget_patience=each)) for each in (None, 60))
    assert (as_it_comes.needed, with_patience.needed) == (False, True)


def test_jobs_have_to_be_seen_where_they_wait_as_a_whole():
    def needed(**given):
        return {(each.resource, each.verb) for each in rights(LeaderSettings(), **given) if each.needed}

    assert needed(jobs_wait=True) - needed() == {("jobs", "list"), ("jobs", "watch")}


def test_a_quotaward_that_answers_and_was_never_asked_is_told_of():
    with Forwarding(client_of(store_with())) as server:
        first, second = extender(server.url)
    assert (first.severity, first.text) == ("info", f"a Quotaward answers at {server.url}")
    assert second.severity in ("info", "warning")
    assert "called" in second.text


def test_a_quotaward_that_does_not_answer_is_a_warning_of_one_line():
    url = f"http://127.0.0.1:{free_port()}"
    [finding] = extender(url)
    assert finding.severity == "warning"
    assert finding.text.startswith(f"no Quotaward answers at {url}: ")
    assert len(finding.text.splitlines()) == 1


def test_without_an_address_it_is_said_how_to_forward_one(monkeypatch):
    monkeypatch.setattr("app.checks.extender.DEFAULT_SERVER", url := f"http://127.0.0.1:{free_port()}")
    [finding] = extender("")
    assert finding.severity == "info"
    said = f"no Quotaward was asked, as none is forwarded to {url}: connection refused. To reach the one in a cluster, "
    assert finding.text.startswith(f"{said}run kubectl -n quotaward-system port-forward ")


def test_an_address_that_is_not_named_is_the_usual_one(monkeypatch, tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig(f"http://127.0.0.1:{free_port()}"))
    monkeypatch.setattr("app.checks.extender.DEFAULT_SERVER", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("QUOTAWARD_SERVER", raising=False)
    done = CliRunner().invoke(app, ["check", "--cluster", "--kubeconfig", str(file)])
    assert done.output.splitlines()[-1] == "1 error, 0 warnings"


def test_a_right_that_is_missing_is_given_back_from_a_folder_to_be_named():
    [right] = [each for each in rights(LeaderSettings()) if str(each) == "patch pods/status"]
    assert lack("q", right).text == (
        "q may not patch pods/status: apply your own overlay again (kubectl apply --server-side -k DIRECTORY), which"
        " has it"
    )


def test_an_api_server_that_does_not_answer_is_an_error_of_one_line(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig(f"http://127.0.0.1:{free_port()}"))
    url = f"http://127.0.0.1:{free_port()}"
    done = CliRunner().invoke(app, ["check", "--cluster", "--kubeconfig", str(file), "--server", url])
    first, second, last = done.output.splitlines()
    assert first.startswith("error: the API server cannot be queried: ")
    assert second.startswith("warning: no Quotaward answers")
    assert (done.exit_code, last) == (1, "1 error, 1 warning")


def test_a_kubeconfig_that_is_not_there_is_said_in_a_sentence():
    done = CliRunner().invoke(app, ["check", "--cluster", "--kubeconfig", "/nowhere"])
    assert done.exit_code == 2
    assert done.output == "kubeconfig /nowhere: there is no such file\n"
