"""The explanation of a pod: the verdict with its numbers, who holds what it lacks, what comes next, what would help."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.api.models import (
    ChangeModel,
    ExplanationModel,
    HolderModel,
    ProspectModel,
    RemedyModel,
)
from app.ending import JOB_ENDS
from app.whatif.remedies import Remedy
from policy import elastic_quota, fair_share, queues
from policy import holders as holding
from policy.cluster import Cluster
from policy.holders import Holder
from policy.pod import Pod
from policy.prospects import Prospect
from policy.quantity import render
from policy.verdict import Refusal, Verdict

NAMED = 20
"""Pods of a holder that are named."""
TOLD = 3
"""Holders, and pods of each, that are told of in the paragraph."""
FIGURES = {
    elastic_quota.MAX: ("request", "used", "max"),
    elastic_quota.BORROWING: ("request", "used", "min", "poolUsed", "poolMin"),
    queues.CAPABILITY: ("request", "allocated", "realCapability"),
    queues.DESERVED: ("request", "allocated", "deserved", "total", "allocatedInAllQueues", "claimedByOtherQueues"),
    fair_share.FAIR_SHARE: ("request", "allocatedInNamespace", "entitled", "deserved", "claimedByOtherNamespaces"),
}
"""The numbers that each rule compares, for the paragraph."""
WOULD_REFUSE = "would-refuse"
"""The verdict on who is not refused only because nobody is, as in the list of decisions."""
BOUNDS = {
    "min": "min",
    "max": "max",
    "deserved": "deserved part",
    "realCapability": "real capability",
    "entitled": "share",
}
"""What holders are told to be over, or within, by the figure that the rule compares."""


def explanation(
    name: tuple[str, str],
    verdict: Verdict,
    outlook: str,
    held: Sequence[Holder],
    prospects: Sequence[Prospect],
    remedies: Sequence[Remedy],
    *,
    observe: bool = False,
) -> ExplanationModel:
    """A verdict as REST shows it. Where no remedy was found that works, those are shown that the numbers suggest.

    ``observe``: nobody is refused, so what is said is who would be.
    """
    if observe and verdict.outcome == "refused":
        message = f"{verdict.message} (observe mode: nobody is refused)"
        verdict = replace(verdict, outcome=WOULD_REFUSE, message=message)
    shown = [_remedy(each) for each in remedies] or [
        RemedyModel(
            text=each.text,
            target=each.target,
            path=each.path,
            value=each.value,
            change=None,
            commands=[],
            verified=False,
        )
        for each in verdict.remedies
    ]
    return ExplanationModel(
        namespace=name[0],
        name=name[1],
        verdict=verdict.outcome,
        rule=verdict.rule,
        message=verdict.message,
        outlook=outlook,
        numbers={
            resource: {figure: render(resource, value) for figure, value in row.items()}
            for resource, row in verdict.numbers.items()
        },
        remedies=shown,
        holders=[_holder(each) for each in held],
        next=[ProspectModel(step=each.step, text=each.text, in_seconds=_rounded(each.after)) for each in prospects],
        summary=_summary(name, verdict, held, prospects, shown),
    )


def holders_of(cluster: Cluster, pod: Pod, verdict: Verdict) -> list[Holder]:
    """Who holds what a refused pod lacks."""
    return holding.holders(cluster, pod, Refusal(verdict.rule, "", verdict.resources))


def in_words(verdict: str) -> str:
    """A verdict as the verb of a sentence on a pod."""
    return "would be refused" if verdict == WOULD_REFUSE else f"is {verdict}"


def _summary(
    name: tuple[str, str],
    verdict: Verdict,
    held: Sequence[Holder],
    prospects: Sequence[Prospect],
    remedies: Sequence[RemedyModel],
) -> str:
    """All in one paragraph."""
    by = f" by {verdict.rule}" if verdict.rule else ""
    sentences = [f"{name[0]}/{name[1]} {in_words(verdict.outcome)}{by}: {verdict.message}"]
    if verdict.outcome in {"refused", WOULD_REFUSE}:
        sentences += [_compared(verdict, resource) for resource in verdict.resources or verdict.numbers]
    sentences += [_told(each) for each in held[:TOLD]]
    sentences += [f"Next: {each.text}{_when(each.after)}" for each in prospects[:1]]
    sentences += [f"Mind that {each.text}" for each in prospects if each.step == JOB_ENDS]
    if remedies:
        sentences.append(f"What helps: {'; or '.join(each.text for each in remedies)}")
    return " ".join(f"{sentence.rstrip('.')}." for sentence in sentences)


def _compared(verdict: Verdict, resource: str) -> str:
    """The figures of a resource that the rule compares."""
    row = verdict.numbers.get(resource, {})
    names = FIGURES.get(verdict.rule, tuple(row))
    return f"{resource}: {', '.join(f'{name} {render(resource, row[name])}' for name in names if name in row)}"


def _told(holder: Holder) -> str:
    """Who holds what: ``3 of team-b's pods are over its min``."""
    used, bound = render(holder.resource, holder.used), render(holder.resource, holder.bound)
    names = ", ".join(_titles(holder.pods[:TOLD])) + (", …" if len(holder.pods) > TOLD else "")
    pods = f": {names}" if names else ""
    who = f"{holder.kind} {holder.name}"
    what = f"its {BOUNDS[holder.bound_name]} of {bound}"
    beyond = f"{render(holder.resource, holder.over)} over {what}" if holder.over else f"within {what}"
    return f"{who} holds {used} of {holder.resource}, {beyond}{pods}"


def _when(after: float | None) -> str:
    return "" if not after else f" (in {duration(after)})"


def duration(seconds: float) -> str:
    """A time for people, in its two largest units: ``1d 23h``, ``5s``."""
    left, parts = max(1, round(seconds)), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join(parts[:2])


def _remedy(remedy: Remedy) -> RemedyModel:
    change = ChangeModel(apply=remedy.change.apply, remove=remedy.change.remove)
    return RemedyModel(
        text=remedy.text,
        target=remedy.target,
        path=remedy.path,
        value=remedy.value,
        change=change,
        commands=remedy.commands,
        verified=True,
    )


def _holder(holder: Holder) -> HolderModel:
    used, bound, over = (render(holder.resource, value) for value in (holder.used, holder.bound, holder.over))
    return HolderModel(
        kind=holder.kind,
        name=holder.name,
        resource=holder.resource,
        used=used,
        bound=bound,
        bound_name=holder.bound_name,
        over=over,
        pods=_titles(holder.pods[:NAMED]),
        number=len(holder.pods),
    )


def _titles(pods: Iterable[Pod]) -> list[str]:
    return [f"{pod.namespace}/{pod.name}" for pod in pods]


def _rounded(after: float | None) -> float | None:
    return None if after is None else round(after, 3)
