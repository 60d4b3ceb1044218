"""Jobs that wait as a whole on the real API server: the policies and the right, as the manifests have them."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.store.heeded import JOBS_WAIT
from tests.controlplane.api import read_manifests
from tests.controlplane.cluster import Cluster
from tests.controlplane.gates import delete
from tests.controlplane.objects import job
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import MANIFESTS, install_rights


def queue_jobs_in(cluster: Cluster, namespace: str) -> None:
    """New Jobs of a namespace wait as a whole from now on: the API server itself learns of a label a little later."""
    cluster.api.patch("namespaces", namespace, {"metadata": {"labels": {JOBS_WAIT: "queued"}}})
    tried = job("tried", namespace)
    wait_until(lambda: cluster.api.apply(tried, dryRun="All")["spec"].get("suspend"), "new Jobs are suspended")


@contextmanager
def queueing(cluster: Cluster) -> Iterator[None]:
    """Jobs of labelled namespaces are suspended, and Quotaward may start them, while this is open."""
    install_rights(cluster.api)
    items = read_manifests(MANIFESTS / "jobs/queued")
    for item in items:
        cluster.api.apply(item)
    try:
        canary = cluster.namespace("canary")
        queue_jobs_in(cluster, canary)
        cluster.api.patch("namespaces", canary, {"metadata": {"labels": {JOBS_WAIT: None}}})
        yield
    finally:
        for item in reversed(items):
            delete(cluster, item)
