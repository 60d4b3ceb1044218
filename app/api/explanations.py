"""The explanation of a pod: the verdict with its numbers, the holders of what it lacks, next steps, and remedies."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from app.api.models import (
    ChangeModel,
    ExplanationModel,
    HolderModel,
    NextStepModel,
    RemedyModel,
)
from app.ending import JOB_ENDS
from app.whatif.remedies import ALONE, UNTRIED, WITH_ALL, TriedRemedy
from app.whatif.service import COMPLETE, OUT_OF_TIME, Searched
from policy.cluster.cluster import Cluster
from policy.explain import holders as holding
from policy.explain.holders import Holder
from policy.explain.next_steps import NOT_ELASTIC, NOT_JUDGED, NextStep
from policy.explain.remedies import is_tried
from policy.objects.pod import Pod
from policy.objects.quantity import render
from policy.objects.verdict import Hint, Refusal, Verdict
from policy.quota.rules import BY_NAME

NAMED = 20
"""Maximum number of pods of a holder that are named."""
MINDED = {JOB_ENDS, NOT_ELASTIC, NOT_JUDGED}
"""Steps that the summary always mentions."""
TOLD = 3
"""Maximum number of holders, and pods of each, in the summary."""
HELPS = {
    WITH_ALL: "What helps",
    ALONE: "What helps if no other pod that waits comes before it (tried for this one alone)",
    UNTRIED: "What may help (not tried)",
}
"""Introductions of remedies, by what they were tried with."""
ENDED = {
    OUT_OF_TIME: "The time to try remedies was over before all of them were tried (whatif.remedyTime)",
}
"""Sentences on a search for remedies that did not complete."""
IF_ANY = {"ahead", "poolAhead"}
"""Figures that are mentioned only if they are not zero."""
WOULD_REFUSE = "would-refuse"
"""The verdict on a pod that only observe mode does not refuse, as in the list of decisions."""
IN_WORDS = {"deserved": "deserved part", "realCapability": "real capability", "entitled": "share"}
"""Names of holders' bounds in sentences, where they differ from the figure's name."""


def explanation(
    name: tuple[str, str],
    verdict: Verdict,
    outlook: str,
    held: Sequence[Holder],
    next_steps: Sequence[NextStep],
    searched: Searched | None,
    late: Sequence[str] = (),
    *,
    observe: bool = False,
    title: str = "",
) -> ExplanationModel:
    """Builds REST's explanation from a verdict and the remedies that were searched for (None: no search).

    If there was no time to try any, or the rule has none to try, the remedies that the numbers suggest are shown, and
    marked as not tried.
    ``late``: sentences on pods beside it that should be gone. ``observe``: no pod is refused, so the verdict says what
    would be refused. ``title``: what the summary calls it, if not namespace/name.
    """
    if observe and verdict.outcome == "refused":
        message = f"{verdict.message} (observe mode: nobody is refused)"
        verdict = replace(verdict, outcome=WOULD_REFUSE, message=message)
    ended = searched.ended if searched else ""
    shown = [_remedy(each) for each in searched.remedies] if searched else []
    if not shown and (ended != COMPLETE or not is_tried(verdict.rule)):
        shown = [_hint(each) for each in verdict.hints]
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
        searched=ended,
        holders=[_holder(each) for each in held],
        next=[NextStepModel(step=each.step, text=each.text, in_seconds=_rounded(each.after)) for each in next_steps],
        terminating=list(late),
        summary=_summary(title or "/".join(name), verdict, held, next_steps, _what_helps(shown, ended), late),
    )


def holders_of(cluster: Cluster, pod: Pod, verdict: Verdict) -> list[Holder]:
    """Returns the holders of what a refused pod lacks; for an admitted pod, nominated pods that hold nothing."""
    return holding.holders(cluster, pod, Refusal(verdict.rule, "", verdict.resources))


def in_words(verdict: str) -> str:
    """Returns a verdict as the verb of a sentence on a pod."""
    return "would be refused" if verdict == WOULD_REFUSE else f"is {verdict}"


def _summary(
    title: str,
    verdict: Verdict,
    held: Sequence[Holder],
    next_steps: Sequence[NextStep],
    what_helps: Iterable[str],
    late: Sequence[str],
) -> str:
    """Sums up everything in one paragraph."""
    by = f" by {verdict.rule}" if verdict.rule else ""
    sentences = [f"{title} {in_words(verdict.outcome)}{by}: {verdict.message}"]
    if verdict.outcome in {"refused", WOULD_REFUSE}:
        sentences += [_compared(verdict, resource) for resource in verdict.resources or verdict.numbers]
    sentences += [_told(each) for each in held[:TOLD]]
    sentences += late
    sentences += [f"Next: {each.text}{_when(each.after)}" for each in next_steps[:1]]
    sentences += [f"Mind that {each.text}" for each in next_steps if each.step in MINDED]
    sentences += what_helps
    return " ".join(f"{sentence.rstrip('.')}." for sentence in sentences)


def _what_helps(remedies: Sequence[RemedyModel], ended: str) -> Iterator[str]:
    """Yields sentences on the remedies, by what they were tried with, and on an incomplete search."""
    for tried, beginning in HELPS.items():
        texts = [each.text for each in remedies if each.tried == tried]
        if texts:
            yield f"{beginning}: {'; or '.join(texts)}"
    if ended == COMPLETE and not remedies:
        yield "Nothing that was tried lets it run"
    yield from filter(None, (ENDED.get(ended),))


def _compared(verdict: Verdict, resource: str) -> str:
    """Lists the figures of a resource that the rule compares."""
    row = verdict.numbers.get(resource, {})
    names = BY_NAME[verdict.rule].figures or tuple(row)
    told = [name for name in names if name in row and (row[name] or name not in IF_ANY)]
    return f"{resource}: {', '.join(f'{name} {render(resource, row[name])}' for name in told)}"


def _told(holder: Holder) -> str:
    """Describes a holder: what it uses, its bound, and the pods."""
    used, bound = render(holder.resource, holder.used), render(holder.resource, holder.bound)
    names = ", ".join(_titles(holder.pods[:TOLD])) + (", …" if len(holder.pods) > TOLD else "")
    pods = f": {names}" if names else ""
    what = f"its {IN_WORDS.get(holder.bound_name, holder.bound_name)} of {bound}"
    beyond = f"{render(holder.resource, holder.over)} over {what}" if holder.over else f"within {what}"
    who, first = f"{holder.kind} {holder.name}", _told_of_those_ahead(holder)
    if holder.in_vain:
        first += (
            f"; {', '.join(_titles(holder.in_vain[:TOLD]))} counts for nothing, as its nominated node cannot take it"
        )
    return f"{who} holds {used} of {holder.resource}, {beyond}{pods}{first}"


def _told_of_those_ahead(holder: Holder) -> str:
    """Names the pods for which more is kept: ``; 2 more of it is kept for pods that go first: a/p``."""
    if not holder.ahead:
        return ""
    names = ", ".join(_titles(holder.first[:TOLD])) + (", …" if len(holder.first) > TOLD else "")
    return f"; {render(holder.resource, holder.ahead)} more of it is kept for pods that go first: {names}"


def _when(after: float | None) -> str:
    return "" if not after else f" (in {duration(after)})"


def duration(seconds: float) -> str:
    """Formats a time for people in its two largest units: ``1d 23h``, ``5s``."""
    left, parts = max(1, round(seconds)), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join(parts[:2])


def _remedy(remedy: TriedRemedy) -> RemedyModel:
    change = ChangeModel(apply=remedy.change.apply, remove=remedy.change.remove)
    return RemedyModel(
        text=remedy.text,
        target=remedy.target,
        path=remedy.path,
        value=remedy.value,
        change=None if remedy.tried == UNTRIED else change,
        commands=remedy.commands,
        tried=remedy.tried,
        verified=remedy.tried == WITH_ALL,
    )


def _hint(hint: Hint) -> RemedyModel:
    return RemedyModel(
        text=hint.text,
        target=hint.target,
        path=hint.path,
        value=hint.value,
        change=None,
        commands=[],
        tried=UNTRIED,
        verified=False,
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
        terminating=_titles(holder.late[:NAMED]),
        ahead=render(holder.resource, holder.ahead),
        first=_titles(holder.first[:NAMED]),
        in_vain=_titles(holder.in_vain[:NAMED]),
    )


def _titles(pods: Iterable[Pod]) -> list[str]:
    return [f"{pod.namespace}/{pod.name}" for pod in pods]


def _rounded(after: float | None) -> float | None:
    return None if after is None else round(after, 3)
