"""The rule of gangs: no member starts before as many as the minimum can. What is said then, and under which name.

Whether they can start is asked of nodes, too (policy.cluster.gang_admission).
"""

from policy.quota.rule import GROUP, Rule

RULE: Rule[None] = Rule("gang-minimum", "Gang minimum cannot be placed yet", GROUP)
REFUSAL = RULE.refusal()
