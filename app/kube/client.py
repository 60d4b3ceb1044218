"""All access to the API server: credentials and writes by the official client, lists and watches as raw bytes."""

import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from app.kube.credentials import (
    UNUSABLE,
    Credentials,
    fault_of_service_account,
    is_in_cluster,
    kubeconfig_of_environment,
)
from app.kube.proxy import proxy_for
from app.observability import expiry

CONNECT_TIMEOUT = 10.0


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


class KubeClient:
    """A client of one API server, with credentials that renew themselves. Close it after use.

    ``api`` is the official client, for writes.
    """

    def __init__(self, configuration: Configuration) -> None:
        """Raises ValueError for an unusable proxy."""
        # By default aiohttp reads the environment at every request, and a ~/.netrc, which only does harm.
        configuration.client_session_kwargs = {"trust_env": False}
        configuration.proxy = proxy_for(configuration.host, configuration.proxy)
        self._configuration = configuration
        self._token: str | None = ""
        expiry.note_certificate(
            "client", Path(configuration.cert_file).read_bytes() if configuration.cert_file else None
        )
        self.api = ApiClient(configuration)
        self._session = aiohttp.ClientSession(
            base_url=configuration.host.rstrip("/") + "/",
            connector=aiohttp.TCPConnector(
                ssl=self.api.rest_client.ssl_context, limit=0, socket_factory=_watched_socket
            ),
            proxy=configuration.proxy,
        )

    @classmethod
    async def connect(cls, kubeconfig: Path | None) -> "KubeClient":
        """Makes a client for the cluster of a kubeconfig file, or of the one that KUBECONFIG names, or for our own.

        As in other controllers, the environment takes precedence over the credentials of this pod.

        Raises CannotConnect. Does not speak to the API server yet.
        """
        kubeconfig = kubeconfig or kubeconfig_of_environment()
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
            return cls(configuration)
        except (AttributeError, TypeError) as error:  # the official client does not check a value before use
            raise CannotConnect(f"{where}: a value has the wrong type: {error}") from error
        except (*UNUSABLE, yaml.YAMLError, RecursionError) as error:
            raise CannotConnect(f"{where}: {' '.join(str(error).split())}") from error

    async def close(self) -> None:
        """Ends all connections."""
        await self._session.close()
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
