"""The page of a node, as data."""

from app.problems import Problem
from app.store.nodes import NODES as NODE_KIND
from app.web.asked import Asked
from app.web.cells import few, kept_for, time_cell
from app.web.figures import Bar
from app.web.subject import Subject, command, scarce_first, yaml_of
from app.web.subject_tables import placed_table
from app.web.tables import table_of
from app.whatif.rendering import node_manifest
from policy.cluster.shown_resources import shown


async def node_page(asked: Asked, name: str) -> Subject:
    """Shows a node, what runs there, and for whom room is kept there. Raises Problem (404) if it is not known."""
    cluster = asked.cluster
    site = cluster.table.site(name)
    if site is None or site.node is None:
        raise Problem(404, f"there is no node {name}")
    node, taken = site.node, dict(site.used)
    here = [placed for uid in site.pods if (placed := cluster.table.placed(uid)) is not None]
    kept = {each.name: each for each in cluster.reservations.all() if each.node == name and not each.failed_at}
    for_whom = await table_of(
        asked,
        "Who waits for room here",
        ("Pod", "Why", "Who goes for it", "Since"),
        "reservations",
        kept,
        lambda key: (
            kept_for(kept[key]),
            kept[key].reason,
            few([each.title for each in kept[key].victims]) or "nobody",
            time_cell(kept[key].since),
        ),
        nobody="No room is kept here.",
    )
    taints = [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
    return Subject(
        "Node",
        name,
        (),
        (
            ("Ready", "yes" if node.ready else "no"),
            ("Takes new pods", "yes" if node.usable else "no"),
            ("Taints", few(taints) or "none"),
        ),
        scarce_first(
            Bar(resource, taken.get(resource, 0), most=most)
            for resource, most in shown(cluster, node.allocatable).items()
            if most or taken.get(resource)
        ),
        most="allocatable",
        tables=(for_whom, await placed_table(asked, (here,), lambda _: True)),
        commands=(
            command("kubectl", "describe", "node", name),
            command("kubectl", "get", "node", name, "-o", "yaml"),
            command("kubectl", "get", "pods", "-A", "--field-selector", f"spec.nodeName={name}"),
        ),
        manifest=yaml_of(NODE_KIND, node_manifest(node)),
    )
