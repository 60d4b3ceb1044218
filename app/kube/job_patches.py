"""Starts and suspends a Job by an exact patch: nothing else of it changes, and it changes only as it was seen."""

from typing import Any

from policy.objects.pod import StandsFor


def start(job: StandsFor) -> list[dict[str, Any]]:
    """Returns a JSON patch that ends the suspension of this Job. The server refuses it if the Job has changed."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": job.uid},
        {"op": "test", "path": "/spec/suspend", "value": True},
        {"op": "test", "path": "/spec/parallelism", "value": job.parallelism},
        {"op": "replace", "path": "/spec/suspend", "value": False},
    ]


def suspension(uid: str) -> list[dict[str, Any]]:
    """Returns a JSON patch that suspends the Job with this UID. The server refuses it if it is suspended already."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": "/spec/suspend", "value": False},
        {"op": "replace", "path": "/spec/suspend", "value": True},
    ]
