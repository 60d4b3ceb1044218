"""What many pods have in common is one object: that takes less memory, and is found and compared faster.

Their constraints are shared by ``placement``, and the Job that they belong to by ``pods``.
"""

from collections.abc import Mapping

from app.store.remembered import remembered
from policy.objects.resources import Resources


@remembered(8192)
def shared_amounts(items: tuple[tuple[str, int], ...]) -> Resources:
    """One vector for all the pods that request the same: a cluster has many pods and few sizes."""
    return dict(items)


def labels_of(given: dict[str, str] | None) -> Mapping[str, str]:
    """The labels of a pod as one map for all that are labelled so."""
    return _shared_labels(tuple(given.items())) if given else _shared_labels(())


@remembered(8192)
def _shared_labels(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """One map for all the pods that are labelled the same."""
    return dict(items)


@remembered(16_384)
def shared_text(text: str) -> str:
    """One text for all the pods that name the same."""
    return text
