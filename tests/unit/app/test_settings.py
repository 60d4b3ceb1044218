"""Where a setting comes from, and what is said of one that cannot be used."""

import functools
import os
from math import inf
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from app.settings import CONTROLLERS, InvalidSettings, Settings, load, unknown_variables

# for each setting: its value in the file, in the environment, and on the command line
VALUES = {
    "manifests": ("/file", "/environment", "/flag"),
    "kubeconfig": ("/file", "/environment", "/flag"),
    "listen": ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"),
    "secure_listen": ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"),
    "tls_cert": ("/file", "/environment", "/flag"),
    "tls_key": ("/file", "/environment", "/flag"),
    "client_ca": ("/file", "/environment", "/flag"),
    "probe_listen": ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"),
    "insecure": (True, False, True),
    "controllers": ("none", "wake", "all"),
    "mode": ("observe", "enforce", "observe"),
    "elastic_quota.strict_borrowing": (True, False, True),
    "grants.lifetime": (1.0, 2.0, 3.0),
    "exempt.namespaces": ("file", "environment,other", "flag"),
    "store.max_staleness": (1.0, 2.0, 3.0),
    "store.settle_time": (1.0, 2.0, 3.0),
    "extender.body_limit": (1, 2, 3),
    "reclaim.delay": (1.0, 2.0, 3.0),
    "reclaim.bind_timeout": (1.0, 2.0, 3.0),
    "reclaim.backoff": (1.0, 2.0, 3.0),
    "reclaim.clean_up_broken_gangs": (False, True, False),
    "reclaim.broken_gang_grace": (1.0, 2.0, 3.0),
    "reclaim.fail_jobs": ("never", "last", "never"),
    "reclaim.stuck_after": (1.0, 2.0, 3.0),
    "reclaim.budget_patience": (1.0, 2.0, 3.0),
    "reclaim.max_grace": (1, 2, 3),
    "overdue.after": (1.0, 2.0, 3.0),
    "claims.patience": (1.0, 2.0, 3.0),
    "fair_share.preemption": (True, False, True),
    "gangs.enabled": (False, True, False),
    "gangs.hold_time": (1.0, 2.0, 3.0),
    "gates.lookahead": (1.0, 2.0, 3.0),
    "gates.patience": (1.0, 2.0, 3.0),
    "jobs.start_patience": (5.0, 6.0, 7.0),
    "jobs.kinds": ("JobSet", "RayJob", "JobSet,RayJob"),
    "gates.concurrency": (1, 2, 3),
    "jobs.concurrency": (4, 2, 3),
    "groups.legacy": ("on", "off", "auto"),
    "quota_manager.enabled": (True, False, True),
    "reserve.starving_after": (1.0, 2.0, 3.0),
    "reserve.max_nodes_percent": (1, 2, 3),
    "reserve.max_duration": (1.0, 2.0, 3.0),
    "reserve.evict": (True, False, True),
    "reserve.whole_nodes": (True, False, True),
    "reserve.max_jobs": (3, 1, 3),
    "reserve.ahead": (3, 1, 10),
    "reserve.backfill_margin": (60, 30, 60),
    "prioritize.borrowers_apart": (1, 2, 3),
    "preemption.pdb": ("respect", "best-effort", "respect"),
    "crds.missing": ("release", "refuse", "release"),
    "whatif.time_limit": (1.0, 2.0, 3.0),
    "expected.interval": (5.0, 20.0, 30.0),
    "reclaim.notice": (5.0, 20.0, 30.0),
    "run_time.estimate": ("never", "median", "never"),
    "run_time.evict": (True, False, True),
    "run_time.grace": (5.0, 20.0, 30.0),
    "whatif.remedy_time": (1.0, 2.0, 3.0),
    "whatif.body_limit": (1, 2, 3),
    "gates.body_limit": (1, 2, 3),
    "history.prometheus": ("http://file", "https://environment:9090", "http://flag/prometheus"),
    "leader.namespace": ("file", "environment", "flag"),
    "leader.name": ("file", "environment", "flag"),
    "leader.lease_duration": (3.0, 4.0, 5.0),
    "leader.only_leader_answers": (True, False, True),
    "log.level": ("debug", "warning", "error"),
    "log.format": ("json", "console", "json"),
}


