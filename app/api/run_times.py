"""How long pods run under a quota or a queue, as REST shows it."""

from policy.cluster.cluster import Cluster
from policy.objects.queue import Queue
from policy.objects.run_time import Key, text_of
from policy.quota.elastic_quota import ElasticQuota


def run_times_of(cluster: Cluster, of: ElasticQuota | Queue, key: Key) -> dict[str, str]:
    """Returns the times in force that a quota or a queue says itself: ``default``, ``min`` and ``max``."""
    longest, shortest = cluster.ledger.run_time_limits.most, cluster.protection.least
    times = {"default": of.run_time, "min": shortest.get(key, 0), "max": longest.get(key, 0)}
    return {name: text_of(seconds) for name, seconds in times.items() if seconds > 0}
