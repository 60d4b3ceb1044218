"""Which client reads a large cluster best: lists all pods of a real API server, and keeps what the rules need.

Every client runs in a process of its own and prints seconds, the memory that it took, and how many pods it kept.
``QUOTAWARD_BENCH_PODS`` sets the number of pods (50,000).
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import pods

PODS = int(os.environ.get("QUOTAWARD_BENCH_PODS", "50000"))
ROUNDS = 2
PAGE = 500


def run() -> list[Figure]:
    """A row per client, with the median of its rounds."""
    with tempfile.TemporaryDirectory() as directory, ControlPlane(Path(directory)) as control_plane:
        kubeconfig = Path(directory) / "bench.kubeconfig"
        kubeconfig.write_text(_kubeconfig(control_plane))
        _fill(control_plane)
        rows: dict[str, list[dict[str, float]]] = {name: [] for name in CLIENTS}
        for _ in range(ROUNDS):
            for name in CLIENTS:  # in turn, so that a slow minute of the machine hits all
                rows[name].append(_in_process_of_its_own(name, kubeconfig))
    return [
        Figure(f"{PODS} pods listed by {name}: {figure}", statistics.median(each[figure] for each in results), unit)
        for name, results in rows.items()
        for figure, unit in (("seconds", "s"), ("memory", "MB"), ("pause", "s"))
    ]


def _fill(control_plane: ControlPlane) -> None:
    """Pending pods of about the size that a real one has."""
    api = control_plane.api
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crowd"}})
    started = time.monotonic()
    for start in range(0, PODS, 5000):
        batch = pods(min(5000, PODS - start), "crowd", prefix=f"pod-{start}")
        for item in batch:
            item["metadata"]["annotations"] = {"example.com/about": "x" * 1500}
            item["spec"]["containers"][0]["env"] = [{"name": f"SETTING_{n}", "value": "y" * 20} for n in range(20)]
        api.create_all(batch)
    print(f"{PODS} pods created in {time.monotonic() - started:.0f} s", file=sys.stderr)


def _kubeconfig(control_plane: ControlPlane) -> str:
    api = control_plane.api
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": {"server": api.url, "certificate-authority": str(api.ca_file)}}],
            "users": [{"name": "bench", "user": {"token": api.token}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        }
    )


def _in_process_of_its_own(name: str, kubeconfig: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.clients", name, str(kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def official(kubeconfig: str) -> list[Any]:
    """The official client, synchronous, in pages."""
    from kubernetes import client, config

    config.load_kube_config(kubeconfig)
    core, kept, token = client.CoreV1Api(), [], None
    while True:
        page = core.list_pod_for_all_namespaces(limit=PAGE, _continue=token)
        kept += page.items
        token = page.metadata._continue
        if not token:
            return kept


async def official_aio(kubeconfig: str) -> list[Any]:
    """The official client, asynchronous, in pages."""
    from kubernetes.aio import client, config

    await config.load_kube_config(kubeconfig)
    kept, token = [], None
    async with client.ApiClient() as api:
        while True:
            page = await client.CoreV1Api(api).list_pod_for_all_namespaces(limit=PAGE, _continue=token)
            kept += page.items
            token = page.metadata.var_continue
            if not token:
                return kept


async def httpx_msgspec(kubeconfig: str) -> list[Any]:
    """httpx, decoded by msgspec into the fields that are used, in slices."""
    import httpx

    given = json.loads(Path(kubeconfig).read_text())
    cluster, token = given["clusters"][0]["cluster"], given["users"][0]["user"]["token"]
    verify = cluster["certificate-authority"]
    headers = {"Authorization": f"Bearer {token}"}
    kept: list[Any] = []
    async with httpx.AsyncClient(base_url=cluster["server"], verify=verify, headers=headers, timeout=60) as session:
        query: dict[str, Any] = {"limit": PAGE}
        while True:
            answer = await session.get("/api/v1/pods", params=query)
            query["continue"] = await _keep(answer.content, kept)
            if not query["continue"]:
                return kept


async def _keep(body: bytes, kept: list[Any]) -> str:
    from app.kube.reflector import _page_decoder
    from app.pause import Pause
    from app.store.pods import PODS as KIND
    from app.store.pods import pod_of

    page = _page_decoder.decode(body)
    pause = Pause()
    for raw in page.items or ():
        kept.append(pod_of(KIND.decoder.decode(raw)))
        await pause.if_due()
    return page.metadata.continue_


async def quotaward(kubeconfig: str) -> list[Any]:
    """Our reflector, whole: aiohttp, msgspec, slices, into the store with its ledger and table."""
    from app.kube.client import KubeClient
    from app.kube.reflector import Reflector
    from app.store.pods import PODS as KIND
    from app.store.store import Store
    from policy.cluster.cluster import Cluster

    store = Store(Cluster())
    client = await KubeClient.connect(Path(kubeconfig))
    try:
        await Reflector(client, KIND, store)._list()
    finally:
        await client.close()
    return [store, *store.cluster.pods.values()][1:]


CLIENTS: dict[str, Callable[[str], Any]] = {
    "official": official,
    "official aio": official_aio,
    "httpx + msgspec": httpx_msgspec,
    "aiohttp + msgspec (Quotaward's reflector)": quotaward,
}


async def _watch_pauses(longest: list[float]) -> None:
    """Notes for how long the loop, which would answer the scheduler, was kept from turning."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest[0] = max(longest[0], time.perf_counter() - before - 0.001)


async def _measured(read: Any, kubeconfig: str, longest: list[float]) -> list[Any]:
    watching = asyncio.create_task(_watch_pauses(longest))
    await asyncio.sleep(0.01)
    kept: list[Any] = await read(kubeconfig)
    watching.cancel()
    return kept


def _peak_memory() -> float:
    """MB, of this program alone: what getrusage tells is inherited from whoever started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def one(name: str, kubeconfig: str) -> None:
    """One client, in this process."""
    read = CLIENTS[name]
    before = _peak_memory()
    started, longest = time.perf_counter(), [0.0]
    kept = asyncio.run(_measured(read, kubeconfig, longest)) if asyncio.iscoroutinefunction(read) else read(kubeconfig)
    seconds = time.perf_counter() - started
    memory = _peak_memory() - before
    pause = longest[0] if asyncio.iscoroutinefunction(read) else seconds
    print(json.dumps({"seconds": seconds, "memory": memory, "pause": pause, "pods": len(kept)}))


if __name__ == "__main__":
    one(sys.argv[1], sys.argv[2])
