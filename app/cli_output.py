"""Output of the client commands."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from app.amounts import is_more, readable
from policy.objects.conditions import EXCEEDED

console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
if not console.is_terminal:
    console.width = 10_000  # a program that reads it needs all of it


def table_of(*columns: str) -> Table:
    """Returns an empty table with these columns, which stay in one line each."""
    return Table(*(Column(each, no_wrap=True) for each in columns), box=None, pad_edge=False)


RUN_TIMES = {"default": "RUN TIME", "min": "MIN RUN TIME", "max": "MAX RUN TIME"}
"""The columns of ``-o wide`` for how long pods run under a quota or a queue."""


def print_quotas(document: dict[str, Any], *, wide: bool = False) -> None:
    """Prints a row per quota and resource; ``wide``: with the times that pods run. New columns come last."""
    more = RUN_TIMES.values() if wide else ()
    table = table_of("NAMESPACE", "NAME", "RESOURCE", "USED", "MIN", "MAX", "BORROWED", "CONDITIONS", *more)
    for quota in document["items"]:
        rows = sorted({*quota["used"], *quota["min"], *quota["max"]}) or [""]
        for resource in rows:
            figures = [_figure(quota[field], resource) for field in ("used", "min", "max", "borrowed")]
            conditions = ", ".join(_conditions(quota, "used", "max", resource))
            times = _run_times(quota) if wide else ()
            table.add_row(quota["namespace"], quota["name"], resource, *figures, conditions, *times)
    if table.row_count:
        console.print(table)
    else:
        console.print("no elastic quotas")


def print_queue_tree(document: dict[str, Any], *, wide: bool = False) -> None:
    """Prints the same rows as ``print_queues``, each queue below its parent."""
    by_name = {queue["name"]: queue for queue in document["items"]}
    below = {child for queue in by_name.values() for child in queue["children"] if queue["name"] != "root"}

    def drawn(name: str, lead: str, branch: str) -> Iterator[dict[str, Any]]:
        queue = by_name[name]
        yield queue | {"name": f"{lead}{branch}{name}"}
        inner = lead + {"├─ ": "│  ", "└─ ": "   "}.get(branch, "")
        children = [each for each in queue["children"] if each in by_name] if name != "root" else []
        for child in children:
            yield from drawn(child, inner, "└─ " if child == children[-1] else "├─ ")

    tops = [name for name in by_name if name not in below]
    print_queues({"items": [row for name in tops for row in drawn(name, "", "")]}, wide=wide)


def print_queues(document: dict[str, Any], *, wide: bool = False) -> None:
    """Prints a row per queue and resource, and below it one per namespace; ``wide``: with the times that pods run.

    The guarantee of a queue with children is what counts there: its own, or the sum of theirs.
    """
    names, more = ("QUEUE", "NAMESPACE", "WEIGHT", "RESOURCE"), RUN_TIMES.values() if wide else ()
    table = table_of(*names, "ALLOCATED", "DESERVED", "GUARANTEE", "CAPABILITY", "CONDITIONS", *more)
    for queue in document["items"]:
        state = [] if queue["state"] == "Open" else [queue["state"]]
        rows = sorted({*queue["allocated"], *queue["deserved"]}) or [""]
        for resource in rows:
            guarantee = "effectiveGuarantee" if queue["children"] and "effectiveGuarantee" in queue else "guarantee"
            fields = ("allocated", "deserved", guarantee, "capability")
            figures = [_figure(queue[field], resource) for field in fields]
            conditions = ", ".join([*state, *_conditions(queue, "allocated", "capability", resource)])
            times = _run_times(queue) if wide else ()
            table.add_row(queue["name"], "", str(queue["weight"]), resource, *figures, conditions, *times)
            for tenant in queue["namespaces"]:
                used, entitled = (_figure(tenant[field], resource) for field in ("allocated", "entitled"))
                table.add_row("", tenant["namespace"], str(tenant["weight"]), resource, used, entitled, "", "", "")
    if table.row_count:
        console.print(table)
    else:
        console.print("no queues")


def _conditions(shown: dict[str, Any], used: str, most: str, resource: str) -> Iterator[str]:
    """Yields the conditions of a quota or queue, but ``Exceeded`` only beside a resource of which more is used."""
    beyond = resource in shown[most] and is_more(shown[used].get(resource, "0"), shown[most][resource])
    for condition in shown["conditions"]:
        if condition["type"] != EXCEEDED or beyond:
            yield condition["type"]


def print_explanation(document: dict[str, Any]) -> None:
    """Prints a paragraph: the verdict, its figures, the holders of what is lacking, and remedies."""
    console.print(document["summary"])


def print_gates(document: dict[str, Any], **_: bool) -> None:
    """Prints a row per waiting job, in the order in which their gates would open."""
    table = table_of("QUEUE", "PLACE", "JOB", "PODS", "PRIORITY", "WAITS FOR")
    for each in document["items"]:
        waits_for = each["message"] or "its turn"
        job = f"{each['kind']} {each['job']}" if each.get("kind") else each["job"]
        table.add_row(each["queue"], str(each["place"]), job, str(each["pods"]), str(each["priority"]), waits_for)
    _print_first(table, document["total"], "no pods wait at gates")


def print_jobs(document: dict[str, Any], **_: bool) -> None:
    """Prints a row per Job: those that are starting, and those that wait in the order in which they would start."""
    table = table_of("QUEUE", "PLACE", "JOB", "PODS", "PRIORITY", "STATE", "SINCE", "WHY")
    for each in document["items"]:
        kind = "" if each.get("kind", "Job") == "Job" else f"{each['kind']} "  # an older server names none
        name, place = f"{kind}{each['namespace']}/{each['name']}", str(each["place"] or "-")
        pods = f"{each['minPods']}-{each['pods']}" if 0 < each.get("minPods", 0) < each["pods"] else str(each["pods"])
        figures = (pods, str(each["priority"]), each["state"], each["since"])
        table.add_row(each["queue"], place, name, *figures, each["message"])
    _print_first(table, document["total"], "no Jobs wait as a whole")


def print_waiting(document: dict[str, Any], *, wide: bool = False) -> None:
    """Prints a row per job that waits; ``wide``: with the names of its first pods. New columns come last."""
    more = ("NAMES OF PODS",) if wide else ()
    table = table_of("NAMESPACE", "KIND", "NAME", "PODS", "QUEUE", "PLACE", "SINCE", "RULE", "WHY", *more, "EXPECTED")
    for each in document["items"]:
        place, pods = str(each["place"] or "-"), (", ".join(each["podNames"]),) if wide else ()
        names = (each["namespace"], each["kind"].partition(".")[0], each["name"], str(each["pods"]))
        start = (each.get("expectedStart") or {}).get("at") or "-"  # an older server says none
        table.add_row(*names, each["queue"], place, each["since"], each["rule"], each["message"], *pods, start)
    _print_first(table, document["total"], "nothing waits")


def print_history(document: dict[str, Any]) -> None:
    """Prints a row per queue and quota: what happened in the whole period."""
    table = table_of("KIND", "NAME", "ADMITTED", "REFUSED", "EVICTED", "RESERVED", "MOST WAITING")
    for each in document["items"]:
        refused = [sum(filter(None, numbers)) for numbers in each["refused"].values()]
        sums = (each["admitted"], [sum(refused)], each["evicted"], each["reserved"], each["waiting"])
        name = namespaced(each) if each["namespace"] else each["name"]
        table.add_row(each["kind"], name, *(_number(numbers[0]) for numbers in sums))
    _print_known(table, document)


def print_history_of_one(document: dict[str, Any]) -> None:
    """Prints a row per step, with a column per figure and resource."""
    columns = dict[str, list[Any]]()
    for each in document["items"]:
        for resource, series in each["resources"].items():
            for figure, amounts in series.items():
                texts = [None if amount is None else readable(resource, amount) for amount in amounts]
                columns[f"{resource} {figure}".upper()] = texts
        columns |= {figure.upper(): each[figure] for figure in ("waiting", "admitted", "evicted", "reserved")}
        columns |= {f"REFUSED BY {rule}": numbers for rule, numbers in each["refused"].items()}
    table = table_of("SINCE", *columns)
    for index, at in enumerate(document["at"]):
        table.add_row(at, *(_number(values[index]) for values in columns.values()))
    _print_known(table, document)


def _print_known(table: Table, document: dict[str, Any]) -> None:
    if table.row_count:
        console.print(table)
    since = document["since"]
    console.print(f"known since {since}" if since else "nothing is known yet")
    if since and (evictions := document.get("evictionsSince") or since) < since:  # an older server does not say it
        console.print(f"evictions known since {evictions}, as far as Events tell")
    if document["incomplete"]:
        console.print(document["incomplete"])


def _number(value: Any) -> str:
    return "-" if value is None else str(value)


def named(item: dict[str, Any]) -> str:
    """Returns the name of an object without a namespace."""
    return str(item["name"])


def namespaced(item: dict[str, Any]) -> str:
    """Returns the name of an object with its namespace."""
    return f"{item['namespace']}/{item['name']}"


def gated_name(item: dict[str, Any]) -> str:
    """Returns the name of a job at its gates with its namespace."""
    return str(item["job"])


def explained_name(item: dict[str, Any]) -> str:
    """Returns what ``quotaward explain`` takes: the Job, the pod, or the first pod of a group."""
    if item.get("podNames"):
        return f"{item['namespace']}/{item['podNames'][0]}"
    return f"{item['namespace']}/{item.get('kind', 'Job').lower()}/{item['name']}"


def print_plan(document: dict[str, Any]) -> None:
    """Prints the planned evictions, and the waiting pods for which nobody is evicted."""
    for eviction in document["evictions"]:
        price = f" (evicting it fails Job {eviction['failsJob']})" if eviction.get("failsJob") else ""
        if suspended := eviction.get("suspendsJob"):  # of another kind it is named with its kind
            price = f" ({suspended if ' ' in suspended else f'Job {suspended}'} is suspended)"
        price = f" (Job {eviction['lowersJob']} is lowered)" if eviction.get("lowersJob") else price
        console.print(f"evict {eviction['pod']} from {eviction['node']} for {eviction['for']}{price}")
    for waiting in document["waiting"]:
        console.print(f"{waiting['pod']} waits: {waiting['message']}")
    if not document["evictions"] and not document["waiting"]:
        console.print(
            "no pods are to be evicted, and no pods wait for an eviction (quotaward top counts all waiting pods)"
        )


def print_reservations(document: dict[str, Any], **_: bool) -> None:
    """Prints a row per reservation."""
    table = table_of("NAME", "REASON", "JOB", "POD", "NODE", "VICTIMS", "SINCE", "PROMISED")
    for each in document["items"]:
        names = ", ".join(each["victims"])
        promised = each.get("promisedStart") or "-"
        table.add_row(
            each["name"], each["reason"], each["job"], each["pod"], each["node"], names, each["since"], promised
        )
    if table.row_count:
        console.print(table)
    else:
        console.print("no reservations")


def _print_first(table: Table, total: int, none: str) -> None:
    """Prints the first rows of a list, and how many more there are."""
    if not table.row_count:
        console.print(none)
        return
    console.print(table)
    if total > table.row_count:
        console.print(f"and {total - table.row_count} more")


def _run_times(item: dict[str, Any]) -> list[str]:
    """Returns the cells of ``RUN_TIMES``; an older server says none."""
    said = item.get("runTimes", {})
    return [said.get(each, "-") for each in RUN_TIMES]


def _figure(amounts: dict[str, str], resource: str) -> str:
    return readable(resource, amounts[resource]) if resource in amounts else "-"
