"""ResourceClaims that pods name and that do not exist: such a pod starts nowhere, whatever the rules say."""

from app.settings import Settings
from app.store.resource_claims import RESOURCE_CLAIMS
from app.store.store import Store
from policy.objects.pod import Pod


def missing_claim(store: Store, settings: Settings, pod: Pod) -> str:
    """Returns the first claim that a pod names and that does not exist.

    Empty if all exist, or claims cannot be read. A folder of manifests may leave out all claims.
    """
    known = store.cluster.devices.claims
    if store.feeds[RESOURCE_CLAIMS.label].without or (settings.manifests is not None and not known):
        return ""
    named = [each.name for each in pod.needs.claims if each.name and not each.template] if pod.needs else []
    return next((name for name in named if (pod.namespace, name) not in known), "")
