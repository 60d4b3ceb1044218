"""The page of a pod group, as data."""

from app.api.jobs import group_model_steps
from app.pause import at_leisure
from app.problems import Problem
from app.store.kinds import KINDS
from app.web.asked import Asked
from app.web.cells import Cell, Link, queue_link, sums
from app.web.subject import Subject, command, yaml_of
from app.web.tables import table_of
from app.whatif.rendering import group_manifest
from policy.cluster.shown_resources import shown
from policy.objects.conditions import Condition


async def gang_page(asked: Asked, namespace: str, kind: str, name: str) -> Subject:
    """Shows a pod group with its members. Raises Problem (404) if it does not exist."""
    cluster, key = asked.cluster, (namespace, f"{kind}/{name}")
    known = cluster.membership.groups.get(key)
    if known is None:
        raise Problem(404, f"there is no pod group {namespace}/{name}")
    of_kind = next(each for each in KINDS if each.label == kind)
    group = await at_leisure(group_model_steps(cluster, *key, asked.settings.reserve.terms, asked.now))
    pods = {pod.name: pod for pod in cluster.groups.members(key)}
    queue = cluster.queue_of(min(pods.values(), key=lambda pod: pod.name)) if pods else ""

    def cells(member: str) -> tuple[Cell, ...]:
        pod = pods[member]
        placed = cluster.table.placed(pod.uid)
        on = pod.node or (placed.site.name if placed else "")
        state = "admitted" if pod.uid in cluster.grants else "waits" if pod.pending else "runs" if pod.node else "ended"
        request = sums(shown(cluster, pod.request))
        return Link(member, ("pods", namespace, member)), state, Link(on, ("nodes", on) if on else ()), request

    members = await table_of(asked, "Members", ("Pod", "State", "Node", "Requests"), "members", pods, cells)
    waiting_member = next((name for name in sorted(pods) if pods[name].pending), "")
    return Subject(
        "Pod group",
        f"{namespace}/{name}",
        (Link(f"Namespace {namespace}", ("namespaces", namespace)),),
        (
            ("Kind", kind),
            ("Queue", queue_link(cluster, queue)),
            ("Members that it takes", str(group.minimum)),
            ("Run or are admitted", str(group.ready)),
            ("Wait", str(group.pending)),
            ("Nodes that are reserved", str(group.reserved)),
        ),
        conditions=tuple(Condition(each.type, each.reason, each.message) for each in group.conditions),
        tables=(members,),
        commands=(
            command("kubectl", "-n", namespace, "get", kind, name, "-o", "yaml"),
            *([command("quotaward", "explain", f"{namespace}/{waiting_member}")] if waiting_member else []),
            command("quotaward", "waiting", "-n", namespace),
        ),
        manifest=yaml_of(of_kind, group_manifest(known)),
    )
