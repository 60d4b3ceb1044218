"""The command line: ``serve``, and clients of a running server."""

import errno
import math
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from urllib.parse import urlencode

import typer

from app import settings as settings_module
from app.cli_lists import Format, Listing, Output, print_document, showing_a_list
from app.client import DEFAULT_SERVER, CannotAsk, Server, reaching_a_server
from app.inert import say
from app.settings import InvalidSettings
from app.times import InvalidDuration, parse_duration
from app.version import describe, version

if TYPE_CHECKING:
    from app.checks.live import Live
    from app.release import Work

app = typer.Typer(
    name="quotaward",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - so typer calls it
    if wanted:
        print(f"quotaward {version()}")
        raise typer.Exit


@app.callback()
def quotaward(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Elastic quotas for a stock kube-scheduler."""


OfNamespace = Annotated[str, typer.Option("--namespace", "-n", help="Only of this namespace.")]
OfAll = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces, whatever -n names.")]

gates_app = typer.Typer(invoke_without_command=True, pretty_exceptions_enable=False)
app.add_typer(gates_app, name="gates")
jobs_app = typer.Typer(invoke_without_command=True, pretty_exceptions_enable=False)
app.add_typer(jobs_app, name="jobs")


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
)
def serve(context: typer.Context) -> None:
    """Run the server that answers kube-scheduler; serve --help lists its settings."""
    import uvloop  # noqa: PLC0415 - the clients start faster without the server

    from app import main as server  # noqa: PLC0415
    from app.kube.client import CannotConnect  # noqa: PLC0415
    from app.observability import logging  # noqa: PLC0415

    try:
        settings = settings_module.load(context.args)
        logging.configure(settings.log)
        for variable, closest in settings_module.unknown_variables(os.environ).items():
            logging.warn_unknown(variable, closest)
        if settings.listens_openly:
            logging.warn_insecure(settings.listen)
        uvloop.run(server.serve(settings))
    except (InvalidSettings, CannotConnect) as error:
        _fail(str(error), code=2)
    except OSError as error:
        others = "name another address with --listen HOST:PORT (or --secure-listen, --probe-listen)"
        hint = f"; {others}" if error.errno == errno.EADDRINUSE else ""
        _fail(f"cannot listen: {error}{hint}")


@app.command()
@reaching_a_server
@showing_a_list
def quotas(
    server: Server,
    listing: Listing,
    namespace: OfNamespace = "",
    all_namespaces: OfAll = False,  # noqa: FBT002
) -> None:
    """Show every elastic quota: used, min, max, and what it borrows."""
    from app import cli_output  # noqa: PLC0415

    namespace = "" if all_namespaces else namespace

    def print_table(document: dict[str, Any], *, wide: bool = False) -> None:
        if namespace and not document["items"]:
            raise CannotAsk(f"there is no elastic quota in namespace {namespace}")
        cli_output.print_quotas(document, wide=wide)

    _show_list(listing, print_table, server, f"/api/v1/elasticquotas/{namespace}".rstrip("/"), cli_output.namespaced)


@app.command()
@reaching_a_server
@showing_a_list
def queues(
    server: Server,
    listing: Listing,
    tree: Annotated[bool, typer.Option("--tree", help="Draw the tree: each queue below its parent.")] = False,  # noqa: FBT002
) -> None:
    """Show every queue: allocated, deserved and guarantee, and what its namespaces are entitled to."""
    from app import cli_output  # noqa: PLC0415

    table = cli_output.print_queue_tree if tree else cli_output.print_queues
    _show_list(listing, table, server, "/api/v1/queues", cli_output.named)


@app.command()
@reaching_a_server
@showing_a_list
def reservations(server: Server, listing: Listing) -> None:
    """Show reservations: the nodes where room is kept, for which pods, and since when."""
    from app import cli_output  # noqa: PLC0415

    _show_list(listing, cli_output.print_reservations, server, "/api/v1/reservations", cli_output.named)


@app.command()
@reaching_a_server
@showing_a_list
def waiting(
    server: Server,
    listing: Listing,
    namespace: OfNamespace = "",
    all_namespaces: OfAll = False,  # noqa: FBT002
    queue: Annotated[str, typer.Option(help="Only of this queue.")] = "",
    rule: Annotated[str, typer.Option(help="Only what this rule (or reason) keeps waiting.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show so many at most.")] = 1000,
) -> None:
    """Show everything that waits by job, who waits longest first: since when, where in line, and for what."""
    from app import cli_output  # noqa: PLC0415

    asked = {"namespace": "" if all_namespaces else namespace, "queue": queue, "rule": rule, "limit": str(limit)}
    _show_list(listing, cli_output.print_waiting, server, _path("/api/v1/waiting", asked), cli_output.explained_name)


@app.command()
@reaching_a_server
def history(
    server: Server,
    queue: Annotated[str, typer.Option(help="Of this queue, in steps.")] = "",
    quota: Annotated[str, typer.Option(metavar="NAMESPACE/NAME", help="Of this quota, in steps.")] = "",
    since: Annotated[str, typer.Option(metavar="DURATION", help="How far back, at most 24h.")] = "24h",
    step: Annotated[str, typer.Option(metavar="DURATION", help="Length of a step; without it, 1h in tables.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Show what happened in the last day: used and bounds, who waited, admissions, refusals, evictions."""
    from app import cli_output  # noqa: PLC0415

    one = bool(queue or quota)
    step = step or ("1h" if one and output in (Format.TABLE, Format.WIDE) else "")
    asked = {"queue": queue, "quota": quota, "since": since, "step": step}
    print_table = cli_output.print_history_of_one if one else cli_output.print_history
    _show(print_table, server, _path("/api/v1/history", asked), output=output)


@gates_app.callback()
@reaching_a_server
@showing_a_list
def gates(context: typer.Context, server: Server, listing: Listing, namespace: OfNamespace = "") -> None:
    """Show which pods wait at gates, in the order in which the gates would open."""
    if context.invoked_subcommand is None:
        from app import cli_output  # noqa: PLC0415

        path = _path("/api/v1/gates", {"namespace": namespace})
        _show_list(listing, cli_output.print_gates, server, path, cli_output.gated_name)


Kubeconfig = Annotated[
    Path | None, typer.Option(help="Kubeconfig file for the API server (default: in cluster).", envvar="KUBECONFIG")
]


@gates_app.command("release")
def release_gates(kubeconfig: Kubeconfig = None, namespace: OfNamespace = "") -> None:
    """Open the gates of all pods through the API server alone: to uninstall, or when no Quotaward runs."""
    from app.release import GATES  # noqa: PLC0415

    _release((GATES,), kubeconfig, namespace, "gates", "opened")


@jobs_app.callback()
@reaching_a_server
@showing_a_list
def jobs(context: typer.Context, server: Server, listing: Listing, namespace: OfNamespace = "") -> None:
    """Show which Jobs wait as a whole, in the order in which they would start, and which are starting."""
    if context.invoked_subcommand is None:
        from app import cli_output  # noqa: PLC0415

        path = _path("/api/v1/jobs", {"namespace": namespace})
        _show_list(listing, cli_output.print_jobs, server, path, cli_output.explained_name)


@jobs_app.command("release")
def release_jobs(kubeconfig: Kubeconfig = None, namespace: OfNamespace = "") -> None:
    """Start all jobs that wait as a whole through the API server alone: to uninstall, or when no Quotaward runs."""
    from app.release import JOBS_OF_ALL_KINDS  # noqa: PLC0415

    _release(JOBS_OF_ALL_KINDS, kubeconfig, namespace, "Jobs", "started")


@app.command()
@reaching_a_server
def plan(server: Server, output: Output = Format.TABLE) -> None:
    """Show which pods are or would be evicted for which, and why others wait; changes nothing."""
    from app import cli_output  # noqa: PLC0415

    _show(cli_output.print_plan, server, "/api/v1/plan", output=output)


@app.command()
@reaching_a_server
def explain(
    pod: Annotated[str, typer.Argument(metavar="NAMESPACE/POD|NAMESPACE/KIND/JOB")],
    server: Server,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Its namespace: then only POD or job/JOB.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Explain why a pod, or a job that waits as a whole, is or is not admitted, and what would change that.

    KIND is job, or another kind of jobs in lower case, as jobset.
    """
    from app import cli_output  # noqa: PLC0415

    namespace, _, name = f"{namespace}/{pod}".lstrip("/").partition("/")
    kind, is_job, job = name.partition("/")
    if not namespace or not name or (is_job and (not kind or not job or "/" in job)):
        _fail(f"{pod!r} must be NAMESPACE/POD or NAMESPACE/job/JOB", code=2)
    of_kind = job if kind == "job" else f"{kind}/{job}"

    def show(document: dict[str, Any]) -> None:
        if document["verdict"] == "unknown":
            raise CannotAsk(document["summary"])
        cli_output.print_explanation(document)

    path = f"/api/v1/jobs/{namespace}/{of_kind}" if is_job else f"/api/v1/pods/{namespace}/{name}"
    _show(show, server, path, output=output)


Apply = Annotated[
    list[Path] | None, typer.Option("--apply", help="Manifests to merge into the present state: a file or a folder.")
]
Remove = Annotated[
    list[str] | None, typer.Option("--remove", help="Object to remove: KIND/NAME or KIND/NAMESPACE/NAME.")
]


@app.command()
@reaching_a_server
def whatif(server: Server, apply: Apply = None, remove: Remove = None, output: Output = Format.TABLE) -> None:
    """Show what a change would do to the cluster of a running server; changes nothing."""
    from app import cli_whatif  # noqa: PLC0415

    try:
        body = {
            "apply": cli_whatif.read_documents(apply or ()),
            "remove": [cli_whatif.reference(text) for text in remove or ()],
        }
    except cli_whatif.CannotSimulate as error:
        _fail(str(error), code=2)
    _show(cli_whatif.print_difference, server, "/api/v1/whatif", body, output=output)


@app.command()
def simulate(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of manifests.")],
    apply: Apply = None,
    remove: Remove = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file of the server.")] = None,
    until: Annotated[str | None, typer.Option(help="Stop the simulation after this time, like 12h.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the chart as an HTML page to this file.")] = None,
    time_limit: Annotated[float, typer.Option(min=0, help="Seconds after which a simulation is given up.")] = 600.0,
) -> None:
    """Simulate what happens in a folder of manifests; with --apply or --remove, show what these would change."""
    from app import cli_whatif  # noqa: PLC0415
    from app.whatif import charts  # noqa: PLC0415

    try:
        settings = settings_module.of_file(config)
        read = cli_whatif.scenario_of(directory, settings)
        for problem in read.problems:
            say(problem, err=True)
        if apply or remove:
            applied, removed = (
                cli_whatif.read_documents(apply or ()),
                [cli_whatif.reference(each) for each in remove or ()],
            )
            cli_whatif.print_difference(cli_whatif.difference_in(read, settings, applied, removed))
            raise typer.Exit(1 if read.problems else 0)
        last = parse_duration(until) if until else math.inf
        story, waiting = cli_whatif.story_of(read, settings, last, time_limit)
        cli_whatif.print_story(story, waiting)
        if html is not None:
            html.write_text(charts.page(story, directory.resolve().name), encoding="utf-8")
        raise typer.Exit(1 if read.problems or story.given_up_at is not None else 0)
    except cli_whatif.CannotChange as error:
        _fail(str(error))
    except (cli_whatif.CannotSimulate, InvalidDuration, InvalidSettings, OSError) as error:
        _fail(str(error), code=2)


@app.command()
def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="SWF, a CSV, or what sacct --parsable2 printed.")],
    policy: Annotated[
        list[Path] | None, typer.Option(help="A folder with quotas, queues, namespaces, nodes; may be repeated.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="swf, csv or sacct; by default by the name of LOG.")] = "",
    column: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COLUMN", help="Where a CSV has something; may be repeated.")
    ] = None,
    team: Annotated[str, typer.Option(help="The column (of SWF: user, group, queue, partition) of teams.")] = "",
    nodes: Annotated[
        str, typer.Option(help="Nodes for policies without any: 120x2, 4x64x256Gi+nvidia.com/gpu=8.")
    ] = "",
    pod_cores: Annotated[int, typer.Option(min=1, help="Processors that a pod takes, for SWF.")] = 1,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Play from so long after the first job.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Play jobs until so long after the first.")
    ] = None,
    evicted: Annotated[
        str, typer.Option(help="Jobs that are taken back begin anew (requeue) or go on (resume).")
    ] = "requeue",
    jobs_as: Annotated[
        str,
        typer.Option(
            "--jobs", help="Jobs wait as a whole (whole), or are pod groups (gangs), for which nodes may be reserved."
        ),
    ] = "whole",
    run_times: Annotated[
        str, typer.Option(help="Run times that users said: ignored, or deadlines that end jobs (enforced).")
    ] = "ignored",
    runs: Annotated[int, typer.Option(min=1, max=100, help="How often to play, to see the spread.")] = 1,
    jitter: Annotated[float, typer.Option(min=0, help="Seconds by which submissions differ between runs.")] = 5.0,
    time_limit: Annotated[float, typer.Option(min=0, help="Seconds after which a run is stopped.")] = math.inf,
    config: Annotated[Path | None, typer.Option(help="Configuration file of the server.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page with plots to this file.")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="table, json or csv.")] = "table",
) -> None:
    """Play a recorded workload with a policy or several: who would have waited how long, and what been evicted."""
    from app import cli_replay  # noqa: PLC0415
    from app.replay.log import CannotRead  # noqa: PLC0415
    from app.replay.player import Manner  # noqa: PLC0415
    from policy.simulate.replay import PingPong  # noqa: PLC0415

    for option, value, allowed in (
        ("--format", form, ("", "swf", "csv", "sacct")),
        ("--evicted", evicted, ("requeue", "resume")),
        ("--jobs", jobs_as, ("whole", "gangs")),
        ("--run-times", run_times, ("ignored", "enforced")),
        ("--output", output, ("table", "json", "csv")),
    ):
        if value not in allowed:
            _fail(f"{option}: {value!r} must be one of {', '.join(filter(None, allowed))}", code=2)
    try:
        since, until = (parse_duration(each) if each is not None else None for each in (begin, end))
        manner = Manner(evicted == "resume", jobs_as == "gangs", run_times == "enforced")
        of_log = (log, policy or (), form, column or (), team)
        asked = cli_replay.Asked(*of_log, nodes, pod_cores, since, until, manner, runs, jitter, time_limit)
        read = cli_replay.read(asked)
        for problem in read.problems:
            say(f"{log}: {problem}", err=True)
        if read.wrong or read.without_run:
            say(f"{log}: {read.wrong} lines cannot be read, {read.without_run} jobs did not run", err=True)
        answer = cli_replay.play(asked, read, settings_module.of_file(config))
        if report is not None:
            report.write_text(cli_replay.report(answer, log.name), encoding="utf-8")
    except (CannotRead, InvalidDuration, InvalidSettings, OSError) as error:
        _fail(str(error), code=2)
    except PingPong as error:
        _fail(str(error))
    for problem in answer.problems:
        say(problem, err=True)
    cli_replay.print_summaries(answer, output)
    stopped = [each for each in answer.summaries if each.stopped_at is not None]
    for each in stopped:
        say(f"{each.policy}: stopped, {each.to_come} of {len(answer.jobs)} jobs had not come", err=True)
    raise typer.Exit(1 if answer.problems or stopped else 0)


@app.command()
@reaching_a_server
def top(
    server: Server,
    interval: Annotated[float, typer.Option(help="Seconds between updates.", min=0.2)] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print one frame with all rows, and exit.")] = False,  # noqa: FBT002
) -> None:
    """Show quotas, queues, reservations and how many pods wait for what, live, fullest first, until interrupted."""
    from app import top as screen  # noqa: PLC0415

    try:
        if once or not sys.stdout.isatty():  # a file or a pipe has no screen
            screen.show_once(server)
        else:
            screen.show_live(server, interval)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        _fail(f"{server.stranger}: {type(error).__name__} {error}")
    except KeyboardInterrupt:
        return


@app.command()
def check(
    directory: Annotated[Path | None, typer.Argument(metavar="DIR", help="A folder of manifests.")] = None,
    scheduler_config: Annotated[
        Path | None,
        typer.Option(help="A KubeSchedulerConfiguration that should call Quotaward, or ConfigMaps with it."),
    ] = None,
    cluster: Annotated[  # noqa: FBT002
        bool, typer.Option("--cluster", help="Check a live cluster: rights, quotas, failing evictions, and more.")
    ] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig file for --cluster (default: in cluster).", envvar="KUBECONFIG")
    ] = None,
    server: Annotated[
        str,
        typer.Option(
            help="URL of the Quotaward that --cluster asks.", envvar="QUOTAWARD_SERVER", show_default=DEFAULT_SERVER
        ),
    ] = "",
    ca: Annotated[
        Path | None, typer.Option(help="CA (PEM) of that Quotaward's certificate.", envvar="QUOTAWARD_CA")
    ] = None,
    account: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="ACCOUNT",
            help="Check the rights of this account, for --cluster (default: these credentials; if they may do"
            " everything, the accounts of Quotaward's pods).",
        ),
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings too.")] = False,  # noqa: FBT002
    convert: Annotated[  # noqa: FBT002
        bool, typer.Option("--convert", help="Print DIR's annotated trees of queues with spec.parent; check nothing.")
    ] = False,
) -> None:
    """Validate manifests, a scheduler's configuration or a cluster; exits with 1 if anything is wrong."""
    from app import checks  # noqa: PLC0415

    if convert:
        _convert(directory)
        return

    if directory is None and scheduler_config is None and not cluster:
        _fail("nothing to check: name a folder of manifests, --scheduler-config FILE or --cluster", code=2)
    live = _live(kubeconfig, account, server, ca) if cluster else None
    report = checks.manifests(directory, live.there if live else ()) if directory else None
    findings = (report.findings if report else []) + (live.findings if live else [])
    if scheduler_config:
        findings += checks.scheduler_configuration(scheduler_config)
    for finding in findings:
        say(f"{finding.severity}: {finding.text}")
    errors, warnings = (sum(finding.severity == sort for finding in findings) for sort in ("error", "warning"))
    counted = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    say("; ".join([counted, *(report.counts() if report else ())]))
    raise typer.Exit(1 if errors or (strict and warnings) else 0)


def _convert(directory: Path | None) -> None:
    """Prints queues whose place in a tree an annotation says, as queues with a parent."""
    from app.checks import hierarchy  # noqa: PLC0415

    if directory is None:
        _fail("--convert: name a folder of manifests", code=2)
    found = hierarchy.converted(directory)
    if not found.queues:
        _fail(f"{directory}: no Queue has the annotation {hierarchy.WAY}")
    print(hierarchy.as_yaml(found), end="")


def _live(kubeconfig: Path | None, account: str, server: str, ca: Path | None) -> "Live":
    """Checks a live cluster, and the Quotaward at that address."""
    import asyncio  # noqa: PLC0415

    from app.checks import live  # noqa: PLC0415 - the official client takes a second to import
    from app.checks.extender import extender  # noqa: PLC0415
    from app.kube.client import CannotConnect  # noqa: PLC0415

    try:
        found = asyncio.run(live.cluster(kubeconfig, settings_module.load([]), account))
    except (CannotConnect, InvalidSettings) as error:
        _fail(str(error), code=2)
    found.findings += extender(server, ca)
    return found


@app.command(name="version")
def show_version(output: Output = Format.TABLE) -> None:
    """Show the version, its commit, that of Python, and the versions of Kubernetes that are supported."""
    if output == Format.NAME:
        _fail("--output: name is for lists", code=2)
    found = describe()
    if output in (Format.JSON, Format.YAML):
        print_document(found, output)
        return
    kubernetes = found["kubernetes"]
    print(f"quotaward {found['version']}")
    print(f"commit {found['commit'] or 'unknown'}")
    print(f"Python {found['python']}")
    print(f"kube-scheduler {kubernetes['schedulers'][0]} to {kubernetes['schedulers'][-1]}")
    print(f"API server {kubernetes['apiServerFrom']} or newer")


def main() -> None:
    """Runs the command line."""
    app()


def _show(
    show: Callable[[dict[str, Any]], None],
    server: Server,
    path: str,
    body: dict[str, Any] | None = None,
    output: Format = Format.TABLE,
) -> None:
    """Asks a running server, by POST if there is a body, and prints the answer. Exits with a sentence on failure."""
    if output == Format.NAME:
        _fail("--output: name is for lists", code=2)
    document = server.ask(path, body)
    try:
        show(document) if output in (Format.TABLE, Format.WIDE) else print_document(document, output)
    except (AttributeError, KeyError, TypeError) as error:
        _fail(f"{server.stranger}: {type(error).__name__} {error}")


def _show_list(
    listing: Listing, print_table: Callable[..., None], server: Server, path: str, name_of: Callable[..., str]
) -> None:
    """Asks a running server for a list, and shows it. Exits with a sentence on failure."""
    try:
        listing.show(lambda: server.ask(path), print_table, name_of)
    except (AttributeError, KeyError, TypeError) as error:
        _fail(f"{server.stranger}: {type(error).__name__} {error}")


def _path(path: str, asked: dict[str, str]) -> str:
    """Returns the path of a question, with what is asked for if it is not empty."""
    given = {name: value for name, value in asked.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def _release(works: "Iterable[Work[Any]]", kubeconfig: Path | None, namespace: str, what: str, done: str) -> None:
    """Releases all that waits, and says how much it was. Exits with a sentence on failure."""
    import asyncio  # noqa: PLC0415

    from app import release as releasing  # noqa: PLC0415
    from app.kube.client import CannotConnect  # noqa: PLC0415
    from app.kube.credentials import is_in_cluster  # noqa: PLC0415

    if kubeconfig is None and not is_in_cluster():
        _fail("no --kubeconfig and no KUBECONFIG given, and not in a cluster", code=2)
    try:
        number, failures = asyncio.run(releasing.release_all(works, kubeconfig, namespace))
    except CannotConnect as error:
        _fail(str(error), code=2)
    except releasing.CannotList as error:
        _fail(str(error))
    typer.echo(f"{number} {what} {done}")
    if failures:
        _fail(f"{len(failures)} could not be {done}:", *failures[:10])


def _fail(*lines: str, code: int = 1) -> NoReturn:
    say(*lines, err=True)
    sys.exit(code)
