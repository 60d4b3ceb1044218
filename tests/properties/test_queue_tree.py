"""Trees of queues: what each deserves, beside a slow solver with fractions, and what holds at every level."""

import os
import random
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from policy.objects.queue import ROOT, Queue
from policy.quota import proportion
from policy.quota.queue_tree import MOST_LEVELS
from policy.quota.water_filling import Bid
from policy.stepwise import at_once
from tests.properties.test_water_filling import level_reached
from tests.unit.given_queues import divisions, tree_of

TREES = 10_000 if os.environ.get("QUOTAWARD_LONG") else 300
NAMES = "abcdefghijkl"


def a_tree(dice: random.Random) -> tuple[int, dict[str, Queue], dict[str, dict[str, int]]]:
    """How much there is, queues, and what they ask for."""
    largest = dice.choice((4, 20, 1000, 10**12))
    names = dice.sample(NAMES, dice.randint(1, len(NAMES)))
    queues, level = {}, {ROOT: 0}
    for at, name in enumerate(names):
        parent = dice.choice((ROOT, *names[max(0, at - 3) : at]))
        parent = ROOT if level[parent] == MOST_LEVELS else parent
        level[name] = level[parent] + 1
        queues[name] = Queue(
            name,
            dice.choice((1, 1, 2, 3, 7, 2**31 - 1)),
            {} if dice.random() < 0.6 else {"cpu": dice.randint(0, largest)},
            {} if dice.random() < 0.6 else {"cpu": dice.randint(0, largest)},
            parent=parent,
        )
    return dice.randint(0, 2 * largest), queues, {name: {"cpu": dice.randint(0, largest)} for name in names}


def solved(total: int, queues: dict[str, Queue], asked: dict[str, int]) -> dict[str, int]:
    """What each deserves, word by word as the definition has it, with fractions until the last unit is rounded."""
    below = {name: sorted(each.name for each in queues.values() if each.parent == name) for name in (*queues, ROOT)}
    kept, most, part = {}, {ROOT: total}, {ROOT: total}

    def sure(name):
        own = max(queues[name].guarantee.get("cpu", 0), sum(map(sure, below[name])))
        return min(own, queues[name].capability.get("cpu", own))

    def bound(name):
        wanted = {child: Fraction(sure(child)) for child in below[name]}
        if sum(wanted.values()) > most[name]:
            bids = {child: Bid(max(1, int(amount)), 0, int(amount)) for child, amount in wanted.items()}
            kept.update(rounded(most[name], bids))
        else:
            kept.update({child: int(amount) for child, amount in wanted.items()})
        for child in below[name]:
            others = sum(kept[other] for other in below[name] if other != child)
            most[child] = min(queues[child].capability.get("cpu", most[name]), most[name] - others)
            bound(child)

    def request(name):
        return sum(min(request(child), most[child]) for child in below[name]) if below[name] else asked[name]["cpu"]

    def deserve(name):
        bids = {}
        for child in below[name]:
            low = min(kept[child], most[child])
            bids[child] = Bid(queues[child].weight, low, max(low, min(request(child), most[child])))
        part.update(rounded(part[name], bids))
        for child in below[name]:
            deserve(child)

    bound(ROOT)
    deserve(ROOT)
    return {name: part[name] for name in queues}


def rounded(amount: int, bids: dict[str, Bid]) -> dict[str, int]:
    """The parts at the one level at which they sum to the amount; what rounding leaves goes by remainder and name."""
    names, given_bids = list(bids), list(bids.values())
    if sum(bid.low for bid in given_bids) >= amount:
        return {name: bid.low for name, bid in bids.items()}
    if sum(bid.high for bid in given_bids) <= amount:
        return {name: bid.high for name, bid in bids.items()}
    level = level_reached(amount, given_bids)
    exact = {name: max(Fraction(bid.low), min(Fraction(bid.high), level * bid.weight)) for name, bid in bids.items()}
    parts = {name: int(each) for name, each in exact.items()}
    left = amount - sum(parts.values())
    for name in sorted(names, key=lambda name: (parts[name] - exact[name], name))[:left]:
        parts[name] += 1
    return parts


def test_a_slow_solver_with_fractions_agrees():
    for seed in range(TREES):
        total, queues, asked = a_tree(random.Random(seed))
        found = divisions({"cpu": total}, queues, asked)
        assert {name: each.deserved.get("cpu", 0) for name, each in found.items()} == solved(total, queues, asked), seed


@given(st.randoms(use_true_random=False))
def test_what_holds_at_every_level(dice):
    total, queues, asked = a_tree(dice)
    found = divisions({"cpu": total}, queues, asked)
    for parent in (*queues, ROOT):
        children = [found[name] for name, each in queues.items() if each.parent == parent]
        whole = {"cpu": total} if parent == ROOT else found[parent].deserved
        room = total if parent == ROOT else found[parent].real_capability["cpu"]
        assert sum(each.deserved.get("cpu", 0) for each in children) <= whole.get("cpu", 0)
        assert sum(each.guarantee.get("cpu", 0) for each in children) <= room
    for name, each in found.items():
        low, part, most = (getattr(each, kind).get("cpu", 0) for kind in ("guarantee", "deserved", "real_capability"))
        assert 0 <= low <= part <= most <= queues[name].capability.get("cpu", most)


@given(st.randoms(use_true_random=False))
def test_after_changes_of_requests_the_parts_are_those_computed_at_once(dice):
    total, queues, asked = a_tree(dice)
    tree, known, found = tree_of({name: each.parent for name, each in queues.items()}), {}, {}
    for _ in range(5):
        for name in dice.sample(sorted(queues), dice.randint(0, len(queues))):
            asked[name] = {"cpu": dice.randint(0, total)}
        total = dice.choice((total, total, total + 1))
        found |= at_once(proportion.divisions_steps({"cpu": total}, queues, tree, asked, known))
        assert found == divisions({"cpu": total}, queues, asked)
