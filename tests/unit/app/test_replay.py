"""``quotaward replay``: reading logs, playing them with policies, and summing them up."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from app.cli import app
from app.replay import swf, tables
from app.replay.course import course
from app.replay.log import CannotRead, duration, time
from app.replay.player import Played
from policy.simulate.replay import State
from tests.unit.app.given import node, quota
from tests.unit.app.situations import cpus
from tests.unit.app.test_page import Parsed


def swf_line(number, submit, run, processors=1, user=1, wait=0, limit=-1):
    return f"{number} {submit} {wait} {run} {processors} -1 -1 {processors} {limit} -1 1 {user} 3 -1 4 5 -1 -1"


@pytest.fixture
def play(tmp_path):
    """Plays a log (text, by the end of its name) with policies (objects and settings by name).

    It returns status and output.
    """

    def run(text, *options, policies=None, settings=None, end=".swf"):
        log = tmp_path / f"log{end}"
        log.write_text(text if isinstance(text, str) else "\n".join(text) + "\n")
        for name, items in (policies or {}).items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "all.yaml").write_text(yaml.safe_dump_all(items))
            if name in (settings or {}):
                (tmp_path / name / "settings.yaml").write_text(yaml.safe_dump(settings[name]))
            options += ("--policy", str(tmp_path / name))
        done = CliRunner().invoke(app, ["replay", str(log), *options])
        return done.exit_code, done.output

    return run


def document(play, *arguments, **rest):
    status, text = play(*arguments, "-o", "json", **rest)
    assert status == 0, text
    return json.loads(text)


# Reading


def test_a_log_of_swf_tells_jobs_teams_and_nodes():
    log = swf.read(
        ["; MaxNodes: 4 nodes\n", "; MaxProcs: 8\n", swf_line(7, 5, 60, 3, user=2, wait=9, limit=90), "\n"], "user", 1
    )
    [job] = log.jobs
    assert (log.nodes, log.cores, job.team, job.submitted, job.run, job.waited) == (4, 8, "u2", 5.0, 60.0, 9.0)
    assert job.limit == 90
    assert (job.pods, job.request) == (3, {"cpu": 1000, "pods": 1})


@pytest.mark.parametrize(
    ("processors", "cores", "pods", "cpu"), [(5, 1, 5, 1000), (5, 2, 3, 2000), (8, 4, 2, 4000), (1, 4, 1, 1000)]
)
def test_a_pod_takes_so_many_processors(processors, cores, pods, cpu):
    [job] = swf.read([swf_line(1, 0, 60, processors)], "user", cores).jobs
    assert (job.pods, job.request["cpu"]) == (pods, cpu)


@pytest.mark.parametrize(("team", "name"), [("user", "u1"), ("group", "g3"), ("queue", "q4"), ("partition", "p5")])
def test_teams_are_what_a_field_says(team, name):
    assert swf.read([swf_line(1, 0, 60)], team, 1).jobs[0].team == name


@pytest.mark.parametrize("line", ["1 2 3", "1 x" + " 1" * 16, "1 nan" + " 1" * 16, "1 1e99" + " 1" * 16])
def test_a_line_that_cannot_be_read_is_named_and_the_others_are_read(line):
    log = swf.read([line, swf_line(1, 0, 60)], "user", 1)
    assert (len(log.jobs), log.wrong, log.problems[0].partition(":")[0]) == (1, 1, "line 1")


@pytest.mark.parametrize("line", [swf_line(1, 0, -1), swf_line(1, 0, 60, processors=-1)])
def test_a_job_that_did_not_run_is_counted(line):
    assert swf.read([line], "user", 1).without_run == 1


def test_a_csv_is_read_by_the_names_of_its_columns():
    lines = ["id,team,submit,run,pods,cpu,gpu,priority,wait", "a,x,2026-11-01T00:00:10,1:00,2,500m,1,7,30"]
    [job] = tables.read_csv(lines, {}, "").jobs
    assert (job.name, job.team, job.run, job.pods, job.priority, job.waited) == ("a-2", "x", 60.0, 2, 7, 30.0)
    assert job.request == {"cpu": 500, "nvidia.com/gpu": 1, "pods": 1}


def test_columns_of_a_csv_may_have_other_names():
    lines = ["who,from,begun,done,gpus", "x,0,10,70,4"]
    columns = {"submit": "from", "start": "begun", "end": "done", "example.com/npu": "gpus"}
    [job] = tables.read_csv(lines, columns, "who").jobs
    assert (job.team, job.waited, job.run, job.request["example.com/npu"]) == ("x", 10.0, 60.0, 4)


@pytest.mark.parametrize(
    ("head", "columns", "said"),
    [
        ("submit", {}, "no column is run (nor are start and end)"),
        ("run", {}, "no column is submit"),
        ("submit,run", {"cpu": "cores"}, "no column 'cores' for cpu"),
    ],
)
def test_a_column_that_is_missing_is_named(head, columns, said):
    with pytest.raises(CannotRead, match="--column"):
        tables.read_csv([head, "1,2"], columns, "")
    with pytest.raises(CannotRead) as refused:
        tables.read_csv([head, "1,2"], columns, "")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("row", "field"),
    [("x,60,1,1", "submit"), ("0,-5,1,1", "run"), ("0,60,0,1", "pods"), ("0,60,1,x", ""), ("0,60,1,-1", "")],
)
def test_a_row_that_cannot_be_read_names_the_field(row, field):
    log = tables.read_csv(["submit,run,pods,cpu", row], {}, "")
    assert (log.jobs, log.wrong) == ([], 1)
    assert log.problems[0].startswith(f"line 2: {field}")


SACCT = "JobID|User|Account|Submit|Start|End|NNodes|AllocTRES|State"


def test_what_sacct_prints_is_read():
    lines = [
        SACCT,
        "7|ann|x|2026-11-01T00:00:00|2026-11-01T00:01:00|2026-11-01T01:01:00|2|cpu=8,mem=16G,node=2,gres/gpu=4|COMPLETED",
        "7.batch|ann|x|2026-11-01T00:00:00|2026-11-01T00:01:00|2026-11-01T01:01:00|1|cpu=4|COMPLETED",
        "8|ann|x|2026-11-01T00:00:00|Unknown|2026-11-01T00:00:05|1||CANCELLED",
    ]
    log = tables.read_sacct(lines, "")
    [job] = log.jobs
    assert (job.team, job.pods, job.waited, job.run, log.without_run) == ("x", 2, 60.0, 3600.0, 1)
    assert job.request == {"cpu": 4000, "memory": 8 * 2**30, "nvidia.com/gpu": 2, "pods": 1}
    assert tables.read_sacct(lines, "User").jobs[0].team == "ann"


def test_a_table_of_something_else_is_said_to_be_none_of_sacct():
    with pytest.raises(CannotRead, match="JobID"):
        tables.read_sacct(["a|b", "1|2"], "")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1:30", 90), ("1:00:00", 3600), ("2-00:00:01", 172_801), ("0:00.5", 0.5)]
)
def test_durations_are_those_of_slurm_or_seconds(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(("text", "seconds"), [("5", 5), ("1970-01-01T00:01:00", 60), ("1970-01-01T01:00:00+01:00", 0)])
def test_times_are_seconds_or_dates(text, seconds):
    assert time(text) == seconds


def test_no_recorded_priority_is_one_of_the_system():
    lines = ["submit,run,priority", "0,60,4294901760", "0,60,5"]
    assert [job.priority for job in tables.read_csv(lines, {}, "").jobs] == [1_000_000_000, 5]


# Playing

QUOTAS = [quota("u1", min={"cpu": 1}), quota("u2", min={"cpu": 1})]
STATIC = [quota("u1", min={"cpu": 1}, max={"cpu": 1}), quota("u2", min={"cpu": 1}, max={"cpu": 1})]
TWO = ("--nodes", "2x1")


def test_jobs_wait_for_room_and_the_figures_add_up(play):
    told = document(play, [swf_line(1, 0, 100, 2), swf_line(2, 10, 50, 1), swf_line(3, 20, 50, 2)], *TWO)
    [policy] = told["policies"]
    assert (policy["policy"], policy["jobs"], policy["never_started"], policy["evictions"]) == ("none", 3, 0, 0)
    waits = policy["waits"]
    assert (waits["mean"], waits["p50"], waits["max"]) == (pytest.approx((0 + 90 + 130) / 3, abs=0.01), 90, 130)
    assert waits["slowdown"] == pytest.approx((1 + 140 / 50 + 180 / 50) / 3, abs=0.001)
    [team] = policy["teams"]
    assert team["used"] == pytest.approx((200 + 50 + 100) / 3600, abs=0.001)


@pytest.mark.parametrize(("jobs", "late", "early"), [("whole", 59, 120), ("gangs", 239, 60)])
def test_teams_take_turns_unless_each_pod_waits_for_the_scheduler(play, jobs, late, early):
    log = [swf_line(number, 0, 60) for number in range(8)] + [swf_line(number, 1, 60, user=2) for number in (8, 9)]
    teams = document(play, log, "--nodes", "1x2", "--jobs", jobs)["policies"][0]["teams"]
    waits = {team["team"]: team["waits"] for team in teams}
    assert waits["u2"]["p50"] == late
    assert waits["u1"]["p50"] == early


def test_the_recorded_waits_are_told_first(play):
    lines = [swf_line(1, 0, 100, wait=5), swf_line(2, 0, 100, wait=15), swf_line(3, 0, 100, wait=-1)]
    assert document(play, lines, *TWO)["recorded"]["mean"] == 10
    assert play(lines, *TWO)[1].splitlines()[1].startswith("(as recorded)")


LENT = [swf_line(1, 0, 1000, 2, user=1), swf_line(2, 100, 100, 1, user=2)]


def test_policies_are_compared(play):
    told = document(play, LENT, *TWO, policies={"static": STATIC, "elastic": QUOTAS})
    static, elastic = told["policies"]
    assert (static["never_started"], elastic["never_started"]) == (1, 0)
    assert (static["evictions"], elastic["evictions"]) == (0, 1)


@pytest.mark.parametrize(("evicted", "lost"), [("requeue", 200 / 3600), ("resume", 0)])
def test_what_is_taken_back_comes_back_and_what_is_lost_is_counted(play, evicted, lost):
    [policy] = document(play, LENT, *TWO, "--evicted", evicted, policies={"elastic": QUOTAS})["policies"]
    first, second = policy["teams"]
    assert (first["evictions"], first["never_started"], second["waits"]["max"]) == (1, 0, 1)
    assert first["lost"] == pytest.approx(lost, abs=0.001)
    assert first["used"] == pytest.approx(2000 / 3600 + lost, abs=0.001)
    assert (first["deserved"], second["deserved"]) == (1, 1)


@pytest.mark.parametrize(("evicted", "wait"), [("requeue", 1051), ("resume", 950)])
def test_a_job_that_resumes_runs_for_the_rest_of_its_time(play, evicted, wait):
    lines = [*LENT, swf_line(3, 150, 10, 2, user=3)]
    [policy] = document(play, lines, *TWO, "--evicted", evicted, policies={"elastic": QUOTAS})["policies"]
    assert policy["teams"][2]["waits"]["max"] == wait


@pytest.mark.parametrize(
    ("reclaim", "wait", "evictions"),
    [({"delay": 0}, 0, 1), ({}, 1, 1), ({"notice": 20}, 21, 1), ({"delay": 900}, 900, 0)],
)
def test_borrowers_go_as_late_as_the_settings_of_a_policy_say(play, reclaim, wait, evictions):
    settings = {"elastic": {"reclaim": reclaim}}
    [policy] = document(play, LENT, *TWO, policies={"elastic": QUOTAS}, settings=settings)["policies"]
    first, second = policy["teams"]
    assert (first["evictions"], second["waits"]["max"]) == (evictions, wait)


def test_a_job_that_is_taken_back_starts_again_at_once_where_it_fits(play):
    lines = [
        swf_line(1, 0, 1000, 2, user=1),
        swf_line(2, 10, 50, 1, user=1),  # is taken back at 21, and fits again beside the owner's job
        swf_line(3, 20, 5000, 2, user=2),
        swf_line(4, 80, 10, 1, user=1),  # has the place after it
    ]
    quotas = [quota("u1", min={"cpu": 1}), quota("u2", min={"cpu": 2})]
    [policy] = document(play, lines, "--nodes", "1x3", policies={"p": quotas})["policies"]
    first, second = policy["teams"]
    assert (first["evictions"], first["waits"]["max"], second["waits"]["max"]) == (2, 0, 1)


def test_nodes_of_a_policy_count_and_else_those_of_the_log(play):
    head = ["; MaxNodes: 1", "; MaxProcs: 1"]
    small = document(play, [*head, swf_line(1, 0, 10, 2)])
    assert small["policies"][0]["never_started"] == 1
    large = {"large": [node("n1", **cpus(2))]}
    assert document(play, [*head, swf_line(1, 0, 10, 2)], policies=large)["policies"][0]["never_started"] == 0


def test_a_window_has_what_was_recorded_to_run_at_its_begin(play):
    lines = [swf_line(1, 0, 100, 2), swf_line(2, 50, 10, 2), swf_line(3, 500, 10, 2)]
    [policy] = document(play, lines, *TWO, "--from", "40", "--to", "100")["policies"]
    assert (policy["jobs"], policy["waits"]["max"]) == (2, 50)
    assert play(lines, *TWO, "--from", "9999")[0] == 2


def test_runs_differ_by_some_seconds_and_each_is_always_the_same(play):
    lines = [swf_line(number, number, 30, 2) for number in range(5)]
    told = [document(play, lines, *TWO, "--runs", "3") for _ in range(2)]
    assert told[0] == told[1]
    least, most = told[0]["policies"][0]["spread"]
    assert least < most


def test_a_replay_that_is_stopped_says_so_and_fails(play):
    status, text = play([swf_line(1, 0, 10), swf_line(2, 99, 10)], *TWO, "--time-limit", "0")
    assert status == 1
    assert "none: stopped, 1 of 2 jobs had not come" in text.splitlines()


def test_the_summary_can_be_had_as_csv(play):
    _, text = play(LENT, *TWO, "-o", "csv", policies={"elastic": QUOTAS})
    lines = text.splitlines()
    assert lines[0].startswith("policy,team,jobs,never_started,evictions")
    assert [line.split(",")[:3] for line in lines[1:]] == [["elastic", "u1", "1"], ["elastic", "u2", "1"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nodes", "many"], "--nodes: 'many' is not like 120x2"),
        (["--nodes", "2xbig"], "--nodes: '2xbig'"),
        (["--nodes", "2x-1"], "--nodes: '2x-1'"),
        (["--nodes", "999999999x1"], "--nodes: '999999999x1'"),
        (["--format", "xml"], "--format: 'xml' must be one of swf, csv, sacct"),
        (["--evicted", "gone"], "--evicted: 'gone' must be one of requeue, resume"),
        (["--jobs", "pods"], "--jobs: 'pods' must be one of whole, gangs"),
        (["--run-times", "said"], "--run-times: 'said' must be one of ignored, enforced"),
        (["--team", "nobody"], "--team: 'nobody' must be one of user, group, queue, partition"),
        (["--column", "submit"], "--column: 'submit' must be NAME=COLUMN"),
        ([], "--nodes: neither a policy nor the log has nodes"),
    ],
)
def test_a_wrong_option_is_named(play, options, said):
    status, text = play([swf_line(1, 0, 10)], *options)
    assert (status, text.startswith(said)) == (2, True), text


def test_objects_other_than_jobs_may_be_in_a_policy(play):
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "u1"}}, node("n1", **cpus(1))]
    assert document(play, [swf_line(1, 0, 10)], policies={"p": namespaces})["policies"][0]["never_started"] == 0


# Run times, and nodes that are reserved

GANGS = ("--jobs", "gangs", "--run-times", "enforced")
RESERVE = {"reserve": {"starvingAfter": 60}}
ALL_NODES = {"reserve": {"starvingAfter": 60, "maxNodesPercent": 100}}
KEEPING_ALL_OUT = {"reserve": {"starvingAfter": 60, "backfillMargin": 1_000_000}}


def csv_of(*rows):
    return "\n".join(["id,team,submit,run,limit,pods,cpu", *rows, ""])


def waits_by_team(policy):
    return {team["team"]: team["waits"]["max"] for team in policy["teams"]}


@pytest.mark.parametrize(("mode", "used"), [("ignored", 100), ("enforced", 60)])
def test_a_run_time_that_is_enforced_ends_a_job(play, mode, used):
    told = document(play, csv_of("a,x,0,100,60,1,1"), "--nodes", "1x1", "--run-times", mode, end=".csv")
    assert told["policies"][0]["teams"][0]["used"] == pytest.approx(used / 3600, abs=0.001)


def test_a_limit_of_a_queue_holds_for_the_run_times_that_users_said(play):
    limited = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "short", "annotations": {"quotaward.dev/max-run-time": "1m"}},
    }
    rows = csv_of("a,x,0,10,60,1,1,short", "b,y,0,10,61,1,1,short", "c,z,0,10,,1,1,short")
    rows = rows.replace("cpu\n", "cpu,queue\n")
    options = ("--nodes", "1x9", "--run-times", "enforced")
    told = document(play, rows, *options, policies={"limited": [limited]}, end=".csv")
    assert waits_by_team(told["policies"][0]) == {"x": 0, "y": None, "z": None}


def test_jobs_that_are_gangs_start_whole_and_come_back_whole(play):
    whole, gangs = (
        document(play, LENT, *TWO, "--jobs", jobs, policies={f"elastic-{jobs}": QUOTAS})["policies"][0]
        for jobs in ("whole", "gangs")
    )
    assert gangs["evictions"] == 1
    assert whole["teams"] == gangs["teams"]


# The example of docs/time.md: one node of 8 cores, a job that needs all of it, and others that come later.
STARVING = csv_of(
    "r1,r1,0,3600,3600,1,4",
    "r2,r2,0,1800,1800,1,2",
    "big,big,1,600,600,1,8",
    "s1,s1,10,3000,3000,1,2",
    "s2,s2,1860,1680,1680,1,2",
    "s3,s3,1860,1780,1780,1,2",
    "s4,s4,1860,60,,1,2",
)


def test_who_is_gone_before_a_promised_start_runs_on_reserved_nodes_meanwhile(play):
    settings = {"backfill": RESERVE, "reservations": KEEPING_ALL_OUT}
    policies = {name: [node("n1", **cpus(8))] for name in settings}
    told = document(play, STARVING, *GANGS, policies=policies, settings=settings, end=".csv")
    backfill, reservations = told["policies"]
    assert backfill["promises"] == {"kept": 2, "moved": 0, "lost": 0}  # s3 and s4 starve, too, behind big
    later = {"s3": 4200 - 1860, "s4": 4200 - 1860}
    assert waits_by_team(backfill) == {"r1": 0, "r2": 0, "big": 3599, "s1": 0, "s2": 0, **later}
    assert waits_by_team(reservations) == waits_by_team(backfill) | {"s2": 4200 - 1860}


def test_nothing_is_promised_as_long_as_an_end_is_not_known(play):
    policies = {"backfill": [node("n1", **cpus(8))]}
    rows = STARVING.replace("r1,r1,0,3600,3600", "r1,r1,0,3600,")
    told = document(play, rows, *GANGS, policies=policies, settings={"backfill": RESERVE}, end=".csv")
    assert waits_by_team(told["policies"][0])["s2"] == 4200 - 1860


def test_what_became_of_promises_is_told_below_the_table(play):
    policies = {"backfill": [node("n1", **cpus(8))]}
    _, text = play(STARVING, *GANGS, policies=policies, settings={"backfill": RESERVE}, end=".csv")
    assert "backfill: promised starts: 2 kept, 0 moved, 0 lost" in text.splitlines()


def test_a_job_starves_though_nothing_else_happens_at_that_time(play):
    """Two nodes free up one after the other; small jobs would take the first as soon as it is free."""
    rows = csv_of("a,x,0,1000,,1,1", "b,x,0,2000,,1,1", "big,y,1,100,,2,1", "c,z,50,50,,1,1")
    policies = {"reservations": [node(name, **cpus(1)) for name in ("n1", "n2")]}
    told = document(play, rows, *GANGS, policies=policies, settings={"reservations": ALL_NODES}, end=".csv")
    assert waits_by_team(told["policies"][0]) == {"x": 0, "y": 1999, "z": 2050}


def test_what_a_gang_claims_in_vain_is_lent_after_half_a_minute(play):
    rows = csv_of("other,other,0,1000,,1,1", "gang,a,1,10,,3,1", "borrower,b,2,10,,1,1")
    policies = {"elastic": [quota("a", min={"cpu": 3}), quota("b", min={"cpu": 0})]}
    told = document(play, rows, "--nodes", "3x1", "--jobs", "gangs", policies=policies, end=".csv")
    assert waits_by_team(told["policies"][0]) == {"other": 0, "a": 999, "b": 31}


def test_settings_of_a_policy_that_are_wrong_are_named(play):
    wrong = {"p": {"reserve": {"starvingAfter": -1}}}
    status, text = play([swf_line(1, 0, 10)], policies={"p": [node("n1", **cpus(1))]}, settings=wrong)
    assert (status, "reserve.starvingAfter" in text) == (2, True), text


@pytest.mark.parametrize(("said", "limit"), [("01:00:00", 3600), ("UNLIMITED", 0), ("", 0)])
def test_time_limits_of_sacct_are_run_times(said, limit):
    lines = [f"{SACCT}|Timelimit", f"7|ann|x|0|0|60|1|cpu=1|COMPLETED|{said}"]
    assert tables.read_sacct(lines, "").jobs[0].limit == limit


# The report


@pytest.fixture
def report_of(play, tmp_path):
    """Plays a log, and returns the report that was written."""

    def run(*arguments, **rest):
        status, text = play(*arguments, "--report", str(tmp_path / "report.html"), **rest)
        assert status == 0, text
        return (tmp_path / "report.html").read_text()

    return run


def test_the_report_has_what_is_printed_and_needs_no_other_file(report_of):
    policies = {"backfill": [node("n1", **cpus(8))], "none": [node("n1", **cpus(8))]}
    html = report_of(STARVING, *GANGS, policies=policies, settings={"backfill": RESERVE}, end=".csv")
    parsed = Parsed(html)
    assert [each for each in ("<script", "src=", "href=", "url(", "@import") if each in html] == []
    assert "promised starts: 2 kept, 0 moved, 0 lost" in parsed.text
    assert [title in parsed.text for title in ("Used cpu", "Waiting jobs", "TEAM (backfill)", "BIG JOBS")] == [True] * 4
    assert html.count("<svg") == 4


def test_names_in_a_report_are_text(report_of):
    html = report_of(csv_of("a,<b>x</b>,0,10,,1,1"), "--nodes", "1x1", end=".csv")
    assert "&lt;b&gt;x" in html
    assert "<b>x" not in html


def test_the_course_has_the_mean_use_and_the_most_that_waited():
    states = [State(100.0, {"cpu": 1000}, 0), State(148.0, {"cpu": 3000}, 2), State(148.0, {"cpu": 3000}, 1)]
    states += [State(148.5, {"cpu": 0}, 0), State(990.0, {"cpu": 9000}, 9)]
    played = Played("p", [], {}, {"cpu": 4000}, {}, length=240.0, begin=100.0, states=states)
    drawn = course(played, "cpu")
    assert drawn.used == (1000,) * 48 + (1500,) + (0,) * 191
    assert drawn.waiting == (0,) * 48 + (1,) + (0,) * 191


def test_jobs_that_are_taken_back_wait_again(play, monkeypatch):
    seen = []
    monkeypatch.setattr("app.cli_replay.course", lambda played, resource: seen.extend(played.states))
    play(LENT, *TWO, policies={"elastic": QUOTAS})
    assert {state.at: state.waiting for state in seen} == {0: 0, 100: 1, 101: 1, 201: 0, 1000: 0, 1201: 0}
