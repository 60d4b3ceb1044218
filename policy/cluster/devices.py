"""The devices that pods take by DRA: what counts for a pod by its claims, and which pods to charge anew after a change.

A pod that is asked about is charged for every claim, but for those that count in its own queue already: it may have to
pay for them one day.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from policy.cluster.claim_payers import ClaimPayers, remove_user
from policy.cluster.device_pools import DevicePools
from policy.objects.constraints import CLAIM
from policy.objects.device import MOST_HOLDERS
from policy.objects.resources import NOTHING, add, is_lighter, total

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policy.cluster.claim_payers import Key
    from policy.cluster.cluster import Cluster
    from policy.cluster.device_names import DeviceNames
    from policy.nodes.table import Shared
    from policy.objects.constraints import Constraints
    from policy.objects.device import DeviceClaim, DeviceClass, DeviceNeeds, DeviceRequests, DeviceSlice, PodClaim
    from policy.objects.node import Node
    from policy.objects.pod import Pod
    from policy.objects.resources import Resources
    from policy.stepwise import Steps

NEVER_GONE = frozenset({""})
"""In place of the pods that share a claim, if they are more than kube-scheduler would let have it."""
MOST_SHARED = 8192
"""Requests that are kept for pods that are charged the same, so that these share one object."""


class Devices:
    """Claims and templates of claims, and the pods that need them.

    ``pools`` has the devices of nodes. ``changed`` are pods that ``settle`` has still to look at.
    """

    def __init__(self, cluster: Cluster, names: DeviceNames) -> None:
        self.pools = DevicePools()
        self._names = names
        self.claims: dict[Key, DeviceClaim] = {}
        self.templates: dict[Key, DeviceRequests] = {}
        self._of_pods: dict[str, tuple[str, tuple[PodClaim, ...]]] = {}
        self._payers = ClaimPayers()
        self._of_templates: dict[Key, dict[str, None]] = {}
        self._asking_for_all: set[str] = set()
        self.changed: dict[str, None] = {}
        self._outdated: dict[str, None] = {}
        self._outdated_nodes: dict[str, None] = {}
        self._without_claims: dict[int, tuple[Constraints, Constraints]] = {}
        self._same: dict[tuple[tuple[str, int], ...], Resources] = {}
        self._now = 0.0
        self._cluster = cluster

    # What is seen

    def upsert_class(self, name: str, of: DeviceClass) -> None:
        """Adds or changes a device class. The operator says what it selects if its own selectors are not judged."""
        if of.selects is None:
            of = replace(of, selects=self._cluster.rules.device_classes.get(name))
        if self._names.upsert_class(name, of):
            self._classes_changed()

    def delete_class(self, name: str) -> None:
        """Removes a device class. Does nothing for an unknown one."""
        if self._names.delete_class(name):
            self._classes_changed()

    def upsert_claim(self, claim: DeviceClaim) -> None:
        """Adds or changes a claim."""
        before = self.claims.get(claim.key)
        if before != claim:
            self.claims[claim.key] = claim
            self._cluster.queued_jobs.demands.claim_changed(claim.key)
            if before is None:
                self._claim_came_or_went(claim.key)
            else:
                self._charge_all_again((self._payers.of(claim.key),))

    def delete_claim(self, namespace: str, name: str) -> None:
        """Removes a claim. Does nothing for an unknown one."""
        if self.claims.pop((namespace, name), None) is not None:
            self._cluster.queued_jobs.demands.claim_changed((namespace, name))
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

    def upsert_slice(self, of: DeviceSlice) -> None:
        """Adds or changes a slice, and with it what nodes have."""
        self._nodes_changed(self.pools.upsert(of))

    def delete_slice(self, name: str) -> None:
        """Removes a slice. Does nothing for an unknown one."""
        self._nodes_changed(self.pools.delete(name))

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

    # What is charged

    def charged(self, pod: Pod, *, asking: bool = False) -> Pod:
        """Returns a pod whose request is all that counts for it.

        ``asking``: it is asked about, so that each claim counts that nobody else in its queue pays for.
        """
        if pod.needs is None:
            return pod
        sums: dict[str, int] = {}
        for resource, amount in pod.needs.request.items():
            add(sums, {self._names.key_of(resource): amount})
        for claim in pod.needs.claims if not pod.finished else ():
            if self._pays((pod.namespace, claim.name), pod, asking=asking):
                self._add(sums, pod.namespace, claim)
        constraints = self._constraints(pod, pod.needs) if not pod.finished else pod.needs.constraints
        if sums == pod.request and constraints == pod.constraints:
            return pod
        return replace(pod, request=self._one(sums), constraints=constraints)

    def of_job(self, pod: Pod, counted: set[str]) -> tuple[Pod, Resources]:
        """Returns a pod of a Job that waits, with what counts for it, and what counts once for all of its pods.

        ``counted`` has the claims of the Job that have counted already. Adds those that count now.
        """
        if pod.needs is None:
            return pod, NOTHING
        shared: dict[str, int] = {}
        for claim in pod.needs.claims:
            if claim.name not in {"", *counted} and self._pays((pod.namespace, claim.name), pod, asking=True):
                self._add(shared, pod.namespace, claim)
                counted.add(claim.name)
        own = replace(pod.needs, claims=tuple(each for each in pod.needs.claims if not each.name))
        return replace(self.charged(replace(pod, needs=own)), needs=pod.needs), shared

    def unknown(self, pod: Pod) -> str:
        """Returns why it is not known what a pod takes; empty if it is. Ask only where claims can be read."""
        if pod.needs is None:
            return ""
        if pod.needs.excess:
            return "it has more resource claims than are counted"
        missing = [each.name for each in pod.needs.claims if (pod.namespace, each.name) not in self.claims]
        return "its resource claims are not seen yet" if missing else ""

    def node(self, node: Node) -> Node:
        """Returns a node with the devices of its slices among what it has."""
        counts, own = self.pools.of_node(node.name), node.allocatable if node.own is None else node.own
        if not counts:
            return node if node.own is None else replace(node, allocatable=own, own=None)
        there = total((own, counts))
        return node if there == node.allocatable else replace(node, allocatable=there, own=own)

    def renew_steps(self) -> Steps[None]:
        """Charges pods anew whose classes or templates have changed, and counts what nodes have of changed classes.

        It pauses after each of them.
        """
        for name in list(self._outdated_nodes):
            if name in self._outdated_nodes:
                del self._outdated_nodes[name]
                self._count_node(name)
            yield
        for uid in list(self._outdated):
            if uid in self._outdated:
                del self._outdated[uid]
                self._charge_all_again((uid,))
            yield

    def _see(self, uid: str) -> None:
        cluster = self._cluster
        known = cluster.pods.get(uid)
        if known is None or cluster.grants.is_older(known):
            known = cluster.grants.pod(uid)
        if known is None or known.needs is None or known.finished:
            self._forget(uid)
            return
        granted = cluster.grants.pod(uid)
        if granted is not None and granted.needs != known.needs:
            cluster.grants.replace(replace(granted, needs=known.needs))  # so that its end is seen
        used, before = (known.namespace, known.needs.claims), self._of_pods.get(uid)
        again = {uid: None}
        if before is not None and before != used:
            kept = set(known.needs.claims) if before[0] == known.namespace else set()
            self._leave(uid, before[0], [each for each in before[1] if each not in kept], again)
        self._of_pods[uid] = used
        holds = known.assigned or uid in cluster.grants
        for claim in known.needs.claims:
            if claim.template:
                self._of_templates.setdefault((known.namespace, claim.template), {})[uid] = None
            if claim.name:
                self._use((known.namespace, claim.name), uid, again, holds=holds)
        self._charge_all_again(again)

    def _forget(self, uid: str) -> None:
        self._outdated.pop(uid, None)
        self._asking_for_all.discard(uid)
        again: dict[str, None] = {}
        namespace, claims = self._of_pods.pop(uid, ("", ()))
        self._leave(uid, namespace, claims, again)
        self._charge_all_again(again)
        self._cluster.table.see_sharing(uid, ())

    def _leave(self, uid: str, namespace: str, claims: Iterable[PodClaim], again: dict[str, None]) -> None:
        """Notes that a pod uses claims no longer. Adds those to ``again`` that have to be charged anew."""
        for claim in claims:
            remove_user(self._of_templates, (namespace, claim.template), uid)
            key = namespace, claim.name
            paid, held = self._payers.of(key) == uid, uid in self._payers.holders(key)
            self._payers.leave(key, uid)
            if paid:
                again[self._payers.of(key)] = None
            elif held:
                self._note_sharing(self._payers.of(key))

    def _constraints(self, pod: Pod, needs: DeviceNeeds) -> Constraints:
        """Returns a pod's constraints: claims are none for which any free devices of their classes will do."""
        given = needs.constraints
        if not needs.claims or needs.excess or not all(self._is_plain(pod.namespace, each) for each in needs.claims):
            return given
        known = self._without_claims.get(id(given))
        if known is None or known[0] is not given:
            if len(self._without_claims) >= MOST_SHARED:
                self._without_claims.clear()
            left = tuple(each for each in given.undecidable if each != CLAIM)
            known = self._without_claims[id(given)] = given, replace(given, undecidable=left)
        return known[1]

    def _is_plain(self, namespace: str, claim: PodClaim) -> bool:
        known = self.claims.get((namespace, claim.name)) if claim.name else None
        if known is not None:
            return known.requests.plain and (known.allocated is None or bool(claim.template))
        template = self.templates.get((namespace, claim.template)) if claim.template else None
        return template is not None and template.plain

    def _use(self, key: Key, uid: str, again: dict[str, None], *, holds: bool) -> None:
        """Notes that a pod uses a claim. Adds those to ``again`` that have to be charged anew."""
        payers = self._payers
        before, held = payers.of(key), uid in payers.holders(key)
        payers.use(key, uid, holds=holds)
        after = payers.of(key)
        if before != after:
            again.update({before: None, after: None})
        elif held != holds:
            self._note_sharing(after)

    def _pays(self, key: Key, pod: Pod, *, asking: bool) -> bool:
        """Whether a claim counts for a pod that uses it. One that is not there yet is nobody else's."""
        if key not in self.claims or (asking and not self._payers.holders(key)):
            return True
        payer = self._payers.of(key)
        return payer in ("", pod.uid) or (asking and not self._is_in_queue_of(pod, payer))

    def _is_in_queue_of(self, pod: Pod, payer: str) -> bool:
        """Whether the payer of a claim counts in the same queue as a pod. All that share a claim are in a namespace."""
        cluster = self._cluster
        known = cluster.pods.get(payer) or cluster.grants.pod(payer)
        return known is not None and cluster.queue_of(known) == cluster.queue_of(pod)

    def _add(self, sums: dict[str, int], namespace: str, claim: PodClaim) -> None:
        """Adds the devices of a pod's claim: what it has, or else asks for; before it is made, what its template says.

        A claim for all devices of a node asks for as many as the largest node has.
        """
        known = self.claims.get((namespace, claim.name)) if claim.name else None
        template = self.templates.get((namespace, claim.template)) if known is None and claim.template else None
        if known is not None and known.allocated is not None:
            self._add_counts(sums, known.allocated)
        elif (requests := known.requests if known is not None else template) is not None:
            self._add_counts(sums, requests.counts)
            for name in requests.whole:
                key = self._names.key_of_class(name)
                add(sums, {key: self.pools.most_on_a_node(key)})

    def _add_counts(self, sums: dict[str, int], counts: Resources) -> None:
        for name, count in counts.items():
            add(sums, {self._names.key_of_class(name): count})

    def _charge_all_again(self, uids: Iterable[str]) -> None:
        """Charges each of these pods anew, once. A grant ends that has grown to what the rules do not admit.

        Tenants may change claims and templates while the scheduler does not try a pod, and no rule is asked about that.
        """
        cluster = self._cluster
        for uid in [uid for uid in uids if self._charge_again(uid)]:
            granted = cluster.grants.pod(uid)
            if granted is not None and cluster.check(cluster.pods.get(uid) or granted) is not None:
                cluster.states.withdraw(uid)

    def _charge_again(self, uid: str) -> bool:
        """Charges a pod anew, as it is seen, and as it was granted if that is newer. Returns whether a grant grows."""
        cluster, grows = self._cluster, False
        known, granted = cluster.pods.get(uid), cluster.grants.pod(uid)
        pod = known or granted
        _put(self._asking_for_all, uid, there=pod is not None and self._asks_for_all(pod))
        self._note_sharing(uid)
        if granted is not None and (charged := self.charged(granted)) is not granted:
            grows = is_lighter(granted.request, charged.request)
            cluster.grants.replace(charged)
            entry = cluster.ledger.entries.get(uid)
            if entry is not None and entry.kind == "granted":
                if known is not None and not cluster.grants.is_older(known):
                    charged = self.charged(known)
                cluster.ledger.enter("granted", charged)
        if known is not None and (charged := self.charged(known)) is not known:
            cluster.upsert_pod(charged, self._now)
        return grows

    def _note_sharing(self, uid: str) -> None:
        """Notes what the leaving of a pod does not free, as others hold it, too."""
        pod = self._cluster.pods.get(uid) or self._cluster.grants.pod(uid)
        self._cluster.table.see_sharing(uid, self._shared_by(pod) if pod is not None else ())

    def _classes_changed(self) -> None:
        cluster = self._cluster
        for quota in list(self._names.of_quotas.values()):
            cluster.upsert_quota(quota)
        for queue in list(self._names.of_queues.values()):
            cluster.upsert_queue(queue)
        named = {name: (self._names.key_of_class(name), of) for name, of in self._names.classes.items()}
        self._outdated_nodes.update(dict.fromkeys(sorted(self.pools.see_classes(named))))
        self._note_undecidable()
        self._outdated.update(dict.fromkeys(self._of_pods))
        cluster.queued_jobs.defaults_changed()

    def _claim_came_or_went(self, key: Key) -> None:
        users = self._payers.users(key)
        if len(users) > 1:
            self._outdated.update(users)
        self._charge_all_again((self._payers.of(key),))

    def _template_changed(self, namespace: str, name: str) -> None:
        self._outdated.update(self._of_templates.get((namespace, name), {}))
        self._cluster.queued_jobs.defaults_changed(namespace)

    def _shared_by(self, pod: Pod) -> tuple[Shared, ...]:
        """Returns the devices that count for a pod and that others hold, too."""
        found: list[Shared] = []
        for claim in pod.needs.claims if pod.needs is not None else ():
            key = pod.namespace, claim.name
            holders = self._payers.holders(key)
            if len(holders) > 1 and self._payers.of(key) == pod.uid:
                held: dict[str, int] = {}
                self._add(held, pod.namespace, claim)
                others = frozenset(holders) - {pod.uid} if len(holders) <= MOST_HOLDERS else NEVER_GONE
                found.append((others, held))
        return tuple(found)

    def _asks_for_all(self, pod: Pod) -> bool:
        """Whether a pod's claims ask for all devices of a node, so that its charge depends on what nodes have."""
        for claim in pod.needs.claims if pod.needs is not None and not pod.finished else ():
            known = self.claims.get((pod.namespace, claim.name))
            requests = known.requests if known is not None else self.templates.get((pod.namespace, claim.template))
            if requests is not None and requests.whole and (known is None or known.allocated is None):
                return True
        return False

    def _nodes_changed(self, names: Iterable[str]) -> None:
        self._outdated.update(dict.fromkeys(self._asking_for_all))
        self._note_undecidable()
        for name in names:
            self._count_node(name)

    def _count_node(self, name: str) -> None:
        node = self._cluster.table.node(name)
        if node is not None:
            self._cluster.upsert_node(node)

    def _note_undecidable(self) -> None:
        """Has nodes decide nothing about devices of which it is not known how many they have left."""
        if self._cluster.table.undecidable != self.pools.undecidable:
            self._cluster.table.see_undecidable(self.pools.undecidable)
            self._cluster.generations.shares += 1
            self._cluster.generations.plans += 1
            self._cluster.generations.admission += 1

    def _one(self, sums: dict[str, int]) -> Resources:
        """Returns one object for all pods that are charged the same (see policy.objects.signature)."""
        if len(self._same) >= MOST_SHARED:
            self._same.clear()
        return self._same.setdefault(tuple(sums.items()), sums)


def _put(names: set[str], name: str, *, there: bool) -> None:
    """Adds a name, or removes it."""
    (names.add if there else names.discard)(name)
