"""The history of the last day after a restart, with a real Prometheus that has read the metrics of the time before."""

import shutil
import subprocess
import time

import httpx

from tests.browser import story
from tests.browser.conftest import Served
from tests.controlplane.processes import Process, free_port, wait_until
from tests.missing import missing

HOURS = 6


def metrics_of_the_time_before(now):
    """The metrics of an earlier process, which has run until ten minutes ago, as text that promtool reads."""
    times = range(now - HOURS * 3600, now - 600, 60)
    gauges = {
        'quotaward_elastic_quota_used{namespace="one",resource="cpu"}': 5.5,
        'quotaward_elastic_quota_max{namespace="one",resource="cpu"}': 7,
        'quotaward_waiting_pods{queue="team-1",namespace="one"}': 4,
        'quotaward_queue_deserved{queue="company",resource="cpu"}': 12,
    }
    lines = []
    for series, value in gauges.items():
        lines += [f"# TYPE {series.partition('{')[0]} gauge", *(f"{series} {value} {at}" for at in times)]
    evicted = 'quotaward_queue_evictions_total{queue="team-1",reason="reclaim"}'
    lines.append("# TYPE quotaward_queue_evictions counter")
    lines += [f"{evicted} {int(at > now - 2 * 3600) * 3} {at}" for at in times]
    return "\n".join((*lines, "# EOF\n"))


def answers(url):
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False


def test_a_real_prometheus_tells_of_the_time_before_the_start(tmp_path, monkeypatch):
    programs = [shutil.which(name) for name in ("promtool", "prometheus")]
    if not all(programs):
        missing("there is no Prometheus: Debian's package prometheus brings it")
    (tmp_path / "metrics").write_text(metrics_of_the_time_before(int(time.time()) // 60 * 60))
    blocks = ["tsdb", "create-blocks-from", "openmetrics", tmp_path / "metrics", tmp_path / "data"]
    subprocess.run([programs[0], *blocks], check=True, capture_output=True)
    (tmp_path / "prometheus.yml").write_text("{}")
    url = f"http://127.0.0.1:{free_port()}"
    options = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    listen = f"--web.listen-address={url.removeprefix('http://')}"
    prometheus = Process([programs[1], *options, listen], tmp_path / "prometheus.log")
    monkeypatch.setenv("QUOTAWARD_HISTORY__PROMETHEUS", url)
    (tmp_path / "manifests").mkdir()
    story.company_with_a_quota(tmp_path / "manifests")
    served = Served(tmp_path / "manifests", tmp_path / "quotaward.log")
    served.start()  # nobody waits for a Prometheus that is not there
    lacking = "the time before the start is not known"
    try:
        wait_until(lambda: lacking in httpx.get(f"{served.url}/api/v1/history").json()["incomplete"], "the error")
    finally:
        served.process.stop()
    prometheus.start()
    try:
        prometheus.wait_until_ready(lambda: answers(f"{url}/-/ready"))
        served.start()

        def history(whose):
            return httpx.get(f"{served.url}/api/v1/history?{whose}&since={HOURS}h&step=1h").json()

        wait_until(lambda: history("queue=team-1")["items"] and not history("queue=team-1")["incomplete"], "all of it")
        of_quota = history("quota=one/quota")
        cpu = of_quota["items"][0]["resources"]["cpu"]
        assert cpu["used"][1:5] == ["5500m"] * 4
        assert (cpu["max"][1], cpu["max"][-1]) == ("7", "8")
        assert of_quota["items"][0]["waiting"][1:5] == [4] * 4
        assert of_quota["since"] < of_quota["countedSince"]
        company = history("queue=company")["items"][0]
        assert company["resources"]["cpu"]["deserved"][1:5] == ["12"] * 4
        assert sum(filter(None, company["evicted"])) == 3
        assert company["waiting"][1:5] == [4] * 4
    finally:
        served.process.stop()
        prometheus.stop()
