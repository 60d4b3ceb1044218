"""The pages of an elastic quota and of a namespace, as data."""

from app.history.recorder import QUOTA
from app.problems import Problem
from app.store.elastic_quotas import ELASTIC_QUOTAS
from app.store.namespaces import NAMESPACES
from app.web.asked import Asked
from app.web.cells import Cell, Link, queue_link, tenant_cells
from app.web.figures import quota_rows, tenant_row
from app.web.subject import Subject, command, scarce_first, yaml_of
from app.web.subject_tables import tables_of_namespace
from app.web.tables import table_of
from app.whatif.rendering import namespace_manifest, quota_manifest


async def quota_page(asked: Asked, namespace: str, name: str) -> Subject:
    """Shows an elastic quota. Raises Problem (404) if it does not exist."""
    row = next((row for row in quota_rows(asked.cluster, namespace, 0) if row.name == name), None)
    if row is None:
        raise Problem(404, f"there is no ElasticQuota {namespace}/{name}")
    return Subject(
        "ElasticQuota",
        f"{namespace}/{name}",
        (Link(f"Namespace {namespace}", ("namespaces", namespace)),),
        (("In force", "yes" if row.in_force else "no"),),
        scarce_first(row.bars),
        "min",
        "max",
        row.conditions,
        asked.happened((QUOTA, namespace), row.bars, "min", "max") if row.in_force else None,
        await tables_of_namespace(asked, namespace),
        (
            command("kubectl", "-n", namespace, "get", "elasticquotas.scheduling.x-k8s.io", name, "-o", "yaml"),
            command("kubectl", "-n", namespace, "edit", "elasticquotas.scheduling.x-k8s.io", name),
            command("quotaward", "quotas", "-n", namespace),
            command("quotaward", "waiting", "-n", namespace),
        ),
        yaml_of(ELASTIC_QUOTAS, quota_manifest(asked.cluster.quotas[namespace][name])),
    )


async def namespace_page(asked: Asked, namespace: str) -> Subject:
    """Shows a namespace with its quotas, and its part of its queue. Raises Problem (404) if it does not exist."""
    cluster = asked.cluster
    if not cluster.knows_namespace(namespace):
        raise Problem(404, f"there is no namespace {namespace}")
    known = cluster.membership.namespaces.get(namespace)
    queue = known.queue if known else ""
    quotas = {row.name: row for row in quota_rows(cluster, namespace, 0)}
    in_force = next((row for row in quotas.values() if row.in_force), None)
    facts: tuple[tuple[str, Cell], ...] = ()
    if queue:
        facts = (("Queue", queue_link(cluster, queue)),)
        tenant = cluster.ledger.queues.known(queue).tenants.get(namespace)
        if tenant is not None:
            _, weight, share, taken, entitled = tenant_cells(tenant_row(cluster, namespace, tenant), namespace)
            facts += (
                ("Weight in the queue", weight),
                ("Share", share),
                ("Used in the queue", taken),
                ("Entitled to", entitled),
            )
    table = await table_of(
        asked,
        "Quotas",
        ("ElasticQuota", "In force"),
        "quotas",
        quotas,
        lambda name: (Link(name, ("quotas", namespace, name)), "yes" if quotas[name].in_force else "no"),
    )
    return Subject(
        "Namespace",
        namespace,
        (),
        facts,
        scarce_first(in_force.bars) if in_force else (),
        "min",
        "max",
        in_force.conditions if in_force else (),
        asked.happened((QUOTA, namespace), in_force.bars, "min", "max") if in_force else None,
        (*([table] if quotas else []), *await tables_of_namespace(asked, namespace)),
        (
            command("kubectl", "get", "namespace", namespace, "-o", "yaml"),
            command("quotaward", "quotas", "-n", namespace),
            command("quotaward", "waiting", "-n", namespace),
        ),
        yaml_of(NAMESPACES, namespace_manifest(known)) if known else "",
    )
