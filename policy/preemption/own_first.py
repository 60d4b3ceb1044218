"""Own pods first: less important ones of the pending pod's namespace leave, so that it may take back from others."""

from policy.objects.pod import Pod
from policy.preemption.ranking import importance
from policy.preemption.search import MOST_FOR_A_RULE, VictimSearch


def let_own_leave_first(search: VictimSearch) -> bool:
    """Lets less important pods of the pod's own namespace leave, if it may take something back only without them.

    They are as few as that takes. Returns whether there are such pods. Call this only while there are no victims.
    """
    trial = search.trial
    may_help = not trial.borrowers.resources and trial.preemptor.governed
    own = _own_in_the_way(search) if may_help else ()
    trial.reopen(own)
    return bool(own) and bool(trial.borrowers.resources)


def _own_in_the_way(search: VictimSearch) -> tuple[Pod, ...]:
    """The fewest less important peers without which the pod may take something back."""
    trial, taken = search.trial, search.trial.taken
    peers = search.peers_in_turn(frozenset(trial.preemptor.pod.request), None)
    for pod in (pod for candidates in search.passes() for pod in candidates(peers)):
        if len(taken.victims) >= MOST_FOR_A_RULE:
            break
        if trial.evictable.is_peer(pod):
            trial.take(pod)
            if trial.entitlement_now().resources:
                break
    in_order = sorted(taken.pods(), key=importance)
    at_stake = taken.losses.at_stake(in_order)
    for pod in sorted(in_order, key=lambda pod: at_stake.get(pod.uid, len(at_stake))):
        if pod.uid in taken.victims:
            given_back = taken.give_back(pod.uid)
            if not trial.entitlement_now().resources:
                trial.take_all(given_back)
    own = tuple(taken.pods())
    taken.give_back_all()
    return own
