"""How long pods run under a quota or a queue, as REST shows it."""

from math import inf

from policy.cluster.cluster import Cluster
from policy.objects.queue import Queue
from policy.objects.run_time import Key, text_of
from policy.quota.elastic_quota import ElasticQuota


def run_times_of(cluster: Cluster, of: ElasticQuota | Queue, key: Key) -> dict[str, str]:
    """Returns the times in force that a quota or a queue says itself: ``default``, ``min`` and ``max``.

    A condition tells of one that cannot be read.
    """
    longest, shortest = cluster.ledger.run_time_limits.most, cluster.protection.least
    times = {"default": of.run_time, "min": shortest.get(key, 0), "max": longest.get(key, 0)}
    return {name: text_of(int(seconds)) for name, seconds in times.items() if 0 < seconds < inf}
