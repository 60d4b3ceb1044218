"""How large the clusters are that are measured: ``QUOTAWARD_BENCH_SCALE`` divides them, for a trial."""

import os

SCALE = int(os.environ.get("QUOTAWARD_BENCH_SCALE", "1"))
NODES = max(10, 5000 // SCALE)
PODS = 50_000 // SCALE
QUOTAS = max(8, 1000 // SCALE)
QUEUES = max(2, 100 // SCALE)
