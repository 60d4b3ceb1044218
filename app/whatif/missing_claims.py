"""ResourceClaims of pods, and templates of these, that do not exist: then a pod starts nowhere, whatever rules say."""

from app.settings import Settings
from app.store.kind import Kind
from app.store.resource_claims import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from app.store.store import Store
from policy.objects.pod import Pod


def missing_claim(store: Store, settings: Settings, pod: Pod) -> str:
    """Returns the first claim that a pod names and that does not exist, or the first template, with its kind.

    A template matters until its claim is made. Empty if all exist, or cannot be read. A folder of manifests may leave
    out all claims, and all templates.
    """
    devices = store.cluster.devices
    named = [each.name for each in pod.needs.claims if each.name and not each.template] if pod.needs else []
    templates = [each.template for each in pod.needs.claims if not each.name] if pod.needs else []
    sorts = ((RESOURCE_CLAIMS, named, devices.claims), (RESOURCE_CLAIM_TEMPLATES, templates, devices.templates))
    missing = (
        f"{kind.name} {name}"
        for kind, names, known in sorts
        if _are_all_seen(store, settings, kind, there=bool(known))
        for name in names
        if (pod.namespace, name) not in known
    )
    return next(missing, "")


def _are_all_seen(store: Store, settings: Settings, kind: Kind, *, there: bool) -> bool:
    return not store.feeds[kind.label].without and (settings.manifests is None or there)
