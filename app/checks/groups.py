"""Pod groups that are missing, or have fewer pods than they need."""

from collections import Counter
from collections.abc import Iterable, Iterator

from app.checks.documents import Document
from app.checks.finding import Finding, warning
from app.checks.keys import pod_templates
from app.checks.near import nearest
from app.store.heeded import GROUP, LEGACY_GROUP, VOLCANO_GROUP
from policy.cluster.cluster import Cluster

NAMED_BY = (GROUP, LEGACY_GROUP, VOLCANO_GROUP)


def group_findings(cluster: Cluster, documents: Iterable[Document]) -> Iterator[Finding]:
    """Checks the groups that the pods of a folder name. Templates may create more members."""
    groups = cluster.membership.groups
    members = Counter((pod.namespace, pod.group) for pod in cluster.pods.values() if pod.group)
    to_come = set(_named_by_templates(documents))
    for (namespace, name), number in sorted(members.items()):
        plain = name.rpartition("/")[2]
        group = groups.get((namespace, name))
        if group is None:
            there = {each.rpartition("/")[2] for of, each in groups if of == namespace}
            of_another_kind = f"; the group of that name is of another kind than {name.partition('/')[0]}"
            close = nearest(plain, there)
            hint = of_another_kind if plain in there else f"; {close} exists" if close else ""
            who = f"{number} pod{'s name' if number > 1 else ' names'} it"
            yield warning(f"PodGroup {namespace}/{plain} does not exist, and {who}: each starts on its own{hint}")
        elif number < group.minimum and (namespace, plain) not in to_come:
            yield warning(
                f"PodGroup {namespace}/{plain} needs {group.minimum} pods, but only {number} name it: none starts"
            )


def _named_by_templates(documents: Iterable[Document]) -> Iterator[tuple[str, str]]:
    """Yields namespace and name of each group that a pod template names."""
    for document in documents:
        if document.kind == "Pod":
            continue
        for template in pod_templates(document.content.get("spec")):
            metadata = template.get("metadata")
            fields = [metadata.get(field) for field in ("labels", "annotations")] if isinstance(metadata, dict) else []
            for given in fields:
                if isinstance(given, dict):
                    yield from ((document.namespace, str(given[key])) for key in NAMED_BY if key in given)
