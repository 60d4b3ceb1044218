"""A folder of manifests, with what a test puts there."""

import yaml

from app.sources.manifests import ManifestSource
from tests.unit.app.given import empty_store, names_of_nodes, node, pod, quota

GOOD = {"n1": node("n1"), "a/p": pod("p"), "a/quota": quota("a", max={"cpu": "2"})}


class Folder:
    """A folder of manifests, and the store that is kept true to it."""

    def __init__(self, path):
        self.path = path
        self.store = empty_store()
        self.cluster = self.store.cluster

    def write(self, name, *documents):
        """Documents: objects, or text as it is."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        texts = (each if isinstance(each, str) else yaml.dump(each, Dumper=yaml.CSafeDumper) for each in documents)
        file.write_text("---\n".join(texts))
        return file

    def source(self):
        return ManifestSource(self.path, self.store)

    def known(self):
        quotas = {f"{namespace}/{name}" for namespace, named in self.cluster.quotas.items() for name in named}
        return {
            *names_of_nodes(self.store),
            *(f"{pod.namespace}/{pod.name}" for pod in self.cluster.pods.values()),
            *quotas,
        }


def bad_quota(text, namespace="b"):
    head = (
        f"{{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: {{name: bad, namespace: {namespace}"
    )
    return f"{head}}}, spec: {text}}}\n"
