"""What objects consist of: to compare them as wholes, and to see what grows."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

from app.controllers.keyed_backoff import KeyedBackoff
from policy.cluster.budgets import Budgets
from policy.cluster.cluster import Cluster
from policy.nodes.table import NodeTable
from policy.quota.changes import Changes
from policy.quota.proportion import Division
from policy.quota.queue_account import Tenant

DECIDES = ("filter", "admit", "check", "refusal", "why_waits", "grant")
"""What decides in a cluster: methods of a part of it."""
HISTORY = {
    "Cluster": ("generations", "epoch", "queue_of", "ended", *DECIDES),
    "Ledger": ("changes", "generations", "queue_of", "own_queue_of", "_has_claim"),
    "RunTimeLimits": ("declared",),
    "Lent": ("_ledger", "_known", "_as_of"),
    "QueueLedger": ("columns", "_changes", "_generations", "as_of"),
    "QueueAccount": ("above", "counted", "rows", "unread", "lent", "contended", "stale"),
    "Tenant": ("_rows", "_at"),
    "Branches": ("stale",),
    "Account": ("lent",),
    "Gangs": ("_backoff", "_refused"),
    "ReservedNodes": ("_known", "kept_out", "_with_room", "_moves"),
    "Reserved": ("version", "_unread"),
    "ComeMembers": ("_come", "_at_gate", "_asks"),
    "JobMembers": ("_known", "_latest"),
    "Attempts": ("unschedulable_since", "untried_since", "ahead"),
    "Destinations": ("outgrown",),
    "QueueingHints": ("helped", "_rooms", "_looked", "_less_is_reserved"),
    "QueueChanges": ("_begun", "_queues", "_membership"),
    "InFlight": ("somebody_else_admits", "asked_at", "_settled_at", "settle_time"),
    "Leaving": ("_asked",),
    "Deletions": ("now",),
    "Protection": ("now", "since", "_bound", "_jobs", "_starts"),
    "Deadlines": ("_heap",),
    "Gates": ("_generations", "_since", "moves_of_jobs"),
    "Line": ("arrivals",),
    "OtherJobs": ("_labels",),
    "QueuedJobs": ("_now", "_made", "late", "_settled"),
    "EarlyPods": ("_by_owner",),
    "Grants": ("_failures", "_deadlines", "_seen"),
    "Devices": ("_now", "_same", "_without_claims"),
    "ClaimPayers": ("_payers",),
    "DevicePools": ("_counts", "_stale", "_of_nodes", "_amounts"),
    "UnschedulablePods": (
        *("_deadlines", "_unlocked", "_judged_at", "_helped_at", "_groups_without_claim", "_with_pods"),
    ),
    "_Alike": ("one", "helped_at", "fresh"),
    "_Unplaced": ("since", "judged_at"),
    "WaitingRequests": ("_fitted",),
    "Sizes": ("_heap", "_in_heap"),
    "Moving": ("_tried_at", "_to_try"),
    "FailedEvictions": ("_reasons",),
    "InVain": ("_counted", "_ended", "_kinds", "_namespaces", "_promises"),
    "Several": ("version", "_known"),
}
"""What by the name of a class depends on how something came about, or is worked out anew when it is asked for."""
BOUNDED = (
    *("_store", "_settings", "_log", "_rows", "_watched", "columns", "memo", "_known", "_labels"),
    *("late", "ended", "kept_out", "evictions", "_latest", "_unread"),
    *("_same", "_without_claims", "_by_code", "_free_codes", "_free_slots", "_namespace_column", "_label_columns"),
)
"""What need not be empty when all is gone: it does not grow with what there was."""
_AT_ANOTHER_TIME = re.compile(rb'As of <time.*?</time>|data-version="[^"]*"|since=[^"&]*')


def anatomy(thing: Any) -> Any:
    """Plain dicts, lists and sets of it, without its history."""
    if isinstance(thing, Cluster):
        thing.ledger.queues.branches.settle()  # claims are worked out when they are asked for
    if isinstance(thing, dict):
        return {key: anatomy(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple | deque):
        return [anatomy(each) for each in thing]
    if isinstance(thing, NodeTable | Budgets):
        return _table(thing) if isinstance(thing, NodeTable) else _budgets(thing)
    if isinstance(thing, Division):
        return _parts(thing)
    if type(thing).__module__.partition(".")[0] != "policy" or _is_frozen(thing):
        return set(thing) if isinstance(thing, set) else thing  # compared by itself, as it is now
    if isinstance(thing, Tenant):
        assert thing.entitled is not None  # it is worked out when it is asked for
    left_out = {*HISTORY.get(_kind(thing), ()), "_cluster"}  # a part knows its cluster
    return {name: anatomy(value) for name, value in _parts(thing).items() if name not in left_out}


def standing(cluster: Cluster) -> Any:
    """All of a cluster that does not depend on how it came about; amounts of nothing are as good as none."""
    found = anatomy(cluster)
    found["attempts"]["unschedulable_since"] = sorted(cluster.attempts.unschedulable_since)
    found["attempts"]["untried_since"] = {
        namespace: sorted(uids) for namespace, uids in cluster.attempts.untried_since.items()
    }
    given_up = cluster.reservations.given_up  # of their times, the server keeps whole seconds
    found["reservations"]["given_up"] = sorted(given_up)
    for account in found["ledger"]["accounts"].values():
        account["waiting"] = account["waiting"] and _waiting(account["waiting"])
    queues = found["ledger"]["queues"]
    nothing = not _without_zeros(cluster.ledger.queues.available)
    for account in queues["accounts"].values():
        account["waiting"] = _waiting(account["waiting"])
        gone = account["queue"] is None  # what it was divided into before that, nobody asks for
        if gone:
            account.update({"unbounded": False, "tenant_claims": {}})
        for tenant in account["tenants"].values():
            tenant["waiting"] = _waiting(tenant["waiting"])
            tenant.update({"_entitled": {}, "claim": {}} if gone else {})
            tenant.update({"weight": 0} if gone or nothing else {})
    return _without_zeros(found)


def assert_same(one: Any, other: Any, what: str) -> None:
    """Fails with the first differences."""
    differences = list(_compare(one, other, ""))
    assert not differences, f"{what}:\n" + "\n".join(differences[:12])


def sizes(*things: Any) -> dict[str, int]:
    """How much everything in them holds that can grow, by where it stands."""
    found: dict[str, int] = {}
    seen: set[int] = set()

    def measure(thing: Any, path: str) -> None:
        if id(thing) in seen or isinstance(thing, Changes | KeyedBackoff):  # they are bounded, and tidied now and then
            return
        seen.add(id(thing))
        if isinstance(thing, dict | set | list | deque):
            found[path] = found.get(path, 0) + len(thing)
            for each in thing.values() if isinstance(thing, dict) else thing:
                measure(each, f"{path}/*")
        elif type(thing).__module__.partition(".")[0] in ("app", "policy"):
            for name, value in _parts(thing).items():
                if name not in BOUNDED:
                    measure(value, f"{path}.{name}")

    for thing in things:
        measure(thing, _kind(thing))
    return {path: size for path, size in found.items() if size}


def lines_of(page: bytes) -> list[str]:
    """The lines of a page, without what depends on when it was made."""
    return [line.strip() for line in _AT_ANOTHER_TIME.sub(b"", page).decode().splitlines() if line.strip()]


def _kind(thing: Any) -> str:
    return type(thing).__name__


def _is_frozen(thing: Any) -> bool:
    return is_dataclass(thing) and type(thing).__dataclass_params__.frozen  # type: ignore[attr-defined]


def _parts(thing: Any) -> dict[str, Any]:
    """The attributes of an object, be they in slots or not."""
    slots = (name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ()))
    return {name: getattr(thing, name) for name in slots if hasattr(thing, name)} | getattr(thing, "__dict__", {})


def _budgets(budgets: Budgets) -> Any:
    return dict(budgets), {namespace: _said(index) for namespace, index in vars(budgets)["_of"].items()}


def _said(index: Any) -> Any:
    """What the budgets of a namespace say of labels, by their names."""
    names = {slot: name for name, slot in index.slots.items()}
    parts = vars(index)
    said = [
        {label: sorted(names[slot] for slot in each.by) for label, each in parts[part].items()}
        for part in ("_asking", "_put_off")
    ]
    wanted = {name: (parts["_wanted"].item(slot), index.allowed.item(slot)) for slot, name in names.items()}
    return said, wanted, parts["_keys"], {name: len(slots) for name, slots in parts["_disrupted"].items()}


def _table(nodes: NodeTable) -> Any:
    """The table by names, and of resources that nodes have."""
    parts = _parts(nodes)
    had = {resource for node in nodes.nodes() for resource in node.allocatable}
    return {
        "sites": {
            name: (site.node, sorted(site.pods), _without_zeros(site.used)) for name, site in parts["_sites"].items()
        },
        "rows": {
            name: {
                resource: (int(nodes.allocatable[row, column]), int(nodes.used[row, column]))
                for resource, column in nodes.columns.items()
                if resource in had
            }
            for name, row in nodes.rows.items()
        },
        "expected": sorted(nodes.expected),
        "placed": {uid: (each.pod, each.site.name, each.stands) for uid, each in parts["_placed"].items()},
        "alike": {
            taints: (each.names, _without_zeros(each.allocatable), _without_zeros(each.standing))
            for taints, each in parts["_alike"].items()
        },
        "_by_port": {key: sorted(placed) for key, placed in parts["_by_port"].items()},
        "demanding": _demanding(nodes.demanding),
        "index": {uid: _indexed(nodes, slot) for uid, slot in nodes.index.slots.items()},
        "label keys": _without_zeros(vars(nodes.attributes)["_label_keys"]),
    }


def _demanding(found: Any) -> Any:
    """Which kinds there are and are judged, and under which labels their terms are found."""
    parts = vars(found)
    kinds = {
        demands: (sorted(kind.waiting), sorted(kind.placed), kind.judged) for demands, kind in parts["_kinds"].items()
    }
    return kinds, {
        reach: (
            {label: {term: len(kinds) for term, kinds in terms.items()} for label, terms in each.by_label.items()},
            {term: len(kinds) for term, kinds in each.others.items()},
            each.keys,
        )
        for reach, each in parts["_terms"].items()
    }


def _indexed(nodes: NodeTable, slot: int) -> Any:
    index = nodes.index
    row, kind = index.rows.item(slot), index._by_code[index._kind_of[slot]]
    return (
        nodes.names[row] if row >= 0 else "",
        index.stands.item(slot),
        index.terminating.item(slot),
        kind.key[0],
        dict(kind.labels),
    )


def _waiting(found: Any) -> Any:
    return {"counts": found["_counts"], "asking": found["_asking"]}


def _without_zeros(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_zeros(value) for key, value in found.items() if type(value) is not int or value}
    return found


def _compare(one: Any, other: Any, path: str) -> Iterator[str]:
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}, key=repr):
            yield from _compare(one.get(key), other.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from _compare(*pair, f"{path}[{number}]")
    else:
        yield f"{path}: {one!r} and {other!r}"
