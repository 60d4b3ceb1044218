"""What queues deserve and use stands in their status, written with the rights of the manifests."""

from tests.controlplane.objects import pods
from tests.controlplane.pod_watch import PodWatch
from tests.controlplane.processes import wait_until


def test_the_status_of_a_queue_tells_what_it_deserves_and_uses_and_keeps_its_state(cluster, scheduler):
    cluster.node(cpu=8)
    cluster.queue("one", weight=3)
    cluster.queue("other", weight=0)
    cluster.api.patch("queues", "one/status", {"status": {"state": "Open", "allocated": {}}})
    mine, theirs = cluster.namespace(queue="one"), cluster.namespace(queue="other")
    with PodWatch(cluster.api, mine) as watch, PodWatch(cluster.api, theirs) as watch_theirs:
        cluster.api.create_all(pods(8, mine))
        cluster.api.create_all(pods(8, theirs))
        wait_until(lambda: watch.bound + watch_theirs.bound == 8, "the node is full")

        def shows(name, **expected):
            status = cluster.api.get("queues", name).get("status", {})
            return all(status.get(field, {}).get("cpu", "0") == cpu for field, cpu in expected.items())

        wait_until(lambda: shows("one", deserved="6"), "one deserves three quarters")
        wait_until(lambda: shows("other", deserved="2"), "the other deserves a quarter")
        wait_until(lambda: shows("one", allocated="6", used="6", preempting="0"), "one has what it deserves")
        wait_until(lambda: shows("other", allocated="2", used="2", preempting="0"), "the other too")
    assert cluster.api.get("queues", "one")["status"]["state"] == "Open"
    [condition] = cluster.api.get("queues", "other")["status"]["conditions"]
    assert (condition["type"], "spec.weight" in condition["message"]) == ("NotEnforced", True)
    cluster.api.delete_all("pods", mine)
    wait_until(lambda: shows("one", allocated="0", used="0"), "nothing is used any more")
