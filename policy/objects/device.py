"""Devices of Dynamic Resource Allocation (DRA): their names as resources, and what claims ask for.

One key per device class counts in quotas and queues: the extended resource name of the class if it has one, else the
implicit name that Kubernetes gives each class (``deviceclass.resource.kubernetes.io/NAME``). A pod may use either name.
"""

from dataclasses import dataclass, field

from policy.objects.constraints import UNCONSTRAINED, Constraints
from policy.objects.device_selector import Comparison, Value
from policy.objects.resources import Resources

IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""The prefix of the implicit name of a class in requests of pods."""
REQUESTS = "requests."
"""The prefix of an extended resource in a ResourceQuota."""
_OF_CLAIMS = ".deviceclass.resource.k8s.io/devices"
"""The end of the name by which a ResourceQuota counts devices of claims."""
_OF_PEERS = "deviceclass/"
"""The prefix of a class in quotas of other projects."""

MOST_CLAIMS = 32
"""The most claims of a pod that are counted. If pods share all of them, one that comes takes work by their square."""
MOST_HOLDERS = 256
"""The most pods that kube-scheduler reserves a claim for."""


def as_in_pods(name: str) -> str:
    """Returns a resource that a quota or queue names as pods name it: ResourceQuotas and peers have other names."""
    if name.endswith(_OF_CLAIMS):
        return IMPLICIT + name.removesuffix(_OF_CLAIMS)
    if name.startswith(_OF_PEERS):
        return IMPLICIT + name.removeprefix(_OF_PEERS)
    return name.removeprefix(REQUESTS) if "/" in name else name


def class_of(resource: str) -> str:
    """Returns the device class whose implicit name this is; empty for any other resource."""
    return resource.removeprefix(IMPLICIT) if resource.startswith(IMPLICIT) else ""


@dataclass(frozen=True, slots=True)
class DeviceRequests:
    """The number of devices by class that a claim asks for, before devices are allocated to it.

    Of several alternatives the largest number of each class counts. ``whole`` are classes of which it asks for all
    devices of a node, so that their number is not known before. Requests for administrators count for nothing.
    ``plain``: any devices of these classes will do, so many as it says.
    """

    counts: Resources = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    plain: bool = True


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A ResourceClaim. ``allocated`` is the number of devices by class that it has, None while it has none."""

    namespace: str
    name: str
    requests: DeviceRequests
    allocated: Resources | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim that a pod uses: its name, empty while it is not made yet, and the template that it is made of, if any.

    A claim that is made of a template is the pod's own.
    """

    name: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class DeviceNeeds:
    """Things that a pod takes beside the request of its spec, or that this request calls by another name.

    ``request`` and ``constraints`` are those of the spec. ``excess``: the pod has more claims than are counted.
    """

    request: Resources
    claims: tuple[PodClaim, ...] = ()
    excess: bool = False
    constraints: Constraints = UNCONSTRAINED


Attributes = tuple[tuple[str, Value], ...]
"""The attributes of a device by name, with its driver among them."""


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass: its extended resource name, empty if it has none, and which devices are of the class.

    ``selects`` are comparisons that all have to hold; None if its selectors are not judged.
    """

    extended: str = ""
    selects: tuple[Comparison, ...] | None = ()


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """A ResourceSlice: devices of one node, as a part of a pool.

    ``generation`` is that of the pool, which takes ``slices`` slices to be complete. ``node`` is empty for devices that
    are not those of one node. ``shared``: devices, or parts of them, may go to several claims at once.
    """

    name: str
    node: str
    pool: tuple[str, str]
    generation: int
    slices: int
    devices: tuple[Attributes, ...]
    shared: bool = False
