"""The proxy to the API server: that of the kubeconfig, else that of the environment.

The environment is read as kubectl reads it (golang.org/x/net/http/httpproxy).
"""

from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from app.settings import is_loopback


def proxy_for(server: str, proxy_url: str | None) -> str | None:
    """Returns the URL of the proxy for this server, if there is one. Raises ValueError for an unusable one."""
    if proxy_url:
        return _checked("proxy-url", proxy_url)
    address = urlsplit(server)
    named = getproxies().get(address.scheme)
    if not named or _is_excepted(address.hostname or ""):
        return None
    return _checked(f"{address.scheme.upper()}_PROXY", named if "://" in named else f"http://{named}")


def _checked(name: str, proxy: str) -> str:
    try:
        parts = urlsplit(proxy)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket, an invalid port
        usable = False
    if not usable:  # the value is not shown: it may contain a password
        raise ValueError(
            f"{name} has to be a URL like http://proxy.example:3128 (http or https; SOCKS is not supported)"
        )
    return proxy


def _is_excepted(host: str) -> bool:
    """Whether a host is reached without the environment's proxy: this machine, and hosts that NO_PROXY names."""
    networks = getproxies().get("no", "").split(",")
    return is_loopback(host) or proxy_bypass(host) or any(_is_in(host, each.strip()) for each in networks)


def _is_in(host: str, network: str) -> bool:
    """Whether a host is an address in a network like ``10.0.0.0/8``; ``proxy_bypass`` compares names only."""
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
