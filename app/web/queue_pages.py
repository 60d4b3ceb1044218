"""The pages of a queue and of all queues, as data."""

from app.history.recorder import QUEUE
from app.problems import Problem
from app.store.queues import QUEUES
from app.web.ahead import ahead
from app.web.asked import Asked
from app.web.cells import Cell, Link, own, sums, tenant_cells, used
from app.web.figures import QueueRow, queue_row, tenant_row
from app.web.subject import Subject, command, scarce_first, yaml_of
from app.web.subject_tables import changed_table, evicted_table, in_namespaces, placed_table, waiting_table
from app.web.tables import table_of
from app.whatif.rendering import queue_manifest
from policy.explain.terminating import conditions_of_queue


async def queue_page(asked: Asked, name: str) -> Subject:
    """Shows a queue with all below it. Raises Problem (404) if it does not exist."""
    cluster = asked.cluster
    if name not in cluster.queues:
        raise Problem(404, f"there is no queue {name}")
    row, tree = queue_row(cluster, name, 0), cluster.ledger.queues.tree
    inside = frozenset(tree.inside(name))
    accounts = cluster.ledger.queues
    namespaces = {each for queue in inside for each in accounts.known(queue).tenants}
    tenants = accounts.known(name).tenants
    children = await table_of(
        asked,
        "Queues below it",
        ("Queue", "Weight", "State", "Allocated", "Deserved"),
        "children",
        tree.children_of(name),
        lambda child: _child_cells(queue_row(cluster, child, 0)),
    )
    members = await table_of(
        asked,
        "Namespaces",
        ("Namespace", "Weight", "Share", "Allocated", "Entitled to"),
        "namespaces",
        tenants,
        lambda namespace: tenant_cells(tenant_row(cluster, namespace, tenants[namespace]), namespace),
    )
    waits = await waiting_table(asked, None, inside)
    coming = await ahead(cluster, asked.starts, lambda pod: cluster.queue_of(pod) in inside, asked.now)
    return Subject(
        "Queue",
        name,
        tuple(Link(each, ("queues", each)) for each in row.above),
        (
            ("State", row.state),
            ("Weight", str(row.weight)),
            ("Priority", str(row.priority)),
            ("Others may take back what it borrows", "yes" if row.reclaimable else "no"),
        ),
        scarce_first(row.bars),
        "deserved",
        "capability",
        tuple(conditions_of_queue(cluster, name)),
        asked.happened((QUEUE, name), row.bars, "deserved", "capability"),
        (
            *(table for table in (children, members) if table.total),
            waits,
            await placed_table(asked, in_namespaces(cluster, namespaces), lambda pod: cluster.queue_of(pod) in inside),
            await evicted_table(asked, lambda gone: gone.queue in inside),
            await changed_table(asked, (QUEUE, name)),
        ),
        (
            command("kubectl", "get", "queues.scheduling.volcano.sh", name, "-o", "yaml"),
            command("kubectl", "edit", "queues.scheduling.volcano.sh", name),
            command("quotaward", "waiting", "--queue", name),
            command("quotaward", "queues", "--tree"),
        ),
        yaml_of(QUEUES, queue_manifest(cluster.queues[name])),
        coming,
    )


async def queues_page(asked: Asked) -> Subject:
    """Shows all queues in a compact table, a queue before those below it."""
    cluster = asked.cluster
    tree = cluster.ledger.queues.tree
    queues = {"/".join([*reversed(list(tree.above(name))), name]): name for name in cluster.queues}

    def cells(path: str) -> tuple[Cell, ...]:
        row = queue_row(cluster, queues[path], 0)
        wanted = sums({bar.resource: bar.wanted or 0 for bar in row.bars})
        states = ", ".join([*row.states, *([] if row.state == "Open" else [row.state])])
        return Link(path, ("queues", row.name)), str(row.weight), used(row.bars), own(row.bars), wanted, states

    columns = ("Queue", "Weight", "Allocated", "Deserved", "Asked for", "State")
    table = await table_of(asked, "All queues", columns, "queues", queues, cells, "There is no Queue.")
    return Subject("Queues", "", (), (), tables=(table,), commands=(command("quotaward", "queues", "--tree"),))


def _child_cells(row: QueueRow) -> tuple[Cell, ...]:
    return Link(row.name, ("queues", row.name)), str(row.weight), row.state, used(row.bars), own(row.bars)
