"""The rules in order, for one pod."""

from dataclasses import dataclass

from policy import elastic_quota
from policy.ledger import Ledger
from policy.pod import Pod
from policy.verdict import Refusal


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator may choose about the rules."""

    strict_borrowing: bool = False


def refusal(ledger: Ledger, pod: Pod, rules: Rules, *, with_in_flight: bool = False) -> Refusal | None:
    """The first rule that refuses the pod, or None if it may run. The pod itself must not be part of used."""
    return elastic_quota.refusal(ledger, pod, strict_borrowing=rules.strict_borrowing, with_in_flight=with_in_flight)
