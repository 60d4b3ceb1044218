"""Whatever happens to claims, templates, classes and pods: what is used is what a recount finds."""

from dataclasses import replace

import pytest

from policy.cluster.cluster import Cluster
from policy.objects.device import IMPLICIT, DeviceClaim, DeviceClass, DeviceNeeds, DeviceRequests, PodClaim
from policy.objects.pod import Pod
from policy.simulate.snapshot import copy_steps, snapshot
from policy.stepwise import at_once
from tests.unit.given import quota
from tests.worlds.walk import by_dice, scaled, walk

NAMESPACES, CLASSES, CLAIMS, TEMPLATES, PODS = "ab", ("x", "y"), ("c", "d", "e"), ("s", "t"), ("p", "q", "r", "s")
EXTENDED = ("", "", "example.com/gpu", "example.com/npu")
REQUESTS = ({}, {}, {"example.com/gpu": 1}, {f"{IMPLICIT}x": 2}, {f"{IMPLICIT}x": 1, "example.com/gpu": 1})


class DeviceWalker:
    """Does everything that changes what devices pods take, and keeps what there is to count it from scratch."""

    def __init__(self) -> None:
        self.cluster = Cluster(settle_time=0, grant_lifetime=8)
        self.trace: list[str] = []
        self.pods: dict[str, Pod] = {}
        self.classes: dict[str, str] = {}
        self.claims: dict[tuple[str, str], DeviceClaim] = {}
        self.templates: dict[tuple[str, str], DeviceRequests] = {}
        self.now = 0.0
        for namespace in NAMESPACES:
            self.cluster.upsert_quota(quota(namespace, most={"example.com/gpu": 6, f"{IMPLICIT}x": 7}))

    def steps(self):
        steps = [self.class_is_seen, self.class_goes, self.claim_goes, self.template_goes, self.time_passes]
        steps += [self.claim_is_seen] * 4 + [self.template_is_seen] * 2 + [self.pod_is_seen] * 6
        return steps + [self.pod_is_asked_for] * 4 + [self.pod_goes] * 2

    # What is seen

    def class_is_seen(self, pick):
        name, extended = pick(CLASSES), pick(EXTENDED)
        self.tell(f"class {name} is {extended}")
        self.classes[name] = extended
        self.cluster.devices.upsert_class(name, DeviceClass(extended))

    def class_goes(self, pick):
        name = pick(CLASSES)
        self.tell(f"class {name} goes")
        self.classes.pop(name, None)
        self.cluster.devices.delete_class(name)

    def claim_is_seen(self, pick):
        has = pick((None, None, {"x": 1}, {"y": 2}, {"x": 1, "y": 1}))
        made = DeviceClaim(pick(NAMESPACES), pick(CLAIMS), self.requests(pick), has)
        self.tell(f"{made}")
        self.claims[made.key] = made
        self.cluster.devices.upsert_claim(made)

    def claim_goes(self, pick):
        key = pick(NAMESPACES), pick(CLAIMS)
        self.tell(f"claim {key} goes")
        self.claims.pop(key, None)
        self.cluster.devices.delete_claim(*key)

    def template_is_seen(self, pick):
        key, asked = (pick(NAMESPACES), pick(TEMPLATES)), self.requests(pick)
        self.tell(f"template {key} {asked}")
        self.templates[key] = asked
        self.cluster.devices.upsert_template(*key, asked)

    def template_goes(self, pick):
        key = pick(NAMESPACES), pick(TEMPLATES)
        self.tell(f"template {key} goes")
        self.templates.pop(key, None)
        self.cluster.devices.delete_template(*key)

    def pod_is_seen(self, pick):
        made = self.any_pod(pick)
        made = replace(made, **pick(({}, {"node": "n"}, {"node": "n"}, {"node": "n", "finished": True})))
        self.tell(f"see {told(made)}")
        self.pods[made.uid] = made
        self.cluster.upsert_pod(made, self.now)

    def pod_goes(self, pick):
        uid = f"{pick(NAMESPACES)}/{pick(PODS)}"
        self.tell(f"{uid} goes")
        self.pods.pop(uid, None)
        self.cluster.delete_pod(uid)

    def pod_is_asked_for(self, pick):
        asked = self.any_pod(pick)
        if (known := self.pods.get(asked.uid)) is not None:
            asked = replace(known, node="", finished=False, unschedulable=None)
        self.tell(f"ask for {told(asked)}: {self.cluster.admit(asked, self.now)}")

    def time_passes(self, pick):
        self.now += pick((1.0, 9.0))
        self.tell(f"at {self.now}")
        self.cluster.tick(self.now)

    def any_pod(self, pick):
        namespace, name = pick(NAMESPACES), pick(PODS)
        claims = {PodClaim(pick(CLAIMS)) for _ in range(pick((0, 0, 1, 1, 2)))}
        if pick((False, True)):
            claims.add(PodClaim(pick(("", *CLAIMS)), pick(TEMPLATES)))
        named = {each.name: each for each in sorted(claims, key=str)}
        needs = DeviceNeeds(pick(REQUESTS) | {"pods": 1}, tuple(named.values()))
        return Pod(f"{namespace}/{name}", namespace, name, needs.request, needs=needs)

    def requests(self, pick):
        return DeviceRequests(pick(({"x": 1}, {"x": 2, "y": 1}, {"y": 3}, {})))

    def tell(self, text):
        self.trace.append(text)

    # What has to hold

    def check(self):
        at_once(self.cluster.devices.renew_steps())
        for namespace in NAMESPACES:
            assert dict(self.cluster.ledger.account(namespace).used) == self.recount(namespace), namespace

    def recount(self, namespace):
        """What pods that hold room request, and once each claim that one of them uses."""
        holding = {uid: pod for uid, pod in self.pods.items() if pod.node and not pod.finished}
        holding |= {pod.uid: self.pods.get(pod.uid, pod) for pod in self.cluster.grants.pods()}
        sums: dict[str, int] = {}
        claims: dict[str, PodClaim] = {}
        for pod in (pod for pod in holding.values() if pod.namespace == namespace):
            self.add(sums, pod.needs.request)
            for each in pod.needs.claims:
                claims[each.name or f"{each.template} of {pod.uid}"] = each
                known = self.claims.get((namespace, each.name))
                if known is None:  # each pod has what its template says
                    del claims[each.name or f"{each.template} of {pod.uid}"]
                    asked = self.templates.get((namespace, each.template))
                    self.add(sums, self.by_key(asked.counts if asked else {}))
        for each in claims.values():
            known = self.claims[namespace, each.name]
            self.add(sums, self.by_key(known.requests.counts if known.allocated is None else known.allocated))
        return {resource: amount for resource, amount in sums.items() if amount}

    def by_key(self, counts):
        result: dict[str, int] = {}
        for name, count in counts.items():
            key = self.classes.get(name) or IMPLICIT + name
            result[key] = result.get(key, 0) + count
        return result

    def add(self, sums, part):
        for name, amount in part.items():
            key = self.classes.get(name.removeprefix(IMPLICIT)) or name if name.startswith(IMPLICIT) else name
            sums[key] = sums.get(key, 0) + amount

    def finish(self):
        """A copy counts the same, and when all is gone nothing is left."""
        copy = at_once(copy_steps(snapshot(self.cluster, self.now)))
        for namespace in NAMESPACES:
            assert copy.ledger.account(namespace).used == self.cluster.ledger.account(namespace).used
        for uid in [*self.pods, *(pod.uid for pod in self.cluster.grants.pods())]:
            self.cluster.withdraw(uid)
            self.cluster.delete_pod(uid)
        devices = self.cluster.devices
        assert not any((devices._of_pods, devices._of_templates, *vars(devices._payers).values()))


def told(pod):
    state = "ended" if pod.finished else "on a node" if pod.node else "waiting"
    claims = [f"{each.template}:{each.name}" for each in pod.needs.claims]
    return f"{pod.uid}, {state}, {dict(pod.needs.request)} {claims}"


@pytest.mark.parametrize("seed", range(4))
def test_what_is_used_is_what_a_recount_of_claims_and_pods_finds(seed):
    for number in range(scaled(4)):
        walk(DeviceWalker(), by_dice(1000 * seed + number), length=1000)
