"""Checks whether a Quotaward answers at an address, and when a scheduler last called it (``check --cluster``)."""

import re
import time
from pathlib import Path

from app.checks.finding import Finding, info, warning
from app.client import DEFAULT_SERVER, reason_of

TIMEOUT = 5.0
_LAST = re.compile(r'^quotaward_extender_last_request_timestamp_seconds\{verb="filter"\} (\S+)$', re.MULTILINE)


def extender(url: str, ca: Path | None = None) -> list[Finding]:
    """Asks for readiness and metrics, both without credentials. ``ca``: a file, if the system's are not enough.

    An empty ``url`` means that nobody has named any: if nothing listens where one would be forwarded to, nothing is
    wrong.
    """
    import urllib3  # noqa: PLC0415 - only needed here

    named, url = bool(url), url or DEFAULT_SERVER
    try:
        pool = urllib3.PoolManager(timeout=TIMEOUT, retries=False, ca_certs=str(ca) if ca else None)
        ready = pool.request("GET", f"{url.rstrip('/')}/readyz")
        metrics = pool.request("GET", f"{url.rstrip('/')}/metrics")
    except (urllib3.exceptions.HTTPError, ValueError, OSError) as reason:
        why = " ".join(reason_of(reason).split())
        if not named and isinstance(reason.__cause__, ConnectionRefusedError):
            return [info(f"no Quotaward was asked, as none is forwarded to {url}: {why}")]
        return [warning(f"no Quotaward answers at {url}: {why}")]
    if ready.status != 200:  # noqa: PLR2004 - HTTP OK
        return [warning(f"the Quotaward at {url} is not ready: it answers {ready.status}: {ready.data.decode()[:200]}")]
    findings = [info(f"a Quotaward answers at {url}")]
    if metrics.status != 200:  # noqa: PLR2004 - HTTP OK
        return [*findings, info(f"the metrics of {url} cannot be read without credentials ({metrics.status})")]
    last = _LAST.search(metrics.data.decode(errors="replace"))
    if last is None or not float(last[1]):
        text = f"no scheduler has called the Quotaward at {url} since it was started"
        return [*findings, warning(f"{text} (they ask only about pods that some node could take)")]
    return [*findings, info(f"a scheduler last called it {max(0.0, time.time() - float(last[1])):.0f} s ago")]
