"""Devices of a history: what claims have, told from the claims alone, and what names of devices mean the same.

Nothing of Quotaward's is used here, as it is what gets checked.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from tests.controlplane.devices import DRIVER, IMPLICIT
from tests.controlplane.objects import GPU, Object, number

Amounts = dict[str, Decimal]
NIC = "nic"
DRIVERS = {"gpu": DRIVER, NIC: "nic.example.com"}
"""By the name of a class, the driver of its devices."""
EXTENDED = {"gpu": GPU}
"""By the name of a class, its extended resource name; others have none."""
_OF_SCHEDULER = "resource.kubernetes.io/extended-resource-claim"
_SPELLED = ((IMPLICIT, ""), ("deviceclass/", ""), ("", ".deviceclass.resource.k8s.io/devices"))
"""How the name of a class may begin and end where a quota or a pod names it."""


def of_class(name: str) -> str:
    """The name by which devices of a class count."""
    return EXTENDED.get(name, IMPLICIT + name)


def counted_as(resource: str) -> str:
    """The name by which a resource counts that a quota or a pod names."""
    name = resource.removeprefix("requests.") if "/" in resource else resource
    for start, end in _SPELLED:
        if name.startswith(start) and name.endswith(end):
            return of_class(name.removeprefix(start).removesuffix(end))
    return name


def has(claim: Object) -> Amounts:
    """The devices that were allocated to a claim, but for those of administrators."""
    found = Counter(
        of_class(_classes(claim)[each["request"]]) for each in _results(claim) if not each.get("adminAccess")
    )
    return {name: Decimal(count) for name, count in found.items()}


def asks(claim: Object) -> Amounts | None:
    """The devices that a claim without any asks for; None where that hangs on what there is, or it has some."""
    found = Counter[str]()
    for each in claim["spec"]["devices"]["requests"]:
        exactly = each.get("exactly") or {"allocationMode": "All"}
        if exactly.get("adminAccess"):
            continue
        if exactly["allocationMode"] == "All":
            return None
        found[of_class(exactly["deviceClassName"])] += exactly["count"]
    return None if _allocation(claim) else {name: Decimal(count) for name, count in found.items()}


def counted_for(claim: Object) -> Amounts:
    """The devices that a claim without any counts for: of alternatives the largest number of each class.

    Of all devices that there are it wants one at least.
    """
    found = Counter[str]()
    for each in () if _allocation(claim) else claim["spec"]["devices"]["requests"]:
        alternatives = [each["exactly"]] if "exactly" in each else each["firstAvailable"]
        most = Counter[str]()
        for one in alternatives:
            if not one.get("adminAccess"):
                most |= Counter({of_class(one["deviceClassName"]): one.get("count", 1)})
        found += most
    return {name: Decimal(count) for name, count in found.items()}


def users(claim: Object) -> list[str]:
    """UIDs of the pods that a claim with devices is reserved for."""
    reserved = claim.get("status", {}).get("reservedFor", ()) if _allocation(claim) else ()
    return [each["uid"] for each in reserved if each["resource"] == "pods"]


def node_of(claim: Object) -> str:
    """The node of the devices that a claim has: each pool is one of a node. Empty if it has none."""
    return next((each["pool"] for each in _results(claim)), "")


def is_of_scheduler(claim: Object) -> bool:
    """Whether the scheduler has made a claim for a pod that requests an extended resource."""
    return claim["metadata"].get("annotations", {}).get(_OF_SCHEDULER) == "true"


def on_node(resource_slice: Object) -> tuple[str, Amounts]:
    """The node of a slice, and the devices in it."""
    spec = resource_slice["spec"]
    name = next(name for name, driver in DRIVERS.items() if driver == spec["driver"])
    return spec["nodeName"], {of_class(name): number(str(len(spec["devices"])))}


def without(amounts: Amounts, names: Iterable[str]) -> Amounts:
    """Amounts without those of these names."""
    return {name: value for name, value in amounts.items() if name not in names}


DEVICES = frozenset(map(of_class, DRIVERS))
"""The names by which devices count."""


def _allocation(claim: Object) -> Object:
    return claim.get("status", {}).get("allocation") or {}


def _results(claim: Object) -> list[Object]:
    return _allocation(claim).get("devices", {}).get("results", [])


def _classes(claim: Object) -> dict[str, str]:
    """The class of each request, and of each alternative in it, as results name them."""
    found = {}
    for each in claim["spec"]["devices"]["requests"]:
        if "exactly" in each:
            found[each["name"]] = each["exactly"]["deviceClassName"]
        for one in each.get("firstAvailable", ()):
            found[f"{each['name']}/{one['name']}"] = one["deviceClassName"]
    return found
