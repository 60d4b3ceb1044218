"""Settings: each one is a flag of ``serve``, an environment variable and a key of the configuration file.

A flag wins over the environment, the environment over the file. ``grants.lifetime`` is ``--grants.lifetime`` on the
command line, ``QUOTAWARD_GRANTS__LIFETIME`` in the environment and ``grants: {lifetime: 30}`` in the file. The keys of
the file are camelCase. Times are in seconds.
"""

import argparse
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from ipaddress import ip_address
from math import inf
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    CliSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from app.job_kinds import BUILT_IN, Row, shipped
from policy.cluster.gang_holds import HOLD_TIME
from policy.cluster.gates import LOOKAHEAD
from policy.cluster.gates import PATIENCE as GATE_PATIENCE
from policy.cluster.in_flight import SETTLE_TIME
from policy.cluster.overdue import AFTER, STUCK_AFTER
from policy.cluster.pod_states import GRANT_LIFETIME
from policy.cluster.queued_jobs import START_PATIENCE
from policy.cluster.unschedulable import PATIENCE
from policy.objects import device_selector
from policy.objects.device_selector import Comparison
from policy.quota.admission import Rules
from policy.quota.exempt import NAMESPACES
from policy.reserve.preferred_nodes import HIGHEST
from policy.reserve.starving import MOST_AHEAD, Terms
from policy.simulate.delays import Delays

NO_YAML = (ValueError, yaml.YAMLError, RecursionError, LookupError, AttributeError)
"""Errors of the library for text that is not YAML, and for values that contradict their tag."""
ALIKE = 0.65
"""Similarity (0 to 1) from which on one name is suggested for another."""
OTHER_VARIABLES = frozenset({"QUOTAWARD_SERVER", "QUOTAWARD_TOKEN", "QUOTAWARD_CA"})
"""Environment variables of Quotaward that are not settings of the server."""
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
CONTROLLERS = frozenset({"events", "gates", "reclaim", "reserve", "resource_quota", "status", "wake"})


class InvalidSettings(ValueError):
    """Raised for settings that cannot be used. The text has one line for each wrong setting."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of a certificate and its key, and of the CA whose clients may ask as kube-scheduler does."""

    cert: Path
    key: Path
    client_ca: Path | None


