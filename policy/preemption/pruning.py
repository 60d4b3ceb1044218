"""Pruning: puts back as many victims as possible, those first whose eviction costs most."""

from policy.objects.pod import Pod
from policy.preemption.eviction_trial import EvictionTrial
from policy.preemption.ranking import importance


def prune(trial: EvictionTrial, node: str) -> None:
    """Puts back as many as possible: first who is in a budget, and then those whose eviction would cost a Job.

    Then those of far queues, then members of gangs that were taken together, then those whose quotas would fall below
    their min, then by importance, then of who borrowed least.
    """
    taken, expensive_first = trial.taken, trial.ranking.expensive_first
    for gang in dict.fromkeys(taken.together.values()):
        _spare_gang(trial, gang, node)
    victims = sorted(taken.pods(), key=importance)
    in_budget = trial.cluster.budgets.violating(victims)
    losses = taken.losses
    at_stake = losses.at_stake(sorted(victims, key=expensive_first)) if losses.fail or losses.suspended else {}
    in_order = sorted(
        victims,
        key=lambda pod: (
            pod.uid not in in_budget,
            at_stake.get(pod.uid, len(at_stake)),
            -trial.ranking.distance(pod),
            pod.uid not in taken.together,
            *expensive_first(pod),
        ),
    )
    if _suffices(trial, in_order[-1:], node):
        in_order = in_order[-1:]
    for pod in in_order:
        if pod.uid in taken.victims and trial.fits_beside(node, taken.with_mates(pod.uid)):
            given_back = taken.give_back(pod.uid)
            if not trial.admitted():
                trial.take_all(given_back)


def _spare_gang(trial: EvictionTrial, gang: frozenset[str], node: str) -> None:
    """Puts a gang back but for those whom it can do without, if their eviction is enough."""
    taken = trial.taken
    pods = sorted((taken.victims[uid][0] for uid in gang), key=trial.ranking.expensive_first)
    beyond = trial.gangs.beyond_minimum(pods[0])
    if beyond <= 0:
        return
    given_back = taken.give_back(pods[0].uid)
    trial.take_all(pods[-beyond:])
    if trial.fits(node) and trial.admitted():
        taken.separate(pods)
    else:
        trial.take_all([pod for pod in given_back if pod not in pods[-beyond:]])


def _suffices(trial: EvictionTrial, last: list[Pod], node: str) -> bool:
    """Whether the cheapest victim is enough, as it mostly is; then all others are put back at once."""
    taken = trial.taken
    gone = {uid for pod in last for uid in taken.with_mates(pod.uid)}
    others = [uid for uid in taken.victims if uid not in gone]
    if not trial.fits_beside(node, others):
        return False
    given_back: list[Pod] = []
    for uid in others:
        if uid in taken.victims:
            given_back += taken.give_back(uid)
    if trial.admitted():
        return True
    trial.take_all(given_back)
    return False
