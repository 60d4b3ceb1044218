"""All access to the API server: credentials and writes by the official client, lists and watches as raw bytes."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import structlog
import yaml
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTClientObject

from app.kube.credentials import (
    UNUSABLE,
    Credentials,
    fault_of_service_account,
    files_of,
    is_in_cluster,
    kubeconfig_of_environment,
)
from app.kube.proxy import proxy_for
from app.observability import expiry

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT = 10.0
LOOK_AGAIN = 2.0
"""Seconds between two checks of the files with credentials, as a mount in a pod changes by a link."""


class CannotConnect(Exception):
    """There are no usable credentials for an API server. The text says where they were looked for."""


def _watched_socket(address: tuple[Any, ...]) -> socket.socket:
    """Makes a socket with keepalive, so that a dead connection ends (after 20 s) before grants do (after 30 s)."""
    family, kind, protocol = address[:3]
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 20_000)):
        if hasattr(socket, option):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


async def _configuration_of(kubeconfig: Path | None) -> Credentials:
    """Loads the credentials of a kubeconfig file, or of this pod. Raises CannotConnect."""
    configuration = Credentials()
    where = (
        f"kubeconfig {kubeconfig}"
        if kubeconfig
        else "no --kubeconfig, KUBECONFIG or --manifests given, and not in a cluster"
    )
    if kubeconfig is None and is_in_cluster():
        where = "service account of this pod"
        if fault := fault_of_service_account():
            raise CannotConnect(f"{where}: {fault}")
    if kubeconfig is not None and not kubeconfig.is_file():
        several = "; of several files, name one" if os.pathsep in str(kubeconfig) else ""
        raise CannotConnect(f"{where}: there is no such file{several}")
    try:
        if kubeconfig is not None:
            await config.load_kube_config(str(kubeconfig), client_configuration=configuration, persist_config=False)
        else:
            config.load_incluster_config(client_configuration=configuration)
        await configuration.auth_settings()  # raises if no token can be used
        if not all(isinstance(value, str | None) for value in (configuration.proxy, configuration.tls_server_name)):
            raise TypeError("proxy-url and tls-server-name have to be text")
        configuration.connection_pool_maxsize = 0  # no limit: a hanging request must not delay the Lease or a bind
        # By default aiohttp reads the environment at every request, and a ~/.netrc, which only does harm.
        configuration.client_session_kwargs = {"trust_env": False}
        configuration.proxy = proxy_for(configuration.host, configuration.proxy)
    except (AttributeError, TypeError) as error:  # the official client does not check a value before use
        raise CannotConnect(f"{where}: a value has the wrong type: {error}") from error
    except (*UNUSABLE, yaml.YAMLError, RecursionError) as error:
        raise CannotConnect(f"{where}: {' '.join(str(error).split())}") from error
    return configuration


class KubeClient:
    """A client of one API server, with credentials that renew themselves. Close it after use.

    ``api`` is the official client, for writes. It stays the same object when credentials are read again.
    """

    def __init__(self, configuration: Configuration, kubeconfig: Path | None = None) -> None:
        """Raises one of UNUSABLE for certificates that cannot be loaded."""
        self.api = ApiClient(configuration)
        self._kubeconfig = kubeconfig
        self._retired: list[aiohttp.ClientSession | RESTClientObject] = []
        self._seen = {path: path.read_bytes() for path in files_of(kubeconfig, configuration)}
        self._problem = ""
        self._use(configuration)

    def _use(self, configuration: Configuration) -> None:
        """Uses these credentials for all requests to come."""
        self._configuration = configuration
        self._token: str | None = ""
        self._session = aiohttp.ClientSession(
            base_url=configuration.host.rstrip("/") + "/",
            connector=aiohttp.TCPConnector(
                ssl=self.api.rest_client.ssl_context, limit=0, socket_factory=_watched_socket
            ),
            proxy=configuration.proxy,
        )
        expiry.note_certificate(
            "client", Path(configuration.cert_file).read_bytes() if configuration.cert_file else None
        )

    @property
    def certificate_ends(self) -> float | None:
        """When the client certificate ends, in seconds since the epoch; None if there is none."""
        file = self._configuration.cert_file
        return expiry.end_of_certificate(Path(file).read_bytes()) if file else None

    @classmethod
    async def connect(cls, kubeconfig: Path | None) -> "KubeClient":
        """Makes a client for the cluster of a kubeconfig file, or of the one that KUBECONFIG names, or for our own.

        As in other controllers, the environment takes precedence over the credentials of this pod.

        Raises CannotConnect. Does not speak to the API server yet.
        """
        kubeconfig = kubeconfig or kubeconfig_of_environment()
        configuration = await _configuration_of(kubeconfig)
        try:
            return cls(configuration, kubeconfig)
        except UNUSABLE as error:  # certificates are loaded only here
            where = f"kubeconfig {kubeconfig}" if kubeconfig else "service account of this pod"
            raise CannotConnect(f"{where}: {' '.join(str(error).split())}") from error

    async def follow(self) -> None:
        """Checks the files of the credentials repeatedly until cancelled."""
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            await self.look()

    async def look(self) -> None:
        """Uses the credentials in their files if these have changed. Keeps the old ones if that fails."""
        try:
            found = {path: path.read_bytes() for path in self._seen}
            if found == self._seen:
                self._problem = ""
                return
            configuration = await _configuration_of(self._kubeconfig)
            if configuration.host != self._configuration.host:
                raise CannotConnect(f"{configuration.host} is another server: that takes a restart")
            await self._replace(configuration)
            paths = files_of(self._kubeconfig, configuration)
            self._seen = {path: found[path] if path in found else path.read_bytes() for path in paths}
        except (CannotConnect, yaml.YAMLError, *UNUSABLE) as error:
            if str(error) != self._problem:  # logged once, not at every check
                log.error("credentials cannot be loaded", error=str(error))
            self._problem = str(error)
        else:
            self._problem = ""
            log.info("credentials loaded")

    async def _replace(self, configuration: Credentials) -> None:
        """Uses other credentials. Requests that are under way go on with the old ones, until the next replacement."""
        fresh = ApiClient(configuration)
        before: list[aiohttp.ClientSession | RESTClientObject] = [self._session, self.api.rest_client]
        self.api.configuration, self.api.rest_client = configuration, fresh.rest_client
        self._use(configuration)
        retired, self._retired = self._retired, before
        for each in retired:
            await each.close()

    async def close(self) -> None:
        """Ends all connections."""
        for each in (self._session, *self._retired):
            await each.close()
        await self.api.close()

    @asynccontextmanager
    async def get(
        self, path: str, query: Mapping[str, str], *, read_timeout: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a GET whose body is read as it comes. ``read_timeout``: longest wait for each piece, in seconds."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=read_timeout)
        headers = {"Accept": "application/json"}
        async with self._session.get(
            path.lstrip("/"),
            params=dict(query),
            headers=headers | await self.authorization(),
            timeout=timeout,
            server_hostname=self._configuration.tls_server_name,
        ) as response:
            yield response

    async def send(
        self,
        method: str,
        path: str,
        body: Any,
        content_type: str,
        *,
        timeout: float,  # noqa: ASYNC109 - passed on
    ) -> tuple[int, bytes]:
        """Sends a write, and returns the status and body of the answer, whatever they are.

        Uses the official client's transport, but not its classes for each API group. Importing the class of the core
        group takes longer than everything else at the start.
        """
        headers = {"Accept": "application/json", "Content-Type": content_type} | await self.authorization()
        url = self._configuration.host.rstrip("/") + path
        response = await self.api.call_api(method, url, headers, body, _request_timeout=timeout)
        return response.status, await response.read()

    async def authorization(self) -> dict[str, str]:
        """Returns the header that authenticates us to the API server; none where a certificate does."""
        auth: Any = await self._configuration.auth_settings()
        token = auth.get("BearerToken", {}).get("value")
        if token != self._token:
            self._token = token
            expiry.note_token((token or "").partition(" ")[2])
        return {"Authorization": token} if token else {}


async def token_of(kubeconfig: Path) -> str:
    """Returns the bearer token of a kubeconfig's user; empty where it has none. Raises CannotConnect."""
    client = await KubeClient.connect(kubeconfig)
    try:
        return (await client.authorization()).get("Authorization", "").removeprefix("Bearer ")
    finally:
        await client.close()
