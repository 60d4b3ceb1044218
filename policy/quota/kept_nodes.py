"""The rules that keep a node from a pod: room is held for another pod, or the node is reserved for a job.

A third rule keeps a native pod group from nodes where kube-scheduler would evict pods that may not be evicted for it.

Here are their names and texts; policy.cluster knows which pods are kept from which node.
"""

from collections.abc import Collection

from policy.objects.verdict import Refusal
from policy.quota.rule import NODE, Rule

HELD: Rule[None] = Rule("node-held", "node(s) held for a pod that is being given room", NODE)
RESERVED: Rule[None] = Rule("node-reserved", "node(s) resource was(were) reserved", NODE)
PROTECTED: Rule[None] = Rule("node-protected", "node(s) whose pods may not be evicted for this pod group", NODE)
RULES = (HELD, RESERVED, PROTECTED)


def refusal_by(rules: Collection[Rule[None]]) -> Refusal:
    """Returns the refusal for a pod if these rules keep it from every node that has room."""
    return next((rule for rule in (RESERVED, HELD, PROTECTED) if rule in rules), HELD).refusal()


def kept_from(message: str) -> Rule[None] | None:
    """Returns the rule that kept a node from a pod, if the pod's condition names one."""
    return next((rule for rule in RULES if rule.text in message), None)
