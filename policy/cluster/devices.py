"""The devices that pods take by DRA: what they are called in quotas, and which pod a claim counts for.

A claim counts for one pod: one of those that use it and hold room for it, because they are on a node or were admitted;
while none does, one of those that wait with it. So devices that several pods share count once. A pod that is asked
about is charged for every claim that nobody holds yet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from policy.cluster import bounds
from policy.objects.device import IMPLICIT, MOST_CLAIMS, as_in_pods, class_of
from policy.objects.resources import NOTHING, add
from policy.quota.elastic_quota import elastic_quota

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policy.cluster.cluster import Cluster
    from policy.objects.device import DeviceClaim, DeviceRequests, PodClaim
    from policy.objects.pod import Pod
    from policy.objects.queue import Queue
    from policy.objects.resources import Resources
    from policy.quota.elastic_quota import ElasticQuota
    from policy.stepwise import Steps

Key = tuple[str, str]
"""Namespace and name."""
MOST_SHARED = 8192
"""Requests that are kept for pods that are charged the same, so that these share one object."""


class Devices:
    """Device classes, claims and templates of claims, and the pods that need them.

    ``classes`` has the extended resource name of each class, empty where it has none. ``changed`` are pods that
    ``settle`` has still to look at.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.classes: dict[str, str] = {}
        self.claims: dict[Key, DeviceClaim] = {}
        self.templates: dict[Key, DeviceRequests] = {}
        self._of_pods: dict[str, tuple[str, tuple[PodClaim, ...]]] = {}
        self._users: dict[Key, dict[str, None]] = {}
        self._holders: dict[Key, dict[str, None]] = {}
        self._of_templates: dict[Key, dict[str, None]] = {}
        self._renamed_quotas: set[str] = set()
        self._renamed_queues: set[str] = set()
        self.changed: dict[str, None] = {}
        self._outdated: dict[str, None] = {}
        self._same: dict[tuple[tuple[str, int], ...], Resources] = {}
        self._now = 0.0
        self._cluster = cluster

    # What is seen

    def upsert_class(self, name: str, extended: str) -> None:
        """Adds or changes a device class. ``extended`` is its extended resource name, empty if it has none."""
        if self.classes.get(name) != extended:
            self.classes[name] = extended
            self._classes_changed()

    def delete_class(self, name: str) -> None:
        """Removes a device class. Does nothing for an unknown one."""
        if self.classes.pop(name, None) is not None:
            self._classes_changed()

    def upsert_claim(self, claim: DeviceClaim) -> None:
        """Adds or changes a claim."""
        before = self.claims.get(claim.key)
        if before != claim:
            self.claims[claim.key] = claim
            if before is None:
                self._claim_came_or_went(claim.key)
            elif before.counts != claim.counts:
                self._charge_again(self._payer(claim.key))

    def delete_claim(self, namespace: str, name: str) -> None:
        """Removes a claim. Does nothing for an unknown one."""
        if self.claims.pop((namespace, name), None) is not None:
            self._claim_came_or_went((namespace, name))

    def upsert_template(self, namespace: str, name: str, requests: DeviceRequests) -> None:
        """Adds or changes a template of claims."""
        if self.templates.get((namespace, name)) != requests:
            self.templates[namespace, name] = requests
            self._template_changed(namespace, name)

    def delete_template(self, namespace: str, name: str) -> None:
        """Removes a template of claims. Does nothing for an unknown one."""
        if self.templates.pop((namespace, name), None) is not None:
            self._template_changed(namespace, name)

    def tick(self, now: float) -> None:
        """Lets time pass."""
        self._now = now

    def note(self, pod: Pod, before: Pod | None = None) -> None:
        """Notes that a pod has changed, or whether it holds room. ``before``: the pod as it was seen before, if it was.

        Call ``settle`` afterwards: other pods may have to be charged anew.
        """
        if pod.needs is not None or (before is not None and before.needs is not None):
            self.changed[pod.uid] = None

    def settle(self) -> None:
        """Charges the pods anew for which claims count now, or count no longer."""
        while self.changed:
            self._see(self.changed.popitem()[0])

    # What things are called

    def key_of(self, resource: str) -> str:
        """Returns the name by which a resource counts: the names of a device class are one."""
        name = class_of(resource)
        return self._key_of_class(name) if name else resource

    def quota(self, namespace: str, quota: ElasticQuota | None) -> ElasticQuota | None:
        """Returns a namespace's quota with the names by which resources count."""
        named = {**quota.min, **quota.max} if quota is not None else NOTHING
        _put(self._renamed_quotas, namespace, there=_names_class(named))
        if quota is None or self._keeps(named):
            return quota
        renamed = elastic_quota(
            quota.namespace, quota.name, quota.created, self._bounds(quota.min), self._bounds(quota.max)
        )
        return replace(renamed, errors=quota.errors, readable=quota.readable)

    def queue(self, name: str, queue: Queue | None) -> Queue | None:
        """Returns a queue with the names by which resources count."""
        named = {**queue.capability, **queue.guarantee} if queue is not None else NOTHING
        _put(self._renamed_queues, name, there=_names_class(named))
        if queue is None or self._keeps(named):
            return queue
        return replace(queue, capability=self._bounds(queue.capability), guarantee=self._bounds(queue.guarantee))

    # What is charged

    def charged(self, pod: Pod, *, asking: bool = False) -> Pod:
        """Returns a pod whose request is all that counts for it.

        ``asking``: it is asked about, so that each claim counts that nobody else holds.
        """
        if pod.needs is None:
            return pod
        sums: dict[str, int] = {}
        for resource, amount in pod.needs.request.items():
            add(sums, {self.key_of(resource): amount})
        for claim in pod.needs.claims:
            if self._pays((pod.namespace, claim.name), pod.uid, asking=asking):
                self._add(sums, self._counts(pod.namespace, claim))
        return pod if sums == pod.request else replace(pod, request=self._one(sums))

    def of_job(self, pod: Pod, counted: set[str]) -> tuple[Pod, Resources]:
        """Returns a pod of a Job that waits, with what counts for it, and what counts once for all of its pods.

        ``counted`` has the claims of the Job that have counted already. Adds those that count now.
        """
        if pod.needs is None:
            return pod, NOTHING
        shared: dict[str, int] = {}
        for claim in pod.needs.claims:
            if claim.name not in {"", *counted} and self._pays((pod.namespace, claim.name), pod.uid, asking=True):
                self._add(shared, self._counts(pod.namespace, claim))
                counted.add(claim.name)
        own = replace(pod.needs, claims=tuple(each for each in pod.needs.claims if not each.name))
        return replace(self.charged(replace(pod, needs=own)), needs=pod.needs), shared

    def unknown(self, pod: Pod) -> str:
        """Returns why it is not known what a pod takes; empty if it is.

        Where no claim is known at all, claims may not be read, and a pod counts without them.
        """
        if pod.needs is None or not self.claims:
            return ""
        if pod.needs.excess:
            return "it has more resource claims than are counted"
        missing = [each.name for each in pod.needs.claims if (pod.namespace, each.name) not in self.claims]
        return "its resource claims are not seen yet" if missing else ""

    def renew_steps(self) -> Steps[None]:
        """Charges pods anew whose classes or templates have changed. It pauses after each pod."""
        for uid in list(self._outdated):
            if uid in self._outdated:
                del self._outdated[uid]
                self._charge_again(uid)
            yield

    def _see(self, uid: str) -> None:
        cluster = self._cluster
        known = cluster.pods.get(uid)
        if known is None or cluster.grants.is_older(known):
            known = cluster.grants.pod(uid)
        if known is None or known.needs is None or known.finished:
            self._forget(uid)
            return
        used = known.namespace, known.needs.claims
        if self._of_pods.get(uid, used) != used:
            self._forget(uid)
        self._of_pods[uid] = used
        holds = known.assigned or uid in cluster.grants
        for claim in known.needs.claims:
            if claim.template:
                self._of_templates.setdefault((known.namespace, claim.template), {})[uid] = None
            if claim.name:
                self._use((known.namespace, claim.name), uid, holds=holds)
        self._charge_again(uid)

    def _forget(self, uid: str) -> None:
        self._outdated.pop(uid, None)
        namespace, claims = self._of_pods.pop(uid, ("", ()))
        for claim in claims:
            _remove(self._of_templates, (namespace, claim.template), uid)
            key = namespace, claim.name
            paid = self._payer(key) == uid
            _remove(self._users, key, uid)
            _remove(self._holders, key, uid)
            if paid:
                self._charge_again(self._payer(key))

    def _use(self, key: Key, uid: str, *, holds: bool) -> None:
        before = self._payer(key)
        self._users.setdefault(key, {})[uid] = None
        if holds:
            self._holders.setdefault(key, {})[uid] = None
        else:
            _remove(self._holders, key, uid)
        after = self._payer(key)
        if before != after:
            self._charge_again(before)
            self._charge_again(after)

    def _payer(self, key: Key) -> str:
        """Returns the UID of the pod that a claim counts for; empty if nobody uses it."""
        found = self._holders.get(key) or self._users.get(key)
        if not found:
            return ""
        return min(found) if len(found) <= MOST_CLAIMS else next(iter(found))

    def _pays(self, key: Key, uid: str, *, asking: bool) -> bool:
        """Whether a claim counts for a pod that uses it. One that is not there yet is nobody else's."""
        if key not in self.claims or (asking and key not in self._holders):
            return True
        return self._payer(key) in ("", uid)

    def _counts(self, namespace: str, claim: PodClaim) -> Resources:
        """Returns the number of devices of a pod's claim by class; before it is made, what its template says."""
        known = self.claims.get((namespace, claim.name)) if claim.name else None
        if known is not None:
            return known.counts
        template = self.templates.get((namespace, claim.template)) if claim.template else None
        return template.counts if template is not None else NOTHING

    def _add(self, sums: dict[str, int], counts: Resources) -> None:
        for name, count in counts.items():
            add(sums, {self._key_of_class(name): count})

    def _charge_again(self, uid: str) -> None:
        """Charges a pod anew, as it is seen, and as it was granted if that is newer."""
        cluster = self._cluster
        known, granted = cluster.pods.get(uid), cluster.grants.pod(uid)
        newer = granted is not None and (known is None or cluster.grants.is_older(known))
        if granted is not None and newer and (charged := self.charged(granted)) is not granted:
            cluster.grants.replace(charged)
            entry = cluster.ledger.entries.get(uid)
            if entry is not None and entry.kind == "granted":
                cluster.ledger.enter("granted", charged)
        if known is not None and (charged := self.charged(known)) is not known:
            cluster.upsert_pod(charged, self._now)

    def _classes_changed(self) -> None:
        cluster = self._cluster
        for namespace in list(self._renamed_quotas):
            bounds.quotas_changed(cluster, namespace)
        for name in list(self._renamed_queues):
            bounds.queue_changed(cluster, name, cluster.queues.get(name))
        self._outdated.update(dict.fromkeys(self._of_pods))
        cluster.queued_jobs.defaults_changed()

    def _claim_came_or_went(self, key: Key) -> None:
        users = self._users.get(key, {})
        if len(users) > 1:
            self._outdated.update(users)
        self._charge_again(self._payer(key))

    def _template_changed(self, namespace: str, name: str) -> None:
        self._outdated.update(self._of_templates.get((namespace, name), {}))
        self._cluster.queued_jobs.defaults_changed(namespace)

    def _key_of_class(self, name: str) -> str:
        return self.classes.get(name) or IMPLICIT + name

    def _keeps(self, names: Iterable[str]) -> bool:
        """Whether all these names of a quota or queue are those by which resources count."""
        return all(self.key_of(as_in_pods(name)) == name for name in names)

    def _bounds(self, given: Resources) -> Resources:
        """Returns bounds by the names that count. Of several names of one resource the smallest amount counts."""
        bounded: dict[str, int] = {}
        for name, amount in given.items():
            key = self.key_of(as_in_pods(name))
            bounded[key] = min(amount, bounded.get(key, amount))
        return bounded

    def _one(self, sums: dict[str, int]) -> Resources:
        """Returns one object for all pods that are charged the same (see policy.objects.signature)."""
        if len(self._same) >= MOST_SHARED:
            self._same.clear()
        return self._same.setdefault(tuple(sums.items()), sums)


def _names_class(names: Iterable[str]) -> bool:
    return any(class_of(as_in_pods(name)) for name in names)


def _put(names: set[str], name: str, *, there: bool) -> None:
    (names.add if there else names.discard)(name)


def _remove(uids: dict[Key, dict[str, None]], key: Key, uid: str) -> None:
    """Removes a pod from those of a claim or a template, and the last one with them."""
    found = uids.get(key)
    if found is not None:
        found.pop(uid, None)
        if not found:
            del uids[key]
