"""The rule of gangs: no member starts before as many as the minimum can. Here are its name and its text.

Nodes decide, too, whether they can start (policy.cluster.gang_admission).
"""

from policy.quota.rule import GROUP, Rule

RULE: Rule[None] = Rule("gang-minimum", "Gang minimum cannot be placed yet", GROUP)
REFUSAL = RULE.refusal()
