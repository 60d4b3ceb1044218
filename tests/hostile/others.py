"""Whatever hostile tenants write besides pods: budgets, pod groups of every API group, Jobs."""

from app.store.heeded import MIN_PARALLELISM, PARALLELISM, QUEUED
from tests.controlplane.devices import made
from tests.controlplane.objects import Object, job
from tests.controlplane.pod_groups import NATIVE, OLDER_SCHEDULER_PLUGINS, SCHEDULER_PLUGINS, VOLCANO
from tests.hostile.chance import Chance
from tests.hostile.pods import CLAIMS, Place, hostile_pod

ABSURD = (0, -1, 1, 2, 5, 1000, 10**6, 2**31 - 1)
GROUP_VERSIONS = (SCHEDULER_PLUGINS, VOLCANO, NATIVE, OLDER_SCHEDULER_PLUGINS)
NUMBERS = (0, 1, 3, 100, 10**6, 2**31 - 1)
"""Pods that a Job runs at a time, or in all."""
MOST_RULES = 20
MOST_REQUESTS, MOST_ALTERNATIVES = 32, 8
"""Requests of a claim, and alternatives of one of them."""


def hostile_budget(chance: Chance, place: Place, name: str) -> Object:
    """A disruption budget with a long selector, or one that never lets anybody go."""
    selector = chance.selector(chance.many()) if chance.often(0.7) else {"matchLabels": {"app": "web"}}
    bound = chance.of(
        {"minAvailable": chance.of(0, 1, 2**31 - 1, "0%", "100%")}, {"maxUnavailable": chance.of(0, 1, "0%")}
    )
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": place.namespace},
        "spec": {"selector": selector, **bound, **chance.of({}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"})},
    }


def hostile_group(chance: Chance, place: Place, name: str, version: str) -> Object:
    """A pod group of this API group and version with a minimum beyond measure, in a queue of others."""
    least = chance.of(*ABSURD)
    spec: Object = {"minMember": least, "queue": chance.of(*place.queues, "nobody-s", "x" * 10_000)}
    if version == NATIVE:
        spec = {"schedulingPolicy": chance.of({"gang": {"minCount": max(1, least)}}, {"basic": {}})}
    metadata = {"name": name, "namespace": place.namespace}
    return {"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def hostile_claim(chance: Chance, place: Place) -> Object:
    """A claim, or a template of claims, with as many requests and alternatives as there may be."""
    requests = [_of_devices(chance, number) for number in range(chance.randint(1, MOST_REQUESTS))]
    spec: Object = {"devices": {"requests": requests}}
    if chance.often(0.3):
        spec["devices"]["constraints"] = [{"matchAttribute": f"{chance.word()}.example.com/model"}]
    if chance.often(0.5):
        return made("ResourceClaimTemplate", chance.of(*CLAIMS), place.namespace, spec={"spec": spec})
    return made("ResourceClaim", chance.of(*CLAIMS), place.namespace, spec=spec)


def _of_devices(chance: Chance, number: int) -> Object:
    if chance.often(0.3):
        several = [_exactly(chance) | {"name": f"a{each}"} for each in range(chance.randint(1, MOST_ALTERNATIVES))]
        return {"name": f"r{number}", "firstAvailable": several}
    return {"name": f"r{number}", "exactly": _exactly(chance)}


def _exactly(chance: Chance) -> Object:
    item = {"deviceClassName": chance.of("gpu", chance.word())} | chance.of(
        {"allocationMode": "All"}, {}, {"allocationMode": "ExactCount", "count": chance.of(1, 2, 2**63 - 1)}
    )
    if chance.often(0.2):
        item["selectors"] = [{"cel": {"expression": " || ".join(["device.driver == 'x'"] * chance.randint(1, 300))}}]
    return item


def hostile_job(chance: Chance, place: Place, name: str) -> Object:
    """A Job with as many rules for failures as there may be, or one that waits as a whole; nobody here runs it."""
    return _waiting_job(chance, place, name) if chance.often(0.5) else _job_with_rules(chance, place, name)


def _waiting_job(chance: Chance, place: Place, name: str) -> Object:
    """A Job whose size, labels, annotations, owners and pods are made up."""
    template = hostile_pod(chance, place, name)
    about_pods = {key: template["metadata"].get(key, {}) for key in ("labels", "annotations")}
    template["spec"].pop("nodeName", None)
    item = job(name, place.namespace, suspend=chance.often(0.7))
    item["spec"] |= {
        "parallelism": chance.of(*NUMBERS),
        "completions": chance.of(None, *NUMBERS),
        "template": {"metadata": about_pods, "spec": template["spec"] | {"restartPolicy": "Never"}},
    }
    made_up = (*map(str, ABSURD), "9" * 5000, "1.5", "+1", "", chance.word())
    owner = {"apiVersion": "batch/v1", "kind": chance.of("CronJob", "Job", "JobSet"), "name": name, "uid": f"a/{name}"}
    item["metadata"] |= {
        "labels": chance.of({}, {QUEUED: "true"}, {QUEUED: "false"}),
        "annotations": {
            **chance.of({}, {MIN_PARALLELISM: chance.of(*made_up)}),
            **chance.of({}, {PARALLELISM: chance.of(*made_up)}),
        },
        "ownerReferences": chance.of([], [], [owner | {"controller": True}]),
    }
    return item


def _job_with_rules(chance: Chance, place: Place, name: str) -> Object:
    rules = [_rule(chance) for _ in range(chance.randint(0, MOST_RULES))]
    limits = {
        "backoffLimit": chance.of(0, 1, 2**31 - 1),
        "activeDeadlineSeconds": chance.of(1, 2**31 - 1),
        "suspend": True,
        "podFailurePolicy": {"rules": rules},
    }
    if chance.often(0.3):
        limits |= {"completionMode": "Indexed", "backoffLimitPerIndex": chance.of(0, 2**31 - 1)}
    return job(name, place.namespace, pods=chance.of(1, 100), **limits)


def _rule(chance: Chance) -> Object:
    if chance.often(0.5):
        codes = sorted(set(chance.choices(range(1, 256), k=255)))
        values = {"operator": chance.of("In", "NotIn"), "values": codes}
        return {"action": chance.of("FailJob", "Ignore", "Count"), "onExitCodes": values}
    conditions = [{"type": chance.of("DisruptionTarget", chance.word()), "status": "True"} for _ in range(MOST_RULES)]
    return {"action": chance.of("FailJob", "Ignore", "Count"), "onPodConditions": conditions}
