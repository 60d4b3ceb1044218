"""A client of a running Quotaward, for the commands that need one."""

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from app.inert import inert, inert_document, say
from app.settings import is_loopback

Command = Callable[..., None]

DEFAULT_SERVER = "http://127.0.0.1:8080"
TIMEOUT = 30.0
"""Seconds for an answer: a what-if question takes time."""
HANGS = "the process there hangs or is overloaded"
"""Words for an address where somebody listens and does not answer in time."""
_UNTRUSTED = re.compile(r"certificate verify failed: (.+?) \(_ssl")
"""Finds the reason of OpenSSL in an error of the ssl module."""

Url = Annotated[str, typer.Option("--server", help="URL of a running Quotaward.", envvar="QUOTAWARD_SERVER")]
Token = Annotated[
    str,
    typer.Option(
        help="Bearer token to send; better set in the environment.", envvar="QUOTAWARD_TOKEN", show_default=False
    ),
]
Kubeconfig = Annotated[Path | None, typer.Option(help="Send the token of this kubeconfig file.")]
Ca = Annotated[Path | None, typer.Option(help="CA (PEM) of the server's certificate.", envvar="QUOTAWARD_CA")]


class CannotAsk(Exception):
    """There is no answer; the text is a sentence for the terminal."""


class WrongOption(Exception):
    """These options cannot be used; the text is a sentence that names the one at fault."""


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a Quotaward, and our credentials. ``ca`` is a file, if the system's CAs are not enough."""

    url: str
    token: str
    ca: Path | None

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Fetches the document at a path, by POST if there is a body, and makes its text inert. Raises CannotAsk."""
        import urllib3  # noqa: PLC0415 - only needed here

        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        method = "GET" if body is None else "POST"
        try:
            pool = urllib3.PoolManager(ca_certs=str(self.ca) if self.ca else None)
            url = self.url.rstrip("/") + path
            response = pool.request(method, url, json=body, headers=headers, timeout=TIMEOUT, retries=False)
            document = inert_document(response.json())
        except (urllib3.exceptions.HTTPError, ValueError, OSError) as error:
            raise CannotAsk(self._unanswered(error)) from error
        if response.status != HTTPStatus.OK:
            detail = document.get("detail", document) if isinstance(document, dict) else document
            where = f"{document['field']}: " if isinstance(document, dict) and document.get("field") else ""
            raise CannotAsk(f"{self.url} answers {response.status}: {where}{detail}")
        return document

    def text(self, path: str) -> str:
        """Fetches the text at a path, and makes its lines inert. Raises CannotAsk."""
        import urllib3  # noqa: PLC0415

        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            pool = urllib3.PoolManager(ca_certs=str(self.ca) if self.ca else None)
            response = pool.request("GET", self.url.rstrip("/") + path, headers=headers, timeout=TIMEOUT, retries=False)
            text = "\n".join(map(inert, response.data.decode().split("\n")))
        except (urllib3.exceptions.HTTPError, ValueError, OSError) as error:
            raise CannotAsk(self._unanswered(error)) from error
        if response.status != HTTPStatus.OK:
            raise CannotAsk(f"{self.url} answers {response.status} for {path}")
        return text

    @property
    def stranger(self) -> str:
        """The message if the answer is not Quotaward's."""
        return f"{self.url} does not answer as Quotaward does"

    def _unanswered(self, error: Exception) -> str:
        """The message if there is no answer: one that is late may be Quotaward's."""
        if _is_late(error):
            return f"{self.url}: {reason_of(error)} ({TIMEOUT:.0f} s)"
        return f"{self.stranger}: {reason_of(error)}"


def _is_late(error: Exception) -> bool:
    """Whether a connection or an answer took too long."""
    import urllib3  # noqa: PLC0415

    return isinstance(error, urllib3.exceptions.TimeoutError) and not isinstance(
        error.__cause__, ConnectionRefusedError
    )


def reason_of(error: Exception) -> str:
    """Says why there is no answer; if nothing listens, also how to reach a server in a cluster."""
    import urllib3  # noqa: PLC0415

    if isinstance(error, urllib3.exceptions.ReadTimeoutError):
        return f"it has not answered in time, so {HANGS}"
    if _is_late(error):
        return "it has not answered in time"
    if isinstance(error, urllib3.exceptions.SSLError):
        untrusted = _UNTRUSTED.search(str(error))
        return f"its certificate is not accepted: {untrusted[1]}" if untrusted else "the TLS handshake failed"
    if not isinstance(error.__cause__, ConnectionRefusedError):
        return str(error)
    tunnel = "kubectl -n quotaward-system port-forward deployment/quotaward-scheduler 8080"
    return f"connection refused. To reach the one in a cluster, run {tunnel}; name another one with --server URL"


def with_options(
    command: Command, name: str, options: Mapping[str, tuple[Any, Any]], build: Callable[..., Any]
) -> Command:
    """Replaces a command's argument by what is built of options, each given as its annotation and default."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        built = build(**{option: given.pop(option) for option in options})
        command(**given, **{name: built})

    own = [each for each in inspect.signature(command).parameters.values() if each.name != name]
    added = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for option, (annotation, default) in options.items()
    ]
    run.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
    return run


def reaching_a_server(command: Command) -> Command:
    """Replaces a command's argument ``server`` by the options that find the server; failures are a line each."""
    options = {"url": (Url, DEFAULT_SERVER), "token": (Token, ""), "kubeconfig": (Kubeconfig, None), "ca": (Ca, None)}
    with_server = with_options(command, "server", options, _server)

    @functools.wraps(with_server)
    def run(**given: Any) -> None:
        try:
            with_server(**given)
        except CannotAsk as error:
            say(str(error), err=True)
            raise typer.Exit(1) from None
        except WrongOption as error:
            say(str(error), err=True)
            raise typer.Exit(2) from None

    run.__signature__ = inspect.signature(with_server)  # type: ignore[attr-defined]
    return run


def _server(*, url: str, token: str, kubeconfig: Path | None, ca: Path | None) -> Server:
    """Builds the server. Raises WrongOption for unusable options, or for a token that would be sent in plain text."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, an invalid port
        usable = False
    if not usable:
        raise WrongOption(f"--server (or QUOTAWARD_SERVER): {url!r} is not a URL like {DEFAULT_SERVER}")
    if parts.scheme == "https" and ca is not None and not ca.is_file():
        raise WrongOption(f"--ca (or QUOTAWARD_CA): {ca}: there is no such file")
    token = token or (_token_of(kubeconfig) if kubeconfig else "")
    if token and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise WrongOption(f"--server: {url} is not https: the token would be sent unencrypted")
    return Server(url, token, ca)


def _token_of(kubeconfig: Path) -> str:
    """Returns the bearer token of a kubeconfig's user. Raises WrongOption."""
    from app.kube.client import CannotConnect, token_of  # noqa: PLC0415 - it takes long to load

    try:
        token = asyncio.run(token_of(kubeconfig))
    except CannotConnect as error:
        raise WrongOption(f"--kubeconfig: {error}") from error
    if not token:
        raise WrongOption(f"--kubeconfig: {kubeconfig}: its user has no token (kubectl create token creates one)")
    return token
