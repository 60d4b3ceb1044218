"""Evictions that are remembered, as REST and people read them."""

from dataclasses import asdict

from app.api.models import EvictedModel
from app.observability.evictions import Evicted
from app.times import rfc3339
from policy.objects.quantity import render


def evicted_model(gone: Evicted) -> EvictedModel:
    """Returns an eviction in REST's form."""
    numbers = {
        each.resource: {
            figure: render(each.resource, value)
            for figure, value in asdict(each).items()
            if figure != "resource" and value is not None
        }
        for each in gone.figures
    }
    return EvictedModel(
        at=rfc3339(gone.at),
        pod=f"{gone.namespace}/{gone.name}",
        queue=gone.queue,
        node=gone.node,
        reason=gone.reason,
        for_=gone.for_whom,
        message=gone.why,
        numbers=numbers,
    )


def evicted_sentence(gone: Evicted) -> str:
    """Tells of an eviction in a sentence."""
    model = evicted_model(gone)
    whom = f" to make room for {gone.for_whom}" if gone.for_whom else ""
    figures = "; ".join(
        f"{name}: {', '.join(f'{k} {v}' for k, v in row.items())}" for name, row in model.numbers.items()
    )
    numbers = f" ({figures})" if figures else ""
    return f"It was evicted from {gone.node or 'its node'} at {model.at}{whom}: {gone.why}{numbers}."
