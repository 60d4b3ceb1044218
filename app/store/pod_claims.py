"""The claims of devices that a pod uses, and requests that name a device class."""

from collections.abc import Iterator

from app.store.pod_object import PodSpec, PodStatus
from policy.objects.constraints import Constraints
from policy.objects.device import IMPLICIT, MOST_CLAIMS, DeviceNeeds, PodClaim
from policy.objects.resources import Resources


def names_class(request: Resources) -> bool:
    """Whether a request names a device class. It is asked of every pod, and a loop would take longer."""
    return IMPLICIT in "\n".join(request)


def needs_of(spec: PodSpec, status: PodStatus, request: Resources, constraints: Constraints) -> DeviceNeeds | None:
    """Returns what a pod with this effective request needs of devices; None if its request says all that it takes."""
    claims = tuple(dict.fromkeys(_named(spec, status))) + tuple(_to_be_made(spec, status))
    if not claims and not names_class(request):
        return None
    return DeviceNeeds(request, claims[:MOST_CLAIMS], len(claims) > MOST_CLAIMS, constraints)


def _named(spec: PodSpec, status: PodStatus) -> Iterator[PodClaim]:
    """Yields the claims that exist, as far as is known: several names in a pod may stand for one claim."""
    made = {each.name: each.resource_claim_name for each in status.resource_claim_statuses or ()}
    for each in spec.resource_claims or ():
        if each.resource_claim_name:
            yield PodClaim(each.resource_claim_name)
        elif each.resource_claim_template_name and (name := made.get(each.name)):
            yield PodClaim(name, each.resource_claim_template_name)


def _to_be_made(spec: PodSpec, status: PodStatus) -> Iterator[PodClaim]:
    """Yields a claim for each template of which none was made yet. A status without a name says that none will be."""
    made = {each.name for each in status.resource_claim_statuses or ()}
    for each in spec.resource_claims or ():
        if not each.resource_claim_name and each.resource_claim_template_name and each.name not in made:
            yield PodClaim(template=each.resource_claim_template_name)
