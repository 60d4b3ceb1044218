"""The cluster in which the recorded requests were made, in the words of a case."""

from typing import Any

from tests.wire.recordings import recording

NODES = {"n1": {"cpu": 4, "memory": "16Gi"}, "n2": {"cpu": 4, "memory": "16Gi"}}


def pending(name: str) -> dict[str, Any]:
    """The pod that the recording is about."""
    return _words(recording(name).request["Pod"])


def proposed_victims(name: str) -> list[dict[str, Any]]:
    """The victims that the recording proposes; of a half of each node where it tells only their UIDs."""
    request = recording(name).request
    if request["NodeNameToVictims"]:
        told = request["NodeNameToVictims"].values()
        return [_words(pod) | {"node": pod["spec"]["nodeName"]} for each in told for pod in each["Pods"]]
    return [
        {"name": f"victim-{number}", "ns": "b", "node": node, "cpu": 2, "priority": 10, "uid": pod["UID"]}
        for node, told in request["NodeNameToMetaVictims"].items()
        for number, pod in enumerate(told["Pods"])
    ]


def immovable(*nodes: str) -> list[dict[str, Any]]:
    """On each node a pod that takes half of it and that no recorded pod may preempt."""
    return [{"name": f"keep-{node}", "ns": "b", "node": node, "cpu": 2, "priority": 2000} for node in nodes]


def _words(pod: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = pod["metadata"], pod["spec"]
    return {
        "name": metadata["name"],
        "ns": metadata["namespace"],
        "uid": metadata["uid"],
        "labels": metadata.get("labels", {}),
        "priority": spec["priority"],
        **spec["containers"][0]["resources"]["requests"],
    }
