"""Our credentials for the API server: checked at the start, and kept if they cannot be renewed."""

import os
import ssl
from pathlib import Path
from typing import Any

import structlog
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, incluster_config

log = structlog.get_logger(__name__)

UNUSABLE = (ConfigException, OSError, ValueError, KeyError, TypeError, AttributeError)
"""Exceptions of the official client for unusable credentials: it does not check a value before use."""


class Credentials(Configuration):
    """Our credentials and the address of the API server. A token that cannot be renewed stays in use."""

    _good = ""
    _renewed = True

    async def get_api_key_with_prefix(self, identifier: str, alias: str | None = None) -> str | None:
        """Returns the value of the header, renewed when due. Raises one of UNUSABLE if there was no token before."""
        try:
            self._good = _checked(await super().get_api_key_with_prefix(identifier, alias))
        except UNUSABLE as error:
            if not self._good:
                raise
            if self._renewed:
                log.warning("the token cannot be renewed, the old one is kept", error=str(error))
            self._renewed = False
        else:
            self._renewed = True
        return self._good


def _checked(key: str | None) -> str:
    """Returns the token with its scheme. Raises ConfigException if it is empty or no header can hold it."""
    kind, _, token = (key or "").partition(" ")
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigException("the token is empty or invalid")
    return f"{kind} {token}"


def files_of(kubeconfig: Path | None, configuration: Configuration) -> list[Path]:
    """Returns the files that credentials come from. Raises OSError, or YAMLError for a kubeconfig that is none.

    The token of a service account is left out: it is read again each minute.
    """
    named = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    files = [Path(file) for file in named if file]
    if kubeconfig is not None:
        tokens = _token_files(yaml.safe_load(kubeconfig.read_bytes()))
        files += [kubeconfig, *(kubeconfig.parent / token for token in tokens)]
    return files


def _token_files(document: Any) -> list[str]:
    """Returns the files of tokens that a kubeconfig names."""
    users = document.get("users") if isinstance(document, dict) else None
    named = [each.get("user") for each in users or () if isinstance(each, dict)]
    tokens = [user.get("tokenFile") for user in named if isinstance(user, dict)]
    return [token for token in tokens if isinstance(token, str)]


def kubeconfig_of_environment() -> Path | None:
    """Returns the file that KUBECONFIG names, if it is set."""
    named = os.environ.get("KUBECONFIG")
    return Path(named) if named else None


def is_in_cluster() -> bool:
    """Whether this process runs in a pod; Kubernetes sets an environment variable in each."""
    return bool(os.environ.get(incluster_config.SERVICE_HOST_ENV_NAME))


def fault_of_service_account() -> str | None:
    """Says what is wrong with the files of the pod's service account, and with which; None if nothing is."""
    token, ca = incluster_config.SERVICE_TOKEN_FILENAME, incluster_config.SERVICE_CERT_FILENAME
    for file in (token, ca):
        try:
            if not Path(file).read_text(encoding="utf-8").strip():
                return f"{file} is empty"
        except (OSError, UnicodeDecodeError) as error:
            return f"{file} cannot be read: {error.strerror if isinstance(error, OSError) else error}"
    try:
        ssl.create_default_context(cafile=ca)
    except ssl.SSLError as error:
        return f"{ca} contains no usable certificate: {error}"
    return None
