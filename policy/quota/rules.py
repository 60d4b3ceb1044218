"""All rules, in the order in which they are asked."""

from typing import Any

from policy.quota import elastic_quota, fair_share, gang_minimum, kept_nodes, queue_rules, run_time_limit
from policy.quota.rule import Rule

RULES: tuple[Rule[Any], ...] = (
    run_time_limit.RULE,
    *elastic_quota.RULES,
    *queue_rules.RULES,
    fair_share.RULE,
    gang_minimum.RULE,
    *kept_nodes.RULES,
)
BY_NAME = {rule.name: rule for rule in RULES}


def named_in(message: str) -> Rule[Any] | None:
    """Returns the rule that a pod's condition names, if it names one of ours."""
    return next((rule for rule in RULES if rule.text in message), None)
