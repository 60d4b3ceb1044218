"""The pods of the examples are as an API server accepts them, so that the examples can be applied to a cluster."""

from pathlib import Path

import pytest
import yaml

EXAMPLES = Path(__file__).parents[2] / "examples"


def pods():
    """Yields the file and the manifest of each pod."""
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for document in yaml.load_all(path.read_text(), yaml.CSafeLoader):
            for each in document.get("items", [document]) if document else ():
                if each["kind"] == "Pod":
                    yield pytest.param(each, id=f"{path.parent.name}-{each['metadata']['name']}")


@pytest.mark.parametrize("pod", list(pods()))
def test_pods_of_examples_can_be_applied(pod):
    for container in pod["spec"]["containers"]:
        assert container["image"]
        resources = container.get("resources", {})
        limits, requests = resources.get("limits", {}), resources.get("requests", {})
        extended = {resource: amount for resource, amount in requests.items() if "/" in resource}
        assert extended.items() <= limits.items(), "what cannot be overcommitted needs a limit"
