"""The events and amounts of the last day, as REST shows them: of one queue or quota in steps, or of all in sums."""

from math import ceil

from pydantic import Field

from app.history.reading import OF_RESOURCES, Series, Story, period_of, story_of
from app.history.recorder import QUEUE, QUOTA, Name, Recorder
from app.history.rows import MINUTES
from app.pause import Pause
from app.problems import Problem
from app.shapes import Model
from app.times import InvalidDuration, parse_duration, rfc3339
from policy.cluster.cluster import Cluster
from policy.objects.quantity import render

LONGEST = 64
"""Maximum number of characters of a duration in a request."""
FULL = "there was no memory left for the history of some"

Amounts = list[str | None]
Numbers = list[int | None]


class HistoryModel(Model):
    """The history of a queue or quota in steps: lists as long as ``at``, with null for what is not known.

    ``resources`` has by resource ``used`` (the highest in the step), and ``min``, ``max`` and for queues ``deserved``
    (the latest), as quantities; no limit is null. The ``min`` of a queue is its guarantee. ``waiting`` is the highest
    number of pods. ``refused`` counts refusals by rule; each attempt of a pod counts. A queue includes all below it.
    """

    kind: str
    namespace: str
    name: str
    resources: dict[str, dict[str, Amounts]]
    waiting: Numbers
    admitted: Numbers
    refused: dict[str, Numbers]
    evicted: Numbers
    reserved: Numbers


class HistoryList(Model):
    """The history of queues and quotas: ``step`` in seconds, and ``at`` with the start of each step.

    ``since``: from when on this replica knows; null if it knows nothing yet. ``countedSince``: the same of admissions,
    refusals and reservations, which no earlier process hands on. ``evictionsSince``: the same of evictions, of which
    Events tell. ``incomplete`` says what is lacking.
    """

    since: str | None
    counted_since: str | None
    evictions_since: str | None
    step: int
    at: list[str]
    incomplete: str = Field(default="")
    items: list[HistoryModel]


async def history(
    cluster: Cluster, recorder: Recorder, queue: str | None, quota: str | None, since: str, step: str
) -> HistoryList:
    """Returns the history of a queue or of a quota (NAMESPACE/NAME) in steps; of all, in one step, if none is named.

    Raises Problem (404) for one that was not there in the last day, and (422) for what is no duration.
    """
    minutes, names = _minutes(since, "since"), _names(cluster, recorder, queue, quota)
    of_all = queue is None and quota is None
    period = period_of(recorder, minutes, minutes if of_all else _minutes(step, "step"))
    items, pause = list[HistoryModel](), Pause()
    for name in names:
        items.append(_model(story_of(recorder, name, period)))
        await pause.if_due()
    return HistoryList(
        since=rfc3339(recorder.since * 60) if recorder.since else None,
        counted_since=rfc3339(recorder.counted_since * 60) if recorder.counted_since else None,
        evictions_since=rfc3339(recorder.evictions_since * 60) if recorder.evictions_since else None,
        step=period.step * 60,
        at=[rfc3339(minute * 60) for minute in period.starts],
        incomplete="; ".join(filter(None, (FULL if recorder.left_out else "", *recorder.all_lacking))),
        items=items,
    )


def quota_of(cluster: Cluster, recorder: Recorder, quota: str) -> Name:
    """Returns the name under which a quota is recorded. Raises Problem (404)."""
    namespace, _, name = quota.partition("/")
    there = recorder.recorded.get((QUOTA, namespace))
    if name not in cluster.quotas.get(namespace, {}) and (there is None or there.title != name):
        raise Problem(404, f"there is no ElasticQuota {quota}", field="quota")
    return QUOTA, namespace


def _names(cluster: Cluster, recorder: Recorder, queue: str | None, quota: str | None) -> list[Name]:
    names = list[Name]()
    if queue is not None:
        if queue not in cluster.queues and (QUEUE, queue) not in recorder.recorded:
            raise Problem(404, f"there is no queue {queue}", field="queue")
        names.append((QUEUE, queue))
    if quota is not None:
        names.append(quota_of(cluster, recorder, quota))
    return names or sorted(recorder.recorded)


def _minutes(duration: str, param: str) -> int:
    """Returns a duration in minutes, rounded up; at most a day. Raises Problem (422)."""
    try:
        seconds = parse_duration(duration)
    except InvalidDuration as error:
        raise Problem(422, str(error), field=f"query.{param}") from error
    if not seconds:
        raise Problem(422, f"{duration!r} is no time at all", field=f"query.{param}")
    return ceil(min(seconds / 60, MINUTES))


def _model(story: Story) -> HistoryModel:
    kind, name = story.name
    return HistoryModel(
        kind=kind,
        namespace=name if kind == QUOTA else "",
        name=story.title or name,
        resources={
            resource: {figure: _amounts(resource, series[figure]) for figure in OF_RESOURCES if figure in series}
            for resource, series in sorted(story.resources.items())
        },
        waiting=list(story.waiting),
        admitted=list(story.admitted),
        refused={rule: list(series) for rule, series in story.refused.items()},
        evicted=list(story.evicted),
        reserved=list(story.reserved),
    )


def _amounts(resource: str, series: Series) -> Amounts:
    return [None if value is None else render(resource, value) for value in series]