@pytest.fixture(autouse=True)
def _no_settings_of_whoever_runs_this(monkeypatch):
    for name in list(os.environ):
        if name.startswith("QUOTAWARD_"):
            monkeypatch.delenv(name)


@pytest.fixture
def config(tmp_path):
    """Writes a configuration file; the arguments that name it."""

    def write(content):
        file = tmp_path / "quotaward.yaml"
        file.write_bytes(content if isinstance(content, bytes) else yaml.safe_dump(content).encode())
        return ["--config", str(file)]

    return write


@pytest.fixture
def environment(monkeypatch):
    def put(setting, value):
        monkeypatch.setenv(variable(setting), str(value))

    return put


def put_into(content, setting, value):
    """Add a setting to the content of a file: nested, and in camel case."""
    *sections, last = map(to_camel, setting.split("."))
    for section in sections:
        content = content.setdefault(section, {})
    content[last] = value


def variable(setting):
    return f"QUOTAWARD_{setting.replace('.', '__').upper()}"


def flag(setting, value):
    name = setting.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", str(value)]


def value_of(settings, setting):
    for part in setting.split("."):
        settings = getattr(settings, part)
    return str(settings) if isinstance(settings, Path) else settings


def leaves(model, prefix=""):
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from leaves(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def test_the_table_above_has_every_setting():
    elsewhere = {"config", "jobs.own_kinds", "devices.classes"}  # of lists: test_job_kinds.py, test_device_objects.py
    assert set(leaves(Settings)) - elsewhere == set(VALUES)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Loads settings that are all in the file; that are in the environment, too; and that are flags, too."""

    @functools.cache
    def load_all(without):
        values = {setting: each for setting, each in VALUES.items() if setting != without}
        content = {}
        for setting, (in_file, _, _) in values.items():
            put_into(content, setting, in_file)
        file = tmp_path_factory.mktemp("settings") / "quotaward.yaml"
        file.write_text(yaml.safe_dump(content))
        arguments = ["--config", str(file)]
        with pytest.MonkeyPatch.context() as patched:
            from_file = load(arguments)
            for setting, (_, in_environment, _) in values.items():
                patched.setenv(variable(setting), str(in_environment))
            from_environment = load(arguments)
            flags = [each for setting, (_, _, in_flag) in values.items() for each in flag(setting, in_flag)]
            return from_file, from_environment, load([*arguments, *flags])

    return load_all


@pytest.mark.parametrize("setting", VALUES)
def test_a_flag_wins_over_the_environment_and_that_over_the_file(setting, loaded):
    found = loaded(without="manifests" if setting == "kubeconfig" else "kubeconfig")  # they exclude each other
    assert tuple(value_of(each, setting) for each in found) == VALUES[setting]


def test_one_setting_of_a_section_leaves_the_others_where_they_come_from(config, environment):
    arguments = config({"store": {"maxStaleness": 5, "settleTime": 6}})
    environment("store.settle_time", 7)
    settings = load([*arguments, "--grants.lifetime", "8"])
    assert (settings.store.max_staleness, settings.store.settle_time, settings.grants.lifetime) == (5, 7, 8)


def test_a_flag_can_take_back_what_the_environment_waives(environment):
    environment("insecure", "true")
    environment("listen", "0.0.0.0:8080")
    assert load([]).insecure
    with pytest.raises(InvalidSettings, match="insecure"):
        load(["--no-insecure"])


def test_the_environment_may_name_the_file(config, environment):
    _, file = config({"mode": "observe"})
    environment("config", file)
    assert load([]).mode == "observe"


def test_an_empty_file_changes_nothing(config):
    assert load(config(b"# nothing yet\n")).model_dump(exclude={"config"}) == load([]).model_dump(exclude={"config"})


@pytest.mark.parametrize(
    ("arguments", "namespaces"),
    [([], {"kube-system", "quotaward-system"}), (["a,b"], {"a", "b"}), ([""], set())],
    ids=["by default", "two", "none"],
)
def test_in_which_namespaces_critical_pods_are_exempt(arguments, namespaces):
    settings = load([f"--exempt.namespaces={value}" for value in arguments])
    assert settings.rules.exempt_namespaces == namespaces


@pytest.mark.parametrize(("longest", "ahead"), [([], 86_400), (["60"], 60), (["1000000"], 86_400)])
def test_a_start_is_promised_no_further_ahead_than_nodes_stay_reserved(longest, ahead):
    assert load([f"--reserve.max-duration={value}" for value in longest]).rules.promise_ahead == ahead


@pytest.mark.parametrize(
    ("arguments", "grace"),
    [
        ([], inf),
        (["--run-time.grace", "9"], inf),
        (["--run-time.evict"], 60),
        (["--run-time.evict", "--run-time.grace", "9"], 9),
        (["--run-time.evict", "--controllers", "reserve"], inf),
        (["--run-time.evict", "--mode", "observe"], inf),
    ],
    ids=str,
)
def test_run_times_are_enforced_only_where_somebody_evicts(arguments, grace):
    assert load(arguments).rules.run_time_grace == grace


def test_nothing_need_be_set():
    settings = load([])
    assert settings.address == ("127.0.0.1", 8080)
    assert settings.active_controllers == CONTROLLERS


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ({"grants": {"lifetime": 0}}, "grants.lifetime"),
        ({"grants": {"lifetime": "long"}}, "grants.lifetime"),
        ({"grants": {"lifetime": float("nan")}}, "grants.lifetime"),
        ({"grants": 5}, "grants"),
        ({"grants": None}, "grants"),
        ({"store": {"maxStaleness": -1}}, "store.maxStaleness"),
        ({"store": {"settleTime": -0.1}}, "store.settleTime"),
        ({"extender": {"bodyLimit": 1.5}}, "extender.bodyLimit"),
        ({"elasticQuota": {"strictBorrowing": "perhaps"}}, "elasticQuota.strictBorrowing"),
        ({"log": {"level": "loud"}}, "log.level"),
        ({"mode": "dry-run"}, "mode"),
        ({"controllers": "wake,reclaim-all"}, "controllers"),
        ({"listen": 8080}, "listen"),
        ({"listen": "127.0.0.1"}, "listen"),
        ({"listen": ":8080"}, "listen"),
        ({"listen": "127.0.0.1:65536"}, "listen"),
        ({"listen": "[::1]"}, "listen"),
        ({"listen": "127.0.0.1:\N{SUPERSCRIPT TWO}"}, "listen"),
        ({"probeListen": "everywhere"}, "probeListen"),
        ({"quotas": True}, "quotas"),
        ({"store": {"stale": 1}}, "store.stale"),
        ({5: 6}, "5"),
    ],
)
def test_what_is_wrong_in_the_file_is_named_by_its_key(config, content, key):
    with pytest.raises(InvalidSettings) as refused:
        load(config(content))
    assert str(refused.value).startswith(f"{key}: ")
    assert "\n" not in str(refused.value)


def test_everything_that_is_wrong_is_said_at_once(config):
    with pytest.raises(InvalidSettings) as refused:
        load(config({"mode": "dry-run", "nonsense": 1, "grants": {"lifetime": -1}}))
    assert {line.partition(":")[0] for line in str(refused.value).splitlines()} == {
        "mode",
        "nonsense",
        "grants.lifetime",
    }


@pytest.mark.parametrize(
    ("setting", "value", "key"),
    [
        ("grants.lifetime", "soon", "grants.lifetime"),
        ("grants.patience", "1", "grants.patience"),
        ("log.level", "loud", "log.level"),
        ("reserve.ahead", "11", "reserve.ahead"),
        ("insecure", "perhaps", "insecure"),
        ("exempt.namespaces", "kube-system, other", "exempt.namespaces"),
        ("exempt.namespaces", "kube-system,,other", "exempt.namespaces"),
        ("exempt.namespaces", "Kube-System", "exempt.namespaces"),
        pytest.param("grants", "lifetime=30", "grants"),
    ],
)
def test_what_is_wrong_in_the_environment_is_named_by_its_key(environment, setting, value, key):
    environment(setting, value)
    with pytest.raises(InvalidSettings, match=rf"^{key}: "):
        load([])


def test_what_one_command_line_says_is_not_heard_at_the_next():
    assert load(["--mode", "observe"]).observes
    assert not load([]).observes


@pytest.mark.parametrize("arguments", [["--nonsense"], ["nonsense"], ["--grants.patience", "1"], ["--config"]])
def test_an_unknown_or_unfinished_flag_ends_the_program(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        load(arguments)
    assert arguments[0] in capsys.readouterr().err


def test_a_flag_is_not_guessed_from_its_beginning(config):
    _, file = config({})
    with pytest.raises(SystemExit, match="2"):
        load(["--conf", file])


def test_help_lists_every_setting(capsys):
    with pytest.raises(SystemExit, match="0"):
        load(["--help"])
    text = capsys.readouterr().out
    for setting in (*VALUES, "config"):
        assert f"--{setting.replace('_', '-')} " in text or f"--{setting.replace('_', '-')}," in text


@pytest.mark.parametrize(
    "content",
    [
        b"grants: [",
        b"\xff\xfe\x00",
        b"mode: \x00",
        b"- mode",
        b"observe",
        b"? [mode]\n: observe",
        pytest.param(b"grants: {lifetime: 2026-13-45}"),
        pytest.param(b"[" * 1000),
        pytest.param(b"listen: !!bool maybe"),
        pytest.param(b"listen: !!timestamp noon"),
    ],
)
def test_a_malformed_file_is_named(config, content):
    _, file = arguments = config(content)
    with pytest.raises(InvalidSettings) as refused:
        load(arguments)
    assert str(refused.value).startswith(f"config: {file} ")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for unreadable in (tmp_path, tmp_path / "missing.yaml"):
        with pytest.raises(InvalidSettings) as refused:
            load([f"--config={unreadable}"])
        assert str(refused.value).startswith(f"config: {unreadable} cannot be read: ")


@pytest.mark.parametrize("address", ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "localhost:80"])
def test_loopback_needs_no_waiver(address):
    assert load(["--listen", address]).listen == address


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0:80",
        "[::]:80",
        "10.1.2.3:80",
        "[fe80::1]:80",
        "[fe80::1%lo]:80",
        "quotaward.example:80",
        "localhost.example:80",
        "127.0.0.1.example:80",
        "[::ffff:10.1.2.3]:80",
        "2130706433:80",
    ],
)
def test_elsewhere_insecure_has_to_be_said(address):
    with pytest.raises(InvalidSettings, match="insecure") as refused:
        load(["--listen", address])
    assert f"listen: {address} " in str(refused.value)
    assert load(["--listen", address, "--insecure"]).listen == address


TLS = ["--tls-cert", "c", "--tls-key", "k"]


@pytest.mark.parametrize(
    ("arguments", "plain", "tls"),
    [
        ([], "127.0.0.1:8080", None),
        (["--listen", "0.0.0.0:1", *TLS], None, "0.0.0.0:1"),
        (["--listen", "127.0.0.1:1", *TLS], None, "127.0.0.1:1"),
        (["--secure-listen", "0.0.0.0:2", *TLS], "127.0.0.1:8080", "0.0.0.0:2"),
        (["--listen", "0.0.0.0:1", "--insecure", "--secure-listen", "0.0.0.0:2", *TLS], "0.0.0.0:1", "0.0.0.0:2"),
    ],
)
def test_where_it_listens_with_and_without_tls(arguments, plain, tls):
    settings = load(arguments)
    assert (settings.plain_listen, settings.tls_listen) == (plain, tls)
    assert settings.listens_openly == (plain == "0.0.0.0:1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (TLS[:2], "need each other"),
        (["--secure-listen", "0.0.0.0:2"], "secureListen: needs tlsCert"),
        (["--client-ca", "ca"], "clientCa: needs tlsCert"),
        (["--listen", "0.0.0.0:1", "--secure-listen", "0.0.0.0:2", *TLS], "insecure"),
    ],
)
def test_what_tls_takes_is_said(arguments, said):
    with pytest.raises(InvalidSettings, match=said):
        load(arguments)


def test_an_ipv6_address_is_taken_out_of_its_brackets():
    assert load(["--listen", "[::1]:8443"]).address == ("::1", 8443)


def test_a_folder_and_a_cluster_exclude_each_other():
    with pytest.raises(InvalidSettings, match="manifests and kubeconfig exclude each other"):
        load(["--manifests", "/a", "--kubeconfig", "/b"])


@pytest.mark.parametrize(
    ("arguments", "active"),
    [
        ([], CONTROLLERS),
        (["--controllers", "all,wake"], CONTROLLERS),
        (["--controllers", "wake"], {"wake"}),
        (["--controllers", "none"], set()),
        (["--controllers", "none,wake"], set()),
        (["--mode", "observe"], set()),
        (["--mode", "observe", "--controllers", "wake"], set()),
    ],
)
def test_which_controllers_run(arguments, active):
    assert load(arguments).active_controllers == active


@pytest.mark.parametrize(
    ("variable", "closest"),
    [
        ("QUOTAWARD_LISTN", "QUOTAWARD_LISTEN"),
        ("QUOTAWARD_GRANT__LIFETIME", "QUOTAWARD_GRANTS__LIFETIME"),
        ("QUOTAWARD_GRANTS_LIFETIME", "QUOTAWARD_GRANTS__LIFETIME"),
        ("QUOTAWARD_RESERVE_EVICT", "QUOTAWARD_RESERVE__EVICT"),
        ("QUOTAWARD_LISTEN__PORT", "QUOTAWARD_LISTEN"),
        ("QUOTAWARD_PORT_8080_TCP_ADDR", ""),
        ("QUOTAWARD_SERVICE_HOST", ""),  # of a Service called quotaward
    ],
)
def test_a_variable_that_is_no_setting_is_noticed_with_what_may_be_meant(variable, closest):
    assert unknown_variables([variable, "PATH", "quotaward_listen"]) == {variable: closest}


def test_no_variable_of_a_setting_is_unknown():
    variables = [f"QUOTAWARD_{setting.replace('.', '__').upper()}" for setting in VALUES]
    assert unknown_variables([*variables, "QUOTAWARD_CONFIG", "QUOTAWARD_SERVER"]) == {}


def test_a_variable_that_is_unknown_within_a_section_is_an_error(monkeypatch):
    monkeypatch.setenv("QUOTAWARD_GRANTS__LIFETIM", "5")
    with pytest.raises(
        InvalidSettings, match=r"^grants\.lifetim: there is no such setting; there is grants\.lifetime$"
    ):
        load([])


def test_a_key_of_the_file_that_is_unknown_within_a_section_is_the_same_error(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("grants: {lifetim: 5}\n")
    with pytest.raises(
        InvalidSettings, match=r"^grants\.lifetim: there is no such setting; there is grants\.lifetime$"
    ):
        load(["--config", str(file)])
