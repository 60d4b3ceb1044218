"""The rules by which a node is kept from a pod: room is held for another one, or the node is reserved for a job.

What they are told by, and under which name; who is kept from which node is known to policy.cluster.
"""

from collections.abc import Collection

from policy.objects.verdict import Refusal
from policy.quota.rule import NODE, Rule

HELD: Rule[None] = Rule("node-held", "node(s) held for a pod that is being given room", NODE)
RESERVED: Rule[None] = Rule("node-reserved", "node(s) resource was(were) reserved", NODE)
RULES = (HELD, RESERVED)


def refusal_by(rules: Collection[Rule[None]]) -> Refusal:
    """What is said where every node that has room is kept from a pod by one of these rules."""
    return (RESERVED if RESERVED in rules else HELD).refusal()


def kept_from(message: str) -> Rule[None] | None:
    """The rule by which a node was kept from a pod, if its condition names one."""
    return next((rule for rule in RULES if rule.text in message), None)
