"""Devices of Dynamic Resource Allocation as objects: no driver is needed for the scheduler to hand them out."""

from typing import Any

from tests.controlplane.objects import GPU, Object, pod

API = "resource.k8s.io/v1"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
DRIVER, CLASS, PLAIN = "gpu.example.com", "gpu", "plain"
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label of a namespace whose claims may ask for access for administrators."""


def made(kind: str, name: str, namespace: str | None = None, **fields: Any) -> Object:
    """An object of this API."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API, "kind": kind, "metadata": metadata} | fields


def device_class(name: str, driver: str = DRIVER, **spec: Any) -> Object:
    """A class of all devices of a driver."""
    by_driver = {"cel": {"expression": f"device.driver == '{driver}'"}}
    return made("DeviceClass", name, spec={"selectors": [by_driver]} | spec)


def devices(number: int, node: str, driver: str = DRIVER) -> Object:
    """So many devices of a node, as a driver would report them."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool}
    spec["devices"] = [{"name": f"device-{each}"} for each in range(number)]
    return made("ResourceSlice", f"{node}-{driver}", spec=spec)


def asking(name: str = CLASS, **exactly: Any) -> Object:
    """The spec of a claim with one request, for devices of a class."""
    return {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": name} | exactly}]}}


TWO_OR_ONE = {
    "devices": {
        "requests": [
            {
                "name": "g",
                "firstAvailable": [
                    {"name": "two", "deviceClassName": CLASS, "count": 2},
                    {"name": "one", "deviceClassName": CLASS, "count": 1},
                ],
            }
        ]
    }
}


def of_template(name: str, namespace: str, spec: Object) -> Object:
    """A template of claims."""
    return made("ResourceClaimTemplate", name, namespace, spec={"spec": spec})


def claims(spec: Object, **source: str) -> None:
    """Has the pod of this spec use a claim: a shared one, or one that is made of a template."""
    spec["resourceClaims"] = [{"name": "g"} | source]
    spec["containers"][0]["resources"]["claims"] = [{"name": "g"}]


def claiming(name: str, namespace: str, **source: str) -> Object:
    """A pod with a claim: a shared one, or one that is made of a template."""
    item = pod(name, namespace)
    claims(item["spec"], **source)
    return item


def requests(spec: Object, resource: str, number: int = 1) -> None:
    """Has the pod of this spec request an extended resource."""
    for part in ("requests", "limits"):
        spec["containers"][0]["resources"].setdefault(part, {})[resource] = str(number)


def requesting(name: str, namespace: str, resource: str = GPU, number: int = 1) -> Object:
    """A pod that requests an extended resource."""
    item = pod(name, namespace)
    requests(item["spec"], resource, number)
    return item
