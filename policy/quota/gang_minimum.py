"""The rule of gangs: no member starts before as many as the minimum can. What is said then, and under which name."""

from policy.objects.verdict import Refusal

MINIMUM = "gang-minimum"
TEXT = "Gang minimum cannot be placed yet"
REFUSAL = Refusal(MINIMUM, TEXT)