class Section(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ElasticQuotaSettings(Section):
    """How elastic quotas are enforced."""

    strict_borrowing: bool = Field(
        default=False,
        description="apply the sum of min to every pod, even to one within its own quota's min",
    )


class GrantSettings(Section):
    """How long an admitted pod counts before it is bound."""

    lifetime: float = Field(
        default=GRANT_LIFETIME, gt=0, description="seconds for which an admitted pod counts if it is not bound"
    )


class ExemptSettings(Section):
    """Pods to which no rule applies."""

    namespaces: str = Field(
        default=",".join(sorted(NAMESPACES)),
        description="namespaces, separated by commas, whose system-critical pods are exempt from all rules",
    )

    @field_validator("namespaces")
    @classmethod
    def _are_names(cls, value: str) -> str:
        wrong = [name for name in value.split(",") if value and not _NAMESPACE.fullmatch(name)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is not a name of a namespace")
        return value


class StoreSettings(Section):
    """How fresh and complete the view of the cluster has to be."""

    max_staleness: float = Field(
        default=60, gt=0, description="seconds without contact to the API server after which filter answers 503"
    )
    settle_time: float = Field(
        default=SETTLE_TIME,
        ge=0,
        description="after a start, seconds without a binding of an earlier process until none is expected any more",
    )


class DefinitionSettings(Section):
    """The definitions (CRDs) of quotas, queues and groups."""

    missing: Literal["refuse", "release"] = Field(
        default="refuse",
        description="if a definition is deleted: its quotas, queues or groups stay in force (refuse) or end (release)",
    )


class ExtenderSettings(Section):
    """The endpoints that kube-scheduler calls."""

    body_limit: int = Field(
        default=128 * 2**20, gt=0, description="largest request of kube-scheduler that is accepted, in bytes"
    )


class ReclaimSettings(Section):
    """How lent resources are taken back."""

    delay: float = Field(
        default=1, ge=0, description="seconds for which an unschedulable pod waits before pods are evicted for it"
    )
    bind_timeout: float = Field(
        default=60,
        gt=0,
        description="seconds for a pod to be bound once its victims are gone, or for a plan to wait for a budget",
    )
    backoff: float = Field(
        default=10,
        gt=0,
        description="seconds to wait after a plan that failed; each further failure doubles it, up to 600",
    )
    clean_up_broken_gangs: bool = Field(
        default=True, description="evict the rest of a gang that reclaim brought below its minimum"
    )
    broken_gang_grace: float = Field(
        default=60, ge=0, description="seconds that such a gang has to become complete again before its rest is evicted"
    )
    fail_jobs: Literal["last", "never"] = Field(
        default="last",
        description="when to evict pods whose Job would fail: after all others, or never (their room stays lent)",
    )
    notice: float = Field(
        default=0, ge=0, description="seconds for which victims are told beforehand that they will be evicted"
    )
    stuck_after: float = Field(
        default=STUCK_AFTER,
        ge=0,
        description="seconds beyond its grace period after which a victim is stuck, and room is made elsewhere",
    )

    budget_patience: float | None = Field(
        default=None,
        ge=0,
        description="seconds for which a disruption budget that allows no eviction protects borrowers; none: for ever",
    )
    max_grace: int | None = Field(
        default=None,
        ge=0,
        description="longest grace period of an evicted pod, in seconds; none: as long as the pod specifies",
    )

    @property
    def delays(self) -> Delays:
        """These settings in the form that simulations use."""
        return Delays(self.delay, self.notice)


class RunTimeSettings(Section):
    """How long pods run: eviction of those that outlive it, and what is taken for those of which nobody says it."""

    estimate: Literal["median", "never"] = Field(
        default="median",
        description="when pods end of which nobody says it: by the median of pods like them that have ended, or never",
    )

    evict: bool = Field(
        default=False, description="evict pods that run for longer than is said of them, or than a max-run-time allows"
    )
    grace: float = Field(
        default=60, ge=0, description="seconds after the end of its run time until such a pod is evicted"
    )


class OverdueSettings(Section):
    """When pods that are being deleted on lost nodes no longer count."""

    after: float = Field(
        default=AFTER,
        ge=0,
        description="seconds beyond its deletion time after which a pod on a lost node no longer counts in its quota",
    )


class ClaimSettings(Section):
    """For which pods the room of a queue is kept."""

    patience: float = Field(
        default=PATIENCE,
        gt=0,
        description="seconds after which a pod that fits no node claims nothing, until something changes",
    )


class FairShareSettings(Section):
    """How the namespaces of a queue share its part."""

    preemption: bool = Field(
        default=False, description="let a namespace below its share take from one above its own share in the same queue"
    )


class GangSettings(Section):
    """Whether the members of a pod group start together."""

    enabled: bool = Field(default=True, description="refuse members of a pod group until its minimum can be placed")
    hold_time: float = Field(
        default=HOLD_TIME,
        gt=0,
        description="seconds for which room is held for the members of a group that is starting",
    )


class GroupSettings(Section):
    """Which API groups are read."""

    legacy: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="also read kinds of scheduling.sigs.k8s.io; auto: only a kind whose successor is not installed",
    )

    @field_validator("legacy", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        """Converts booleans back: YAML reads on and off as true and false."""
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


class GateSettings(Section):
    """How the gates of waiting pods are opened."""

    lookahead: float = Field(
        default=LOOKAHEAD,
        ge=1,
        description="for each queue, open gates for up to this many times the free room of nodes",
    )
    patience: float = Field(
        default=GATE_PATIENCE,
        gt=0,
        description="seconds after which an ungated pod that the scheduler cannot place counts only as pending",
    )
    concurrency: int = Field(default=1, ge=1, le=100, description="number of gates that are opened at the same time")
    body_limit: int = Field(
        default=4 * 2**20,
        gt=0,
        description="largest review of a pod or a Job that is accepted from the API server, in bytes",
    )


class JobSettings(Section):
    """How Jobs that wait as a whole are started."""

    start_patience: float = Field(
        default=START_PATIENCE,
        gt=0,
        description="seconds after the start of a Job for which room is kept for pods of it that have not come",
    )
    concurrency: int = Field(
        default=4, ge=1, le=100, description="number of Jobs that are started at the same time, or gates.concurrency"
    )
    kinds: str = Field(
        default="",
        description=f"other kinds whose jobs may wait as a whole, separated by commas, of {', '.join(BUILT_IN)}",
    )
    own_kinds: tuple[Row, ...] = Field(
        default=(), description="further such kinds: a list of rows, as docs/jobs.md describes them"
    )

    @field_validator("kinds")
    @classmethod
    def _are_built_in(cls, value: str) -> str:
        shipped(value)
        return value

    @model_validator(mode="after")
    def _differ(self) -> Self:
        names = [row.kind.lower() for row in self.rows]
        twice = [row.kind for row in self.rows if row.kind == "Job" or names.count(row.kind.lower()) > 1]
        if twice:
            raise ValueError(f"there are two rows of the kind {twice[0]}")
        resources = [f"{row.plural}.{row.group}" for row in self.rows]
        if again := [each for each in resources if resources.count(each) > 1]:
            raise ValueError(f"there are two rows of {again[0]}")
        return self

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the table of kinds."""
        return (*shipped(self.kinds), *self.own_kinds)


class ClassRow(Section):
    """Which devices are of a device class."""

    name: str = Field(min_length=1)
    selector: str

    @field_validator("selector")
    @classmethod
    def _is_judged(cls, value: str) -> str:
        if device_selector.parse([value]) is None:
            raise ValueError('must be comparisons joined by &&, like device.driver == "gpu.example.com"')
        return value


class DeviceSettings(Section):
    """Which devices nodes have."""

    classes: tuple[ClassRow, ...] = Field(
        default=(), description="devices of classes whose selectors are not judged: a list of names and selectors"
    )

    @field_validator("classes")
    @classmethod
    def _differ(cls, value: tuple[ClassRow, ...]) -> tuple[ClassRow, ...]:
        names = [row.name for row in value]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"there are two rows of the class {twice[0]}")
        return value

    @property
    def selectors(self) -> dict[str, tuple[Comparison, ...]]:
        """The comparisons that devices of each class meet, by the name of the class."""
        return {row.name: device_selector.parse([row.selector]) or () for row in self.classes}


class QuotaManagerSettings(Section):
    """Whether ResourceQuotas limit the namespaces of a queue to their part."""

    enabled: bool = Field(
        default=False,
        description="write the deserved amounts of queues into a ResourceQuota in each of their namespaces",
    )


class ReserveSettings(Section):
    """When and for how long nodes are reserved for jobs that starve."""

    starving_after: float = Field(
        default=Terms().starving_after,
        ge=0,
        description="seconds for which a job waits before nodes are reserved for it",
    )
    max_nodes_percent: int = Field(
        default=Terms().max_nodes_percent,
        ge=0,
        le=100,
        description="percentage of the nodes that may be reserved at the same time",
    )
    max_duration: float | None = Field(
        default=None, gt=0, description="seconds after which a reservation of nodes ends; none: no limit"
    )

    evict: bool = Field(
        default=False, description="evict borrowers from reserved nodes, for the job that they are reserved for"
    )

    whole_nodes: bool = Field(
        default=False,
        description="keep others off reserved nodes altogether, also where they would take nothing that the job needs",
    )

    max_jobs: int = Field(
        default=1,
        ge=1,
        description="jobs of a queue for which nodes are reserved at the same time",
    )

    ahead: int = Field(
        default=0,
        ge=0,
        le=MOST_AHEAD,
        description="jobs of a queue, the first in line, for which nodes are reserved before they starve",
    )

    backfill_margin: float = Field(
        default=Rules().backfill_margin,
        ge=0,
        description="seconds, beside its grace period, that a pod has to end before the promised start of a node's job",
    )

    @property
    def terms(self) -> Terms:
        """These settings in the form that the rules use."""
        return Terms(self.starving_after, self.max_nodes_percent, self.max_duration or inf, self.max_jobs, self.ahead)


class PrioritizeSettings(Section):
    """Which nodes the scheduler should prefer."""

    borrowers_apart: int = Field(
        default=1,
        ge=0,
        le=HIGHEST,
        description="score, of ten, for nodes that keep borrowers apart from other pods; 0: none",
    )


class WhatIfSettings(Section):
    """Limits of what-if questions and remedies."""

    time_limit: float = Field(default=10, gt=0, description="seconds that the answer to a what-if question may take")
    remedy_time: float = Field(default=2, ge=0, description="seconds for which remedies of one pod are searched")
    body_limit: int = Field(default=4 * 2**20, gt=0, description="largest what-if question that is accepted, in bytes")


class ExpectedSettings(Section):
    """When waiting jobs are expected to start."""

    interval: float = Field(
        default=10, gt=0, description="least seconds until expected starts are computed anew, if somebody asks for them"
    )


class HistorySettings(Section):
    """The history of the last day."""

    prometheus: str | None = Field(
        default=None, description="URL of a Prometheus that is asked for the time before a start"
    )

    @field_validator("prometheus")
    @classmethod
    def _is_a_url(cls, value: str | None) -> str | None:
        try:
            parts = urlsplit(value or "http://host")
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:  # an unclosed bracket, an invalid port
            usable = False
        if not usable or (value and ("?" in value or "#" in value)):
            raise ValueError("it is not a URL like http://prometheus.monitoring:9090")
        return value


class PreemptionSettings(Section):
    """How the scheduler's own preemption is treated."""

    pdb: Literal["best-effort", "respect"] = Field(
        default="best-effort", description="respect: never name a victim whose disruption budget allows no eviction"
    )


class LeaderSettings(Section):
    """The Lease that the controllers of several replicas share."""

    namespace: str = Field(default="quotaward-system", description="namespace of the Lease")
    name: str = Field(default="quotaward", description="name of the Lease")
    lease_duration: float = Field(
        default=15, ge=3, description="seconds after which a leader that does not renew its Lease is replaced"
    )
    only_leader_answers: bool = Field(
        default=False, description="be ready, and answer kube-scheduler, only while this replica leads"
    )


class LogSettings(Section):
    """How much is logged, and in which format."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"


class Settings(BaseSettings):
    """All settings of ``quotaward serve``."""

    model_config = SettingsConfigDict(
        env_prefix="QUOTAWARD_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        cli_avoid_json=True,
        cli_hide_none_type=True,
        cli_implicit_flags=True,
        cli_kebab_case=True,
    )

    manifests: Path | None = Field(default=None, description="folder of manifests to serve instead of a cluster")
    kubeconfig: Path | None = Field(
        default=None, description="kubeconfig file for the API server; none: the file of KUBECONFIG, else in cluster"
    )
    listen: str = Field(default="127.0.0.1:8080", description="HOST:PORT of all endpoints")
    secure_listen: str | None = Field(
        default=None, description="second HOST:PORT of all endpoints, with TLS; listen then stays without TLS"
    )
    tls_cert: Path | None = Field(default=None, description="certificate (PEM, with its chain); listen then uses TLS")
    tls_key: Path | None = Field(default=None, description="key of the certificate (PEM)")
    client_ca: Path | None = Field(default=None, description="CA (PEM) whose clients may ask as kube-scheduler does")
    probe_listen: str | None = Field(default=None, description="HOST:PORT of /healthz and /readyz only, for a kubelet")
    insecure: bool = Field(default=False, description="listen beyond loopback without TLS, and answer everybody")
    config: Path | None = Field(default=None, description="configuration file (YAML)")
    controllers: str = Field(default="all", description=f"all, none, or some of {', '.join(sorted(CONTROLLERS))}")
    mode: Literal["enforce", "observe"] = Field(
        default="enforce", description="observe: refuse and evict nothing, but count what would be refused"
    )
    elastic_quota: ElasticQuotaSettings = ElasticQuotaSettings()
    grants: GrantSettings = GrantSettings()
    exempt: ExemptSettings = ExemptSettings()
    store: StoreSettings = StoreSettings()
    crds: DefinitionSettings = DefinitionSettings()
    extender: ExtenderSettings = ExtenderSettings()
    claims: ClaimSettings = ClaimSettings()
    fair_share: FairShareSettings = FairShareSettings()
    gangs: GangSettings = GangSettings()
    gates: GateSettings = GateSettings()
    jobs: JobSettings = JobSettings()
    groups: GroupSettings = GroupSettings()
    devices: DeviceSettings = DeviceSettings()
    reclaim: ReclaimSettings = ReclaimSettings()
    overdue: OverdueSettings = OverdueSettings()
    reserve: ReserveSettings = ReserveSettings()
    quota_manager: QuotaManagerSettings = QuotaManagerSettings()
    prioritize: PrioritizeSettings = PrioritizeSettings()
    preemption: PreemptionSettings = PreemptionSettings()
    whatif: WhatIfSettings = WhatIfSettings()
    expected: ExpectedSettings = ExpectedSettings()
    history: HistorySettings = HistorySettings()
    run_time: RunTimeSettings = RunTimeSettings()
    leader: LeaderSettings = LeaderSettings()
    log: LogSettings = LogSettings()

    @field_validator("listen", "secure_listen", "probe_listen")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is not None:
            host, _, port = value.rpartition(":")
            if not host or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004 - the largest port
                raise ValueError("must be HOST:PORT, like 127.0.0.1:8080 or [::1]:8080")
        return value

    @field_validator("controllers")
    @classmethod
    def _are_controllers(cls, value: str) -> str:
        unknown = set(value.split(",")) - CONTROLLERS - {"all", "none"}
        if unknown:
            raise ValueError(
                f"no controller named {', '.join(sorted(unknown))}; there are {', '.join(sorted(CONTROLLERS))}"
            )
        return value

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.manifests is not None and self.kubeconfig is not None:
            raise ValueError("manifests and kubeconfig exclude each other")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tlsCert and tlsKey need each other")
        for name, value in (("secureListen", self.secure_listen), ("clientCa", self.client_ca)):
            if value is not None and self.tls is None:
                raise ValueError(f"{name}: needs tlsCert and tlsKey")
        if self.listens_openly and not self.insecure:
            raise ValueError(f"listen: {self.listen} is not loopback, so it needs tlsCert and tlsKey, or insecure")
        return self

    @property
    def tls(self) -> TlsFiles | None:
        """The files for TLS; None without TLS."""
        if self.tls_cert is None or self.tls_key is None:
            return None
        return TlsFiles(self.tls_cert, self.tls_key, self.client_ca)

    @property
    def plain_listen(self) -> str | None:
        """The address without TLS, if any. Everybody who reaches it may ask."""
        return self.listen if self.tls is None or self.secure_listen else None

    @property
    def tls_listen(self) -> str | None:
        """The address with TLS, if any. Clients there have to authenticate."""
        return (self.secure_listen or self.listen) if self.tls else None

    @property
    def listens_openly(self) -> bool:
        """Whether clients on other machines can ask without authentication."""
        return self.plain_listen is not None and not is_loopback(split_address(self.plain_listen)[0])

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        return split_address(self.listen)

    @property
    def rules(self) -> Rules:
        """The settings of the rules, in the form that the rules use."""
        return Rules(
            strict_borrowing=self.elastic_quota.strict_borrowing,
            fair_share_preemption=self.fair_share.preemption,
            quota_manager=self.quota_manager.enabled,
            gangs=self.gangs.enabled,
            evict_for_reserved=self.reserve.evict,
            whole_nodes=self.reserve.whole_nodes,
            backfill_margin=self.reserve.backfill_margin,
            promise_ahead=min(Rules().promise_ahead, self.reserve.max_duration or inf),
            run_time_grace=self.run_time.grace if self._evicts_outlived else inf,
            spare_jobs=self.reclaim.fail_jobs == "never",
            exempt_namespaces=frozenset(filter(None, self.exempt.namespaces.split(","))),
            device_classes=self.devices.selectors,
        )

    @property
    def _evicts_outlived(self) -> bool:
        """Whether pods are evicted that outlive their run times, as the controller reclaim does."""
        return self.run_time.evict and "reclaim" in self.active_controllers

    @property
    def observes(self) -> bool:
        """Whether nothing is refused, evicted or written."""
        return self.mode == "observe"

    def why_idle(self, controller: str) -> str:
        """Returns why a controller does not act, for people; empty if it does."""
        if self.observes:
            return "observe mode changes nothing"
        return "" if controller in self.active_controllers else f"controllers: {self.controllers}"

    @property
    def active_controllers(self) -> frozenset[str]:
        """The controllers that run; none in observe mode, which writes nothing."""
        names = set(self.controllers.split(","))
        if self.observes or "none" in names:
            return frozenset()
        return CONTROLLERS if "all" in names else CONTROLLERS & names


def load(arguments: Sequence[str]) -> Settings:
    """Loads the settings of the command line, the environment and the configuration file.

    Raises InvalidSettings. Exits if the command line asks for help or cannot be parsed.
    """
    file = _read(_config_file(arguments))

    class WithFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - a name given by the library
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, InitSettingsSource(settings_cls, file)

    try:
        return WithFile(_cli_settings_source=_flags()(args=list(arguments)))
    except ValidationError as error:
        raise InvalidSettings("\n".join(_said(detail) for detail in error.errors())) from error
    except SettingsError as error:
        field = re.search(r'field "([^"]+)"', str(error))
        raise InvalidSettings(f"{to_camel(field[1]) if field else 'settings'}: {error.__cause__ or error}") from error


@cache
def _flags() -> CliSettingsSource[Settings]:
    """Returns the reader of the command line. Its parser is made once: that takes longer than all else in loading."""
    return CliSettingsSource(Settings, cli_prog_name="quotaward serve")


def of_file(file: Path | None) -> Settings:
    """Loads the settings of a configuration file and the environment; without a file see ``load``.

    Raises InvalidSettings.
    """
    return load(["--config", str(file)] if file else [])


def unknown_variables(environment: Iterable[str]) -> dict[str, str]:
    """Finds variables that look like settings but are not, each with the closest setting (or an empty text).

    They are not errors: Kubernetes sets variables with this prefix for a Service named ``quotaward``.
    """
    prefix, unknown = "QUOTAWARD_", {}
    known = [name.replace(".", "__").upper() for name in _names()]
    for name in sorted(environment):
        setting = name.upper().removeprefix(prefix)
        section, _, within = setting.partition("__")
        found_by_the_library = within and section.lower() in _SECTIONS
        is_ours = setting != name.upper() and name.upper() not in OTHER_VARIABLES
        if is_ours and setting not in known and not found_by_the_library:
            closest = get_close_matches(setting, known, n=1, cutoff=ALIKE)
            unknown[name] = f"{prefix}{closest[0]}" if closest else ""
    return unknown


def split_address(text: str) -> tuple[str, int]:
    """Splits HOST:PORT into host and port, and removes the brackets of an IPv6 address."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _config_file(arguments: Sequence[str]) -> Path | None:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config", default=os.environ.get("QUOTAWARD_CONFIG"))
    try:
        path = parser.parse_known_args(arguments)[0].config
    except argparse.ArgumentError:
        return None  # the real parser says what is wrong
    return Path(path) if path else None


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    except (OSError, *NO_YAML) as error:
        raise InvalidSettings(f"config: {path} cannot be read: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InvalidSettings(f"config: {path} must be a map of settings")
    return {to_snake(str(key)): _snake(value) for key, value in content.items()}


def _snake(value: Any) -> Any:
    return {to_snake(str(key)): _snake(inner) for key, inner in value.items()} if isinstance(value, dict) else value


_SECTIONS: dict[str, type[Section]] = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}
"""The groups of settings, by name."""


def _names() -> Iterator[str]:
    """Yields the name of every setting in the library's form: ``grants.lifetime``."""
    for name in Settings.model_fields:
        yield from (f"{name}.{each}" for each in _SECTIONS[name].model_fields) if name in _SECTIONS else (name,)


def _said(detail: ErrorDetails) -> str:
    """Says what is wrong with a setting; for an unknown one also which may be meant."""
    key = _key(detail["loc"])
    if detail["type"] != "extra_forbidden":
        return f"{key}: {detail['msg'].removeprefix('Value error, ')}"
    known = [_key(tuple(name.split("."))) for name in _names()]
    closest = get_close_matches(key, known, n=1, cutoff=ALIKE)
    return f"{key}: there is no such setting" + (f"; there is {closest[0]}" if closest else "")


def _key(location: tuple[int | str, ...]) -> str:
    return ".".join(to_camel(str(part)) for part in location) or "settings"
