"""A real control plane on free ports of this machine: etcd, the API server, and kwok as every node's kubelet."""

import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Self

from tests.controlplane.api import Api
from tests.controlplane.build import CannotBuild, binaries
from tests.controlplane.processes import Process, answers, free_port

_STAGES = Path(__file__).parent / "kwok" / "stages.yaml"


class ControlPlane:
    """A cluster without nodes. What its programs keep and print is in ``directory``."""

    def __init__(self, directory: Path, *flags: str):
        """``flags`` are further ones of the API server."""
        self.directory = directory
        self.binaries = binaries()
        self.token = secrets.token_hex(16)
        self.api_url = f"https://127.0.0.1:{free_port()}"
        self.etcd_url = f"http://127.0.0.1:{free_port()}"
        self.kubeconfig = directory / "admin.kubeconfig"
        self.etcd = self.process("etcd", *self._etcd_flags())
        self.api_server = self.process("kube-apiserver", *self._api_server_flags(), *flags)
        self.kwok = self.process("kwok", *self._kwok_flags())
        self._api: Api | None = None

    def __enter__(self) -> Self:
        try:
            return self._start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self.kwok.kill()
        self.api_server.kill()
        self.etcd.kill()

    @property
    def api(self) -> Api:
        """The API server, as the cluster's administrator sees it."""
        assert self._api, "the API server has not been started yet"
        return self._api

    def process(self, program: str, *flags: str, name: str | None = None) -> Process:
        """One of the built programs, not started yet."""
        log = self.directory / f"{name or program}.log"
        # kwok reads ~/.kwok/kwok.yaml first where there is one; and no program shall find the user's kubeconfig
        # collecting garbage less often saves a seventh of their time
        env = {"HOME": str(self.directory), "GOGC": "400"}
        return Process([str(self.binaries[program]), *flags], log, env=env)

    def crash_api_server(self) -> None:
        """Kill the API server; etcd keeps what it has stored."""
        self.api_server.kill()

    def start_api_server(self) -> None:
        """Start the API server, on its port and with its data, and wait until it answers."""
        self.api_server.start()
        self.api_server.wait_until_ready(self._api_is_ready)

    def _start(self) -> Self:
        self._write_credentials()
        self.etcd.start()
        self.etcd.wait_until_ready(self._etcd_is_ready)
        self.start_api_server()
        self.kubeconfig.write_text(self.api.kubeconfig())
        self.kwok.start()
        return self

    def _write_credentials(self) -> None:
        if not shutil.which("openssl"):
            raise CannotBuild("the API server needs a key for service accounts, and openssl is not on this machine")
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "tokens.csv").write_text(f'{self.token},admin,admin,"system:masters"\n')
        key = [
            "openssl",
            "ecparam",
            "-name",
            "prime256v1",
            "-genkey",
            "-noout",
            "-out",
            self.directory / "accounts.key",
        ]
        subprocess.run(key, check=True, capture_output=True)

    def _etcd_is_ready(self) -> bool:
        return answers(f"{self.etcd_url}/health")

    def _api_is_ready(self) -> bool:
        made = self.directory / "certs"  # by the API server, when it first starts; the key once the other is whole
        if self._api is None and (made / "apiserver.key").exists():
            self._api = Api(self.api_url, made / "apiserver.crt", self.token)
        return self._api is not None and self._api.is_ready()

    def _etcd_flags(self) -> list[str]:
        return [
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls=http://127.0.0.1:{free_port()}",
            "--unsafe-no-fsync",
        ]

    def _api_server_flags(self) -> list[str]:
        return [
            f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.api_url.rpartition(':')[2]}",
            f"--cert-dir={self.directory / 'certs'}",
            "--service-account-issuer=https://localhost",
            f"--service-account-key-file={self.directory / 'accounts.key'}",
            f"--service-account-signing-key-file={self.directory / 'accounts.key'}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            # pods need no service account, and nodes made by hand get no taint that nobody would take away
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        ]

    def _kwok_flags(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--config={_STAGES}",
            "--manage-all-nodes",
            "--node-lease-duration-seconds=0",  # one kwok: nodes need not be shared out
        ]
